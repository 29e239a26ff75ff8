"""How an arm comes to rest from a command, if no other follows."""

import math

import numpy as np

from dls_ik.core.types import Array

LONGEST = 600.0  # [s] that a stop may take


def cycles_to_stop(
    q: Array, velocity: Array, lower: Array, upper: Array, acceleration: Array, period: float
) -> int:
    """How many cycles a stop takes in which all joints slow down together.

    Without limits of acceleration it is one. Where a joint would pass its position limit it is as
    many as there is room for, at the cost of the acceleration; none if there is no room at all.

    Args:
        q, velocity, lower, upper, acceleration: (n,) [rad or m, s].
        period: of a cycle [s].
    """
    speed = np.abs(velocity)
    slowest = min(float(np.max(speed / acceleration)), LONGEST)
    room = np.where(velocity > 0.0, upper - q, q - lower)
    moving = speed > 0.0
    soonest = float(np.min(2.0 * room[moving] / speed[moving], initial=LONGEST))
    wanted = max(1, math.ceil(slowest / period))
    return max(0, min(wanted, math.floor(soonest / period)))


def stop(
    q: Array, velocity: Array, cycles: int, period: float, elapsed: Array
) -> tuple[Array, ...]:
    """Positions and velocities (k, n) of an even stop, at times (k,) counted in cycles from now.

    The velocity falls linearly to 0, so that the joints keep to a straight line.
    """
    left = np.maximum(0.0, 1.0 - elapsed / cycles) if cycles else np.zeros(len(elapsed))
    way = 0.5 * cycles * period * (1.0 - left * left)
    return q + np.multiply.outer(way, velocity), np.multiply.outer(left, velocity)
