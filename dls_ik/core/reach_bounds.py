# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Proofs by precomputed bounds that no configuration within the joint limits reaches a pose.

Each bound is an interval for a function of the pose: the distance or the height of a point of the
tip relative to a point of the base, the inclination of an axis of the tip, or the moment of this
axis about an axis of the base. The interval contains the values for all configurations. A pose for
which a value is outside the interval is therefore unreachable.

The path to the tip may begin with prismatic joints, for example of a lift or of a mobile base. The
bounds then hold for the path after these joints: the base is free to move along the directions of
the joints, within their limits, and the distance is that from the closest position of the base.

A pose within tolerance of a reachable pose must not be rejected. The intervals are therefore
enlarged by the change of the functions that the tolerances allow: a point of the tip at the
distance r from the tip's origin moves by at most ``position_tolerance + rotation_tolerance * r``,
and a unit vector by ``rotation_tolerance``.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

# Kinds of functions of a pose, for a point b and a unit vector n of the base, and a point p and a
# unit vector a of the tip.
DISTANCE = 0  # distance of the points p and b [m]
HEIGHT = 1  # height of p over b along n, n . (p - b) [m]
LEAN = 2  # cosine of the angle between n and a
MOMENT = 3  # moment of the line along a through p about the line along n through b [m]


# Maximum displacement of a unit vector by errors of a valid rotation matrix.
UNIT_VECTOR_ERROR = 3e-9
SKEWNESS = 1e-8  # allowance for slides that are not exactly perpendicular, per length along a slide


class ReachBounds(NamedTuple):
    """Intervals of k functions of the pose over all configurations.

    Functions whose intervals exclude many poses come first.
    """

    kind: NDArray[np.int64]  # (k,) DISTANCE, HEIGHT, LEAN or MOMENT
    base: Array  # (k, 2, 3) unit vector and point [m], in the base frame
    tip: Array  # (k, 2, 3) unit vector and point [m], in the tip's frame
    radius: Array  # (k,) distance of the tip's point from the tip's origin [m]
    least: Array  # (k,) minimum of the function [m, 1 for LEAN]; -inf if unknown
    largest: Array  # (k,) maximum of the function [m, 1 for LEAN]; +inf if unknown
    slides: Array  # (s, 5) unit vector, minimum and maximum displacement [m] of the base; DISTANCE


@kernel
def beyond_reach(
    reach: ReachBounds, T: Array, position_tolerance: float, rotation_tolerance: float
) -> bool:
    """Return whether a pose is proven unreachable within the joint limits and tolerances.

    If the result is False, the pose may be reachable or not. The result for NaN is False.

    Args:
        reach: The bounds.
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
            for i in range(reach.slides.shape[0]):
                nx, ny, nz = reach.slides[i, 0], reach.slides[i, 1], reach.slides[i, 2]
                along = nx * x + ny * y + nz * z
                tolerance += SKEWNESS * abs(along)
                along = min(max(along, reach.slides[i, 3]), reach.slides[i, 4])
                x, y, z = x - along * nx, y - along * ny, z - along * nz
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
    """Return the result of :func:`beyond_reach`; this kernel is the one that Python calls."""
    return beyond_reach(reach, T, position_tolerance, rotation_tolerance)


@kernel
def rows_beyond_reach(
    reach: ReachBounds,
    Ts: Array,
    position_tolerance: float,
    rotation_tolerance: float,
    beyond: NDArray[np.bool_],
) -> None:
    """Write the result of :func:`beyond_reach` for each of b poses.

    Args:
        reach: The bounds.
        Ts: (b, 4, 4) ``T_base_tip`` of each pose.
        position_tolerance: Tolerance of the position [m].
        rotation_tolerance: Tolerance of the rotation [rad].
        beyond: (b,) results, written.
    """
    for i in range(Ts.shape[0]):
        beyond[i] = beyond_reach(reach, Ts[i], position_tolerance, rotation_tolerance)
