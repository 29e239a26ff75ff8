# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bounds on the distances of pairs of shapes, and collision checks of straight joint paths."""

from math import exp

import numpy as np

from dls_ik.core.collision import MOST_VISITS, push_children
from dls_ik.core.hulls import SHARP_RANGE, HullScratch, hull_distance, keeps_along
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.kinematics import compose
from dls_ik.core.scene_arrays import (
    INNER,
    KIND_TREE,
    OUTER,
    CollisionScratch,
    PackedScene,
    SceneArrays,
    collision_scratch,
    place_links,
    relate,
    unpack_scene,
)
from dls_ik.core.shape_distance import centre_distance, node_distance
from dls_ik.core.types import Array, Indices

# d0 of `nearness` [m]; pairs beyond MAX_NEARNESS_RATIO * d0 are ignored
NEARNESS_DISTANCE, MAX_NEARNESS_RATIO = 0.02, 8.0
# A path is first divided into coarse intervals: maximum approach of a pair in half an interval [m],
# and maximum number of these intervals.
COARSE_APPROACH, MAX_COARSE_INTERVALS = 0.1, 64
BOUND_PRECISION = 1e-6  # [m] bounds are sharpened up to this much above the required distance
HULL_VISITS = 10  # number of visited node pairs whose time equals that of one hull distance
# Maximum number of intervals of a path, and maximum number of entries in the list of pairs that
# these intervals leave undecided.
MOST_SPANS, MOST_LISTED = 4096, 1 << 15


# One pair -----------------------------------------------------------------------------------------


@force_inline
def nearest_of(d: float, node: Array, at: int) -> float:
    """Return an upper bound on the distance [m] of a solid from a shape, given one of its nodes.

    The bound uses the inner sphere of the node, or the outer sphere if there is no inner sphere.

    Args:
        d: Distance of the centre of the node from the shape [m].
        node: (N, 5) nodes of all trees.
        at: Index of the node.
    """
    return d - node[at, INNER] if node[at, INNER] >= 0.0 else d + node[at, OUTER]


@kernel
def primitive_bounds(
    scene: SceneArrays, shape: int, item: int, T: Array, limit: float, work: CollisionScratch
) -> tuple[float, float]:
    """Return a lower and an upper bound on the distance [m] of a moving shape from a primitive.

    Args:
        scene: The shapes and objects.
        shape: Index of the moving shape.
        item: Index of the primitive among the objects.
        T: (3, 4) transform from the frame of the shape to that of the primitive.
        limit: A lower bound above this value is returned without further improvement [m].
        work: Scratch arrays.
    """
    node, child, stack, bound = scene.node, scene.child, work.stack, work.bound
    kind, size, padding = scene.kind[item], scene.size[item], scene.padding[shape]
    root = scene.root[shape]
    d = centre_distance(T, size, kind, node[root]) - padding
    stack[0, 0], bound[0] = root, d - node[root, OUTER]
    pending, lower, upper = 1, np.inf, nearest_of(d, node, root)
    while pending > 0:
        pending -= 1
        at, before = stack[pending, 0], bound[pending]
        if before >= lower:
            continue
        if child[at] < 0 or before > limit:
            lower = before
            continue
        # Put the closer child on top of the stack.
        for i in range(2):
            part = child[at] + i
            d = centre_distance(T, size, kind, node[part]) - padding
            upper = min(upper, nearest_of(d, node, part))
            stack[pending + i, 0], bound[pending + i] = part, max(before, d - node[part, OUTER])
        if bound[pending] < bound[pending + 1]:
            swap_pending(stack, bound, pending)
        pending += 2
    return lower, max(upper, lower)


@kernel
def tree_bounds(
    scene: SceneArrays, a: int, b: int, padding: float, T: Array, limit: float, sharp: float,
    work: CollisionScratch,
) -> tuple[float, float]:  # fmt: skip
    """Return a lower and an upper bound on the distance [m] of two sphere trees.

    Args:
        scene: The shapes and objects.
        a, b: Root nodes of the trees.
        padding: Length subtracted from the distance [m].
        T: (3, 4) transform from the frame of b to that of a.
        limit: A lower bound above this value is returned without further improvement [m].
        sharp: Lower bounds below this value are improved by the convex hulls of the leaves [m].
        work: Scratch arrays.
    """
    node, child, stack, bound = scene.node, scene.child, work.stack, work.bound
    d = node_distance(T, node[a], node[b]) - padding
    stack[0, 0], stack[0, 1], bound[0] = a, b, d - node[a, OUTER] - node[b, OUTER]
    pending, lower, upper = 1, np.inf, nearest_of(nearest_of(d, node, a), node, b)
    visits = 0
    while pending > 0:
        pending -= 1
        one, two, before = stack[pending, 0], stack[pending, 1], bound[pending]
        if before >= lower:
            continue
        visits += 1
        may_prune = before < sharp and 0.0 < lower < np.inf
        if may_prune and keeps_along(
            scene.hull, scene.ball, one, two, T, lower + padding, work.hulls
        ):
            continue
        is_leaf = child[one] < 0 and child[two] < 0
        if is_leaf or before > limit or visits > MOST_VISITS:
            if is_leaf and before < sharp and 0.0 < lower and visits <= MOST_VISITS:
                before = leaf_bound(
                    scene, one, two, T, before, padding, min(lower, sharp), work.hulls
                )
                visits += HULL_VISITS
            lower = min(lower, before)
            continue
        first = pending
        pending = push_children(node, child, stack, one, two, pending)
        for i in range(first, pending):
            one, two = stack[i, 0], stack[i, 1]
            d = node_distance(T, node[one], node[two]) - padding
            upper = min(upper, nearest_of(nearest_of(d, node, one), node, two))
            bound[i] = max(before, d - node[one, OUTER] - node[two, OUTER])
        if bound[first] < bound[first + 1]:
            swap_pending(stack, bound, first)
    return lower, max(upper, lower)


@force_inline
def leaf_bound(
    scene: SceneArrays, one: int, two: int, T: Array, apart: float, padding: float, sharp: float,
    work: HullScratch,
) -> float:  # fmt: skip
    """Improve a lower bound on the distance [m] of two leaves by the distance of their hulls.

    Args:
        scene: The shapes and objects.
        one, two: Indices of the leaves.
        T: (3, 4) transform from the frame of the second leaf to that of the first.
        apart: Lower bound on the distance of the leaves by their spheres [m].
        padding: Length subtracted from the distance of the hulls [m].
        sharp: The bound is not improved beyond this value [m], so that the result is a continuous
            function of T.
        work: Scratch arrays.

    Returns:
        The improved lower bound; `apart` if a leaf has no hull.
    """
    if apart >= sharp or scene.hull[one, 1] == 0 or scene.hull[two, 1] == 0:
        return apart
    lower, _ = hull_distance(scene.hull, scene.ball, one, two, T, sharp + padding, work)
    return max(apart, min(lower - padding, sharp))


@force_inline
def swap_pending(stack: Indices, bound: Array, at: int) -> None:
    """Exchange entries `at` and `at + 1` of the stack of nodes and of the lower bounds `bound`."""
    bound[at], bound[at + 1] = bound[at + 1], bound[at]
    for j in range(2):
        stack[at, j], stack[at + 1, j] = stack[at + 1, j], stack[at, j]


@force_inline
def pair_bounds(
    scene: SceneArrays, k: int, limit: float, sharp: float, work: CollisionScratch
) -> tuple[float, float]:
    """Return a lower and an upper bound on the distance [m] of pair k.

    Args:
        scene: The shapes and pairs.
        k: Index of the pair.
        limit: A lower bound above this value is returned without further improvement [m].
        sharp: Lower bounds below this value are improved by the convex hulls of the leaves [m].
        work: Holds the poses that :func:`dls_ik.core.scene_arrays.place_links` wrote.
    """
    own, is_tree, outside = scene.pairs.shape[0], True, 0
    if k < own:
        a, b = scene.pairs[k, 0], scene.pairs[k, 1]
        relate(work.pose[scene.frame[a]], work.pose[scene.frame[b]], work.T)
        padding = scene.padding[a] + scene.padding[b]
        one, two = scene.root[a], scene.root[b]
    else:
        a, outside = scene.outside[k - own, 0], scene.outside[k - own, 1]
        compose(scene.place[outside], work.pose[scene.frame[a]], work.T)
        padding = scene.padding[a]
        one, two = scene.tree[outside], scene.root[a]
        is_tree = scene.kind[outside] == KIND_TREE
    if is_tree:
        return tree_bounds(scene, one, two, padding, work.T, limit, sharp, work)
    return primitive_bounds(scene, a, outside, work.T, limit, work)


# A configuration ----------------------------------------------------------------------------------


@kernel
def nearness(scene: SceneArrays, work: CollisionScratch) -> float:
    """Return the sum of exp(-d / d0) over all pairs, with d a lower bound on the pair's distance.

    The smaller the sum, the larger the clearance. Unlike the minimum distance, the sum also changes
    if some pairs are always close and other pairs move.

    Args:
        scene: The shapes and pairs.
        work: Holds the poses that :func:`dls_ik.core.scene_arrays.place_links` wrote.
    """
    total = 0.0
    for k in range(scene.pairs.shape[0] + scene.outside.shape[0]):
        d, _ = pair_bounds(scene, k, MAX_NEARNESS_RATIO * NEARNESS_DISTANCE, -np.inf, work)
        if d < MAX_NEARNESS_RATIO * NEARNESS_DISTANCE:
            total += exp(-max(d, 0.0) / NEARNESS_DISTANCE)
    return total


@allocating
def bound_pairs(packed: PackedScene, q: Array, limit: float, closest: bool, out: Array) -> None:
    """Write lower and upper bounds on the distances of all pairs at one configuration.

    Args:
        packed: Scene with p pairs of links and s pairs of a link and an object, from
            :func:`dls_ik.core.scene_arrays.pack_scene`.
        q: (n,) joint positions [rad or m].
        limit: The search for a better lower bound of a pair ends above this value [m].
        closest: Whether only the closest pair must be found. The search for a better lower bound
            of a pair then also ends above the smallest upper bound of all pairs.
        out: (p + s, 2) lower and upper bound for each pair, written [m].
    """
    scene = unpack_scene(*packed)
    work = collision_scratch(scene)
    place_links(scene, q, work)
    if closest:
        for k in range(out.shape[0]):
            _, upper = pair_bounds(scene, k, -np.inf, -np.inf, work)
            limit = min(limit, upper)
    for k in range(out.shape[0]):
        out[k, 0], out[k, 1] = pair_bounds(scene, k, limit, limit + BOUND_PRECISION, work)
        if closest:
            limit = min(limit, out[k, 1])


# A path -------------------------------------------------------------------------------------------


@allocating
def advance_pairs(
    packed: PackedScene,
    ends: tuple[Array, Array],
    speed: Array,
    tolerance: float,
    time: Array,
) -> int:
    """Prove a straight joint path collision-free by conservative advancement; called from Python.

    The path starts at time 0 and ends at time 1. For each pair of shapes, `time` holds the time up
    to which the pair is proven collision-free. The function repeatedly takes the pair with the
    smallest time, computes a lower bound on its distance at that time, and advances the time by
    this bound divided by the maximum relative speed of the pair. It returns when a lower bound is
    at most `tolerance`.

    Args:
        packed: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`.
        ends: Two arrays (n,): joint positions at times 0 and 1 [rad or m].
        speed: (p + s,) bounds on the relative speed of the shapes of each pair [m per unit time].
        tolerance: Lower bound on a distance at or below which the function returns [m].
        time: (p + s,) time up to which each pair is collision-free, read and written.

    Returns:
        The pair with the smallest time; the caller must compute its distance at this time exactly.
        -1 if all pairs are collision-free up to time 1.
    """
    scene = unpack_scene(*packed)
    work = collision_scratch(scene)
    q = np.empty(ends[0].shape[0])
    while True:
        behind = -1
        for k in range(time.shape[0]):
            if time[k] < 1.0 and (behind < 0 or time[k] < time[behind]):
                behind = k
        if behind < 0:
            return -1
        now = time[behind]
        for j in range(q.shape[0]):
            q[j] = ends[0][j] + now * (ends[1][j] - ends[0][j])
        place_links(scene, q, work)
        lower, _ = pair_bounds(scene, behind, np.inf, np.inf, work)
        if lower <= tolerance:
            return behind
        time[behind] = now + lower / speed[behind] if speed[behind] > 0.0 else 1.0


@allocating
def block_of_path(
    packed: PackedScene,
    ends: tuple[Array, Array],
    speed: Array,
    margin: Array,
    time: Array,
) -> int:
    """Find a pair that is not proven collision-free on a straight joint path; called from Python.

    The path starts at time 0 and ends at time 1. A pair stays farther apart than its margin during
    an interval of the path if, at the middle of the interval, its distance exceeds the margin by
    more than its maximum approach in half the interval. Intervals for which this is not proven for
    all pairs are halved, longer intervals first, and only the undecided pairs are checked in the
    halves.

    Args:
        packed: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`.
        ends: Two arrays (n,): joint positions at times 0 and 1 [rad or m]; time 1 is checked first.
        speed: (p + s,) bounds on the relative speed of the shapes of each pair [m per unit time].
        margin: (p + s,) minimum distance of each pair [m].
        time: (1,) time at which the returned pair is not proven to exceed its margin, written.

    Returns:
        The index of the pair; -1 if all pairs stay farther apart than their margins on the path.
    """
    scene = unpack_scene(*packed)
    work = collision_scratch(scene)
    q, count = np.empty(ends[0].shape[0]), speed.shape[0]
    # Row i of `spans` is the middle and half the length of interval i.
    spans, listed = np.empty((MOST_SPANS, 2)), np.empty(MOST_LISTED, np.int64)
    first, last = np.zeros(MOST_SPANS, np.int64), np.zeros(MOST_SPANS, np.int64)
    # Check the end of the path first, then coarse intervals, in which pairs approach by little.
    fastest = 0.0
    for k in range(count):
        fastest = max(fastest, speed[k])
    parts = min(max(int(fastest / (2.0 * COARSE_APPROACH)), 1), MAX_COARSE_INTERVALS)
    spans[0, 0], spans[0, 1] = 1.0, 0.0
    stride = 1
    while stride < parts:
        stride *= 2
    pending, at = 1, stride
    while at > 0:  # check every `stride`th interval first, then the intervals in between
        for i in range(0, parts, at):
            if i % (2 * at) != 0 or at == stride:
                spans[pending, 0], spans[pending, 1] = (i + 0.5) / parts, 0.5 / parts
                pending += 1
        at //= 2
    coarse, used, span = pending, 0, 0
    while span < pending:
        now, half = spans[span, 0], spans[span, 1]
        for j in range(q.shape[0]):
            q[j] = ends[0][j] + now * (ends[1][j] - ends[0][j])
        place_links(scene, q, work)
        is_coarse, begin = span < coarse, used
        for i in range(0 if is_coarse else first[span], count if is_coarse else last[span]):
            k = i if is_coarse else listed[i]
            need = margin[k] + speed[k] * half
            if far_apart(scene, k, need, work):
                continue
            lower, _ = pair_bounds(
                scene, k, need, min(need + BOUND_PRECISION, margin[k] + SHARP_RANGE), work
            )
            if lower > need:
                continue
            if lower <= margin[k] or used == MOST_LISTED or pending + 2 > MOST_SPANS:
                time[0] = now
                return k
            listed[used] = k
            used += 1
        if used > begin:
            for i in range(2):
                spans[pending, 0], spans[pending, 1] = now + (i - 0.5) * half, 0.5 * half
                first[pending], last[pending] = begin, used
                pending += 1
        span += 1
    return -1


@force_inline
def far_apart(scene: SceneArrays, k: int, distance: float, work: CollisionScratch) -> bool:
    """Return whether the root spheres of pair k prove that its shapes are far enough apart.

    Args:
        scene: The shapes and pairs.
        k: Index of the pair.
        distance: Distance that the shapes must exceed [m].
        work: Holds the positions that :func:`dls_ik.core.scene_arrays.place_links` wrote.
    """
    own = scene.pairs.shape[0]
    if k < own:
        a, b = scene.pairs[k, 0], scene.pairs[k, 1]
        x = work.centre[a, 0] - work.centre[b, 0]
        y = work.centre[a, 1] - work.centre[b, 1]
        z = work.centre[a, 2] - work.centre[b, 2]
        reach = scene.node[scene.root[a], OUTER] + scene.node[scene.root[b], OUTER]
        reach += scene.padding[a] + scene.padding[b] + distance
        return x * x + y * y + z * z > reach * reach
    a, item = scene.outside[k - own, 0], scene.outside[k - own, 1]
    kind, place = scene.kind[item], scene.place[item]
    reach = scene.node[scene.root[a], OUTER] + scene.padding[a] + distance
    if kind == KIND_TREE:
        node = scene.node[scene.tree[item]]
        return node_distance(place, node, work.centre[a]) > reach + node[OUTER]
    return centre_distance(place, scene.size[item], kind, work.centre[a]) > reach
