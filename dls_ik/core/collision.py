# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Collision checks by sphere trees.

Each node of a sphere tree has an outer sphere, which contains a piece of the solid, and an inner
sphere, which is inside the solid. If the outer spheres of two nodes do not overlap, their pieces do
not touch. If the inner spheres overlap, the solids collide. A pair of shapes is CHECK_FREE or
CHECK_COLLIDING if the spheres prove it; otherwise the pair is CHECK_OPEN, and an exact library
decides in Python.
"""

import numpy as np

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

CHECK_FREE, CHECK_COLLIDING, CHECK_OPEN = range(3)
MOST_VISITS = (
    20_000  # maximum number of node pairs visited; a pair is CHECK_OPEN if they do not decide
)


# One pair -----------------------------------------------------------------------------------------


@kernel
def check_primitive(
    scene: SceneArrays, shape: int, item: int, T: Array, work: CollisionScratch
) -> tuple[int, int]:
    """Check a moving shape for a collision with a primitive (an object that is not a sphere tree).

    Args:
        scene: The shapes and objects.
        shape: Index of the moving shape.
        item: Index of the primitive among the objects.
        T: (3, 4) transform from the frame of the shape to that of the primitive.
        work: Scratch arrays.

    Returns:
        CHECK_FREE, CHECK_COLLIDING or CHECK_OPEN, and a node of the shape: for CHECK_COLLIDING a
        node whose inner sphere overlaps the primitive, for CHECK_OPEN the leaf whose outer sphere
        overlaps it most.
    """
    node, child, stack = scene.node, scene.child, work.stack
    kind, size, padding = scene.kind[item], scene.size[item], scene.padding[shape]
    stack[0, 0] = scene.root[shape]
    pending, state, best, found = 1, CHECK_FREE, np.inf, scene.root[shape]
    while pending > 0:
        pending -= 1
        at = stack[pending, 0]
        d = centre_distance(T, size, kind, node[at]) - padding
        if d > node[at, OUTER]:
            continue
        if d < node[at, INNER]:
            return CHECK_COLLIDING, at
        if child[at] < 0:
            state = CHECK_OPEN
            if d - node[at, OUTER] < best:
                best, found = d - node[at, OUTER], at
        else:
            stack[pending, 0] = child[at]
            stack[pending + 1, 0] = child[at] + 1
            pending += 2
    return state, found


@kernel
def check_trees(
    scene: SceneArrays, a: int, b: int, padding: float, T: Array, work: CollisionScratch
) -> int:
    """Check two sphere trees for a collision.

    Args:
        scene: The shapes and objects.
        a, b: Root nodes of the trees.
        padding: Length added to the sum of the two radii in each comparison [m].
        T: (3, 4) transform from the frame of b to that of a.
        work: Scratch arrays.

    Returns:
        CHECK_FREE, CHECK_COLLIDING or CHECK_OPEN.
    """
    node, child, stack = scene.node, scene.child, work.stack
    stack[0, 0], stack[0, 1] = a, b
    pending, state = 1, CHECK_FREE
    for _ in range(MOST_VISITS):
        if pending == 0:
            return state
        pending -= 1
        one, two = stack[pending, 0], stack[pending, 1]
        d = node_distance(T, node[one], node[two]) - padding
        if d > node[one, OUTER] + node[two, OUTER]:
            continue
        if d < node[one, INNER] + node[two, INNER]:
            return CHECK_COLLIDING
        if child[one] < 0 and child[two] < 0:
            state = CHECK_OPEN
        else:
            pending = push_children(node, child, stack, one, two, pending)
    return CHECK_OPEN


@force_inline
def push_children(
    node: Array, child: Indices, stack: Indices, one: int, two: int, pending: int
) -> int:
    """Push two pairs of nodes on the stack: the children of the larger node with the other node.

    Args:
        node: (N, 5) nodes.
        child: (N,) first child of each node, -1 for a leaf.
        stack: (STACK, 2) pairs of nodes, written.
        one, two: The pair of nodes to replace, at least one of them not a leaf.
        pending: Number of pairs on the stack.

    Returns:
        The new number of pairs on the stack.
    """
    split_one = child[one] >= 0 and (child[two] < 0 or node[one, OUTER] > node[two, OUTER])
    for i in range(2):
        stack[pending, 0] = child[one] + i if split_one else one
        stack[pending, 1] = two if split_one else child[two] + i
        pending += 1
    return pending


@force_inline
def check_own_pair(scene: SceneArrays, k: int, work: CollisionScratch) -> int:
    """Check the two moving shapes of row k of `scene.pairs` for a collision.

    The poses are those that :func:`place_links` wrote to `work`. Returns CHECK_FREE,
    CHECK_COLLIDING or CHECK_OPEN.
    """
    a, b = scene.pairs[k, 0], scene.pairs[k, 1]
    x = work.centre[a, 0] - work.centre[b, 0]
    y = work.centre[a, 1] - work.centre[b, 1]
    z = work.centre[a, 2] - work.centre[b, 2]
    padding = scene.padding[a] + scene.padding[b]
    one, two = scene.root[a], scene.root[b]
    reach = scene.node[one, OUTER] + scene.node[two, OUTER] + padding
    if x * x + y * y + z * z > reach * reach:
        return CHECK_FREE
    relate(work.pose[scene.frame[a]], work.pose[scene.frame[b]], work.T)
    return check_trees(scene, one, two, padding, work.T, work)


@force_inline
def check_outside_pair(scene: SceneArrays, k: int, work: CollisionScratch) -> int:
    """Check the moving shape and the object of row k of `scene.outside` for a collision.

    The poses are those that :func:`place_links` wrote to `work`. Returns CHECK_FREE,
    CHECK_COLLIDING or CHECK_OPEN.
    """
    a, item = scene.outside[k, 0], scene.outside[k, 1]
    kind, place, root, padding = scene.kind[item], scene.place[item], scene.root[a], scene.padding
    if kind == KIND_TREE:
        tree = scene.tree[item]
        node = scene.node[tree]
        reach = scene.node[root, OUTER] + node[OUTER] + padding[a]
        if node_distance(place, node, work.centre[a]) > reach:
            return CHECK_FREE
        compose(place, work.pose[scene.frame[a]], work.T)
        return check_trees(scene, tree, root, padding[a], work.T, work)
    d = centre_distance(place, scene.size[item], kind, work.centre[a])
    if d > scene.node[root, OUTER] + padding[a]:
        return CHECK_FREE
    compose(place, work.pose[scene.frame[a]], work.T)
    state, _ = check_primitive(scene, a, item, work.T, work)
    return state


@kernel
def check_pair(scene: SceneArrays, k: int, work: CollisionScratch) -> int:
    """Check pair k for a collision; return CHECK_FREE, CHECK_COLLIDING or CHECK_OPEN.

    The poses are those that :func:`place_links` wrote to `work`. Pairs are numbered in the order of
    the rows of `scene.pairs`, followed by the rows of `scene.outside`.
    """
    own = scene.pairs.shape[0]
    if k < own:
        return check_own_pair(scene, k, work)
    return check_outside_pair(scene, k - own, work)


# A configuration ----------------------------------------------------------------------------------


@kernel
def collides(scene: SceneArrays, q: Array, work: CollisionScratch) -> int:
    """Check all pairs for collisions at the joint positions q (n,) [rad or m].

    `work.found` is set to a pair that collides, or else to the first open pair; -1 for CHECK_FREE.

    Returns:
        CHECK_FREE or CHECK_COLLIDING if spheres prove it, otherwise CHECK_OPEN: exact checks are
        required.
    """
    place_links(scene, q, work)
    state = CHECK_FREE
    work.found[0] = -1
    for k in range(scene.pairs.shape[0] + scene.outside.shape[0]):
        here = check_pair(scene, k, work)
        if here == CHECK_COLLIDING or (here == CHECK_OPEN and state == CHECK_FREE):
            work.found[0], state = k, here
            if here == CHECK_COLLIDING:
                break
    return state


@kernel
def collides_again(scene: SceneArrays, q: Array, work: CollisionScratch) -> int:
    """Run :func:`collides` at q (n,), but check the pair of the previous result first.

    That pair, `work.found`, is likely to collide again.
    """
    k = work.found[0]
    if k >= 0:
        place_links(scene, q, work)
        if check_pair(scene, k, work) == CHECK_COLLIDING:
            return CHECK_COLLIDING
    return collides(scene, q, work)


@allocating
def check_rows(packed: PackedScene, q: Array, out: Indices) -> None:
    """Check each of b configurations for collisions; called from Python.

    Args:
        packed: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`.
        q: (b, n) joint positions [rad or m].
        out: (b, 2) state (CHECK_FREE, CHECK_COLLIDING or CHECK_OPEN) and pair of :func:`collides`,
            written.
    """
    scene = unpack_scene(*packed)
    work = collision_scratch(scene)
    for i in range(q.shape[0]):
        out[i, 0] = collides(scene, q[i], work)
        out[i, 1] = work.found[0]


@allocating
def check_pairs(packed: PackedScene, q: Array, out: Indices) -> None:
    """Check all pairs for collisions at one configuration.

    Args:
        packed: Scene with p pairs of links and s pairs of a link and an object, from
            :func:`dls_ik.core.scene_arrays.pack_scene`.
        q: (n,) joint positions [rad or m].
        out: (p + s,) result for each pair, written: CHECK_FREE, CHECK_COLLIDING, or CHECK_OPEN if
            the bounding spheres prove neither.
    """
    scene = unpack_scene(*packed)
    work = collision_scratch(scene)
    place_links(scene, q, work)
    for k in range(out.shape[0]):
        out[k] = check_pair(scene, k, work)


@allocating
def count_pairs(packed: PackedScene, q: Array, group: Indices, out: Indices) -> None:
    """Count the configurations in which groups of pairs collide; called from Python.

    Args:
        packed: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`.
        q: (b, n) joint positions [rad or m].
        group: (p + s,) index of the group of each pair, 0 to k - 1.
        out: (k, 2) read and increased: for each group, the number of configurations in which a pair
            of the group is CHECK_COLLIDING, and the number in which none is CHECK_COLLIDING but one
            is CHECK_OPEN.
    """
    scene = unpack_scene(*packed)
    work = collision_scratch(scene)
    state = np.zeros(out.shape[0], np.int64)
    for i in range(q.shape[0]):
        place_links(scene, q[i], work)
        state.fill(CHECK_FREE)
        for k in range(group.shape[0]):
            if state[group[k]] != CHECK_COLLIDING:
                here = check_pair(scene, k, work)
                if here != CHECK_FREE:
                    state[group[k]] = here
        for j in range(out.shape[0]):
            if state[j] != CHECK_FREE:
                out[j, state[j] - 1] += 1


@allocating
def link_poses(packed: PackedScene, q: Array, out: Array) -> None:
    """Write the poses of all f frames of a scene at one configuration.

    Args:
        packed: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`.
        q: (n,) joint positions [rad or m].
        out: (f, 3, 4) poses in the frame of the root link, without their last rows, written.
    """
    scene = unpack_scene(*packed)
    work = collision_scratch(scene)
    place_links(scene, q, work)
    for k in range(out.shape[0]):
        for i in range(3):
            for j in range(4):
                out[k, i, j] = work.pose[k, i, j]
