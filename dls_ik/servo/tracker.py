# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tracking of a target pose by local motion, and by joint motions when local motion stalls.

Local motion takes one step of an IK method toward the target in each cycle. A joint motion moves
through joint space to an IK solution of the target.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.servo.direct_cycle import DirectCycle
from dls_ik.servo.guard import Guard
from dls_ik.servo.joint_motion import (
    GOAL_TOLERANCE,
    MotionLimits,
    PlannedMotion,
    PlannedPath,
)
from dls_ik.servo.joint_stream import AnyJointTarget
from dls_ik.servo.level_ik import LevelIk, moves_by_levels
from dls_ik.servo.limiter import AccelerationLimiter, JerkLimiter, Limiter
from dls_ik.servo.local_ik import LocalIk, ServoStep
from dls_ik.servo.options import JOINT_MOTION, ControllerOptions, motion_limits
from dls_ik.servo.planner import BackgroundPlanner
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.stall import TICK, BlockedMonitor, StallMonitor
from dls_ik.servo.state import ServoState
from dls_ik.servo.targets import Target, TrajectoryTarget, TwistTarget, is_same
from dls_ik.servo.tip_speed import TipSpeed, tip_speed
from dls_ik.servo.tip_targets import TipTargets
from dls_ik.servo.trajectory_plan import TrajectoryPlan, TrajectoryPlanner
from dls_ik.servo.workspace import Bound
from dls_ik.solver import IkResult
from dls_ik.solver.task import Tasks
from dls_ik.solver.task_stack import TaskStack, split_stack

MAX_ERROR_SHARE = 0.99  # a joint motion must reduce the error to less than this share of itself
# A joint motion to a moving target continues while the pose error at its goal, divided by the pose
# error at the command, is at most this number.
MAX_GOAL_ERROR_SHARE = 0.1
# [s] Local motion replaces a joint motion to a moving target as soon as all joints can reach the
# goal within this time at their velocity limits.
HANDOVER_TIME = 0.05
MAX_PATH_SEARCHES = 6  # maximum number of searches per target while the scene does not change
SEARCH_INTERVAL = 0.5  # [s] minimum time between two searches
START_TOLERANCE = 1e-6  # [rad or m] largest distance of the command from the start of a path
NO_PATH = "no collision-free path to the target found"
NO_SPEED = "scale is 0; set it above 0 to move"
NO_PROGRESS = "local motion makes no progress toward the target"
PLANNING_START = "planning a path to the joint positions at the start of the trajectory"
MOVES_TO_BRANCH = "moving to a branch on which all poses are reachable"
ONLY_BY_MOTION = "a joint motion would lead to a branch on which all poses are reachable"
PLANNING_PATH = f"{NO_PROGRESS}; planning a path through joint space"


class SolutionRequest(NamedTuple):
    """A request to the planner for an IK solution of a target."""

    T: Array  # (4, 4) T_base_tip of the target
    answer: "Future[IkResult] | None"  # result of the planner; None: already used
    is_out_of_reach: bool = False  # whether the planner found no solution
    goal: Array | None = None  # (n,) goal of the current joint motion; None: no joint motion
    has_moved: bool = False  # whether the goal is a step of local motion, not the solver's answer


@dataclass
class SceneMotion:
    """Joint motion in a scene, whose path is being planned, is being followed, or was not found."""

    T: Array  # (4, 4) T_base_tip of the target
    world: SceneSnapshot  # scene for which the path was searched or last checked
    attempt: int  # number of earlier searches for this target
    answer: "Future[PlannedPath] | None" = None  # pending search for a path
    motion: PlannedMotion | None = None  # motion along the path that was found
    test: "Future[bool] | None" = None  # pending check of the remaining path
    result: IkResult | None = None  # the solver's result in the last search
    names: Pair | None = None  # pair that blocks the target, or the path to the target
    since: float = 0.0  # [s] time of the last search result
    goal: Array | None = None  # (n,) end of the path [rad or m]; None: any solution of T
    # (n,) solution of T [rad or m] if the target has moved since the path was planned, or None
    moved_goal: Array | None = None


# Planner of collision-free paths, and guard that keeps the command at safe distances.
PathPlanning = tuple[BackgroundPlanner, Guard]


class PlanRequest(NamedTuple):
    """A request to plan a trajectory of poses."""

    target: TrajectoryTarget
    answer: "Future[TrajectoryPlan]"


class Tracked(NamedTuple):
    """Result of a cycle: the state, the step of the command, and the reason for the state."""

    state: ServoState
    step: ServoStep
    reason: str = ""
    direct: DirectCycle | None = None  # its attributes describe this cycle; None: not computed


class Tracker:
    """Moves the command toward target poses.

    Local motion moves a reference (joint positions) by one step of the IK method per cycle, and the
    command follows the reference within the limits. If the reference stalls before it reaches a
    target at rest, the planner searches for the closest IK solution, and the command moves straight
    to this solution in joint space. If the target is out of reach, the command moves to the closest
    configuration that the solver found, provided that this reduces the error. Then the command
    stays there, because local motion would continue very slowly for minutes. If the target moves
    during a joint motion, local motion moves the goal along with the target; the joint motion ends
    early only if the goal cannot follow the target.

    With a scene or a workspace, the command rests while a collision-free path is planned, and then
    follows the path. The remaining path is checked again whenever the scene changes. If no path is
    found, the command holds.

    A trajectory of poses is planned while the command approaches its first pose. If local motion
    cannot follow all poses on the current branch of solutions, but a joint path exists, a joint
    motion leads to the start of this path, and each step of local motion then starts on the path.

    With several tips, poses of targets are arrays (s, 4, 4), one for each followed frame.

    Args:
        local_ik: Local motion of the reference.
        limiter: Limiter of the command; a :class:`Guard` if there is a scene or a workspace.
        planner: Planner of joint motions; None: the command makes no joint motions.
        acceleration: (n,) acceleration limits of the limiter [rad/s^2 or m/s^2].
        tip: Speed limits of the tip; None: no limits.
        scale: Share of the limits that motion uses; 0: the command stops and holds.
        trajectories: Planner of trajectories; None: trajectories are not planned.
    """

    def __init__(
        self,
        local_ik: LocalIk | LevelIk,
        limiter: Limiter | Guard,
        planner: BackgroundPlanner | None,
        acceleration: Array,
        tip: TipSpeed | None = None,
        scale: float = 1.0,
        trajectories: TrajectoryPlanner | None = None,
    ) -> None:
        self.local_ik, self.limiter, self.acceleration = local_ik, limiter, acceleration
        self.guard = limiter if isinstance(limiter, Guard) else None
        self._planner, self._tip, self._scale = planner, tip, scale
        self._unit = local_ik.options.length_unit
        self._weight = local_ik.options.rotation_weight * self._unit
        if planner is not None:
            planner.prepare()
        self._stall = StallMonitor(local_ik.robot.velocity, self._weight)
        self._blocked = BlockedMonitor()
        self._request: SolutionRequest | None = None
        self._motion: SceneMotion | None = None
        self._trajectories = trajectories
        self._plan: PlanRequest | None = None
        # (4, 4) target for which the command rests, because local motion has stalled for long.
        self._resting_target: Array | None = None
        # Whether the command has come to rest, and local motion has been restarted there.
        self._is_at_rest = False
        self._direct: DirectCycle | None = None
        if isinstance(local_ik, LocalIk) and local_ik.is_direct:
            self._direct = (
                DirectCycle(local_ik, limiter) if type(limiter) is AccelerationLimiter else None
            )

    @property
    def limiting_pair(self) -> NearPair | None:
        """Pair that slowed or deflected the motion in the last cycle; None if no pair did."""
        guard, k = self.guard, self.local_ik.limiting_pair
        if guard is None or guard.refused is not None:
            return None if guard is None else guard.refused
        return guard.state.near_pair(k) if 0 <= k < len(guard.state.pairs.names) else None

    def seed(self, q: Array) -> None:
        """Set the command, at rest, to joint positions (n,) [rad or m]."""
        self.limiter.reset(q)
        self._restart()

    def take_over(self, other: "Tracker") -> None:
        """Continue the motion of another tracker of the same joints."""
        self.limiter.take_over(other.limiter.hand_over())
        self._restart()
        lower, others = self.local_ik.lower_levels, other.local_ik.lower_levels
        if lower is not None and others is not None:
            lower.take_over(others)
        other._cancel_requests()
        before = other._motion
        if before is not None and before.motion is not None and self._path_planning is not None:
            path = before.motion.remaining_path[1:]
            self._continue_path(self._path_planning, before, path)

    def twist_share(self, V: Array) -> float:
        """Return the factor, at most 1, that reduces a twist V (6,) to the tip's speed limits."""
        return 1.0 if self._tip is None else self._tip.twist_share(V)

    def brake(self, dt: float) -> None:
        """Slow the command down for `dt` [s]; cancel a joint motion and requests to the planner."""
        self.limiter.brake(dt)
        if not (self._is_at_rest and self.limiter.q.tolist() == self.local_ik.q.tolist()):
            self._restart()
            self._is_at_rest = not any(self.limiter.v.tolist())

    def follow_joints(self, target: AnyJointTarget, now: float, dt: float) -> Tracked:
        """Move the command along a joint trajectory, or to joint positions or velocities.

        Args:
            target: The trajectory, the positions or the velocities.
            now: Current time [s].
            dt: Duration of the cycle [s].
        """
        self._is_at_rest = False
        if self._request is not None or self._motion is not None or self._plan is not None:
            self._cancel_requests()
            self._request = self._motion = None
        self._resting_target = None
        target.advance(self.limiter, now, dt)
        self.local_ik.restart(self.limiter.stopping_point())
        self.local_ik.limiting_pair = -1
        self._stall.reset()
        step = self.local_ik.stay()._replace(limit_activation=target.limit_activation)
        if self._scale == 0.0:
            return Tracked(ServoState.STALLED, step, NO_SPEED)
        return Tracked(ServoState.FOLLOWING, step, target.description)

    def track(self, T_d: Array, target: Target, now: float, dt: float) -> Tracked:
        """Move the command toward a target for one cycle.

        Joint motions start only if the target is at rest. If the target is a twist, each step of
        local motion starts at the commanded joint positions, so that the reference of the command
        never moves far ahead of the command.

        Args:
            T_d: (4, 4) desired T_base_tip in this cycle, or (s, 4, 4) of several frames.
            target: Target from which `T_d` was computed.
            now: Current time [s].
            dt: Duration of the cycle [s].

        Raises:
            MethodError: If a plug-in or the planner fails; the command then has not moved.
        """
        if self._request is not None or self._motion is not None or self._plan is not None:
            self._raise_planner_errors()
        self._is_at_rest = False
        if self._scale == 0.0:
            self.limiter.brake(dt)
            self._restart()
            return Tracked(ServoState.STALLED, self.local_ik.stay(), NO_SPEED)
        if isinstance(target, TrajectoryTarget):
            T_d = self._prepare_trajectory(target, T_d)
        elif self._plan is not None:
            self._cancel_plan()
        reference, tracked = self._track(T_d, target, now, dt)
        gap = None if tracked.direct is None else tracked.direct.gap
        if not self._blocked.update(now, reference, self.limiter.q, gap):
            return tracked
        away = np.abs(reference - self.limiter.q)
        j = int(np.argmax(away))
        name = self.local_ik.robot.joint_names[j]
        unit = self.local_ik.robot.units[j]
        reason = f"limits keep joint {name!r} {away[j]:.3g} {unit} away from its goal"
        return Tracked(ServoState.STALLED, tracked.step, reason)

    def _raise_planner_errors(self) -> None:
        """Raise a MethodError if a request to the planner has failed."""
        for pending in self._pending_requests():
            if pending.done() and (error := pending.exception()) is not None:
                self._cancel_plan()
                raise MethodError(f"the planner failed: {error!r}") from error

    def _track(self, T_d: Array, target: Target, now: float, dt: float) -> tuple[Array, Tracked]:
        """Move the command toward a target for one cycle, without the checks of :meth:`track`.

        Returns:
            The joint positions (n,) that the command follows [rad or m], and the result of the
            cycle.
        """
        request = self._request
        if request is not None and request.goal is not None:
            approached = self._pursue_goal(request, request.goal, T_d, target, dt)
            if approached is not None:
                return approached
        motion = self._motion
        if motion is not None:
            if self._path_planning is not None and self._leads_to(motion, T_d, target, dt):
                return self._move(self._path_planning, motion, now, dt)
            self._restart()
        resting = self._resting_target
        if resting is not None and not is_same(T_d, resting, self._unit):
            self._resting_target = None
            self._stall.reset()
        is_static = target.is_static(now)
        if self._resting_target is not None:
            return self._hold_after_stall(T_d, is_static, dt)
        if isinstance(target, TwistTarget):
            target.is_near_obstacle = self.limiting_pair is not None
        elif isinstance(target, TipTargets):
            target.set_near_obstacle(self.limiting_pair is not None)
        if target.is_velocity:
            self.local_ik.continue_from(self.limiter.q)
        guide = target.guide(now) if isinstance(target, TrajectoryTarget) else None
        step, moved, direct = self._advance(T_d, dt, guide)
        is_stalled = self._stall.update(now, self._error(step), step.q, T_d, moved)
        if not is_stalled or self.local_ik.is_reached(step.position_error, step.rotation_error):
            return step.q, Tracked(ServoState.FOLLOWING, step, "", direct)
        if is_static and self._stall.has_lasted(now):
            self._resting_target = T_d.copy()
        return step.q, self._handle_stall(T_d, is_static, step)

    def _advance(
        self, T_d: Array, dt: float, guide: Array | None
    ) -> tuple[ServoStep, float, DirectCycle | None]:
        """Take a step of local motion, and move the command toward its result.

        Args:
            T_d: (4, 4) T_base_tip of the target, or (s, 4, 4) of several frames.
            dt: Duration of the cycle [s].
            guide: (n,) planned joint positions at this time, from which the step starts; None:
                the step starts from the present reference.

        Returns:
            The step, the largest motion of a joint of the reference [rad or m], and the direct
            cycle, whose attributes describe this cycle; None if the limiter moved the command.
        """
        direct = self._direct
        if direct is not None and guide is None and not direct.is_too_fast():
            return direct.advance(T_d, dt), direct.motion, direct
        if self.guard is not None:
            self.local_ik.near = self.guard.near if self.guard.state.pairs.names else None
        before = self.local_ik.q
        if guide is not None:
            self.local_ik.continue_from(guide)
        step = self.local_ik.advance(T_d.reshape(-1, 4, 4), dt)
        if self._tip is not None:
            step = self._limit_tip_speed(self._tip, before, step, T_d, dt)
        change = step.q - before
        self.limiter.advance(step.q, change / dt, dt)
        if self.guard is not None and self.guard.refused is not None:
            self.local_ik.continue_from(self.limiter.stopping_point())
        return step, max(map(abs, change.tolist())), None

    def _prepare_trajectory(self, target: TrajectoryTarget, T_d: Array) -> Array:
        """Plan a trajectory, and move to the start of its joint path if that is necessary.

        Args:
            target: The trajectory.
            T_d: (4, 4) desired T_base_tip of the trajectory in this cycle.

        Returns:
            `T_d`, or the first pose of the trajectory (4, 4) if the arm has to move to the start of
            the planned joint path.
        """
        if target.num_poses > 1 and self._trajectories is not None:
            self._update_plan(self._trajectories, target)
        if not target.is_waiting or target.plan is None or target.plan.guide is None:
            return T_d
        goal, T = target.plan.guide.q[0], target.first_pose
        request = self._request
        if self._motion is None and (request is None or request.goal is None):
            if np.abs(goal - self.limiter.q).max() <= START_TOLERANCE:
                target.release(True)
            elif self._planner is None:  # another controller had started the joint motion
                target.release(False)
            elif self._path_planning is not None:
                self._request_path(self._path_planning, T, 0, goal=goal)
            else:
                self._request = SolutionRequest(T, None, False, goal)
        return T

    def _update_plan(self, planner: TrajectoryPlanner, target: TrajectoryTarget) -> None:
        """Request the plan of a trajectory, and use the answer when there is one."""
        while target.plan is None or not target.plan.is_final:
            if self._plan is None or self._plan.target is not target:
                self._cancel_plan()
                request = planner.request if target.plan is None else planner.request_search
                answer = request(target.poses, self.limiter.stopping_point())
                self._plan = PlanRequest(target, answer)
            if not _has_result(self._plan.answer):
                return
            before, plan, self._plan = target.plan, self._plan.answer.result(), None
            if before is not None and plan.guide is not None:
                note = ONLY_BY_MOTION if self._planner is None else MOVES_TO_BRANCH
                plan = plan._replace(reason=f"{before.reason}; {note}")
            target.plan = plan
            if plan.guide is not None and self._planner is not None:
                self._restart()
                target.wait()

    def _cancel_plan(self) -> None:
        """Cancel the pending request to plan a trajectory."""
        if self._plan is not None:
            self._plan.answer.cancel()
            self._plan = None
            if self._trajectories is not None:
                self._trajectories.abandon()

    def _limit_tip_speed(
        self, tip: TipSpeed, before: Array, step: ServoStep, T_d: Array, dt: float
    ) -> ServoStep:
        """Return a step of local motion, shortened if the tip would exceed its speed limits.

        Args:
            tip: Speed limits of the tip.
            before: (n,) joint positions before the step [rad or m].
            step: Step of local motion.
            T_d: (4, 4) T_base_tip of the target.
            dt: Duration of the cycle [s].
        """
        share = tip.step_share(before, step.q, dt)
        if share == 1.0:
            return step
        q = before + share * (step.q - before)
        self.local_ik.continue_from(q)
        position, rotation = self.local_ik.errors_at(q, T_d)
        return step._replace(q=q, position_error=position, rotation_error=rotation)

    def _hold_after_stall(self, T_d: Array, is_static: bool, dt: float) -> tuple[Array, Tracked]:
        """Hold the command for one cycle, because local motion has stalled for a long time.

        A step of local motion is computed for its errors and singular values only; the reference
        and the command do not make this step.

        Args:
            T_d: (4, 4) T_base_tip of the target.
            is_static: Whether the target is at rest, so that a joint motion may start.
            dt: Duration of the cycle [s].

        Returns:
            The joint positions (n,) that the command follows [rad or m], and the result of the
            cycle.
        """
        q = self.local_ik.q
        step = self.local_ik.advance(T_d.reshape(-1, 4, 4), dt)
        self.local_ik.restart(q)
        self.limiter.advance(q, np.zeros_like(q), dt)
        return q, self._handle_stall(T_d, is_static, step)

    def _restart(self) -> None:
        """Restart local motion where the command will come to rest; cancel planner requests."""
        self.local_ik.restart(self.limiter.stopping_point())
        self._stall.reset()
        self._blocked.reset()
        self._cancel_requests()
        self._request = self._resting_target = self._motion = None

    def _pending_requests(self) -> "list[Future[Any]]":
        """Return all requests to the planner whose results have not been used yet."""
        request, at, plan = self._request, self._motion, self._plan
        if request is None and at is None and plan is None:
            return []
        pending: list[Future[Any] | None] = [] if request is None else [request.answer]
        pending += [] if plan is None else [plan.answer]
        pending += [] if at is None else [at.answer, at.test]
        return [each for each in pending if each is not None]

    def _cancel_requests(self) -> None:
        """Cancel pending planner requests."""
        self._cancel_plan()
        for pending in self._pending_requests():
            pending.cancel()

    @property
    def _path_planning(self) -> PathPlanning | None:
        """The planner and the guard; None if joint motions need no collision-free paths."""
        planner, guard = self._planner, self.guard
        if planner is None or guard is None or not guard.state.pairs.names:
            return None
        return planner, guard

    def _request_path(
        self,
        planning: PathPlanning,
        T: Array,
        attempt: int,
        previous: Array | None = None,
        goal: Array | None = None,
    ) -> None:
        """Start to plan a path to a target, from the point where the command will come to rest.

        Args:
            planning: Planner of paths, and guard, which has the current scene.
            T: (4, 4) T_base_tip of the target.
            attempt: Number of earlier searches for this target.
            previous: (k, n) remaining waypoints of an earlier path; None: no earlier path.
            goal: (n,) end of the path [rad or m]; None: any solution of T.
        """
        planner, guard = planning
        start = self.limiter.stopping_point()
        answer = planner.request_path(T, start, guard, attempt, previous, goal)
        self._motion = SceneMotion(T.copy(), guard.world, attempt, answer, goal=goal)

    def _continue_path(self, planning: PathPlanning, at: SceneMotion, rest: Array) -> None:
        """Request a path through the remaining waypoints (k, n) of the path of a motion.

        If the remaining path is collision-free, the result of the motion remains valid.
        """
        self._request_path(planning, at.T, at.attempt, rest, at.goal)
        if self._motion is not None:
            self._motion.result, self._motion.names = at.result, at.names

    def _move(
        self, planning: PathPlanning, at: SceneMotion, now: float, dt: float
    ) -> tuple[Array, Tracked]:
        """Continue a joint motion to a target for one cycle.

        If a path is known, the command follows the path. While the planner searches, the command
        brakes and holds. If no path was found, the search is repeated `SEARCH_INTERVAL` later, at
        most `MAX_PATH_SEARCHES` times unless the scene changes.

        Args:
            planning: Planner of paths, and guard, which has the current scene.
            at: The joint motion.
            now: Current time [s].
            dt: Duration of the cycle [s].

        Returns:
            The joint positions (n,) that the command follows [rad or m], and the result of the
            cycle.
        """
        if planning[1].world is not at.world:
            self.local_ik.limiting_pair = -1  # indices of pairs differ between scenes
        if at.motion is not None:
            return self._move_along(planning, at, at.motion, dt)
        self.limiter.brake(dt)
        q, stay = self.limiter.q, self.local_ik.stay()
        self.local_ik.restart(self.limiter.stopping_point())
        if at.answer is not None:
            if _has_result(at.answer) and not self.limiter.v.any():
                self._start_motion(planning, at, at.answer.result(), now)
            reason = PLANNING_PATH if at.goal is None else PLANNING_START
            return q, Tracked(ServoState.STALLED, stay, reason)
        changed = planning[1].world is not at.world
        is_due = now - at.since >= SEARCH_INTERVAL - TICK
        if is_due and (changed or at.attempt + 1 < MAX_PATH_SEARCHES):
            attempt = 0 if changed else at.attempt + 1
            self._request_path(planning, at.T, attempt, goal=at.goal)
        names = at.names
        reason = f"{names[0]!r} and {names[1]!r} block the path" if names else NO_PATH
        return q, Tracked(ServoState.BLOCKED, stay, reason)

    def _start_motion(
        self, planning: PathPlanning, at: SceneMotion, found: PlannedPath, now: float
    ) -> None:
        """Start the motion along a planned path; do not move if no path was found.

        If the path does not start at the command, another path is planned. If the target is out of
        reach and the path would not reduce the error, the command does not move.

        Args:
            planning: Planner of paths, and guard, which has the current scene.
            at: The joint motion, whose search for a path has ended.
            found: Result of the search.
            now: Current time [s].
        """
        at.answer, trajectory, plan = None, found.trajectory, found.plan
        if plan is not None:
            at.result, at.names, at.since = plan.result, plan.names, now
        if trajectory is not None:
            path = trajectory.path
            if np.abs(path[0] - self.limiter.q).max() > START_TOLERANCE:
                self._continue_path(planning, at, path[1:])
                return
        if plan is not None and not plan.result.success and plan.result.pair_in_the_way is None:
            position, rotation = self.local_ik.errors_at(self.limiter.q, at.T)
            error = math.hypot(position, self._weight * rotation)
            if trajectory is None or self._error(plan.result) >= MAX_ERROR_SHARE * error:
                self._motion, self._resting_target = None, at.T
                self._request = SolutionRequest(at.T, None, True)
                return
        if trajectory is not None:
            at.motion = PlannedMotion(trajectory, planning[0].limits.velocity)

    def _move_along(
        self, planning: PathPlanning, at: SceneMotion, motion: PlannedMotion, dt: float
    ) -> tuple[Array, Tracked]:
        """Move the command along a planned path for one cycle.

        The planner searches for another path if an object that moved or appeared blocks the
        remaining path, or if the command cannot follow the path.

        Args:
            planning: Planner of paths, and guard, which has the current scene.
            at: The joint motion, of which `motion` is a part.
            motion: Motion along the planned path.
            dt: Duration of the cycle [s].

        Returns:
            The joint positions (n,) that the command follows [rad or m], and the result of the
            cycle.
        """
        planner, guard = planning
        has_arrived = motion.advance(self.limiter, dt)
        moving = Tracked(ServoState.JOINT_MOTION, self.local_ik.stay())
        self.local_ik.restart(self.limiter.stopping_point())
        if has_arrived and at.names is not None:
            at.motion = None  # the path only separated pairs; a new search follows
        elif has_arrived:
            self.local_ik.restart(motion.goal)
            self._stall.reset()
            is_far = at.result is not None and not at.result.success
            self._motion, self._request = None, SolutionRequest(at.T, None, is_far)
        if has_arrived:
            return motion.goal, moving
        if at.test is None and guard.world is not at.world:
            at.world = guard.world
            at.test = planner.request_path_check(motion.remaining_path, guard)
        is_blocked = False
        if at.test is not None and _has_result(at.test):
            is_blocked, at.test = not at.test.result(), None
        if is_blocked or motion.has_failed:  # a blocked path means another scene
            attempt = 0 if is_blocked else at.attempt + 1
            self._request_path(planning, at.T, attempt, goal=at.goal)
        return motion.reference, moving

    def _pursue_goal(
        self, request: SolutionRequest, goal: Array, T_d: Array, target: Target, dt: float
    ) -> tuple[Array, Tracked] | None:
        """Continue a joint motion without a scene for one cycle; the target may have moved.

        If the goal cannot follow the target, local motion restarts at the command. If the command
        is close to the goal of a moving target, local motion continues at the goal.

        Args:
            request: Request to the planner whose result is the goal.
            goal: (n,) joint positions at the end of the motion [rad or m].
            T_d: (4, 4) T_base_tip of the target in this cycle.
            target: Target from which `T_d` was computed.
            dt: Duration of the cycle [s].

        Returns:
            The goal, and the result of the cycle; None if local motion must move the command in
            this cycle.
        """
        if self._is_requested(T_d):
            return goal, self._approach(request, goal, np.zeros_like(goal), dt)
        moved = None if request.is_out_of_reach else self._moved_goal(goal, T_d, target, dt)
        if moved is None:
            self._restart()
            return None
        request = request._replace(T=T_d.copy(), goal=moved, has_moved=True)
        distance = np.abs(moved - self.limiter.q)
        if (distance <= HANDOVER_TIME * self.local_ik.robot.velocity).all():
            self._request = None  # the planner has not solved this target
            self._stall.reset()
            return None
        return moved, self._approach(request, moved, (moved - goal) / dt, dt)

    def _leads_to(self, at: SceneMotion, T_d: Array, target: Target, dt: float) -> bool:
        """Return whether a joint motion in a scene leads to the target, which may have moved.

        The motion follows the planned path to its end, and local motion then starts there. The
        target must not move while the path is being planned.

        Args:
            at: The joint motion; its target is updated.
            T_d: (4, 4) T_base_tip of the target in this cycle.
            target: Target from which `T_d` was computed.
            dt: Duration of the cycle [s].
        """
        if is_same(T_d, at.T, self._unit):
            return True
        if at.motion is None or at.names is not None or at.result is None or not at.result.success:
            return False
        before = at.motion.goal if at.moved_goal is None else at.moved_goal
        goal = self._moved_goal(before, T_d, target, dt)
        if goal is not None:
            at.T, at.moved_goal = T_d.copy(), goal
        return goal is not None

    def _moved_goal(self, goal: Array, T_d: Array, target: Target, dt: float) -> Array | None:
        """Return the goal of a joint motion after its target has moved.

        Args:
            goal: (n,) solution of the target in the last cycle [rad or m].
            T_d: (4, 4) T_base_tip of the target in this cycle.
            target: Target from which `T_d` was computed.
            dt: Duration of the cycle [s].

        Returns:
            Joint positions (n,) after a step of local motion from `goal`; None if this step does
            not reach the target well enough, or the target is a velocity or a trajectory.
        """
        if target.is_velocity or isinstance(target, TrajectoryTarget):
            return None
        self.local_ik.near = None
        self.local_ik.restart(goal)
        step = self.local_ik.advance(T_d.reshape(-1, 4, 4), dt)
        position, rotation = self.local_ik.errors_at(self.limiter.q, T_d)
        error = math.hypot(position, self._weight * rotation)
        return step.q if self._error(step) <= MAX_GOAL_ERROR_SHARE * error else None

    def _approach(self, request: SolutionRequest, goal: Array, v: Array, dt: float) -> Tracked:
        """Move the command on a straight path in joint space toward a goal, for one cycle.

        This is the joint motion without a scene, so that collisions are not checked.

        Args:
            request: Request to the planner whose result is the goal.
            goal: (n,) joint positions at the end of the motion [rad or m].
            v: (n,) velocity of the goal [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        self.limiter.advance(goal, v, dt)
        self._request = request
        if np.abs(goal - self.limiter.q).max() <= GOAL_TOLERANCE:
            self.local_ik.restart(goal)
            # The planner has not solved a target that has moved.
            self._request = None if request.has_moved else request._replace(goal=None)
            self._stall.reset()
        else:
            # Local motion then starts here if another target replaces this target.
            self.local_ik.restart(self.limiter.stopping_point())
        return Tracked(ServoState.JOINT_MOTION, self.local_ik.stay())

    def _handle_stall(self, T_d: Array, is_static: bool, step: ServoStep) -> Tracked:
        """Request a path or an IK solution, because local motion has stalled before the target.

        A moving target causes no request. If joint motions need no collision-free path, the command
        moves to the IK solution as soon as the planner has found the solution.

        Args:
            T_d: (4, 4) T_base_tip of the target.
            is_static: Whether the target is at rest.
            step: Step of local motion in this cycle.
        """
        stalled = Tracked(ServoState.STALLED, step, NO_PROGRESS)
        planner = self._planner
        if not is_static or planner is None:
            return stalled
        request = self._request
        is_known = self._is_requested(T_d) and request is not None and request.is_out_of_reach
        if self._path_planning is not None and not is_known:
            self._resting_target = None
            self._request_path(self._path_planning, T_d, 0)
            return stalled
        if request is None or not self._is_requested(T_d):
            self._cancel_requests()
            solution = planner.request_solution(T_d, self.limiter.q)
            request = SolutionRequest(T_d.copy(), solution)
        if request.answer is not None and _has_result(request.answer):
            result = request.answer.result()
            is_better = self._error(result) < MAX_ERROR_SHARE * self._error(step)
            goal = result.q if result.success or is_better else None
            request = SolutionRequest(request.T, None, not result.success, goal)
        self._request = request
        if request.goal is not None:
            self._resting_target = None
            return Tracked(ServoState.JOINT_MOTION, step)
        if not request.is_out_of_reach:
            return stalled
        self._resting_target = T_d.copy()
        return Tracked(ServoState.UNREACHABLE, step)

    def _is_requested(self, T: Array) -> bool:
        """Return whether the last solution request was for the target T (4, 4)."""
        return self._request is not None and is_same(T, self._request.T, self._unit)

    def _error(self, at: ServoStep | IkResult) -> float:
        """Return the norm of position error and weighted rotation error, in the robot's units."""
        return math.hypot(at.position_error, self._weight * at.rotation_error)


def _has_result(answer: "Future[Any]") -> bool:
    """Return whether a request to the planner has succeeded; the next cycle reports a failure."""
    return answer.done() and answer.exception() is None


def build_tracker(
    robot: RobotModel,
    method: str | None,
    options: ControllerOptions,
    method_options: Mapping[str, Any],
    executor: Executor | None,
    scene: PlanningScene | None = None,
    workspace: Sequence[Bound] = (),
    task: Tasks | TaskStack = None,
    frozen_joints: Sequence[str] = (),
) -> Tracker:
    """Build the tracker of a controller.

    The command starts at rest, at zero joint positions or at the closest positions in the limits.
    The arguments are those of :class:`dls_ik.servo.Controller`, with its options split into
    `options` and `method_options`.

    Raises:
        MethodError: If the method is unknown or does not suit the robot.
        OptionError: If an option is invalid or does not suit the robot.
        SceneError: If the scene or the workspace belongs to another robot.
    """
    acceleration, jerk = motion_limits(options, robot)
    share = options.scale if options.scale > 0.0 else 1.0
    given: dict[str, Any] = {
        "scale": share, "frozen_joints": frozen_joints, "acceleration": share * acceleration
    }  # fmt: skip
    stack = split_stack(task)[0]
    local_ik: LocalIk | LevelIk
    if stack is not None and moves_by_levels(robot, stack):
        local_ik = LevelIk(robot, stack, method=method, **given, **method_options)
    else:
        local_ik = LocalIk(robot, method, task=task, **given, **method_options)
    bare: Limiter = (
        AccelerationLimiter(robot, acceleration, options.scale)
        if np.isinf(jerk).all()
        else JerkLimiter(robot, acceleration, jerk, options.scale)
    )
    speeds = options.max_linear_speed, options.max_angular_speed
    tip = tip_speed(robot, speeds, options.scale, local_ik.options.length_unit, acceleration)
    limiter: Limiter | Guard = bare
    if scene is not None or workspace or tip is not None:
        distances = options.min_distance, options.influence_distance
        tests = () if tip is None else (tip,)
        limiter = Guard(bare, robot, scene, workspace, distances, (acceleration, jerk), tests)
    planner = trajectories = None
    names = ("position_tolerance", "rotation_tolerance", "rotation_weight", "length_unit")
    metric: dict[str, Any] = {name: getattr(local_ik.options, name) for name in names}
    metric["task"] = split_stack(task)[1]
    if isinstance(local_ik, LocalIk) and len(local_ik.frames) == 1 and not frozen_joints:
        trajectories = TrajectoryPlanner(robot, executor, scene=scene, **metric)
    # A joint motion would violate tasks for the relative pose of tips.
    if options.when_stuck == JOINT_MOTION and isinstance(local_ik, LocalIk):
        limits = MotionLimits(share * robot.velocity, share * acceleration, jerk, tip)
        if frozen_joints:
            frozen = [name in frozen_joints for name in robot.joint_names]
            metric["max_joint_change"] = tuple(np.where(frozen, 0.0, np.inf).tolist())
        planner = BackgroundPlanner(robot, executor, limits, scene=scene, **metric)
    tracker = Tracker(local_ik, limiter, planner, acceleration, tip, options.scale, trajectories)
    tracker.seed(robot.clip(np.zeros(robot.n)))
    return tracker
