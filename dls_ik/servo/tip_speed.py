"""Largest speeds of the tip, which neither a command nor the stop behind it exceeds."""

import math

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo.limiter import Motion, StopPath

USED = 0.999  # share of the speeds that a step aims at, as limits hold for its stop too
SAMPLES = 64  # most cycles of a stop that are looked at
MANY = 2.0 * math.sqrt(2.0)  # times the sine of half the angle: the norm of R_a - R_b


class TipSpeed:
    """Speeds of a tip, linear and angular.

    Args:
        linear: [units of length of the robot / s], angular: [rad/s]; infinite without a limit.
    """

    def __init__(self, robot: RobotModel, linear: float, angular: float) -> None:
        self._robot, self._linear, self._angular = robot, linear, angular

    def __call__(self, last: Motion, stop: StopPath, dt: float) -> bool:
        """Test the step of `dt` [s] from the last motion to the beginning of a stop, and that."""
        count = min(math.ceil(stop.duration / dt), SAMPLES)
        times: Array = np.arange(1.0, count + 1.0) * max(dt, stop.duration / SAMPLES)
        q = np.vstack([last.q, stop.q, stop.at(times)[0]])
        steps = np.concatenate([[dt], np.diff(times, prepend=0.0)])
        return bool((self._excess(q, steps) <= 1.0).all())

    def share(self, q_a: Array, q_b: Array, dt: float) -> float:
        """Return the share of a step (n,) of `dt` [s] that is slow enough, a little less than 1."""
        excess = float(self._excess(np.array([q_a, q_b]), np.array([dt]))[0])
        return min(1.0, USED / excess) if excess > USED else 1.0

    def twist_share(self, V: Array) -> float:
        """Return the share of a twist (6,) that is slow enough."""
        most = max(
            float(np.linalg.norm(V[:3])) / self._linear,
            float(np.linalg.norm(V[3:])) / self._angular,
        )
        return 1.0 / max(most, 1.0)

    def shortest(self, q: Array) -> float:
        """Return the time [s] that each step between configurations (m, n) may take at least."""
        return float(self._excess(q, np.full(len(q) - 1, USED)).max())

    def _excess(self, q: Array, dt: Array) -> Array:
        """Return the speeds of steps between configurations (m, n), as shares of the limits.

        Args:
            dt: (m - 1,) [s].
        """
        T = self._robot.fk(q)
        way = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1)
        turn = np.linalg.norm(np.diff(T[:, :3, :3], axis=0), axis=(1, 2))
        angle = 2.0 * np.arcsin(np.minimum(turn / MANY, 1.0))
        excess: Array = np.maximum(way / self._linear, angle / self._angular) / dt
        return excess


def tip_speed(
    robot: RobotModel, linear: float, angular: float, scale: float, length_unit: float
) -> TipSpeed | None:
    """Return the limits of options, None without any.

    Args:
        linear: [m/s], angular: [rad/s].
        scale: share of them, above zero.
        length_unit: units of length of the robot in a metre.
    """
    if math.isinf(linear) and math.isinf(angular):
        return None
    share = scale if scale > 0.0 else 1.0
    return TipSpeed(robot, share * linear * length_unit, share * angular)
