# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The search for one pose: repeated attempts from different start configurations.

Each function serves the fast path (`table` given) and the general path (`general` given). The other
argument is None: Numba prunes branches on an argument that is None, so that each path is compiled
without the code of the other.
"""

from math import pi

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.attempt import ATTEMPT_REACHED, attempt, error_at
from dls_ik.core.fast.step import slide
from dls_ik.core.fast.table import look_up, next_start
from dls_ik.core.free_solutions import FreeSearch, keep_free
from dls_ik.core.jit import force_inline
from dls_ik.core.linalg import copy, norm
from dls_ik.core.selection import (
    ATTEMPTS_COLUMN,
    FOUND_ALL,
    FOUND_COLUMN,
    FOUND_NOTHING,
    RANDOM_STATE_COLUMN,
    SELECT_NEAREST,
    STEPS_COLUMN,
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

DIFFICULT_AFTER = 32  # number of attempts after which a pose counts as difficult
LEAF_UNKNOWN, LEAF_EXHAUSTED = -1, -2  # values used instead of the index of a table leaf
# phases of `approach`; the last evaluates q again
PHASE_TURNS, PHASE_REDUNDANCY, PHASE_OBSERVE = range(3)
MAX_TURNS = 1e6  # larger numbers of whole turns would cost digits that the tolerances need
MAX_START_VALUE = 1e18  # [rad or m] largest joint position of a start; its square is finite


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
    """Run up to `attempts` further attempts for one pose.

    A second call with the same row continues the search, so the result does not depend on how often
    the caller interrupts the search to read the clock. The search also returns early when
    `free.opened` holds solutions that need an exact collision check; the next call uses the
    answers.

    Args:
        table, general: Exactly one of them is None, as the module docstring explains.
        T_d: (k, 4, 4) desired poses.
        seed: (n,) joint positions [rad or m].
        row: State of this pose, read and written: counts (4,), best (n,), figures (3,).
        free: Inputs of the collision-free search for this pose; None without a scene.
    """
    method, stop = params.method, params.stop
    counts, best, figures = row.counts, row.best, row.figures
    q, now, state = scratch.q, scratch.error, scratch.random_state
    leaf = LEAF_UNKNOWN
    state[0] = np.uint64(counts[RANDOM_STATE_COLUMN])
    if free is not None:
        take_answers(params.rule, row, free.opened)
    for _ in range(attempts):
        if counts[FOUND_COLUMN] >= FOUND_ALL:
            break
        # Run one attempt from the next start.
        is_long = is_long_attempt(stop, counts[ATTEMPTS_COLUMN])
        leaf = choose_start(
            chain, params, table, seed, counts[ATTEMPTS_COLUMN], leaf, scratch, work
        )
        status, steps = attempt(chain, method, stop, table, general, T_d, is_long, q, work, now)
        is_first = counts[ATTEMPTS_COLUMN] == 0
        counts[ATTEMPTS_COLUMN] += 1
        counts[STEPS_COLUMN] += steps
        # Keep a solution if it is the best so far.
        if status == ATTEMPT_REACHED:
            counts[STEPS_COLUMN] += approach(
                chain, params, table, general, T_d, seed, scratch, work
            )
            if free is None:
                value = measure(chain, params, table, general, T_d, seed, q, work)
                keep(params.rule, q, now, value, row)
            if free is not None:
                counts[STEPS_COLUMN] += keep_free(
                    chain, params, table, general, T_d, seed, row, scratch, work, free
                )
        # Without a solution, keep the configuration with the smallest error.
        if counts[FOUND_COLUMN] == FOUND_NOTHING and (
            is_first or scaled_error(stop, now) < scaled_error(stop, figures)
        ):
            copy(q, best)
            figures[0], figures[1] = now[0], now[1]
        if free is not None:  # noqa: SIM102  Numba prunes branches on None only
            if free.opened.answers[0] > 0:
                break
        end_if_enough(params.rule, counts)
    counts[RANDOM_STATE_COLUMN] = np.int64(state[0])


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
    """Write the start configuration of attempt `index` to `scratch.q` (n,).

    The order is: the seed, the entries of the table's leaf, random configurations. For difficult
    poses every fourth random start has joints at their bounds.

    Args:
        leaf: Leaf returned for the previous attempt; LEAF_UNKNOWN for the first.

    Returns:
        The leaf for the next attempt; LEAF_EXHAUSTED when all entries of the leaf are used.
    """
    starts, rule, q, state = params.starts, params.rule, scratch.q, scratch.random_state
    if index == 0 and rule.seeded:
        from_seed(starts.periodic, seed, q)
        return leaf
    if table is not None:
        used = 0
        if leaf == LEAF_UNKNOWN:
            leaf = look_up(chain, table, params.stop.rotation_weight, work)
            used = index - (1 if rule.seeded else 0)  # entries used before an interruption
        while leaf >= 0:
            if not next_start(chain, table, leaf, q, work):
                leaf = LEAF_EXHAUSTED
            elif used == 0:
                turn_inside(starts.periodic, chain.lower, chain.upper, q)
                return leaf
            used -= 1
    random_start(starts, index >= DIFFICULT_AFTER and index % 4 == 0, state, q)
    if rule.kind == SELECT_NEAREST:
        unwind(starts.periodic, chain.lower, chain.upper, seed, q)
        draw_near(seed, uniform(state), q)
    return LEAF_EXHAUSTED


@force_inline
def is_long_attempt(stop: StopCriteria, index: int) -> bool:
    """Return whether attempt `index` continues for as long as its error decreases.

    For difficult poses every second attempt does: most starts converge slowly or not at all there.
    """
    is_difficult = index >= DIFFICULT_AFTER
    every = min(stop.long_attempt_every, 2) if is_difficult else stop.long_attempt_every
    return every > 0 and (index + 1) % every == 0


@force_inline
def from_seed(periodic: Indices, seed: Array, q: Array) -> None:
    """Copy the seed (n,) to q (n,), bounded to MAX_START_VALUE.

    Periodic joints with more than MAX_TURNS whole turns lose these turns, because positions that
    large have too few digits.
    """
    for j in range(q.shape[0]):
        q[j] = min(max(seed[j], -MAX_START_VALUE), MAX_START_VALUE)
        if periodic[j] != 0 and abs(q[j]) > 2.0 * pi * MAX_TURNS:
            q[j] -= 2.0 * pi * np.floor(q[j] / (2.0 * pi) + 0.5)


@force_inline
def turn_inside(periodic: Indices, lower: Array, upper: Array, q: Array) -> None:
    """Turn joints outside their limits by whole turns toward the middle of the limits, in place.

    The limits may be those near a seed that is several turns away.
    """
    for j in range(q.shape[0]):
        if periodic[j] != 0 and not lower[j] <= q[j] <= upper[j]:
            turns = np.floor((q[j] - 0.5 * (lower[j] + upper[j])) / (2.0 * pi) + 0.5)
            if abs(turns) <= MAX_TURNS:
                q[j] -= 2.0 * pi * turns


@force_inline
def random_start(starts: Starts, at_bounds: bool, state: NDArray[np.uint64], q: Array) -> None:
    """Write random joint positions within the bounds to q (n,).

    Args:
        at_bounds: Place each joint at one of its bounds with probability one half: solutions near
            joint limits can have small basins of attraction. Otherwise all joints are uniform.
    """
    for j in range(q.shape[0]):
        share = uniform(state)
        if at_bounds:
            share = min(max(2.0 * share - 0.5, 0.0), 1.0)
        q[j] = starts.lower[j] + share * (starts.upper[j] - starts.lower[j])


@force_inline
def draw_near(seed: Array, share: float, q: Array) -> None:
    """Move q (n,) toward the seed (n,) until `share` of their difference is left."""
    for j in range(q.shape[0]):
        q[j] = seed[j] + share * (q[j] - seed[j])


@force_inline
def uniform(state: NDArray[np.uint64]) -> float:
    """Return the next random number in [0, 1), and advance `state` (1,).

    SplitMix64 (Steele, Lea & Flood 2014): one 64-bit word of state, every value is a good seed. The
    caller owns the state, so that a search can be interrupted and continued.
    """
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 1.1102230246251565e-16


# Moving a solution closer to the seed -------------------------------------------------------------


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
    """Move the solution `scratch.q` (n,) closer to the seed (n,) while it remains a solution.

    Joints move by whole turns and, where the closest solution is wanted, along the self-motion of
    the arm.

    Returns:
        The number of steps along the self-motion.
    """
    stop, starts = params.stop, params.starts
    q, kept, steps, weights = scratch.q, scratch.kept, 0, params.starts.joint_weights
    for phase in range(PHASE_TURNS, PHASE_OBSERVE + 1):
        changed = False
        copy(q, kept)
        if phase == PHASE_TURNS:
            changed = unwind(starts.periodic, chain.lower, chain.upper, seed, q)
        if table is not None:
            farther = distance(weights, q, seed) > 0.0
            if phase == PHASE_REDUNDANCY and params.rule.kind == SELECT_NEAREST and farther:
                steps = slide(chain, stop, starts, seed, q, work)
                changed = steps > 0
        if not changed and (phase != PHASE_OBSERVE or steps == 0):
            continue
        position, rotation = error_at(chain, stop, table, general, T_d, q, work)
        if not is_reached(stop, position, rotation, norm(work.e)) or (
            phase == PHASE_REDUNDANCY and distance(weights, q, seed) > distance(weights, kept, seed)
        ):
            copy(kept, q)  # a turn of a joint far from zero can lose the digits of a solution
        else:
            scratch.error[0], scratch.error[1] = position, rotation
    return steps


@force_inline
def unwind(periodic: Indices, lower: Array, upper: Array, seed: Array, q: Array) -> bool:
    """Turn periodic joints by whole turns to be closest to the seed within the limits, in place.

    Returns:
        Whether a joint was turned.
    """
    turned = False
    for j in range(q.shape[0]):
        if periodic[j] != 0 and abs(q[j] - seed[j]) > pi:
            turns = np.floor((q[j] - seed[j]) / (2.0 * pi) + 0.5)
            turns = min(turns, np.floor((q[j] - lower[j]) / (2.0 * pi)))
            turns = max(turns, np.ceil((q[j] - upper[j]) / (2.0 * pi)))
            if turns != 0.0 and abs(turns) <= MAX_TURNS:
                q[j] = min(max(q[j] - 2.0 * pi * turns, lower[j]), upper[j])
                turned = True
    return turned
