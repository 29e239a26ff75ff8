"""The free configuration that comes nearest to a pose that is reached only in collision."""

from collections.abc import Callable

import numpy as np

from dls_ik.core.types import Array, Rows

ROUNDS, TRIES = 30, 48  # of configurations; in each
BEGIN, LEAST = 0.05, 1e-5  # deviation of the first ones, and of the last [rad or m], joint metric
WIDER, NARROWER = 2.0, 0.6  # times the deviation after a round that found a nearer one, or none
FARTHEST = 3.0  # [rad or m] deviation at which there is no free configuration around
TOWARD = 8  # tries of a round that lie on the way to a solution
SHARES = 2.0 ** -np.arange(TOWARD)[:, None]  # of that way


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
        rng: Of the random configurations.

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
