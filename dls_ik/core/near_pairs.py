# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Close pairs of shapes: the closest pair, and derivatives of distances by joint positions."""

from math import sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.hulls import SHARP_RANGE
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.linalg import copy
from dls_ik.core.proximity import (
    DISTANCE_ROUNDING,
    leaf_points,
    nearest_leaves,
    place_pair,
    refresh_bounds,
)
from dls_ik.core.scene_arrays import (
    CollisionScratch,
    PackedScene,
    SceneArrays,
    collision_scratch,
    place_frames,
    unpack_scene,
)
from dls_ik.core.types import Array, Indices

# maximum number of pairs of leaves whose distances are controlled together
MAX_CONTROLLED_PAIRS = 32
MARGIN = 3e-4  # [m] the reference exceeds the minimum distances of the command by this value
# [m] distances are computed up to `influence` plus this value, for later cycles
EXACT_DISTANCE_MARGIN = 0.05


@allocating
def watch(
    scene: PackedScene,
    reach: Array,
    limits: tuple[Array, Array],
    known: tuple[Array, Array],
    seen: tuple[Array, Indices],
    q: Array,
    influence: float,
    out: Array,
) -> tuple[int, float]:
    """Find the closest pair of shapes, and update the minimum distances of all pairs.

    A pair may initially be closer than its specified minimum distance. The current distance of the
    pair is then used as its minimum distance. When the pair separates, this value grows with the
    distance, up to the specified value.

    A shape is enclosed in a tree of spheres, whose leaves enclose small parts of the shape. There
    are p pairs of links and s pairs of a link and an object; n is the number of joints.

    Args:
        scene: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`.
        reach: (p + s, n) upper bounds on how far the two shapes of a pair move relative to each
            other if a joint moves by 1 rad or 1 m [m/rad or m/m].
        limits: Two arrays (p + s,): minimum distances in use, read and written, and specified
            minimum distances [m].
        known: (p + s,) lower bounds on the distances of the pairs [m], and the joint positions (n,)
            at which the bounds are valid; read and written.
        seen: Two arrays, written: q (n,), and the indices (p + s, 2) of the two closest leaves of
            each pair closer than `influence`.
        q: (n,) joint positions [rad or m].
        influence: Distance within which pairs are considered, larger than all minimum distances
            [m].
        out: (3, 3) points and normal of :func:`leaf_points` for the closest pair, written.

    Returns:
        The index of the closest pair, and its distance [m]; -1 and `influence` if no pair is
        closer than `influence`.
    """
    arrays = unpack_scene(*scene)
    refresh_bounds(reach, q, known[0], known[1])
    copy(q, seen[0])
    nearest, best, is_placed = -1, influence, False
    work = collision_scratch(arrays)
    found, leaves = np.empty(2, np.int64), np.empty(2, np.int64)
    for k in range(limits[0].shape[0]):
        if known[0][k] >= influence:
            limits[0][k] = limits[1][k]
            continue
        is_free = True
        for j in range(q.shape[0]):
            is_free = is_free and reach[k, j] == 0.0
        if is_free:  # no joint changes the distance of the pair
            known[0][k] = np.inf
            continue
        if not is_placed:
            place_frames(arrays, q, work.pose)
            is_placed = True
        place_pair(arrays, k, work.pose, work.T)
        sharp = limits[1][k] + SHARP_RANGE
        d = nearest_leaves(arrays, k, influence + EXACT_DISTANCE_MARGIN, sharp, work, found)
        known[0][k] = max(d, work.bound[0]) if d >= influence + EXACT_DISTANCE_MARGIN else d
        seen[1][k, 0], seen[1][k, 1] = found[0], found[1]
        limits[0][k] = min(limits[1][k], max(limits[0][k], d - 0.5 * DISTANCE_ROUNDING))
        if d < best:
            nearest, best = k, d
            leaves[0], leaves[1] = found[0], found[1]
    if nearest >= 0:
        sharp = limits[1][nearest] + SHARP_RANGE
        leaf_points(arrays, nearest, leaves, sharp, work, out)
    return nearest, best


class NearRows(NamedTuple):
    """Distance constraints N dq >= b on the step dq of a cycle, and their state between cycles.

    There are p pairs of links and s pairs of a link and an object; n is the number of joints. Each
    shape is enclosed in a tree of spheres, whose leaves enclose small parts of the shape. A row of
    N belongs to two leaves of a close pair: it is the derivative of their distance by the joint
    positions, scaled to a unit vector. A row is active if it restricts the step. See
    core/avoidance.py.
    """

    scene: PackedScene  # frames, shapes and pairs; from :func:`dls_ik.core.scene_arrays.pack_scene`
    # (p + s, n) upper bounds on how far the two shapes of a pair move relative to each other if a
    # joint moves by 1 rad or 1 m [m/rad or m/m]
    reach: Array
    least: Array  # (p + s,) minimum distance that each pair must keep [m]
    # (p + s,) lower bounds on the distances of the pairs [m], and the joint positions (n,) at which
    # the bounds are valid; read and written
    known: tuple[Array, Array]
    # Results of the last call of :func:`watch`: lower bounds (p + s,) on the distances [m], joint
    # positions (n,), and closest leaves (p + s, 2) of each close pair. The distances are not
    # computed again if a step starts at these joint positions.
    watched: tuple[Array, Array, Indices]
    # Braking accelerations (n,) of the joints [rad/s^2 or m/s^2], infinite without a limit, and the
    # delay before the joints reach these accelerations [s]
    stopping: tuple[Array, float]
    influence: float  # pairs closer than this distance have rows [m]
    # (MAX_CONTROLLED_PAIRS, 4) rows of N in the previous cycle, read and written. The columns are
    # the index of the pair, the indices of its two leaves, and 1 if the row was active, else 0. The
    # value -1 in the first column ends the list.
    leaves: Indices
    # (1,) braking time of the joints that determined b in the previous cycle [s], -1 if no row was
    # active; read and written
    pace: Array

    @classmethod
    def of(
        cls,
        scene: PackedScene,
        reach: Array,
        least: Array,
        watched: tuple[Array, Array, Indices],
        stopping: tuple[Array, float],
        influence: float,
    ) -> "NearRows":
        """Return the constraints for a new scene, without known distances and active constraints.

        The arguments are fields of this class.
        """
        known = np.full(len(reach), -np.inf), np.zeros(len(stopping[0]))
        leaves = np.full((MAX_CONTROLLED_PAIRS, 4), -1)
        pace = np.full(1, -1.0)
        return cls(scene, reach, least, known, watched, stopping, influence, leaves, pace)


@allocating
def near_rows(near: NearRows, q: Array, N: Array, remaining: Array, pair: Indices) -> int:
    """Write the rows of the distance constraints N dq >= b at joint positions q.

    A row of N is the derivative of the distance of two leaves by the joint positions, scaled to a
    unit vector; see :class:`NearRows`. There is a row for the two closest leaves of each close pair
    of shapes. Two leaves that had a row in the previous cycle have a row again if their pair is
    still close.

    Args:
        near: Scene and pairs. Its list `leaves`, which has the rows of the previous cycle, is
            replaced by the list of the new rows.
        q: (n,) joint positions [rad or m].
        N: (MAX_CONTROLLED_PAIRS, n) rows, written.
        remaining: (MAX_CONTROLLED_PAIRS,) joint motion against each row after which the distance
            is only MARGIN above its minimum, written [rad or m].
        pair: (MAX_CONTROLLED_PAIRS,) index of the pair to which each row belongs, written.

    Returns:
        The number of rows.
    """
    reach, least, known, watched = near.reach, near.least, near.known, near.watched
    influence, leaves = near.influence, near.leaves
    scene, is_seen = unpack_scene(*near.scene), True
    for j in range(q.shape[0]):
        is_seen = is_seen and q[j] == watched[1][j]
    if is_seen:
        copy(watched[0], known[0])
        copy(q, known[1])
    else:
        refresh_bounds(reach, q, known[0], known[1])
    before = leaves.copy()
    work, points, found = collision_scratch(scene), np.empty((3, 3)), np.empty(2, np.int64)
    count, is_placed = 0, False
    for k in range(known[0].shape[0]):
        if known[0][k] >= influence or count >= MAX_CONTROLLED_PAIRS:
            continue
        if not is_placed:
            place_frames(scene, q, work.pose)
            is_placed = True
        place_pair(scene, k, work.pose, work.T)
        if is_seen:
            found[0], found[1] = watched[2][k, 0], watched[2][k, 1]
        else:
            sharp = least[k] + SHARP_RANGE
            known[0][k] = nearest_leaves(
                scene, k, influence + EXACT_DISTANCE_MARGIN, sharp, work, found
            )
        if known[0][k] >= influence:
            continue
        if write_row(scene, k, found, least[k], work, points, N[count], remaining[count:]):
            pair[count] = k
            leaves[count, 0], leaves[count, 1], leaves[count, 2] = k, found[0], found[1]
            leaves[count, 3] = 0
            count += 1
    nearest = count
    for i in range(MAX_CONTROLLED_PAIRS):
        k = before[i, 0]
        if k < 0 or count >= MAX_CONTROLLED_PAIRS:
            break
        is_new = known[0][k] < influence
        for c in range(nearest):
            same = leaves[c, 0] == k and leaves[c, 1] == before[i, 1]
            if same and leaves[c, 2] == before[i, 2]:
                leaves[c, 3], is_new = before[i, 3], False
        if is_new:
            found[0], found[1] = before[i, 1], before[i, 2]
            if write_row(scene, k, found, least[k], work, points, N[count], remaining[count:]):
                pair[count] = k
                for c in range(4):
                    leaves[count, c] = before[i, c]
                count += 1
    if count < MAX_CONTROLLED_PAIRS:
        leaves[count, 0] = -1
    return count


@kernel
def write_row(
    scene: SceneArrays,
    k: int,
    leaves: Indices,
    least: float,
    work: CollisionScratch,
    points: Array,
    row: Array,
    remaining: Array,
) -> bool:
    """Write the derivative of the distance of two leaves by the joint positions, as a unit vector.

    Args:
        scene: The shapes and pairs.
        k: Index of the pair of shapes.
        leaves: (2,) index of a leaf (small part) of each of the two shapes.
        least: Minimum distance of the pair [m].
        work: Scratch arrays; `pose` holds the poses of the frames.
        points: (3, 3) scratch array.
        row: (n,) unit vector, written.
        remaining: The joint motion against the row after which the distance is only MARGIN above
            its minimum is written to the first entry [rad or m].

    Returns:
        False if no joint changes the distance of the leaves.
    """
    pose = work.pose
    d = leaf_points(scene, k, leaves, least + SHARP_RANGE, work, points)
    row.fill(0.0)
    own = scene.pairs.shape[0]
    if k < own:
        _add_joints(scene, scene.frame[scene.pairs[k, 1]], pose, points[1], points[2], 1.0, row)
        _add_joints(scene, scene.frame[scene.pairs[k, 0]], pose, points[0], points[2], -1.0, row)
    else:
        frame = scene.frame[scene.outside[k - own, 0]]
        _add_joints(scene, frame, pose, points[1], points[2], 1.0, row)
    length = 0.0
    for j in range(row.shape[0]):
        length += row[j] * row[j]
    length = sqrt(length)
    if length < 1e-6:
        return False
    for j in range(row.shape[0]):
        row[j] /= length
    remaining[0] = (d - least - MARGIN) / length
    return True


@kernel
def _add_joints(
    scene: SceneArrays, frame: int, pose: Array, p: Array, u: Array, sign: float, row: Array
) -> None:
    """Add sign * d(u . p) / dq_j, for a point p that moves with the arm, to entry j of a row.

    Args:
        scene: The frames of the arm.
        frame: Index of the frame that the point is fixed to.
        pose: (f, 3, 4) poses of the frames.
        p: (3,) position of the point in the frame of the root link [m].
        u: (3,) unit vector in the frame of the root link.
        sign: 1 or -1.
        row: (n,) row, read and written.
    """
    at = frame
    while at > 0:
        A = pose[at]
        x, y, z = A[0, 2], A[1, 2], A[2, 2]
        if scene.prismatic[at] != 0:
            along = x * u[0] + y * u[1] + z * u[2]
        else:
            a, b, c = p[0] - A[0, 3], p[1] - A[1, 3], p[2] - A[2, 3]
            along = (y * c - z * b) * u[0] + (z * a - x * c) * u[1] + (x * b - y * a) * u[2]
        row[scene.variable[at]] += sign * scene.scale[at] * along
        at = scene.parent[at]
