"""The controller: targets and measurements in, at any time; a command and a state each cycle.

Time is an argument everywhere, in seconds on a clock that only goes forward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.errors import HeldError, MethodError, StaleTargetError
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.servo.guard import TightPair
from dls_ik.servo.knots import Knots, trajectory_knots
from dls_ik.servo.local_ik import ServoStep
from dls_ik.servo.motion import StopPath, at_start_of
from dls_ik.servo.options import split_options
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.state import (
    ConditionMonitor,
    Event,
    ServoOutput,
    ServoState,
    StreamState,
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
from dls_ik.servo.tracker import Tracked, build_tracker
from dls_ik.servo.workspace import Bound
from dls_ik.solver.poses import checked_pose
from dls_ik.text import elapsed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.servo.options import ControllerKeywords

STANDSTILL = 1e-3  # [rad/s or m/s]
LONGEST_WAIT = 60.0  # [s] for the beginning of a trajectory
# States of a cycle in which a pair that is near is the reason of more.
HINDERED = frozenset(
    {
        ServoState.FOLLOWING,
        ServoState.NEAR_SINGULARITY,
        ServoState.LEAVING_SINGULARITY,
        ServoState.JOINT_BOUND,
        ServoState.STALLED,
    }
)
NO_MEASUREMENT = "waiting for joint states, to know where the arm is"
AFTER_STALL = "the loop stalled; waiting for joint states"


class Controller:
    """Follows one tip's poses, twists and trajectories within all limits, or stops and says why.

    The command continues from the command before, because a measurement lags. It is taken from the
    measurement until the first target, and again when a target comes after a rest.

    Args:
        robot: a chain with one tip.
        method: a name from :func:`dls_ik.method_names`; default: ``ctp+sd+svf``, or ``svf+sd``
            where no joint has limits.
        executor: in which the solver is asked for solutions that local motion does not find; None:
            in the cycle, which takes some 20 ms then, and once for a target. Tables for the first
            answer, some tenths of a second, are then made here, not in a cycle.
        scene: of this robot, as it stands at each cycle: no command, and no stop behind one, brings
            a pair of links or objects nearer than `min_distance`. None: nothing is kept apart.
        workspace: bounds that the tip, or links that they name, may not leave.
        options: fields of :class:`dls_ik.servo.ControllerOptions`, and those of the method, as for
            :class:`dls_ik.IkSolver`.

    Raises:
        MethodError, OptionError: as :class:`dls_ik.IkSolver`; more than one tip; distances that
            the links of the robot never have.
        SceneError: a scene of another robot, or a workspace of unknown links.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str | None = None,
        executor: Executor | None = None,
        scene: PlanningScene | None = None,
        workspace: Sequence[Bound] = (),
        **options: Unpack[ControllerKeywords],
    ) -> None:
        self.robot = robot
        self.options, method_options = split_options(options, robot.joint_names)
        self._tracker = build_tracker(
            robot, method, self.options, method_options, executor, scene, workspace
        )
        self._supervision = Supervision(robot, self.options)
        self.method = self._tracker.local_ik.method
        chosen = self._tracker.local_ik.options
        self._sigma0 = chosen.sigma0
        self._metric = chosen.rotation_weight, chosen.length_unit
        self._stream = StreamState()
        self._condition = ConditionMonitor()
        self._rest = self._rest_before = Rest()  # now, and at the start of the last cycle
        self._knots: Knots | None = None  # of the last trajectory

    def __repr__(self) -> str:
        """Return the robot, the method and what the controller does."""
        target, state = self._stream.target, self._stream.state
        what = state.name if target is None else type(target).__name__
        return f"Controller({self.robot.name}, {self.method}, {what})"

    @property
    def command(self) -> Array:
        """Joint values of the last cycle (n,) [rad or m]; a copy."""
        return self._tracker.limiter.q.copy()

    @property
    def velocity(self) -> Array:
        """Velocity of the command in the last cycle (n,) [rad/s or m/s]; a copy."""
        return self._tracker.limiter.v.copy()

    @property
    def moves(self) -> bool:
        """Return whether the command does not stand still."""
        return any(self._tracker.limiter.v.tolist())

    @property
    def starts_anew(self) -> bool:
        """Return whether the command, at rest, is to start where the arm is measured next."""
        return self._rest.starts_anew and not self.moves

    @property
    def started(self) -> bool:
        """Return whether a target was taken since the start, or since the last reset or resume."""
        return self._stream.has_started

    @property
    def hold_reason(self) -> str:
        """Why no target is taken until there is a reset; empty where targets are taken."""
        return self._stream.message if self._stream.is_latched else ""

    def seed(self, q: JointValues) -> None:
        """Let the command be joint values (n,) [rad or m], inside the limits or not, at rest.

        Raises:
            JointValueError: the wrong length, or values that are not finite.
        """
        self._seed(self.robot.validated_one(q))

    def take_over(self, other: Controller) -> None:
        """Continue from another controller of the same joints, with its target and velocity."""
        self._tracker.take_over(other._tracker)
        self._supervision.take_over(other._supervision)
        self._stream = other._stream
        self._adapt_target()
        self._rest = other._rest
        self._knots = other._knots

    def hold_like(self, other: Controller) -> None:
        """Be paused, or in a fault, if another controller is, of other joints as well."""
        if other._stream.is_latched:
            state, reason = other._stream.state, other._stream.reason
            self._stream = self._stream._replace(state=state, reason=reason, target=None)

    def stop_path(self, period: float) -> StopPath:
        """Return the stop that follows the command of the last cycle if no other command does.

        Args:
            period: of the cycles [s].
        """
        return self._tracker.limiter.stop_path(period)

    def trajectory(self, period: float, count: int = 0) -> Knots:
        """Return the knots of the path to the last command and of the stop behind it.

        Cubics between the knots stay within the limits of velocity and acceleration. Times count
        from the last cycle on; the command is due a period later. Call this once a cycle.

        Args:
            period: of the cycles [s].
            count: Number of knots wanted; there are more only if the path needs them. 1: the
                command alone.
        """
        limiter = self._tracker.limiter
        given = limiter.motion(), limiter.stop_path(period), self._tracker.acceleration
        self._knots = trajectory_knots(*given, period, count, self._knots)
        return self._knots

    def go_back(self, stop: StopPath) -> None:
        """Continue from the beginning of the stop of an earlier cycle, the last that went out."""
        self._tracker.limiter.take_over(at_start_of(stop))

    def resume_at(self, elapsed: float, period: float) -> None:
        """Continue on the stop path, on which the arm has moved for `elapsed` [s] by itself."""
        self._tracker.limiter.resume_at(elapsed, period)

    def stand_still(self) -> None:
        """Continue at rest at the command, at which the arm stopped by itself."""
        self._tracker.limiter.reset(self._tracker.limiter.q)

    def stand_at(self, q: Array) -> None:
        """Roll back the last cycle, and continue at rest at an earlier command (n,).

        The arm stopped there by itself, as it received no further command.
        """
        self._tracker.seed(q)
        self._rest = self._rest_before
        if isinstance(self._stream.target, TrajectoryTarget):
            self._stream.target.interrupt()

    def resume_after_gap(self, q: Array) -> None:
        """Continue after a time without commands, at rest at joint values (n,), or where measured.

        A pose that stands by itself stays in force, and a trajectory continues so much later.
        """
        self._seed(q)
        self._rest = self._rest.restarted()
        if isinstance(self._stream.target, TrajectoryTarget):
            self._stream.target.interrupt()

    def expect_measurements(self, since: float) -> None:
        """Count the silence of the driver from a time [s] on, the end of a stall of the loop.

        Until then, and for `measurement_timeout` after it, missing measurements are no fault. The
        arm stops and keeps its target until one arrives.
        """
        self._supervision.expect_measurements(since)

    def follow_pose(self, T_d: PoseLike, now: float, age: float = 0.0) -> None:
        """Follow ``T_base_tip`` (4, 4), `age` [s] old, which may be the next of a stream.

        Raises:
            PoseError: not a pose. This and all other errors leave the arm to what it does.
            OptionError: a time that is not finite.
            StaleTargetError: too old, or from the future.
            HeldError: paused, or a fault.
        """
        T, sampled = checked_pose(T_d).copy(), self._sampled(now, age)
        self._refuse_if_latched()
        target, options = self._stream.target, self.options
        if not isinstance(target, PoseTarget) or self._stream.reason:
            target = PoseTarget(options.target_timeout, options.feed_forward, self._metric[1])
        target.take(T, sampled, now)
        self._follow(target, now)

    def follow_twist(
        self, V: ArrayLike, now: float, R: ArrayLike | None = None, age: float = 0.0
    ) -> None:
        """Follow a twist of the tip (6,) [m/s, rad/s], linear first, until the next one.

        Args:
            R: (3, 3) axes that it is given along, in the base frame; None: those of the tip, as it
                turns.

        Raises:
            PoseError: values that are not finite; else as :meth:`follow_pose`.
        """
        twist, sampled = checked_twist(V, R), self._sampled(now, age)
        self._refuse_if_latched()
        target, options = self._stream.target, self.options
        if not isinstance(target, TwistTarget):
            target = TwistTarget(options.target_timeout, options.twist_lookahead, *self._metric)
            target.most = self._tracker.most_of_twist
        target.take(twist, R is None, sampled, now)
        self._follow(target, now)

    def follow_trajectory(self, Ts: PoseLike, period: float, now: float, age: float = 0.0) -> None:
        """Go to the first of the poses (m, 4, 4), then through them, one every `period` [s].

        Args:
            age: [s]; below zero for one that is to begin later, by a minute at most.

        Raises:
            PoseError: no poses; OptionError: for the period; else as :meth:`follow_pose`.
        """
        poses, interval = checked_trajectory(Ts), checked_period(period)
        now, age = checked_time("now", now), checked_time("age", age)
        if not age < -self.options.stamp_tolerance or age < -LONGEST_WAIT:
            self._sampled(now, age)
        self._refuse_if_latched()
        begin = now + max(-age, 0.0)
        self._follow(TrajectoryTarget(poses, interval, begin, self._metric[1]), now)

    def refuse(self, reason: str) -> None:
        """Stop and hold, because a target is not valid."""
        self._change(Event.REFUSAL, reason)

    def pause(self, reason: str = "") -> None:
        """Stop, and take no targets until :meth:`resume`. A fault stays one.

        Args:
            reason: Why the arm is paused; a part of the messages.
        """
        self._change(Event.PAUSE, reason)

    def resume(self) -> None:
        """Take targets again, the next one from where the arm is measured to be."""
        if self._stream.state is ServoState.PAUSED:
            self._change(Event.RESUME)
            self._rest = self._rest._replace(starts_anew=True)

    def reset(self) -> None:
        """Stop, forget target, pause and fault, and wait for a target as at the start."""
        self._change(Event.RESET)
        self._rest = self._rest.restarted()

    def lag(self) -> float:
        """Return how late the arm follows its commands, as measured [s]; NaN: not known yet.

        Takes some milliseconds; any thread may ask.
        """
        return self._supervision.lag()

    def cycle(
        self,
        now: float,
        dt: float,
        measured: Array | None = None,
        age: float | Array = 0.0,
    ) -> ServoOutput:
        """Advance by `dt` [s]. A plug-in that fails is a fault: the arm stops, until a reset.

        Args:
            measured: (n,) measured joint values; None: not known.
            age: of the measurement [s], or (n,) of each joint's.

        Raises:
            OptionError: for a dt that is not positive and finite, or such a `now`.
            JointValueError: for a measurement of the wrong length, or that is not finite.
        """
        now, elapsed = checked_time("now", now), checked_duration(dt)
        self._rest_before = self._rest
        guard = self._tracker.guard
        if guard is not None:
            guard.look()
            if guard.collision is not None:
                self._change(Event.FAILURE, f"a contact cannot be avoided: {guard.collision}")
        if measured is not None:
            measured = self.robot.validated_one(measured)
            waits = self._stream.target is None and not self.started
            self._rest, is_start = self._rest.with_measurement(measured, now, self.moves, waits)
            if is_start:
                self._seed(measured)
            self._supervision.record_measurement(now, measured, age)
        is_blind = self.options.supervised and self._rest.starts_anew and not self.moves
        if self.options.supervised and self._is_engaged() and not is_blind:
            fault = self._supervision.fault(now, measured is not None, self._tracker.limiter.q)
            if fault:
                self._change(Event.FAILURE, fault)
        target = self._stream.target
        if target is not None and target.has_timed_out(now):
            self._end_stream(target, now)
        if self._stream.target is not None and is_blind:
            return self._held_output(ServoState.WAITING, NO_MEASUREMENT)
        waits = self.options.supervised and measured is None
        waits = waits and self._supervision.is_silence_excused(now)
        output = self._advance(now, elapsed, waits)
        self._supervision.record_command(now, output.q.copy())
        return output

    def _change(self, event: Event, reason: str = "", target: Target | None = None) -> None:
        self._stream = transition(self._stream, event, reason, target)

    def _refuse_if_latched(self) -> None:
        if self._stream.is_latched:
            raise HeldError(self._stream.message)

    def _follow(self, target: Target, now: float) -> None:
        self._rest = self._rest.with_target(now)
        if target is not self._stream.target:  # else it is followed already
            self._change(Event.TARGET, target=target)

    def _end_stream(self, target: Target, now: float) -> None:
        """Finish the motion to the last pose of a stream that has ended, or stop."""
        if not isinstance(target, PoseTarget):
            self._change(Event.TIMEOUT)
            return
        T = self.robot.fk(self._tracker.limiter.q)
        silence = now - target.arrived
        reason = stop_reason(self.options, T, target.last, silence, self._metric[1])
        if reason:
            self._change(Event.TIMEOUT, reason)
        else:
            target.finish()
            self._change(Event.FINISH, FINISHING, target)

    def _seed(self, q: Array) -> None:
        """Let the command be joint values (n,), not as a motion from those before."""
        self._tracker.seed(q)
        self._supervision.restart(q.copy())

    def _sampled(self, now: float, age: float) -> float:
        """Return when a target of that age was sampled [s]; not in the future."""
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
        """Give a target that was begun with other options those of this controller."""
        target, options = self._stream.target, self.options
        if isinstance(target, PoseTarget):
            target.timeout, target.feed_forward = options.target_timeout, options.feed_forward
        if isinstance(target, TwistTarget):
            target.timeout, target.lookahead = options.target_timeout, options.twist_lookahead
            target.most = self._tracker.most_of_twist

    def _is_engaged(self) -> bool:
        """Return whether measurements are supervised; not while the arm stops after a reset."""
        stream = self._stream
        return stream.target is not None or (self.moves and stream.state is not ServoState.WAITING)

    def _advance(self, now: float, dt: float, waits: bool) -> ServoOutput:
        """Advance by `dt` [s] toward the target, or stop.

        Args:
            waits: The arm stops until it is measured again, and then continues to its target.
        """
        target, tracker = self._stream.target, self._tracker
        tracked = None
        if waits and isinstance(target, TrajectoryTarget):
            target.interrupt()
        elif target is not None and not waits:
            T_d = target.pose(now, dt, self._tip)
            try:
                tracked = tracker.track(T_d, target, now, dt)
            except MethodError as error:  # of a plug-in, before anything has moved
                self._change(Event.FAILURE, str(error))
        if target is None or tracked is None:
            tracker.brake(dt)
            state, message = self._stream.state, self._stream.message
            if waits and target is not None:
                state, message = ServoState.STALE, ServoState.STALE.message(AFTER_STALL)
            output = self._held_output(state, message)
        else:
            condition = self._condition.update(now, tracked.step, self._sigma0)
            output = self._tracking_output(T_d, tracked, condition, now - target.sampled)
        if max(map(abs, output.velocity.tolist())) > STANDSTILL:
            self._rest = self._rest.with_motion(now, target is not None)
        return output

    def _tip(self) -> Array:
        """Return the pose (4, 4) of the tip that a target asks for."""
        target, tracker = self._stream.target, self._tracker
        of_command = target is not None and target.needs_command
        return self.robot.fk(tracker.limiter.q if of_command else tracker.local_ik.q)

    def _held_output(self, state: ServoState, message: str) -> ServoOutput:
        """Return the output of a cycle without a target."""
        q, nan = self.command, math.nan
        free, near = np.zeros_like(q), self._nearest
        return ServoOutput(
            q, self.velocity, state, message, None, nan, nan, nan, nan, free, nan, near
        )

    def _tracking_output(
        self, T_d: Array, tracked: Tracked, condition: ServoState, age: float
    ) -> ServoOutput:
        """Return the output of a cycle toward a pose (4, 4) that is `age` [s] old.

        Args:
            condition: the obstacle to local motion, or FOLLOWING.
        """
        q, step = self.command, tracked.step
        position, rotation = self._errors(step, q, T_d)
        state = condition if tracked.state is ServoState.FOLLOWING else tracked.state
        if self._tracker.local_ik.is_reached(position, rotation):
            state = ServoState.REACHED
        reason = tracked.reason if state is tracked.state else ""
        hindrance = self._tracker.hindrance
        if state in HINDERED and hindrance is not None:
            state, reason = ServoState.NEAR_COLLISION, str(hindrance)
            if not max(map(abs, self._tracker.limiter.v.tolist())) > STANDSTILL:
                state = ServoState.BLOCKED
        if state is ServoState.NEAR_SINGULARITY:
            reason = self._tracker.local_ik.singularity_note
        least, greatest = step.least_singular_value, step.greatest_singular_value
        return ServoOutput(
            q,
            self.velocity,
            state,
            "; ".join(filter(None, (state.message(reason), self._stream.reason))),
            T_d.copy(),
            position,
            rotation,
            least,
            math.inf if least == 0.0 else greatest / least,
            step.limit_activation,
            age,
            self._nearest,
        )

    @property
    def _nearest(self) -> NearPair | None:
        return None if self._tracker.guard is None else self._tracker.guard.nearest

    @property
    def tight_pairs(self) -> tuple[TightPair, ...]:
        """Pairs of links that `min_distance` stops in many random configurations."""
        return () if self._tracker.guard is None else self._tracker.guard.tight_pairs

    def _errors(self, step: ServoStep, q: Array, T_d: Array) -> tuple[float, float]:
        """Return errors of the command (n,), which may be behind the reference of the step."""
        if not math.isnan(step.position_error) and q.tolist() == step.q.tolist():
            return step.position_error, step.rotation_error
        left = difference(self.robot.fk(q), T_d)
        return float(np.linalg.norm(left[:3])), float(np.linalg.norm(left[3:]))
