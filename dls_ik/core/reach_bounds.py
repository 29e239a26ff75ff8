# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Proofs by precomputed bounds that no configuration within the limits reaches a pose.

Each bound limits a function of the pose alone: the distance or the height of a point of the tip
relative to a point of the base, the inclination of an axis of the tip, or the moment of this axis
about an axis of the base. A pose with a value outside the interval of all configurations is
unreachable.

Poses within tolerance of a reachable pose must not be rejected. The bounds are therefore relaxed by
the change that the tolerances allow: a point of the tip at r from the tip's origin moves by at most
``position_tolerance + rotation_tolerance * |r|``, a unit vector by ``rotation_tolerance``.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

DISTANCE = 0  # distance of the two points [m]
HEIGHT = 1  # height of the tip's point over the base's, along the base's unit vector [m]
LEAN = 2  # cosine of the angle between the unit vectors
MOMENT = 3  # n . ((p - b) x a) of the lines along n through b and along a through p [m]


# largest displacement of a unit vector by errors of a valid rotation matrix
UNIT_VECTOR_ERROR = 3e-9


class ReachBounds(NamedTuple):
    """Intervals of k functions of the pose over all configurations; the most selective first."""

    kind: NDArray[np.int64]  # (k,) DISTANCE, HEIGHT, LEAN or MOMENT
    base: Array  # (k, 2, 3) unit vector and point [m], in the base frame
    tip: Array  # (k, 2, 3) unit vector and point [m], in the tip's frame
    radius: Array  # (k,) distance of the tip's point from the tip's origin [m]
    least: Array  # (k,) minimum of the function [m, 1 for LEAN]; -inf if unknown
    largest: Array  # (k,) maximum of the function [m, 1 for LEAN]; +inf if unknown


@kernel
def beyond_reach(
    reach: ReachBounds, T: Array, position_tolerance: float, rotation_tolerance: float
) -> bool:
    """Return whether a pose is proven unreachable within the limits and tolerances.

    False proves nothing. The result for NaN is False.

    Args:
        T: (4, 4) or (3, 4) ``T_base_tip``.
        position_tolerance: Tolerance of the position [m].
        rotation_tolerance: Tolerance of the rotation [rad].
    """
    turn = rotation_tolerance + UNIT_VECTOR_ERROR
    beyond = False
    for k in range(reach.kind.shape[0]):
        kind, tip, base = reach.kind[k], reach.tip, reach.base
        number, tolerance = 0.0, turn
        x = y = z = ax = ay = az = 0.0
        # Compute the tip's point relative to the base's, and the tip's axis, in the base frame.
        if kind != LEAN:
            rx, ry, rz = tip[k, 1, 0], tip[k, 1, 1], tip[k, 1, 2]
            x = T[0, 0] * rx + T[0, 1] * ry + T[0, 2] * rz + T[0, 3] - base[k, 1, 0]
            y = T[1, 0] * rx + T[1, 1] * ry + T[1, 2] * rz + T[1, 3] - base[k, 1, 1]
            z = T[2, 0] * rx + T[2, 1] * ry + T[2, 2] * rz + T[2, 3] - base[k, 1, 2]
            tolerance = position_tolerance
            if reach.radius[k] > 0.0:
                tolerance += turn * reach.radius[k]
        if kind >= LEAN:
            rx, ry, rz = tip[k, 0, 0], tip[k, 0, 1], tip[k, 0, 2]
            ax = T[0, 0] * rx + T[0, 1] * ry + T[0, 2] * rz
            ay = T[1, 0] * rx + T[1, 1] * ry + T[1, 2] * rz
            az = T[2, 0] * rx + T[2, 1] * ry + T[2, 2] * rz
        # Compute the value of the function, and compare it with the interval.
        if kind == DISTANCE:
            number = sqrt(x * x + y * y + z * z)
        elif kind == HEIGHT:
            number = base[k, 0, 0] * x + base[k, 0, 1] * y + base[k, 0, 2] * z
        elif kind == LEAN:
            number = base[k, 0, 0] * ax + base[k, 0, 1] * ay + base[k, 0, 2] * az
        else:
            number = base[k, 0, 0] * (y * az - z * ay) + base[k, 0, 1] * (z * ax - x * az)
            number += base[k, 0, 2] * (x * ay - y * ax)
            tolerance += turn * sqrt(x * x + y * y + z * z)
        if number < reach.least[k] - tolerance or number > reach.largest[k] + tolerance:
            beyond = True
            break
    return beyond


@kernel
def is_beyond_reach(
    reach: ReachBounds, T: Array, position_tolerance: float, rotation_tolerance: float
) -> bool:
    """Call :func:`beyond_reach`; entry point from Python."""
    return beyond_reach(reach, T, position_tolerance, rotation_tolerance)


@kernel
def rows_beyond_reach(
    reach: ReachBounds,
    Ts: Array,
    position_tolerance: float,
    rotation_tolerance: float,
    beyond: NDArray[np.bool_],
) -> None:
    """Write the result of :func:`beyond_reach` for each pose of Ts (b, 4, 4) to `beyond` (b,)."""
    for i in range(Ts.shape[0]):
        beyond[i] = beyond_reach(reach, Ts[i], position_tolerance, rotation_tolerance)
