"""The solver: a robot, a method by name, and poses to reach."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core import limits
from dls_ik.core.search import FIRST
from dls_ik.core.search_rows import search_packed, search_rows
from dls_ik.core.types import Array, Rows, Wish
from dls_ik.errors import MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.batch import Progress, solve_rows
from dls_ik.solver.kdl import KdlSearch
from dls_ik.solver.method import AUTO, parse_method
from dls_ik.solver.options import SolverOptions, checked_timeout, solver_options
from dls_ik.solver.path import solve_path
from dls_ik.solver.problem import Problem, build_problem
from dls_ik.solver.reached import ReachTest
from dls_ik.solver.request import Request, build_request
from dls_ik.solver.result import IkBatchResult, IkPathResult, IkResult, Status
from dls_ik.solver.single import pose_slices, solve_pose
from dls_ik.solver.solutions import solve_all
from dls_ik.solver.task import Task, Tasks, checked_tasks, too_few_joints

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.solver.keywords import SolverKeywords, SolveType

MOST_PROBLEMS = 64  # tasks whose structs are kept; requests may each bring another


class IkSolver:
    """Inverse kinematics of one robot by one method.

    A solver may be used from several threads at once; kernels run without the GIL.

    Args:
        robot: the chain to solve for; with several tips they are solved for together.
        method: a name from :func:`dls_ik.method_names`, or other parts joined by ``+``. ``"auto"``
            starts again elsewhere until the timeout and never answers outside the limits; the
            published methods make one attempt from the seed unless `max_restarts` says otherwise.
        task: which of the pose errors count, a :class:`dls_ik.Task` or one for each tip; default:
            the full pose of every tip.
        options: fields of :class:`dls_ik.solver.options.SolverOptions`.

    Raises:
        MethodError: for an unknown method, parameters outside its conditions, or a robot or task
            that it cannot serve.
        OptionError: for an unknown option, or a value out of range.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str = AUTO,
        *,
        task: Tasks = None,
        **options: Unpack[SolverKeywords],
    ) -> None:
        self._choice = parse_method(method)
        self.robot = robot
        self.method = self._choice.name
        self.options = solver_options(self._choice, options)
        self.problem = build_problem(robot, self._choice, self.options, task)
        self.request = self.request_for()
        self._problems: dict[tuple[Task, ...], Problem] = {}
        self._task = checked_tasks(robot, task)
        starts = self.problem.starts
        self.middle = 0.5 * (starts.lower + starts.upper)[None]  # (1, n) stands in for no seed
        self.keeps_limits = limits.clips(self.problem.method)
        self._kdl = KdlSearch(self, task) if self._choice.is_kdl else None
        self.reach = ReachTest(self)

    def solve(
        self,
        T: ArrayLike,
        seed: ArrayLike | None = None,
        timeout: float | None = None,
        task: Tasks = None,
        *,
        solve_type: SolveType | None = None,
        max_joint_change: ArrayLike | None = None,
        approximate: bool | None = None,
    ) -> IkResult:
        """Find joint values that bring the tip to a pose.

        Args:
            T: (4, 4) ``T_base_tip`` [m]; with k tips (k, 4, 4).
            seed: (n,) where to start [rad or m], inside the limits or not; default: mid-range, or
                with ``starts="table"`` wherever the pose is near.
            timeout: time for it [s]; default: the option. The clock is read between attempts.
            task: which of the pose errors count; default: the solver's.
            solve_type, max_joint_change, approximate: default: the options of these names.

        Returns:
            The result; without success it holds the best that was found.

        Raises:
            PoseError, JointValueError, OptionError, MethodError: for arguments that are not valid.
        """
        begin = time.perf_counter()
        given = self._given(seed, timeout, task, solve_type, max_joint_change, approximate)
        return solve_pose(self, T, seed, begin, *given)

    def slices(
        self,
        T: ArrayLike,
        seed: ArrayLike | None = None,
        timeout: float | None = None,
        task: Tasks = None,
        solve_type: SolveType | None = None,
        max_joint_change: ArrayLike | None = None,
        approximate: bool | None = None,
    ) -> Generator[None, None, IkResult]:
        """Find joint values as :meth:`solve`, and yield about every 10 ms, until they are returned.

        The timeout counts from the call on, whatever is done between the slices.
        """
        begin = time.perf_counter()
        given = self._given(seed, timeout, task, solve_type, max_joint_change, approximate)
        return pose_slices(self, T, seed, begin, *given)

    def _given(
        self,
        seed: ArrayLike | None,
        timeout: float | None,
        task: Tasks,
        solve_type: SolveType | None,
        max_joint_change: ArrayLike | None,
        approximate: bool | None,
    ) -> tuple[Problem, Request, float]:
        """The problem, the request and the timeout [s] of what is given for a pose."""
        problem = self.problem if task is None else self.problem_for(task)
        request = self.request
        if solve_type is not None or max_joint_change is not None or approximate is not None:
            request = self.request_for(solve_type, max_joint_change, approximate)
        request.check_seed(seed)
        return (
            problem,
            request,
            self.options.timeout if timeout is None else checked_timeout(timeout),
        )

    def solve_batch(
        self,
        Ts: ArrayLike,
        seeds: ArrayLike | None = None,
        task: Tasks = None,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        solve_type: SolveType | None = None,
        max_joint_change: ArrayLike | None = None,
        approximate: bool | None = None,
    ) -> IkBatchResult:
        """Find joint values for many poses, on all cores; every pose as if it were alone.

        Without a clock, so that the answers are the same on every machine and for any number of
        threads: a pose is given up after `max_restarts`, or 1000 where the option is not set.

        Args:
            Ts: (b, 4, 4) [m]; with k tips (b, k, 4, 4).
            seeds: (b, n), or (n,) for all [rad or m]; default: as for :meth:`solve`.
            task: which of the pose errors count; default: the solver's.
            threads: how many; default: one for each core.
            progress: called with the number of poses done and of all, as they get more.
            solve_type, max_joint_change, approximate: default: the options of these names.

        Returns:
            The results; rows with an invalid pose or seed are ``REFUSED``, the others are solved.

        Raises:
            PoseError, JointValueError, OptionError, MethodError: for arrays of the wrong shape, or
                other arguments that are not valid.
            BatchInterrupted: for Ctrl-C; it is a KeyboardInterrupt that has the results so far.
        """
        problem = self.problem_for(task)
        request = self.request_for(solve_type, max_joint_change, approximate)
        request.check_seed(seeds)
        return solve_rows(self, problem, request, Ts, seeds, threads, progress)

    def solve_path(
        self,
        Ts: ArrayLike,
        seed: ArrayLike | None = None,
        task: Tasks = None,
        *,
        max_joint_step: float = 0.5,
        progress: Progress | None = None,
    ) -> IkPathResult:
        """Find joint values along a path of poses, each pose from the answer before.

        Args:
            Ts: (b, 4, 4) [m]; with k tips (b, k, 4, 4).
            seed: (n,) for the first pose; default: as for :meth:`solve`.
            task: which of the pose errors count; default: the solver's.
            max_joint_step: largest change of a joint from one pose to the next [rad or m] that
                is still motion; where even the nearest solution is farther, the path has a jump.
            progress: called with the number of poses done and of all, after each.

        Returns:
            The results of the poses, and where the jumps are.

        Raises:
            PoseError, JointValueError, OptionError, MethodError: for arguments that are not valid.
        """
        self.request.check_seed(seed)
        return solve_path(self, self.problem_for(task), Ts, seed, max_joint_step, progress)

    def solve_all(
        self, T: ArrayLike, count: int = 16, seed: ArrayLike | None = None, task: Tasks = None
    ) -> Array:
        """Find distinct solutions of one pose, nearest the seed first.

        Solutions are distinct that differ by more than 0.1 rad or m in some joint, times the root
        of its `joint_weights`; of those that whole turns make of each other the nearest counts. An
        arm without redundancy has but so many; a redundant one has any number, and those found are
        spread.

        Args:
            T: (4, 4) [m]; with k tips (k, 4, 4).
            count: how many at most.
            seed: (n,) that distances are from [rad or m]; default: mid-range.
            task: which of the pose errors count; default: the solver's.

        Returns:
            (s, n) solutions [rad or m], 0 <= s <= count.

        Raises:
            PoseError, JointValueError, OptionError, MethodError: for arguments that are not valid.
        """
        self.request.check_seed(seed)
        return solve_all(self, self.problem_for(task), T, count, seed)

    def explain(self, result: IkResult, task: Tasks = None) -> str:
        """Say in a sentence how a solve ended, and what to ask for instead where that may help.

        Args:
            result: of this solver, also a row of a batch.
            task: that the call had; default: the solver's.
        """
        words = Status(result.status).explanation
        few = "" if result.success else too_few_joints(self.robot, task or self._task)
        less = "task=Task.position_only() or task=Task.pointing('z') asks for less"
        return f"{words}; {few}: {less}" if few else words

    def __repr__(self) -> str:
        """Return the robot, the method and what differs from its defaults."""
        usual = solver_options(self._choice, {})
        options = {f: getattr(self.options, f) for f in SolverOptions.__dataclass_fields__}
        given = [f"{f}={value!r}" for f, value in options.items() if value != getattr(usual, f)]
        if self._task != checked_tasks(self.robot, None):
            given.insert(0, f"task={self._task[0] if len(self._task) == 1 else self._task!r}")
        return f"IkSolver({', '.join([self.robot.name, self.method, *given])})"

    def problem_for(self, task: Tasks) -> Problem:
        """Return what kernels read for a task, the solver's own for None; kept for the next time.

        Raises:
            MethodError, OptionError: a task that does not fit the robot or the method.
        """
        if task is None:
            return self.problem
        tasks = checked_tasks(self.robot, task)
        known = self._problems.get(tasks)  # once: another thread may let go of it
        if known is not None:
            return known
        if self._kdl is not None:
            self._kdl.check(tasks)
        problem = build_problem(self.robot, self._choice, self.options, tasks)
        for oldest in list(self._problems)[: 1 - MOST_PROBLEMS]:
            self._problems.pop(oldest, None)
        self._problems[tasks] = problem
        return problem

    def request_for(
        self,
        solve_type: SolveType | None = None,
        max_joint_change: ArrayLike | None = None,
        approximate: bool | None = None,
    ) -> Request:
        """Return which solution is wanted; what is None is left to the options.

        Raises:
            OptionError: a value that is not valid.
            MethodError: another than the first solution, of PyKDL.
        """
        given = {"solve_type": solve_type, "max_joint_change": max_joint_change}
        request = build_request(self.robot, self.options, **given, approximate=approximate)
        if self._choice.is_kdl and (request.kind != FIRST or np.isfinite(request.change).any()):
            raise MethodError(
                f"method {self.method!r} gives the first solution that it finds; solve_type and "
                "max_joint_change are for other methods"
            )
        return request

    def search(
        self,
        problem: Problem,
        Ts: Array,
        seeds: Array,
        attempts: int,
        rows: Rows,
        request: Request | None = None,
        seeded: bool = True,
    ) -> None:
        """Make so many more attempts for every row: :func:`dls_ik.core.search_rows`."""
        kind, compared, change, _, _ = self.request if request is None else request
        row = rows.counts, rows.best, rows.figures
        if self._kdl is not None:
            self._kdl.search(Ts, seeds, attempts, rows)
        elif problem.details is not None:
            structs = self.robot.chain, problem.method, problem.goal, problem.starts
            wish = Wish(kind, compared, True)
            search_rows(*structs, problem.details, wish, Ts, seeds, change, attempts, *row)
        elif problem.packed is not None:
            seeded = seeded or not problem.has_table
            numbers, integers = problem.packed
            args = Ts, seeds, change, kind, compared, seeded, attempts
            search_packed(numbers, integers, *args, *row)
