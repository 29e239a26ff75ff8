"""A limit of jerk too, by Ruckig."""

from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.limiter import Limiter

FAST = 1e6  # [rad/s, rad/s^2, ...] where there is no limit: Ruckig wants numbers
SLACK = 1e-11  # [rad or m] for rounding


class JerkLimiter:
    """Limits of position, velocity, acceleration and jerk; see :class:`AccelerationLimiter`.

    Ruckig finds the fastest way to the reference and knows no limits of position. So each command
    is taken only if the arm can still stop inside the limits from there; if it cannot, it goes on
    with the stop that was found for the command before.

    Args:
        acceleration, jerk: (n,), the first finite.

    Raises:
        OptionError: ruckig is not installed.
    """

    def __init__(self, robot: RobotModel, acceleration: Array, jerk: Array) -> None:
        try:
            import ruckig
        except ImportError as error:
            raise OptionError("a limit of jerk needs ruckig: pip install ruckig") from error
        self._ruckig: Any = ruckig
        self._lower, self._upper = robot.lower, robot.upper
        self._limits = [np.minimum(x, FAST) for x in (robot.velocity, acceleration, jerk)]
        self._planner = ruckig.Ruckig(robot.n)
        self.reset(np.zeros(robot.n))

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Stand at `q` (n,), or pass it with `v`."""
        self.q = q.copy()
        self.v = np.zeros_like(q) if v is None else v.copy()
        self._rate, self._a = self.v.copy(), np.zeros_like(q)  # at the end of the cycle
        self._plan_stop()

    def take_over(self, other: Limiter) -> None:
        """Go on with the motion of another limiter of the same joints, its acceleration too."""
        self.reset(other.q, other.v)
        if isinstance(other, JerkLimiter):
            self._rate, self._a = other._rate.copy(), other._a.copy()
            self._plan_stop()

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Go toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        way = self._way_along(q_r - v_r * dt, v_r) if v_r.any() else self._way_to(q_r)
        if way is not None:
            q, v, a = (np.array(x) for x in way.at_time(dt))
            stop = self._stop_from(q, v, a)
            ends = None if stop is None else _extrema(stop)
            if ends is not None and self._stays_inside(*ends):
                self._take(stop, *ends)
                self._go(q, v, a, dt)
                return
        self.brake(dt)

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]."""
        if self._stop is None:
            return
        self._stopping += dt
        if self._stopping - dt >= self._stop.duration:
            self.v, self._rate, self._a = (np.zeros_like(self.q) for _ in range(3))
            return
        time = min(self._stopping, self._stop.duration)
        q, v, a = (np.array(x) for x in self._stop.at_time(time))
        self._go(q, v, a, dt)

    def stopping_point(self) -> Array:
        """Where the arm would stand if it braked now (n,)."""
        if self._stop is None:
            return self.q.copy()
        q, _, _ = self._stop.at_time(self._stop.duration)
        standing: Array = np.clip(q, self._least, self._most)
        return standing

    def _go(self, q: Array, v: Array, a: Array, dt: float) -> None:
        q = np.clip(q, self._least, self._most)
        self.v = (q - self.q) / dt
        self.q, self._rate, self._a = q, v, a

    def _plan_stop(self) -> None:
        """Stop from where the arm is, if it must."""
        self._least, self._most = self._lower, self._upper
        self._stop, self._stopping = self._stop_from(self.q, self._rate, self._a), 0.0
        if self._stop is not None:
            self._take(self._stop, *_extrema(self._stop))

    def _take(self, stop: Any, least: Array, most: Array) -> None:
        """Keep a stop, and to where it leads: no farther than the limits but from beyond them."""
        self._least = np.where(least < self._lower - SLACK, least, self._lower)
        self._most = np.where(most > self._upper + SLACK, most, self._upper)
        self._stop, self._stopping = stop, 0.0

    def _stays_inside(self, least: Array, most: Array) -> bool:
        """Whether a stop leads beyond no limit, and where the arm is beyond, not farther."""
        lower, upper = np.minimum(self._lower, self.q), np.maximum(self._upper, self.q)
        return bool((least >= lower - SLACK).all() and (most <= upper + SLACK).all())

    def _way_to(self, q_r: Array) -> Any:
        """The fastest way to a reference that stands."""
        given = self._input(self.q, self._rate, self._a)
        given.target_position = q_r.tolist()
        return self._found(given)

    def _way_along(self, q_r: Array, v_r: Array) -> Any:
        """A way to the velocity of the reference, and more of it while the reference is ahead.

        The way to a place with a speed would lead to where the reference is now, not to where it
        will be then.
        """
        velocity, A, J = self._limits
        ahead = q_r - self.q
        closing = np.minimum(np.abs(ahead) * J / (2.0 * A), np.sqrt(A * np.abs(ahead)))
        wanted = np.clip(v_r + np.sign(ahead) * closing, -velocity, velocity)
        return self._way_to_speed(self._input(self.q, self._rate, self._a), wanted)

    def _stop_from(self, q: Array, v: Array, a: Array) -> Any:
        return self._way_to_speed(self._input(q, v, a), np.zeros_like(q))

    def _way_to_speed(self, given: Any, wanted: Array) -> Any:
        """The fastest way of each joint to a velocity (n,)."""
        given.control_interface = self._ruckig.ControlInterface.Velocity
        given.synchronization = self._ruckig.Synchronization.No
        given.target_velocity = wanted.tolist()
        return self._found(given)

    def _input(self, q: Array, v: Array, a: Array) -> Any:
        given = self._ruckig.InputParameter(len(q))
        velocity, acceleration, jerk = (x.tolist() for x in self._limits)
        given.max_velocity, given.max_acceleration, given.max_jerk = velocity, acceleration, jerk
        given.current_position = q.tolist()
        given.current_velocity = np.clip(v, -self._limits[0], self._limits[0]).tolist()
        given.current_acceleration = np.clip(a, -self._limits[1], self._limits[1]).tolist()
        return given

    def _found(self, given: Any) -> Any:
        """A trajectory, or None where Ruckig finds none."""
        way = self._ruckig.Trajectory(given.degrees_of_freedom)
        try:
            result = self._planner.calculate(given, way)
        except (self._ruckig.RuckigError, ValueError):  # the latter: a result it has no name for
            return None
        return (
            way if result in (self._ruckig.Result.Working, self._ruckig.Result.Finished) else None
        )


def _extrema(way: Any) -> tuple[Array, Array]:
    """The least and greatest positions (n,) on a way."""
    extrema = way.position_extrema
    return np.array([x.min for x in extrema]), np.array([x.max for x in extrema])
