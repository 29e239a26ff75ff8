"""Attempts from one start after another until a pose is reached, or the best of several."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import spliced
from dls_ik.core.linalg import copy
from dls_ik.core.loop import REACHED, attempt
from dls_ik.core.observe import scaled_error
from dls_ik.core.starting import UNKNOWN, choose_start, is_patient
from dls_ik.core.types import (
    Array,
    Details,
    Goal,
    Method,
    Scratch,
    Starts,
    Structure,
    Table,
    Wish,
)
from dls_ik.core.wishes import FIRST, NEAREST, approach, measure

ATTEMPTS, STEPS, FOUND, STATE = range(4)  # columns of Rows.counts: begun, made, see below, random
NOTHING, SOMETHING, ALL = range(3)  # found: no solution; one, and the search goes on; it is over


@spliced
def search(
    chain: Structure,
    method: Method,
    goal: Goal,
    starts: Starts,
    quick: Table | None,
    details: Details | None,
    wish: Wish,
    T_d: Array,
    seed: Array,
    state: NDArray[np.uint64],
    counts: NDArray[np.int64],
    attempts: int,
    q: Array,
    now: Array,
    kept: Array,
    best: Array,
    figures: Array,
    work: Scratch,
) -> None:
    """Make up to `attempts` more attempts.

    Called again with the same counts, best and figures it goes on where it stopped, so that where
    a caller looks at the clock does not change what is found.

    Args:
        T_d: (k, 4, 4) desired poses, seed: (n,).
        state: (1,), q: (n,), now: (2,), kept: (n,) scratch.
        counts: (4,), best: (n,), figures: (3,): a row of :class:`Rows`.
    """
    leaf = UNKNOWN
    state[0] = np.uint64(counts[STATE])
    for _ in range(attempts):
        if counts[FOUND] == ALL:
            break
        patient = is_patient(goal, counts[ATTEMPTS])
        leaf = choose_start(
            chain, goal, starts, quick, wish, seed, counts[ATTEMPTS], leaf, state, q, work
        )
        status, steps = attempt(chain, method, goal, quick, details, T_d, patient, q, work, now)
        first = counts[ATTEMPTS] == 0
        counts[ATTEMPTS] += 1
        counts[STEPS] += steps
        if status == REACHED:
            counts[STEPS] += approach(
                chain, goal, starts, quick, details, wish, T_d, seed, q, now, kept, work
            )
            value = measure(chain, goal, starts, quick, details, wish, T_d, seed, q, work)
            if counts[FOUND] == NOTHING or value < figures[2]:
                copy(q, best)
                figures[0], figures[1], figures[2] = now[0], now[1], value
            counts[FOUND] = SOMETHING
            if wish.kind == FIRST or (wish.kind == NEAREST and value == 0.0):
                counts[FOUND] = ALL
        elif counts[FOUND] == NOTHING and (
            first or scaled_error(goal, now) < scaled_error(goal, figures)
        ):
            copy(q, best)
            figures[0], figures[1] = now[0], now[1]
        if counts[FOUND] == SOMETHING and counts[ATTEMPTS] >= wish.compared:
            counts[FOUND] = ALL
    counts[STATE] = np.int64(state[0])
