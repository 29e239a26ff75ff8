# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One pair of shapes: relative pose, lower bounds on the distance, closest leaves and points."""

import numpy as np

from dls_ik.core.collision import push_children
from dls_ik.core.distance_bounds import HULL_VISITS, leaf_bound, swap_pending
from dls_ik.core.hulls import BALL_RADIUS, WEIGHT, hull_distance, keeps_along
from dls_ik.core.jit import force_inline, kernel
from dls_ik.core.kinematics import compose
from dls_ik.core.scene_arrays import (
    KIND_TREE,
    OUTER,
    STACK,
    CollisionScratch,
    SceneArrays,
    relate,
)
from dls_ik.core.shape_distance import (
    apply,
    centre_distance,
    distance_and_normal,
    from_node,
    node_distance,
)
from dls_ik.core.types import Array, Indices

DISTANCE_ROUNDING = 2e-7  # [m] tolerance for rounding in comparisons of distances
MOST_NODES = 40_000  # maximum number of node pairs visited; a path that needs more is not certified


@force_inline
def parts_of_pair(scene: SceneArrays, k: int) -> tuple[int, int, int, float]:
    """Return the two shapes of pair k.

    The second shape is a moving sphere tree. The first shape is a moving sphere tree or an object,
    which may also be a sphere tree.

    Returns:
        Index of the object, -1 if the first shape is not an object; root node of the first shape,
        -1 if it is a primitive; root node of the second shape; length to subtract from the distance
        of the shapes [m].
    """
    own = scene.pairs.shape[0]
    if k < own:
        a, b = scene.pairs[k, 0], scene.pairs[k, 1]
        return -1, scene.root[a], scene.root[b], scene.padding[a] + scene.padding[b]
    a, item = scene.outside[k - own, 0], scene.outside[k - own, 1]
    one = scene.tree[item] if scene.kind[item] == KIND_TREE else -1
    return item, one, scene.root[a], scene.padding[a]


@force_inline
def place_pair(scene: SceneArrays, k: int, pose: Array, T: Array) -> None:
    """Write the transform from the frame of the second shape of pair k to that of the first.

    Args:
        scene: The shapes and pairs.
        k: Index of the pair, whose shapes are ordered as in :func:`parts_of_pair`.
        pose: (f, 3, 4) poses of the frames.
        T: (3, 4) transform, written.
    """
    own = scene.pairs.shape[0]
    if k < own:
        a, b = scene.pairs[k, 0], scene.pairs[k, 1]
        relate(pose[scene.frame[a]], pose[scene.frame[b]], T)
    else:
        a, item = scene.outside[k - own, 0], scene.outside[k - own, 1]
        compose(scene.place[item], pose[scene.frame[a]], T)


@kernel
def refresh_bounds(reach: Array, q: Array, known: Array, q_known: Array) -> None:
    """Make lower bounds on distances that hold at one configuration valid at another one.

    The bounds are reduced by the maximum displacement between the two configurations.

    Args:
        reach: (p + s, n) bounds on the displacement of one shape of a pair relative to the other
            per unit motion of a joint [m/rad or m/m].
        q: (n,) new joint positions [rad or m].
        known: (p + s,) lower bounds on the distances of the pairs, read and written [m].
        q_known: (n,) joint positions at which `known` holds, replaced by q [rad or m].
    """
    for k in range(known.shape[0]):
        moved = 0.0
        for j in range(q.shape[0]):
            moved += reach[k, j] * abs(q[j] - q_known[j])
        known[k] -= moved
    for j in range(q.shape[0]):
        q_known[j] = q[j]


@force_inline
def leaf_distance(
    scene: SceneArrays, item: int, kind: int, one: int, two: int, padding: float, T: Array
) -> float:
    """Return the distance [m] of the outer spheres of two nodes, or of a sphere and a primitive.

    Args:
        scene: The shapes and objects.
        item: Index of the primitive among the objects; unused for two nodes.
        kind: Kind of the primitive; unused for two nodes.
        one: First node, or -1 for the primitive.
        two: Second node.
        padding: Length subtracted from the distance [m].
        T: (3, 4) transform from the frame of the second node to that of the first node or of the
            primitive.
    """
    b = scene.node[two]
    if one >= 0:
        a = scene.node[one]
        return node_distance(T, a, b) - a[OUTER] - b[OUTER] - padding
    return centre_distance(T, scene.size[item], kind, b) - b[OUTER] - padding


@kernel
def nearest_leaves(
    scene: SceneArrays,
    k: int,
    limit: float,
    sharp: float,
    work: CollisionScratch,
    found: Indices,
) -> float:
    """Find the two closest leaves of pair k; return their distance [m], at most `limit`.

    Args:
        scene: The shapes and pairs.
        k: Index of the pair.
        limit: Maximum result [m].
        sharp: Distances below this value are computed by the convex hulls of the leaves instead of
            their spheres [m].
        work: Scratch arrays. `T` holds the transform of :func:`place_pair`; the first entry of
            `bound` is set to a lower bound on the distance [m].
        found: (2,) closest leaves, written if they are closer than `limit`.
    """
    node, child, T, stack, bound = scene.node, scene.child, work.T, work.stack, work.bound
    item, one, two, padding = parts_of_pair(scene, k)
    is_tree = one >= 0
    kind = -1 if is_tree else scene.kind[item]
    best, pending, visits = limit, 1, 0
    stack[0, 0], stack[0, 1] = one, two
    bound[0] = leaf_distance(scene, item, kind, one, two, padding, T)
    if bound[0] >= limit:
        return limit
    while pending > 0:
        pending -= 1
        one, two = stack[pending, 0], stack[pending, 1]
        if bound[pending] >= best:
            continue
        visits += 1
        may_prune = is_tree and bound[pending] < sharp and 0.0 < best < limit
        if may_prune and keeps_along(
            scene.hull, scene.ball, one, two, T, best + padding, work.hulls
        ):
            continue
        is_leaf = child[two] < 0 and (not is_tree or child[one] < 0)
        if is_leaf or visits > MOST_NODES or pending + 2 > STACK:
            d = bound[pending]
            if is_tree and is_leaf and d < sharp and 0.0 < best and visits <= MOST_NODES:
                d = leaf_bound(scene, one, two, T, d, padding, min(best, sharp), work.hulls)
                visits += HULL_VISITS
            if d < best:
                best, found[0], found[1] = d, one, two
            continue
        first = pending
        if is_tree:
            pending = push_children(node, child, stack, one, two, pending)
        else:
            for i in range(2):
                stack[pending, 0], stack[pending, 1] = one, child[two] + i
                pending += 1
        for i in range(first, pending):
            bound[i] = leaf_distance(scene, item, kind, stack[i, 0], stack[i, 1], padding, T)
        if bound[first] < bound[first + 1]:
            swap_pending(stack, bound, first)
    bound[0] = best
    return best


@kernel
def leaf_points(
    scene: SceneArrays,
    k: int,
    leaves: Indices,
    sharp: float,
    work: CollisionScratch,
    out: Array,
) -> float:
    """Return the distance [m] of two leaves of pair k; write their closest points and the normal.

    Args:
        scene: The shapes and pairs.
        k: Index of the pair, whose shapes are ordered as in :func:`parts_of_pair`.
        leaves: (2,) leaves from :func:`nearest_leaves`.
        sharp: As for :func:`nearest_leaves`.
        work: Scratch arrays; `pose` holds the poses of the frames, and `T` is written.
        out: (3, 3) rows in the frame of the root link, written: closest point of the first shape
            and closest point of the second shape [m], and the unit vector from the first point to
            the second.
    """
    node, own = scene.node, scene.pairs.shape[0]
    pose, T, hulls = work.pose, work.T, work.hulls
    item, one, _, padding = parts_of_pair(scene, k)
    place_pair(scene, k, pose, T)
    b = node[leaves[1]]
    bx, by, bz, radius = b[0], b[1], b[2], b[OUTER]
    x, y, z = apply(T, b)
    if one >= 0:
        d, u, v, w = from_node(node[leaves[0]], x, y, z)
        d -= node[leaves[0], OUTER] + radius
        has_hulls = scene.hull[leaves[0], 1] > 0 and scene.hull[leaves[1], 1] > 0
        if has_hulls and d - padding < sharp:
            lower, _ = hull_distance(scene.hull, scene.ball, leaves[0], leaves[1], T, np.inf, hulls)
            if lower > d:
                d = min(lower, sharp + padding)
                u, v, w = hulls.normal[0], hulls.normal[1], hulls.normal[2]
                radius = scene.ball[scene.hull[leaves[1], 0], BALL_RADIUS]
                bx = by = bz = 0.0
                for i in range(4):
                    weight = hulls.simplex[i, WEIGHT]
                    bx += weight * hulls.simplex[i, 3]
                    by += weight * hulls.simplex[i, 4]
                    bz += weight * hulls.simplex[i, 5]
    else:
        d, u, v, w = distance_and_normal(scene.kind[item], scene.size[item], x, y, z)
        d -= radius
    d -= padding
    frame = scene.frame[scene.pairs[k, 1] if k < own else scene.outside[k - own, 0]]
    if k < own:
        A = pose[scene.frame[scene.pairs[k, 0]]]
        for i in range(3):
            out[2, i] = A[i, 0] * u + A[i, 1] * v + A[i, 2] * w
    else:
        P = scene.place[item]
        for i in range(3):
            out[2, i] = P[0, i] * u + P[1, i] * v + P[2, i] * w
    B = pose[frame]
    for i in range(3):
        c = B[i, 0] * bx + B[i, 1] * by + B[i, 2] * bz + B[i, 3]
        out[1, i] = c - radius * out[2, i]
        out[0, i] = out[1, i] - (d + padding) * out[2, i]
    return d
