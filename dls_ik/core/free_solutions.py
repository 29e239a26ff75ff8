# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Collision-free solutions: checks of solutions, and the search along the self-motion of the arm.

Self-motion is motion of a redundant arm through the solutions of one pose. If a solution collides,
the functions of this module follow the self-motion to a collision-free solution. The functions
serve the fast path and the general path, which :mod:`dls_ik.core.search` explains.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.attempt import error_at
from dls_ik.core.collision import (
    CHECK_COLLIDING,
    CHECK_FREE,
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
from dls_ik.core.redundancy import SlideScratch, find_direction, step_along
from dls_ik.core.scene_arrays import INNER, KIND_TREE, OUTER, CollisionScratch, SceneArrays, relate
from dls_ik.core.selection import (
    ATTEMPTS_COLUMN,
    FOUND_ALL,
    FOUND_BLOCKED,
    FOUND_COLUMN,
    SELECT_CLEAREST,
    SELECT_FIRST,
    OpenSolutions,
    count_pair,
    forget_worse,
    keep,
    measure,
    note_open,
)
from dls_ik.core.shape_distance import apply, distance_and_normal, node_distance
from dls_ik.core.types import (
    Array,
    Indices,
    PoseProblem,
    Rows,
    SearchScratch,
)

# number of attempts before the rule SELECT_FIRST searches the self-motion too
FIRST_SLIDING_ATTEMPT = 1
MAX_SLIDE_STEPS = 24  # maximum number of steps in one direction
MAX_DIRECTIONS = 3  # maximum number of directions, each tried forward and backward
# A direction is projected onto the self-motion, and used only if the squared cosine of the angle
# between the direction and its projection is at least the following minimum.
MIN_SEPARATING_COSINE = 0.01  # directions that separate a colliding pair
MIN_JOINT_COSINE = 0.1  # directions in which one joint moves
MOMENTUM = 0.5  # share of the previous step in a step that separates a pair


class FreeSearch(NamedTuple):
    """Inputs and scratch arrays of a search for collision-free solutions."""

    scene: SceneArrays
    slides: SlideScratch
    opened: OpenSolutions  # undecided solutions, of all poses or of one pose; read and written
    until: Indices  # (b,) total number of attempts for each pose
    decided: Indices  # (p + s,) 1 for a pair that collides in all solutions of a pose or in none


@kernel
def keep_free(problem: PoseProblem, row: Rows, scratch: SearchScratch, free: FreeSearch) -> int:
    """Check the solution `scratch.q` for collisions; search its self-motion if it collides.

    A collision-free solution is stored in `row` if it is the best so far. If the solution collides
    and the arm has more than one spare joint, the search first follows the direction that separates
    the colliding pair fastest, and then several directions forward and backward. The search ends at
    the first collision-free solution or, for the rule SELECT_CLEAREST (for which the self-motion of
    every solution is searched), when the clearance stops growing. Undecided solutions are recorded
    in `free.opened`.

    Returns:
        The number of steps along the self-motion.
    """
    kind, q, n, now, steps = (
        problem.params.rule.kind,
        scratch.q,
        row.best.shape[0],
        scratch.error,
        0,
    )
    work, slides = scratch.work, free.slides
    slides.collision.found[0] = -1
    state, value = check_solution(problem, row, scratch, free)
    if state == CHECK_COLLIDING:
        if row.counts[ATTEMPTS_COLUMN] == 1 and find_decided(free):
            copy(q, row.best)
            row.figures[0], row.figures[1] = now[0], now[1]
            row.counts[FOUND_COLUMN] = FOUND_BLOCKED
        count_pair(row.counts, slides.collision.found[0])
        if row.counts[FOUND_COLUMN] == FOUND_BLOCKED:
            return 0
    if (state == CHECK_FREE and kind != SELECT_CLEAREST) or (
        kind == SELECT_FIRST and row.counts[ATTEMPTS_COLUMN] < FIRST_SLIDING_ATTEMPT
    ):
        return 0
    if problem.table is not None and n <= 6:
        return 0
    copy(q, slides.start)
    copy(now, slides.error)
    spare = n - work.e.shape[0]
    if spare > 1 and state != CHECK_FREE:
        steps += slide_apart(problem, row, scratch, free)
    num_directions, max_directions = 0, max(1, min(MAX_DIRECTIONS, spare))
    if spare > 1 and kind == SELECT_FIRST:  # another start costs less than further directions
        max_directions = max_directions if row.counts[ATTEMPTS_COLUMN] == 1 else 0
    for j in range(n):
        if num_directions == max_directions or row.counts[FOUND_COLUMN] == FOUND_ALL:
            break
        copy(slides.start, q)
        error_at(problem, q, work)
        slides.direction.fill(0.0)
        slides.direction[j] = 1.0
        if not find_direction(problem, MIN_JOINT_COSINE, q, work, slides):
            continue
        num_directions += 1
        copy(slides.direction, slides.first)
        for side in range(2):
            for i in range(n):
                slides.direction[i] = slides.first[i] if side == 0 else -slides.first[i]
            if row.counts[FOUND_COLUMN] != FOUND_ALL:
                steps += slide_free(problem, state, value, row, scratch, free)
    forget_worse(row, free.opened)
    copy(slides.start, q)
    copy(slides.error, now)
    return steps


@kernel
def find_decided(free: FreeSearch) -> bool:
    """Find a pair that collides in every solution of the pose, such as the tip with an object.

    The link poses are those that the last collision check wrote to `free.slides.collision`. The
    index of the pair is written to `free.slides.collision.found`.

    Returns:
        Whether there is such a pair.
    """
    for k in range(free.decided.shape[0]):
        if (
            free.decided[k] != 0
            and check_pair(free.scene, k, free.slides.collision) == CHECK_COLLIDING
        ):
            free.slides.collision.found[0] = k
            return True
    return False


@kernel
def check_solution(
    problem: PoseProblem, row: Rows, scratch: SearchScratch, free: FreeSearch
) -> tuple[int, float]:
    """Check the solution `scratch.q` for collisions, and store the solution if it may be used.

    A collision-free solution is stored in `row` if it is the best so far. An undecided solution is
    recorded in `free.opened` if it may be the best.

    Returns:
        CHECK_FREE, CHECK_COLLIDING or OPEN (undecided), and the measure of the solution by the
        selection rule (smaller is better); inf for CHECK_COLLIDING.
    """
    state, value = collides_again(free.scene, scratch.q, free.slides.collision), np.inf
    if state != CHECK_COLLIDING:
        if problem.params.rule.kind == SELECT_CLEAREST:
            value = nearness(free.scene, free.slides.collision)
        else:
            value = measure(problem, scratch.q, scratch.work)
        if state == CHECK_FREE:
            keep(problem.params.rule, scratch.q, scratch.error, value, row)
        else:
            note_open(scratch.q, scratch.error, value, row, free.opened)
    return state, value


@force_inline
def slide_free(
    problem: PoseProblem,
    state: int,
    value: float,
    row: Rows,
    scratch: SearchScratch,
    free: FreeSearch,
) -> int:
    """Follow the self-motion from the solution `slides.start` along `slides.direction`.

    The motion ends at the first collision-free solution or, for the rule SELECT_CLEAREST, when the
    clearance no longer grows.

    Args:
        problem: The pose.
        state, value: Result of :func:`check_solution` at the start.
        row: State of the search for the pose, read and written.
        scratch: Scratch arrays; `q` and `error` are written.
        free: Scene and scratch arrays; the undecided solutions in `opened` are read and written.

    Returns:
        The number of steps.
    """
    work, slides, last_state, last = scratch.work, free.slides, state, value
    copy(slides.start, scratch.q)
    scratch.error[0], scratch.error[1] = error_at(problem, scratch.q, work)
    for i in range(MAX_SLIDE_STEPS):
        if not step_along(problem, scratch.q, scratch.error, work, slides):
            return i
        here, value = check_solution(problem, row, scratch, free)
        if here == CHECK_FREE and not (
            problem.params.rule.kind == SELECT_CLEAREST
            and (last_state != CHECK_FREE or value < last)
        ):
            return i + 1
        last_state, last = here, value
    return MAX_SLIDE_STEPS


@force_inline
def slide_apart(problem: PoseProblem, row: Rows, scratch: SearchScratch, free: FreeSearch) -> int:
    """Follow the self-motion in the direction that separates the colliding pair.

    The motion starts at the solution `scratch.q`. The direction is computed anew for each step, for
    the pair that :func:`check_solution` found, until a solution is collision-free.

    Returns:
        The number of steps.
    """
    work, slides, weights = scratch.work, free.slides, problem.params.starts.joint_weights
    slides.first.fill(0.0)
    for i in range(MAX_SLIDE_STEPS):
        if not aim_apart(free.scene, weights, slides) or not find_direction(
            problem, MIN_SEPARATING_COSINE, scratch.q, work, slides
        ):
            return i
        copy(slides.direction, slides.first)
        if not step_along(problem, scratch.q, scratch.error, work, slides):
            return i
        here, _ = check_solution(problem, row, scratch, free)
        if here == CHECK_FREE:
            return i + 1
    return MAX_SLIDE_STEPS


# Separating a pair --------------------------------------------------------------------------------


@kernel
def aim_apart(scene: SceneArrays, weights: Array, slides: SlideScratch) -> bool:
    """Write the direction of joint motion that separates the colliding pair fastest.

    The pair is `slides.collision.found`, and the link poses are those of the last collision check.
    The direction separates the two spheres that prove the collision, or else the two closest
    spheres. Part of the previous direction `slides.first` is added, because different pairs may
    collide from step to step. The result is a unit vector in the joint metric, written to
    `slides.direction`.

    Returns:
        False if no joint separates the pair.
    """
    collision, direction = slides.collision, slides.direction
    normal, nodes = slides.normal, slides.nodes
    k, own, T, node = collision.found[0], scene.pairs.shape[0], collision.T, scene.node
    direction.fill(0.0)
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
        if scene.kind[item] == KIND_TREE:
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
    for j in range(direction.shape[0]):
        direction[j] *= weights[j] ** -0.5
    length = norm(direction)
    if not length > 0.0:
        return False
    for j in range(direction.shape[0]):
        direction[j] = direction[j] / length + MOMENTUM * slides.first[j]
    length = norm(direction)
    for j in range(direction.shape[0]):
        direction[j] /= length
    return True


@kernel
def add_rates(scene: SceneArrays, frame: int, c: Array, sign: float, slides: SlideScratch) -> None:
    """Add the derivatives of a point's position along a vector to `slides.direction` (n,).

    Entry j is increased by sign * d(normal . p) / dq_j, with the position p of the point.

    Args:
        scene: The frames of the arm.
        frame: Index of the frame that the point is fixed to.
        c: (3,) coordinates of the point in this frame [m].
        sign: Factor of the derivatives.
        slides: `normal` and the poses of the last collision check are read.
    """
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
        slides.direction[scene.variable[frame]] += sign * scene.scale[frame] * rate
        frame = scene.parent[frame]


@kernel
def find_nodes(
    scene: SceneArrays, a: int, b: int, T: Array, work: CollisionScratch, out: Indices
) -> None:
    """Write two nodes whose inner spheres overlap, or else the two leaves closest to each other.

    Args:
        scene: The shapes and objects.
        a, b: Root nodes of two sphere trees.
        T: (3, 4) transform from the frame of b to that of a.
        work: Scratch arrays.
        out: (2,) a node of each tree, written.
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
