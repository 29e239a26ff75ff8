# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Objectives: functions H(q) that redundant arms minimise, and the gradients of H.

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
STEEPEST = 1e6  # maximum absolute term of H, and derivative, of a joint in `limits` and `centring`


# limits -------------------------------------------------------------------------------------------
# Distance from the joint limits L_j and U_j:
#
# H = 1/(2n) sum_j [(U_j - L_j)^2 / ((U_j - q_j) (q_j - L_j)) - 4]
# dH/dq_j = 1/(2n) (U_j - L_j)^2 (2 q_j - U_j - L_j) / ((U_j - q_j)^2 (q_j - L_j)^2)
#
# The source is Zghal, Dubey & Euler 1990 and Chan & Dubey 1995; the factor 1/(2n) and the term -4
# are added here, so that H is 0 if all joints are in mid-range. Each term of the sum and each
# derivative is limited to +-1e6. The formula is also used beyond a limit: there the gradient step
# leads back to the limit, and its length decreases with the distance from the limit. The term of a
# joint without two limits is 0.


@kernel
def limits_gradient(chain: Chain, q: Array, out: Array) -> float:
    """Write the gradient of the objective `limits`; return its value H.

    H grows when joints approach their limits.

    Args:
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        out: (n,) gradient, written [1/rad or 1/m].
    """
    n, H = q.shape[0], 0.0
    for j in range(n):
        H += limits_value(q[j], chain.lower[j], chain.upper[j], n)
        out[j] = limits_slope(q[j], chain.lower[j], chain.upper[j], n)
    return H


@kernel
def limits_value(q: float, lower: float, upper: float, n: int) -> float:
    """Return the term of one joint in the sum of the objective `limits`.

    Args:
        q: Joint position [rad or m].
        lower, upper: Limits [rad or m].
        n: Number of joints of the arm, which is in the denominator of the term.
    """
    width = upper - lower
    if not 0.0 < width < 1e150:
        return 0.0
    product = (upper - q) / width * ((q - lower) / width)
    if abs(product) <= 0.5 / (n * STEEPEST):
        return copysign(STEEPEST, product)
    return min(0.5 * (1.0 / product - 4.0) / n, STEEPEST)


@kernel
def limits_slope(q: float, lower: float, upper: float, n: int) -> float:
    """Return the derivative of :func:`limits_value` by q [1/rad or 1/m], for equal arguments."""
    width = upper - lower
    if not 0.0 < width < 1e150:
        return 0.0
    product = (upper - q) / width * ((q - lower) / width)
    off = (2.0 * q - upper - lower) / width
    if abs(off) >= 2.0 * n * STEEPEST * product * product * width:
        return copysign(STEEPEST, off)
    return off / (2.0 * n * product * product * width)


# centring -----------------------------------------------------------------------------------------
# Distance from mid-range: H = 1/(2n) sum_j ((q_j - mid_j) / half_j)^2, with mid_j the middle and
# half_j half the width of the range of joint j (Liegeois 1977).
#
# The term of a joint without two limits is 0. The quotient and each derivative are limited to
# +-1e6, because the range of a joint may be almost zero.


@kernel
def centring_gradient(chain: Chain, q: Array, out: Array) -> float:
    """Write the gradient of the objective `centring`; return its value H.

    H grows with the distance of the joints from the middle of their ranges.

    Args:
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        out: (n,) gradient, written [1/rad or 1/m].
    """
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
# Distance from singularities: H = -w, with the manipulability w = sqrt(det(J J^T)) of the scaled
# task Jacobian J. w is the product of the singular values of J (Yoshikawa 1985; Deo & Walker 1993,
# section 4).


GRADIENT_STEP = 1e-5  # [rad or m] step of the central differences


@allocating
def manipulability_gradient(
    chain: Chain, task: TaskParams, T_d: Array, q: Array, out: Array
) -> float:
    """Write the gradient of the objective `manipulability`; return its value H = -w.

    w is the manipulability (product of the singular values) of the Jacobian of the scaled error.
    The gradient is computed by central differences.

    Args:
        chain: The chain of the arm.
        task: The task, whose Jacobian is used.
        T_d: (k, 4, 4) desired poses; the Jacobian depends on them if components of the error are
            along the axes of the target.
        q: (n,) joint positions [rad or m].
        out: (n,) gradient, written [1/rad or 1/m].
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
    """Return the objective H = -w of `manipulability`.

    The arguments are those of :func:`manipulability_gradient`.
    """
    r, n = task.component.shape[0], q.shape[0]
    axes, T = np.empty((chain.prismatic.shape[0], 2, 3)), np.empty((T_d.shape[0], 3, 4))
    J, s = np.empty((r, n)), np.empty(r)
    forward(chain, q, axes, T)
    task_jacobian(chain, task, T_d, axes, T, np.empty((3, 3)), J)
    svd(J, np.empty((r, r)), s, np.empty((r, n)))
    return -manipulability(s, n)


# posture ------------------------------------------------------------------------------------------
# Distance from reference joint positions: H = 1/2 |q - reference|^2.


@kernel
def posture_gradient(reference: Array, q: Array, out: Array) -> float:
    """Write the gradient of the objective `posture`; return its value H.

    H grows with the distance of the joint positions from reference joint positions.

    Args:
        reference: (n,) reference joint positions [rad or m].
        q: (n,) joint positions [rad or m].
        out: (n,) gradient, written [rad or m].
    """
    H = 0.0
    for j in range(q.shape[0]):
        out[j] = q[j] - reference[j]
        H += 0.5 * out[j] * out[j]
    return H


# obstacle -----------------------------------------------------------------------------------------
# Distance of links from an obstacle, which is a point: H is the sum of 1/2 max(0, 1 - d /
# influence)^2 over all links, with d the distance of the obstacle from a link.
#
# A link is the segment between the origins of two consecutive elements of a path, or between the
# last origin and the tip. The gradient of H pushes the closest point of each link away from the
# obstacle, as in Maciejewski & Klein 1985. A link that several paths share counts once for each
# path.


@allocating
def obstacle_gradient(
    chain: Chain, obstacle: Array, influence: float, axes: Array, T: Array, out: Array
) -> float:
    """Write the gradient of the objective `obstacle`, a penalty close to a point; return H.

    Args:
        chain: The chain of the arm.
        obstacle: (3,) position of the obstacle in the base frame [m].
        influence: Maximum distance at which the obstacle repels links [m].
        axes: (m, 2, 3) axes of the elements from :func:`dls_ik.core.kinematics.forward`.
        T: (k, 3, 4) poses of the tips from :func:`dls_ik.core.kinematics.forward`.
        out: (n,) gradient, written [1/rad or 1/m].
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
    """Find the point of a segment that is closest to a given point.

    Args:
        start, end: (3,) ends of the segment [m].
        point: (3,) the given point [m].
        near: (3,) closest point of the segment, written [m].

    Returns:
        The position of the closest point on the segment, from 0 at the start to 1 at the end.
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
    """Return x = 1 - d / influence for one link, and write the derivative of x^2 / 2.

    d is the distance of the obstacle from the closest point of the link. The derivative is that by
    the position of the closest point. It does not exist for d = 0 and is then set to zero.

    Args:
        near: (3,) closest point of the link [m].
        obstacle: (3,) position of the obstacle [m].
        influence: Maximum distance at which the obstacle repels links [m].
        push: (3,) derivative, written [1/m].
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
    """Add the derivative of one link's term of an objective H by q to the gradient of H.

    The derivative is push . d near / dq. To first order, it is irrelevant that the closest point
    changes its position on the link.

    Args:
        chain: The chain of the arm.
        axes: (m, 2, 3) axes of the joints of the chain, its elements.
        first: Index of the first element between the base and the link.
        last: Index of the element at the start of the link. If it is prismatic, it moves the end of
            the link but not the start.
        along: Position of the closest point on the link, 0 to 1.
        near: (3,) closest point of the link [m].
        push: (3,) derivative of the term by the closest point [1/m].
        out: (n,) gradient, read and written [1/rad or 1/m].
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


@allocating
def closest_link(chain: Chain, point: Array, axes: Array, T: Array, out: Array) -> float:
    """Return the distance [m] from a point to the closest link, and write its gradient.

    The gradient of the distance is set to zero if the point is on the link.

    Args:
        chain: The chain of the arm.
        point: (3,) position of the point in the base frame [m].
        axes: (m, 2, 3) axes of the elements from :func:`dls_ik.core.kinematics.forward`.
        T: (k, 3, 4) poses of the tips from :func:`dls_ik.core.kinematics.forward`.
        out: (n,) derivative of the distance with respect to the joint positions, written.
    """
    near, push, best = np.empty(3), np.empty(3), 1e300
    for p in range(T.shape[0]):
        first, last = chain.first[p], chain.first[p + 1]
        for k in range(first, last):
            end = axes[k + 1, 1] if k + 1 < last else T[p, :, 3]
            along = _nearest(axes[k, 1], end, point, near)
            square = 0.0
            for i in range(3):
                square += (near[i] - point[i]) ** 2
            d = sqrt(square)
            if d < best:
                best = d
                for i in range(3):
                    push[i] = (near[i] - point[i]) / d if d > 0.0 else 0.0
                out.fill(0.0)
                _add_slopes(chain, axes, first, k, along, near, push, out)
    return best


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
    """Write the gradient of the selected objective by the joint positions; return its value.

    Args:
        chain: The chain of the arm.
        general: Id of the objective in ``params.objective``, its parameters, and the task.
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        work: Contains the forward kinematics at q.
        out: (n,) gradient, written [1/rad or 1/m]; [rad or m] for the objective `posture`.
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
