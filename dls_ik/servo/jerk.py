"""A limit of jerk too, by Ruckig."""

from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.limiter import Limiter

FAST = 1e6  # [rad/s, rad/s^2, ...] where there is no limit: Ruckig wants numbers
SHARES = np.linspace(1.0, 0.0, 21)[:, None]  # of the reference's velocity, to choose from
SLACK = 1e-9  # relative, for Ruckig's rounding


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
        self._stop, self._stopping = self._stop_from(self.q, self._rate, self._a), 0.0

    def take_over(self, other: Limiter) -> None:
        """Go on with the motion of another limiter of the same joints, its acceleration too."""
        self.reset(other.q, other.v)
        if isinstance(other, JerkLimiter):
            self._rate, self._a = other._rate.copy(), other._a.copy()
            self._stop = self._stop_from(self.q, self._rate, self._a)

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Go toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        way = self._way_to(q_r, v_r)
        if way is not None:
            q, v, a = (np.array(x) for x in way.at_time(dt))
            stop = self._stop_from(q, v, a)
            if stop is not None and self._stays_inside(stop):
                self._stop, self._stopping = stop, 0.0
                self._go(q, v, a, dt)
                return
        self.brake(dt)

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]."""
        if self._stop is None:
            return
        self._stopping += dt
        q, v, a = (np.array(x) for x in self._stop.at_time(self._stopping))
        self._go(q, v, a, dt)

    def stopping_point(self) -> Array:
        """Where the arm would stand if it braked now (n,)."""
        if self._stop is None:
            return self.q.copy()
        q, _, _ = self._stop.at_time(self._stop.duration)
        return np.array(q)

    def _go(self, q: Array, v: Array, a: Array, dt: float) -> None:
        lower, upper = np.minimum(self._lower, self.q), np.maximum(self._upper, self.q)
        q = np.clip(q, lower, upper)
        self.v = (q - self.q) / dt
        self.q, self._rate, self._a = q, v, a

    def _stays_inside(self, stop: Any) -> bool:
        """Whether a stop leads beyond no limit, and where the arm is beyond, not farther."""
        least = np.array([extrema.min for extrema in stop.position_extrema])
        most = np.array([extrema.max for extrema in stop.position_extrema])
        lower, upper = np.minimum(self._lower, self.q), np.maximum(self._upper, self.q)
        return bool((least >= lower - SLACK).all() and (most <= upper + SLACK).all())

    def _way_to(self, q_r: Array, v_r: Array) -> Any:
        given = self._input(self.q, self._rate, self._a)
        velocity, acceleration, _ = self._limits
        given.target_position = q_r.tolist()
        room = np.minimum(self._upper - q_r, q_r - self._lower)  # to stop in, beyond the reference
        most = np.minimum(velocity, np.sqrt(acceleration * np.maximum(room, 0.0)))
        given.target_velocity = self._without_run_up(q_r, np.clip(v_r, -most, most)).tolist()
        return self._found(given)

    def _without_run_up(self, q_r: Array, v_r: Array) -> Array:
        """The largest share of `v_r` for which no joint has to go back first to gain speed.

        Each joint changes its speed by a jerk, a stretch of constant acceleration and a jerk.
        """
        _, A, J = self._limits
        direction = np.sign(v_r)
        d, u = direction * (q_r - self.q), np.maximum(direction * self._rate, 0.0)
        speeds = SHARES * np.abs(v_r)  # (shares, n)
        change = np.abs(speeds - u)
        time = np.where(change * J <= A * A, 2.0 * np.sqrt(change / J), change / A + A / J)
        fits = 0.5 * (speeds + u) * time <= d
        share = SHARES[np.argmax(fits, axis=0), 0]
        return np.where(fits.any(axis=0), share * v_r, 0.0)

    def _stop_from(self, q: Array, v: Array, a: Array) -> Any:
        given = self._input(q, v, a)
        given.control_interface = self._ruckig.ControlInterface.Velocity
        given.synchronization = self._ruckig.Synchronization.No
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
