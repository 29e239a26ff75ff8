# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Controller that follows targets and supervises measurements of the arm.

Each cycle returns one command and one state. Methods that need the time take it as an argument, in
seconds on a monotonic clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from types import NoneType
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import HeldError, MethodError, OptionError, StaleTargetError
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel, checked_robot
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.servo.followed_frames import find_frame
from dls_ik.servo.guard import TightPair
from dls_ik.servo.joint_stream import (
    JOINT_TARGETS,
    AnyJointTarget,
    JointPositionTarget,
    JointVelocityTarget,
    checked_positions,
    checked_velocities,
)
from dls_ik.servo.joint_target import JointTarget, MotionEnd
from dls_ik.servo.knots import Knots, trajectory_knots
from dls_ik.servo.local_ik import LocalIk, ServoStep
from dls_ik.servo.lower_levels import StackValues
from dls_ik.servo.motion import StopPath, at_start_of
from dls_ik.servo.options import split_options
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.state import (
    AWAITS_STATES,
    ConditionMonitor,
    Event,
    ServoOutput,
    ServoState,
    StreamState,
    TipStatus,
    transition,
)
from dls_ik.servo.stream_end import FINISHING, stop_reason
from dls_ik.servo.supervision import Rest, Supervision
from dls_ik.servo.targets import (
    PoseTarget,
    Target,
    TrajectoryTarget,
    TwistTarget,
    checked_duration,
    checked_period,
    checked_time,
    checked_trajectory,
    checked_twist,
)
from dls_ik.servo.tip_targets import HOLDS, TipTargets, held_statuses
from dls_ik.servo.tracker import NO_SPEED, Tracked, build_tracker
from dls_ik.servo.workspace import Bound
from dls_ik.solver.poses import checked_pose, checked_poses
from dls_ik.solver.task import Tasks
from dls_ik.solver.task_stack import TaskStack
from dls_ik.text import elapsed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.servo.options import ControllerKeywords

MAX_REST_SPEED = 1e-3  # [rad/s or m/s] largest speed of a command that counts as at rest
MAX_START_DELAY = 60.0  # [s] longest time from now to the start of a trajectory
# If a pair of links or objects limits the motion, NEAR_COLLISION or BLOCKED replaces these states.
STATES_LIMITED_BY_PAIR = frozenset(
    {
        ServoState.FOLLOWING,
        ServoState.NEAR_SINGULARITY,
        ServoState.LEAVING_SINGULARITY,
        ServoState.JOINT_BOUND,
        ServoState.STALLED,
    }
)
TIMED_TARGETS = (TrajectoryTarget, TipTargets, JointTarget)  # types of targets that can be delayed
NO_MEASUREMENT = f"{AWAITS_STATES}, because the motion starts at the measured joint positions"
STALL_HOLD_REASON = "the loop stalled; waiting for joint states"


class Controller:
    """Follows poses, twists and trajectories of one or more tips within all limits.

    Each cycle computes a command: the joint positions to send to the arm. A command continues the
    previous command instead of the measurement, because measurements lag. There are two exceptions:
    until the first target arrives, and when a target arrives after the arm has rested, the command
    is set to the measured joint positions. If the controller stops the arm, the state and the
    message of the cycle give the reason.

    Each of several tips follows its own targets (`tip`), and holds its pose before the first one. A
    tip whose stream times out holds its pose while the others continue. Tips of a plain task are
    moved together by the IK method. In a :class:`dls_ik.TaskStack`, a :class:`dls_ik.FrameTask` of
    a tip follows targets too: in another level than the other tips, or with `reference` relative to
    another link, such as the second hand in the frame of the first.

    Args:
        robot: A chain with one or more tips.
        method: A name from :func:`dls_ik.method_names`; default: ``ctp+sd+svf``, or ``svf+sd`` if
            no joint has limits.
        executor: Executor that runs the IK solver for targets that the usual motion, one step of
            the method per cycle, does not reach. None: the solver runs inside a cycle, once per
            target; that cycle takes approximately 20 ms. The constructor then also builds the
            solver's tables, which takes tenths of a second.
        scene: Scene of this robot; every cycle uses the current state of the scene. No command, and
            no stop that starts at a command, brings a pair of links, or a link and an object,
            closer than `min_distance`. None: distances are not checked.
        workspace: Bounds that the tip, or the links that a bound names, may not leave.
        task: Axes of the target pose that count, with tolerances, for all tips or one for each; or
            a :class:`dls_ik.TaskStack`. Its lower levels, such as a swivel angle or a posture, move
            the arm while the tip follows its targets, without any effect on the axes of the tip
            that count. If the robot has several tips, or the task of the tip is not the first
            level, all levels are solved by least squares, `method` must be None, and the command
            makes no joint motions. Default: the full pose.
        frozen_joints: Names of joints that do not move.
        options: Fields of :class:`dls_ik.servo.ControllerOptions`, and options of the method as for
            :class:`dls_ik.IkSolver`.

    Attributes:
        frames: Frames that follow targets: the tips, then tips relative to other links.

    Raises:
        MethodError: If the method is unknown or does not suit the robot or the stack.
        OptionError: If an option is unknown or out of range, a tip has two targets, or two links
            are always closer than `min_distance`.
        SceneError: If the scene belongs to another robot, or a workspace bound names an unknown
            link.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str | None = None,
        executor: Executor | None = None,
        scene: PlanningScene | None = None,
        workspace: Sequence[Bound] = (),
        task: Tasks | TaskStack = None,
        frozen_joints: Sequence[str] = (),
        **options: Unpack[ControllerKeywords],
    ) -> None:
        self.robot, self._frozen = checked_robot(robot), tuple(frozen_joints)
        self.options, method_options = split_options(options, robot.joint_names)
        self._tracker = build_tracker(
            robot,
            method,
            self.options,
            method_options,
            executor,
            scene,
            workspace,
            task,
            frozen_joints,
        )
        self.frames = self._tracker.local_ik.frames
        self._is_single = len(self.frames) == 1 and isinstance(self._tracker.local_ik, LocalIk)
        self._supervision = Supervision(robot, self.options)
        self.method = self._tracker.local_ik.method
        chosen = self._tracker.local_ik.options
        self._sigma0 = chosen.sigma0
        self._metric = chosen.rotation_weight, chosen.length_unit
        self._stream = StreamState()
        self._condition = ConditionMonitor()
        self._rest = self._previous_rest = Rest()  # current, and at the start of the last cycle
        self._knots: Knots | None = None  # result of the last call of `trajectory`

    def __repr__(self) -> str:
        """Return the names of the robot and the method, and the type of the target.

        If there is no target, the state of the controller replaces its type.
        """
        target, state = self._stream.target, self._stream.state
        activity = state.name if target is None else type(target).__name__
        return f"Controller({self.robot.name}, {self.method}, {activity})"

    def __reduce__(self) -> NoReturn:
        """Raise an error, because the state of the compiled kernels cannot be copied or pickled.

        Raises:
            TypeError: If ``copy.deepcopy``, ``pickle.dumps`` or other code calls this method.
        """
        raise TypeError(
            "a Controller cannot be copied or pickled; create another Controller with the same "
            "robot and options, and give it the joint positions by seed()"
        )

    @property
    def command(self) -> Array:
        """Joint positions of the last command (n,) [rad or m]; a copy."""
        return self._tracker.limiter.q.copy()

    @property
    def velocity(self) -> Array:
        """Mean velocity of the command in the last cycle (n,) [rad/s or m/s]; a copy."""
        return self._tracker.limiter.v.copy()

    @property
    def moves(self) -> bool:
        """Return whether the command has changed in the last cycle."""
        return any(self._tracker.limiter.v.tolist())

    @property
    def starts_anew(self) -> bool:
        """Return whether the command is at rest and will be set to the next measurement."""
        return self._rest.starts_anew and not self.moves

    @property
    def started(self) -> bool:
        """Return whether a target was accepted since the last reset or resume, or ever."""
        return self._stream.has_started

    @property
    def hold_reason(self) -> str:
        """Message of the pause or fault because of which targets are rejected; empty if none."""
        return self._stream.message if self._stream.is_latched else ""

    def seed(self, q: JointValues) -> None:
        """Set the command to joint positions (n,) [rad or m], at rest.

        The joint positions may be outside the limits.

        Raises:
            JointValueError: If the length is wrong or a value is not finite.
        """
        self._seed(self.robot.validated_one(q))

    def take_over(self, other: Controller) -> None:
        """Continue the motion and the target of another controller of the same joints.

        A pause or fault, and the record of commands and measurements, are copied too.
        """
        self._tracker.take_over(other._tracker)
        self._supervision.take_over(other._supervision)
        self._stream = other._stream
        self._adapt_target()
        self._rest = other._rest
        self._knots = other._knots

    def hold_like(self, other: Controller) -> None:
        """Copy the pause or fault, if any, of another controller, which may have other joints."""
        if other._stream.is_latched:
            state, reason = other._stream.state, other._stream.reason
            self._stream = self._stream._replace(state=state, reason=reason, target=None)

    @property
    def level_errors(self) -> tuple[float, ...]:
        """Norm of the scaled error of each level of the stack after the last cycle.

        NaN before the first cycle and for levels of objectives only; () without lower levels.
        """
        lower = self._tracker.local_ik.lower_levels
        return () if lower is None else lower.residuals

    def set_swivel(self, angle: float) -> None:
        """Change the desired swivel angle of the stack while the motion continues.

        Args:
            angle: Angle as for :class:`dls_ik.SwivelTask` [rad].

        Raises:
            OptionError: If the angle is not finite, or the stack has no swivel angle.
        """
        self._lower_levels().set_swivel(angle)

    def set_posture(self, positions: JointValues) -> None:
        """Change the desired posture of the stack while the motion continues.

        Args:
            positions: Joint positions (n,), or by name [rad or m]. Joints without a position here
                keep their desired position. Of n positions, those of joints outside the posture of
                the stack are ignored.

        Raises:
            OptionError: If the stack has no posture, or a joint given by name is not part of it.
            JointValueError: If a position is not finite, or there are not n positions.
        """
        self._lower_levels().set_posture(positions)

    def _lower_levels(self) -> StackValues:
        """Return the lower levels of the stack.

        Raises:
            OptionError: If the controller has no stack with lower levels.
        """
        lower = self._tracker.local_ik.lower_levels
        if lower is None:
            raise OptionError(
                "the controller has no task stack with lower levels; create it with "
                "task=TaskStack(Task(), SwivelTask(0.0), PostureTask(q))"
            )
        return lower

    def stop_path(self, period: float) -> StopPath:
        """Return the path along which the arm stops, from the last command to rest.

        Args:
            period: Period of the cycles [s].
        """
        return self._tracker.limiter.stop_path(period)

    def trajectory(self, period: float, count: int = 0) -> Knots:
        """Return the points of a trajectory that leads to the last command, and then to rest.

        The points are knots of cubics, which stay within the velocity and acceleration limits. The
        times of the points are measured from the last cycle; the arm reaches the command one period
        after that cycle. Call this once per cycle.

        Args:
            period: Period of the cycles [s].
            count: Minimum number of points; the result has more points only if the path needs more.
                0: as many as the path needs. 1: only the command.
        """
        limiter = self._tracker.limiter
        given = limiter.motion(), limiter.stop_path(period), self._tracker.acceleration
        self._knots = trajectory_knots(*given, period, count, self._knots)
        return self._knots

    def go_back(self, stop: StopPath) -> None:
        """Set the command back to the start of `stop`, the stop of the last published command."""
        self._tracker.limiter.take_over(at_start_of(stop))

    def resume_at(self, elapsed: float, period: float) -> None:
        """Advance the command along its stop path, which the arm followed while no cycle ran.

        Args:
            elapsed: Time for which the arm has followed the stop path [s].
            period: Period of the cycles [s].
        """
        self._tracker.limiter.resume_at(elapsed, period)

    def stand_still(self) -> None:
        """Set the velocity to zero, because the arm has stopped at the last command.

        Call this if the arm received no further command in time.
        """
        self._tracker.limiter.reset(self._tracker.limiter.q)

    def stand_at(self, q: Array) -> None:
        """Roll back the last cycle: set the command to an earlier command q (n,), at rest.

        Call this if the arm stopped at the earlier command, because no further command was
        published. If the target is a trajectory, it is delayed by the time since the last cycle.
        """
        self._tracker.seed(q)
        self._rest = self._previous_rest
        if isinstance(self._stream.target, TIMED_TARGETS):
            self._stream.target.interrupt()

    def resume_after_gap(self, q: Array) -> None:
        """Set the command to joint positions q (n,), at rest, after a gap without commands.

        The next measurement of the resting arm replaces these joint positions. The target remains;
        if the target is a trajectory, the trajectory is delayed by the length of the gap.
        """
        self._seed(q)
        self._rest = self._rest.restarted()
        if isinstance(self._stream.target, TIMED_TARGETS):
            self._stream.target.interrupt()

    def expect_measurements(self, since: float) -> None:
        """Tolerate missing measurements until `measurement_timeout` after the time `since`.

        Call this after the control loop has stalled: joint states of the driver are then old or not
        read yet. Until a measurement arrives, the arm stops and keeps its target without a fault.

        Args:
            since: Time at which the joint states that were queued during the stall are read [s].
        """
        self._supervision.expect_measurements(since)

    def follow_pose(
        self,
        T_d: PoseLike,
        now: float,
        age: float = 0.0,
        tip: str | None = None,
        reference: str | None = None,
    ) -> None:
        """Follow a single pose, or the next pose of a stream.

        If an error is raised, the current motion continues unchanged.

        Args:
            T_d: (4, 4) desired T_base_tip, the pose of the tip in the base frame. Without `tip`,
                several tips need (k, 4, 4), a pose for each; those of free tips are ignored.
            now: Current time [s].
            age: Time since the pose was sampled [s]; negative if its stamp is in the future.
            tip: Name of the tip, if there are several.
            reference: Link in whose frame `T_d` is given, for a relative pose of the task stack;
                None: the base.

        Raises:
            PoseError: If the pose is not a rigid transform.
            OptionError: If `now` or `age` is not finite, the tip is unknown or free, or the stack
                has no :class:`dls_ik.FrameTask` of the tip with this reference.
            StaleTargetError: If the pose is older than `target_timeout`, or its stamp is more than
                `stamp_tolerance` in the future.
            HeldError: If the controller is paused or in a fault.
        """
        if tip is not None or reference is not None or not self._is_single:
            poses = self._poses_by_frame(T_d, tip, reference)
        else:
            poses = {0: checked_pose(T_d).copy()}
        sampled = self._sampled(now, age)
        self._check_not_latched()
        for frame, T in poses.items():
            target = self._target(frame)
            if not isinstance(target, PoseTarget) or self._is_finishing(frame):
                options = self.options
                given = options.target_timeout, options.feed_forward, self._metric[1]
                target = PoseTarget(*given, options.bridge_time)
            target.take(T, sampled, now)
            self._follow(target, now, frame)

    def follow_twist(
        self,
        V: ArrayLike,
        now: float,
        R: ArrayLike | None = None,
        age: float = 0.0,
        tip: str | None = None,
    ) -> None:
        """Follow a twist of the tip until the next target or until `target_timeout` has passed.

        Args:
            V: (6,) linear and angular velocity [m/s, rad/s].
            now: Current time [s].
            R: (3, 3) orientation of the axes of V in the base frame; None: the current axes of
                the tip.
            age: Time since the twist was sampled [s]; negative if its stamp is in the future.
            tip: Name of the tip, if there are several.

        Raises:
            PoseError: If a value is not finite or too large, or R is not a rotation.
            OptionError: If `now` or `age` is not finite, or the tip is unknown or free.
            StaleTargetError: If `age` is outside the range that :meth:`follow_pose` accepts.
            HeldError: If the controller is paused or in a fault.
        """
        twist, frame = checked_twist(V, R), self._frame(tip)
        sampled = self._sampled(now, age)
        self._check_not_latched()
        target, options = self._target(frame), self.options
        if not isinstance(target, TwistTarget):
            target = TwistTarget(options.target_timeout, options.twist_lookahead, *self._metric)
            target.allowed_share = self._tracker.twist_share
        target.take(twist, R is None, sampled, now)
        self._follow(target, now, frame)

    def follow_trajectory(
        self, Ts: PoseLike, period: float, now: float, age: float = 0.0, tip: str | None = None
    ) -> None:
        """Move to the first pose of a trajectory, then pass each later pose at its time.

        The trajectory is planned while the arm moves to its first pose. If the arm cannot follow
        all poses on its current branch of solutions, messages of the cycles tell the first pose
        that it misses, and why. If another branch leads through all poses, and `when_stuck` is
        ``joint_motion``, the arm moves to this branch first. Trajectories of several tips, of a
        stack that is solved by least squares, and with frozen joints are not planned.

        Args:
            Ts: (m, 4, 4) poses T_base_tip of the tip in the base frame.
            period: Time between two poses [s].
            now: Current time [s].
            age: Time since the start time of the trajectory [s]; negative if the trajectory starts
                in the future, at most 60 s from now.
            tip: Name of the tip, if there are several.

        Raises:
            PoseError: If there are no poses, or a pose is invalid.
            OptionError: If the period is out of range, a time is not finite, or the tip is unknown
                or free.
            StaleTargetError: If `age` is above `target_timeout`, or the start is too far in the
                future.
            HeldError: If the controller is paused or in a fault.
        """
        poses, interval, frame = checked_trajectory(Ts), checked_period(period), self._frame(tip)
        now, age = checked_time("now", now), checked_time("age", age)
        if age < -max(MAX_START_DELAY, self.options.stamp_tolerance):
            raise StaleTargetError(
                f"the trajectory starts in {elapsed(-age)}, more than {MAX_START_DELAY:g} s from "
                "now; send it closer to its start"
            )
        if age >= -self.options.stamp_tolerance:
            self._sampled(now, age)
        self._check_not_latched()
        start = now + max(-age, 0.0)
        self._follow(TrajectoryTarget(poses, interval, start, self._metric[1]), now, frame)

    def follow_joints(self, target: JointTarget, now: float) -> None:
        """Follow a joint trajectory that starts at the current command.

        If the arm is not at the start of the trajectory, the trajectory ends at once, and the
        current motion continues unchanged.

        Args:
            target: Trajectory of all joints of the robot, which no controller has followed before.
            now: Current time [s].

        Raises:
            OptionError: If `now` is not finite.
            HeldError: If the controller is paused or in a fault.
        """
        now = checked_time("now", now)
        self._check_not_latched()
        reason = target.start_error(self._tracker.limiter.q)
        if reason:
            target.end(MotionEnd.REFUSED, reason)
        else:
            self._rest = self._rest.with_target(now)
            self._change(Event.TARGET, target=target)

    def follow_joint_velocity(self, velocity: JointValues, now: float, age: float = 0.0) -> None:
        """Move the joints at velocities until the next target, or until `target_timeout` is over.

        Each joint keeps its limits: at a position limit it stops while the other joints move on. If
        a velocity exceeds its limit, all velocities are reduced by the same factor.

        Args:
            velocity: (n,) velocities, or velocities of some joints by name [rad/s or m/s]. Joints
                that are not named do not move.
            now: Current time [s].
            age: Time since the velocities were sampled [s]; negative if their stamp is in the
                future.

        Raises:
            JointValueError: If the number of velocities is wrong, a velocity is not finite or too
                large, a name is unknown, or a joint of `frozen_joints` would move.
            OptionError: If `now` or `age` is not finite.
            StaleTargetError: If `age` is outside the range that :meth:`follow_pose` accepts.
            HeldError: If the controller is paused or in a fault.
        """
        v, sampled = checked_velocities(velocity, self.robot, self._frozen), self._sampled(now, age)
        self._check_not_latched()
        target = self._stream.target
        if not isinstance(target, JointVelocityTarget):
            target = JointVelocityTarget(self.robot, self.options.target_timeout)
        target.take(v, sampled, now)
        self._follow_in_joints(target, now)

    def follow_joint_position(self, positions: JointValues, now: float, age: float = 0.0) -> None:
        """Move the joints to positions, single ones or the next ones of a stream.

        The arm moves through joint space, not along a line of the tip, and not around obstacles: it
        stops in front of them. Positions beyond a limit are replaced by the limit. The positions
        stay in force until the next target.

        Args:
            positions: (n,) positions, or positions of some joints by name [rad or m]. Joints that
                are not named keep their last target, or else stop. Positions of `frozen_joints`
                are ignored.
            now: Current time [s].
            age: Time since the positions were sampled [s]; negative if their stamp is in the
                future.

        Raises:
            JointValueError: If the number of positions is wrong, a position is not finite or too
                large, or a name is unknown.
            OptionError: If `now` or `age` is not finite.
            StaleTargetError: If `age` is outside the range that :meth:`follow_pose` accepts.
            HeldError: If the controller is paused or in a fault.
        """
        target, near = self._stream.target, self._tracker.limiter.q
        q = checked_positions(positions, self.robot, self._frozen, near)
        sampled = self._sampled(now, age)
        self._check_not_latched()
        if not isinstance(target, JointPositionTarget):
            target = JointPositionTarget(self.robot, self.options.target_timeout)
        target.take(q, sampled, now)
        self._follow_in_joints(target, now)

    def _follow_in_joints(
        self, target: JointVelocityTarget | JointPositionTarget, now: float
    ) -> None:
        self._rest = self._rest.with_target(now)
        if target is not self._stream.target:  # a further message of a stream is no event
            self._change(Event.TARGET, target=target)

    def is_following(self, target: JointTarget) -> bool:
        """Return whether the arm follows, or holds at the end of, a joint trajectory."""
        return self._stream.target is target

    def stop(self, reason: str = "") -> None:
        """Stop the arm and wait for a new target; do not clear a pause or a fault.

        Args:
            reason: Why the arm stops; status messages include this text.
        """
        self._change(Event.STOP, reason)
        self._rest = self._rest.restarted()

    def refuse(self, reason: str, tip: str | None = None) -> None:
        """Stop the arm and hold it because a target is invalid.

        Args:
            reason: Why the target is invalid; messages include this text.
            tip: Tip of the target: while other tips follow targets, only this tip stops and holds.
                None, or no tip of the robot: the whole arm stops.
        """
        targets = self._stream.target
        if isinstance(targets, TipTargets) and targets.refuse(reason, tip):
            return
        self._change(Event.REFUSAL, reason)

    def pause(self, reason: str = "") -> None:
        """Stop the arm, and reject targets until :meth:`resume`; do nothing in a fault.

        Args:
            reason: Why the arm is paused; status messages include this text.
        """
        self._change(Event.PAUSE, reason)

    def resume(self) -> None:
        """Accept targets again; the next motion starts at the measured joint positions."""
        if self._stream.state is ServoState.PAUSED:
            self._change(Event.RESUME)
            self._supervision.forget_gap()
            self._rest = self._rest._replace(starts_anew=True)

    def reset(self) -> None:
        """Stop the arm; clear the target, a pause and a fault; wait for a new target."""
        self._change(Event.RESET)
        self._supervision.forget_gap()
        self._rest = self._rest.restarted()

    def lag(self) -> float:
        """Return the time by which the measured arm lags behind its commands [s]; NaN if unknown.

        This call takes a few milliseconds and is thread-safe.
        """
        return self._supervision.lag()

    def deviation(self, now: float) -> Array | None:
        """Return the command minus the last measured joint positions (n,) [rad or m].

        The lag of the arm is not a deviation: the measurement is compared with the earlier command
        that the arm follows at that time. None if that command is unknown, or if the last
        measurement is older than 0.25 s.

        Args:
            now: Current time [s].
        """
        return self._supervision.deviation(now, self._tracker.limiter.q)

    def cycle(
        self,
        now: float,
        dt: float,
        measured: Array | None = None,
        age: float | Array = 0.0,
    ) -> ServoOutput:
        """Compute the command of one cycle, and return it with the state.

        An exception in a plug-in is a fault: the arm stops and holds until a reset.

        Args:
            now: Current time [s].
            dt: Time since the last cycle [s].
            measured: (n,) measured joint positions [rad or m]; None: no measurement.
            age: Time since the measurement [s], for all joints or one for each joint (n,).

        Raises:
            OptionError: If `dt` is not positive and finite, or `now` is not finite.
            JointValueError: If the measurement has the wrong length or is not finite.
        """
        now, elapsed = checked_time("now", now), checked_duration(dt)
        self._previous_rest = self._rest
        guard = self._tracker.guard
        if guard is not None:
            guard.look()
            if guard.collision is not None:
                self._change(Event.FAILURE, f"a contact cannot be avoided: {guard.collision}")
        if measured is not None:
            measured = self.robot.validated_one(measured)
            waits = self._stream.target is None and not self.started
            command = self._tracker.limiter.q
            self._rest, is_start = self._rest.with_measurement(
                measured, command, now, self.moves, waits
            )
            if is_start:
                self._seed(measured)
            self._supervision.record_measurement(now, measured, age)
        is_blind = self.options.supervised and self._rest.starts_anew and not self.moves
        is_compared = not is_blind or self._supervision.is_overdue(now)
        if self.options.supervised and self._is_supervising() and is_compared:
            fault = self._supervision.fault(now, measured is not None, self._tracker.limiter.q)
            if fault:
                self._change(Event.FAILURE, fault)
        target = self._stream.target
        if not isinstance(target, (JointTarget, NoneType)) and target.has_timed_out(now):
            self._end_stream(target, now)
        if self._stream.target is not None and is_blind:
            return self._held_output(ServoState.WAITING, NO_MEASUREMENT)
        waits = self.options.supervised and measured is None
        waits = waits and self._supervision.is_silence_excused(now)
        output = self._advance(now, elapsed, waits)
        if isinstance(self._stream.target, JointTarget):
            self._judge(self._stream.target, measured, output)
        self._supervision.record_command(now, self._tracker.limiter.q)
        return output

    def _change(
        self, event: Event, reason: str = "", target: Target | AnyJointTarget | None = None
    ) -> None:
        before = self._stream.target
        self._stream = transition(self._stream, event, reason, target)
        if isinstance(before, JointTarget) and self._stream.target is not before:
            if event is Event.TARGET:
                before.end(MotionEnd.PREEMPTED, "another target replaced the trajectory")
            else:
                before.end(
                    MotionEnd.STOPPED, f"the arm was stopped: {reason or event.name.lower()}"
                )

    def _check_not_latched(self) -> None:
        """Raise a HeldError if the controller is paused or in a fault."""
        if self._stream.is_latched:
            raise HeldError(self._stream.message)

    def _frame(self, tip: str | None) -> int:
        """Return the index of the followed frame of a tip; None: the only tip.

        Raises:
            OptionError: If the tip is unknown or free.
        """
        return 0 if tip is None and self._is_single else find_frame(self.frames, tip)

    def _poses_by_frame(
        self, T_d: PoseLike, tip: str | None, reference: str | None
    ) -> dict[int, Array]:
        """Return poses (4, 4) by the index of their frame; see :meth:`follow_pose`.

        Raises:
            OptionError: If the tip is unknown or free, or no task has this reference.
            PoseError: If a pose is invalid, or there is not one for each tip.
        """
        if tip is not None or reference is not None:
            k = find_frame(self.frames, tip, reference)
            return {k: checked_pose(T_d, not self.frames[k].has_rotation).copy()}
        tips = self.frames[: len(self.robot.tips)]
        Ts = checked_poses(T_d, len(tips), [not frame.has_rotation for frame in tips])
        return {k: Ts[k].copy() for k, frame in enumerate(tips) if not frame.is_free}

    def _target(self, frame: int) -> Target | None:
        """Return the target of a followed frame, given by its index; None without one."""
        target = self._stream.target
        if isinstance(target, JOINT_TARGETS):
            return None
        return target.tips[frame].target if isinstance(target, TipTargets) else target

    def _is_finishing(self, frame: int) -> bool:
        """Return whether a frame, given by its index, finishes the motion of an ended stream."""
        target = self._stream.target
        reason = target.tips[frame].reason if isinstance(target, TipTargets) else None
        return bool(self._stream.reason if reason is None else reason)

    def _follow(self, target: Target, now: float, frame: int = 0) -> None:
        """Follow a target of a frame, given by its index."""
        self._rest = self._rest.with_target(now)
        if not self._is_single:
            current = self._stream.target
            targets = current if isinstance(current, TipTargets) else TipTargets(self.frames)
            targets.tips[frame].follow(target)
            target = targets
        if target is not self._stream.target:  # a further message of a stream is no event
            self._change(Event.TARGET, target=target)

    def _end_stream(self, target: Target | AnyJointTarget, now: float) -> None:
        """Handle a target that timed out: finish the motion to the last pose of a stream, or stop.

        After a twist or joint velocities the arm always stops; after a stream of poses it stops if
        :func:`stop_reason` gives a reason.
        """
        if isinstance(target, TipTargets):
            self._end_tip_streams(target, now)
            return
        if not isinstance(target, PoseTarget):
            self._change(Event.TIMEOUT)
            return
        T = self.robot.fk(self._tracker.limiter.q)
        reason = stop_reason(self.options, T, target.last, now - target.arrived, self._metric[1])
        if reason:
            self._change(Event.TIMEOUT, reason)
        else:
            target.finish()
            self._change(Event.FINISH, FINISHING, target)

    def _end_tip_streams(self, targets: TipTargets, now: float) -> None:
        """Handle targets of tips that timed out; stop the arm if no tip has a target."""

        def reason(T: Array, target: PoseTarget) -> str:
            age = now - target.arrived
            return stop_reason(self.options, T, target.last, age, self._metric[1])

        tracker = self._tracker
        targets.end_streams(now, tracker.local_ik.pose_at(tracker.limiter.q), reason)
        if not targets.follows:
            reasons = dict.fromkeys(tip.reason for tip in targets.tips if tip.reason != HOLDS)
            self._change(Event.TIMEOUT, "; ".join(reasons))

    def _seed(self, q: Array) -> None:
        """Set the command to joint positions q (n,), at rest, and clear the recorded commands."""
        self._tracker.seed(q)
        self._supervision.restart(q.copy())

    def _sampled(self, now: float, age: float) -> float:
        """Return the time [s] at which a target was sampled: `now` - `age`, but at most `now`.

        Raises:
            OptionError: If `now` or `age` is not finite.
            StaleTargetError: If the target is older than `target_timeout`, or its stamp is more
                than `stamp_tolerance` in the future.
        """
        now, age = checked_time("now", now), checked_time("age", age)
        if age > self.options.target_timeout:
            raise StaleTargetError(
                f"the target is {elapsed(age)} old by its stamp, more than target_timeout = "
                f"{self.options.target_timeout:g} s"
            )
        if -age > self.options.stamp_tolerance:
            raise StaleTargetError(
                f"the target's stamp is {elapsed(-age)} in the future, more than stamp_tolerance = "
                f"{self.options.stamp_tolerance:g} s"
            )
        return now - max(age, 0.0)

    def _adapt_target(self) -> None:
        """Apply the frames and options of this controller to a target taken over from another."""
        before, options = self._stream.target, self.options
        if isinstance(before, JOINT_TARGETS):
            if not isinstance(before, JointTarget):
                before.timeout = options.target_timeout
            return
        target: Target | None = before
        if before is not None and not self._is_single:
            targets = TipTargets(self.frames)
            targets.take_over(before)
            target = targets if targets.follows else None
        elif isinstance(before, TipTargets):
            target = before.tips[0].target
        if before is not None and target is None:
            self._change(Event.RESET)
        if target is None:
            return
        self._stream = self._stream._replace(target=target)
        for each in target.targets if isinstance(target, TipTargets) else (target,):
            if isinstance(each, PoseTarget):
                each.timeout, each.feed_forward = options.target_timeout, options.feed_forward
                each.bridge_time = options.bridge_time
            if isinstance(each, TwistTarget):
                each.timeout, each.lookahead = options.target_timeout, options.twist_lookahead
                each.allowed_share = self._tracker.twist_share

    def _judge(self, target: JointTarget, measured: Array | None, output: ServoOutput) -> None:
        """End a joint trajectory that is complete; stop the arm if the trajectory has failed."""
        pair, is_stopped = self._tracker.limiting_pair, self.options.scale == 0.0
        cause = NO_SPEED if is_stopped else "" if pair is None else str(pair)
        reason = target.judge(measured, output.q, cause)
        if reason:
            self.stop(f"joint trajectory aborted: {reason}")

    def _is_supervising(self) -> bool:
        """Return whether this cycle must compare the measurement with the commands.

        That is the case if there is a target, or if the arm is stopping, except after a reset.
        """
        stream = self._stream
        return stream.target is not None or (self.moves and stream.state is not ServoState.WAITING)

    def _advance(self, now: float, dt: float, waits: bool) -> ServoOutput:
        """Move the command toward the target for `dt` [s]; slow down if there is no target.

        Args:
            now: Current time [s].
            dt: Time since the last cycle [s].
            waits: Whether to slow down although there is a target, because a measurement is
                missing; the target is kept.
        """
        target, tracker = self._stream.target, self._tracker
        tracked: Tracked | None = None
        T_d: Array | None = None
        if waits and isinstance(target, TIMED_TARGETS):
            target.interrupt()
        elif isinstance(target, JOINT_TARGETS):
            if not waits:
                tracked = tracker.follow_joints(target, now, dt)
                q_d = target.reference
                T_d = None if q_d is None else tracker.local_ik.pose_at(q_d)
        elif target is not None and not waits:
            if isinstance(target, TipTargets) and target.needs_poses():
                target.hold_at(tracker.local_ik.pose_at(tracker.limiter.stopping_point()))
            T_d = target.pose(now, dt, self._tip)
            try:
                tracked = tracker.track(T_d, target, now, dt)
            except MethodError as error:  # raised before the command has moved
                self._change(Event.FAILURE, str(error))
        if target is None or tracked is None:
            tracker.brake(dt)
            state, message = self._stream.state, self._stream.message
            if waits and target is not None:
                state, message = ServoState.STALE, ServoState.STALE.message(STALL_HOLD_REASON)
            output = self._held_output(state, message)
        else:
            condition = self._condition.update(now, tracked.step, self._sigma0)
            output = self._tracking_output(T_d, tracked, condition, now)
        known = None if tracked is None else tracked.direct
        speed = max(map(abs, output.velocity.tolist())) if known is None else known.speed
        if speed > MAX_REST_SPEED:
            self._rest = self._rest.with_motion(now, target is not None)
        return output

    def _tip(self) -> Array:
        """Return the current T_base_tip (4, 4), or the poses of several followed frames.

        The poses are those at the command or at the reference.

        Each target decides which of the two it needs. The reference is the result of the last step
        of the IK method; the command follows the reference within the limits.
        """
        target, tracker = self._stream.target, self._tracker
        uses_command = target is not None and target.needs_command
        local_ik = tracker.local_ik
        return local_ik.pose_at(tracker.limiter.q if uses_command else local_ik.q)

    def _held_output(self, state: ServoState, message: str) -> ServoOutput:
        """Return the output of a cycle in which the command does not move toward a target."""
        q, nan = self.command, math.nan
        free, near = np.zeros_like(q), self._nearest
        tips = () if self._is_single else held_statuses(self.frames, state, message)
        return ServoOutput(
            q, self.velocity, state, message, None, nan, nan, nan, nan, free, nan, near, tips
        )

    def _tracking_output(
        self, T_d: Array | None, tracked: Tracked, condition: ServoState, now: float
    ) -> ServoOutput:
        """Return the output of a cycle in which the command moves toward a target.

        Args:
            T_d: (4, 4) T_base_tip of the target, or (s, 4, 4) of several frames; None for joint
                velocities, which have no pose.
            tracked: Result of the tracker for this cycle.
            condition: JOINT_BOUND or a singularity state if a joint bound or singularity limits
                local motion; otherwise FOLLOWING.
            now: Current time [s].
        """
        tracker, step, target = self._tracker, tracked.step, self._stream.target
        limiter, local_ik, guard = tracker.limiter, tracker.local_ik, tracker.guard
        q, velocity, errors = limiter.q.copy(), limiter.v.copy(), None
        position = rotation = math.nan
        if isinstance(target, TipTargets) and T_d is not None:
            errors = local_ik.frame_errors(q, T_d)
            position, rotation = errors.max(axis=0).tolist()
        elif T_d is not None:
            direct = tracked.direct
            position, rotation = direct.errors if direct else self._errors(step, q, T_d)
        state = condition if tracked.state is ServoState.FOLLOWING else tracked.state
        if local_ik.is_reached(position, rotation):
            state = ServoState.REACHED
        reason = tracked.reason if state is tracked.state else ""
        pair = None if guard is None else tracker.limiting_pair
        if pair is not None and state in STATES_LIMITED_BY_PAIR:
            state, reason = ServoState.NEAR_COLLISION, str(pair)
            if not max(map(abs, velocity.tolist())) > MAX_REST_SPEED:
                state = ServoState.BLOCKED
        if state is ServoState.NEAR_SINGULARITY:
            reason = local_ik.singularity_note
        least, greatest = step.least_singular_value, step.greatest_singular_value
        message, note = state.message(reason), self._stream.reason
        if isinstance(target, TrajectoryTarget):
            note = note or target.note
        tips: tuple[TipStatus, ...] = ()
        if isinstance(target, TipTargets) and errors is not None:
            tips = target.statuses(now, state, errors, local_ik.is_reached)
        return ServoOutput(
            q,
            velocity,
            state,
            f"{message}; {note}" if note else message,
            None if T_d is None else T_d.copy(),
            position,
            rotation,
            least,
            math.inf if least == 0.0 else greatest / least,
            step.limit_activation,
            math.nan if target is None else now - target.sampled,
            None if guard is None else guard.nearest,
            tips,
        )

    @property
    def _nearest(self) -> NearPair | None:
        return None if self._tracker.guard is None else self._tracker.guard.nearest

    @property
    def tight_pairs(self) -> tuple[TightPair, ...]:
        """Pairs of links that are closer than `min_distance` in many random configurations."""
        return () if self._tracker.guard is None else self._tracker.guard.tight_pairs

    def _errors(self, step: ServoStep, q: Array, T_d: Array) -> tuple[float, float]:
        """Return the position error [m] and the rotation error [rad] of the command.

        Args:
            step: Last step of local motion; its errors are valid only if it led to `q`.
            q: (n,) command [rad or m].
            T_d: (4, 4) T_base_tip of the target.
        """
        if not math.isnan(step.position_error) and q.tolist() == step.q.tolist():
            return step.position_error, step.rotation_error
        return self._tracker.local_ik.errors_at(q, T_d)
