"""Largest speeds of the tip, which neither a command nor the stop behind it exceeds at any time."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dls_ik import compat
from dls_ik.core.tip_speed import speed_bound
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo.knots import Knots, cycle_knots, stop_knots
from dls_ik.servo.motion import Motion, StopPath

USED = 0.998  # share of the speeds that a step is slowed down to
ACCEPTED = 0.9995  # share of the speeds; straight lines between the points of a stop need the rest
SHARPNESS = 2e-4  # of the bound, as a share of the speeds
MANY = 2.0 * math.sqrt(2.0)  # times the sine of half the angle: the norm of R_a - R_b


class TipSpeed:
    """Speeds of a tip, linear and angular.

    Args:
        linear: [units of length of the robot / s], angular: [rad/s]; infinite without a limit.
        acceleration: (n,) limits of the joints [rad/s^2 or m/s^2].
    """

    def __init__(
        self, robot: RobotModel, linear: float, angular: float, acceleration: Array
    ) -> None:
        self._robot, self._linear, self._angular = robot, linear, angular
        self._limits = np.array([linear, angular])
        self._acceleration, self._is_smooth = acceleration, bool(np.isfinite(acceleration).any())
        self._levers, self._sharpness = _levers(robot), np.array([USED, SHARPNESS])
        self._speed_bound: Callable[..., Any] | None = None  # for arguments of these types

    def __call__(self, motion: Motion, stop: StopPath) -> bool:
        """Return whether the last cycle of a motion and the stop behind it are slow enough."""
        return self.excess(motion, stop) <= ACCEPTED

    def share(self, motion: Motion, stop: StopPath) -> float:
        """Return the share of the velocity that is slow enough, a little less than 1."""
        excess = self.excess(motion, stop)
        return 1.0 if excess <= ACCEPTED else USED / excess

    def excess(self, motion: Motion, stop: StopPath) -> float:
        """Return a bound of the speeds of a cycle and the stop behind it, as a share of the limits.

        The bound holds for cubics between the knots, and for a straight line during the cycle.
        """
        parts, path = [stop_knots(stop)], motion.path
        if path is not None:
            mean = (motion.q - path.q) / path.duration
            ends = np.array([0.0, path.duration]), np.array([path.q, motion.q])
            parts.append(Knots(*ends, np.array([mean, mean])))
            if self._is_smooth:
                parts.append(cycle_knots(path, motion.q, motion.rate, self._acceleration))
        pieces = [part.pieces() for part in parts if len(part.times) > 1]
        if not pieces:
            return 0.0
        times, states = (np.concatenate(x) for x in zip(*pieces, strict=True))
        args = (self._robot.chain, self._levers, self._limits, self._sharpness, times, states)
        if self._speed_bound is None:
            self._speed_bound = compat.numba_entry(speed_bound, args)
        return float(self._speed_bound(*args))

    def step_share(self, q_a: Array, q_b: Array, dt: float) -> float:
        """Return the share of a step (n,) of `dt` [s] whose mean speeds are slow enough."""
        excess = float(self._mean_excess(np.array([q_a, q_b]), np.array([dt]))[0])
        return min(1.0, USED / excess) if excess > USED else 1.0

    def twist_share(self, V: Array) -> float:
        """Return the share of a twist (6,) that is slow enough."""
        most = max(
            float(np.linalg.norm(V[:3])) / self._linear,
            float(np.linalg.norm(V[3:])) / self._angular,
        )
        return 1.0 / max(most, 1.0)

    def shortest(self, q: Array) -> float:
        """Return the shortest time [s] in which each step between configurations (m, n) fits."""
        return float(self._mean_excess(q, np.full(len(q) - 1, USED)).max())

    def _mean_excess(self, q: Array, dt: Array) -> Array:
        """Return the mean speeds of steps between configurations (m, n), as shares of the limits.

        Args:
            dt: (m - 1,) [s].
        """
        T = self._robot.fk(q)
        way = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1)
        turn = np.linalg.norm(np.diff(T[:, :3, :3], axis=0), axis=(1, 2))
        angle = 2.0 * np.arcsin(np.minimum(turn / MANY, 1.0))
        excess: Array = np.maximum(way / self._linear, angle / self._angular) / dt
        return excess


def _levers(robot: RobotModel) -> Array:
    """Return the largest effects on the tip (2, m) of a unit velocity of each moving element."""
    chain = robot.chain
    ends = np.array(robot.finite_limits())[:, chain.variable] * chain.scale + chain.offset
    slides = np.where(chain.prismatic, np.abs(ends).max(axis=0), 0.0)
    links = np.linalg.norm(chain.fixed[1:, :, 3], axis=1)  # after each element
    beyond = np.cumsum((slides + links)[::-1])[::-1]
    return np.where(chain.prismatic, [np.ones(len(links)), np.zeros(len(links))],
                    [beyond, np.ones(len(links))])  # fmt: skip


def tip_speed(
    robot: RobotModel,
    speeds: tuple[float, float],
    scale: float,
    length_unit: float,
    acceleration: Array,
) -> TipSpeed | None:
    """Return the limits of options, None without any.

    Args:
        speeds: linear [m/s] and angular [rad/s].
        scale: share of them, above zero.
        length_unit: units of length of the robot in a metre.
        acceleration: (n,) limits of the joints [rad/s^2 or m/s^2].
    """
    linear, angular = speeds
    if math.isinf(linear) and math.isinf(angular):
        return None
    share = scale if scale > 0.0 else 1.0
    return TipSpeed(robot, share * linear * length_unit, share * angular, acceleration)
