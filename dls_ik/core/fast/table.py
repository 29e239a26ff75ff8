# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Start configurations close to a desired pose, from a table of configurations.

The first joint turns the whole arm about the first axis and the last joint turns the tip about the
last axis, so that the table need not cover two of the six degrees of freedom of a pose. Each row of
the table is a configuration with features that do not depend on these two joints: the distance of
the last joint from the first axis, its height along the first axis, and the direction of the last
axis relative to the first axis. Rows whose features are close to those of the desired pose are used
as start configurations, after the first and the last joint are set for the desired pose.
"""

from math import atan2, cos, inf, pi, sin, sqrt

import numpy as np

from dls_ik.core.fast.kinematics import forward_arm, sines_of_joints
from dls_ik.core.jit import allocating, force_inline
from dls_ik.core.types import Array, ChainTable, FastWorkspace, Indices, SerialChain

LEAF_ROWS = 32  # number of rows in a leaf of the tree
# [rad] maximum sum of the deviations of first and last joint caused by their limits
MAX_LIMIT_DEVIATION = 0.6


@force_inline
def write_features(
    T: Array, first_turns: bool, last_turns: bool, rotation_weight: float, features: Array
) -> None:
    """Write the features [m] of a pose by which rows of the table are compared.

    Args:
        T: (3, 4) frame of the last joint in the frame of the first joint.
        first_turns, last_turns: As in :class:`ChainTable`.
        rotation_weight: w [m/rad], which converts directions to lengths.
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
    """Find the leaf of the tree to which the features of a target belong.

    Args:
        by, cut: (nodes,) fields of :class:`ChainTable`.
        levels: Number of levels of the tree.
        leaves: (leaves, 9, LEAF_ROWS) features of all rows of the table.
        features: (9,) features of the target [m].
        out: (LEAF_ROWS,) squared distance of each row of the leaf from `features`, written [m^2].

    Returns:
        The index of the first row of the leaf.
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
    """Find the leaf with the start configurations for ``work.target``.

    The distances of the rows of the leaf are written to ``work.distance``.

    Returns:
        The index of the first row of the leaf; -1 if the table is empty.
    """
    if table.q.shape[0] == 0:
        return -1
    to_last_joint(arm.link, table.last_turns, work.target, work.T)
    write_features(work.T, table.first_turns, table.last_turns, rotation_weight, work.features)
    return find_leaf(
        table.by, table.cut, table.levels, table.features, work.features, work.distance
    )


@force_inline
def to_last_joint(link: Array, last_turns: bool, target: Array, T: Array) -> None:
    """Convert a target of the tip to a target of the frame of the last joint.

    Args:
        link: (m, 5) field of :class:`SerialChain`.
        last_turns: Field of :class:`ChainTable`; if False, the target is only copied.
        target: (3, 4) target of the tip.
        T: (3, 4) target of the frame of the last joint, written.
    """
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
    """Write the next start configuration for ``work.target`` to `q` (n,) [rad or m].

    The configuration is the closest row of a leaf that was not used before. Its first and last
    joint are set for the target; rows are skipped if joint limits prevent this.

    Args:
        arm: The chain.
        table: The table.
        first: Index of the first row of the leaf, from :func:`look_up`.
        q: (n,) joint positions, written [rad or m].
        work: `distance`, written by :func:`look_up`, is set to inf for used rows.

    Returns:
        False if all rows of the leaf are used.
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
    """Return the index of the smallest entry of `distance`."""
    least = 0
    for i in range(1, distance.shape[0]):
        if distance[i] < distance[least]:
            least = i
    return least


@force_inline
def last_angle(R: Array, first: float, T: Array) -> float:
    """Return the angle [rad] of the last joint for which the last frame is closest to T.

    Args:
        R: (3, 4) last frame of a table row, for which the first and last joint have zero angle.
        first: Angle of the first joint [rad].
        T: (3, 4) target of the last frame.
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
    """Set the joint that drives element k so that the element has a given angle.

    The joint position is clipped to the joint's limits, if necessary after whole turns.

    Args:
        turn, variable, lower, upper: Fields of :class:`SerialChain`.
        k: Index of the element.
        angle: Angle of the element [rad].
        q: (n,) joint positions, one of which is written [rad or m].

    Returns:
        The difference between the angle of the element and `angle` [rad].
    """
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
    """Write the frames and the features of all rows of a table.

    Args:
        chain: Chain in which the first joint, if `first_turns`, and the last joint, if
            `last_turns`, do not move: their angle is zero in the frames of the table.
        first_turns, last_turns: As in :class:`ChainTable`.
        q: (rows, n) joint positions [rad or m].
        rotation_weight: w [m/rad], which converts directions to lengths.
        middle: (rows, 3, 4) last frame of each row, written.
        features: (rows, 9) features of each row, written [m].
    """
    m = chain.variable.shape[0]
    s, c, axes = np.empty(m), np.empty(m), np.empty((m, 6))
    for row in range(q.shape[0]):
        sines_of_joints(chain.turn, chain.variable, q[row], s, c)
        forward_arm(chain.slide, chain.link, chain.variable, q[row], s, c, axes, middle[row])
        write_features(middle[row], first_turns, last_turns, rotation_weight, features[row])
