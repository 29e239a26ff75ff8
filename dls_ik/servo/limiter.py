"""A command that goes after a reference within the limits of the joints."""

from typing import Protocol

import numpy as np

from dls_ik.core.limiter import advance, brake, stopping_point
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel


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

    def take_over(self, other: Limiter) -> None:
        """Go on with the motion of another limiter of the same joints."""
        self.reset(other.q, other.v)

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Go toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        advance(self._chain, self._acceleration, q_r, v_r, dt, self.q, self.v)

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]."""
        brake(self._chain, self._acceleration, dt, self.q, self.v)

    def stopping_point(self) -> Array:
        """Where the arm would stand if it braked now (n,)."""
        q_s = np.empty_like(self.q)
        stopping_point(self._chain, self._acceleration, self.q, self.v, q_s)
        return q_s
