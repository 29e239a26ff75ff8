# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Objectives of the redundancy: functions H(q) to minimise, and their gradients.

Each objective has a section with its formula and source. To add an objective, write its section,
its id, its name in `OBJECTIVE_IDS`, and its branch in :func:`gradient`.
"""

from math import copysign, sqrt

import numpy as np

from dls_ik.core.jit import allocating, kernel
from dls_ik.core.kinematics import forward
from dls_ik.core.linalg import copy, manipulability, svd
from dls_ik.core.task import task_jacobian
from dls_ik.core.types import Array, Chain, GeneralProblem, TaskParams, Workspace

(
    OBJECTIVE_LIMITS,
    OBJECTIVE_CENTRING,
    OBJECTIVE_MANIPULABILITY,
    OBJECTIVE_POSTURE,
    OBJECTIVE_OBSTACLE,
) = range(5)
OBJECTIVE_IDS = {
    "limits": OBJECTIVE_LIMITS,
    "centring": OBJECTIVE_CENTRING,
    "manipulability": OBJECTIVE_MANIPULABILITY,
    "posture": OBJECTIVE_POSTURE,
    "obstacle": OBJECTIVE_OBSTACLE,
}
OBJECTIVE_NAMES = tuple(OBJECTIVE_IDS)
STEEPEST = 1e6  # maximum term and slope of a joint in `limits` and `centring`


# limits -------------------------------------------------------------------------------------------
# Distance from the joint limits:
#
# H = 1/(2n) sum_j [(U_j - L_j)^2 / ((U_j - q_j) (q_j - L_j)) - 4], 0 in the middle of every range
# dH_j = 1/(2n) (U_j - L_j)^2 (2 q_j - U_j - L_j) / ((U_j - q_j)^2 (q_j - L_j)^2)
#
# (Zghal, Dubey & Euler 1990; Chan & Dubey 1995; 1/(2n) and the 4 are added here.) Each term and
# each slope is limited to +-1e6. Beyond a limit the formula is as published: the slope leads back,
# and decreases with the distance. The term of a joint without two limits is 0.


@kernel
def limits_gradient(chain: Chain, q: Array, out: Array) -> float:
    """Write grad H (n,) at q (n,); return H."""
    n, H = q.shape[0], 0.0
    for j in range(n):
        H += limits_value(q[j], chain.lower[j], chain.upper[j], n)
        out[j] = limits_slope(q[j], chain.lower[j], chain.upper[j], n)
    return H


@kernel
def limits_value(q: float, lower: float, upper: float, n: int) -> float:
    """Return the term of one of n joints in H of `limits`."""
    width = upper - lower
    if not 0.0 < width < 1e150:
        return 0.0
    room = (upper - q) / width * ((q - lower) / width)
    if abs(room) <= 0.5 / (n * STEEPEST):
        return copysign(STEEPEST, room)
    return min(0.5 * (1.0 / room - 4.0) / n, STEEPEST)


@kernel
def limits_slope(q: float, lower: float, upper: float, n: int) -> float:
    """Return the derivative of :func:`limits_value` by q [1/rad or 1/m]."""
    width = upper - lower
    if not 0.0 < width < 1e150:
        return 0.0
    room = (upper - q) / width * ((q - lower) / width)
    off = (2.0 * q - upper - lower) / width
    if abs(off) >= 2.0 * n * STEEPEST * room * room * width:
        return copysign(STEEPEST, off)
    return off / (2.0 * n * room * room * width)


# centring -----------------------------------------------------------------------------------------
# Joints close to the middle of their ranges: H = 1/(2n) sum_j ((q_j - mid_j) / half_j)^2.
#
# The criterion of Liegeois 1977. The term of a joint without two limits is 0. The distance relative
# to half the range, and each slope, are limited to +-1e6, for joints with a range close to zero.


@kernel
def centring_gradient(chain: Chain, q: Array, out: Array) -> float:
    """Write grad H (n,) at q (n,); return H."""
    n, H = q.shape[0], 0.0
    for j in range(n):
        half = 0.5 * (chain.upper[j] - chain.lower[j])
        out[j] = 0.0
        if 0.0 < half < 1e150:
            off = (q[j] - 0.5 * (chain.lower[j] + chain.upper[j])) / half
            off = min(max(off, -STEEPEST), STEEPEST)
            H += 0.5 * off * off / n
            out[j] = min(max(off / (n * half), -STEEPEST), STEEPEST)
    return H


# manipulability -----------------------------------------------------------------------------------
# Distance from singularities: H = -w, the manipulability of the scaled task Jacobian.
#
# w = sqrt(det(J J^T)), the product of the singular values (Yoshikawa 1985; Deo & Walker 1993, 4).


GRADIENT_STEP = 1e-5  # [rad or m] step of the central differences


@allocating
def manipulability_gradient(
    chain: Chain, task: TaskParams, T_d: Array, q: Array, out: Array
) -> float:
    """Write grad H (n,) at q (n,) by central differences; return H.

    Args:
        T_d: (k, 4, 4) desired poses, because the task may use the axes of the target.
    """
    near = np.empty(q.shape[0])
    copy(q, near)
    for j in range(q.shape[0]):
        near[j] = q[j] + GRADIENT_STEP
        above = manipulability_value(chain, task, T_d, near)
        near[j] = q[j] - GRADIENT_STEP
        out[j] = (above - manipulability_value(chain, task, T_d, near)) / (2.0 * GRADIENT_STEP)
        near[j] = q[j]
    return manipulability_value(chain, task, T_d, q)


@allocating
def manipulability_value(chain: Chain, task: TaskParams, T_d: Array, q: Array) -> float:
    """Return H of `manipulability` at q (n,)."""
    r, n = task.component.shape[0], q.shape[0]
    axes, T = np.empty((chain.prismatic.shape[0], 2, 3)), np.empty((T_d.shape[0], 3, 4))
    J, s = np.empty((r, n)), np.empty(r)
    forward(chain, q, axes, T)
    task_jacobian(chain, task, T_d, axes, T, np.empty((3, 3)), J)
    svd(J, np.empty((r, r)), s, np.empty((r, n)))
    return -manipulability(s, n)


# posture ------------------------------------------------------------------------------------------
# A reference posture: H = 1/2 |q - reference|^2.


@kernel
def posture_gradient(reference: Array, q: Array, out: Array) -> float:
    """Write grad H (n,) at q (n,); return H."""
    H = 0.0
    for j in range(q.shape[0]):
        out[j] = q[j] - reference[j]
        H += 0.5 * out[j] * out[j]
    return H


# obstacle -----------------------------------------------------------------------------------------
# Distance of links from a point: H = 1/2 sum over links of max(0, 1 - d / influence)^2.
#
# d is the distance of the obstacle from a link: the segment between the origins of two consecutive
# elements of a path, or from the last origin to the tip. The push acts on the closest point of each
# link, as in Maciejewski & Klein 1985. A link shared by several paths counts once for each path.


@allocating
def obstacle_gradient(
    chain: Chain, obstacle: Array, influence: float, axes: Array, T: Array, out: Array
) -> float:
    """Write grad H (n,); return H.

    Args:
        obstacle: (3,) position in the base frame [m].
        influence: Maximum distance at which the obstacle repels [m].
        axes: (m, 2, 3) from :func:`dls_ik.core.kinematics.forward`.
        T: (k, 3, 4) from :func:`dls_ik.core.kinematics.forward`.
        out: (n,) gradient, written.
    """
    out.fill(0.0)
    H = 0.0
    near, push = np.empty(3), np.empty(3)
    for p in range(T.shape[0]):
        first, last = chain.first[p], chain.first[p + 1]
        for k in range(first, last):
            end = axes[k + 1, 1] if k + 1 < last else T[p, :, 3]
            along = _nearest(axes[k, 1], end, obstacle, near)
            depth = _push(near, obstacle, influence, push)
            if depth > 0.0:
                H += 0.5 * depth * depth
                _add_slopes(chain, axes, first, k, along, near, push, out)
    return H


@kernel
def _nearest(start: Array, end: Array, point: Array, near: Array) -> float:
    """Write the point of a segment closest to `point`; return its position, 0 to 1.

    Args:
        start, end: (3,) ends of the segment [m].
        point: (3,) the point [m].
        near: (3,) closest point, written [m].
    """
    length2, along = 0.0, 0.0
    for i in range(3):
        length2 += (end[i] - start[i]) ** 2
        along += (end[i] - start[i]) * (point[i] - start[i])
    along = min(max(along / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
    for i in range(3):
        near[i] = start[i] + along * (end[i] - start[i])
    return along


@kernel
def _push(near: Array, obstacle: Array, influence: float, push: Array) -> float:
    """Write the derivative of the term of a link by its closest point; return 1 - d / influence.

    For d = 0 the derivative does not exist, and `push` (3,) is zero.
    """
    d2 = 0.0
    for i in range(3):
        d2 += (near[i] - obstacle[i]) ** 2
    d = sqrt(d2)
    depth = 1.0 - d / influence
    for i in range(3):
        push[i] = -depth / influence * (near[i] - obstacle[i]) / d if d > 0.0 else 0.0
    return depth


@kernel
def _add_slopes(
    chain: Chain,
    axes: Array,
    first: int,
    last: int,
    along: float,
    near: Array,
    push: Array,
    out: Array,
) -> None:
    """Add push . d near / dq for the elements from `first` to `last`, which moves the link.

    To first order, the motion of the closest point along the link does not matter. The origin of an
    element does not slide with the element: sliding moves only the far end of its own link.
    """
    for k in range(first, last + 1):
        z, origin = axes[k, 0], axes[k, 1]
        x, y, w = near[0] - origin[0], near[1] - origin[1], near[2] - origin[2]
        if chain.prismatic[k]:
            slope = push[0] * z[0] + push[1] * z[1] + push[2] * z[2]
            if k == last:
                slope *= along
        else:
            slope = push[0] * (z[1] * w - z[2] * y)
            slope += push[1] * (z[2] * x - z[0] * w)
            slope += push[2] * (z[0] * y - z[1] * x)
        out[chain.variable[k]] += chain.scale[k] * slope


# All objectives -----------------------------------------------------------------------------------


@kernel
def gradient(
    chain: Chain,
    general: GeneralProblem,
    T_d: Array,
    q: Array,
    work: Workspace,
    out: Array,
) -> float:
    """Write grad H [1/rad or 1/m]; return H.

    Args:
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        work: Holds the kinematics at q.
        out: (n,) gradient, written.
    """
    if general.params.objective == OBJECTIVE_CENTRING:
        return centring_gradient(chain, q, out)
    elif general.params.objective == OBJECTIVE_MANIPULABILITY:
        return manipulability_gradient(chain, general.task, T_d, q, out)
    elif general.params.objective == OBJECTIVE_POSTURE:
        return posture_gradient(general.reference, q, out)
    elif general.params.objective == OBJECTIVE_OBSTACLE:
        return obstacle_gradient(
            chain, general.obstacle, general.params.influence, work.axes, work.T, out
        )
    return limits_gradient(chain, q, out)
