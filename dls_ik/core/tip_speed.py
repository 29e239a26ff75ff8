# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bound on the linear and angular speed of a tip at all times of a motion.

The motion of the joints consists of pieces with constant jerk. Between two times, the velocity of
the tip deviates from linear interpolation by at most M h^2 / 8, with h the time difference and M a
bound on the second derivative of the velocity. The norm is convex, so that the larger speed at the
two times, plus this deviation, bounds the speed between them. M follows from the velocities,
accelerations and jerks of the joints and from the maximum distance of the tip from each joint,
because the derivative of a column of the Jacobian by another joint is at most as long as the column
of the joint that is closer to the tip. Pieces are halved until the bound is close to the speed.
"""

import math

import numpy as np

from dls_ik.core.jit import allocating, force_inline
from dls_ik.core.kinematics import forward
from dls_ik.core.types import Array, Chain

MAX_PIECE_HALVINGS = 12  # maximum number of halvings of a piece


@allocating
def speed_bound(
    chain: Chain,
    levers: Array,
    limits: Array,
    sharpness: Array,
    times: Array,
    pieces: Array,
) -> float:
    """Return an upper bound on the speed of a tip relative to its limits.

    The result is the larger one of linear speed / linear limit and angular speed / angular limit.

    Args:
        chain: Chain with one tip.
        levers: (2, m) maximum linear and angular velocity of the tip for a unit velocity of each
            moving element [m/rad or m/m, rad/rad].
        limits: (2,) linear limit [m/s] and angular limit [rad/s], possibly infinite.
        sharpness: (2,) value of the bound up to which it need not be close to the speed, and
            maximum difference between a larger bound and the largest speed.
        times: (k,) durations of the pieces of the motion [s].
        pieces: (k, 4, n) positions, velocities, accelerations and jerks of the joints at the starts
            of the pieces.
    """
    n, m = pieces.shape[2], levers.shape[1]
    axes, T = np.empty((m, 2, 3)), np.empty((1, 3, 4))
    stack, spans, depths = (
        np.empty((MAX_PIECE_HALVINGS + 2, 4, n)),
        np.empty(MAX_PIECE_HALVINGS + 2),
        np.empty(MAX_PIECE_HALVINGS + 2),
    )
    end, size = np.empty((4, n)), np.empty((3, m))
    seen, bound = 0.0, 0.0
    for i in range(times.shape[0]):
        for r in range(4):
            for j in range(n):
                stack[0, r, j] = pieces[i, r, j]
        spans[0], depths[0], top = times[i], 0.0, 0
        first = _speed(chain, stack[0, 0], stack[0, 1], limits, axes, T)
        seen = max(seen, first)
        while top >= 0:
            h = spans[top]
            _move(stack[top], h, end)
            last = _speed(chain, end[0], end[1], limits, axes, T)
            seen = max(seen, last)
            curvature = _curvature(chain, levers, limits, stack[top], end, h, size)
            most = max(first, last) + 0.125 * curvature * h * h
            if most <= max(sharpness[0], seen + sharpness[1]) or depths[top] >= MAX_PIECE_HALVINGS:
                bound, first = max(bound, most), last
                top -= 1
                continue
            # Process the first half, then the second half.
            _move(stack[top], 0.5 * h, stack[top + 1])
            for r in range(4):
                for j in range(n):
                    x = stack[top, r, j]
                    stack[top, r, j] = stack[top + 1, r, j]
                    stack[top + 1, r, j] = x
            spans[top] = spans[top + 1] = 0.5 * h
            depths[top] += 1.0
            depths[top + 1] = depths[top]
            top += 1
    return bound


@force_inline
def _move(state: Array, h: float, out: Array) -> None:
    """Write the state of the joints after a time with constant jerk.

    Args:
        state: (4, n) positions, velocities, accelerations and jerks.
        h: Time [s].
        out: (4, n) state after this time, written.
    """
    for j in range(state.shape[1]):
        v, a, jerk = state[1, j], state[2, j], state[3, j]
        out[0, j] = state[0, j] + h * (v + h * (0.5 * a + h * jerk / 6.0))
        out[1, j] = v + h * (a + 0.5 * h * jerk)
        out[2, j], out[3, j] = a + h * jerk, jerk


@force_inline
def _speed(chain: Chain, q: Array, v: Array, limits: Array, axes: Array, T: Array) -> float:
    """Return the speed of the tip relative to its limits; above 1, a limit is exceeded.

    The result is the maximum of linear speed / linear limit and angular speed / angular limit.

    Args:
        chain: Chain with one tip.
        q: (n,) joint positions [rad or m].
        v: (n,) joint velocities [rad/s or m/s].
        limits: (2,) linear limit [m/s] and angular limit [rad/s].
        axes: (m, 2, 3) scratch.
        T: (1, 3, 4) scratch.
    """
    forward(chain, q, axes, T)
    x, y, z, a, b, c = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(axes.shape[0]):
        rate = chain.scale[k] * v[chain.variable[k]]
        zx, zy, zz = rate * axes[k, 0, 0], rate * axes[k, 0, 1], rate * axes[k, 0, 2]
        if chain.prismatic[k]:
            x, y, z = x + zx, y + zy, z + zz
        else:
            rx, ry = T[0, 0, 3] - axes[k, 1, 0], T[0, 1, 3] - axes[k, 1, 1]
            rz = T[0, 2, 3] - axes[k, 1, 2]
            x, y, z = x + zy * rz - zz * ry, y + zz * rx - zx * rz, z + zx * ry - zy * rx
            a, b, c = a + zx, b + zy, c + zz
    linear, angular = math.sqrt(x * x + y * y + z * z), math.sqrt(a * a + b * b + c * c)
    return max(linear / limits[0], angular / limits[1])


@force_inline
def _curvature(
    chain: Chain, levers: Array, limits: Array, begin: Array, end: Array, h: float, size: Array
) -> float:
    """Return a bound on the second derivative of the velocity of the tip during a piece.

    Args:
        chain: Chain with one tip.
        levers: As in :func:`speed_bound`.
        limits: (2,) linear limit [m/s] and angular limit [rad/s].
        begin, end: (4, n) states of the joints at the start and at the end of the piece.
        h: Duration of the piece [s].
        size: (3, m) scratch.

    Returns:
        The larger one of the bounds on the linear and on the angular derivative, each divided by
        its limit [1/s^2].
    """
    m, total = levers.shape[1], 0.0
    for k in range(m):
        j, scale = chain.variable[k], abs(chain.scale[k])
        jerk = abs(begin[3, j])
        size[0, k] = scale * (max(abs(begin[1, j]), abs(end[1, j])) + 0.125 * jerk * h * h)
        size[1, k] = scale * max(abs(begin[2, j]), abs(end[2, j]))
        size[2, k] = scale * jerk
        total += size[0, k]
    largest = 0.0
    for p in range(2):
        bound = 0.0
        for k in range(m):
            # Element k is closer to the tip than the other element i of each pair.
            inner = size[0, k] * (3.0 * size[1, k] + total * size[0, k])
            for i in range(k):
                inner += size[0, i] * (3.0 * size[1, k] + total * size[0, k])
                inner += size[0, k] * (3.0 * size[1, i] + total * size[0, i])
            bound += levers[p, k] * (size[2, k] + inner)
        largest = max(largest, bound / limits[p])
    return largest
