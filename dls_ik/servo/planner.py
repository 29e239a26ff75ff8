# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Background planning when local motion stalls: IK solutions and collision-free joint paths."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.scene.joint_paths import MIN_CLEARANCE, PathPairs
from dls_ik.servo.guard import Guard
from dls_ik.servo.joint_motion import MotionLimits, PlannedPath, TimedPath, plan_motion
from dls_ik.solver import IkResult, IkSolver

R = TypeVar("R")

MAX_PLANNER_RESTARTS = 2000  # takes about 20 ms; a time limit would make motions irreproducible
REFERENCE_JOINTS = 10  # number of joints above which the restarts are reduced proportionally
MAX_TREE_NODES_FIRST, MAX_TREE_NODES_LATER = 1000, 4000  # RRT-Connect nodes, first/later searches
PATH_CLEARANCE = 1e-3  # [m] added to the distances that the guard requires


class BackgroundPlanner:
    """Finds the closest IK solution and, with a scene, a collision-free path to a solution.

    Args:
        robot: Robot to plan for.
        executor: Runs the planning outside the control loop. None: planning runs inside the loop,
            which is deterministic, but a cycle with planning takes tens of milliseconds.
        limits: Velocity, acceleration and jerk limits along a path.
        options: Tolerances and `scene`, as for :class:`dls_ik.IkSolver`.
    """

    def __init__(
        self, robot: RobotModel, executor: Executor | None, limits: MotionLimits, **options: Any
    ) -> None:
        restarts = MAX_PLANNER_RESTARTS * REFERENCE_JOINTS // max(robot.n, REFERENCE_JOINTS)
        self._solver = IkSolver(
            robot, timeout=3600.0, max_restarts=restarts, solve_type="distance", **options
        )
        self._executor, self.limits = executor, limits

    def prepare(self) -> None:
        """Build the solver's tables now, not in a cycle, if planning runs inside the loop."""
        if self._executor is None:
            self._solver.prepare()

    def request_solution(self, T: Array, q: Array) -> "Future[IkResult]":
        """Start solving IK for T_base_tip (4, 4) from joint positions q (n,); copy T and q."""
        target, seed = T.copy(), q.copy()
        return self._submit(lambda: self._solver.solve(target, seed))

    def request_path(
        self, T: Array, q: Array, guard: Guard, attempt: int, previous: Array | None = None
    ) -> "Future[PlannedPath]":
        """Start planning a path to T_base_tip (4, 4) from rest at q (n,); copy T and q.

        Args:
            T: (4, 4) T_base_tip.
            q: (n,) joint positions [rad or m].
            guard: Guard whose distances the path keeps.
            attempt: Number of earlier searches for this target; searches after the first use more
                nodes.
            previous: (k, n) remaining waypoints of an earlier path. If the path from q through the
                waypoints is still collision-free, that path is returned.
        """
        target, start, world, pairs = T.copy(), q.copy(), guard.world, monitored_pairs(guard)

        def plan() -> PlannedPath:
            if previous is not None and len(previous):
                path = np.vstack([start, previous])
                if is_collision_free(path, pairs):
                    return PlannedPath(None, TimedPath(path, self.limits, pairs))
            found = plan_motion(
                self._solver,
                world,
                start,
                target,
                pairs=pairs,
                max_nodes=MAX_TREE_NODES_LATER if attempt else MAX_TREE_NODES_FIRST,
                seed=attempt,
            )
            if len(found.path) < 2:
                return PlannedPath(found, None)
            return PlannedPath(found, TimedPath(found.path, self.limits, pairs))

        return self._submit(plan)

    def request_path_check(self, path: Array, guard: Guard) -> "Future[bool]":
        """Start checking whether a path (k, n) is collision-free in the current scene."""
        pairs = monitored_pairs(guard, 0.0)
        return self._submit(lambda: is_collision_free(path, pairs))

    def _submit(self, work: Callable[[], R]) -> "Future[R]":
        if self._executor is not None:
            return self._executor.submit(work)
        done: Future[R] = Future()
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001  an executor also stores any exception
            done.set_exception(error)
        return done


def monitored_pairs(guard: Guard, clearance: float = PATH_CLEARANCE) -> PathPairs:
    """Return the pairs of a guard, with `clearance` [m] added to each required distance."""
    pairs = guard.state.pairs
    margins = np.maximum(pairs.distance, 0.0) + max(clearance, MIN_CLEARANCE)
    return PathPairs(pairs.packed, pairs.leverage[0], pairs.names, margins)


def is_collision_free(path: Array, pairs: PathPairs) -> bool:
    """Return whether all straight segments of a path (m, n) are proven collision-free."""
    return all(pairs.block(a, b) is None for a, b in pairwise(path))
