"""Poses that no configuration within the limits reaches, proved by bounds found beforehand.

Each bound is on a number read off the pose alone: the distance between a point of the base and one
of the tip, the height of a point of the tip, how the first and the last axis lie to each other.
A pose whose number is outside of what all configurations give is beyond reach. So that a pose
within tolerance of a reachable one is not refused, a bound gives way by what the tolerances can
change its number by: a point of the tip at r from its origin moves by at most
``position_tolerance + rotation_tolerance * |r|``.
"""

from math import sqrt
from typing import NamedTuple

from dls_ik.core.jit import kernel, spliced
from dls_ik.core.types import Array


class Reach(NamedTuple):
    """Bounds on k distances and h heights, and on the two axes; in the frames of base and tip."""

    base_point: Array  # (k, 3) [m]
    tip_point: Array  # (k, 3) [m]
    distance: Array  # (k, 2) least and largest [m]
    direction: Array  # (h, 3) unit vector of the base
    high_point: Array  # (h, 3) of the tip [m]
    height: Array  # (h, 2) least and largest along the direction [m]
    first_axis: Array  # (2, 3) unit vector of the base, and a point [m]
    last_axis: Array  # (2, 3) unit vector of the tip, and a point [m]
    cosine: Array  # (2,) of the angle between the axes
    moment: Array  # (2,) n . ((p - b) x a) of the axes n through b and a through p [m]


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
    return (
        _distance_is_beyond(reach, T, position_tolerance, rotation_tolerance)
        or _height_is_beyond(reach, T, position_tolerance, rotation_tolerance)
        or _axes_are_beyond(reach, T, position_tolerance, rotation_tolerance)
    )


@kernel
def is_beyond_reach(
    reach: Reach, T: Array, position_tolerance: float, rotation_tolerance: float
) -> bool:
    """:func:`beyond_reach` as an entry point from Python."""
    return beyond_reach(reach, T, position_tolerance, rotation_tolerance)


@spliced
def _distance_is_beyond(reach: Reach, T: Array, position: float, rotation: float) -> bool:
    beyond = False
    for k in range(reach.distance.shape[0]):
        rx, ry, rz = reach.tip_point[k, 0], reach.tip_point[k, 1], reach.tip_point[k, 2]
        x = T[0, 0] * rx + T[0, 1] * ry + T[0, 2] * rz + T[0, 3] - reach.base_point[k, 0]
        y = T[1, 0] * rx + T[1, 1] * ry + T[1, 2] * rz + T[1, 3] - reach.base_point[k, 1]
        z = T[2, 0] * rx + T[2, 1] * ry + T[2, 2] * rz + T[2, 3] - reach.base_point[k, 2]
        d = sqrt(x * x + y * y + z * z)
        slack = position + rotation * sqrt(rx * rx + ry * ry + rz * rz)
        if d < reach.distance[k, 0] - slack or d > reach.distance[k, 1] + slack:
            beyond = True
            break
    return beyond


@spliced
def _height_is_beyond(reach: Reach, T: Array, position: float, rotation: float) -> bool:
    beyond = False
    for k in range(reach.height.shape[0]):
        rx, ry, rz = reach.high_point[k, 0], reach.high_point[k, 1], reach.high_point[k, 2]
        h = 0.0
        for i in range(3):
            p = T[i, 0] * rx + T[i, 1] * ry + T[i, 2] * rz + T[i, 3]
            h += reach.direction[k, i] * p
        slack = position + rotation * sqrt(rx * rx + ry * ry + rz * rz)
        if h < reach.height[k, 0] - slack or h > reach.height[k, 1] + slack:
            beyond = True
            break
    return beyond


@spliced
def _axes_are_beyond(reach: Reach, T: Array, position: float, rotation: float) -> bool:
    """The moment of the axes gives way by the arm of the last one too, which turns about it."""
    nx, ny, nz = reach.first_axis[0, 0], reach.first_axis[0, 1], reach.first_axis[0, 2]
    bx, by, bz = reach.first_axis[1, 0], reach.first_axis[1, 1], reach.first_axis[1, 2]
    ux, uy, uz = reach.last_axis[0, 0], reach.last_axis[0, 1], reach.last_axis[0, 2]
    rx, ry, rz = reach.last_axis[1, 0], reach.last_axis[1, 1], reach.last_axis[1, 2]
    ax = T[0, 0] * ux + T[0, 1] * uy + T[0, 2] * uz
    ay = T[1, 0] * ux + T[1, 1] * uy + T[1, 2] * uz
    az = T[2, 0] * ux + T[2, 1] * uy + T[2, 2] * uz
    cosine = nx * ax + ny * ay + nz * az
    if cosine < reach.cosine[0] - rotation or cosine > reach.cosine[1] + rotation:
        return True
    x = T[0, 0] * rx + T[0, 1] * ry + T[0, 2] * rz + T[0, 3] - bx
    y = T[1, 0] * rx + T[1, 1] * ry + T[1, 2] * rz + T[1, 3] - by
    z = T[2, 0] * rx + T[2, 1] * ry + T[2, 2] * rz + T[2, 3] - bz
    moment = nx * (y * az - z * ay) + ny * (z * ax - x * az) + nz * (x * ay - y * ax)
    arm = sqrt(x * x + y * y + z * z) + sqrt(rx * rx + ry * ry + rz * rz)
    slack = position + rotation * arm
    return moment < reach.moment[0] - slack or moment > reach.moment[1] + slack
