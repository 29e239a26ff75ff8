"""A command that goes after a reference within the limits of the joints, and how it would stop."""

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.limiter import advance, brake, stopping_point
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

LONGEST_STOP = 600.0  # [s]


class StopPath(NamedTuple):
    """Path of the joints from a command to rest: m phases of constant jerk for each joint.

    Each joint has durations of its own, and stands still after its last phase.
    """

    q: Array  # (n,) where it begins [rad or m]
    v: Array  # (n,) velocity there [rad/s or m/s]
    durations: Array  # (m, n) [s]
    accelerations: Array  # (m, n) at the beginning of each phase [rad/s^2 or m/s^2]
    jerks: Array  # (m, n) [rad/s^3 or m/s^3]
    least: Array  # (n,) positions that rounding does not lead beyond [rad or m]
    most: Array  # (n,)

    @property
    def duration(self) -> float:
        """Time until all joints stand still [s]."""
        return float(self.durations.sum(axis=0).max(initial=0.0))

    @property
    def is_over(self) -> bool:
        """Whether all joints stand still."""
        return not self.durations.any()

    @property
    def end(self) -> Array:
        """Where the joints come to rest (n,); a copy."""
        return self.q.copy() if self.is_over else self.at(np.array([math.inf]))[0][0].copy()

    def at(self, times: Array) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations (k, n) at times (k,) [s] from the beginning."""
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
        return np.clip(q, self.least, self.most), np.where(rests, 0.0, v), np.where(rests, 0.0, a)

    def after(self, elapsed: float) -> "StopPath":
        """The rest of the path, from a time [s] on."""
        q, v, _ = self.at(np.array([elapsed]))
        gone = np.clip(elapsed - np.cumsum(self.durations, axis=0) + self.durations, 0.0, None)
        gone = np.minimum(gone, self.durations)
        accelerations = self.accelerations + gone * self.jerks
        return self._replace(
            q=q[0], v=v[0], durations=self.durations - gone, accelerations=accelerations
        )

    def reordered(self, order: NDArray[np.intp]) -> "StopPath":
        """The same path for the joints in the order (n,) of their indices."""
        return StopPath(*(x[..., order] for x in self))


class Limiter(Protocol):
    """Keeps the command; read `q` and `v`, do not change them."""

    q: Array  # (n,) command [rad or m]
    v: Array  # (n,) its velocity in the last cycle [rad/s or m/s]

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Stand at `q` (n,), or pass it with `v`."""

    def take_over(self, other: "Limiter") -> None:
        """Go on with the motion of another limiter of the same joints."""

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Go toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]."""

    def stopping_point(self) -> Array:
        """Where the arm would stand if it braked now (n,)."""

    def stop_path(self, period: float) -> StopPath:
        """The stop that a controller follows if no command comes after this one.

        Args:
            period: of the cycles [s].
        """

    def coast(self, elapsed: float, period: float) -> None:
        """Go on along the stop path, on which the arm has been for `elapsed` [s] by itself."""


class AccelerationLimiter:
    """Limits of position, velocity and acceleration; the last may be infinite.

    Args:
        acceleration: (n,) [rad/s^2 or m/s^2].
    """

    def __init__(self, robot: RobotModel, acceleration: Array) -> None:
        self._chain, self._acceleration = robot.chain, acceleration
        self.reset(np.zeros(robot.n))

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Stand at `q` (n,), or pass it with `v`."""
        self.q = q.copy()
        self.v = np.zeros_like(q) if v is None else v.copy()
        self._rest_of_stop: StopPath | None = None  # while the command goes on along one

    def take_over(self, other: Limiter) -> None:
        """Go on with the motion of another limiter of the same joints."""
        self.reset(other.q, other.v)

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Go toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        if self._rest_of_stop is None:
            advance(self._chain, self._acceleration, q_r, v_r, dt, self.q, self.v)
        elif not self._leave_stop(self._rest_of_stop.v, q_r, v_r, dt):
            self._go_along(self._rest_of_stop, dt)

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]."""
        if self._rest_of_stop is None:
            brake(self._chain, self._acceleration, dt, self.q, self.v)
        else:
            self._go_along(self._rest_of_stop, dt)

    def stopping_point(self) -> Array:
        """Where the arm would stand if it braked now (n,)."""
        if self._rest_of_stop is not None:
            return self._rest_of_stop.end
        q_s = np.empty_like(self.q)
        stopping_point(self._chain, self._acceleration, self.q, self.v, q_s)
        return q_s

    def stop_path(self, period: float) -> StopPath:
        """The stop that a controller follows if no command comes after this one.

        All joints slow down evenly and together, along a straight line, in whole cycles; a joint
        whose position limit is nearer takes the room that it has, which is never less than its
        acceleration needs.
        """
        if self._rest_of_stop is not None:
            return self._rest_of_stop
        speed = np.abs(self.v)
        together = min(float(np.max(speed / self._acceleration)), LONGEST_STOP)
        together = period * max(1, math.ceil(together / period * (1.0 - 1e-12)))
        room = np.where(self.v > 0.0, self._chain.upper - self.q, self.q - self._chain.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(speed > 0.0, 2.0 * np.maximum(room, 0.0) / speed, 0.0)
            times = np.minimum(together, alone)
            acceleration = np.where(times > 0.0, -self.v / times, 0.0)
        return StopPath(
            self.q.copy(),
            self.v.copy(),
            durations=times[None],
            accelerations=acceleration[None],
            jerks=np.zeros((1, len(times))),
            least=np.minimum(self._chain.lower, self.q),
            most=np.maximum(self._chain.upper, self.q),
        )

    def coast(self, elapsed: float, period: float) -> None:
        """Go on along the stop path, on which the arm has been for `elapsed` [s] by itself."""
        self._go_along(self.stop_path(period), elapsed)

    def _go_along(self, stop: StopPath, dt: float) -> None:
        stop = stop.after(dt)
        self.v = (stop.q - self.q) / dt
        self.q = stop.q.copy()
        self._rest_of_stop = None if stop.is_over and not self.v.any() else stop

    def _leave_stop(self, rate: Array, q_r: Array, v_r: Array, dt: float) -> bool:
        """Go toward a reference from a velocity here (n,), which is not the mean of a cycle.

        The mean of the cycle to come may be only half as far from it as the next one from that.

        Returns:
            Whether that is so, and nothing has changed if it is not: where a limit of position is
            near, only the stop itself may be gentle enough.
        """
        q, v, change = self.q.copy(), rate.copy(), 0.5 * self._acceleration * dt
        advance(self._chain, self._acceleration, q_r, v_r, dt, q, v)
        v_r = 0.5 * (rate + v)
        q, v, q_r = self.q.copy(), rate.copy(), self.q + v_r * dt
        advance(self._chain, self._acceleration, q_r, v_r, dt, q, v)
        if (np.abs(v - rate) > change * (1.0 + 1e-9)).any():
            return False
        self.q, self.v, self._rest_of_stop = q, v, None
        return True
