"""Limiters: a command that follows a reference within the limits of the joints, and its stop.

Behind each command there is a stop within all limits: the stop path.
"""

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.limiter import advance, brake, even_stop, stop_phases, stopping_point
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.pursuit import Pursuit

LONGEST_STOP = 600.0  # [s]
FAST = 1e6  # [rad/s, rad/s^2, ...] in place of an infinite limit, which Ruckig refuses
ROUNDING = 1e-11  # [rad or m]
HARDEST = 1e4  # times the limits of acceleration: the hardest stop before a limit that is new
BISECTIONS = 40
UNKNOWN_PERIOD = 0.01  # [s] assumed for the cycles of a stop that is planned outside a cycle


class StopPath(NamedTuple):
    """Path of the joints from a command to rest: m phases of constant jerk for each joint.

    Each joint has durations of its own, and stands still after its last phase.
    """

    q: Array  # (n,) where it begins [rad or m]
    v: Array  # (n,) velocity there [rad/s or m/s]
    durations: Array  # (m, n) [s]
    accelerations: Array  # (m, n) at the beginning of each phase [rad/s^2 or m/s^2]
    jerks: Array  # (m, n) [rad/s^3 or m/s^3]
    lower: Array  # (n,) bounds of position, against rounding [rad or m]
    upper: Array  # (n,)

    @property
    def duration(self) -> float:
        """Time until all joints stand still [s]."""
        return float(self.durations.sum(axis=0).max(initial=0.0))

    @property
    def is_over(self) -> bool:
        """Return whether all joints stand still."""
        return not self.durations.any()

    @property
    def end(self) -> Array:
        """Joint values at rest (n,); a copy."""
        return self.q.copy() if self.is_over else self.at(np.array([math.inf]))[0][0].copy()

    def at(self, times: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations (k, n) at times (k,) [s]."""
        left = np.repeat(times[:, None], len(self.q), axis=1)
        q, v, a = self.q, self.v, np.zeros_like(left)
        phases = zip(self.durations, self.accelerations, self.jerks, strict=True)
        for duration, acceleration, jerk in phases:
            t = np.clip(left, 0.0, duration)
            a = np.where(left >= 0.0, acceleration + t * jerk, a)
            q = q + t * (v + t * (0.5 * acceleration + t * jerk / 6.0))
            v = v + t * (acceleration + 0.5 * t * jerk)
            left = left - duration
        rests = left >= 0.0
        return np.clip(q, self.lower, self.upper), np.where(rests, 0.0, v), np.where(rests, 0.0, a)

    def after(self, elapsed: float) -> "StopPath":
        """Return the rest of the path, from a time [s] on."""
        q, v, _ = self.at(np.array([elapsed]))
        gone = np.clip(elapsed - np.cumsum(self.durations, axis=0) + self.durations, 0.0, None)
        gone = np.minimum(gone, self.durations)
        accelerations = self.accelerations + gone * self.jerks
        return self._replace(
            q=q[0], v=v[0], durations=self.durations - gone, accelerations=accelerations
        )

    def reordered(self, order: NDArray[np.intp]) -> "StopPath":
        """Return the same path for the joints in the order (n,) of their indices."""
        return StopPath(*(x[..., order] for x in self))


class Motion(NamedTuple):
    """State of a limiter between two cycles; never changed."""

    q: Array  # (n,) command [rad or m]
    v: Array  # (n,) its mean velocity in the last cycle [rad/s or m/s]
    rate: Array  # (n,) velocity now
    a: Array  # (n,) acceleration now [rad/s^2 or m/s^2]
    stop: StopPath | None  # that is followed, or is planned already


class Handover(NamedTuple):
    """Whole state of motion of a command, handed from one limiter or guard to another.

    The command follows the stop until its new owner accepts another one under its own limits and
    distances. A change of owner therefore never makes the path to rest longer.
    """

    motion: Motion
    stop: StopPath  # begins at the command
    promises: Mapping[Hashable, float] = {}  # distances [m] kept along the stop, by key of the pair


def at_start_of(stop: StopPath) -> Handover:
    """Return the state of motion of a command at the start of a stop, which it follows."""
    q, v, a = (each[0] for each in stop.at(np.zeros(1)))
    return Handover(Motion(q, v, v, a, stop), stop)


class AccelerationLimiter:
    """Limits of position, velocity and acceleration; the last may be infinite.

    Args:
        acceleration: (n,) [rad/s^2 or m/s^2].
        scale: share of velocities and accelerations, 0 to 1, that is used except to stop. A command
            that is faster, as after a change, slows down as hard as the limits allow.

    Attributes:
        q: (n,) command [rad or m]; read it, do not change it.
        v: (n,) its mean velocity in the last cycle [rad/s or m/s].
    """

    def __init__(self, robot: RobotModel, acceleration: Array, scale: float = 1.0) -> None:
        self._chain, self._acceleration = robot.chain, acceleration
        share = scale if scale > 0.0 else 1.0  # at 0 it brakes
        self._scale, self._used = scale, share * acceleration
        self._slow = robot.chain._replace(velocity=share * robot.velocity)
        self._pursuit = Pursuit(self._used)
        self.reset(np.zeros(robot.n))

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Stand at `q` (n,), or pass it with `v`."""
        self.q = q.copy()
        self.v = np.zeros_like(q) if v is None else v.copy()
        self._rest_of_stop: StopPath | None = None  # while the command continues along one
        self._pursuit.reset(self.v)

    def hand_over(self) -> Handover:
        """Return the whole state of motion, for another limiter of the same joints."""
        motion, stop = self.motion(), self.stop_path(UNKNOWN_PERIOD)
        if motion.stop is not None:
            motion = motion._replace(a=stop.at(np.zeros(1))[2][0])
        return Handover(motion, stop)

    def take_over(self, state: Handover) -> bool:
        """Continue the motion of another limiter of the same joints, or an earlier motion.

        A motion that exceeds these limits follows the stop that came with it.

        Returns:
            Whether that stop stays within the position limits. If it does not, a stop of this
            limiter replaces it.
        """
        motion = state.motion
        self.q, self.v = motion.q.copy(), motion.v.copy()
        self._pursuit.reset(motion.rate)
        fits = _ends_inside(state.stop, self._chain.lower, self._chain.upper)
        if not fits:
            self.v, self._rest_of_stop = motion.rate.copy(), None
        elif motion.stop is None and not self._exceeds_limits(motion.rate):
            self._rest_of_stop = None
        else:
            self._rest_of_stop = state.stop
        return fits

    def motion(self) -> Motion:
        """Return the state, to be given to :meth:`restore` or :meth:`blend`."""
        stop = self._rest_of_stop
        v = self.v.copy()
        rate = v if stop is None else np.zeros_like(v) if stop.is_over else stop.v
        return Motion(self.q.copy(), v, rate, np.zeros_like(v), stop)

    def restore(self, motion: Motion) -> None:
        """Go back to a state."""
        self.q, self.v, self._rest_of_stop = motion.q.copy(), motion.v.copy(), motion.stop

    def blend(self, last: Motion, a: Motion, b: Motion, share: float, dt: float) -> bool:
        """Set the state between two that may follow `last` after `dt` [s]: `share` of b.

        Both are within all limits, and so is what is between. Returns True.
        """
        self.q = a.q + share * (b.q - a.q)
        self.v = (self.q - last.q) / dt
        self._rest_of_stop = self._even_stop(self.q, a.rate + share * (b.rate - a.rate), dt)
        return True

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Move toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        if self._is_too_fast():
            self.brake(dt)
        elif self._rest_of_stop is None:
            q_r, v_r = self._pursuit.follow(self.q, q_r, v_r, dt)
            advance(self._slow, self._used, q_r, v_r, dt, self.q, self.v)
        elif not self._leave_stop(self._rest_of_stop.v, q_r, v_r, dt):
            self.continue_stop(self._rest_of_stop, dt)

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]."""
        if self._rest_of_stop is None:
            brake(self._chain, self._acceleration, dt, self.q, self.v)
        else:
            self.continue_stop(self._rest_of_stop, dt)

    def _is_too_fast(self) -> bool:
        """Return whether the command is faster than the scaled limits allow, as after a change."""
        if self._scale == 1.0:
            return False
        stop = self._rest_of_stop
        return self._scale == 0.0 or self._exceeds_limits(self.v if stop is None else stop.v)

    def _exceeds_limits(self, v: Array) -> bool:
        """Return whether v (n,) is too fast for the scaled limits, or to stop at a position limit.

        A stop is planned with the scaled limit of acceleration.
        """
        left = np.where(v > 0.0, self._chain.upper - self.q, self.q - self._chain.lower)
        with np.errstate(invalid="ignore"):
            too_late = v * v > 2.0 * self._used * np.maximum(left, 0.0) + ROUNDING
        too_fast = np.abs(v) > self._slow.velocity * (1.0 + 1e-9)
        return bool((too_fast | too_late).any())

    def stopping_point(self) -> Array:
        """Return the joint values (n,) at rest after braking from now on."""
        if self._rest_of_stop is not None:
            return self._rest_of_stop.end
        q_s = np.empty_like(self.q)
        stopping_point(self._chain, self._acceleration, self.q, self.v, q_s)
        return q_s

    def stop_path(self, period: float) -> StopPath:
        """Return the stop that a controller follows if no command comes after this one.

        All joints slow down evenly and together, along a straight line, in whole cycles of `period`
        [s]; a joint that is nearer to its position limit takes the distance that is left, which is
        never less than its acceleration needs.
        """
        if self._rest_of_stop is not None:
            return self._rest_of_stop
        return self._even_stop(self.q, self.v, period)

    def _even_stop(self, q: Array, v: Array, period: float) -> StopPath:
        """Return the stop of :meth:`stop_path` from a place and a velocity (n,)."""
        times, slopes = np.empty((2, 1, len(q)))
        even_stop(self._chain, self._acceleration, q, v, (period, LONGEST_STOP), times, slopes)
        return StopPath(
            q.copy(),
            v.copy(),
            durations=times,
            accelerations=slopes,
            jerks=np.zeros_like(times),
            lower=np.minimum(self._chain.lower, q),
            upper=np.maximum(self._chain.upper, q),
        )

    def resume_at(self, elapsed: float, period: float) -> None:
        """Continue on the stop path, on which the arm has moved for `elapsed` [s] by itself."""
        self.continue_stop(self.stop_path(period), elapsed)

    def continue_stop(self, stop: StopPath, dt: float) -> None:
        """Move for `dt` [s] along a stop that begins at the command."""
        stop = stop.after(dt)
        self.v = (stop.q - self.q) / dt
        self.q = stop.q.copy()
        self._rest_of_stop = None if stop.is_over and not self.v.any() else stop

    def _leave_stop(self, rate: Array, q_r: Array, v_r: Array, dt: float) -> bool:
        """Move toward a reference from a velocity now (n,), which is not the mean of a cycle.

        The mean of the cycle to come may be only half as far from it as the next one from that.

        Returns:
            False, with nothing changed, where that is too fast: near a position limit only the stop
            itself may be gentle enough.
        """
        q, v, change = self.q.copy(), rate.copy(), 0.5 * self._used * dt
        advance(self._slow, self._used, q_r, v_r, dt, q, v)
        v_r = 0.5 * (rate + v)
        q, v, q_r = self.q.copy(), rate.copy(), self.q + v_r * dt
        advance(self._slow, self._used, q_r, v_r, dt, q, v)
        if (np.abs(v - rate) > change * (1.0 + 1e-9)).any():
            return False
        self.q, self.v, self._rest_of_stop = q, v, None
        return True


class JerkLimiter:
    """Limits of position, velocity, acceleration and jerk; see :class:`AccelerationLimiter`.

    Ruckig finds the fastest way to the reference and knows no limits of position. So a command
    is taken only if the arm can still stop inside the limits from there; if it cannot, it goes on
    along the stop that was found for the command before. This holds for any times between cycles,
    and for an arm that went on along that stop by itself.

    A joint that cannot stop in time from where it begins, such as before a limit that is new,
    slows down no harder than it must to stop at the limit.

    Args:
        acceleration, jerk: (n,), the first finite.
        scale: as of :class:`AccelerationLimiter`; jerk is not scaled.

    Raises:
        OptionError: ruckig is not installed.
    """

    def __init__(
        self, robot: RobotModel, acceleration: Array, jerk: Array, scale: float = 1.0
    ) -> None:
        try:
            import ruckig
        except ImportError as error:
            raise OptionError("a limit of jerk needs ruckig: pip install ruckig") from error
        self._ruckig: Any = ruckig
        self._lower, self._upper = robot.lower, robot.upper
        self._velocity, self._acceleration, self._jerk = (
            np.minimum(x, FAST) for x in (robot.velocity, acceleration, jerk)
        )
        self._scale = scale
        self._planner = ruckig.Ruckig(robot.n)
        self._pursuit = Pursuit(acceleration, float(np.max(self._acceleration / self._jerk)))
        self.reset(np.zeros(robot.n))

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Stand at `q` (n,), or pass it with `v`, without acceleration."""
        v = np.zeros_like(q) if v is None else v
        self.q, self.v, self._rate, self._a = q.copy(), v.copy(), v.copy(), np.zeros_like(q)
        self._stop = self._plan_stop(self.q, self._rate, self._a)

    def hand_over(self) -> Handover:
        """Return the whole state of motion, for another limiter of the same joints."""
        return Handover(self.motion(), self._stop)

    def take_over(self, state: Handover) -> bool:
        """Continue the motion of another limiter of the same joints, or an earlier motion.

        Returns:
            As :meth:`AccelerationLimiter.take_over`.
        """
        q, v, rate, a = (each.copy() for each in state.motion[:4])
        self.q, self.v, self._rate, self._a = q, v, rate, a
        fits = _ends_inside(state.stop, self._lower, self._upper)
        self._stop = state.stop if fits else self._plan_stop(q, rate, a)
        return fits

    def motion(self) -> Motion:
        """Return the state, to be given to :meth:`restore` or :meth:`blend`."""
        return Motion(self.q, self.v, self._rate, self._a, self._stop)

    def restore(self, motion: Motion) -> None:
        """Go back to a state."""
        self.q, self.v, self._rate, self._a = motion.q, motion.v, motion.rate, motion.a
        self._stop = motion.stop or self._plan_stop(motion.q, motion.rate, motion.a)

    def blend(self, last: Motion, a: Motion, b: Motion, share: float, dt: float) -> bool:
        """Set the state between two that may follow `last` after `dt` [s]: `share` of b.

        Both are within all limits, and so is what is between. Returns False if its stop is not.
        """
        self.restore(last)
        q, v, accel = (x + share * (y - x) for x, y in ((a.q, b.q), (a.rate, b.rate), (a.a, b.a)))
        stop, overshoot = stop_within(q, v, accel, self._limits(1.0))
        if (overshoot > ROUNDING).any():
            return False
        self._stop = stop
        self._set(q, v, accel, dt)
        return True

    def continue_stop(self, stop: StopPath, dt: float) -> None:
        """Move for `dt` [s] along a stop that begins at the command."""
        self._stop = stop
        self.brake(dt)

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Move toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        too_fast = np.abs(self._rate) > self._scale * self._velocity * (1.0 + 1e-9)
        if self._scale == 0.0 or too_fast.any():
            self.brake(dt)
            return
        q_r, v_r = self._pursuit.follow(self.q, q_r, v_r, dt)
        way = self._way_along(q_r - v_r * dt, v_r) if v_r.any() else self._way_to(q_r)
        if way is not None:
            q, v, a = (np.array(x) for x in way.at_time(dt))
            q = self._clipped(q)
            stop, overshoot = stop_within(q, v, a, self._limits(1.0))
            if (overshoot <= ROUNDING).all():
                self._stop = stop
                self._set(q, v, a, dt)
                return
        self.brake(dt)

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]."""
        if self._stop.is_over:
            self.v, self._rate, self._a = (np.zeros_like(self.q) for _ in range(3))
            return
        self._stop = self._stop.after(dt)
        q, v, a = (each[0] for each in self._stop.at(np.zeros(1)))
        self.q, self.v, self._rate, self._a = q, (q - self.q) / dt, v, a

    def stopping_point(self) -> Array:
        """Return the joint values (n,) at rest after braking from now on."""
        return self._clipped(self._stop.end)

    def stop_path(self, period: float) -> StopPath:
        """Return the stop that a controller follows if no command comes after this one."""
        return self._stop

    def resume_at(self, elapsed: float, period: float) -> None:
        """Continue on the stop path, on which the arm has moved for `elapsed` [s] by itself."""
        self.brake(elapsed)

    def _set(self, q: Array, v: Array, a: Array, dt: float) -> None:
        q = self._clipped(q)
        self.v = (q - self.q) / dt
        self.q, self._rate, self._a = q, v, a

    def _clipped(self, q: Array) -> Array:
        """Clip to the limits (n,); from beyond a limit, to where the command is."""
        inside: Array = np.clip(q, np.minimum(self._lower, self.q), np.maximum(self._upper, self.q))
        return inside

    def _limits(self, s: float | Array) -> tuple[Array, ...]:
        """Return the limits of a stop that is s times as hard."""
        return self._lower, self._upper, self._acceleration * s, self._jerk * (s * s)

    def _plan_stop(self, q: Array, v: Array, a: Array) -> StopPath:
        """Plan the stop from a state (n,), harder than the limits only where it must be.

        A stop that is s times as hard has s times the acceleration and s^2 times the jerk, and is
        the shorter the harder it is.
        """
        stop, overshoot = stop_within(q, v, a, self._limits(1.0))
        if (overshoot <= ROUNDING).all():
            return stop
        low, high = np.ones_like(q), np.where(overshoot > ROUNDING, HARDEST, 1.0)
        for _ in range(BISECTIONS):
            s = np.sqrt(low * high)
            _, overshoot = stop_within(q, v, a, self._limits(s))
            over = overshoot > ROUNDING
            low, high = np.where(over, s, low), np.where(over, high, s)
        return stop_within(q, v, a, self._limits(high))[0]

    def _way_to(self, q_r: Array) -> Any:
        """Find the fastest way to a reference that stands."""
        given = self._input()
        given.target_position = q_r.tolist()
        return self._found(given)

    def _way_along(self, q_r: Array, v_r: Array) -> Any:
        """Find a way to the velocity of the reference, and more of it while that is ahead.

        A way to the place of the reference would lead to where it is now, not to where it will be.
        """
        A, J = self._scale * self._acceleration, self._jerk
        ahead = q_r - self.q
        closing = np.minimum(np.abs(ahead) * J / (2.0 * A), np.sqrt(A * np.abs(ahead)))
        fastest = self._scale * self._velocity
        wanted = np.clip(v_r + np.sign(ahead) * closing, -fastest, fastest)
        given = self._input()
        given.control_interface = self._ruckig.ControlInterface.Velocity
        given.synchronization = self._ruckig.Synchronization.No
        given.target_velocity = wanted.tolist()
        return self._found(given)

    def _input(self) -> Any:
        """Return the state as it is; beyond a limit that is new, Ruckig slows down to it."""
        given = self._ruckig.InputParameter(len(self.q))
        given.max_velocity = (self._scale * self._velocity).tolist()
        given.max_acceleration = (self._scale * self._acceleration).tolist()
        given.max_jerk = self._jerk.tolist()
        given.current_position = self.q.tolist()
        given.current_velocity = self._rate.tolist()
        given.current_acceleration = self._a.tolist()
        return given

    def _found(self, given: Any) -> Any:
        """Return a trajectory, or None where Ruckig finds none."""
        way = self._ruckig.Trajectory(given.degrees_of_freedom)
        try:
            result = self._planner.calculate(given, way)
        except (self._ruckig.RuckigError, ValueError):  # the latter: a result it has no name for
            return None
        return (
            way if result in (self._ruckig.Result.Working, self._ruckig.Result.Finished) else None
        )


Limiter = AccelerationLimiter | JerkLimiter


def _ends_inside(stop: StopPath, lower: Array, upper: Array) -> bool:
    """Return whether a stop ends within position limits (n,), or no farther outside."""
    end = stop.end
    low, high = np.minimum(lower, stop.q) - ROUNDING, np.maximum(upper, stop.q) + ROUNDING
    return bool(((end >= low) & (end <= high)).all())


def stop_within(q: Array, v: Array, a: Array, limits: tuple[Array, ...]) -> tuple[StopPath, Array]:
    """Return the fastest stop of each joint.

    Args:
        q, v, a: (n,) positions, velocities and accelerations of the joints.
        limits: (n,) lower, upper, of acceleration, and of jerk.

    Returns:
        The path, and how far (n,) it leads beyond the limits, or outward from beyond them.
    """
    lower, upper, A, J = limits
    phases, overshoot = np.empty((3, 3, len(q))), np.empty(len(q))
    stop_phases(v, a, A, J, np.array([q - lower, upper - q]), phases, overshoot)
    durations, accelerations, jerks = phases
    lower, upper = np.minimum(lower, q), np.maximum(upper, q)
    return StopPath(q, v, durations, accelerations, jerks, lower, upper), overshoot
