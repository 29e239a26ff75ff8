"""A limit of jerk too: the way to a reference by Ruckig, and a stop that is always possible."""

from typing import Any

import numpy as np

from dls_ik.core.limiter import stop_phases
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.limiter import Limiter, StopPath

FAST = 1e6  # [rad/s, rad/s^2, ...] where there is no limit: Ruckig wants numbers
ROUNDING = 1e-11  # [rad or m]
HARDEST = 1e4  # times the limits of acceleration: the hardest stop before a limit that is new


class JerkLimiter:
    """Limits of position, velocity, acceleration and jerk; see :class:`AccelerationLimiter`.

    Ruckig finds the fastest way to the reference and knows no limits of position. So a command
    is taken only if the arm can still stop inside the limits from there; if it cannot, it goes on
    along the stop that was found for the command before. That holds for any times between cycles,
    and for an arm that went on along that stop by itself.

    A joint that cannot stop in time from where it begins, such as before a limit that is new,
    slows down no harder than it must to stop at the limit.

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
        self._velocity, self._acceleration, self._jerk = (
            np.minimum(x, FAST) for x in (robot.velocity, acceleration, jerk)
        )
        self._planner = ruckig.Ruckig(robot.n)
        self.reset(np.zeros(robot.n))

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Stand at `q` (n,), or pass it with `v`, without acceleration."""
        v = np.zeros_like(q) if v is None else v
        self._begin(q, v, v, np.zeros_like(q))

    def take_over(self, other: Limiter) -> None:
        """Go on with the motion of another limiter of the same joints, its acceleration too."""
        if isinstance(other, JerkLimiter):
            self._begin(other.q, other.v, other._rate, other._a)
        else:
            self.reset(other.q, other.v)

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Go toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        way = self._way_along(q_r - v_r * dt, v_r) if v_r.any() else self._way_to(q_r)
        if way is not None:
            q, v, a = (np.array(x) for x in way.at_time(dt))
            q = self._clipped(q)
            stop, overshoot = stop_within(q, v, a, self._limits(1.0))
            if (overshoot <= ROUNDING).all():
                self._stop = stop
                self._go(q, v, a, dt)
                return
        self.brake(dt)

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]."""
        if self._stop.is_over:
            self.v, self._rate, self._a = (np.zeros_like(self.q) for _ in range(3))
            return
        self._stop = self._stop.after(dt)
        q, v, a = self._stop.at(np.zeros(1))
        self._go(q[0], v[0], a[0], dt)

    def stopping_point(self) -> Array:
        """Where the arm would stand if it braked now (n,)."""
        return self._clipped(self._stop.end)

    def stop_path(self, period: float) -> StopPath:
        """The stop that a controller follows if no command comes after this one."""
        return self._stop

    def coast(self, elapsed: float, period: float) -> None:
        """Go on along the stop path, on which the arm has been for `elapsed` [s] by itself."""
        self.brake(elapsed)

    def _begin(self, q: Array, v: Array, rate: Array, a: Array) -> None:
        """Pass `q` at a rate and an acceleration (n,); `v` (n,) is that of the last cycle."""
        self.q, self.v, self._rate, self._a = q.copy(), v.copy(), rate.copy(), a.copy()
        self._stop = self._plan_stop(q, rate, a)

    def _go(self, q: Array, v: Array, a: Array, dt: float) -> None:
        q = self._clipped(q)
        self.v = (q - self.q) / dt
        self.q, self._rate, self._a = q, v, a

    def _clipped(self, q: Array) -> Array:
        """No farther (n,) than the limits, but from beyond them."""
        inside: Array = np.clip(q, np.minimum(self._lower, self.q), np.maximum(self._upper, self.q))
        return inside

    def _limits(self, s: float | Array) -> tuple[Array, ...]:
        """Those of a stop that is s times as hard."""
        return self._lower, self._upper, self._acceleration * s, self._jerk * (s * s)

    def _plan_stop(self, q: Array, v: Array, a: Array) -> StopPath:
        """The stop from a state (n,), harder than the limits for a joint that has not the room.

        Of a stop that is s times as hard the acceleration is s times, the jerk s^2 times as large.
        The harder it is, the less room it takes.
        """
        stop, overshoot = stop_within(q, v, a, self._limits(1.0))
        if (overshoot <= ROUNDING).all():
            return stop
        low, high = np.ones_like(q), np.where(overshoot > ROUNDING, HARDEST, 1.0)
        for _ in range(40):
            s = np.sqrt(low * high)
            _, overshoot = stop_within(q, v, a, self._limits(s))
            over = overshoot > ROUNDING
            low, high = np.where(over, s, low), np.where(over, high, s)
        return stop_within(q, v, a, self._limits(high))[0]

    def _way_to(self, q_r: Array) -> Any:
        """The fastest way to a reference that stands."""
        given = self._input()
        given.target_position = q_r.tolist()
        return self._found(given)

    def _way_along(self, q_r: Array, v_r: Array) -> Any:
        """A way to the velocity of the reference, and more of it while the reference is ahead.

        The way to a place with a speed would lead to where the reference is now, not to where it
        will be then.
        """
        A, J = self._acceleration, self._jerk
        ahead = q_r - self.q
        closing = np.minimum(np.abs(ahead) * J / (2.0 * A), np.sqrt(A * np.abs(ahead)))
        wanted = np.clip(v_r + np.sign(ahead) * closing, -self._velocity, self._velocity)
        given = self._input()
        given.control_interface = self._ruckig.ControlInterface.Velocity
        given.synchronization = self._ruckig.Synchronization.No
        given.target_velocity = wanted.tolist()
        return self._found(given)

    def _input(self) -> Any:
        """The state as it is: beyond a limit that is new, Ruckig slows down within the others."""
        given = self._ruckig.InputParameter(len(self.q))
        given.max_velocity = self._velocity.tolist()
        given.max_acceleration = self._acceleration.tolist()
        given.max_jerk = self._jerk.tolist()
        given.current_position = self.q.tolist()
        given.current_velocity = self._rate.tolist()
        given.current_acceleration = self._a.tolist()
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


def stop_within(q: Array, v: Array, a: Array, limits: tuple[Array, ...]) -> tuple[StopPath, Array]:
    """The fastest stop of each joint.

    Args:
        q, v, a: (n,) where the joints are, their velocity and acceleration.
        limits: (n,) lower, upper, of acceleration, and of jerk.

    Returns:
        The path, and how far (n,) it leads beyond the limits, or outward from beyond them.
    """
    lower, upper, A, J = limits
    phases, overshoot = np.empty((3, 3, len(q))), np.empty(len(q))
    stop_phases(v, a, A, J, np.array([q - lower, upper - q]), phases, overshoot)
    durations, accelerations, jerks = phases
    least, most = np.minimum(lower, q), np.maximum(upper, q)
    return StopPath(q, v, durations, accelerations, jerks, least, most), overshoot
