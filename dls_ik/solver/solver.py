# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The solver: a robot, a method by name, and poses to reach."""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from dls_ik.errors import DlsIkError, OptionError, SceneError
from dls_ik.model.joint import TURN, TURN_TOLERANCE, JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel, checked_robot
from dls_ik.solver.calls import (
    Progress,
    pose_slices,
    solve_batch,
    solve_pose,
)
from dls_ik.solver.method import AUTO_METHOD, parse_method
from dls_ik.solver.options import checked_timeout, solver_options
from dls_ik.solver.paths import DEFAULT_JOINT_STEP, JointSteps, solve_path
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import build_problem
from dls_ik.solver.result import IkBatchResult, IkPathResult, IkResult, Status
from dls_ik.solver.search import Search, build_search
from dls_ik.solver.solutions import IkSolutions, solve_all
from dls_ik.solver.stack_calls import solve_all_levels, solve_batch_levels, solve_path_levels
from dls_ik.solver.stack_problem import build_stack
from dls_ik.solver.stack_search import StackSearch
from dls_ik.solver.swivel import SwivelIntervals, swivel_intervals
from dls_ik.solver.task import Task, Tasks, checked_tasks, too_few_joints
from dls_ik.solver.task_stack import TaskStack, split_stack
from dls_ik.text import quoted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.scene.snapshot import SceneSnapshot
    from dls_ik.solver.options import SolverKeywords, SolveType

CLEARANCE_SOLVE_TYPE = "clearance"
NO_SCENE_MESSAGE = (
    "solve_type 'clearance' needs a scene: IkSolver(robot, scene=PlanningScene(robot))"
)
LESSER_TASKS = {"position_only()": Task.position_only(), "pointing('z')": Task.pointing("z")}
MAX_CACHED_TASKS = 64  # maximum number of tasks whose searches are cached


class IkSolver:
    """Inverse kinematics of one robot by one method.

    Several threads may use a solver at the same time; kernels run without the GIL.

    Args:
        robot: Chain whose joint positions are computed. If the chain has several tips, one
            configuration is computed that moves all tips to their poses.
        method: A name from :func:`dls_ik.method_names`, or another combination of parts joined by
            ``+``. ``"auto"`` restarts until the timeout, and its answers are always within the
            joint limits. The other methods make one attempt from the seed unless `max_restarts` is
            given.
        task: A :class:`dls_ik.Task` for all tips, or a sequence with one for each tip, or a
            :class:`dls_ik.TaskStack`; default: the full pose of every tip.
        scene: Scene in which answers must be collision-free. Each call uses the current state of
            the scene. The scene must belong to this robot, or to another chain of this robot.
        options: Fields of :class:`dls_ik.solver.options.SolverOptions`.

    Attributes:
        robot, scene: The arguments of these names.
        method: Name of the method, with its parts in the order that the papers use.
        options: All options with their values.
        search: Search of a call without its own task and selection options.

    Raises:
        MethodError: If the method is unknown or does not support the robot or the task, or if
            options violate a condition of the method.
        OptionError: If an option is unknown or has a value out of range.
        SceneError: If the scene belongs to another robot.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str = AUTO_METHOD,
        *,
        task: Tasks | TaskStack = None,
        scene: PlanningScene | None = None,
        **options: Unpack[SolverKeywords],
    ) -> None:
        self._choice = parse_method(method)
        self.robot, self.scene = checked_robot(robot), scene
        self.method = self._choice.name
        self.options = solver_options(self._choice, options, robot.joint_names)
        self._stack, of_tips = split_stack(task)
        self.search = build_search(robot, self._choice, self.options, of_tips)
        self._task = checked_tasks(robot, of_tips)
        self._searches: dict[tuple[Task, ...], Search] = {}
        self._stacks: dict[TaskStack, StackSearch] = {}
        self._is_seed_checked = False
        self._snapshots: list[tuple[SceneSnapshot, SceneSnapshot] | None] = [None]
        if scene is not None:
            self._check_scene(scene)
        elif self.options.solve_type == CLEARANCE_SOLVE_TYPE:
            raise OptionError(NO_SCENE_MESSAGE)
        else:
            self.search.load_kernels()

    def solve(
        self,
        T: PoseLike,
        seed: JointValues | None = None,
        timeout: float | None = None,
        task: Tasks | TaskStack = None,
        *,
        solve_type: SolveType | None = None,
        max_joint_change: JointValues | None = None,
        approximate: bool | None = None,
    ) -> IkResult:
        """Find joint positions at which the tip has a desired pose.

        Args:
            T: Desired pose ``T_base_tip`` [m]: (4, 4), a :class:`dls_ik.Pose`, (position,
                quaternion x y z w), or a message with position and orientation; for k tips
                (k, 4, 4). If the task has no rotation, a position (3,), or (k, 3) for k tips, is
                accepted too.
            seed: Start configuration (n,), or positions by joint name [rad or m], inside or outside
                the limits. Default: the middle of the limits or, with ``starts="table"``, stored
                configurations close to the pose. The answer need not be close to the seed; see
                `solve_type` and `max_joint_change`.
            timeout: Maximum duration [s], checked between attempts; default: the solver's option.
                The time to prepare the first call with a kind of task or with a new scene, and to
                compute the reach bounds at the first unreachable pose, does not count.
            task: Task of this call; default: the solver's task.
            solve_type, max_joint_change, approximate: Values for this call; default: the solver's
                options of these names.

        Returns:
            The result; if the pose is not reached, it has the best configuration found.

        Raises:
            PoseError: If the pose is not valid.
            JointValueError: If the seed is not valid.
            OptionError: If the timeout, the task or a selection option is not valid.
            MethodError: If the method does not support the task or the selection.
        """
        stack, of_tips = self._split(task)
        search = self._search_for(seed, of_tips, solve_type, max_joint_change, approximate)
        if stack is not None:
            levels = self._levels(stack, search)
            return levels.solve(search, T, seed, self._timeout(timeout), time.perf_counter())
        begin = time.perf_counter()
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
        """Return a generator that solves like :meth:`solve`, and yields approximately every 10 ms.

        The return value of the generator is the result. The timeout starts at the call of this
        method, and includes the time that the caller spends between two slices.
        """
        if self._stack is not None and len(self._stack.levels) > 1 and task is None:
            raise OptionError(
                "slices does not use the levels of a task stack; call solve, or give slices the "
                "task of the tip, task=stack.tip_tasks"
            )
        search = self._search_for(seed, task, solve_type, max_joint_change, approximate)
        begin = time.perf_counter()
        given = search.checked(T, seed)
        return pose_slices(search, *given, seed is not None, self._timeout(timeout), begin)

    def solve_batch(
        self,
        Ts: PoseLike,
        seeds: JointValues | None = None,
        task: Tasks | TaskStack = None,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        solve_type: SolveType | None = None,
        max_joint_change: JointValues | None = None,
        approximate: bool | None = None,
        seed: JointValues | None = None,
    ) -> IkBatchResult:
        """Find joint positions for many poses, which are solved independently on several cores.

        There is no timeout: the search for a pose ends after `max_restarts` restarts, or after 1000
        restarts if the option is None. The answers are therefore equal on every machine and for any
        number of threads.

        Args:
            Ts: Desired poses (b, 4, 4) [m]; for k tips (b, k, 4, 4); or (positions (b, 3),
                quaternions (b, 4)), or a list of poses as for :meth:`solve`. If the task has no
                rotation, positions (b, 3) are accepted too.
            seeds: Seeds (b, n), or one seed (n,) for all poses, or a mapping by joint name [rad or
                m]; default: as for :meth:`solve`.
            task: Task of this call; default: the solver's task.
            threads: Number of threads; default: one for each core.
            progress: Function that is called with the number of finished poses and of all poses.
            solve_type, max_joint_change, approximate: Values for this call; default: the solver's
                options of these names.
            seed: Alternative name of `seeds`; only one of them may be given.

        Returns:
            The results, one row per pose. Rows with an invalid pose or seed have the status
            ``REFUSED``.

        Raises:
            PoseError: If the array of poses has the wrong shape.
            JointValueError: If the array of seeds has the wrong shape.
            OptionError: If another argument is not valid.
            MethodError: If the method does not support the task or the selection.
            BatchInterrupted: If Ctrl-C is pressed; this KeyboardInterrupt holds the results
                obtained so far.
        """
        if seed is not None:
            if seeds is not None:
                raise OptionError("seed and seeds are the same argument: give only one of them")
            seeds = seed
        stack, of_tips = self._split(task)
        search = self._search_for(seeds, of_tips, solve_type, max_joint_change, approximate)
        if stack is not None:
            levels = self._levels(stack, search)
            return solve_batch_levels(levels, search, Ts, seeds, threads, progress)
        return solve_batch(search, Ts, seeds, threads, progress)

    def solve_path(
        self,
        Ts: PoseLike,
        seed: JointValues | None = None,
        task: Tasks | TaskStack = None,
        *,
        max_joint_step: JointSteps = DEFAULT_JOINT_STEP,
        progress: Progress | None = None,
        whole: bool = False,
        timeout: float | None = None,
    ) -> IkPathResult:
        """Find joint positions along a path of poses.

        By default, the answer of each pose is the seed of the next pose. With ``whole=True``, the
        answers are chosen for the whole path at once: the number of reconfigurations is minimized
        first, then the joint motion. A reconfiguration is a motion between successive poses during
        which the tips would leave the path, because a joint exceeds its maximum step or the arm
        changes to another branch of solutions.

        With a scene, the solver also searches for answers between which the straight joint motions
        are collision-free. The result lists the motions that collide nevertheless. With a task
        stack, answers are collision-free and the result lists colliding motions, but the solver
        does not search for answers that avoid such motions.

        Args:
            Ts: As for :meth:`solve_batch`.
            seed: Seed of the first pose, (n,) or a mapping by joint name [rad or m]; default: as
                for :meth:`solve`. With ``whole=True``, a seed that reaches the first pose is the
                first answer, and the distance from any other seed counts as joint motion.
            task: Task of this call; default: the solver's task.
            max_joint_step: Maximum change of a joint between consecutive poses [rad or m]: one
                number, a number for each joint, or a mapping from joint names or the joint types
                ``"revolute"`` and ``"prismatic"`` to numbers. Larger changes are jumps. By default,
                if even the solution closest to the previous answer exceeds the maximum, this
                solution is used, and the result marks a jump at the pose.
            progress: Function that is called with the number of finished poses and of all poses.
            whole: Whether the path is solved as a whole.
            timeout: Maximum duration of the search with ``whole=True`` [s], after which the best
                path so far is returned; default: no limit.

        Returns:
            The results, one row per pose, with the jumps and the collisions between poses. Rows
            with an invalid pose have the status ``REFUSED``. With ``whole=True``,
            ``reconfigurations`` lists the jumps with the reasons, and `min_reconfigurations` is a
            lower bound on their number if one is known.

        Raises:
            PoseError: If the array of poses has the wrong shape.
            JointValueError: If the seed is not valid.
            OptionError: If `max_joint_step`, `timeout` or the task is not valid, or a timeout is
                given without ``whole=True``.
            MethodError: If the method does not support the task.
            BatchInterrupted: If Ctrl-C is pressed with ``whole=True``; this KeyboardInterrupt holds
                the best path so far.
        """
        stack, of_tips = self._split(task)
        search = self._search_for(seed, of_tips)
        if stack is not None:
            if whole or timeout is not None:
                raise OptionError(
                    "whole=True, with its timeout, does not use the levels of a task stack; give "
                    "the task of the tip, task=stack.tip_tasks, or solve from pose to pose "
                    "(whole=False)"
                )
            levels = self._levels(stack, search)
            return solve_path_levels(levels, search, Ts, seed, max_joint_step, progress)
        return solve_path(search, Ts, seed, max_joint_step, progress, whole, timeout)

    def solve_all(
        self,
        T: PoseLike,
        count: int = 16,
        seed: JointValues | None = None,
        task: Tasks | TaskStack = None,
    ) -> IkSolutions:
        """Find distinct solutions of one pose, the closest to the seed first.

        Two solutions are distinct if some joint differs by more than 0.1 rad or m (0.01 for an arm
        that is not redundant for the task), after multiplication by the square root of the joint's
        weight in `joint_weights`. Of solutions that differ by full turns of joints, only the
        solution closest to the seed is returned. A redundant arm has infinitely many solutions, of
        which distinct examples are returned; :attr:`dls_ik.IkSolutions.families` tells which of
        them self-motion connects.

        With a task stack, the solutions are distinct local minima of the levels at which the tips
        reach their task. Solutions are compared level by level, and sorted with the best first.

        Args:
            T: As for :meth:`solve`.
            count: Maximum number of solutions.
            seed: Configuration (n,), or a mapping by joint name [rad or m], by the distance from
                which solutions are sorted; default: the middle of the limits.
            task: Task of this call; default: the solver's task.

        Returns:
            The solutions, with their errors and families. There are at most `count`, possibly none.
            The result can be used like an array (s, n) of configurations [rad or m].

        Raises:
            PoseError: If the pose is not valid.
            JointValueError: If the seed is not valid.
            OptionError: If `count` or the task is not valid.
            MethodError: If the method does not support the task.
        """
        stack, of_tips = self._split(task)
        search = self._search_for(seed, of_tips)
        if stack is not None:
            return solve_all_levels(self._levels(stack, search), search, T, count, seed)
        return solve_all(search, T, count, seed)

    def swivel_intervals(
        self, T: PoseLike, up: Sequence[float] = (0.0, 0.0, 1.0)
    ) -> SwivelIntervals:
        """Return the swivel angles at which the arm reaches a pose within its joint limits.

        :class:`dls_ik.SwivelTask` defines the swivel angle of the elbow. The intervals are exact
        for arms with a spherical shoulder and a spherical wrist, with or without an offset at the
        elbow. For other arms they are found from random solutions, and an interval may be missing.
        The method, the task and the scene of the solver are ignored: the full pose is reached, and
        the arm may be in collision.

        Args:
            T: Pose ``T_base_tip`` [m], as for :meth:`solve`.
            up: Direction of the angle 0 in the base frame.

        Raises:
            PoseError: If T is not a pose.
            OptionError: If the robot is not a serial arm with seven revolute joints and one tip, or
                `up` is not a direction.
        """
        return swivel_intervals(self.robot, checked_poses(T, 1)[0], up)

    def explain(self, result: IkResult, task: Tasks = None, T: PoseLike | None = None) -> str:
        """Return a sentence about the status of a result and, for a failure, possible remedies.

        Args:
            result: Result of this solver, or a row of a batch.
            task: Task of the call; default: the solver's task.
            T: Desired pose of the call. If the arm has too few joints for the task, the sentence
                names those of the tasks `LESSER_TASKS` with which the pose is reached.

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
            return f"{explanation}; {few}: explain(result, T=T) tries tasks with fewer components"
        reached = " or ".join(f"task=Task.{name}" for name in self.reached_tasks(T))
        return (
            f"{explanation}; {few}: this pose is reached with {reached}"
            if reached
            else f"{explanation}; {few}: this pose is reached with neither position nor pointing"
        )

    def reached_tasks(self, T: PoseLike) -> list[str]:
        """Return the names of the tasks in :data:`LESSER_TASKS` with which a pose is reached.

        Args:
            T: As for :meth:`solve`.

        Raises:
            PoseError: If T is not a pose.
        """
        solver = self if self.search.problem.kdl is None else IkSolver(self.robot, scene=self.scene)
        return [name for name, task in LESSER_TASKS.items() if solver.solve(T, task=task).success]

    def prepare(self) -> None:
        """Compute the reach bounds of the robot now, which takes up to a second.

        Otherwise the first call that does not reach its pose computes them.
        """
        self.search.prepare_bounds()

    def __repr__(self) -> str:
        """Return the robot, the method and the options that differ from the method's defaults."""
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
        """Return the search for the arguments of a call; None stands for the solver's value.

        Raises:
            OptionError: If `max_joint_change` is finite and no seed is given, or `solve_type` is
                ``"clearance"`` and the solver has no scene.
        """
        if seed is not None and not self._is_seed_checked:
            self._is_seed_checked = True
            _warn_degrees(self.robot, seed)
        search = self.search if task is None else self._search_for_task(task)
        if self.scene is not None:
            search = search.within(self._snapshot_of(self.scene))
        elif solve_type == CLEARANCE_SOLVE_TYPE:
            raise OptionError(NO_SCENE_MESSAGE)
        if solve_type is not None or max_joint_change is not None or approximate is not None:
            search = search.wanting(solve_type, max_joint_change, approximate)
        if seed is None and search.is_narrowed:
            raise OptionError(
                "max_joint_change limits the change from the seed, but no seed is given; give a "
                "seed too"
            )
        search.load_kernels()
        return search

    def _split(self, task: Tasks | TaskStack) -> tuple[TaskStack | None, Tasks]:
        """Return the stack and the task of the tips that apply to a call.

        Args:
            task: Argument of the call; None selects the stack and the task of the solver.

        Returns:
            The stack, None without one; and the task of the tips, None for that of the solver.
        """
        return (self._stack, None) if task is None else split_stack(task)

    def _levels(self, stack: TaskStack, search: Search) -> StackSearch:
        """Return the search for the stack of a call.

        Raises:
            OptionError: If `max_joint_change` of the call is finite.
        """
        if search.is_narrowed:
            raise OptionError(
                "max_joint_change cannot be combined with a task stack; keep joints close to "
                "positions by a PostureTask instead"
            )
        return self._stack_search(stack)

    def _check_scene(self, scene: PlanningScene) -> None:
        """Check that a scene belongs to the robot.

        Raises:
            SceneError: If the scene belongs to another robot, or is not a PlanningScene.
        """
        from dls_ik.scene.planning_scene import PlanningScene  # only if a scene is given

        if not isinstance(scene, PlanningScene):
            raise SceneError(
                "scene must be a PlanningScene, made by scene = PlanningScene(robot) and "
                f"scene.load(...); got {quoted(scene)}"
            )
        if scene.robot.tree.digest != self.robot.tree.digest:
            raise SceneError(
                f"the scene belongs to {scene.robot.name!r} and the solver to {self.robot.name!r}: "
                "create a PlanningScene of the solver's robot, because a scene has the shapes of "
                "its robot"
            )

    def _snapshot_of(self, scene: PlanningScene) -> SceneSnapshot:
        """Return the current snapshot of a scene, with the joints in the order of this robot."""
        now = scene.snapshot
        if now.joint_names == self.robot.joint_names:
            return now
        known = self._snapshots[0]  # read once, because another thread may replace the entry
        if known is None or known[0] is not now:
            known = self._snapshots[0] = now, replace(now, joint_names=self.robot.joint_names)
        return known[1]

    def _search_for_task(self, task: Tasks) -> Search:
        """Return the search for a task; the searches of recent tasks are cached."""
        tasks = checked_tasks(self.robot, task)
        known = self._searches.get(tasks)  # read once, because another thread may remove the entry
        if known is not None:
            return known
        problem = build_problem(self.robot, self._choice, self.options, tasks)
        search = replace(self.search, problem=problem, tasks=tasks)
        for oldest in list(self._searches)[: 1 - MAX_CACHED_TASKS]:
            self._searches.pop(oldest, None)
        self._searches[tasks] = search
        return search

    def _stack_search(self, stack: TaskStack) -> StackSearch:
        """Return the search for a stack; those of recent stacks are cached."""
        known = self._stacks.get(stack)  # read once, because another thread may remove the entry
        if known is not None:
            return known
        problem = build_stack(self.robot, stack, self.options)
        for oldest in list(self._stacks)[: 1 - MAX_CACHED_TASKS]:
            self._stacks.pop(oldest, None)
        self._stacks[stack] = StackSearch(problem, stack.tip_level == 0)
        return self._stacks[stack]

    def _timeout(self, given: float | None) -> float:
        return self.options.timeout if given is None else checked_timeout(given)


def _warn_degrees(robot: RobotModel, seed: JointValues) -> None:
    """Warn if a seed has an angle beyond a full turn and its limits, probably given in degrees.

    Only the first seed of a solver is checked, since checking each one would slow calls down.
    Joints without limits are not checked, since they may have made any number of turns.
    """
    try:
        q = np.abs(np.atleast_2d(robot.validated(seed)))
    except DlsIkError:  # the call reports an invalid seed
        return
    is_angle = robot.limited & np.array([unit == "rad" for unit in robot.units])
    largest = np.maximum(np.abs([robot.lower, robot.upper]).max(axis=0), TURN)
    is_large = is_angle & (q > largest + TURN_TOLERANCE)
    if is_large.any():
        row, j = np.argwhere(is_large)[0]
        warnings.warn(
            f"the seed has {q[row, j]:g} rad for {robot.joint_names[j]}, which is "
            f"{q[row, j] / TURN:.3g} turns; use np.radians(seed) for angles in degrees",
            stacklevel=4,
        )
