# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Background planning for targets that local motion does not reach.

Local motion takes one step of an IK method per cycle. If it stalls, the planner searches for an IK
solution of the target, or for a collision-free joint path to a solution.
"""

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

MAX_PLANNER_RESTARTS = 2000  # approximately 20 ms; a time limit would make motions irreproducible
REFERENCE_JOINTS = 10  # above this number of joints n, restarts are reduced in proportion to 1 / n
# Maximum number of RRT-Connect nodes, in the first search for a target and in later searches.
MAX_TREE_NODES_FIRST, MAX_TREE_NODES_LATER = 1000, 4000
PATH_CLEARANCE = 1e-3  # [m] added to the distances that the guard requires


class BackgroundPlanner:
    """Finds IK solutions, and collision-free joint paths to them, in the background.

    Args:
        robot: Robot to plan for.
        executor: Executor that plans outside the control loop. None: each request is planned at
            once, inside a cycle of the loop. This is deterministic, but such a cycle takes tens of
            milliseconds.
        limits: Velocity, acceleration and jerk limits of a motion along a path.
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
        """Build the solver's tables now, unless planning runs outside the control loop."""
        if self._executor is None:
            self._solver.prepare()

    def request_solution(self, T: Array, q: Array) -> "Future[IkResult]":
        """Start to search for the IK solution of a target that is closest to q.

        Args:
            T: (4, 4) T_base_tip of the target; copied.
            q: (n,) joint positions at which the solver starts [rad or m]; copied.
        """
        target, seed = T.copy(), q.copy()
        return submit(self._executor, lambda: self._solver.solve(target, seed))

    def request_path(
        self,
        T: Array,
        q: Array,
        guard: Guard,
        attempt: int,
        previous: Array | None = None,
        goal: Array | None = None,
    ) -> "Future[PlannedPath]":
        """Start to plan a collision-free path, and a trajectory along the path.

        Args:
            T: (4, 4) T_base_tip of the target; copied.
            q: (n,) joint positions at which the arm rests [rad or m]; copied.
            guard: Guard whose required distances the path keeps.
            attempt: Number of earlier searches for this target; searches after the first use more
                nodes.
            previous: (k, n) remaining waypoints of an earlier path. If the path from q through the
                waypoints is still collision-free, it is the result, without a search.
            goal: (n,) IK solution of the target at which the path must end [rad or m]; None: any
                IK solution.
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
                goal=goal,
            )
            if len(found.path) < 2:
                return PlannedPath(found, None)
            return PlannedPath(found, TimedPath(found.path, self.limits, pairs))

        return submit(self._executor, plan)

    def request_path_check(self, path: Array, guard: Guard) -> "Future[bool]":
        """Start to check whether a path (k, n) keeps the guard's distances in the current scene."""
        pairs = monitored_pairs(guard, 0.0)
        return submit(self._executor, lambda: is_collision_free(path, pairs))


def monitored_pairs(guard: Guard, clearance: float = PATH_CLEARANCE) -> PathPairs:
    """Return the pairs of a guard for path checks, with margins.

    The margin of a pair is its required distance plus a clearance.

    Args:
        guard: Guard with the pairs.
        clearance: Clearance [m].
    """
    pairs = guard.state.pairs
    margins = np.maximum(pairs.distance, 0.0) + max(clearance, MIN_CLEARANCE)
    return PathPairs(pairs.packed, pairs.leverage[0], pairs.names, margins)


def is_collision_free(path: Array, pairs: PathPairs) -> bool:
    """Return whether all pairs provably keep their margins on the segments of a path (m, n)."""
    return all(pairs.block(a, b) is None for a, b in pairwise(path))


R = TypeVar("R")


def submit(executor: Executor | None, work: Callable[[], R]) -> "Future[R]":
    """Start work in an executor, or do the work at once, and return the future result.

    Args:
        executor: Executor; None: the work is done before this function returns.
        work: Function without arguments.
    """
    if executor is not None:
        return executor.submit(work)
    done: Future[R] = Future()
    try:
        done.set_result(work())
    except Exception as error:  # noqa: BLE001  an executor also stores any exception
        done.set_exception(error)
    return done
