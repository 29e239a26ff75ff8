"""The planner of a stream that is stuck: solutions, and ways to them, in a thread of its own."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.scene.ways import PathPairs
from dls_ik.servo.guard import Guard
from dls_ik.servo.joint_motion import Answer, Course, MotionLimits, plan_motion
from dls_ik.solver import IkResult, IkSolver

R = TypeVar("R")

RESTARTS = 2000  # some 20 ms; not a time, so that equal targets always cause equal motion
JOINTS = 10  # with more joints there are fewer restarts, as each takes longer
NODES = (1000, 4000)  # of the first search for a way, and of later ones
EXTRA = 1e-3  # [m] that a way keeps beside the distances of the guard


class Planner:
    """Asks the solver for the solution nearest to the arm, and in a scene for a way there.

    Args:
        executor: in which the solver runs, so that the loop need not wait; None: in the loop, which
            makes the same motion every time, and takes some tens of milliseconds.
        limits: of motions along a way.
        options: tolerances, as for :class:`dls_ik.IkSolver`, and `scene`.
    """

    def __init__(
        self, robot: RobotModel, executor: Executor | None, limits: MotionLimits, **options: Any
    ) -> None:
        restarts = RESTARTS * JOINTS // max(robot.n, JOINTS)
        self._solver = IkSolver(
            robot, timeout=3600.0, max_restarts=restarts, solve_type="distance", **options
        )
        self._executor, self.limits = executor, limits

    def prepare(self) -> None:
        """Compute in advance the tables of the first answer, if it is to come in the loop."""
        if self._executor is None:
            self._solver.prepare()

    def ask(self, T: Array, q: Array) -> "Future[IkResult]":
        """Begin to solve for a target (4, 4), from joint values (n,); both are copied."""
        target, seed = T.copy(), q.copy()
        return self._submit(lambda: self._solver.solve(target, seed))

    def ask_way(
        self, T: Array, q: Array, guard: Guard, attempt: int, known: Array | None = None
    ) -> "Future[Answer]":
        """Begin to look for a way to a target (4, 4), from joint values (n,) at rest.

        Args:
            attempt: Number of the search, 0 for the first.
            known: (k, n) rest of a way that is taken if it is still free.
        """
        target, start, world, pairs = T.copy(), q.copy(), guard.world, kept_pairs(guard)

        def plan() -> Answer:
            if known is not None and len(known):
                way = np.vstack([start, known])
                if is_free(way, pairs):
                    return Answer(None, Course(way, self.limits, pairs))
            found = plan_motion(
                self._solver,
                world,
                start,
                target,
                pairs=pairs,
                max_nodes=NODES[min(attempt, 1)],
                seed=attempt,
            )
            is_way = len(found.way) > 1
            return Answer(found, Course(found.way, self.limits, pairs) if is_way else None)

        return self._submit(plan)

    def ask_if_free(self, way: Array, guard: Guard) -> "Future[bool]":
        """Begin to test if a way (k, n) is free in the scene as it stands."""
        pairs = kept_pairs(guard, 0.0)
        return self._submit(lambda: is_free(way, pairs))

    def _submit(self, work: Callable[[], R]) -> "Future[R]":
        if self._executor is not None:
            return self._executor.submit(work)
        done: Future[R] = Future()
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001  as in another thread
            done.set_exception(error)
        return done


def kept_pairs(guard: Guard, extra: float = EXTRA) -> PathPairs:
    """Return the pairs that a guard keeps apart, and a little more [m]."""
    pairs = guard.state.pairs
    margins = np.maximum(pairs.distance, 0.0) + max(extra, 1e-6)
    return PathPairs(pairs.packed, pairs.leverage[0], pairs.names, margins)


def is_free(way: Array, pairs: PathPairs) -> bool:
    """Test if the straight paths between configurations (m, n) are certainly free."""
    return all(pairs.block(a, b) is None for a, b in pairwise(way))
