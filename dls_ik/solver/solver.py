"""The solver: a robot, a method by name, and poses to reach."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from dls_ik.core.types import Array
from dls_ik.errors import OptionError, SceneError
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel, checked_robot
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.solver.calls import (
    Progress,
    pose_slices,
    solve_all,
    solve_batch,
    solve_pose,
)
from dls_ik.solver.method import AUTO, parse_method
from dls_ik.solver.options import checked_timeout, solver_options
from dls_ik.solver.paths import solve_path
from dls_ik.solver.problem import build_problem
from dls_ik.solver.result import IkBatchResult, IkPathResult, IkResult, Status
from dls_ik.solver.search import Search, build_search
from dls_ik.solver.task import Task, Tasks, checked_tasks, rotation_free, too_few_joints
from dls_ik.text import quoted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.solver.options import SolverKeywords, SolveType

CLEARANCE = "clearance"
NO_SCENE = "solve_type 'clearance' needs a scene: IkSolver(robot, scene=PlanningScene(robot))"
LESSER_TASKS = {"position_only()": Task.position_only(), "pointing('z')": Task.pointing("z")}
MAX_TASKS = 64  # tasks whose structs are kept; requests may each bring another


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
        scene: in which answers are free of collisions, as it stands at each call; of this robot,
            also of another chain of it.
        options: fields of :class:`dls_ik.solver.options.SolverOptions`.

    Attributes:
        robot, scene, method: as given, the method as the papers write it.
        options: all options with their values.
        search: the search of a call that leaves task and solution to the solver.

    Raises:
        MethodError: If the method is unknown, its parameters violate its conditions, or it does not
            support the robot or the task.
        OptionError: If an option is unknown or its value is out of range.
        SceneError: If the scene belongs to another robot.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str = AUTO,
        *,
        task: Tasks = None,
        scene: PlanningScene | None = None,
        **options: Unpack[SolverKeywords],
    ) -> None:
        self._choice = parse_method(method)
        self.robot, self.scene = checked_robot(robot), scene
        self.method = self._choice.name
        self.options = solver_options(self._choice, options, robot.joint_names)
        self.search = build_search(robot, self._choice, self.options, task)
        self._task = checked_tasks(robot, task)
        self._searches: dict[tuple[Task, ...], Search] = {}
        self._snapshots: list[tuple[SceneSnapshot, SceneSnapshot] | None] = [None]
        if scene is not None:
            self._check_scene(scene)
        elif self.options.solve_type == CLEARANCE:
            raise OptionError(NO_SCENE)

    def solve(
        self,
        T: PoseLike,
        seed: JointValues | None = None,
        timeout: float | None = None,
        task: Tasks = None,
        *,
        solve_type: SolveType | None = None,
        max_joint_change: JointValues | None = None,
        approximate: bool | None = None,
    ) -> IkResult:
        """Find joint values that bring the tip to a pose.

        Args:
            T: ``T_base_tip`` [m]: (4, 4), a :class:`dls_ik.Pose`, (position, quaternion x y z w),
                or a message with position and orientation; with k tips one for each, (k, 4, 4).
                Under a task without rotation also a position (3,), or (k, 3).
            seed: (n,), or by name, where to start [rad or m], inside the limits or not; default:
                mid-range, or with ``starts="table"`` wherever the pose is near.
            timeout: time for it [s]; default: the option. The clock is read between attempts.
            task: which of the pose errors count; default: the solver's.
            solve_type, max_joint_change, approximate: default: the options of these names.

        Returns:
            The result; without success it holds the best that was found.

        Raises:
            PoseError: If the pose is not valid.
            JointValueError: If the seed is not valid.
            OptionError: If the timeout, the task or a selection option is not valid.
            MethodError: If the method does not support the task or the selection.
        """
        begin = time.perf_counter()
        search = self._search_for(seed, task, solve_type, max_joint_change, approximate)
        return solve_pose(search, T, seed, self._timeout(timeout), begin)

    def slices(
        self,
        T: PoseLike,
        seed: JointValues | None = None,
        timeout: float | None = None,
        task: Tasks = None,
        solve_type: SolveType | None = None,
        max_joint_change: JointValues | None = None,
        approximate: bool | None = None,
    ) -> Generator[None, None, IkResult]:
        """Find joint values as :meth:`solve`, and yield about every 10 ms, until they are returned.

        The timeout counts from the call on, whatever is done between the slices.
        """
        begin = time.perf_counter()
        search = self._search_for(seed, task, solve_type, max_joint_change, approximate)
        given = search.checked(T, seed)
        return pose_slices(search, *given, seed is not None, self._timeout(timeout), begin)

    def solve_batch(
        self,
        Ts: PoseLike,
        seeds: JointValues | None = None,
        task: Tasks = None,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        solve_type: SolveType | None = None,
        max_joint_change: JointValues | None = None,
        approximate: bool | None = None,
        seed: JointValues | None = None,
    ) -> IkBatchResult:
        """Find joint values for many poses, on all cores; every pose as if it were alone.

        Without a clock, so that the answers are the same on every machine and for any number of
        threads: a pose is given up after `max_restarts`, or 1000 where the option is not set.

        Args:
            Ts: (b, 4, 4) [m]; with k tips (b, k, 4, 4); or (positions (b, 3), quaternions (b, 4)),
                or a list of poses as :meth:`solve` takes them. Under a task without rotation also
                positions (b, 3).
            seeds: (b, n), or (n,) for all [rad or m], or by name; default: as for :meth:`solve`.
            task: which of the pose errors count; default: the solver's.
            threads: how many; default: one for each core.
            progress: called with the number of poses done and of all, as they get more.
            solve_type, max_joint_change, approximate: default: the options of these names.
            seed: the same as `seeds`, of which one is given.

        Returns:
            The results; rows with an invalid pose or seed are ``REFUSED``, the others are solved.

        Raises:
            PoseError: If the array of poses has the wrong shape.
            JointValueError: If the array of seeds has the wrong shape.
            OptionError: If another argument is not valid.
            MethodError: If the method does not support the task or the selection.
            BatchInterrupted: If Ctrl-C is pressed; a KeyboardInterrupt that holds the results so
                far.
        """
        if seed is not None:
            if seeds is not None:
                raise OptionError("seed and seeds are the same argument, and both are given")
            seeds = seed
        search = self._search_for(seeds, task, solve_type, max_joint_change, approximate)
        return solve_batch(search, Ts, seeds, threads, progress)

    def solve_path(
        self,
        Ts: PoseLike,
        seed: JointValues | None = None,
        task: Tasks = None,
        *,
        max_joint_step: float = 0.5,
        progress: Progress | None = None,
    ) -> IkPathResult:
        """Find joint values along a path of poses, each pose from the answer before.

        With a scene also the motions between answers are free of collisions, where other solutions
        of the poses allow it.

        Args:
            Ts: as for :meth:`solve_batch`.
            seed: (n,), or by name, for the first pose; default: as for :meth:`solve`.
            task: which of the pose errors count; default: the solver's.
            max_joint_step: largest change of a joint from one pose to the next [rad or m] that
                is still motion; where even the nearest solution is farther, the path has a jump.
            progress: called with the number of poses done and of all, after each.

        Returns:
            The results of the poses, and where the jumps are.

        Raises:
            PoseError: If the array of poses has the wrong shape or a pose is not valid.
            JointValueError: If the seed is not valid.
            OptionError: If `max_joint_step` or the task is not valid.
            MethodError: If the method does not support the task.
        """
        search = self._search_for(seed, task)
        return solve_path(search, Ts, seed, max_joint_step, progress)

    def solve_all(
        self, T: PoseLike, count: int = 16, seed: JointValues | None = None, task: Tasks = None
    ) -> Array:
        """Find distinct solutions of one pose, nearest the seed first.

        Solutions are distinct that differ by more than 0.1 rad or m in some joint, times the root
        of its `joint_weights`; of those that whole turns make of each other the nearest counts. An
        arm without redundancy has a finite number; a redundant one has any number, and those found
        are spread.

        Args:
            T: as for :meth:`solve`.
            count: how many at most.
            seed: (n,), or by name, that distances are from [rad or m]; default: mid-range.
            task: which of the pose errors count; default: the solver's.

        Returns:
            (s, n) solutions [rad or m], 0 <= s <= count.

        Raises:
            PoseError: If the pose is not valid.
            JointValueError: If the seed is not valid.
            OptionError: If `count` or the task is not valid.
            MethodError: If the method does not support the task.
        """
        search = self._search_for(seed, task)
        return solve_all(search, T, count, seed)

    def explain(self, result: IkResult, task: Tasks = None, T: PoseLike | None = None) -> str:
        """Return a sentence on how a solve ended, with what to ask for instead where that helps.

        Args:
            result: of this solver, also a row of a batch.
            task: that the call had; default: the solver's.
            T: the pose of the call, for an arm with too few joints: tasks that ask for less are
                tried, and those named that reach it.

        Raises:
            PoseError: If T is not a pose.
        """
        explanation = Status(result.status).explanation
        few = "" if result.success else too_few_joints(self.robot, task or self._task)
        if result.status == Status.IN_COLLISION and result.pair_in_the_way is not None:
            one, other = map(repr, result.pair_in_the_way)
            explanation += f"; most often {one} and {other} collide"
        if not few:
            return explanation
        if T is None:
            return f"{explanation}; {few}: explain(result, T=T) tries tasks that ask for less"
        reached = " or ".join(f"task=Task.{name}" for name in self.reached_tasks(T))
        return (
            f"{explanation}; {few}: {reached or 'neither position nor pointing'} reaches this one"
        )

    def reached_tasks(self, T: PoseLike) -> list[str]:
        """Return which of :data:`LESSER_TASKS`, that ask for less than a pose, reach one.

        Args:
            T: as for :meth:`solve`.

        Raises:
            PoseError: If T is not a pose.
        """
        solver = self if self.search.problem.kdl is None else IkSolver(self.robot, scene=self.scene)
        return [name for name, task in LESSER_TASKS.items() if solver.solve(T, task=task).success]

    def prepare(self) -> None:
        """Compute bounds of reach now, in tenths of a second; else the first pose beyond waits."""
        self.search.prepare_bounds()

    def __repr__(self) -> str:
        """Return the robot, the method and the options that differ from its defaults."""
        usual = solver_options(self._choice, {})
        values = ((f.name, getattr(self.options, f.name)) for f in fields(usual))
        given = [f"{name}={v!r}" for name, v in values if v != getattr(usual, name)]
        if self._task != checked_tasks(self.robot, None):
            given.insert(0, f"task={self._task[0] if len(self._task) == 1 else self._task!r}")
        if self.scene is not None:
            given.insert(0, f"scene={self.scene!r}")
        return f"IkSolver({', '.join([self.robot.name, self.method, *given])})"

    def _search_for(
        self,
        seed: JointValues | None,
        task: Tasks,
        solve_type: SolveType | None = None,
        max_joint_change: JointValues | None = None,
        approximate: bool | None = None,
    ) -> Search:
        """Return the search for the arguments of a call.

        Raises:
            OptionError: If `max_joint_change` is finite and no seed is given, or clearance is asked
                for without a scene.
        """
        search = self.search if task is None else self._search_for_task(task)
        if self.scene is not None:
            search = search.within(self._snapshot_of(self.scene))
        elif solve_type == CLEARANCE:
            raise OptionError(NO_SCENE)
        if solve_type is not None or max_joint_change is not None or approximate is not None:
            search = search.wanting(solve_type, max_joint_change, approximate)
        if seed is None and search.is_narrowed:
            raise OptionError("max_joint_change is the distance from a seed, and none is given")
        return search

    def _check_scene(self, scene: PlanningScene) -> None:
        """Check that a scene is of the robot.

        Raises:
            SceneError: If the scene belongs to another robot, or is not a PlanningScene.
        """
        if not isinstance(scene, PlanningScene):
            raise SceneError(
                "a scene is a PlanningScene: scene = PlanningScene(robot), scene.load(...), not "
                f"{quoted(scene)}"
            )
        if scene.robot.tree.digest != self.robot.tree.digest:
            raise SceneError(
                f"the scene is of {scene.robot.name!r}, the solver of {self.robot.name!r}: a scene "
                "holds the shapes of its own robot"
            )

    def _snapshot_of(self, scene: PlanningScene) -> SceneSnapshot:
        """Return the scene as it stands, for the joints of the robot."""
        now = scene.snapshot
        if now.joint_names == self.robot.joint_names:
            return now
        known = self._snapshots[0]  # once: another thread may replace it
        if known is None or known[0] is not now:
            known = self._snapshots[0] = now, replace(now, joint_names=self.robot.joint_names)
        return known[1]

    def _search_for_task(self, task: Tasks) -> Search:
        """Return the search for a task, which is kept for the next call."""
        tasks = checked_tasks(self.robot, task)
        known = self._searches.get(tasks)  # once: another thread may drop it
        if known is not None:
            return known
        problem = build_problem(self.robot, self._choice, self.options, tasks)
        search = replace(self.search, problem=problem, position_only=rotation_free(tasks))
        for oldest in list(self._searches)[: 1 - MAX_TASKS]:
            self._searches.pop(oldest, None)
        self._searches[tasks] = search
        return search

    def _timeout(self, given: float | None) -> float:
        return self.options.timeout if given is None else checked_timeout(given)
