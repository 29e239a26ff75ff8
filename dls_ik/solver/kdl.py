"""Solvers of KDL, through PyKDL, as methods of our own: to compare with.

``kdl_nr``, Newton-Raphson, and ``kdl_nr_jl``, the same with values clipped to the limits, compare
each of six components with one tolerance; ``kdl_lma``, Levenberg-Marquardt, compares one norm in
which a radian counts as a hundredth. They get a tolerance that keeps both of ours. KDL does not say
how many iterations an attempt took: results count 0.
"""

import math
from typing import Any

import numpy as np

from dls_ik.core.se3 import is_pose
from dls_ik.core.search import ALL, ATTEMPTS, FOUND, STATE, uniform
from dls_ik.core.search_rows import POSE_TOLERANCE
from dls_ik.core.types import Array, Rows
from dls_ik.errors import MethodError
from dls_ik.model.kdl import kdl_chain, kdl_frame, pykdl
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.task import Tasks, is_full_pose

LMA_RADIAN = 0.01  # of its norm that a radian counts [m]
MIN_JOINTS = 6  # with fewer KDL aborts the process


class KdlAttempts:
    """Attempts of one of KDL's solvers, with seeds and restarts as our kernels have them.

    Raises:
        MethodError: a robot or a task that KDL cannot serve.
        DlsIkError: PyKDL is not installed.
    """

    def __init__(self, robot: RobotModel, method: str, options: SolverOptions, task: Tasks) -> None:
        self._robot, self._method, self._goal = robot, method, options.goal()
        self.check(task)
        if robot.n < MIN_JOINTS:
            raise MethodError(
                f"method {method!r} needs at least {MIN_JOINTS} joints, where KDL does not abort; "
                f"{robot.name!r} has {robot.n}"
            )
        self._kdl = pykdl()
        self._chain = kdl_chain(robot)
        self._limits = robot.finite_limits()
        self._fk = self._kdl.ChainFkSolverPos_recursive(self._chain)
        self._keep: tuple[Any, ...] = ()  # objects that KDL's solver refers to and does not own
        self._solver = self._new_solver()

    def check(self, task: Tasks) -> None:
        """Refuse all tasks but the full pose of one tip."""
        if not is_full_pose(self._robot, task):
            raise MethodError(f"method {self._method!r} solves for the full pose of one tip")

    def search(self, Ts: Array, seeds: Array, attempts: int, rows: Rows) -> None:
        """Make up to `attempts` more attempts for every row of poses (b, 1, 4, 4).

        Rows whose pose or seed is not valid are passed over.
        """
        for i in range(len(Ts)):
            seed = seeds[min(i, len(seeds) - 1)]
            if is_pose(Ts[i, 0], POSE_TOLERANCE) and np.isfinite(seed).all():
                row = Rows._make(array[i] for array in rows)
                self._search_row(kdl_frame(self._kdl, Ts[i, 0]), seed, attempts, row)

    def _search_row(self, frame: Any, seed: Array, attempts: int, row: Rows) -> None:
        out, goal = self._kdl.JntArray(self._robot.n), self._goal
        for _ in range(attempts):
            start = seed if row.counts[ATTEMPTS] == 0 else self._random_start(row)
            self._solver.CartToJnt(self._joints(start), frame, out)
            row.counts[ATTEMPTS] += 1
            q = np.array([out[j] for j in range(self._robot.n)])
            position, rotation = self._errors(frame, q)
            is_reached = (
                position <= goal.position_tolerance
                and rotation <= goal.rotation_tolerance
                and math.hypot(position, goal.rotation_weight * rotation) <= goal.error_tolerance
            )
            is_better = position + rotation < row.figures[:2].sum()
            if is_reached or is_better or row.counts[ATTEMPTS] == 1:
                row.best[:], row.figures[:2] = q, (position, rotation)
            if is_reached:
                row.counts[FOUND] = ALL
                return

    def _random_start(self, row: Rows) -> Array:
        lower, upper = self._limits
        state = row.counts[STATE:].view(np.uint64)
        return lower + (upper - lower) * [uniform(state) for _ in range(self._robot.n)]

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
        if self._method == "kdl_lma":
            return kdl.ChainIkSolverPos_LMA(self._chain, LMA_RADIAN * tolerance, most, 1e-15)
        velocity = kdl.ChainIkSolverVel_wdls(self._chain)  # a pseudoinverse, by Eigen
        tolerance /= math.sqrt(3.0)
        if self._method == "kdl_nr":
            self._keep = (velocity,)
            return kdl.ChainIkSolverPos_NR(self._chain, self._fk, velocity, most, tolerance)
        bounds = [self._joints(limit) for limit in self._limits]
        self._keep = (velocity, bounds)
        clipped = kdl.ChainIkSolverPos_NR_JL
        return clipped(self._chain, *bounds, self._fk, velocity, most, tolerance)
