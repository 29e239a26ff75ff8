# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Speed limits of the tip, checked at every moment of a cycle and of the stop that may follow."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dls_ik import compat
from dls_ik.core.tip_speed import speed_bound
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo.knots import Knots, cycle_knots, stop_knots
from dls_ik.servo.motion import Motion, StopPath

TARGET_SHARE = 0.998  # a step that is too fast is slowed to this share of the limits
MAX_SHARE = 0.9995  # accepted share of the limits; linear interpolation of a stop may add the rest
BOUND_TOLERANCE = 2e-4  # largest excess of the bound over the true speed, as a share of the limits


class TipSpeed:
    """Linear and angular speed limits of a tip, which a guard checks for each command.

    Args:
        robot: A robot with one tip.
        linear: Limit in the robot's unit of length per second; infinite without a limit.
        angular: Limit [rad/s]; infinite without a limit.
        acceleration: (n,) acceleration limits of the joints [rad/s^2 or m/s^2].
    """

    def __init__(
        self, robot: RobotModel, linear: float, angular: float, acceleration: Array
    ) -> None:
        self._robot, self._linear, self._angular = robot, linear, angular
        self._limits = np.array([linear, angular])
        self._acceleration, self._is_smooth = acceleration, bool(np.isfinite(acceleration).any())
        self._levers = lever_bounds(robot)
        self._tolerances = np.array([TARGET_SHARE, BOUND_TOLERANCE])
        self._speed_bound = compat.EntryPoint(speed_bound)

    def __call__(self, motion: Motion, stop: StopPath) -> bool:
        """Return whether the tip keeps its speed limits in a cycle and in the stop after it.

        Args:
            motion: State of motion at the end of the cycle, with the path during the cycle.
            stop: Stop that starts at the end of the cycle.
        """
        return self.speed_share(motion, stop) <= MAX_SHARE

    def share(self, motion: Motion, stop: StopPath) -> float:
        """Return the factor, at most 1, by which joint velocities must be reduced in a cycle.

        With the reduced velocities the tip keeps its speed limits in the cycle and in the stop
        after it.

        Args:
            motion: State of motion at the end of the cycle, with the path during the cycle.
            stop: Stop that starts at the end of the cycle.
        """
        speed = self.speed_share(motion, stop)
        return 1.0 if speed <= MAX_SHARE else TARGET_SHARE / speed

    def speed_share(self, motion: Motion, stop: StopPath) -> float:
        """Return an upper bound on the speed of the tip in a cycle and in the stop after it.

        The bound is a share of the limits. It is valid both for a robot controller that joins the
        knots by cubics, and for a controller that interpolates linearly during the cycle.

        Args:
            motion: State of motion at the end of the cycle, with the path during the cycle.
            stop: Stop that starts at the end of the cycle.
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
        args = (self._robot.chain, self._levers, self._limits, self._tolerances, times, states)
        return float(self._speed_bound(*args))

    def step_share(self, q_a: Array, q_b: Array, dt: float) -> float:
        """Return the factor, at most 1, by which a joint step must be shortened to the limits.

        The mean speed of the tip in the shortened step keeps the limits.

        Args:
            q_a: (n,) start of the step [rad or m].
            q_b: (n,) end of the step [rad or m].
            dt: Duration of the step [s].
        """
        speed = float(self._mean_shares(np.array([q_a, q_b]), np.array([dt]))[0])
        return min(1.0, TARGET_SHARE / speed) if speed > TARGET_SHARE else 1.0

    def twist_share(self, V: Array) -> float:
        """Return the factor, at most 1, by which a twist V (6,) must be reduced to the limits."""
        speed = max(
            float(np.linalg.norm(V[:3])) / self._linear,
            float(np.linalg.norm(V[3:])) / self._angular,
        )
        return 1.0 / max(speed, 1.0)

    def path_shares(self, q: Array, slopes: Array) -> Array:
        """Return the speeds (m,) of the tip as shares of the limits.

        Args:
            q: (m, n) joint positions [rad or m].
            slopes: (m, n) joint velocities, or derivatives by the parameter of a path.
        """
        V = np.einsum("mij,mj->mi", self._robot.jacobian(q), slopes)
        linear, angular = (np.linalg.norm(part, axis=1) for part in (V[:, :3], V[:, 3:]))
        return np.asarray(np.maximum(linear / self._linear, angular / self._angular))

    def shortest(self, q: Array) -> float:
        """Return the shortest duration [s] that is sufficient for each of m - 1 joint steps.

        A duration is sufficient for a step if the mean speed of the tip keeps the limits.

        Args:
            q: (m, n) configurations at the ends of the steps [rad or m].
        """
        return float(self._mean_shares(q, np.full(len(q) - 1, TARGET_SHARE)).max())

    def _mean_shares(self, q: Array, dt: Array) -> Array:
        """Return the mean tip speed in each of m - 1 steps (m - 1,), as a share of the limits.

        Args:
            q: (m, n) configurations at the ends of the steps [rad or m].
            dt: (m - 1,) durations of the steps [s].
        """
        T = self._robot.fk(q)
        distance = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1)
        difference = np.linalg.norm(np.diff(T[:, :3, :3], axis=0), axis=(1, 2))
        # The norm of R_a - R_b is 2 sqrt(2) times the sine of half the angle between them.
        angle = 2.0 * np.arcsin(np.minimum(difference / (2.0 * math.sqrt(2.0)), 1.0))
        shares: Array = np.maximum(distance / self._linear, angle / self._angular) / dt
        return shares


class TipSpeeds(TipSpeed):
    """Equal speed limits of several tips, each tip checked separately.

    Args:
        tips: Limits of each tip.
    """

    def __init__(self, tips: Sequence[TipSpeed]) -> None:
        self._tips = tuple(tips)

    def speed_share(self, motion: Motion, stop: StopPath) -> float:
        """Return the largest bound of all tips, as :meth:`TipSpeed.speed_share`."""
        return max(tip.speed_share(motion, stop) for tip in self._tips)

    def step_share(self, q_a: Array, q_b: Array, dt: float) -> float:
        """Return the smallest factor of all tips, as :meth:`TipSpeed.step_share`."""
        return min(tip.step_share(q_a, q_b, dt) for tip in self._tips)

    def twist_share(self, V: Array) -> float:
        """Return the factor for the twist V (6,) of one of the tips."""
        return self._tips[0].twist_share(V)

    def path_shares(self, q: Array, slopes: Array) -> Array:
        """Return the largest shares of all tips, as :meth:`TipSpeed.path_shares`."""
        return np.asarray(np.max([tip.path_shares(q, slopes) for tip in self._tips], axis=0))

    def shortest(self, q: Array) -> float:
        """Return the longest duration of all tips, as :meth:`TipSpeed.shortest`."""
        return max(tip.shortest(q) for tip in self._tips)


def _with_only_tip(robot: RobotModel, k: int) -> RobotModel:
    """Return a robot with the same joints, and only the tip number k of its tips."""
    chain = robot.chain
    start, end = int(chain.first[k]), int(chain.first[k + 1])
    path = chain._replace(
        fixed=chain.fixed[start + k : end + k + 1].copy(),
        first=np.array([0, end - start]),
        prismatic=chain.prismatic[start:end].copy(),
        variable=chain.variable[start:end].copy(),
        scale=chain.scale[start:end].copy(),
        offset=chain.offset[start:end].copy(),
    )
    return replace(robot, tips=(robot.tips[k],), offsets=robot.offsets[k : k + 1], chain=path)


def lever_bounds(robot: RobotModel) -> Array:
    """Return upper bounds on the speed of the tip per unit velocity of each joint.

    Returns:
        (2, m) for the m moving elements of the chain: bounds on the linear speed [m/rad or m/m] and
        on the angular speed [rad/rad or rad/m].
    """
    chain = robot.chain
    ends = np.array(robot.finite_limits())[:, chain.variable] * chain.scale + chain.offset
    slides = np.where(chain.prismatic, np.abs(ends).max(axis=0), 0.0)
    # (m,) length of the link after each element
    links = np.linalg.norm(chain.fixed[1:, :, 3], axis=1)
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
    """Return the speed limits of the tip for the options; None if neither speed is limited.

    Args:
        robot: Robot, each of whose tips keeps the limits.
        speeds: Linear limit [m/s] and angular limit [rad/s]; infinite without a limit.
        scale: Share of the limits that motion uses. 0 counts as 1, because with 0 the command
            always slows down.
        length_unit: Length units of the robot per metre.
        acceleration: (n,) acceleration limits of the joints [rad/s^2 or m/s^2].
    """
    linear, angular = speeds
    if math.isinf(linear) and math.isinf(angular):
        return None
    share = scale if scale > 0.0 else 1.0
    limits = share * linear * length_unit, share * angular, acceleration
    if len(robot.tips) == 1:
        return TipSpeed(robot, *limits)
    return TipSpeeds([TipSpeed(_with_only_tip(robot, k), *limits) for k in range(len(robot.tips))])
