# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Goal positions of position-controlled servos, such as Dynamixels, in whole ticks.

Matos 2016 sends joint positions to the servos of the DASL arm as `goal position`: the angle divided
by the resolution of the servo, which is 0.088 or 0.29 degrees per tick. Here each servo also has an
offset (the tick of joint position 0) and a direction. Goal positions are rounded to the closest
tick within the joint limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.text import listing

MAX_TICK = 2**31 - 1  # largest goal position in a message (int32)
TICK_ROUNDING = 1e-9  # [ticks] rounding error by which a goal position may exceed a joint limit


class TickScale(NamedTuple):
    """Conversion between joint positions and goal positions of n servos."""

    resolution: Array  # (n,) joint motion of a tick [rad or m]
    offset: Array  # (n,) goal position at joint position 0 [ticks]
    direction: Array  # (n,) 1, or -1 if goal positions decrease as joint positions increase
    lowest: NDArray[np.int64]  # (n,) smallest goal position within the joint limits [ticks]
    highest: NDArray[np.int64]  # (n,) largest goal position within the joint limits [ticks]

    def ticks(self, q: Array) -> NDArray[np.int64]:
        """Return the goal positions (..., n) closest to joint positions (..., n) [rad or m].

        Goal positions are within the joint limits if q is. Otherwise they are not farther outside
        than q, so that an arm that starts beyond a limit returns at the speed of its command.
        """
        exact = self.direction * q / self.resolution + self.offset
        low = np.minimum(self.lowest, np.ceil(exact - TICK_ROUNDING))
        high = np.maximum(self.highest, np.floor(exact + TICK_ROUNDING))
        goals = np.clip(np.rint(exact), low, high)
        return np.asarray(np.clip(goals, -MAX_TICK, MAX_TICK), np.int64)

    def positions(self, ticks: NDArray[np.int64]) -> Array:
        """Return the joint positions (..., n) [rad or m] of goal positions (..., n) [ticks]."""
        return np.asarray(self.direction * (ticks - self.offset) * self.resolution)


def tick_scale(
    names: Sequence[str],
    limits: tuple[Array, Array],
    resolution: Sequence[float],
    offset: Sequence[float] = (),
    direction: Sequence[float] = (),
) -> TickScale:
    """Return the conversion between positions of joints and goal positions of their servos.

    Args:
        names: (n,) names of the joints, for messages.
        limits: (n,) lower and (n,) upper joint limits [rad or m]; infinite without a limit.
        resolution: Joint motion per tick [rad or m]; one number for all servos, or (n,).
        offset: Goal position at joint position 0 [ticks]; one number, (n,), or empty for 0.
        direction: 1, or -1 if goal positions decrease as joint positions increase; one number,
            (n,), or empty for 1.

    Raises:
        OptionError: If a list has a length other than 1 and n, if a value is not valid, or if the
            limits of a joint contain no goal position, or goal positions beyond MAX_TICK.
    """
    n = len(names)
    per_tick = _per_servo("servo_resolution", resolution, n, names)
    zero = _per_servo("servo_offset", offset if len(offset) else (0.0,), n, names)
    sign = _per_servo("servo_direction", direction if len(direction) else (1.0,), n, names)
    check_servo_values(per_tick.tolist(), sign.tolist())
    ends = np.sort(np.stack([sign * limit / per_tick + zero for limit in limits]), axis=0)
    low, high = np.ceil(ends[0] - TICK_ROUNDING), np.floor(ends[1] + TICK_ROUNDING)
    for name, lowest, highest in zip(names, low, high, strict=True):
        if lowest > highest:
            raise OptionError(
                f"no goal position (whole tick) is within the limits of {name}; reduce "
                "servo_resolution, or change servo_offset"
            )
        largest = max((abs(end) for end in (lowest, highest) if np.isfinite(end)), default=0.0)
        if largest > MAX_TICK:
            raise OptionError(
                f"the goal positions of {name} reach {largest:.3g}, beyond {MAX_TICK}; give "
                "servo_resolution in rad or m per tick, and servo_offset in ticks"
            )
    bounds = (np.clip(end, -MAX_TICK, MAX_TICK).astype(np.int64) for end in (low, high))
    return TickScale(per_tick, zero, sign, *bounds)


def check_servo_values(resolution: Sequence[float], direction: Sequence[float]) -> None:
    """Check the resolutions and directions of servos.

    Args:
        resolution: Joint motion per tick [rad or m].
        direction: 1 or -1; may be empty.

    Raises:
        OptionError: If a resolution is not positive or not finite, or a direction is not 1 or -1.
    """
    if not resolution or not all(0.0 < value < np.inf for value in resolution):
        raise OptionError(
            "servo_resolution must be positive [rad or m per tick], such as 0.001534 for 4096 "
            f"ticks per turn; got {', '.join(f'{value:g}' for value in resolution) or 'none'}"
        )
    if not set(direction) <= {1.0, -1.0}:
        raise OptionError(
            "servo_direction must contain 1 and -1 only; got "
            f"{', '.join(f'{value:g}' for value in direction)}"
        )


def _per_servo(name: str, given: Sequence[float], n: int, joints: Sequence[str]) -> Array:
    """Return one number for each of n servos.

    Raises:
        OptionError: If the number of values is neither 1 nor n.
    """
    if len(given) not in (1, n):
        raise OptionError(
            f"{name} has {len(given)} numbers for {n} joints ({listing(joints)}); give one number "
            "for all joints, or one for each joint in the order of output_joints"
        )
    return np.array(np.broadcast_to(np.asarray(given, float), n))
