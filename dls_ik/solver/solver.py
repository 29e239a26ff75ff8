"""The solver: a robot, a method by name, and poses to reach."""

import time
from typing import Any

from numpy.typing import ArrayLike

from dls_ik.core.search import search_rows
from dls_ik.core.types import Array, Rows
from dls_ik.model.robot import RobotModel
from dls_ik.model.values import checked_configuration
from dls_ik.solver.batch import inside_limits, new_rows, solve_rows
from dls_ik.solver.kdl import KdlSearch
from dls_ik.solver.method import AUTO, parse_method
from dls_ik.solver.options import checked_timeout, solver_options
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import Problem, build_problem
from dls_ik.solver.result import IkBatchResult, IkResult, Status
from dls_ik.solver.task import Task, Tasks, checked_tasks

FIRST_ATTEMPTS = 8  # of "auto" before the first look at the clock, about 0.1 ms
QUICK = 100  # steps of an attempt up to which that holds
UNLIMITED = 2**62


class IkSolver:
    """Inverse kinematics of one robot by one method.

    A solver may be used from several threads at once; kernels run without the GIL.

    Args:
        robot: the chain to solve for; with several tips they are solved for together.
        method: a name from :func:`dls_ik.method_names`, or other parts joined by ``+``. ``"auto"``
            restarts at random until the timeout and never answers outside the limits; the published
            methods make one attempt from the seed unless `max_restarts` says otherwise.
        task: which of the pose errors count, a :class:`dls_ik.Task` or one for each tip; default:
            the full pose of every tip.
        options: fields of :class:`dls_ik.solver.options.SolverOptions`.

    Raises:
        MethodError: for an unknown method, parameters outside its conditions, or a robot or task
            that it cannot serve.
        OptionError: for an unknown option, or a value out of range.
    """

    def __init__(
        self, robot: RobotModel, method: str = AUTO, *, task: Tasks = None, **options: Any
    ) -> None:
        self._choice = parse_method(method)
        self.robot = robot
        self.method = self._choice.name
        self.options = solver_options(self._choice, options)
        self.problem = build_problem(robot, self._choice, self.options, task)
        self._problems: dict[tuple[Task, ...], Problem] = {}
        starts = self.problem.starts
        self._middle = 0.5 * (starts.lower + starts.upper)  # the seed that stands in for none
        self._kdl = KdlSearch(self, task) if self._choice.is_kdl else None
        quick = self.method == AUTO and self.options.max_iterations <= QUICK
        self._first = FIRST_ATTEMPTS if quick else 1

    def solve(
        self,
        T: ArrayLike,
        seed: ArrayLike | None = None,
        timeout: float | None = None,
        task: Tasks = None,
    ) -> IkResult:
        """Find joint values that bring the tip to a pose.

        Args:
            T: (4, 4) ``T_base_tip`` [m]; with k tips (k, 4, 4).
            seed: (n,) where to start [rad or m], inside the limits or not; default: mid-range.
            timeout: time for it [s]; default: the option. The clock is read between attempts.
            task: which of the pose errors count; default: the solver's.

        Returns:
            The result; without success it holds the best that was found.

        Raises:
            PoseError, JointValueError, OptionError, MethodError: for arguments that are not valid.
        """
        begin = time.perf_counter()
        poses = checked_poses(T, len(self.robot.tips))
        q0 = self._middle
        if seed is not None:
            q0 = checked_configuration(seed, self.robot.joint_names)
        deadline = begin + (self.options.timeout if timeout is None else checked_timeout(timeout))
        row = new_rows(1, self.robot.n, self.options.random_seed)
        problem = self.problem_for(task)
        timed_out = self._attempts(problem, poses[None], q0[None], deadline, row)
        status = self._status(bool(row.reached[0]), timed_out, row.best[0])
        return IkResult(
            status is Status.SUCCESS,
            status,
            row.best[0],
            float(row.error[0, 0]),
            float(row.error[0, 1]),
            int(row.counts[0, 1]),
            int(row.counts[0, 0]) - 1,
            time.perf_counter() - begin,
        )

    def solve_batch(
        self, Ts: ArrayLike, seeds: ArrayLike | None = None, task: Tasks = None
    ) -> IkBatchResult:
        """Find joint values for many poses, on all cores; every pose as if it were alone.

        Without a clock, so that the answers are the same on every machine: a pose is given up
        after `max_restarts`, or 1000 where the option is not set.

        Args:
            Ts: (b, 4, 4) [m]; with k tips (b, k, 4, 4).
            seeds: (b, n), or (n,) for all [rad or m]; default: mid-range.
            task: which of the pose errors count; default: the solver's.

        Returns:
            The results; rows with an invalid pose or seed are ``REFUSED``, the others are solved.

        Raises:
            PoseError, JointValueError, MethodError: for arrays of the wrong shape, or a task that
                the method cannot serve.
        """
        return solve_rows(self, Ts, self._middle if seeds is None else seeds, task)

    def problem_for(self, task: Tasks) -> Problem:
        """Return what kernels read for a task, the solver's own for None; kept for the next time.

        Raises:
            MethodError, OptionError: a task that does not fit the robot or the method.
        """
        if task is None:
            return self.problem
        tasks = checked_tasks(self.robot, task)
        if tasks not in self._problems:
            if self._kdl is not None:
                self._kdl.check(tasks)
            self._problems[tasks] = build_problem(self.robot, self._choice, self.options, tasks)
        return self._problems[tasks]

    def search(self, problem: Problem, Ts: Array, seeds: Array, attempts: int, rows: Rows) -> None:
        """Make so many more attempts for every row: :func:`dls_ik.core.search.search_rows`."""
        if self._kdl is not None:
            self._kdl.search(Ts, seeds, attempts, rows)
        else:
            search_rows(self.robot.chain, *problem, Ts, seeds, attempts, rows)

    def _attempts(
        self, problem: Problem, Ts: Array, seeds: Array, deadline: float, row: Rows
    ) -> bool:
        """Make attempts, more at a time as they prove quick; return whether the time ran out."""
        restarts = self.options.max_restarts
        limit = UNLIMITED if restarts is None else restarts + 1
        attempts = min(self._first, limit)
        while True:
            before = time.perf_counter()
            self.search(problem, Ts, seeds, attempts, row)
            now = time.perf_counter()
            made = int(row.counts[0, 0])
            if row.reached[0] or made >= limit or now >= deadline:
                return made < limit
            affordable = 0.5 * attempts * (deadline - now) / (now - before)
            attempts = max(1, int(min(2.0 * attempts, affordable, limit - made)))

    def _status(self, reached: bool, timed_out: bool, q: Array) -> Status:
        if reached:
            inside = inside_limits(self.robot, q)
            return Status.SUCCESS if inside else Status.OUTSIDE_LIMITS
        return Status.TIMED_OUT if timed_out else Status.MAX_RESTARTS
