"""Starts near a pose, from a table of configurations.

The first joint turns the whole arm about its axis and the last one the tip about its own, so that
two of the six freedoms of a pose need no table: its rows are compared by what those two joints do
not change, the distance from the first axis, the height along it, and the direction of the last
axis seen from there. Both joints are then set exactly for the pose that is wanted.
"""

from math import atan2, cos, inf, pi, sin, sqrt

import numpy as np

from dls_ik.core.fast.kinematics import forward_arm, sines_of_joints
from dls_ik.core.jit import inlined, kernel, spliced
from dls_ik.core.types import Arm, Array, Indices, QuickWork, Table

LEAF = 32  # rows of a leaf
MISSED = 0.6  # [rad] by which limits may keep the first and the last joint from where they belong


@inlined
def write_features(
    T: Array, first_turns: bool, last_turns: bool, rotation_weight: float, features: Array
) -> None:
    """Write what rows are compared by, [m].

    Args:
        T: (3, 4) frame of the last joint in the first one, features: (9,) out.
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


@inlined
def find_leaf(
    by: Indices, cut: Array, levels: int, leaves: Array, features: Array, out: Array
) -> int:
    """Return the first row of the leaf that the features belong to.

    Args:
        by, cut: (nodes,), leaves: (leaves, 9, LEAF) features of the table, features: (9,).
        out: (LEAF,) out: squared distance of each row.
    """
    node = 1
    for _ in range(levels):
        node = 2 * node + (1 if features[by[node]] >= cut[node] else 0)
    leaf = leaves[node - (1 << levels)]
    out.fill(0.0)
    for c in range(9):
        for i in range(LEAF):
            out[i] += (features[c] - leaf[c, i]) ** 2
    return (node - (1 << levels)) * LEAF


@spliced
def look_up(arm: Arm, table: Table, rotation_weight: float, work: QuickWork) -> int:
    """Return the first row of the leaf for ``work.target``; -1 for an empty table."""
    if table.q.shape[0] == 0:
        return -1
    to_last_joint(arm.link, table.last_turns, work.target, work.T)
    write_features(work.T, table.first_turns, table.last_turns, rotation_weight, work.features)
    return find_leaf(
        table.by, table.cut, table.levels, table.features, work.features, work.distance
    )


@inlined
def to_last_joint(link: Array, last_turns: bool, target: Array, T: Array) -> None:
    """Write the target of the tip as that of the last joint's frame, (3, 4)."""
    last = link.shape[0] - 1
    for i in range(3):
        for j in range(4):
            T[i, j] = target[i, j]
        if last_turns:
            for c in range(3):
                T[i, 3] -= target[i, c] * link[last, c]


@spliced
def next_start(arm: Arm, table: Table, first: int, q: Array, work: QuickWork) -> bool:
    """Write the nearest row of a leaf that is not used yet to `q`; False where none is left.

    Args:
        first: from :func:`look_up`.
    """
    to_last_joint(arm.link, table.last_turns, work.target, work.T)
    for _ in range(LEAF):
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
        if missed <= MISSED:
            return True
    return False


@inlined
def nearest(distance: Array) -> int:
    """Index of the least entry."""
    least = 0
    for i in range(1, distance.shape[0]):
        if distance[i] < distance[least]:
            least = i
    return least


@inlined
def last_angle(R: Array, first: float, T: Array) -> float:
    """Return the angle of the last joint that turns a row's frame nearest to T [rad].

    Args:
        R: (3, 4) frame with both joints at zero, first: angle of the first joint [rad].
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


@inlined
def turn_to(
    turn: Array, variable: Indices, lower: Array, upper: Array, k: int, angle: float, q: Array
) -> float:
    """Set the joint of element k to an angle [rad], if it can; return by how much it misses it."""
    v = variable[k]
    value = (angle - turn[k, 1]) / turn[k, 0]
    period = 2.0 * pi / abs(turn[k, 0])
    if not lower[v] <= value <= upper[v]:
        value -= period * np.floor((value - 0.5 * (lower[v] + upper[v])) / period + 0.5)
    q[v] = min(max(value, lower[v]), upper[v])
    return abs(q[v] - value) * abs(turn[k, 0])


@kernel
def fill(arm: Arm, table: Table, rotation_weight: float, features: Array) -> None:
    """Write ``table.middle`` and the features of the rows for ``table.q``.

    Args:
        arm: with the joints that turn freely at zero angle, as rows are stored without them.
        features: (rows, 9) out.
    """
    m = arm.variable.shape[0]
    s, c, axes = np.empty(m), np.empty(m), np.empty((m, 6))
    for row in range(table.q.shape[0]):
        q, T = table.q[row], table.middle[row]
        sines_of_joints(arm.turn, arm.variable, q, s, c)
        forward_arm(arm.slide, arm.link, arm.variable, q, s, c, axes, T)
        write_features(T, table.first_turns, table.last_turns, rotation_weight, features[row])
