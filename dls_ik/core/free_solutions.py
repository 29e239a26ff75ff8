"""Solutions that are free of collisions: checked, and looked for along the arm's redundancy.

Each function serves both paths: one of `table` and `general` is None, as in
:mod:`dls_ik.core.search`.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.attempt import error_at, write_jacobian
from dls_ik.core.collision import (
    COLLIDING,
    FREE,
    INNER,
    MOST_VISITS,
    OUTER,
    TREE,
    CollisionScratch,
    SceneArrays,
    centre_distance,
    check_pair,
    collides_again,
    collision_scratch,
    compose,
    nearness,
    node_distance,
    push_children,
    relate,
)
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, factor, norm, solve_factored
from dls_ik.core.proximity import distance_and_normal
from dls_ik.core.selection import (
    ALL,
    ATTEMPTS,
    BLOCKED,
    CLEAREST,
    FIRST,
    FOUND,
    OpenSolutions,
    count_pair,
    forget_worse,
    keep,
    measure,
    note_open,
)
from dls_ik.core.task import is_reached
from dls_ik.core.types import (
    AnyChain,
    AnyWorkspace,
    Array,
    ChainTable,
    GeneralProblem,
    Indices,
    Rows,
    SearchParams,
    SearchScratch,
)

SLIDES_FROM = 1  # attempts after which the first solution is looked for along the redundancy too
SLIDE, MOST_SLIDES = 0.15, 24  # length of a step in the joint metric; most of them one way
CORRECTIONS = 4  # most steps back to the solutions after each
WAYS = 3  # most directions that are tried, both ways each
LEAST_APART = 0.01  # of the squared motion that separates a pair, likewise
LEAST_SHARE = 0.3  # of a step that limits have to leave
LEAST_WAY = 0.1  # of the motion of a joint alone, which the pose has to leave
MOMENTUM = 0.5  # share of the step before in one that separates a pair
TINY = 1e-10  # damping, relative to the squared Jacobian


class SlideScratch(NamedTuple):
    """Scratch of one thread for n joints and r rows of the error, and of collision checks."""

    collision: CollisionScratch
    start: Array  # (n,) solution that slides begin from [rad or m]
    error: Array  # (2,) position [m] and rotation error [rad] there
    first: Array  # (n,) the way that was taken first, or before
    nodes: Indices  # (2,) of the shapes of a pair, where they collide
    normal: Array  # (3,) direction in which the first one leaves the other, of any length
    before: Array  # (n,) before a step [rad or m]
    way: Array  # (n,) unit vector along the solutions, in the joint metric as all below
    z: Array  # (n,) wanted motion
    dq: Array  # (n,) motion that takes off the error too
    h: Array  # (n,) 1 where a joint is held at its limit, else 0
    B: Array  # (r, n) Jacobian
    A: Array  # (r, r)
    y: Array  # (r,)


class FreeSearch(NamedTuple):
    """Inputs and scratch of a search for solutions free of collisions."""

    scene: SceneArrays
    slides: SlideScratch
    opened: OpenSolutions  # in and out, of all poses, or of the one that is searched for
    until: Indices  # (b,) attempts of each pose in all
    decided: Indices  # (p + s,) 1 where the pose alone decides if a pair collides, else 0


@allocating
def slide_scratch(scene: SceneArrays, n: int, r: int) -> SlideScratch:
    """Allocate the scratch of one thread."""
    return SlideScratch(
        collision=collision_scratch(scene),
        start=np.zeros(n),
        error=np.zeros(2),
        first=np.zeros(n),
        nodes=np.zeros(2, np.int64),
        normal=np.zeros(3),
        before=np.zeros(n),
        way=np.zeros(n),
        z=np.zeros(n),
        dq=np.zeros(n),
        h=np.zeros(n),
        B=np.zeros((r, n)),
        A=np.zeros((r, r)),
        y=np.zeros(r),
    )


@kernel
def keep_free(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    seed: Array,
    row: Rows,
    scratch: SearchScratch,
    work: AnyWorkspace,
    free: FreeSearch,
) -> int:
    """Keep the solution last observed if it is free of collisions, or free ones beside it.

    Those are looked for along the arm's redundancy, first to where the pair in the way separates
    fastest if there is a choice, then both ways: up to the first free one, or while the clearance
    grows where the clearest one is wanted. Open ones are noted.

    Returns:
        Steps along the redundancy.
    """
    kind, q, n, now, steps = params.rule.kind, scratch.q, seed.shape[0], scratch.error, 0
    slides = free.slides
    slides.collision.found[0] = -1
    state, value = check_solution(
        chain, params, table, general, T_d, seed, row, scratch, work, free
    )
    if state == COLLIDING:
        if row.counts[ATTEMPTS] == 1 and find_decided(free):
            copy(q, row.best)
            row.figures[0], row.figures[1] = now[0], now[1]
            row.counts[FOUND] = BLOCKED
        count_pair(row.counts, slides.collision.found[0])
        if row.counts[FOUND] == BLOCKED:
            return 0
    if (state == FREE and kind != CLEAREST) or (
        kind == FIRST and row.counts[ATTEMPTS] < SLIDES_FROM
    ):
        return 0
    if table is not None:  # noqa: SIM102  Numba leaves out branches of None alone
        if n <= 6:
            return 0
    copy(q, slides.start)
    copy(now, slides.error)
    spare = n - work.e.shape[0]
    if spare > 1 and state != FREE:
        steps += slide_apart(chain, params, table, general, T_d, seed, row, scratch, work, free)
    ways, most = 0, max(1, min(WAYS, spare))
    if spare > 1 and kind == FIRST:  # another start costs less than further ways
        most = most if row.counts[ATTEMPTS] == 1 else 0
    for j in range(n):
        if ways == most or row.counts[FOUND] == ALL:
            break
        copy(slides.start, q)
        error_at(chain, params.stop, table, general, T_d, q, work)
        slides.way.fill(0.0)
        slides.way[j] = 1.0
        if not find_way(chain, params, table, general, T_d, LEAST_WAY, q, work, slides):
            continue
        ways += 1
        copy(slides.way, slides.first)
        for side in range(2):
            for i in range(n):
                slides.way[i] = slides.first[i] if side == 0 else -slides.first[i]
            if row.counts[FOUND] != ALL:
                steps += slide_free(
                    chain, params, table, general, T_d, seed, state, value, row, scratch, work, free
                )  # fmt: skip
    forget_worse(row, free.opened)
    copy(slides.start, q)
    copy(slides.error, now)
    return steps


@kernel
def find_decided(free: FreeSearch) -> bool:
    """Find a pair that collides in all solutions of the pose, at the one last placed."""
    for k in range(free.decided.shape[0]):
        if free.decided[k] != 0 and check_pair(free.scene, k, free.slides.collision) == COLLIDING:
            free.slides.collision.found[0] = k
            return True
    return False


@kernel
def check_solution(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    seed: Array,
    row: Rows,
    scratch: SearchScratch,
    work: AnyWorkspace,
    free: FreeSearch,
) -> tuple[int, float]:
    """Check the solution last observed, and keep it if it is free or note it if it is open.

    Returns:
        FREE to OPEN, and the measure; inf if it collides.
    """
    state, value = collides_again(free.scene, scratch.q, free.slides.collision), np.inf
    if state != COLLIDING:
        if params.rule.kind == CLEAREST:
            value = nearness(free.scene, free.slides.collision)
        else:
            value = measure(chain, params, table, general, T_d, seed, scratch.q, work)
        if state == FREE:
            keep(params.rule, scratch.q, scratch.error, value, row)
        else:
            note_open(scratch.q, scratch.error, value, row, free.opened)
    return state, value


@force_inline
def slide_free(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    seed: Array,
    state: int,
    value: float,
    row: Rows,
    scratch: SearchScratch,
    work: AnyWorkspace,
    free: FreeSearch,
) -> int:
    """Slide from `slides.start` one way up to a free solution, or to the clearest; return steps.

    Args:
        state, value: of the solution there, as :func:`check_solution`.
    """
    slides, last_state, last = free.slides, state, value
    copy(slides.start, scratch.q)
    scratch.error[0], scratch.error[1] = error_at(
        chain, params.stop, table, general, T_d, scratch.q, work
    )
    for i in range(MOST_SLIDES):
        if not step_along(
            chain, params, table, general, T_d, scratch.q, scratch.error, work, slides
        ):
            return i
        here, value = check_solution(
            chain, params, table, general, T_d, seed, row, scratch, work, free
        )
        if here == FREE and not (
            params.rule.kind == CLEAREST and (last_state != FREE or value < last)
        ):
            return i + 1
        last_state, last = here, value
    return MOST_SLIDES


@force_inline
def slide_apart(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    seed: Array,
    row: Rows,
    scratch: SearchScratch,
    work: AnyWorkspace,
    free: FreeSearch,
) -> int:
    """Slide from a solution last checked to where the pair in the way separates; return steps."""
    slides, weights = free.slides, params.starts.joint_weights
    slides.first.fill(0.0)
    for i in range(MOST_SLIDES):
        if not aim_apart(free.scene, weights, slides) or not find_way(
            chain, params, table, general, T_d, LEAST_APART, scratch.q, work, slides
        ):
            return i
        copy(slides.way, slides.first)
        if not step_along(
            chain, params, table, general, T_d, scratch.q, scratch.error, work, slides
        ):
            return i
        here, _ = check_solution(chain, params, table, general, T_d, seed, row, scratch, work, free)
        if here == FREE:
            return i + 1
    return MOST_SLIDES


# Away from a collision ----------------------------------------------------------------------------


@kernel
def aim_apart(scene: SceneArrays, weights: Array, slides: SlideScratch) -> bool:
    """Write the motion that separates the pair found last to `slides.way`, in the joint metric.

    It takes two spheres apart that prove the collision, or else are nearest to that, of the
    configuration last placed. The way before, `slides.first`, counts too: pairs alternate.

    Returns:
        False where no joint separates them.
    """
    collision, way, normal, nodes = slides.collision, slides.way, slides.normal, slides.nodes
    k, own, T, node = collision.found[0], scene.pairs.shape[0], collision.T, scene.node
    way.fill(0.0)
    if k < own:
        a, b = scene.pairs[k, 0], scene.pairs[k, 1]
        A, B = collision.pose[scene.frame[a]], collision.pose[scene.frame[b]]
        relate(A, B, T)
        find_nodes(scene, scene.root[a], scene.root[b], T, collision, nodes)
        for i in range(3):
            normal[i] = coordinate(A, i, node[nodes[0]]) - coordinate(B, i, node[nodes[1]])
        add_rates(scene, scene.frame[b], node[nodes[1]], -1.0, slides)
        at = nodes[0]
    else:
        a, item = scene.outside[k - own, 0], scene.outside[k - own, 1]
        place = scene.place[item]
        compose(place, collision.pose[scene.frame[a]], T)
        if scene.kind[item] == TREE:
            find_nodes(scene, scene.tree[item], scene.root[a], T, collision, nodes)
            at = nodes[1]
            x, y, z = (
                coordinate(T, 0, node[at]) - node[nodes[0], 0],
                coordinate(T, 1, node[at]) - node[nodes[0], 1],
                coordinate(T, 2, node[at]) - node[nodes[0], 2],
            )
        else:
            at = find_node(scene, a, item, T, collision)
            kind, size, c = scene.kind[item], scene.size[item], node[at]
            x, y, z = coordinate(T, 0, c), coordinate(T, 1, c), coordinate(T, 2, c)
            _, x, y, z = distance_and_normal(kind, size, x, y, z)
        for i in range(3):
            normal[i] = place[0, i] * x + place[1, i] * y + place[2, i] * z
    add_rates(scene, scene.frame[a], node[at], 1.0, slides)
    for j in range(way.shape[0]):
        way[j] *= weights[j] ** -0.5
    length = norm(way)
    if not length > 0.0:
        return False
    for j in range(way.shape[0]):
        way[j] = way[j] / length + MOMENTUM * slides.first[j]
    length = norm(way)
    for j in range(way.shape[0]):
        way[j] /= length
    return True


@force_inline
def coordinate(T: Array, i: int, c: Array) -> float:
    """Return coordinate i of a point c (3,) of a frame T (3, 4)."""
    return T[i, 0] * c[0] + T[i, 1] * c[1] + T[i, 2] * c[2] + T[i, 3]


@kernel
def add_rates(scene: SceneArrays, frame: int, c: Array, sign: float, slides: SlideScratch) -> None:
    """Add to `slides.way` how fast joints move a point c (3,) of a frame along `slides.normal`."""
    pose, n = slides.collision.pose, slides.normal
    x, y, z = (
        coordinate(pose[frame], 0, c),
        coordinate(pose[frame], 1, c),
        coordinate(pose[frame], 2, c),
    )
    while frame > 0:
        T = pose[frame]
        rate = n[0] * T[0, 2] + n[1] * T[1, 2] + n[2] * T[2, 2]
        if scene.prismatic[frame] == 0:
            a, b, c3 = x - T[0, 3], y - T[1, 3], z - T[2, 3]
            rate = n[0] * (T[1, 2] * c3 - T[2, 2] * b)
            rate += n[1] * (T[2, 2] * a - T[0, 2] * c3)
            rate += n[2] * (T[0, 2] * b - T[1, 2] * a)
        slides.way[scene.variable[frame]] += sign * scene.scale[frame] * rate
        frame = scene.parent[frame]


@kernel
def find_node(scene: SceneArrays, shape: int, item: int, T: Array, work: CollisionScratch) -> int:
    """Return the node of a moving shape that proves a collision, see `check_primitive`.

    Or else the leaf that is nearest to that.
    """
    node, child, stack = scene.node, scene.child, work.stack
    kind, size, padding = scene.kind[item], scene.size[item], scene.padding[shape]
    stack[0, 0] = scene.root[shape]
    pending, best, found = 1, np.inf, scene.root[shape]
    while pending > 0:
        pending -= 1
        at = stack[pending, 0]
        d = centre_distance(T, size, kind, node[at]) - padding
        if d > node[at, OUTER]:
            continue
        if d < node[at, INNER]:
            return at
        if child[at] < 0:
            if d - node[at, OUTER] < best:
                best, found = d - node[at, OUTER], at
        else:
            stack[pending, 0] = child[at]
            stack[pending + 1, 0] = child[at] + 1
            pending += 2
    return found


@kernel
def find_nodes(
    scene: SceneArrays, a: int, b: int, T: Array, work: CollisionScratch, out: Indices
) -> None:
    """Write the nodes (2,) of two trees that prove a collision, as :func:`find_node`.

    Args:
        a, b, T: as of :func:`dls_ik.core.collision.check_trees`.
    """
    node, child, stack = scene.node, scene.child, work.stack
    stack[0, 0], stack[0, 1], out[0], out[1] = a, b, a, b
    pending, best = 1, np.inf
    for _ in range(MOST_VISITS):
        if pending == 0:
            return
        pending -= 1
        one, two = stack[pending, 0], stack[pending, 1]
        d = node_distance(T, node[one], node[two])
        apart = d - node[one, OUTER] - node[two, OUTER]
        if d < node[one, INNER] + node[two, INNER]:
            out[0], out[1] = one, two
            return
        if child[one] < 0 and child[two] < 0:
            if apart < best:
                best, out[0], out[1] = apart, one, two
        elif apart < best:
            pending = push_children(node, child, stack, one, two, pending)


# Along the redundancy -----------------------------------------------------------------------------


@force_inline
def find_way(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    least: float,
    q: Array,
    work: AnyWorkspace,
    slides: SlideScratch,
) -> bool:
    """Turn the unit vector `slides.way` to the direction along the solutions nearest to it.

    Args:
        least: squared cosine of the angle between the two, below which there is none.
        q: (n,) solution last observed.

    Returns:
        False where there is none.
    """
    weights = params.starts.joint_weights
    copy(q, slides.before)
    write_jacobian(chain, params.stop, table, general, T_d, work)
    take_jacobian(table is not None, weights, work.J, slides.B)
    for j in range(q.shape[0]):
        slides.z[j] = SLIDE * slides.way[j]
    is_way = move_along(chain.lower, chain.upper, weights, q, work.e, slides) and turn_way(
        weights, q, least * SLIDE, slides
    )
    copy(slides.before, q)
    return is_way


@kernel
def step_along(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    q: Array,
    error: Array,
    work: AnyWorkspace,
    slides: SlideScratch,
) -> bool:
    """Move a solution `q` (n,), last observed, by a step along `slides.way` to another one.

    Args:
        error: (2,) out: position [m] and rotation error [rad] there.

    Returns:
        False where limits, or a singularity, end the way.
    """
    weights = params.starts.joint_weights
    copy(q, slides.before)
    for j in range(q.shape[0]):
        slides.z[j] = SLIDE * slides.way[j]
    for _ in range(1 + CORRECTIONS):
        write_jacobian(chain, params.stop, table, general, T_d, work)
        take_jacobian(table is not None, weights, work.J, slides.B)
        if not move_along(chain.lower, chain.upper, weights, q, work.e, slides):
            return False
        error[0], error[1] = error_at(chain, params.stop, table, general, T_d, q, work)
        if is_reached(params.stop, error[0], error[1], norm(work.e)):
            return turn_way(weights, q, LEAST_SHARE * SLIDE, slides)
        slides.z.fill(0.0)
    return False


@force_inline
def take_jacobian(transposed: bool, weights: Array, J: Array, B: Array) -> None:
    """Write J (r, n), or (n, r) if it is transposed, to B (r, n) in the joint metric."""
    r, n = B.shape
    for j in range(n):
        scale = weights[j] ** -0.5
        for i in range(r):
            B[i, j] = scale * (J[j, i] if transposed else J[i, j])


@kernel
def move_along(
    lower: Array, upper: Array, weights: Array, q: Array, e: Array, work: SlideScratch
) -> bool:
    """Write dq = z + P (e - J z), P the inverse of J, and move `q` (n,) by it within the limits.

    To first order the motion nearest z that takes off the error.

    Args:
        e: (r,) scaled error; work: with `z` and `B`.

    Returns:
        False where the joints that are inside their limits cannot take off the error.
    """
    B, y, z, dq, h = work.B, work.y, work.z, work.dq, work.h
    r, n = B.shape
    h.fill(0.0)
    again = True
    while again:
        if not factor_free(B, h, work.A):
            return False
        for i in range(r):
            y[i] = e[i]
            for j in range(n):
                y[i] -= B[i, j] * z[j]
        solve_factored(work.A, r, y)
        again = False
        for j in range(n):
            dq[j] = z[j]
            if h[j] != 0.0:
                continue
            for i in range(r):
                dq[j] += B[i, j] * y[i]
            there = q[j] + dq[j] * weights[j] ** -0.5
            limit = min(max(there, lower[j]), upper[j])
            if limit != there:
                h[j], z[j], again = 1.0, (limit - q[j]) * weights[j] ** 0.5, True
    for j in range(n):
        q[j] = min(max(q[j] + dq[j] * weights[j] ** -0.5, lower[j]), upper[j])
    return True


@force_inline
def factor_free(B: Array, h: Array, A: Array) -> bool:
    """Factor B B^T (r, r) of the columns of the joints that are not held, slightly damped."""
    r, n = B.shape
    trace = 0.0
    for i in range(r):
        for k in range(i + 1):
            total = 0.0
            for j in range(n):
                if h[j] == 0.0:
                    total += B[i, j] * B[k, j]
            A[i, k] = total
        trace += A[i, i]
    for i in range(r):
        A[i, i] += TINY * trace
    return bool(factor(A, r, 0.0))


@force_inline
def turn_way(weights: Array, q: Array, least: float, work: SlideScratch) -> bool:
    """Write the direction of the motion from `before` to q (n,) to `way`.

    Returns:
        False if it went less far than `least` along the way before.
    """
    ahead = 0.0
    for j in range(q.shape[0]):
        work.dq[j] = (q[j] - work.before[j]) * weights[j] ** 0.5
        ahead += work.dq[j] * work.way[j]
    moved = norm(work.dq)
    if not ahead > least:
        return False
    for j in range(q.shape[0]):
        work.way[j] = work.dq[j] / moved
    return True
