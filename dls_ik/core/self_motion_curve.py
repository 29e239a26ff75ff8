# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Curve of the configurations in which a 7-joint arm has one pose of the tip (self-motion).

The curve is followed in steps along its tangent, the null space of the Jacobian, with Newton
corrections. Joint limits are ignored, so that curves of revolute joints are closed.
"""

from math import floor, pi, sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.boxes import Boxed
from dls_ik.core.hierarchy import factor_rows, solve_lower
from dls_ik.core.jit import allocating
from dls_ik.core.linalg import copy
from dls_ik.core.stack import StackParams, stack_rows
from dls_ik.core.types import Array

NUM_POSE_ROWS = 6
LARGEST_CURVE_STEP = 0.05  # [rad] norm of a step along the tangent
SMALLEST_CURVE_STEP = 1e-4  # [rad] the curve ends if a shorter step would be needed
MAX_NEWTON_STEPS = 5
POSE_RESIDUAL = 1e-11  # [m] norm of the scaled error of the tip on the curve
LARGEST_CORRECTION = 0.25  # share of a step; larger corrections are refused
MIN_TANGENT_COSINE = 0.95  # smallest cosine of the angle between the tangents of a step
INDEPENDENT_ROW_SHARE = 1e-7  # shorter rows of the Jacobian, relative to the longest, count as zero


class CurveSamples(NamedTuple):
    """Samples of a curve in the order of the motion; :func:`follow_curve` writes the arrays."""

    q: Array  # (m, n) joint positions [rad]
    tangent: Array  # (m, n) unit vectors
    angle: Array  # (m,) swivel angle in [-pi, pi) [rad]
    rate: Array  # (m,) derivative of the swivel angle with respect to the path length


@allocating
def _to_curve(
    stack: StackParams, T_d: Array, q: Array, tangent: Array, e: Array, farthest: float
) -> tuple[bool, float]:
    """Move a configuration to the curve by Newton steps, and write the tangent of the curve.

    Args:
        stack: Pose of the tip and a swivel angle.
        T_d: (1, 4, 4) pose of the tip.
        q: (n,) joint positions close to the curve, read and written [rad].
        tangent: (n,) direction to which the tangent shall be closest; replaced by the tangent.
        e: (7,) errors of the rows at the result; the last is minus the swivel angle.
        farthest: Largest norm of a correction [rad].

    Returns:
        Whether the steps converge, and the derivative of the swivel angle along the tangent.
    """
    n = q.shape[0]
    A, cost = np.empty((NUM_POSE_ROWS + 1, n)), np.empty(stack.ends.shape[0])
    J, Q, order, c = (
        np.empty((NUM_POSE_ROWS, n)),
        np.empty((n, n)),
        np.empty(6, np.int64),
        np.empty(6),
    )
    for iteration in range(MAX_NEWTON_STEPS + 1):
        stack_rows(stack, T_d, q, e, A, cost)
        size, longest = 0.0, 0.0
        for i in range(NUM_POSE_ROWS):
            copy(A[i], J[i])
            size += e[i] * e[i]
            length = 0.0
            for j in range(n):
                length += A[i, j] * A[i, j]
            longest = max(longest, length)
        rank = factor_rows(J, INDEPENDENT_ROW_SHARE * sqrt(longest), Q, order)
        if sqrt(size) <= POSE_RESIDUAL:
            # The tangent is the part of the given direction in the null space.
            length, rate = 0.0, 0.0
            along = np.zeros(n)
            for k in range(rank, n):
                part = 0.0
                for j in range(n):
                    part += Q[j, k] * tangent[j]
                for j in range(n):
                    along[j] += Q[j, k] * part
            for j in range(n):
                length += along[j] * along[j]
            if length == 0.0:
                return False, 0.0
            for j in range(n):
                tangent[j] = along[j] / sqrt(length)
                rate += A[NUM_POSE_ROWS, j] * tangent[j]
            return True, rate
        if iteration == MAX_NEWTON_STEPS:
            break
        for i in range(NUM_POSE_ROWS):
            c[i] = e[order[i]]
        solve_lower(J, rank, c)
        length = 0.0
        for j in range(n):
            change = 0.0
            for k in range(rank):
                change += Q[j, k] * c[k]
            q[j] += change
            length += change * change
        if sqrt(length) > farthest:
            break
    return False, 0.0


@allocating
def follow_curve(box: Boxed[StackParams], T_d: Array, found: CurveSamples) -> tuple[int, bool]:
    """Follow the curve of one pose from a configuration, until it closes or cannot be followed.

    Args:
        box: Stack of the pose of the tip and a swivel angle.
        T_d: (1, 4, 4) pose of the tip.
        found: Samples, written; the first row of `q` is the start, which must be close to the
            curve, and the first row of `tangent` the direction. If the curve closes, the last
            sample is the first one, except for full turns of joints. The number of rows is the
            maximum number of samples.

    Returns:
        The number of samples, 0 if the start is not close to the curve; and whether the curve is
        closed.
    """
    stack, most = box.record, found.angle.shape[0]
    n = found.q.shape[1]
    q, tangent, e = np.empty(n), np.empty(n), np.empty(NUM_POSE_ROWS + 1)
    is_on_curve, rate = _to_curve(stack, T_d, found.q[0], found.tangent[0], e, 1e3)
    found.angle[0], found.rate[0] = -e[NUM_POSE_ROWS], rate
    if not is_on_curve:
        return 0, False
    count, step, start = 1, LARGEST_CURVE_STEP, found.q[0]
    while count < most:
        last = count - 1
        for j in range(n):
            q[j] = found.q[last, j] + step * found.tangent[last, j]
            tangent[j] = found.tangent[last, j]
        is_on_curve, rate = _to_curve(stack, T_d, q, tangent, e, LARGEST_CORRECTION * step)
        cosine = 0.0
        for j in range(n):
            cosine += tangent[j] * found.tangent[last, j]
        if not is_on_curve or cosine < MIN_TANGENT_COSINE:
            step *= 0.5
            if step < SMALLEST_CURVE_STEP:
                return count, False
            continue
        if count > 2 and _passes(found.q[last], q, start, found.tangent[0]):
            for j in range(n):
                turns = floor((q[j] - start[j]) / (2.0 * pi) + 0.5)
                found.q[count, j] = start[j] + 2.0 * pi * turns
            copy(found.tangent[0], found.tangent[count])
            found.angle[count], found.rate[count] = found.angle[0], found.rate[0]
            return count + 1, True
        copy(q, found.q[count])
        copy(tangent, found.tangent[count])
        found.angle[count], found.rate[count] = -e[NUM_POSE_ROWS], rate
        count += 1
        step = min(2.0 * step, LARGEST_CURVE_STEP)
    return count, False


@allocating
def _passes(before: Array, after: Array, start: Array, tangent: Array) -> bool:
    """Return whether the step between two configurations (n,) passes the start of the curve.

    Args:
        before, after: Configurations before and after the step [rad].
        start: First configuration of the curve [rad]; full turns do not count.
        tangent: (n,) tangent at the start; only a motion along it passes the start.
    """
    along, square, ahead = 0.0, 0.0, 0.0
    away = np.empty(start.shape[0])
    for j in range(start.shape[0]):
        away[j] = start[j] - before[j]
        away[j] -= 2.0 * pi * floor(away[j] / (2.0 * pi) + 0.5)
        step = after[j] - before[j]
        along += away[j] * step
        square += step * step
        ahead += step * tangent[j]
    share = along / square
    if share < -1e-6 or share > 1.0 + 1e-6 or ahead <= 0.0:
        return False
    distance = 0.0
    for j in range(start.shape[0]):
        rest = away[j] - share * (after[j] - before[j])
        distance += rest * rest
    return sqrt(distance) <= 0.2 * sqrt(square)
