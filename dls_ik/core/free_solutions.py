"""Solutions that are free of collisions: checked, and looked for along the arm's redundancy.

Each function serves both paths: one of `table` and `general` is None, as in
:mod:`dls_ik.core.search`.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.attempt import error_at
from dls_ik.core.collision import (
    COLLIDING,
    FREE,
    MOST_VISITS,
    check_pair,
    check_primitive,
    collides_again,
    push_children,
)
from dls_ik.core.distance_bounds import nearness
from dls_ik.core.jit import force_inline, kernel
from dls_ik.core.kinematics import compose
from dls_ik.core.linalg import copy, norm
from dls_ik.core.redundancy import SlideScratch, find_way, step_along
from dls_ik.core.scene_arrays import INNER, OUTER, TREE, CollisionScratch, SceneArrays, relate
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
from dls_ik.core.shape_distance import apply, distance_and_normal, node_distance
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
MOST_SLIDES = 24  # most steps one way
WAYS = 3  # most directions that are tried, both ways each
LEAST_APART = 0.01  # of the squared motion that separates a pair, which the pose has to leave
LEAST_WAY = 0.1  # of the motion of a joint alone, likewise
MOMENTUM = 0.5  # share of the step before in one that separates a pair


class FreeSearch(NamedTuple):
    """Inputs and scratch of a search for solutions free of collisions."""

    scene: SceneArrays
    slides: SlideScratch
    opened: OpenSolutions  # in and out, of all poses, or of the one that is searched for
    until: Indices  # (b,) attempts of each pose in all
    decided: Indices  # (p + s,) 1 where the pose alone decides if a pair collides, else 0


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
        one, two = apply(A, node[nodes[0]]), apply(B, node[nodes[1]])
        for i in range(3):
            normal[i] = one[i] - two[i]
        add_rates(scene, scene.frame[b], node[nodes[1]], -1.0, slides)
        at = nodes[0]
    else:
        a, item = scene.outside[k - own, 0], scene.outside[k - own, 1]
        place = scene.place[item]
        compose(place, collision.pose[scene.frame[a]], T)
        if scene.kind[item] == TREE:
            find_nodes(scene, scene.tree[item], scene.root[a], T, collision, nodes)
            at = nodes[1]
            x, y, z = apply(T, node[at])
            x, y, z = x - node[nodes[0], 0], y - node[nodes[0], 1], z - node[nodes[0], 2]
        else:
            _, at = check_primitive(scene, a, item, T, collision)
            x, y, z = apply(T, node[at])
            _, x, y, z = distance_and_normal(scene.kind[item], scene.size[item], x, y, z)
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


@kernel
def add_rates(scene: SceneArrays, frame: int, c: Array, sign: float, slides: SlideScratch) -> None:
    """Add to `slides.way` how fast joints move a point c (3,) of a frame along `slides.normal`."""
    pose, n = slides.collision.pose, slides.normal
    x, y, z = apply(pose[frame], c)
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
def find_nodes(
    scene: SceneArrays, a: int, b: int, T: Array, work: CollisionScratch, out: Indices
) -> None:
    """Write the nodes (2,) of two trees that prove a collision, or else the nearest leaves.

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
