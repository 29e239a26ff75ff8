# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The last stage of a search: final attempts for poses that are not reached, and the status.

The array `Rows.figures` of a row has the position error, the rotation error, and a measure for the
selection of solutions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.collision import CHECK_FREE
from dls_ik.core.selection import (
    ATTEMPTS_COLUMN,
    FOUND_COLUMN,
    PAIRS_COLUMN,
    RANDOM_STATE_COLUMN,
    SELECT_FIRST,
    STEPS_COLUMN,
)
from dls_ik.core.types import Array, Rows
from dls_ik.solver.method import AUTO_METHOD
from dls_ik.solver.result import NOT_REACHED_STATUSES, Status
from dls_ik.solver.search import Search, found, put_back, seeds_of, some_rows

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import SceneSnapshot
    from dls_ik.scene.srdf import Pair

# Values of `Status` as plain integers, because looking up members of an enum is slow.
SUCCESS_VALUE, UNREACHABLE_VALUE, REFUSED_VALUE = map(
    int, (Status.SUCCESS, Status.UNREACHABLE, Status.REFUSED)
)
OUTSIDE_LIMITS, FAR_FROM_SEED = int(Status.OUTSIDE_LIMITS), int(Status.FAR_FROM_SEED)
IN_COLLISION = int(Status.IN_COLLISION)
NOT_REACHED = (*NOT_REACHED_STATUSES, IN_COLLISION)  # statuses without a collision-free solution

NUM_RANDOM_SOLUTIONS = 7  # attempts from random starts whose results `nearest_free` starts from
NUM_FINAL_ATTEMPTS = 8  # number of final attempts with `approximate`; otherwise 1

# Evolution strategy of `nearest_free`; standard deviations are in the joint metric [rad or m].
NUM_ROUNDS, ROUND_SIZE = 30, 48  # maximum number of rounds, and configurations per round
START_DEVIATION, MIN_DEVIATION, MAX_DEVIATION = 0.05, 1e-5, 3.0
GROWTH, SHRINKAGE = 2.0, 0.6  # factors of the deviation after a success, and after a failure
NUM_TOWARD = 8  # number of configurations per round on the line toward a solution
SHARES = 2.0 ** -np.arange(NUM_TOWARD)[:, None]  # positions on this line; 1 is the solution


def conclude(
    search: Search,
    poses: Array,
    seeds: Array,
    rows: Rows,
    ended: NDArray[np.int64],
    no_answer: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Make final attempts for poses that are not reached, and determine the status of each search.

    Final attempts are made with the option `approximate`, and for poses proven unreachable by
    method "auto".

    Args:
        search: Search.
        poses: (b, k, 4, 4) desired poses.
        seeds: (b, n) seeds, or (1, n) for all poses [rad or m].
        rows: State of the searches, read and written.
        ended: (b,) status of each row if no solution is found; REFUSED for rows whose pose or seed
            is not valid.
        no_answer: (b,) whether a row cannot have an answer, from :meth:`Search.starts`.

    Returns:
        (b,) values of `Status`.
    """
    begun, solved = ended != REFUSED_VALUE, found(rows)
    if not solved.all():
        near = search.approximate | ((ended == UNREACHABLE_VALUE) & (search.method == AUTO_METHOD))
        which = np.flatnonzero(begun & near & ~solved)
        if len(which):
            part = some_rows(rows, which)
            _make_final_attempts(search, poses[which], seeds_of(seeds, which), part)
            put_back(rows, which, part)
            solved = found(rows)
    ended = np.where(solved, SUCCESS_VALUE, ended)
    ended[~solved & begun & search.was_blocked(rows)] = IN_COLLISION
    if not search.keeps_limits:
        ended[solved & ~search.is_near(rows.best, seeds)] = FAR_FROM_SEED
        ended[solved & ~search.is_inside(rows.best)] = OUTSIDE_LIMITS
    ended[begun & no_answer] = FAR_FROM_SEED
    return ended


def pairs_in_the_way(
    search: Search, rows: Rows, status: NDArray[np.int64]
) -> tuple[Pair | None, ...]:
    """Return for each of b searches the pair of links or objects that collided most often.

    Args:
        search: Search.
        rows: Final state of the searches.
        status: (b,) values of `Status`.

    Returns:
        b pairs, None for rows whose status is not IN_COLLISION; () if the search has no scene.
    """
    if search.snapshot is None:
        return ()
    numbers, counts = rows.counts[:, PAIRS_COLUMN::2], rows.counts[:, PAIRS_COLUMN + 1 :: 2]
    most = np.take_along_axis(numbers, counts.argmax(axis=1)[:, None], axis=1)[:, 0]
    most[status != IN_COLLISION] = 0
    return tuple(search.snapshot.names[k - 1] if k else None for k in most.tolist())


def has_answer(
    search: Search, status: NDArray[np.int64], q: Array, seeds: Array
) -> NDArray[np.bool_]:
    """Return (b,) whether the best configuration of each search is an answer.

    A solution is an answer. With the option `approximate`, the configuration closest to a pose that
    is not reached is an answer too, if it is collision-free. A configuration outside the joint
    limits, which some methods do not enforce, is never an answer.

    Args:
        search: Search.
        status: (b,) values of `Status`.
        q: (b, n) best configurations [rad or m].
        seeds: (b, n) seeds, or (1, n) for all poses [rad or m].
    """
    success: NDArray[np.bool_] = status == SUCCESS_VALUE
    if search.approximate:
        nearest = np.isin(status, NOT_REACHED) & search.keeps(q, seeds)
        if search.snapshot is not None and nearest.any():
            nearest[nearest] = ~search.snapshot.in_collision(q[nearest])
        success = success | nearest
    return success


def _make_final_attempts(search: Search, poses: Array, seeds: Array, rows: Rows) -> None:
    """Make final attempts for poses that are not reached, and keep closer configurations.

    The attempts start at the best configuration so far, or at the seed if `max_change` is finite.
    Final attempts are not counted as restarts, but their steps are counted.

    Args:
        search: Search.
        poses: (b, k, 4, 4) desired poses.
        seeds: (b, n) seeds, or (1, n) for all poses [rad or m].
        rows: State of the searches, read and written.
    """
    if search.snapshot is not None and search.approximate:
        _make_final_attempts_in_scene(search, search.snapshot, poses, seeds, rows)
        return
    tried = search.new_rows(len(poses))
    starts = seeds if search.is_narrowed else np.ascontiguousarray(rows.best)
    num_attempts = NUM_FINAL_ATTEMPTS if search.approximate else 1
    search.with_long_attempts.attempt(poses, starts, num_attempts, tried)
    _take(rows, tried, found(tried) | (_errors(search, tried) < _errors(search, rows)))


def _make_final_attempts_in_scene(
    search: Search, snapshot: SceneSnapshot, poses: Array, seeds: Array, rows: Rows
) -> None:
    """Make final attempts one by one, and keep the closest collision-free configurations.

    The first attempt of a pose starts at the best configuration so far, or at the seed if
    `max_change` is finite; the other attempts start at random configurations. For poses of which
    all solutions collide, :func:`_search_collision_free` follows.

    Args:
        search: Search.
        snapshot: Scene.
        poses: (b, k, 4, 4) desired poses.
        seeds: (b, n) seeds, or (1, n) for all poses [rad or m].
        rows: State of the searches, read and written.
    """
    starts = seeds if search.is_narrowed else np.ascontiguousarray(rows.best)
    smallest = np.where(snapshot.in_collision(rows.best), np.inf, _errors(search, rows))
    for k in range(NUM_FINAL_ATTEMPTS):
        tried = search.new_rows(len(poses))
        tried.counts[:, ATTEMPTS_COLUMN], tried.counts[:, RANDOM_STATE_COLUMN] = (
            k,
            search.options.random_seed + k,
        )
        search.with_long_attempts.attempt(poses, starts, 1, tried)
        error = np.where(snapshot.in_collision(tried.best), np.inf, _errors(search, tried))
        is_closer = ~found(rows) & (found(tried) | (error < smallest))
        _take(rows, tried, is_closer)
        smallest = np.where(is_closer, error, smallest)
    if search.without_steps is None:
        return
    for i in np.flatnonzero(search.was_blocked(rows) & ~found(rows)).tolist():
        seed = seeds_of(seeds, np.array([i]))
        _search_collision_free(search, snapshot, poses[[i]], seed, rows, i)


def _search_collision_free(
    search: Search, snapshot: SceneSnapshot, T: Array, seed: Array, rows: Rows, i: int
) -> None:
    """Search for the collision-free configuration closest to a pose, and write it to row i.

    If none is found, the row does not change.

    Args:
        search: Search.
        snapshot: Scene.
        T: (1, k, 4, 4) desired pose, of which all solutions found so far are in collision.
        seed: (1, n) seed, from which each joint may differ by `max_change` [rad or m].
        rows: State of the searches, read and written.
        i: Row of the pose.
    """
    n, options = search.robot.n, search.options
    alone = replace(search, snapshot=None, kind=SELECT_FIRST, max_change=np.full(n, np.inf))
    there = alone.without_steps
    if there is None:
        return
    rng = np.random.default_rng(options.random_seed)
    lower = np.maximum(search.robot.lower, seed[0] - search.max_change)
    upper = np.minimum(search.robot.upper, seed[0] + search.max_change)

    def attempted(search: Search, q: Array) -> Rows:
        found_there = search.new_rows(len(q))
        search.attempt(np.repeat(T, len(q), axis=0), q, 1, found_there)
        return found_there

    def observe(q: Array) -> tuple[Array, Rows]:
        seen = attempted(there, np.clip(q, lower, upper))
        free = snapshot.states(seen.best)[:, 0] == CHECK_FREE
        return np.where(free, _errors(search, seen), np.inf), seen

    random_starts = rng.uniform(*search.robot.finite_limits(), (NUM_RANDOM_SOLUTIONS, n))
    others = attempted(alone, random_starts).best
    solutions, scale = np.vstack([rows.best[[i]], others]), search.problem.starts.joint_weights
    nearest = nearest_free(
        observe, lambda q: attempted(alone, q[None]).best[0], solutions, scale**-0.5, rng
    )
    if nearest is not None:
        rows.best[i], rows.figures[i] = nearest


def _errors(search: Search, rows: Rows) -> Array:
    """Return (b,) the norm of position error and weighted rotation error of each row [m]."""
    weights = np.array([1.0, search.problem.goal.rotation_weight])
    lengths: Array = np.linalg.norm(rows.figures[:, :2] * weights, axis=1)
    return lengths


def _take(rows: Rows, tried: Rows, is_closer: NDArray[np.bool_]) -> None:
    """Copy the rows of `tried` for which `is_closer` (b,) is true to `rows`.

    The step counts of all rows of `tried` are added to those of `rows`.
    """
    rows.best[is_closer], rows.figures[is_closer] = tried.best[is_closer], tried.figures[is_closer]
    rows.counts[is_closer, FOUND_COLUMN] = tried.counts[is_closer, FOUND_COLUMN]
    rows.counts[:, STEPS_COLUMN] += tried.counts[:, STEPS_COLUMN]


def nearest_free(
    observe: Callable[[Array], tuple[Array, Rows]],
    advance: Callable[[Array], Array],
    solutions: Array,
    deviation: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array] | None:
    """Search for the collision-free configuration with the smallest pose error.

    The search is an evolution strategy with one parent (Rechenberg 1973). Each round draws random
    configurations around the best collision-free configuration known so far. Some configurations of
    a round are instead on the line from the best configuration to the last configuration of an
    attempt that starts there and ignores the scene. As long as no collision-free configuration is
    known, all configurations are drawn around the solutions in collision.

    Args:
        observe: Function that clips configurations (b, n) to the limits, and returns their errors
            (b,) [m] and their `Rows`. The error is inf if a configuration is not proven
            collision-free.
        advance: Function that makes an attempt from a configuration (n,) without a scene, and
            returns the last configuration (n,) of the attempt.
        solutions: (s, n) solutions in collision [rad or m].
        deviation: (n,) standard deviations of the joints, relative to each other.
        rng: Generator of the random configurations.

    Returns:
        The configuration (n,) [rad or m] and its row (3,) of `Rows.figures`; None if no
        collision-free configuration is found.
    """
    errors, rows = observe(solutions)
    k, width = int(errors.argmin()), START_DEVIATION
    error, best, figures = errors[k], rows.best[k], rows.figures[k]
    for _ in range(NUM_ROUNDS):
        has_one = error < np.inf
        around = best if has_one else solutions[rng.integers(len(solutions), size=ROUND_SIZE)]
        tries = around + width * deviation * rng.normal(size=(ROUND_SIZE, len(best)))
        if has_one:
            tries[:NUM_TOWARD] = best + SHARES * (advance(best) - best)
        errors, rows = observe(tries)
        k = int(errors.argmin())
        width *= GROWTH if has_one == (errors[k] < error) else SHRINKAGE
        if errors[k] < error:
            error, best, figures = errors[k], rows.best[k], rows.figures[k]
        if not MIN_DEVIATION < width < MAX_DEVIATION:
            break
    return (best, figures) if error < np.inf else None
