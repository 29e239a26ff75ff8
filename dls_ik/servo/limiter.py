# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Limiters: they move a command toward a reference within joint limits, and plan its stop.

A command is the joint positions for the arm; a reference is the joint positions that the command
should reach. A stop is a motion that starts at the command, ends at rest and keeps all limits; its
path is called the stop path.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dls_ik import compat
from dls_ik.core.boxes import Boxed, boxed
from dls_ik.core.limiter import (
    POSITION_ROUNDING,
    CommandLimits,
    advance,
    brake,
    even_stop,
    stop_after_cycle,
    stop_phases,
    stopping_point,
)
from dls_ik.core.pursuit import RESTING, TOO_FAST, PursuitState
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.motion import CyclePath, Handover, Motion, RuckigPath, StopPath, blended_path
from dls_ik.servo.pursuit import Pursuit

LONGEST_STOP = 600.0  # [s] longest duration of a stop
FAST = 1e6  # [rad/s, rad/s^2, ...] replaces infinite limits, which Ruckig rejects
HARDEST = 1e4  # largest acceleration of a stop before a close position limit, in units of the limit
BISECTIONS = 40  # bisections to find the softest stop that keeps the position limits
_stop_phases = compat.EntryPoint(stop_phases)
_stop_after_cycle = compat.EntryPoint(stop_after_cycle)
UNKNOWN_PERIOD = 0.01  # [s] period assumed for a stop that is planned outside a cycle


class AccelerationLimiter:
    """Limits position, velocity and acceleration of a command that follows a reference.

    The acceleration is constant during a cycle. Positions and velocities at the ends of cycles
    therefore describe the motion completely. If all acceleration limits are infinite, the velocity
    is constant during a cycle instead.

    Args:
        robot: Robot, with its position and velocity limits.
        acceleration: (n,) limits [rad/s^2 or m/s^2]; infinite without a limit.
        scale: Share of the velocity and acceleration limits that motion uses, 0 to 1; stops use
            the full limits. A command that exceeds the scaled limits, for example after the scale
            was reduced, slows down with the full acceleration limits.

    Attributes:
        q: (n,) command [rad or m]; read-only, and replaced in each cycle.
        v: (n,) mean velocity of the command in the last cycle [rad/s or m/s].
        rate: (n,) velocity of the command at the end of the last cycle [rad/s or m/s].
        path: Path of the joints during the last cycle; None: no cycle yet.
    """

    def __init__(self, robot: RobotModel, acceleration: Array, scale: float = 1.0) -> None:
        self._chain = robot.chain
        self._is_smooth = bool(np.isfinite(acceleration).any())
        self._acceleration = np.minimum(acceleration, FAST) if self._is_smooth else acceleration
        # A scale of 0 stops the command within the full limits.
        share = scale if scale > 0.0 else 1.0
        self._scale, self._used = scale, share * self._acceleration
        self._slow_velocity = share * robot.velocity
        self._limits = boxed_limits(robot, robot.velocity, self._acceleration)
        self._slow_limits = command_limits(robot, self._slow_velocity, self._used)
        self._slow = boxed(self._slow_limits)
        self._advance, self._brake = compat.EntryPoint(advance), compat.EntryPoint(brake)
        self._stopping_point = compat.EntryPoint(stopping_point)
        self._even_stop = compat.EntryPoint(even_stop)
        self._pursuit = Pursuit(self._slow, share * acceleration)
        self._no_jerk = np.zeros((1, robot.n))
        self.reset(np.zeros(robot.n))

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Set the command to `q` (n,) with velocity `v` (n,); None: at rest."""
        self.q = q.copy()
        self.v = self.rate = np.zeros_like(q) if v is None else v.copy()
        self._stop: StopPath | None = None  # stop that the command follows, if any
        self.path: CyclePath | None = None
        self._pursuit.reset(self.v)

    def hand_over(self) -> Handover:
        """Return the complete state of motion, which another limiter can take over."""
        motion, stop = self.motion(), self.stop_path(UNKNOWN_PERIOD)
        if motion.stop is not None:
            motion = motion._replace(a=stop.at(np.zeros(1))[2][0])
        return Handover(motion, stop)

    def take_over(self, state: Handover) -> bool:
        """Continue an earlier motion, or the motion of another limiter of the same joints.

        If the motion exceeds the limits of this limiter, the command follows the stop in `state`.

        Returns:
            Whether the stop in `state` ends within the position limits. If it does not, this
            limiter plans another stop.
        """
        motion = state.motion
        self.q, self.v, self.rate, self.path = motion.q, motion.v, motion.rate, motion.path
        self._pursuit.reset(self.rate)
        fits = _ends_inside(state.stop, self._chain.lower, self._chain.upper)
        follows = fits and (motion.stop is not None or self._exceeds_limits(self.rate))
        self._stop = state.stop if follows else None
        return fits

    def motion(self) -> Motion:
        """Return the state of motion, for :meth:`restore` and :meth:`blend`."""
        return Motion(self.q, self.v, self.rate, np.zeros_like(self.v), self._stop, self.path)

    def restore(self, motion: Motion) -> None:
        """Return to an earlier state of motion."""
        self.q, self.v, self.rate = motion.q, motion.v, motion.rate
        self._stop, self.path = motion.stop, motion.path

    def blend(self, last: Motion, a: Motion, b: Motion, share: float, dt: float) -> bool:
        """Set the state of motion to the weighted mean (1 - share) a + share b of two states.

        Both states must be reachable from `last` within one cycle and within all limits; the mean
        then also satisfies the limits.

        Args:
            last: State at the start of the cycle.
            a: First state at the end of the cycle.
            b: Second state at the end of the cycle.
            share: Weight of the second state, 0 to 1.
            dt: Duration of the cycle [s].

        Returns:
            Always True. The return value exists because :meth:`JerkLimiter.blend` may fail.
        """
        self.q = a.q + share * (b.q - a.q)
        self.rate = a.rate + share * (b.rate - a.rate)
        self.v, self._stop = (self.q - last.q) / dt, None
        self.path = blended_path(a, b, share)
        return True

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Move the command for one cycle toward a moving reference, within all limits.

        Args:
            q_r: (n,) position of the reference at the end of the cycle [rad or m].
            v_r: (n,) velocity of the reference [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        if self.is_too_fast():
            self.brake(dt)
            return
        q, v, rate = self._pursuit.advance(self.q, self.rate, q_r, v_r, dt)
        self.enter(q, v, rate, dt)

    def enter(self, q: Array, v: Array, rate: Array, dt: float) -> None:
        """Move the command to the result of a cycle.

        Args:
            q: (n,) command [rad or m].
            v: (n,) mean velocity in the cycle [rad/s or m/s].
            rate: (n,) velocity at the end of the cycle [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        self._stop, self.path = None, CyclePath(self.q, self.rate, dt)
        self.q, self.v, self.rate = q, v, rate

    def records(self) -> tuple[CommandLimits, PursuitState]:
        """Return the structs that the kernels of a cycle read and write."""
        return self._slow_limits, self._pursuit.state

    def drive(self, v: Array, dt: float) -> None:
        """Move the command for one cycle toward a velocity, within all limits.

        A joint slows down before its position limit and stops there, while other joints move on. If
        a desired velocity exceeds its limit, one factor scales all desired velocities.

        Args:
            v: (n,) desired velocities [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        if self.is_too_fast():
            self.brake(dt)
            return
        scaled = _scaled_velocity(v, self._slow_velocity)
        if self._is_smooth:
            left = _distances_ahead(scaled, self.q, self._chain.lower, self._chain.upper)
            fastest = np.sqrt(2.0 * self._used * left)
            scaled = np.minimum(np.maximum(scaled, -fastest), fastest)
        mean = 0.5 * (self.rate + scaled) if self._is_smooth else scaled
        q, rate = self.q.copy(), self.rate.copy()
        self._advance(self._slow, q + mean * dt, scaled, dt, q, rate)
        self._finish(q, rate, dt)
        self._pursuit.reset(self.rate)

    def advance_slower(self, last: Motion, share: float, dt: float) -> None:
        """Repeat the last cycle with a lower velocity at its end.

        Args:
            last: State of motion at the start of the cycle.
            share: Factor, 0 to 1, by which the velocity at the end of the cycle is multiplied.
            dt: Duration of the cycle [s].
        """
        rate = share * self.rate
        self.restore(last)
        mean = 0.5 * (last.rate + rate) if self._is_smooth else rate
        q, v = last.q.copy(), last.rate.copy()
        self._advance(self._slow, q + mean * dt, rate, dt, q, v)
        self._finish(q, v, dt)

    def brake(self, dt: float) -> None:
        """Slow the command down for `dt` [s]; continue the stop if the command follows a stop."""
        if self._stop is not None:
            self.continue_stop(self._stop, dt)
            return
        q, rate = self.q.copy(), self.rate.copy()
        self._brake(self._limits, dt, q, rate)
        self._finish(q, rate, dt)

    def _finish(self, q: Array, rate: Array, dt: float) -> None:
        """Move the command with constant acceleration for one cycle.

        Args:
            q: (n,) commanded positions at the end of the cycle [rad or m].
            rate: (n,) commanded velocities at the end of the cycle [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        self.enter(q, (q - self.q) / dt, rate, dt)

    def is_too_fast(self) -> bool:
        """Return whether the command exceeds the scaled limits, so that it must slow down."""
        may_exceed = self._scale < 1.0 or self._stop is not None
        return self._scale == 0.0 or (may_exceed and self._exceeds_limits(self.rate))

    def _exceeds_limits(self, v: Array) -> bool:
        """Return whether a velocity v (n,) of the command is too high.

        The velocity is too high if it exceeds a scaled velocity limit, or if a stop with the scaled
        acceleration limits would end beyond a position limit.
        """
        left = _distances_ahead(v, self.q, self._chain.lower, self._chain.upper)
        with np.errstate(invalid="ignore"):
            too_late = v * v > 2.0 * self._used * left + POSITION_ROUNDING
        too_fast = np.abs(v) > self._slow_velocity * (1.0 + 1e-9)
        return bool((too_fast | too_late).any())

    def stopping_point(self) -> Array:
        """Return the joint positions (n,) at which the command comes to rest if it stops now."""
        if self._stop is not None:
            return self._stop.end
        q_s = np.empty_like(self.q)
        self._stopping_point(self._limits, self.q, self.rate, q_s)
        return q_s

    def stop_path(self, period: float) -> StopPath:
        """Return the path of the stop that starts at the last command.

        All joints decelerate at constant acceleration along a straight line, and stop together
        after a whole number of cycles of `period` [s]. Only a joint that would pass its position
        limit stops earlier, at the limit; its acceleration limit always suffices for that.
        """
        if self._stop is not None:
            return self._stop
        stop = np.empty((4, len(self.q)))
        self._even_stop(self._limits, self.q, self.rate, (period, LONGEST_STOP), stop)
        return StopPath(
            self.q,
            self.rate,
            durations=stop[:1],
            accelerations=stop[1:2],
            jerks=self._no_jerk,
            lower=stop[2],
            upper=stop[3],
        )

    def resume_at(self, elapsed: float, period: float) -> None:
        """Advance the command along its stop path, which the arm has followed for `elapsed` [s].

        Args:
            elapsed: Time for which the arm has followed the stop path [s].
            period: Period of the cycles [s], as for :meth:`stop_path`.
        """
        self.continue_stop(self.stop_path(period), elapsed)

    def continue_stop(self, stop: StopPath, dt: float) -> None:
        """Move the command for `dt` [s] along a stop that starts at the command."""
        path, stop = CyclePath(stop.q, stop.v, dt, stop), stop.after(dt)
        self.v = (stop.q - self.q) / dt
        self.q, self._stop, self.path = stop.q.copy(), stop, path
        self.rate = np.zeros_like(self.q) if stop.is_over else stop.v.copy()


class JerkLimiter:
    """Limits position, velocity, acceleration and jerk of a command, with the library Ruckig.

    The methods are those of :class:`AccelerationLimiter`. Ruckig finds the fastest trajectory to
    the reference, but ignores position limits. A command is therefore accepted only if the arm can
    stop from that command within the position limits; otherwise the command follows the stop that
    starts at the previous command. The position limits are thus kept whatever the time between two
    cycles is, and also if the arm follows the stop because no further command arrives.

    A joint may start so close to a position limit that it cannot stop in time, for example after a
    change of the limit. Then the joint exceeds its acceleration and jerk limits, but only as much
    as is necessary to stop at the position limit.

    Args:
        robot: Robot, with its position and velocity limits.
        acceleration: (n,) finite limits [rad/s^2 or m/s^2].
        jerk: (n,) limits [rad/s^3 or m/s^3].
        scale: As in :class:`AccelerationLimiter`; the jerk limits are not scaled.

    Raises:
        OptionError: If ruckig is not installed.
    """

    def __init__(
        self, robot: RobotModel, acceleration: Array, jerk: Array, scale: float = 1.0
    ) -> None:
        try:
            import ruckig
        except ImportError as error:
            raise OptionError(
                "jerk limits need the package ruckig; install it: pip install ruckig"
            ) from error
        self._ruckig: Any = ruckig
        self._lower, self._upper = robot.lower, robot.upper
        self._velocity, self._acceleration, self._jerk = (
            np.minimum(x, FAST) for x in (robot.velocity, acceleration, jerk)
        )
        self._scale = scale
        limits = self._velocity, self._acceleration, self._jerk
        self._stop_limits = boxed_limits(robot, *limits)
        slow = boxed_limits(robot, scale * self._velocity, scale * self._acceleration, self._jerk)
        self._planner = ruckig.Ruckig(robot.n)
        self._to, self._along = self._input(), self._input()
        self._along.control_interface = ruckig.ControlInterface.Velocity
        self._along.synchronization = ruckig.Synchronization.No
        slack = float(np.max(self._acceleration / self._jerk))
        self._pursuit = Pursuit(slow, acceleration, slack)
        self.reset(np.zeros(robot.n))

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Set the command to `q` (n,) with velocity `v` (n,); None: at rest.

        The acceleration is set to zero.
        """
        v = np.zeros_like(q) if v is None else v
        self.q, self.v, self.rate, self._a = q.copy(), v.copy(), v.copy(), np.zeros_like(q)
        self.path: CyclePath | None = None
        self._stop = self._plan_stop(self.q, self.rate, self._a)

    def hand_over(self) -> Handover:
        """Return the complete state of motion, which another limiter can take over."""
        return Handover(self.motion(), self._stop)

    def take_over(self, state: Handover) -> bool:
        """Continue an earlier motion, or the motion of another limiter of the same joints.

        Returns:
            Whether the stop in `state` ends within the position limits. If it does not, this
            limiter plans another stop.
        """
        q, v, rate, a = (each.copy() for each in state.motion[:4])
        self.q, self.v, self.rate, self._a, self.path = q, v, rate, a, state.motion.path
        fits = _ends_inside(state.stop, self._lower, self._upper)
        self._stop = state.stop if fits else self._plan_stop(q, rate, a)
        return fits

    def motion(self) -> Motion:
        """Return the state of motion, for :meth:`restore` and :meth:`blend`."""
        return Motion(self.q, self.v, self.rate, self._a, self._stop, self.path)

    def restore(self, motion: Motion) -> None:
        """Return to an earlier state of motion."""
        self.q, self.v, self.rate, self._a = motion.q, motion.v, motion.rate, motion.a
        self.path = motion.path
        self._stop = motion.stop or self._plan_stop(motion.q, motion.rate, motion.a)

    def blend(self, last: Motion, a: Motion, b: Motion, share: float, dt: float) -> bool:
        """Set the state of motion to a weighted mean; see :meth:`AccelerationLimiter.blend`.

        Returns:
            False if the arm could not stop from the mean within the position limits. The state is
            then set to `last`.
        """
        self.restore(last)
        pairs = (a.q, b.q), (a.rate, b.rate), (a.a, b.a)
        path = blended_path(a, b, share)
        return self._enter([x + share * (y - x) for x, y in pairs], path, dt)

    def continue_stop(self, stop: StopPath, dt: float) -> None:
        """Move the command for `dt` [s] along a stop that starts at the command."""
        self._stop = stop
        self.brake(dt)

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Move the command for one cycle toward a moving reference, within all limits.

        Args:
            q_r: (n,) position of the reference at the end of the cycle [rad or m].
            v_r: (n,) velocity of the reference [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        kind, target = TOO_FAST, self.q
        if self._scale > 0.0:
            kind, target = self._pursuit.aim(self.q, self.rate, q_r, v_r, dt)
        if kind == TOO_FAST:
            self.brake(dt)
        elif kind == RESTING:
            self._move_along(self._trajectory_to(target[0]), dt)
        else:
            self._move_along(self._trajectory_at(target[1]), dt)

    def drive(self, v: Array, dt: float) -> None:
        """Move the command toward a velocity, as :meth:`AccelerationLimiter.drive`."""
        if self._scale == 0.0 or (np.abs(self.rate) > self._fastest() * (1.0 + 1e-9)).any():
            self.brake(dt)
            return
        scaled = _scaled_velocity(v, self._fastest())
        left = _distances_ahead(scaled, self.q, self._lower, self._upper)
        A = self._scale * self._acceleration
        braking = np.minimum(left * self._jerk / (2.0 * A), np.sqrt(A * left))
        self._move_along(self._trajectory_at(np.clip(scaled, -braking, braking)), dt)
        self._pursuit.reset(self.rate)

    def _fastest(self) -> Array:
        """Return the scaled velocity limits (n,) [rad/s or m/s]."""
        return self._scale * self._velocity

    def advance_slower(self, last: Motion, share: float, dt: float) -> None:
        """Replace the last cycle by a slower one, as :meth:`AccelerationLimiter.advance_slower`."""
        rate = share * self.rate
        self.restore(last)
        fastest = self._fastest()
        self._move_along(self._trajectory_at(np.clip(rate, -fastest, fastest)), dt)

    def _move_along(self, trajectory: Any, dt: float) -> None:
        """Move the command for `dt` [s] along a Ruckig trajectory that starts at the command.

        The command follows its stop instead if the trajectory is None, or if the arm could not stop
        from the next command within the position limits.
        """
        if trajectory is not None:
            path = CyclePath(self.q, self.rate, dt, RuckigPath(trajectory))
            if self._enter(trajectory.at_time(dt), path, dt):
                return
        self.brake(dt)

    def _enter(
        self, state: Sequence[Array] | Sequence[Sequence[float]], path: CyclePath | None, dt: float
    ) -> bool:
        """Move the command for one cycle, provided that the arm can stop afterwards.

        Args:
            state: Positions, velocities and accelerations (n,) at the end of the cycle.
            path: Path of the joints during the cycle.
            dt: Duration of the cycle [s].

        Returns:
            False if the arm could not stop within the position limits; the command then remains.
        """
        n = len(self.q)
        moved, phases, bounds = np.empty((4, n)), np.empty((3, 3, n)), np.empty((2, n))
        moved[:3] = state
        if not _stop_after_cycle(self._stop_limits, self.q, moved, dt, phases, bounds):
            return False
        self.q, self.rate, self._a, self.v = moved
        self._stop = StopPath(self.q, self.rate, *phases, *bounds)
        self.path = path
        return True

    def brake(self, dt: float) -> None:
        """Move the command for `dt` [s] along the stop that starts at the command."""
        if self._stop.is_over:
            self.v, self.rate, self._a = (np.zeros_like(self.q) for _ in range(3))
            self.path = CyclePath(self.q, self.rate, dt)
            return
        self.path = CyclePath(self.q, self.rate, dt, self._stop)
        self._stop = self._stop.after(dt)
        q, v, a = (each[0] for each in self._stop.at(np.zeros(1)))
        self.q, self.v, self.rate, self._a = q, (q - self.q) / dt, v, a

    def stopping_point(self) -> Array:
        """Return the joint positions (n,) at which the command comes to rest if it stops now."""
        return self._clipped(self._stop.end)

    def stop_path(self, period: float) -> StopPath:
        """Return the path of the stop that starts at the last command; `period` is not used."""
        return self._stop

    def resume_at(self, elapsed: float, period: float) -> None:
        """Advance the command along its stop path by `elapsed` [s]; `period` is not used."""
        self.brake(elapsed)

    def _clipped(self, q: Array) -> Array:
        """Clip q (n,) to the position limits, or to the command if the command exceeds a limit."""
        lower, upper = np.minimum(self._lower, self.q), np.maximum(self._upper, self.q)
        inside: Array = np.minimum(np.maximum(q, lower), upper)  # twice as fast as np.clip
        return inside

    def _limits(self, s: float | Array) -> tuple[Array, ...]:
        """Return the limits for a stop with s times the allowed acceleration.

        Returns:
            Lower and upper position limits (n,) as they are, acceleration limits (n,) times s, and
            jerk limits (n,) times s^2.
        """
        return self._lower, self._upper, self._acceleration * s, self._jerk * (s * s)

    def _plan_stop(self, q: Array, v: Array, a: Array) -> StopPath:
        """Plan the stop from positions q, velocities v and accelerations a, each (n,).

        If a joint would exceed a position limit, its acceleration limit is multiplied by the
        smallest sufficient factor s >= 1, and its jerk limit by s^2.
        """
        stop, overshoot = stop_within(q, v, a, self._limits(1.0))
        if (overshoot <= POSITION_ROUNDING).all():
            return stop
        low, high = np.ones_like(q), np.where(overshoot > POSITION_ROUNDING, HARDEST, 1.0)
        for _ in range(BISECTIONS):
            s = np.sqrt(low * high)
            _, overshoot = stop_within(q, v, a, self._limits(s))
            over = overshoot > POSITION_ROUNDING
            low, high = np.where(over, s, low), np.where(over, high, s)
        return stop_within(q, v, a, self._limits(high))[0]

    def _trajectory_to(self, q_r: Array) -> Any:
        """Return Ruckig's fastest trajectory to rest at q_r (n,); None if Ruckig finds none."""
        self._to.target_position = q_r.tolist()
        return self._calculate(self._to)

    def _trajectory_at(self, v: Array) -> Any:
        """Return a Ruckig trajectory to the velocity v (n,); None if Ruckig finds none.

        The trajectory has no target position, because a moving reference moves on before the
        command reaches a position.
        """
        self._along.target_velocity = v.tolist()
        return self._calculate(self._along)

    def _input(self) -> Any:
        """Return input parameters for Ruckig with the limits of the command."""
        given = self._ruckig.InputParameter(len(self._jerk))
        given.max_velocity = (self._scale * self._velocity).tolist()
        given.max_acceleration = (self._scale * self._acceleration).tolist()
        given.max_jerk = self._jerk.tolist()
        return given

    def _calculate(self, given: Any) -> Any:
        """Return a Ruckig trajectory from the current state of motion; None if Ruckig finds none.

        If the current velocity exceeds its limit, the trajectory first reduces the velocity.

        Args:
            given: Input parameters of Ruckig with the limits and the target; the current state is
                written to them.
        """
        given.current_position = self.q.tolist()
        given.current_velocity = self.rate.tolist()
        given.current_acceleration = self._a.tolist()
        trajectory = self._ruckig.Trajectory(given.degrees_of_freedom)
        try:
            result = self._planner.calculate(given, trajectory)
        except (self._ruckig.RuckigError, ValueError):  # ValueError: unknown result code
            return None
        is_found = result in (self._ruckig.Result.Working, self._ruckig.Result.Finished)
        return trajectory if is_found else None


Limiter = AccelerationLimiter | JerkLimiter


def boxed_limits(
    robot: RobotModel, velocity: Array, acceleration: Array, jerk: Array | None = None
) -> Boxed[CommandLimits]:
    """Return :func:`command_limits` as a box for kernels, see :mod:`dls_ik.core.boxes`."""
    return boxed(command_limits(robot, velocity, acceleration, jerk))


def command_limits(
    robot: RobotModel, velocity: Array, acceleration: Array, jerk: Array | None = None
) -> CommandLimits:
    """Return limits of the command for kernels.

    The arrays are copied to contiguous arrays of float, so that kernels are compiled only once.

    Args:
        robot: Robot, whose position limits are used.
        velocity: (n,) velocity limits [rad/s or m/s].
        acceleration: (n,) acceleration limits [rad/s^2 or m/s^2].
        jerk: (n,) jerk limits [rad/s^3 or m/s^3]; None: no limits.
    """
    jerk = np.full(robot.n, np.inf) if jerk is None else jerk
    limits = robot.lower, robot.upper, velocity, acceleration, jerk
    return CommandLimits(*(np.array(each, dtype=float) for each in limits))


def _scaled_velocity(v: Array, limits: Array) -> Array:
    """Return velocities (n,), multiplied by the largest factor, at most 1, that keeps `limits`."""
    ratio = float(np.max(np.abs(v) / limits))
    return v / ratio if ratio > 1.0 else v


def _distances_ahead(v: Array, q: Array, lower: Array, upper: Array) -> Array:
    """Return the distances (n,) from q (n,) to the position limits in the directions of v (n,).

    The distance of a joint beyond the limit is 0.
    """
    return np.maximum(np.where(v > 0.0, upper - q, q - lower), 0.0)


def _ends_inside(stop: StopPath, lower: Array, upper: Array) -> bool:
    """Return whether a stop ends within the position limits `lower` and `upper` (n,).

    If the stop starts beyond a limit, its start replaces this limit.
    """
    end = stop.end
    low, high = (
        np.minimum(lower, stop.q) - POSITION_ROUNDING,
        np.maximum(upper, stop.q) + POSITION_ROUNDING,
    )
    return bool(((end >= low) & (end <= high)).all())


def stop_within(q: Array, v: Array, a: Array, limits: tuple[Array, ...]) -> tuple[StopPath, Array]:
    """Return the fastest stop of each joint, and by how much the stop exceeds position limits.

    Args:
        q: (n,) positions [rad or m].
        v: (n,) velocities [rad/s or m/s].
        a: (n,) accelerations [rad/s^2 or m/s^2].
        limits: (n,) lower and upper position limits, acceleration limits and jerk limits.

    Returns:
        The path of the stop, and the overshoot (n,) of each joint beyond its position limit
        [rad or m]. If a joint starts beyond a limit, its overshoot is measured from the start.
    """
    lower, upper, A, J = limits
    phases, overshoot = np.empty((3, 3, len(q))), np.empty(len(q))
    v, a, A, J = (np.ascontiguousarray(each, dtype=float) for each in (v, a, A, J))
    _stop_phases(v, a, A, J, np.array([q - lower, upper - q]), phases, overshoot)
    durations, accelerations, jerks = phases
    lower, upper = np.minimum(lower, q), np.maximum(upper, q)
    return StopPath(q, v, durations, accelerations, jerks, lower, upper), overshoot
