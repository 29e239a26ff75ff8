"""Collision checks by trees of spheres, beside the forward kinematics of all links.

Each node of a tree stands for a piece of a solid. All points of the piece are within `outer` of
the node's centre, and all points within `inner` of it are in the solid. Spheres that are apart by
their outer radii prove that pieces do not touch, spheres that meet by their inner radii that solids
do; a pair that neither proves is open, and left to an exact library. A centre outside the solid has
inner radius -inf. The pieces of a node's two
children make up its own.

Primitives of the world are exact: the signed distance of a point from each is in closed form.
"""

from math import cos, exp, sin, sqrt
from typing import NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Indices

FREE, COLLIDING, OPEN = range(3)
SPHERE, BOX, CYLINDER, CAPSULE, PLANE, TREE, CAVITY = range(7)  # of objects; all outside a ball
OUTER, INNER = 3, 4  # columns of a node after its centre
STACK = 512  # pending nodes; trees of this depth together are not built
NEARNESS, FAR = 0.02, 8.0  # [m] d0 of nearness; times it pairs are looked at
MOST_VISITS = 20_000  # of pairs of nodes; beyond, a pair is left open
COARSE, MOST_COARSE = 0.1, 64  # [m] that pairs may come nearer in half an interval; intervals
MOST_SPANS, MOST_LISTED = 4096, 1 << 15  # intervals of a path, and pairs that are listed for them


class SceneArrays(NamedTuple):
    """Moving geometry on f frames, objects of the world, and the pairs to check.

    Frame 0 is the root link's; each other one hangs by a joint on a frame before it, and moves
    along the z axis of its own, as the elements of :class:`dls_ik.core.types.Chain`.
    """

    parent: Indices  # (f,) frame that each hangs on
    variable: Indices  # (f,) which joint variable drives it
    prismatic: Indices  # (f,) 1 along z, 0 about z
    fixed: Array  # (f, 3, 4) from the parent to the frame at value 0
    scale: Array  # (f,)
    offset: Array  # (f,) [rad or m]
    frame: Indices  # (g,) of each moving shape
    root: Indices  # (g,) its node, in coordinates of the frame
    padding: Array  # (g,) added to its radii [m]
    kind: Indices  # (w,) of each object: SPHERE to TREE
    tree: Indices  # (w,) its node if it is a TREE, in its own coordinates
    size: Array  # (w, 3) radius; half edges; radius and half length [m]
    place: Array  # (w, 3, 4) from the root link to the object
    child: Indices  # (N,) the first of a node's two children, which follow each other; -1: a leaf
    node: Array  # (N, 5) centre, outer and inner radius [m]
    pairs: Indices  # (p, 2) moving shapes, and then
    outside: Indices  # (s, 2) a moving shape and an object


class CollisionScratch(NamedTuple):
    """Scratch of one thread."""

    pose: Array  # (f, 3, 4) of the frames, in the root link's
    centre: Array  # (g, 3) of the root spheres, in the root link's frame
    T: Array  # (3, 4) between two frames
    stack: Indices  # (STACK, 2) nodes
    bound: Array  # (STACK,) lower bound of the distance [m], of the nodes on the stack
    found: Indices  # (1,) pair that decided last


# Packing ------------------------------------------------------------------------------------------

IS_WHOLE = tuple(hint == Indices for hint in get_type_hints(SceneArrays).values())
SIZES = 6  # whole numbers first: f, g, w, N, p, s


def pack_scene(scene: SceneArrays) -> tuple[Array, Indices]:
    """Return all in two arrays, numbers and integers, laid out as :func:`unpack_scene` reads."""
    lengths = (scene.parent, scene.frame, scene.kind, scene.child, scene.pairs, scene.outside)
    parts: tuple[list[NDArray[np.generic]], ...] = ([], [np.array([len(e) for e in lengths])])
    for array, is_whole in zip(scene, IS_WHOLE, strict=True):
        parts[is_whole].append(np.asarray(array).ravel())
    numbers = np.concatenate([np.zeros(0), *parts[0]]).astype(np.float64)
    return numbers, np.concatenate(parts[1]).astype(np.int64)


@allocating
def unpack_scene(numbers: Array, integers: Indices) -> SceneArrays:
    """Return the arrays of a scene, views of the two that :func:`pack_scene` made."""
    f, g, w, count = integers[0], integers[1], integers[2], integers[3]
    p, s = integers[4], integers[5]
    whole, others = integers[SIZES:], numbers
    geometry, objects = whole[3 * f :], whole[3 * f + 2 * g :]
    rest = objects[2 * w :]
    shapes = others[14 * f :]
    places = shapes[g:]
    nodes = places[15 * w :]
    return SceneArrays(
        parent=whole[:f],
        variable=whole[f : 2 * f],
        prismatic=whole[2 * f : 3 * f],
        fixed=others[: 12 * f].reshape(f, 3, 4),
        scale=others[12 * f : 13 * f],
        offset=others[13 * f : 14 * f],
        frame=geometry[:g],
        root=geometry[g : 2 * g],
        padding=shapes[:g],
        kind=objects[:w],
        tree=objects[w : 2 * w],
        size=places[: 3 * w].reshape(w, 3),
        place=places[3 * w : 15 * w].reshape(w, 3, 4),
        child=rest[:count],
        node=nodes[: 5 * count].reshape(count, 5),
        pairs=rest[count : count + 2 * p].reshape(p, 2),
        outside=rest[count + 2 * p : count + 2 * p + 2 * s].reshape(s, 2),
    )


@allocating
def collision_scratch(scene: SceneArrays) -> CollisionScratch:
    """Allocate the scratch of one thread."""
    return CollisionScratch(
        pose=np.zeros((scene.parent.shape[0], 3, 4)),
        centre=np.zeros((scene.frame.shape[0], 3)),
        T=np.zeros((3, 4)),
        stack=np.zeros((STACK, 2), np.int64),
        bound=np.zeros(STACK),
        found=np.zeros(1, np.int64),
    )


# Kinematics ---------------------------------------------------------------------------------------


@kernel
def place_links(scene: SceneArrays, q: Array, work: CollisionScratch) -> None:
    """Write the poses of all frames at q (n,), and the centres of all moving shapes."""
    place_frames(scene, q, work.pose)
    for k in range(scene.frame.shape[0]):
        T, node = work.pose[scene.frame[k]], scene.node[scene.root[k]]
        for i in range(3):
            work.centre[k, i] = T[i, 0] * node[0] + T[i, 1] * node[1] + T[i, 2] * node[2] + T[i, 3]


@kernel
def place_frames(scene: SceneArrays, q: Array, pose: Array) -> None:
    """Write the poses (f, 3, 4) of all frames at q (n,)."""
    for i in range(3):
        for j in range(4):
            pose[0, i, j] = 1.0 if i == j else 0.0
    for k in range(1, scene.parent.shape[0]):
        T, before, fixed = pose[k], pose[scene.parent[k]], scene.fixed[k]
        value = scene.scale[k] * q[scene.variable[k]] + scene.offset[k]
        compose(before, fixed, T)
        if scene.prismatic[k] != 0:
            for i in range(3):
                T[i, 3] += value * T[i, 2]
        else:
            c, s = cos(value), sin(value)
            for i in range(3):
                x, y = T[i, 0], T[i, 1]
                T[i, 0] = c * x + s * y
                T[i, 1] = c * y - s * x


@force_inline
def compose(A: Array, B: Array, out: Array) -> None:
    """Write the product of two transforms (3, 4)."""
    for i in range(3):
        a, b, c = A[i, 0], A[i, 1], A[i, 2]
        for j in range(4):
            out[i, j] = a * B[0, j] + b * B[1, j] + c * B[2, j]
        out[i, 3] += A[i, 3]


@force_inline
def relate(A: Array, B: Array, out: Array) -> None:
    """Write the pose of frame B (3, 4) in frame A (3, 4), both given in a third one."""
    x, y, z = B[0, 3] - A[0, 3], B[1, 3] - A[1, 3], B[2, 3] - A[2, 3]
    for i in range(3):
        a, b, c = A[0, i], A[1, i], A[2, i]
        for j in range(3):
            out[i, j] = a * B[0, j] + b * B[1, j] + c * B[2, j]
        out[i, 3] = a * x + b * y + c * z


# Distances ----------------------------------------------------------------------------------------


@force_inline
def signed_distance(kind: int, size: Array, x: float, y: float, z: float) -> float:
    """Return the distance [m] of a point from a primitive in its own frame, negative inside."""
    if kind == BOX:
        a, b, c = abs(x) - size[0], abs(y) - size[1], abs(z) - size[2]
        inside = min(max(a, max(b, c)), 0.0)
        a, b, c = max(a, 0.0), max(b, 0.0), max(c, 0.0)
        return sqrt(a * a + b * b + c * c) + inside
    if kind == PLANE:
        return z
    if kind == CAPSULE:
        c = max(abs(z) - size[1], 0.0)
        return sqrt(x * x + y * y + c * c) - size[0]
    if kind == CYLINDER:
        a, c = sqrt(x * x + y * y) - size[0], abs(z) - size[1]
        inside = min(max(a, c), 0.0)
        a, c = max(a, 0.0), max(c, 0.0)
        return sqrt(a * a + c * c) + inside
    if kind == CAVITY:
        return size[0] - sqrt(x * x + y * y + z * z)
    return sqrt(x * x + y * y + z * z) - size[0]


@force_inline
def centre_distance(T: Array, size: Array, kind: int, c: Array) -> float:
    """Return the signed distance [m] of a point c (3,) from a primitive placed by T (3, 4)."""
    x = T[0, 0] * c[0] + T[0, 1] * c[1] + T[0, 2] * c[2] + T[0, 3]
    y = T[1, 0] * c[0] + T[1, 1] * c[1] + T[1, 2] * c[2] + T[1, 3]
    z = T[2, 0] * c[0] + T[2, 1] * c[1] + T[2, 2] * c[2] + T[2, 3]
    return signed_distance(kind, size, x, y, z)


@force_inline
def node_distance(T: Array, a: Array, b: Array) -> float:
    """Return the distance [m] of the centres of node a and of node b, whose frame T places."""
    x = T[0, 0] * b[0] + T[0, 1] * b[1] + T[0, 2] * b[2] + T[0, 3] - a[0]
    y = T[1, 0] * b[0] + T[1, 1] * b[1] + T[1, 2] * b[2] + T[1, 3] - a[1]
    z = T[2, 0] * b[0] + T[2, 1] * b[1] + T[2, 2] * b[2] + T[2, 3] - a[2]
    return sqrt(x * x + y * y + z * z)


# One pair -----------------------------------------------------------------------------------------


@kernel
def check_primitive(
    scene: SceneArrays, shape: int, item: int, T: Array, work: CollisionScratch
) -> int:
    """Check a moving shape, placed by T (3, 4) in the frame of a primitive: FREE to OPEN."""
    node, child, stack = scene.node, scene.child, work.stack
    kind, size, padding = scene.kind[item], scene.size[item], scene.padding[shape]
    stack[0, 0] = scene.root[shape]
    pending, state = 1, FREE
    while pending > 0:
        pending -= 1
        at = stack[pending, 0]
        d = centre_distance(T, size, kind, node[at]) - padding
        if d > node[at, OUTER]:
            continue
        if d < node[at, INNER]:
            return COLLIDING
        if child[at] < 0:
            state = OPEN
        else:
            stack[pending, 0] = child[at]
            stack[pending + 1, 0] = child[at] + 1
            pending += 2
    return state


@kernel
def check_trees(
    scene: SceneArrays, a: int, b: int, padding: float, T: Array, work: CollisionScratch
) -> int:
    """Check two trees by their root nodes, T (3, 4) from the frame of b to that of a."""
    node, child, stack = scene.node, scene.child, work.stack
    stack[0, 0], stack[0, 1] = a, b
    pending, state = 1, FREE
    for _ in range(MOST_VISITS):
        if pending == 0:
            return state
        pending -= 1
        one, two = stack[pending, 0], stack[pending, 1]
        d = node_distance(T, node[one], node[two]) - padding
        if d > node[one, OUTER] + node[two, OUTER]:
            continue
        if d < node[one, INNER] + node[two, INNER]:
            return COLLIDING
        if child[one] < 0 and child[two] < 0:
            state = OPEN
        else:
            pending = push_children(node, child, stack, one, two, pending)
    return OPEN


@force_inline
def push_children(
    node: Array, child: Indices, stack: Indices, one: int, two: int, pending: int
) -> int:
    """Split the larger of two nodes, one of which has children; return the pairs on the stack."""
    split_one = child[one] >= 0 and (child[two] < 0 or node[one, OUTER] > node[two, OUTER])
    for i in range(2):
        stack[pending, 0] = child[one] + i if split_one else one
        stack[pending, 1] = two if split_one else child[two] + i
        pending += 1
    return pending


@force_inline
def check_own_pair(scene: SceneArrays, k: int, work: CollisionScratch) -> int:
    """Check the moving shapes of pair k, at the configuration last placed: FREE to OPEN."""
    a, b = scene.pairs[k, 0], scene.pairs[k, 1]
    x = work.centre[a, 0] - work.centre[b, 0]
    y = work.centre[a, 1] - work.centre[b, 1]
    z = work.centre[a, 2] - work.centre[b, 2]
    padding = scene.padding[a] + scene.padding[b]
    one, two = scene.root[a], scene.root[b]
    reach = scene.node[one, OUTER] + scene.node[two, OUTER] + padding
    if x * x + y * y + z * z > reach * reach:
        return FREE
    relate(work.pose[scene.frame[a]], work.pose[scene.frame[b]], work.T)
    return check_trees(scene, one, two, padding, work.T, work)


@force_inline
def check_outside_pair(scene: SceneArrays, k: int, work: CollisionScratch) -> int:
    """Check the moving shape and the object of pair k of these, as :func:`check_own_pair`."""
    a, item = scene.outside[k, 0], scene.outside[k, 1]
    kind, place, root, padding = scene.kind[item], scene.place[item], scene.root[a], scene.padding
    if kind == TREE:
        tree = scene.tree[item]
        node = scene.node[tree]
        reach = scene.node[root, OUTER] + node[OUTER] + padding[a]
        if node_distance(place, node, work.centre[a]) > reach:
            return FREE
        compose(place, work.pose[scene.frame[a]], work.T)
        return check_trees(scene, tree, root, padding[a], work.T, work)
    d = centre_distance(place, scene.size[item], kind, work.centre[a])
    if d > scene.node[root, OUTER] + padding[a]:
        return FREE
    compose(place, work.pose[scene.frame[a]], work.T)
    return check_primitive(scene, a, item, work.T, work)


@kernel
def check_pair(scene: SceneArrays, k: int, work: CollisionScratch) -> int:
    """Check pair k, of `scene.pairs` and then of `scene.outside`, at the configuration placed."""
    own = scene.pairs.shape[0]
    if k < own:
        return check_own_pair(scene, k, work)
    return check_outside_pair(scene, k - own, work)


# A configuration ----------------------------------------------------------------------------------


@kernel
def collides(scene: SceneArrays, q: Array, work: CollisionScratch) -> int:
    """Check q (n,): FREE and COLLIDING are certain; OPEN asks for exact checks of some pairs.

    `work.found` is the pair that collides or the first open one: of `scene.pairs`, then of
    `scene.outside`; -1 for FREE.
    """
    place_links(scene, q, work)
    state = FREE
    work.found[0] = -1
    for k in range(scene.pairs.shape[0] + scene.outside.shape[0]):
        here = check_pair(scene, k, work)
        if here == COLLIDING or (here == OPEN and state == FREE):
            work.found[0], state = k, here
            if here == COLLIDING:
                break
    return state


@kernel
def collides_again(scene: SceneArrays, q: Array, work: CollisionScratch) -> int:
    """As :func:`collides`, with the pair of `work.found` first, which may still be in the way."""
    k = work.found[0]
    if k >= 0:
        place_links(scene, q, work)
        if check_pair(scene, k, work) == COLLIDING:
            return COLLIDING
    return collides(scene, q, work)


@allocating
def check_rows(numbers: Array, integers: Indices, q: Array, out: Indices) -> None:
    """:func:`collides` for each row; called from Python.

    Args:
        q: (b, n).
        out: (b, 2) state, and pair.
    """
    scene = unpack_scene(numbers, integers)
    work = collision_scratch(scene)
    for i in range(q.shape[0]):
        out[i, 0] = collides(scene, q[i], work)
        out[i, 1] = work.found[0]


@allocating
def check_pairs(numbers: Array, integers: Indices, q: Array, out: Indices) -> None:
    """Write the state of every pair (p + s,) at q (n,); called from Python."""
    scene = unpack_scene(numbers, integers)
    work = collision_scratch(scene)
    place_links(scene, q, work)
    for k in range(out.shape[0]):
        out[k] = check_pair(scene, k, work)


@allocating
def count_pairs(numbers: Array, integers: Indices, q: Array, group: Indices, out: Indices) -> None:
    """Count the configurations in which groups of pairs collide; called from Python.

    Args:
        q: (b, n).
        group: (p + s,) of each pair.
        out: (k, 2) in and out, of each group: certainly colliding, and open.
    """
    scene = unpack_scene(numbers, integers)
    work = collision_scratch(scene)
    state = np.zeros(out.shape[0], np.int64)
    for i in range(q.shape[0]):
        place_links(scene, q[i], work)
        state.fill(FREE)
        for k in range(group.shape[0]):
            if state[group[k]] != COLLIDING:
                here = check_pair(scene, k, work)
                if here != FREE:
                    state[group[k]] = here
        for j in range(out.shape[0]):
            if state[j] != FREE:
                out[j, state[j] - 1] += 1


@allocating
def link_poses(numbers: Array, integers: Indices, q: Array, out: Array) -> None:
    """Write the poses (f, 3, 4) of all frames at q (n,); called from Python."""
    scene = unpack_scene(numbers, integers)
    work = collision_scratch(scene)
    place_links(scene, q, work)
    for k in range(out.shape[0]):
        for i in range(3):
            for j in range(4):
                out[k, i, j] = work.pose[k, i, j]


# Bounds of distances ------------------------------------------------------------------------------


@force_inline
def nearest_of(d: float, node: Array, at: int) -> float:
    """Bound the distance [m] of a piece from above, given that of its centre."""
    return d - node[at, INNER] if node[at, INNER] >= 0.0 else d + node[at, OUTER]


@kernel
def primitive_bounds(
    scene: SceneArrays, shape: int, item: int, T: Array, limit: float, work: CollisionScratch
) -> tuple[float, float]:
    """Bound the distance [m] of the pair of :func:`check_primitive`, from below and above.

    Args:
        limit: beyond, the lower bound is not sharpened [m].
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
        # The nearer child comes off the stack first.
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
    scene: SceneArrays, a: int, b: int, padding: float, T: Array, limit: float,
    work: CollisionScratch,
) -> tuple[float, float]:  # fmt: skip
    """Bound the distance [m] of the pair of :func:`check_trees`, from below and above.

    Args:
        limit: as of :func:`primitive_bounds`.
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
        is_leaf = child[one] < 0 and child[two] < 0
        if is_leaf or before > limit or visits > MOST_VISITS:
            lower = before
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
    """Exchange an entry of the stack with the one after it."""
    bound[at], bound[at + 1] = bound[at + 1], bound[at]
    for j in range(2):
        stack[at, j], stack[at + 1, j] = stack[at + 1, j], stack[at, j]


@force_inline
def pair_bounds(
    scene: SceneArrays, k: int, limit: float, work: CollisionScratch
) -> tuple[float, float]:
    """Bound the distance [m] of pair k at the configuration last placed."""
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
        is_tree = scene.kind[outside] == TREE
    if is_tree:
        return tree_bounds(scene, one, two, padding, work.T, limit, work)
    return primitive_bounds(scene, a, outside, work.T, limit, work)


@kernel
def nearness(scene: SceneArrays, work: CollisionScratch) -> float:
    """Sum exp(-d / d0) over all pairs at the configuration last placed, d bounded from below.

    Unlike the least distance it does not hide what moves behind pairs that always are near.
    """
    total = 0.0
    for k in range(scene.pairs.shape[0] + scene.outside.shape[0]):
        d, _ = pair_bounds(scene, k, FAR * NEARNESS, work)
        if d < FAR * NEARNESS:
            total += exp(-max(d, 0.0) / NEARNESS)
    return total


@allocating
def bound_pairs(
    numbers: Array, integers: Indices, q: Array, limit: float, closest: bool, out: Array
) -> None:
    """Write bounds (p + s, 2) of the distances [m] of all pairs at q (n,); called from Python.

    Args:
        limit: beyond, lower bounds are not sharpened [m].
        closest: nor beyond the least upper bound of all pairs.
    """
    scene = unpack_scene(numbers, integers)
    work = collision_scratch(scene)
    place_links(scene, q, work)
    if closest:
        for k in range(out.shape[0]):
            _, upper = pair_bounds(scene, k, -np.inf, work)
            limit = min(limit, upper)
    for k in range(out.shape[0]):
        out[k, 0], out[k, 1] = pair_bounds(scene, k, limit, work)
        if closest:
            limit = min(limit, out[k, 1])


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

    Each pair is free until its own time. The one that is behind is moved on by its distance over
    the speed with which it may come nearer, until its bounds are too wide for that.

    Args:
        ends: (n,) joint values at time 0 and 1.
        speed: (p + s,) bounds of the relative speed of the shapes of each pair [m].
        tolerance: least distance [m] that bounds show, before the pair is given back.
        time: (p + s,) in and out, until when each pair is free.

    Returns:
        The pair that is behind, whose distance at its time is to be found exactly; -1 if all pairs
        are free until time 1.
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
        lower, _ = pair_bounds(scene, behind, np.inf, work)
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
    """Look for a pair that is not certainly free on a straight joint path; called from Python.

    Intervals of the path are halved, all of a length before shorter ones, until each pair keeps its
    margin at the middle of an interval by more than it may come nearer in half of that. A pair is
    looked at in the halves of an interval only where the whole leaves it open.

    Args:
        ends: (n,) joint values at time 0 and 1; the second one is looked at first.
        speed: (p + s,) bounds of the relative speed of the shapes of each pair [m].
        margin: (p + s,) least distance of each pair [m].
        time: (1,) out, of the block.

    Returns:
        The pair; -1 if all pairs keep their margins all the way.
    """
    scene = unpack_scene(numbers, integers)
    work = collision_scratch(scene)
    q, count = np.empty(ends[0].shape[0]), speed.shape[0]
    spans, listed = np.empty((MOST_SPANS, 2)), np.empty(MOST_LISTED, np.int64)  # middle and half
    first, last = np.zeros(MOST_SPANS, np.int64), np.zeros(MOST_SPANS, np.int64)
    # The end, and then intervals that are short enough for bounds of distances to be worth it.
    fastest = 0.0
    for k in range(count):
        fastest = max(fastest, speed[k])
    parts = min(max(int(fastest / (2.0 * COARSE)), 1), MOST_COARSE)
    spans[0, 0], spans[0, 1] = 1.0, 0.0
    stride = 1
    while stride < parts:
        stride *= 2
    pending, at = 1, stride
    while at > 0:  # multiples of a stride that halves, so that the middle comes early
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
            lower, _ = pair_bounds(scene, k, need, work)
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
    """Return whether the spheres around the shapes of pair k are apart by more than a distance."""
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
    if kind == TREE:
        node = scene.node[scene.tree[item]]
        return node_distance(place, node, work.centre[a]) > reach + node[OUTER]
    return centre_distance(place, scene.size[item], kind, work.centre[a]) > reach


@kernel
def primitive_distances(kind: int, size: Array, points: Array, out: Array) -> None:
    """Write the signed distances [m] of points (b, 3) from a primitive in its own frame."""
    for i in range(points.shape[0]):
        out[i] = signed_distance(kind, size, points[i, 0], points[i, 1], points[i, 2])


# Shapes that are fitted ---------------------------------------------------------------------------


@kernel
def tightest_sphere(centres: Array, depths: Array, points: Array, out: Array) -> None:
    """Write the sphere (5,) about points (k, 3) whose radii differ least.

    Args:
        centres: (c, 3) to choose from, depths: (c,) their inner radii, -inf outside the solid.
        out: better than it, if one is; with outer radius inf any is.
    """
    best = out[OUTER] - max(out[INNER], 0.0)
    for i in range(centres.shape[0]):
        x, y, z, depth = centres[i, 0], centres[i, 1], centres[i, 2], max(depths[i], 0.0)
        most, squared = (best + depth) ** 2, 0.0
        for k in range(points.shape[0]):
            a, b, c = points[k, 0] - x, points[k, 1] - y, points[k, 2] - z
            squared = max(squared, a * a + b * b + c * c)
            if squared >= most:
                break
        if squared < most:
            out[0], out[1], out[2], out[OUTER], out[INNER] = x, y, z, sqrt(squared), depths[i]
            best = out[OUTER] - depth


@kernel
def mesh_distances(corners: Array, points: Array, solid: bool, out: Array) -> None:
    """Write the distance [m] of points (b, 3) from a mesh, negative inside if it is solid.

    Args:
        corners: (m, 3, 3) of its triangles.
        solid: find the inside by the solid angle of the mesh (Van Oosterom & Strackee 1983).
        out: (b,).
    """
    for i in range(points.shape[0]):
        least, angle = np.inf, 0.0
        px, py, pz = points[i, 0], points[i, 1], points[i, 2]
        for k in range(corners.shape[0]):
            ax, ay, az = corners[k, 0, 0] - px, corners[k, 0, 1] - py, corners[k, 0, 2] - pz
            bx, by, bz = corners[k, 1, 0] - px, corners[k, 1, 1] - py, corners[k, 1, 2] - pz
            cx, cy, cz = corners[k, 2, 0] - px, corners[k, 2, 1] - py, corners[k, 2, 2] - pz
            least = min(least, squared_to_triangle(ax, ay, az, bx, by, bz, cx, cy, cz))
            if solid:
                volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz)
                volume += az * (bx * cy - by * cx)
                a, b = sqrt(ax * ax + ay * ay + az * az), sqrt(bx * bx + by * by + bz * bz)
                c = sqrt(cx * cx + cy * cy + cz * cz)
                ab, bc = ax * bx + ay * by + az * bz, bx * cx + by * cy + bz * cz
                ca = cx * ax + cy * ay + cz * az
                angle += np.arctan2(volume, a * b * c + ab * c + bc * a + ca * b)
        inside = solid and abs(angle) > np.pi  # half of a full turn: each angle is halved
        out[i] = -sqrt(least) if inside else sqrt(least)


@force_inline
def squared_to_triangle(
    ax: float, ay: float, az: float, bx: float, by: float, bz: float, cx: float, cy: float,
    cz: float,
) -> float:  # fmt: skip
    """Return the squared distance of the origin from a triangle (Ericson 2005, 5.1.5)."""
    ux, uy, uz = bx - ax, by - ay, bz - az
    vx, vy, vz = cx - ax, cy - ay, cz - az
    d1, d2 = -(ux * ax + uy * ay + uz * az), -(vx * ax + vy * ay + vz * az)
    d3, d4 = -(ux * bx + uy * by + uz * bz), -(vx * bx + vy * by + vz * bz)
    d5, d6 = -(ux * cx + uy * cy + uz * cz), -(vx * cx + vy * cy + vz * cz)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    s = t = 0.0  # of the nearest point, a + s u + t v
    if d1 <= 0.0 and d2 <= 0.0:
        s, t = 0.0, 0.0
    elif d3 >= 0.0 and d4 <= d3:
        s, t = 1.0, 0.0
    elif d6 >= 0.0 and d5 <= d6:
        s, t = 0.0, 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        s, t = d1 / (d1 - d3), 0.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        s, t = 0.0, d2 / (d2 - d6)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        s = 1.0 - t
    else:
        s, t = vb / (va + vb + vc), vc / (va + vb + vc)
    x, y, z = ax + s * ux + t * vx, ay + s * uy + t * vy, az + s * uz + t * vz
    return x * x + y * y + z * z
