"""Solutions for targets that local motion does not reach, found beside the loop."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo.targets.target import is_same
from dls_ik.solver import IkResult, IkSolver

RESTARTS = 2000  # some 20 ms; not a time, so that the same motion comes of the same targets
JOINTS = 10  # up to which there are so many; fewer for more, as an attempt takes as much longer


class Planner:
    """Asks the solver for the solution nearest to where the arm is; one target at a time.

    Args:
        executor: what the solver runs in, so that the loop need not wait; None: in the loop, which
            makes the same motion every time, and takes some tens of milliseconds.
        options: tolerances, as for :class:`dls_ik.IkSolver`.
    """

    def __init__(self, robot: RobotModel, executor: Executor | None, **options: Any) -> None:
        restarts = RESTARTS * JOINTS // max(robot.n, JOINTS)
        self._solver = IkSolver(
            robot, timeout=3600.0, max_restarts=restarts, solve_type="distance", **options
        )
        self._executor = executor
        self._pending: Future[IkResult] | None = None
        self._asked: Array | None = None  # (4, 4) target of the question last asked

    def prepare(self) -> None:
        """Find now what the first answer would wait for, if it is to come in the loop."""
        if self._executor is None:
            self._solver.reach.prepare()

    def has_asked(self, T: Array) -> bool:
        """Whether the last question was for this target (4, 4)."""
        unit = self._solver.options.length_unit
        return self._asked is not None and is_same(T, self._asked, unit)

    def forget(self) -> None:
        """Let the same target be asked for again, and pass over an answer to come."""
        self._pending = self._asked = None

    def ask(self, T: Array, q: Array) -> None:
        """Begin to solve for a target (4, 4), from joint values (n,)."""
        self._asked, target, seed = T.copy(), T.copy(), q.copy()  # the loop goes on with its own
        self._pending = self._submit(lambda: self._solver.solve(target, seed))

    def answer(self) -> IkResult | None:
        """The answer, once, as soon as there is one."""
        if self._pending is None or not self._pending.done():
            return None
        pending, self._pending = self._pending, None
        return pending.result()

    def _submit(self, solve: Callable[[], IkResult]) -> "Future[IkResult]":
        if self._executor is not None:
            return self._executor.submit(solve)
        done: Future[IkResult] = Future()
        done.set_result(solve())
        return done
