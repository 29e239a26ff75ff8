# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bounds on the distances of pairs, and collision checks of straight joint paths by the bounds."""

from math import exp

import numpy as np

from dls_ik.core.collision import MOST_VISITS, push_children
from dls_ik.core.hulls import SHARP_RANGE, keeps_along, leaf_bound
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.kinematics import compose
from dls_ik.core.scene_arrays import (
    INNER,
    KIND_TREE,
    OUTER,
    CollisionScratch,
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
# Approach of a pair in half a coarse interval [m], and maximum number of coarse intervals.
COARSE_APPROACH, MAX_COARSE_INTERVALS = 0.1, 64
BOUND_PRECISION = 1e-6  # [m] bounds are sharpened up to this much above the required distance
HULL_VISITS = 10  # number of node pairs that one hull distance counts as
# Maximum number of intervals of a path, and of pairs listed for the intervals.
MOST_SPANS, MOST_LISTED = 4096, 1 << 15


# One pair -----------------------------------------------------------------------------------------


@force_inline
def nearest_of(d: float, node: Array, at: int) -> float:
    """Return an upper bound on the distance [m] of a piece, given the distance of its centre."""
    return d - node[at, INNER] if node[at, INNER] >= 0.0 else d + node[at, OUTER]


@kernel
def primitive_bounds(
    scene: SceneArrays, shape: int, item: int, T: Array, limit: float, work: CollisionScratch
) -> tuple[float, float]:
    """Return a lower and an upper bound on the distance [m] of a shape from a primitive.

    Args:
        shape, item, T: As for :func:`dls_ik.core.collision.check_primitive`.
        limit: Lower bounds above this value are not sharpened [m].
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
        a, b, padding, T: As for :func:`dls_ik.core.collision.check_trees`.
        limit: Lower bounds above this value are not sharpened [m].
        sharp: Lower bounds below this value are sharpened by hulls [m].
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
                    scene.hull, scene.ball, one, two, T, before, padding, min(lower, sharp),
                    work.hulls,
                )  # fmt: skip
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
def swap_pending(stack: Indices, bound: Array, at: int) -> None:
    """Exchange entry `at` of the stack with the next entry."""
    bound[at], bound[at + 1] = bound[at + 1], bound[at]
    for j in range(2):
        stack[at, j], stack[at + 1, j] = stack[at + 1, j], stack[at, j]


@force_inline
def pair_bounds(
    scene: SceneArrays, k: int, limit: float, sharp: float, work: CollisionScratch
) -> tuple[float, float]:
    """Return bounds on the distance [m] of pair k at the configuration last placed.

    Args:
        limit, sharp: As for :func:`tree_bounds`.
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
    """Return the sum of exp(-d / d0) over all pairs at the configuration last placed.

    d is a lower bound on the distance of a pair. Unlike the minimum distance, the sum also changes
    if some pairs are always close and other pairs move.
    """
    total = 0.0
    for k in range(scene.pairs.shape[0] + scene.outside.shape[0]):
        d, _ = pair_bounds(scene, k, MAX_NEARNESS_RATIO * NEARNESS_DISTANCE, -np.inf, work)
        if d < MAX_NEARNESS_RATIO * NEARNESS_DISTANCE:
            total += exp(-max(d, 0.0) / NEARNESS_DISTANCE)
    return total


@allocating
def bound_pairs(
    numbers: Array, integers: Indices, q: Array, limit: float, closest: bool, out: Array
) -> None:
    """Write bounds on the distances of all pairs at q (n,); called from Python.

    Args:
        numbers, integers: Arrays of `pack_scene`.
        limit: Lower bounds above this value are not sharpened [m].
        closest: Reduce `limit` to the smallest upper bound of all pairs.
        out: (p + s, 2) lower and upper bounds, written [m].
    """
    scene = unpack_scene(numbers, integers)
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
    numbers: Array,
    integers: Indices,
    ends: tuple[Array, Array],
    speed: Array,
    tolerance: float,
    time: Array,
) -> int:
    """Advance conservatively along a straight joint path; called from Python.

    Each pair is proven collision-free until its own time. The time of the earliest pair grows by
    its distance divided by its maximum approach speed, until the lower bound on the distance is at
    most `tolerance`.

    Args:
        numbers, integers: Arrays of `pack_scene`.
        ends: Two arrays (n,): joint positions at times 0 and 1.
        speed: (p + s,) bounds on the relative speed of the shapes of each pair [m].
        tolerance: Smallest useful lower bound on a distance [m].
        time: (p + s,) time until which each pair is collision-free, read and written.

    Returns:
        The earliest pair, whose distance at its time must be computed exactly; -1 if all pairs are
        collision-free until time 1.
    """
    scene = unpack_scene(numbers, integers)
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
    numbers: Array,
    integers: Indices,
    ends: tuple[Array, Array],
    speed: Array,
    margin: Array,
    time: Array,
) -> int:
    """Find a pair that is not proven collision-free on a straight joint path; called from Python.

    Intervals of the path are halved, longer intervals first, until at the middle of each interval
    every pair exceeds its margin by more than its maximum approach in half the interval. A pair is
    checked in the halves of an interval only if the whole interval leaves it undecided.

    Args:
        numbers, integers: Arrays of `pack_scene`.
        ends: Two arrays (n,): joint positions at times 0 and 1; time 1 is checked first.
        speed: (p + s,) bounds on the relative speed of the shapes of each pair [m].
        margin: (p + s,) minimum distance of each pair [m].
        time: (1,) time at which the pair is not collision-free, written.

    Returns:
        The pair; -1 if all pairs keep their margins along the whole path.
    """
    scene = unpack_scene(numbers, integers)
    work = collision_scratch(scene)
    q, count = np.empty(ends[0].shape[0]), speed.shape[0]
    spans, listed = np.empty((MOST_SPANS, 2)), np.empty(MOST_LISTED, np.int64)  # middle and half
    first, last = np.zeros(MOST_SPANS, np.int64), np.zeros(MOST_SPANS, np.int64)
    # Start with the end, then with intervals short enough for useful bounds on distances.
    fastest = 0.0
    for k in range(count):
        fastest = max(fastest, speed[k])
    parts = min(max(int(fastest / (2.0 * COARSE_APPROACH)), 1), MAX_COARSE_INTERVALS)
    spans[0, 0], spans[0, 1] = 1.0, 0.0
    stride = 1
    while stride < parts:
        stride *= 2
    pending, at = 1, stride
    while at > 0:  # halve the stride, so that the middle of the path comes early
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
    """Return whether the root spheres of pair k are farther apart than `distance` [m]."""
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
