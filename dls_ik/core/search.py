"""Attempts from one start after another until a pose is reached, or the best of several.

Each function serves both paths. One of `table` and `general` is None: Numba leaves out the branch
of the one that is None, so that each of the two kinds of solvers is compiled without the other.
"""

from math import pi

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.attempt import REACHED, attempt, error_at
from dls_ik.core.fast.step import slide
from dls_ik.core.fast.table import look_up, next_start
from dls_ik.core.free_solutions import FreeSearch, keep_free
from dls_ik.core.jit import force_inline
from dls_ik.core.linalg import copy, norm
from dls_ik.core.selection import (
    ALL,
    ATTEMPTS,
    FOUND,
    NEAREST,
    NOTHING,
    STATE,
    STEPS,
    distance,
    end_if_enough,
    keep,
    measure,
    take_answers,
)
from dls_ik.core.task import is_reached, scaled_error
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
    Starts,
    StopCriteria,
)

LATE = 32  # attempts after which a pose counts as difficult
UNKNOWN, EXHAUSTED = -1, -2  # in place of the leaf of a table
TURNS, REDUNDANCY, SAME = range(3)  # by what a solution comes nearer; observed once more
MOST_TURNS = 1e6  # beyond, a turn would cost digits that tolerances need
FARTHEST_VALUE = 1e18  # [rad or m] of a joint at the start


@force_inline
def search(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    seed: Array,
    attempts: int,
    row: Rows,
    scratch: SearchScratch,
    work: AnyWorkspace,
    free: FreeSearch | None,
) -> None:
    """Make up to `attempts` more attempts.

    Called again with the same row it goes on where it stopped, so that the moments at which a
    caller looks at the clock do not change the result. It stops too where solutions are noted in
    `free.opened`, and takes their answers at the next call.

    Args:
        table, general: one of them is None, see this module.
        free: None without a scene; of this pose.
        T_d: (k, 4, 4) desired poses, seed: (n,).
        row: in and out: of one pose, counts (4,), best (n,), figures (3,).
    """
    method, stop = params.method, params.stop
    counts, best, figures = row.counts, row.best, row.figures
    q, now, state = scratch.q, scratch.error, scratch.random_state
    leaf = UNKNOWN
    state[0] = np.uint64(counts[STATE])
    if free is not None:
        take_answers(params.rule, row, free.opened)
    for _ in range(attempts):
        if counts[FOUND] >= ALL:
            break
        # One attempt from the next start.
        is_long = is_long_attempt(stop, counts[ATTEMPTS])
        leaf = choose_start(chain, params, table, seed, counts[ATTEMPTS], leaf, scratch, work)
        status, steps = attempt(chain, method, stop, table, general, T_d, is_long, q, work, now)
        is_first = counts[ATTEMPTS] == 0
        counts[ATTEMPTS] += 1
        counts[STEPS] += steps
        # A solution is kept if it is the best one; what is none, if nothing is nearer.
        if status == REACHED:
            counts[STEPS] += approach(chain, params, table, general, T_d, seed, scratch, work)
            if free is None:
                value = measure(chain, params, table, general, T_d, seed, q, work)
                keep(params.rule, q, now, value, row)
            if free is not None:
                counts[STEPS] += keep_free(
                    chain, params, table, general, T_d, seed, row, scratch, work, free
                )
        if counts[FOUND] == NOTHING and (
            is_first or scaled_error(stop, now) < scaled_error(stop, figures)
        ):
            copy(q, best)
            figures[0], figures[1] = now[0], now[1]
        if free is not None:  # noqa: SIM102  Numba leaves out branches of None alone
            if free.opened.answers[0] > 0:
                break
        end_if_enough(params.rule, counts)
    counts[STATE] = np.int64(state[0])


# Starts ------------------------------------------------------------------------------------------


@force_inline
def choose_start(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    seed: Array,
    index: int,
    leaf: int,
    scratch: SearchScratch,
    work: AnyWorkspace,
) -> int:
    """Write the start of attempt `index` to q (n,): the seed, then from the table, then random.

    Every fourth of the late ones has joints at their bounds.

    Args:
        leaf: of the table, from the attempt before; UNKNOWN at first.

    Returns:
        The leaf, for the next attempt.
    """
    starts, rule, q, state = params.starts, params.rule, scratch.q, scratch.random_state
    if index == 0 and rule.seeded:
        from_seed(starts.periodic, seed, q)
        return leaf
    if table is not None:
        used = 0
        if leaf == UNKNOWN:
            leaf = look_up(chain, table, params.stop.rotation_weight, work)
            used = index - (1 if rule.seeded else 0)  # taken up where it stopped
        while leaf >= 0:
            if not next_start(chain, table, leaf, q, work):
                leaf = EXHAUSTED
            elif used == 0:
                turn_inside(starts.periodic, chain.lower, chain.upper, q)
                return leaf
            used -= 1
    random_start(starts, index >= LATE and index % 4 == 0, state, q)
    if rule.kind == NEAREST:
        unwind(starts.periodic, chain.lower, chain.upper, seed, q)
        draw_near(seed, uniform(state), q)
    return EXHAUSTED


@force_inline
def is_long_attempt(stop: StopCriteria, index: int) -> bool:
    """Test if attempt `index` is one of those that go on while the error falls.

    Every other of the late ones is: from most starts such poses are reached slowly or not at all.
    """
    every = min(stop.long_attempt_every, 2) if index >= LATE else stop.long_attempt_every
    return every > 0 and (index + 1) % every == 0


@force_inline
def from_seed(periodic: Indices, seed: Array, q: Array) -> None:
    """Copy the seed (n,) to q (n,).

    Values so far from zero that digits are lost come without their whole turns, and none is so far
    that its square overflows.
    """
    for j in range(q.shape[0]):
        q[j] = min(max(seed[j], -FARTHEST_VALUE), FARTHEST_VALUE)
        if periodic[j] != 0 and abs(q[j]) > 2.0 * pi * MOST_TURNS:
            q[j] -= 2.0 * pi * np.floor(q[j] / (2.0 * pi) + 0.5)


@force_inline
def turn_inside(periodic: Indices, lower: Array, upper: Array, q: Array) -> None:
    """Turn joints beyond a limit by whole turns to where they are nearest the middle, in place.

    The limits may be those around a seed that is some turns away.
    """
    for j in range(q.shape[0]):
        if periodic[j] != 0 and not lower[j] <= q[j] <= upper[j]:
            turns = np.floor((q[j] - 0.5 * (lower[j] + upper[j])) / (2.0 * pi) + 0.5)
            if abs(turns) <= MOST_TURNS:
                q[j] -= 2.0 * pi * turns


@force_inline
def random_start(starts: Starts, at_bounds: bool, state: NDArray[np.uint64], q: Array) -> None:
    """Write random joint values within the bounds to q (n,).

    Args:
        at_bounds: half of the joints at one of theirs, where poses can have small basins; else
            all are uniform.
    """
    for j in range(q.shape[0]):
        share = uniform(state)
        if at_bounds:
            share = min(max(2.0 * share - 0.5, 0.0), 1.0)
        q[j] = starts.lower[j] + share * (starts.upper[j] - starts.lower[j])


@force_inline
def draw_near(seed: Array, share: float, q: Array) -> None:
    """Leave only a share of the way from the seed (n,) to q (n,)."""
    for j in range(q.shape[0]):
        q[j] = seed[j] + share * (q[j] - seed[j])


@force_inline
def uniform(state: NDArray[np.uint64]) -> float:
    """Return the next random number in [0, 1); `state` (1,) is stepped.

    SplitMix64 (Steele, Lea & Flood 2014): one 64-bit word of state, any value is a good seed. The
    state is in the open, so that a search can be stopped and taken up.
    """
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 1.1102230246251565e-16


# The way of a solution to the seed ----------------------------------------------------------------


@force_inline
def approach(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    seed: Array,
    scratch: SearchScratch,
    work: AnyWorkspace,
) -> int:
    """Bring a solution nearer to the seed, as far as it stays one; return the steps it took.

    By whole turns, and where the nearest one is wanted along the arm's redundancy.
    """
    stop, starts = params.stop, params.starts
    q, kept, steps, weights = scratch.q, scratch.kept, 0, params.starts.joint_weights
    for phase in range(TURNS, SAME + 1):
        changed = False
        copy(q, kept)
        if phase == TURNS:
            changed = unwind(starts.periodic, chain.lower, chain.upper, seed, q)
        if table is not None:
            farther = distance(weights, q, seed) > 0.0
            if phase == REDUNDANCY and params.rule.kind == NEAREST and farther:
                steps = slide(chain, stop, starts, seed, q, work)
                changed = steps > 0
        if not changed and (phase != SAME or steps == 0):
            continue
        position, rotation = error_at(chain, stop, table, general, T_d, q, work)
        if not is_reached(stop, position, rotation, norm(work.e)) or (
            phase == REDUNDANCY and distance(weights, q, seed) > distance(weights, kept, seed)
        ):
            copy(kept, q)  # also where far from zero a turn costs digits
        else:
            scratch.error[0], scratch.error[1] = position, rotation
    return steps


@force_inline
def unwind(periodic: Indices, lower: Array, upper: Array, seed: Array, q: Array) -> bool:
    """Turn joints by whole turns to where they are nearest the seed within limits, in place.

    Returns:
        True if one was turned.
    """
    turned = False
    for j in range(q.shape[0]):
        if periodic[j] != 0 and abs(q[j] - seed[j]) > pi:
            turns = np.floor((q[j] - seed[j]) / (2.0 * pi) + 0.5)
            turns = min(turns, np.floor((q[j] - lower[j]) / (2.0 * pi)))
            turns = max(turns, np.ceil((q[j] - upper[j]) / (2.0 * pi)))
            if turns != 0.0 and abs(turns) <= MOST_TURNS:
                q[j] = min(max(q[j] - 2.0 * pi * turns, lower[j]), upper[j])
                turned = True
    return turned
