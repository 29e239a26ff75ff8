"""The controller: targets and measurements in, at any time; a command and a state each cycle.

Time is an argument everywhere, in seconds on a clock that only goes forward.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import HeldError, StaleTargetError
from dls_ik.model.joint import checked_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.servo.build import build_tracker, split_options
from dls_ik.servo.limiter import StopPath
from dls_ik.servo.options import joint_limits
from dls_ik.servo.output import ServoOutput
from dls_ik.servo.report import ConditionMonitor, Hold, held_output, tracking_output
from dls_ik.servo.state import ServoState
from dls_ik.servo.supervision import Supervision
from dls_ik.servo.targets import PoseTarget, Target, TrajectoryTarget, TwistTarget
from dls_ik.servo.targets.checks import (
    checked_rotation,
    checked_trajectory,
    checked_twist,
)
from dls_ik.servo.targets.twist import turned
from dls_ik.servo.times import checked_duration, checked_period, checked_time
from dls_ik.solver.poses import checked_pose

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.servo.options import ControllerKeywords

AT_REST = 0.5  # [s] without a new target and without motion
HELD_STILL = 0.01  # [rad or m] an arm that moved less since it came to rest is held by its command
STANDSTILL = 1e-3  # [rad/s or m/s]
LONGEST_WAIT = 60.0  # [s] for the beginning of a trajectory
NO_MEASUREMENT = "waiting for joint states, to know where the arm is"
LATCHED = (ServoState.PAUSED, ServoState.FAULT)


class Controller:
    """Follows one tip's poses, twists and trajectories within all limits, or stops and says why.

    The command goes on from the command before, because a measurement lags. It is taken from the
    measurement until the first target, and again when a target comes after a rest.

    Args:
        robot: a chain with one tip.
        method: a name from :func:`dls_ik.method_names`; default: ``ctp+sd+svf``, or ``svf+sd``
            where no joint has limits.
        executor: in which the solver is asked for solutions that local motion does not find; None:
            in the cycle, which takes some 20 ms then, and once for a target. What the first answer
            needs, some tenths of a second, is then made here, not in a cycle.
        options: fields of :class:`dls_ik.servo.ControllerOptions`, and those of the method, as for
            :class:`dls_ik.IkSolver`.

    Raises:
        MethodError, OptionError: as :class:`dls_ik.IkSolver`; more than one tip.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str | None = None,
        executor: Executor | None = None,
        **options: Unpack[ControllerKeywords],
    ) -> None:
        self.robot = robot
        self.options, of_method = split_options(robot, options)
        self._tracker = build_tracker(robot, method, self.options, of_method, executor)
        self._supervision = Supervision(robot, self.options)
        self.method = self._tracker.servo.method
        chosen = self._tracker.servo.options
        self._metric = chosen.rotation_weight, chosen.length_unit
        self._target: Target | None = None
        self._hold = Hold(ServoState.WAITING)
        self._condition = ConditionMonitor()
        self._last_event = -math.inf  # a target, or motion
        self._last_motion = -math.inf
        self._start_again = False  # from the measurement, if there is one
        self._came_to_rest: Array | None = None  # (n,) where it was measured then
        self._cycled = math.nan  # when the last cycle was
        self._lapsed: float | None = None  # when the last cycle before a lapse was
        self.started = False  # there was a target that was not refused

    def __repr__(self) -> str:
        """Return the robot, the method and what the controller does."""
        what = self._hold.state.name if self._target is None else type(self._target).__name__
        return f"Controller({self.robot.name}, {self.method}, {what})"

    @property
    def acceleration(self) -> Array:
        """Limits (n,) [rad/s^2 or m/s^2], infinite where there is none."""
        return joint_limits("acceleration", self.options.acceleration, self.robot)

    @property
    def command(self) -> Array:
        """The joint values of the last cycle (n,) [rad or m]; a copy."""
        return self._tracker.limiter.q.copy()

    @property
    def moves(self) -> bool:
        """Whether the command does not stand still."""
        return bool(self._tracker.limiter.v.any())

    @property
    def velocity(self) -> Array:
        """The velocity of the command in the last cycle (n,) [rad/s or m/s]; a copy."""
        return self._tracker.limiter.v.copy()

    @property
    def hold_reason(self) -> str:
        """Why no target is taken until there is a reset; empty where there is no reason."""
        return self._hold.words if self._hold.state in LATCHED else ""

    def seed(self, q: ArrayLike) -> None:
        """Let the command be joint values (n,) [rad or m], inside the limits or not, at rest.

        Raises:
            JointValueError: the wrong length, or values that are not finite.
        """
        self._seed(checked_configuration(q, self.robot.joint_names))

    def take_over(self, other: Controller) -> None:
        """Go on where another controller of the same joints is, with its target and velocity."""
        self._tracker.take_over(other._tracker)
        self._supervision.take_over(other._supervision)
        self._target, self._hold = other._target, other._hold
        self._tune(self._target)
        self._last_event, self._start_again = other._last_event, other._start_again
        self._last_motion, self._came_to_rest = other._last_motion, other._came_to_rest
        self.started = other.started

    def hold_like(self, other: Controller) -> None:
        """Be paused, or in a fault, if another controller is, of other joints as well."""
        if other._hold.state in LATCHED:
            self._hold = other._hold

    def stop_path(self, period: float) -> StopPath:
        """The stop that follows the command of the last cycle if no other command does.

        Args:
            period: of the cycles [s].
        """
        return self._tracker.limiter.stop_path(period)

    def coast(self, elapsed: float, period: float) -> None:
        """Go on along the stop path, on which the arm has been for `elapsed` [s] by itself."""
        self._tracker.limiter.coast(elapsed, period)

    def lapse(self, q: Array) -> None:
        """Go on after a time without commands, at rest at joint values (n,), or where measured.

        A pose that stands by itself stays in force, and a trajectory goes on so much later.
        """
        self._seed(q)
        self._start_again, self._came_to_rest = True, None
        self._lapsed = self._cycled if self._lapsed is None else self._lapsed

    def follow_pose(self, T_d: ArrayLike, now: float, age: float = 0.0) -> None:
        """Follow ``T_base_tip`` (4, 4), `age` [s] old, which may be the next of a stream.

        Raises:
            PoseError: not a pose. This and all other errors leave the arm to what it does.
            OptionError: a time that is not finite.
            StaleTargetError: too old, or from the future.
            HeldError: paused, or a fault.
        """
        T, sampled = checked_pose(T_d).copy(), self._sampled(now, age)
        target = self._target
        if not isinstance(target, PoseTarget):
            target = PoseTarget(
                self.options.target_timeout, self.options.feed_forward, self._metric[1]
            )
        target.take(T, sampled, now)
        self._begin(target, now)

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
        twist, sampled = checked_twist(V), self._sampled(now, age)
        if R is not None:
            twist = turned(checked_rotation(R), twist)
        target = self._target
        if not isinstance(target, TwistTarget):
            target = TwistTarget(
                self.options.target_timeout, self.options.twist_lookahead, *self._metric
            )
        target.take(twist, R is None, sampled, now)
        self._begin(target, now)

    def follow_trajectory(self, Ts: ArrayLike, period: float, now: float, age: float = 0.0) -> None:
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
        begin = now + max(-age, 0.0)
        self._begin(TrajectoryTarget(poses, interval, begin, self._metric[1]), now)

    def refuse(self, reason: str) -> None:
        """Stop and hold, because a target is not valid."""
        if self._hold.state not in LATCHED:
            self._stop(Hold(ServoState.REFUSED, reason))

    def pause(self) -> None:
        """Stop, and take no targets until :meth:`resume`. A fault stays one."""
        if self._hold.state is not ServoState.FAULT:
            self._stop(Hold(ServoState.PAUSED))

    def resume(self) -> None:
        """Take targets again, the next one from where the arm is measured to be."""
        if self._hold.state is ServoState.PAUSED:
            self._wait()

    def reset(self) -> None:
        """Stop, forget target, pause and fault, and wait for a target as at the start."""
        self._wait()
        self._came_to_rest = None

    def lag(self) -> float:
        """How late the arm follows its commands by its measurements [s]; NaN: not known yet.

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
        """Advance by `dt` [s].

        Args:
            measured: (n,) where the arm is; None: not known.
            age: of the measurement [s], or (n,) of each joint's.

        Raises:
            OptionError: for a dt that is not positive and finite, or such a `now`.
            JointValueError: for a measurement of the wrong length, or that is not finite.
        """
        now, elapsed = checked_time("now", now), checked_duration(dt)
        self._make_up(now)
        if measured is not None:
            measured = checked_configuration(measured, self.robot.joint_names)
            self._take_measurement(measured, now)
            self._supervision.measured(now, measured, age)
        waits = self._waits_for_measurement()
        if self.options.supervised and self._is_engaged() and not waits:
            reason = self._supervision.fault(now, measured is not None, self.command)
            if reason:
                self._stop(Hold(ServoState.FAULT, reason))
        if self._target is not None and self._target.is_stale(now):
            self._stop(Hold(ServoState.STALE))
        if self._target is not None and waits:
            return held_output(self._tracker, self._hold)._replace(
                state=ServoState.WAITING, words=NO_MEASUREMENT
            )
        output = self._advance(now, elapsed)
        self._supervision.commanded(now, output.q.copy())
        return output

    def _seed(self, q: Array) -> None:
        """Let the command be joint values (n,) that it does not go on to from those before."""
        self._tracker.seed(q)
        self._supervision.restart(start=q.copy())

    def _make_up(self, now: float) -> None:
        """Let a trajectory stand still as long as the cycles did."""
        if self._lapsed is not None and isinstance(self._target, TrajectoryTarget):
            self._target.postpone(now - self._lapsed)
        self._cycled, self._lapsed = now, None

    def _advance(self, now: float, dt: float) -> ServoOutput:
        target, tracker = self._target, self._tracker
        if target is None:
            tracker.brake(dt)
            output = held_output(tracker, self._hold)
        else:
            T_d = target.pose(now, dt, lambda: self._tip(target))
            phase, step = tracker.track(T_d, target, now, dt)
            age = now - target.sampled
            condition = self._condition.update(now, step, tracker.servo.options.sigma0)
            output = tracking_output(tracker, phase, step, T_d, age, condition)
        if float(np.abs(output.velocity).max()) > STANDSTILL:
            self._last_event = self._last_motion = now
            self._start_again &= target is None  # the measurement now lags behind
        return output

    def _tip(self, target: Target) -> Array:
        tracker = self._tracker
        return self.robot.fk(tracker.limiter.q if target.waits_for_command else tracker.servo.q)

    def _tune(self, target: Target | None) -> None:
        """Give a target that was begun with other options those of now."""
        if isinstance(target, PoseTarget):
            target.feed_forward = self.options.feed_forward
        if isinstance(target, TwistTarget):
            target.lookahead = self.options.twist_lookahead
        if isinstance(target, (PoseTarget, TwistTarget)):
            target.timeout = self.options.target_timeout

    def _is_engaged(self) -> bool:
        """Whether measurements are watched: not where it only comes to rest after a reset."""
        return self._target is not None or (
            self.moves and self._hold.state is not ServoState.WAITING
        )

    def _waits_for_measurement(self) -> bool:
        """Whether the arm may not start before it is known where it is."""
        return self.options.supervised and self._start_again and not self.moves

    def _take_measurement(self, measured: Array, now: float) -> None:
        """Be where the arm is, before the first target and where a target ended a rest.

        An arm that was told to move just now may still be on its way. One that has not moved since
        it came to rest is held there by its command, at whatever distance its drives leave: then
        the command stays.
        """
        rest = now - self._last_motion
        if self.moves or rest <= 0.5 * AT_REST:
            self._came_to_rest = None
        elif rest <= AT_REST:
            self._came_to_rest = None if self._start_again else measured.copy()
        else:
            waits = self._target is None and not self.started
            if (waits or self._start_again) and not self._is_held(measured):
                self._seed(measured)
                self._came_to_rest = None
            self._start_again = False

    def _is_held(self, measured: Array) -> bool:
        """Whether the arm is where it came to rest on its last command."""
        before = self._came_to_rest
        return before is not None and float(np.abs(measured - before).max()) <= HELD_STILL

    def _begin(self, target: Target, now: float) -> None:
        if self._hold.state in LATCHED:
            raise HeldError(self._hold.words)
        if now - self._last_event > AT_REST:
            self._start_again = True
        self._target, self._last_event, self.started = target, now, True
        self._lapsed = None

    def _sampled(self, now: float, age: float) -> float:
        """When a target of that age was taken [s]; it is not from the future."""
        now, age = checked_time("now", now), checked_time("age", age)
        if age > self.options.target_timeout:
            raise StaleTargetError(
                f"the target is {age:.3g} s old by its stamp, more than target_timeout = "
                f"{self.options.target_timeout:g} s"
            )
        if -age > self.options.stamp_tolerance:
            raise StaleTargetError(
                f"the target's stamp is {-age:.3g} s in the future, more than stamp_tolerance = "
                f"{self.options.stamp_tolerance:g} s: do the clocks agree?"
            )
        return now - max(age, 0.0)

    def _stop(self, hold: Hold) -> None:
        self._target, self._hold = None, hold

    def _wait(self) -> None:
        self._stop(Hold(ServoState.WAITING))
        self.started, self._start_again = False, True
