"""KDL's solvers through PyKDL, each in the best setting found for it on the WAM at 1e-6.

* NR and NR_JL compare each of six components with `eps`: 1e-6 / sqrt 3 keeps both norms in 1e-6.
* LMA compares one norm in which a radian counts a hundredth: 1e-8 keeps both in 1e-6. Other
  weights cannot be given: PyKDL 1.5.1 crashes on them under numpy 2.
* 100 iterations: more (500) solve 4 % more poses by NR_JL and take four times as long; LMA, none.
* The velocity solver of NR and NR_JL is ``wdls`` without weights or damping, a pseudoinverse by
  Eigen; the usual ``pinv`` finds the same and takes twice as long. Damping does not solve more.
* Restarts: at random within the limits, as dls_ik does, until an answer is inside or 50 ms are
  over; NR_JL with 15 iterations an attempt (the best of 10, 15, 20, 30 and 50), LMA with 100.
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dls_ik import DlsIkError, RobotModel
from dls_ik.model.kdl import kdl_chain, kdl_frame

try:
    import PyKDL
except ImportError:  # kdl_chain says what to install
    PyKDL = None

ITERATIONS, RESTART_ITERATIONS = 100, 15
NR_EPS, LMA_EPS = 1e-6 / math.sqrt(3.0), 1e-8
TIMEOUT = 0.05  # [s] for one pose
FAR = 1e6  # [rad or m] limit of a joint that has none
STARTS = 4096  # random ones, used in turn


class Restarts(NamedTuple):
    """Where attempts after the first one start, and which answers end them."""

    starts: list[Any]  # of JntArray
    accepts: Callable[[Any], bool]


class KdlSolver:
    """One of KDL's solvers; `keep` is what it refers to without owning it."""

    def __init__(
        self, name: str, setting: str, solver: Any, restarts: Restarts | None, keep: Any
    ) -> None:
        self.name, self.setting = name, setting
        self._solver, self._restarts, self._keep = solver, restarts, keep
        self._next = 0

    def solve(self, frame: Any, seed: Any, out: Any) -> int:
        """Write an answer to `out`; return the number of restarts."""
        code = self._solver.CartToJnt(seed, frame, out)
        if self._restarts is None:
            return 0
        deadline, made = time.perf_counter() + TIMEOUT, 0
        starts, accepts = self._restarts
        while not (code >= 0 and accepts(out)) and time.perf_counter() < deadline:
            self._next = (self._next + 1) % len(starts)
            code = self._solver.CartToJnt(starts[self._next], frame, out)
            made += 1
        return made


class Kdl:
    """A robot in KDL, and its solvers."""

    def __init__(self, robot: RobotModel) -> None:
        if robot.n < 6:
            raise DlsIkError(
                f"KDL's solvers abort on fewer than 6 joints; {robot.name} has {robot.n}"
            )
        self.robot = robot
        self.chain = kdl_chain(robot)
        prismatic = robot.chain.prismatic.tolist()
        self._limits = (robot.lower.tolist(), robot.upper.tolist(), prismatic)
        self._fk = PyKDL.ChainFkSolverPos_recursive(self.chain)

    def joints(self, q: Any) -> Any:
        """A JntArray."""
        result = PyKDL.JntArray(self.robot.n)
        for i, value in enumerate(q):
            result[i] = float(value)
        return result

    def frame(self, T: np.ndarray) -> Any:
        """A Frame of a pose (4, 4)."""
        return kdl_frame(PyKDL, T)

    def _is_inside(self, q: Any) -> bool:
        """Whether whole turns bring every joint into its limits; in Python, quick for so few."""
        joints = zip(q, *self._limits, strict=True)
        return all(low <= _turned(x, low, up, slides) <= up for x, low, up, slides in joints)

    def solvers(self, rng: np.random.Generator) -> list[KdlSolver]:
        """All of them."""
        (lower, upper), endless = self.robot.finite_limits(), ~self.robot.limited
        bounds = (
            self.joints(np.where(endless, -FAR, lower)),
            self.joints(np.where(endless, FAR, upper)),
        )
        starts = [self.joints(q) for q in rng.uniform(lower, upper, (STARTS, self.robot.n))]
        pinv = PyKDL.ChainIkSolverVel_pinv(self.chain)
        wdls = PyKDL.ChainIkSolverVel_wdls(self.chain)
        lma = PyKDL.ChainIkSolverPos_LMA(self.chain, LMA_EPS, ITERATIONS, 1e-15)
        jl = PyKDL.ChainIkSolverPos_NR_JL
        usual = jl(self.chain, *bounds, self._fk, pinv, ITERATIONS, NR_EPS)
        quick = jl(self.chain, *bounds, self._fk, wdls, ITERATIONS, NR_EPS)
        short = jl(self.chain, *bounds, self._fk, wdls, RESTART_ITERATIONS, NR_EPS)
        nr = PyKDL.ChainIkSolverPos_NR(self.chain, self._fk, wdls, ITERATIONS, NR_EPS)
        any_answer = Restarts(starts, lambda out: True)  # NR_JL never leaves the limits
        inside = Restarts(starts, self._is_inside)
        keep = (self, pinv, wdls, bounds)
        again = "random restarts for 50 ms"
        long, brief = (f"wdls, {k} iterations" for k in (ITERATIONS, RESTART_ITERATIONS))
        return [
            KdlSolver("KDL NR", f"{long}; ignores limits", nr, None, keep),
            KdlSolver("KDL NR_JL, usual pinv", f"pinv, {ITERATIONS} iterations", usual, None, keep),
            KdlSolver("KDL NR_JL", long, quick, None, keep),
            KdlSolver("KDL NR_JL, restarts", f"{brief}, {again}", short, any_answer, keep),
            KdlSolver("KDL LMA", f"{ITERATIONS} iterations; ignores limits", lma, None, keep),
            KdlSolver("KDL LMA, restarts", f"{ITERATIONS} iterations, {again}", lma, inside, keep),
        ]


def _turned(x: float, lower: float, upper: float, prismatic: bool) -> float:
    if prismatic or lower <= x <= upper:
        return x
    return upper - (upper - x) % (2.0 * math.pi)
