"""KDL's solvers behind the interface of our own, through PyKDL, to compare with.

* ``kdl_nr``, Newton-Raphson, and ``kdl_nr_jl``, the same with values cut off at the limits, compare
  each of six components with one tolerance; ``kdl_lma``, Levenberg-Marquardt, compares one norm in
  which a radian counts a hundredth. They get one that keeps both of ours.
* KDL does not say how many iterations an attempt took: results count none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.search import ALL, ATTEMPTS, FOUND, STATE, uniform
from dls_ik.core.types import Array, Rows
from dls_ik.errors import MethodError
from dls_ik.model.kdl import kdl_chain, kdl_frame, pykdl
from dls_ik.solver.task import Tasks, is_full_pose

if TYPE_CHECKING:
    from dls_ik.solver.solver import IkSolver

LMA_RADIAN = 0.01  # what a radian counts in its norm [m]
LEAST_JOINTS = 6  # with fewer KDL aborts the process


class KdlSearch:
    """The attempts of one of KDL's solvers, with seeds and restarts as our own kernels have them.

    Raises:
        MethodError: a robot or a task that KDL cannot serve.
        DlsIkError: PyKDL is not installed.
    """

    def __init__(self, solver: IkSolver, task: Tasks) -> None:
        self._robot, self._name, self._goal = solver.robot, solver.method, solver.options.goal()
        self.check(task)
        if self._robot.n < LEAST_JOINTS:
            raise MethodError(
                f"method {self._name!r} needs at least {LEAST_JOINTS} joints, where KDL does not "
                f"abort; {self._robot.name!r} has {self._robot.n}"
            )
        self._kdl = pykdl()
        self._chain = kdl_chain(self._robot)
        self._fk = self._kdl.ChainFkSolverPos_recursive(self._chain)
        self._starts = solver.problem.starts
        self._keep: tuple[Any, ...] = ()  # what KDL's solver refers to without owning it
        self._solver = self._new_solver()

    def check(self, task: Tasks) -> None:
        """Refuse all tasks but the full pose of one tip."""
        if not is_full_pose(self._robot, task):
            raise MethodError(f"method {self._name!r} solves for the full pose of one tip")

    def search(self, Ts: Array, seeds: Array, attempts: int, rows: Rows) -> None:
        """Make up to `attempts` more attempts for every row of poses (b, 1, 4, 4).

        Rows whose pose or seed is not finite are passed over.
        """
        for i in range(len(Ts)):
            seed = seeds[min(i, len(seeds) - 1)]
            if np.isfinite(Ts[i]).all() and np.isfinite(seed).all():
                row = Rows._make(array[i] for array in rows)
                self._search_row(kdl_frame(self._kdl, Ts[i, 0]), seed, attempts, row)

    def _search_row(self, frame: Any, seed: Array, attempts: int, row: Rows) -> None:
        out = self._kdl.JntArray(self._robot.n)
        for _ in range(attempts):
            start = seed if row.counts[ATTEMPTS] == 0 else self._random_start(row)
            self._solver.CartToJnt(self._joints(start), frame, out)
            row.counts[ATTEMPTS] += 1
            q = np.array([out[j] for j in range(self._robot.n)])
            error = np.array(self._errors(frame, q))
            reached = bool(
                error[0] <= self._goal.position_tolerance
                and error[1] <= self._goal.rotation_tolerance
                and math.hypot(error[0], self._goal.rotation_weight * error[1])
                <= self._goal.error_tolerance
            )
            if reached or row.counts[ATTEMPTS] == 1 or error.sum() < row.figures[:2].sum():
                row.best[:], row.figures[:2] = q, error
            if reached:
                row.counts[FOUND] = ALL
                return

    def _random_start(self, row: Rows) -> Array:
        span, state = self._starts.upper - self._starts.lower, row.counts[STATE:].view(np.uint64)
        return self._starts.lower + span * [uniform(state) for _ in range(self._robot.n)]

    def _errors(self, frame: Any, q: Array) -> tuple[float, float]:
        """Position [m] and rotation error [rad] at q, by KDL's own kinematics."""
        if not np.isfinite(q).all():
            return math.inf, math.inf
        actual = self._kdl.Frame()
        self._fk.JntToCart(self._joints(q), actual)
        difference = self._kdl.diff(actual, frame)
        return difference.vel.Norm(), difference.rot.Norm()

    def _joints(self, q: Array) -> Any:
        joints = self._kdl.JntArray(self._robot.n)
        for j, value in enumerate(q):
            joints[j] = float(value)
        return joints

    def _new_solver(self) -> Any:
        kdl, goal = self._kdl, self._goal
        most = goal.max_iterations
        tolerance = min(goal.position_tolerance, goal.rotation_tolerance)
        tolerance = min(tolerance, goal.error_tolerance / 2.0)
        if self._name == "kdl_lma":
            return kdl.ChainIkSolverPos_LMA(self._chain, LMA_RADIAN * tolerance, most, 1e-15)
        velocity = kdl.ChainIkSolverVel_wdls(self._chain)  # a pseudoinverse, by Eigen
        tolerance /= math.sqrt(3.0)
        if self._name == "kdl_nr":
            self._keep = (velocity,)
            return kdl.ChainIkSolverPos_NR(self._chain, self._fk, velocity, most, tolerance)
        bounds = [self._joints(limit) for limit in self._robot.finite_limits()]
        self._keep = (velocity, bounds)
        jl = kdl.ChainIkSolverPos_NR_JL
        return jl(self._chain, *bounds, self._fk, velocity, most, tolerance)
