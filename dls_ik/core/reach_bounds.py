"""Poses that no configuration within the limits reaches, proved by bounds found beforehand.

Each bound is on a number read off the pose alone: the distance or the height of a point of the tip
from a point of the base, how an axis of the tip leans, how it passes an axis of the base. A pose
whose number is outside of what all configurations give is beyond reach.

So that a pose within tolerance of a reachable one is not refused, a bound gives way by what the
tolerances can change its number by: a point of the tip at r from the tip's origin moves by at most
``position_tolerance + rotation_tolerance * |r|``, a unit vector by ``rotation_tolerance``.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel, spliced
from dls_ik.core.types import Array

DISTANCE = 0  # of the points [m]
HEIGHT = 1  # of the tip's point above the base's, along the base's unit vector [m]
LEAN = 2  # cosine of the angle between the unit vectors
MOMENT = 3  # n . ((p - b) x a) of the lines along n through b and along a through p [m]


ROUGHNESS = 3e-9  # how far a rotation matrix that counts as one may take a unit vector


class Reach(NamedTuple):
    """What k numbers of a pose are between, whatever the configuration; most telling first."""

    kind: NDArray[np.int64]  # (k,)
    base: Array  # (k, 2, 3) unit vector and point [m], in the base frame
    tip: Array  # (k, 2, 3) unit vector and point [m], in the tip's frame
    radius: Array  # (k,) of the tip's point from the tip's origin [m]
    least: Array  # (k,) [m], or 1 for LEAN; -inf where nothing is known
    largest: Array  # (k,) likewise, +inf


@spliced
def beyond_reach(
    reach: Reach, T: Array, position_tolerance: float, rotation_tolerance: float
) -> bool:
    """Whether no configuration within the limits brings the tip within tolerance of a pose.

    False says nothing. NaN is not refused.

    Args:
        T: (4, 4) or (3, 4) ``T_base_tip``.
        position_tolerance: [m], rotation_tolerance: [rad].
    """
    turn = rotation_tolerance + ROUGHNESS
    beyond = False
    for k in range(reach.kind.shape[0]):
        kind, tip, base = reach.kind[k], reach.tip, reach.base
        number, slack = 0.0, turn
        x = y = z = ax = ay = az = 0.0
        if kind != LEAN:
            rx, ry, rz = tip[k, 1, 0], tip[k, 1, 1], tip[k, 1, 2]
            x = T[0, 0] * rx + T[0, 1] * ry + T[0, 2] * rz + T[0, 3] - base[k, 1, 0]
            y = T[1, 0] * rx + T[1, 1] * ry + T[1, 2] * rz + T[1, 3] - base[k, 1, 1]
            z = T[2, 0] * rx + T[2, 1] * ry + T[2, 2] * rz + T[2, 3] - base[k, 1, 2]
            slack = position_tolerance
            if reach.radius[k] > 0.0:
                slack += turn * reach.radius[k]
        if kind >= LEAN:
            rx, ry, rz = tip[k, 0, 0], tip[k, 0, 1], tip[k, 0, 2]
            ax = T[0, 0] * rx + T[0, 1] * ry + T[0, 2] * rz
            ay = T[1, 0] * rx + T[1, 1] * ry + T[1, 2] * rz
            az = T[2, 0] * rx + T[2, 1] * ry + T[2, 2] * rz
        if kind == DISTANCE:
            number = sqrt(x * x + y * y + z * z)
        elif kind == HEIGHT:
            number = base[k, 0, 0] * x + base[k, 0, 1] * y + base[k, 0, 2] * z
        elif kind == LEAN:
            number = base[k, 0, 0] * ax + base[k, 0, 1] * ay + base[k, 0, 2] * az
        else:
            number = base[k, 0, 0] * (y * az - z * ay) + base[k, 0, 1] * (z * ax - x * az)
            number += base[k, 0, 2] * (x * ay - y * ax)
            slack += turn * sqrt(x * x + y * y + z * z)
        if number < reach.least[k] - slack or number > reach.largest[k] + slack:
            beyond = True
            break
    return beyond


@kernel
def is_beyond_reach(
    reach: Reach, T: Array, position_tolerance: float, rotation_tolerance: float
) -> bool:
    """:func:`beyond_reach` as an entry point from Python."""
    return beyond_reach(reach, T, position_tolerance, rotation_tolerance)


@kernel
def rows_beyond_reach(
    reach: Reach,
    Ts: Array,
    position_tolerance: float,
    rotation_tolerance: float,
    beyond: NDArray[np.bool_],
) -> None:
    """Write :func:`beyond_reach` of each of Ts (b, 4, 4) to `beyond` (b,)."""
    for i in range(Ts.shape[0]):
        beyond[i] = beyond_reach(reach, Ts[i], position_tolerance, rotation_tolerance)
