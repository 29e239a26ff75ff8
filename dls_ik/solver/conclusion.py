"""The end of searches: nearer configurations for poses that are missed, and what is a success."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.collision import FREE
from dls_ik.core.selection import ATTEMPTS, FIRST, FOUND, PAIRS, STATE, STEPS
from dls_ik.core.types import Array, Rows
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.solver.method import AUTO
from dls_ik.solver.result import MISSED, Status
from dls_ik.solver.search import Search, found, put_back, seeds_of, some_rows

# As numbers: members of an enum are slow to look up.
SUCCESS, UNREACHABLE, REFUSED = map(int, (Status.SUCCESS, Status.UNREACHABLE, Status.REFUSED))
OUTSIDE_LIMITS, FAR_FROM_SEED = int(Status.OUTSIDE_LIMITS), int(Status.FAR_FROM_SEED)
IN_COLLISION = int(Status.IN_COLLISION)
NOT_REACHED = (*MISSED, IN_COLLISION)  # freely

# The last attempts for a pose that is missed.
OTHERS = 7  # ends of attempts from which a free configuration is looked for too
LAST_TRIES = 8  # where the nearest configuration is an answer; else one

# The nearest free configuration.
ROUNDS, TRIES = 30, 48  # of configurations; in each
BEGIN, LEAST = 0.05, 1e-5  # deviation of the first ones, and of the last [rad or m], joint metric
WIDER, NARROWER = 2.0, 0.6  # times the deviation after a round that found a nearer one, or none
FARTHEST = 3.0  # [rad or m] deviation at which there is no free configuration around
TOWARD = 8  # tries of a round that lie on the way to a solution
SHARES = 2.0 ** -np.arange(TOWARD)[:, None]  # of that way


def conclude(
    search: Search,
    poses: Array,
    seeds: Array,
    rows: Rows,
    ended: NDArray[np.int64],
    no_answer: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Come nearer to poses that were missed, and return how each search ended.

    Args:
        ended: (b,) status of each row without a solution; REFUSED if it was passed over.
        no_answer: (b,) as :meth:`starts` has it.
    """
    begun, solved = ended != REFUSED, found(rows)
    if not solved.all():
        near = search.approximate | ((ended == UNREACHABLE) & (search.method == AUTO))
        which = np.flatnonzero(begun & near & ~solved)
        if len(which):
            part = some_rows(rows, which)
            _come_nearer(search, poses[which], seeds_of(seeds, which), part)
            put_back(rows, which, part)
            solved = found(rows)
    ended = np.where(solved, SUCCESS, ended)
    ended[~solved & begun & search.was_blocked(rows)] = IN_COLLISION
    if not search.keeps_limits:
        ended[solved & ~search.is_near(rows.best, seeds)] = FAR_FROM_SEED
        ended[solved & ~search.is_inside(rows.best)] = OUTSIDE_LIMITS
    ended[begun & no_answer] = FAR_FROM_SEED
    return ended


def pairs_in_the_way(
    search: Search, rows: Rows, status: NDArray[np.int64]
) -> tuple[Pair | None, ...]:
    """Return (b,) the pair that collided most often; () without a scene.

    Args:
        status: (b,) None stands for rows that are not IN_COLLISION.
    """
    if search.snapshot is None:
        return ()
    numbers, counts = rows.counts[:, PAIRS::2], rows.counts[:, PAIRS + 1 :: 2]
    most = np.take_along_axis(numbers, counts.argmax(axis=1)[:, None], axis=1)[:, 0]
    most[status != IN_COLLISION] = 0
    return tuple(search.snapshot.names[k - 1] if k else None for k in most.tolist())


def has_answer(
    search: Search, status: NDArray[np.int64], q: Array, seeds: Array
) -> NDArray[np.bool_]:
    """Return (b,) the rows that are a success: with `approximate` also missed poses.

    Rows beyond limits, where some methods get, are no success either way.
    """
    success: NDArray[np.bool_] = status == SUCCESS
    if search.approximate:
        nearest = np.isin(status, NOT_REACHED) & search.keeps(q, seeds)
        if search.snapshot is not None and nearest.any():
            nearest[nearest] = ~search.snapshot.in_collision(q[nearest])
        success = success | nearest
    return success


def _come_nearer(search: Search, poses: Array, seeds: Array, rows: Rows) -> None:
    """Make last attempts for missed poses, which may reach some of them after all.

    Steps are counted, attempts are no restarts. They start at the best so far, or at the seeds
    where answers have to be near those.
    """
    if search.snapshot is not None and search.approximate:
        _come_nearer_free(search, search.snapshot, poses, seeds, rows)
        return
    tried = search.new_rows(len(poses))
    starts = seeds if search.is_narrowed else np.ascontiguousarray(rows.best)
    tries = LAST_TRIES if search.approximate else 1
    search.with_long_attempts.attempt(poses, starts, tries, tried)
    _take(rows, tried, found(tried) | (_errors(search, tried) < _errors(search, rows)))


def _come_nearer_free(
    search: Search, snapshot: SceneSnapshot, poses: Array, seeds: Array, rows: Rows
) -> None:
    """Make last attempts one by one, and take the nearest end that is free of collisions.

    From the best so far, or the seeds, and then from random configurations.
    """
    starts = seeds if search.is_narrowed else np.ascontiguousarray(rows.best)
    least = np.where(snapshot.in_collision(rows.best), np.inf, _errors(search, rows))
    for k in range(LAST_TRIES):
        tried = search.new_rows(len(poses))
        tried.counts[:, ATTEMPTS], tried.counts[:, STATE] = k, search.options.random_seed + k
        search.with_long_attempts.attempt(poses, starts, 1, tried)
        error = np.where(snapshot.in_collision(tried.best), np.inf, _errors(search, tried))
        nearer = ~found(rows) & (found(tried) | (error < least))
        _take(rows, tried, nearer)
        least = np.where(nearer, error, least)
    if search.problem.kdl is not None:  # its attempts cannot be made without a step
        return
    for i in np.flatnonzero(search.was_blocked(rows) & ~found(rows)).tolist():
        _come_out(search, snapshot, poses[[i]], seeds_of(seeds, np.array([i])), rows, i)


def _come_out(
    search: Search, snapshot: SceneSnapshot, T: Array, seed: Array, rows: Rows, i: int
) -> None:
    """Write the nearest free configuration to row i, of a pose that is reached in collision.

    Args:
        T: (1, k, 4, 4), seed: (1, n) that it is to be near.
    """
    n, options = search.robot.n, search.options
    alone = replace(search, snapshot=None, kind=FIRST, max_change=np.full(n, np.inf))
    there = alone.with_criteria(0, 1.0, 0)  # attempts without a step
    rng = np.random.default_rng(options.random_seed)
    lower = np.maximum(search.robot.lower, seed[0] - search.max_change)
    upper = np.minimum(search.robot.upper, seed[0] + search.max_change)

    def attempted(search: Search, q: Array) -> Rows:
        found_there = search.new_rows(len(q))
        search.attempt(np.repeat(T, len(q), axis=0), q, 1, found_there)
        return found_there

    def observe(q: Array) -> tuple[Array, Rows]:
        seen = attempted(there, np.clip(q, lower, upper))
        free = snapshot.states(seen.best)[:, 0] == FREE
        return np.where(free, _errors(search, seen), np.inf), seen

    others = attempted(alone, rng.uniform(*search.robot.finite_limits(), (OTHERS, n))).best
    solutions, scale = np.vstack([rows.best[[i]], others]), search.problem.starts.joint_weights
    nearest = nearest_free(
        observe, lambda q: attempted(alone, q[None]).best[0], solutions, scale**-0.5, rng
    )
    if nearest is not None:
        rows.best[i], rows.figures[i] = nearest


def _errors(search: Search, rows: Rows) -> Array:
    """(b,) norm of the errors, rotation weighted [m]."""
    weights = np.array([1.0, search.problem.goal.rotation_weight])
    lengths: Array = np.linalg.norm(rows.figures[:, :2] * weights, axis=1)
    return lengths


def _take(rows: Rows, tried: Rows, nearer: NDArray[np.bool_]) -> None:
    """Take what was tried where it is nearer; steps are counted in any case."""
    rows.best[nearer], rows.figures[nearer] = tried.best[nearer], tried.figures[nearer]
    rows.counts[nearer, FOUND] = tried.counts[nearer, FOUND]
    rows.counts[:, STEPS] += tried.counts[:, STEPS]


def nearest_free(
    observe: Callable[[Array], tuple[Array, Rows]],
    advance: Callable[[Array], Array],
    solutions: Array,
    deviation: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array] | None:
    """Find the configuration of least error among those certainly free.

    An evolution strategy with one parent (Rechenberg 1973): random configurations around the best
    one, or around solutions in collision until there is one, and some on the way to a solution.

    Args:
        observe: Returns the errors of configurations (b, n) within limits, inf where they may
            collide, and their rows.
        advance: Returns where an attempt from q (n,) ends, without the scene.
        solutions: (s, n) in collision.
        deviation: (n,) of joints, relative to each other.
        rng: Generator of the random configurations.

    Returns:
        q (n,) and its figures (3,); None if none is found.
    """
    errors, rows = observe(solutions)
    k, width = int(errors.argmin()), BEGIN
    error, best, figures = errors[k], rows.best[k], rows.figures[k]
    for _ in range(ROUNDS):
        has_one = error < np.inf
        around = best if has_one else solutions[rng.integers(len(solutions), size=TRIES)]
        tries = around + width * deviation * rng.normal(size=(TRIES, len(best)))
        if has_one:
            tries[:TOWARD] = best + SHARES * (advance(best) - best)
        errors, rows = observe(tries)
        k = int(errors.argmin())
        width *= WIDER if has_one == (errors[k] < error) else NARROWER
        if errors[k] < error:
            error, best, figures = errors[k], rows.best[k], rows.figures[k]
        if not LEAST < width < FARTHEST:
            break
    return (best, figures) if error < np.inf else None
