# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Start configurations close to a pose, from a table of configurations.

The first joint turns the whole arm about its axis and the last joint turns the tip about its own
axis, so that the table need not cover two of the six degrees of freedom of a pose. Rows are
compared by features that these two joints do not change: the distance from the first axis, the
height along this axis, and the direction of the last axis relative to it. Both joints are then set
exactly for the desired pose.
"""

from math import atan2, cos, inf, pi, sin, sqrt

import numpy as np

from dls_ik.core.fast.kinematics import forward_arm, sines_of_joints
from dls_ik.core.jit import allocating, force_inline
from dls_ik.core.types import Array, ChainTable, FastWorkspace, Indices, SerialChain

LEAF_ROWS = 32  # number of rows of a leaf
# [rad] maximum total deviation of first and last joint because of their limits
MAX_LIMIT_DEVIATION = 0.6


@force_inline
def write_features(
    T: Array, first_turns: bool, last_turns: bool, rotation_weight: float, features: Array
) -> None:
    """Write the features by which rows are compared [m].

    Args:
        T: (3, 4) frame of the last joint in the frame of the first joint.
        first_turns, last_turns: As in :class:`ChainTable`.
        rotation_weight: w [m/rad].
        features: (9,) features, written.
    """
    x, y, c, s = T[0, 3], T[1, 3], 1.0, 0.0
    if first_turns:
        r = sqrt(x * x + y * y)
        if r > 0.0:
            c, s = x / r, y / r
        x, y = r, 0.0
    features[0], features[1], features[2] = x, y, T[2, 3]
    w = rotation_weight
    features[3], features[4] = w * (c * T[0, 2] + s * T[1, 2]), w * (c * T[1, 2] - s * T[0, 2])
    features[5] = w * T[2, 2]
    if last_turns:
        w = 0.0
    features[6], features[7] = w * (c * T[0, 0] + s * T[1, 0]), w * (c * T[1, 0] - s * T[0, 0])
    features[8] = w * T[2, 0]


@force_inline
def find_leaf(
    by: Indices, cut: Array, levels: int, leaves: Array, features: Array, out: Array
) -> int:
    """Return the first row of the leaf to which the features belong.

    Args:
        by, cut: (nodes,) fields of :class:`ChainTable`.
        levels: Number of levels of the tree.
        leaves: (leaves, 9, LEAF_ROWS) features of the table.
        features: (9,) features of the target.
        out: (LEAF_ROWS,) squared distance of each row, written.
    """
    node = 1
    for _ in range(levels):
        node = 2 * node + (1 if features[by[node]] >= cut[node] else 0)
    leaf = leaves[node - (1 << levels)]
    out.fill(0.0)
    for c in range(9):
        for i in range(LEAF_ROWS):
            out[i] += (features[c] - leaf[c, i]) ** 2
    return (node - (1 << levels)) * LEAF_ROWS


@force_inline
def look_up(
    arm: SerialChain, table: ChainTable, rotation_weight: float, work: FastWorkspace
) -> int:
    """Return the first row of the leaf for ``work.target``, or -1 for an empty table."""
    if table.q.shape[0] == 0:
        return -1
    to_last_joint(arm.link, table.last_turns, work.target, work.T)
    write_features(work.T, table.first_turns, table.last_turns, rotation_weight, work.features)
    return find_leaf(
        table.by, table.cut, table.levels, table.features, work.features, work.distance
    )


@force_inline
def to_last_joint(link: Array, last_turns: bool, target: Array, T: Array) -> None:
    """Write the target T (3, 4) of the frame of the last joint for a target (3, 4) of the tip."""
    last = link.shape[0] - 1
    for i in range(3):
        for j in range(4):
            T[i, j] = target[i, j]
        if last_turns:
            for c in range(3):
                T[i, 3] -= target[i, c] * link[last, c]


@force_inline
def next_start(
    arm: SerialChain, table: ChainTable, first: int, q: Array, work: FastWorkspace
) -> bool:
    """Write the closest unused row of a leaf to `q` (n,).

    Args:
        first: First row of the leaf, from :func:`look_up`.

    Returns:
        False without an unused row.
    """
    to_last_joint(arm.link, table.last_turns, work.target, work.T)
    for _ in range(LEAF_ROWS):
        i = nearest(work.distance)
        if work.distance[i] == inf:
            break
        work.distance[i] = inf
        row = first + i
        for j in range(q.shape[0]):
            q[j] = table.q[row, j]
        missed = 0.0
        R = table.middle[row]
        if table.first_turns:
            angle = atan2(
                R[0, 3] * work.T[1, 3] - R[1, 3] * work.T[0, 3],
                R[0, 3] * work.T[0, 3] + R[1, 3] * work.T[1, 3],
            )
            missed += turn_to(arm.turn, arm.variable, arm.lower, arm.upper, 0, angle, q)
        if table.last_turns:
            angle = arm.turn[0, 0] * q[arm.variable[0]] + arm.turn[0, 1]
            angle = last_angle(R, angle if table.first_turns else 0.0, work.T)
            last = arm.variable.shape[0] - 1
            missed += turn_to(arm.turn, arm.variable, arm.lower, arm.upper, last, angle, q)
        if missed <= MAX_LIMIT_DEVIATION:
            return True
    return False


@force_inline
def nearest(distance: Array) -> int:
    """Return the index of the smallest entry."""
    least = 0
    for i in range(1, distance.shape[0]):
        if distance[i] < distance[least]:
            least = i
    return least


@force_inline
def last_angle(R: Array, first: float, T: Array) -> float:
    """Return the angle [rad] of the last joint that turns the frame of a row closest to T.

    Args:
        R: (3, 4) frame with both joints at zero angle.
        first: Angle of the first joint [rad].
        T: (3, 4) target of the frame.
    """
    c, s = cos(first), sin(first)
    sine = cosine = 0.0
    for j in range(2):
        x, y, z = c * R[0, j] - s * R[1, j], s * R[0, j] + c * R[1, j], R[2, j]
        cosine += x * T[0, j] + y * T[1, j] + z * T[2, j]
        other = 1 - j
        across = x * T[0, other] + y * T[1, other] + z * T[2, other]
        sine += across if other == 0 else -across
    return atan2(sine, cosine)


@force_inline
def turn_to(
    turn: Array, variable: Indices, lower: Array, upper: Array, k: int, angle: float, q: Array
) -> float:
    """Set the joint of element k to an angle [rad], clipped to its limits; return the deviation."""
    v = variable[k]
    value = (angle - turn[k, 1]) / turn[k, 0]
    period = 2.0 * pi / abs(turn[k, 0])
    if not lower[v] <= value <= upper[v]:
        value -= period * np.floor((value - 0.5 * (lower[v] + upper[v])) / period + 0.5)
    q[v] = min(max(value, lower[v]), upper[v])
    return abs(q[v] - value) * abs(turn[k, 0])


@allocating
def fill(
    chain: SerialChain,
    first_turns: bool,
    last_turns: bool,
    q: Array,
    rotation_weight: float,
    middle: Array,
    features: Array,
) -> None:
    """Write the frames and the features of the rows of a table.

    Args:
        chain: Chain with the freely turning joints at zero angle, because rows exclude them.
        first_turns, last_turns: As in :class:`ChainTable`.
        q: (rows, n) joint positions [rad or m].
        rotation_weight: w [m/rad].
        middle: (rows, 3, 4) frames, written.
        features: (rows, 9) features, written.
    """
    m = chain.variable.shape[0]
    s, c, axes = np.empty(m), np.empty(m), np.empty((m, 6))
    for row in range(q.shape[0]):
        sines_of_joints(chain.turn, chain.variable, q[row], s, c)
        forward_arm(chain.slide, chain.link, chain.variable, q[row], s, c, axes, middle[row])
        write_features(middle[row], first_turns, last_turns, rotation_weight, features[row])
