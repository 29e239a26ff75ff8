# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The search for one pose: repeated attempts from different start configurations.

Functions with the argument `problem` serve two paths. The fast path is for the full pose of one tip
of a serial arm, with ``problem.table`` given and ``problem.general`` None; the general path is for
all other tasks and methods, with ``problem.general`` given and ``problem.table`` None. Code that is
valid on one path only is in functions with the argument `table` or `general`, because Numba removes
branches that depend on an argument that is None.
"""

from math import pi

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.attempt import ATTEMPT_REACHED, attempt, error_at, number_attempt
from dls_ik.core.fast.step import slide
from dls_ik.core.fast.table import look_up, next_start
from dls_ik.core.free_solutions import FreeSearch, keep_free
from dls_ik.core.jit import force_inline
from dls_ik.core.limits import DUAL
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
    Array,
    ChainTable,
    Indices,
    PoseProblem,
    Rows,
    SearchScratch,
    Starts,
    StopCriteria,
)

DIFFICULT_AFTER = 32  # number of attempts after which a pose counts as difficult
LEAF_UNKNOWN, LEAF_EXHAUSTED = -1, -2  # values used instead of the index of a table leaf
# phases of `approach`; the last phase evaluates q again
PHASE_TURNS, PHASE_REDUNDANCY, PHASE_OBSERVE = range(3)
MAX_TURNS = 1e6  # maximum number of whole turns; more turns leave too few digits for tolerances
MAX_START_VALUE = 1e18  # [rad or m] maximum joint position of a start; its square is finite


@force_inline
def search(
    problem: PoseProblem,
    attempts: int,
    row: Rows,
    scratch: SearchScratch,
    free: FreeSearch | None,
) -> None:
    """Run up to `attempts` further attempts to solve one pose.

    A second call with the same `row` continues the search, so that the result does not depend on
    how often the caller interrupts the search to read the clock. With a scene, the search also
    returns when `free.opened` holds solutions that need an exact collision check; the next call
    uses the answers of these checks.

    Args:
        problem: The pose.
        attempts: Maximum number of attempts in this call.
        row: State of the search for this pose, read and written: counts (4,), best (n,), figures
            (3,).
        scratch: Scratch arrays.
        free: Inputs of the search for collision-free solutions; None without a scene.
    """
    rule, stop, work = problem.params.rule, problem.params.stop, scratch.work
    counts, best, figures = row.counts, row.best, row.figures
    q, now, state = scratch.q, scratch.error, scratch.random_state
    leaf = LEAF_UNKNOWN
    state[0] = np.uint64(counts[RANDOM_STATE_COLUMN])
    if free is not None:
        take_answers(rule, row, free.opened)
    for _ in range(attempts):
        if counts[FOUND_COLUMN] >= FOUND_ALL:
            break
        # Run one attempt from the next start configuration.
        is_long = is_long_attempt(stop, counts[ATTEMPTS_COLUMN])
        leaf = choose_start(problem, counts[ATTEMPTS_COLUMN], leaf, scratch)
        number_attempt(problem.general, counts[ATTEMPTS_COLUMN], work)
        status, steps = attempt(problem, is_long, q, work, now)
        is_first = counts[ATTEMPTS_COLUMN] == 0
        counts[ATTEMPTS_COLUMN] += 1
        counts[STEPS_COLUMN] += steps
        # Keep a solution if it is the best so far.
        if status == ATTEMPT_REACHED:
            counts[STEPS_COLUMN] += approach(problem, scratch)
            if free is None:
                keep(rule, q, now, measure(problem, q, work), row)
            if free is not None:
                counts[STEPS_COLUMN] += keep_free(problem, row, scratch, free)
        # If there is no solution yet, keep the configuration with the smallest error.
        if counts[FOUND_COLUMN] == FOUND_NOTHING and (
            is_first or scaled_error(stop, now) < scaled_error(stop, figures)
        ):
            copy(q, best)
            figures[0], figures[1] = now[0], now[1]
        if free is not None:  # noqa: SIM102  Numba prunes branches on None only
            if free.opened.answers[0] > 0:
                break
        end_if_enough(rule, counts)
    counts[RANDOM_STATE_COLUMN] = np.int64(state[0])


# Starts ------------------------------------------------------------------------------------------


@force_inline
def choose_start(problem: PoseProblem, index: int, leaf: int, scratch: SearchScratch) -> int:
    """Write the start configuration of attempt `index` to `scratch.q` (n,) [rad or m].

    If the selection rule uses the seed, the first start is the seed; with the method DUAL the
    second start is the seed too. On the fast path, the rows of one leaf of the table follow, and
    then random configurations. After many attempts, every fourth random start has joints at their
    bounds.

    Args:
        problem: The pose, its seed, and the bounds of random starts.
        index: Number of previous attempts for this pose.
        leaf: Result of this function for the previous attempt; LEAF_UNKNOWN for the first attempt
            of a call.
        scratch: Scratch arrays; `q` and `random_state` are written.

    Returns:
        Index of the first row of the leaf; LEAF_UNKNOWN if the table was not used yet,
        LEAF_EXHAUSTED if all rows of the leaf are used or there is no table.
    """
    chain, starts, rule = problem.chain, problem.params.starts, problem.params.rule
    q, state, seed = scratch.q, scratch.random_state, problem.seed
    num_seeded = 2 if problem.params.method.limits == DUAL else 1  # one for each of its solvers
    if index < num_seeded and rule.seeded:
        from_seed(starts.periodic, seed, q)
        return leaf
    leaf = start_from_table(problem, problem.table, index, leaf, scratch)
    if leaf != LEAF_EXHAUSTED:
        return leaf
    random_start(starts, index >= DIFFICULT_AFTER and index % 4 == 0, state, q)
    if rule.kind == SELECT_NEAREST:
        unwind(starts.periodic, chain.lower, chain.upper, seed, q)
        draw_near(seed, uniform(state), q)
    return LEAF_EXHAUSTED


@force_inline
def start_from_table(
    problem: PoseProblem, table: ChainTable | None, index: int, leaf: int, scratch: SearchScratch
) -> int:
    """Write the next unused row of a leaf of the table to `scratch.q` (n,) [rad or m].

    The arguments and the result are those of :func:`choose_start`.
    """
    if table is not None:
        chain, q, work, used = problem.chain, scratch.q, scratch.work, 0
        if leaf == LEAF_UNKNOWN:
            leaf = look_up(chain, table, problem.params.stop.rotation_weight, work)
            # number of rows that were used before the search was interrupted
            used = index - (1 if problem.params.rule.seeded else 0)
        while leaf >= 0:
            if not next_start(chain, table, leaf, q, work):
                leaf = LEAF_EXHAUSTED
            elif used == 0:
                turn_inside(problem.params.starts.periodic, chain.lower, chain.upper, q)
                return leaf
            used -= 1
    return LEAF_EXHAUSTED


@force_inline
def is_long_attempt(stop: StopCriteria, index: int) -> bool:
    """Return whether attempt `index` is a long attempt, with more steps and a slower decrease.

    Every ``stop.long_attempt_every``-th attempt is long. If a pose is still unsolved after many
    attempts, every second attempt is long, because most starts converge slowly, if at all.
    """
    is_difficult = index >= DIFFICULT_AFTER
    every = min(stop.long_attempt_every, 2) if is_difficult else stop.long_attempt_every
    return every > 0 and (index + 1) % every == 0


@force_inline
def from_seed(periodic: Indices, seed: Array, q: Array) -> None:
    """Write the start configuration q (n,) [rad or m] for a seed (n,).

    q is the seed, with absolute values bounded by MAX_START_VALUE. A periodic joint that is more
    than MAX_TURNS whole turns from zero is set to the equivalent position within half a turn of
    zero, because such large positions have too few digits.

    Args:
        periodic: (n,) 1 for joints whose whole turns do not change the pose, else 0.
        seed: (n,) joint positions of the seed [rad or m].
        q: (n,) start configuration, written.
    """
    for j in range(q.shape[0]):
        q[j] = min(max(seed[j], -MAX_START_VALUE), MAX_START_VALUE)
        if periodic[j] != 0 and abs(q[j]) > 2.0 * pi * MAX_TURNS:
            q[j] -= 2.0 * pi * np.floor(q[j] / (2.0 * pi) + 0.5)


@force_inline
def turn_inside(periodic: Indices, lower: Array, upper: Array, q: Array) -> None:
    """Turn periodic joints that are outside their limits by whole turns toward mid-range.

    Several turns may be needed, because the limits may be those near a seed.

    Args:
        periodic: (n,) 1 for joints whose whole turns do not change the pose, else 0.
        lower, upper: (n,) limits [rad or m].
        q: (n,) joint positions, read and written [rad or m].
    """
    for j in range(q.shape[0]):
        if periodic[j] != 0 and not lower[j] <= q[j] <= upper[j]:
            turns = np.floor((q[j] - 0.5 * (lower[j] + upper[j])) / (2.0 * pi) + 0.5)
            if abs(turns) <= MAX_TURNS:
                q[j] -= 2.0 * pi * turns


@force_inline
def random_start(starts: Starts, at_bounds: bool, state: NDArray[np.uint64], q: Array) -> None:
    """Write random joint positions within the bounds of `starts` to q.

    Args:
        starts: Bounds of the joint positions.
        at_bounds: If True, each joint is at one of its bounds with probability one half, because
            solutions near joint limits can have small basins of attraction. If False, the positions
            are uniformly distributed.
        state: (1,) state of the random generator, read and written.
        q: (n,) joint positions, written [rad or m].
    """
    for j in range(q.shape[0]):
        share = uniform(state)
        if at_bounds:
            share = min(max(2.0 * share - 0.5, 0.0), 1.0)
        q[j] = starts.lower[j] + share * (starts.upper[j] - starts.lower[j])


@force_inline
def draw_near(seed: Array, share: float, q: Array) -> None:
    """Move q toward the seed: q = seed + share * (q - seed).

    Args:
        seed: (n,) joint positions of the seed [rad or m].
        share: Share of the difference that remains, 0 to 1.
        q: (n,) joint positions, read and written [rad or m].
    """
    for j in range(q.shape[0]):
        q[j] = seed[j] + share * (q[j] - seed[j])


@force_inline
def uniform(state: NDArray[np.uint64]) -> float:
    """Return a random number in [0, 1), and update the state (1,) of the random generator.

    The generator is SplitMix64 (Steele, Lea & Flood 2014), whose state is a 64-bit word with any
    initial value. The caller stores the state, so that a search can be interrupted and continued.
    """
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 1.1102230246251565e-16


# Moving a solution closer to the seed -------------------------------------------------------------


@force_inline
def approach(problem: PoseProblem, scratch: SearchScratch) -> int:
    """Move the solution `scratch.q` (n,) closer to the seed (n,); the result is also a solution.

    Periodic joints move by whole turns. On the fast path, if the selection rule asks for the
    solution nearest to the seed, the arm then moves along its self-motion.

    Returns:
        The number of steps along the self-motion.
    """
    chain, params, seed, steps = problem.chain, problem.params, problem.seed, 0
    q, kept, weights = scratch.q, scratch.kept, params.starts.joint_weights
    for phase in range(PHASE_TURNS, PHASE_OBSERVE + 1):
        changed = False
        copy(q, kept)
        if phase == PHASE_TURNS:
            changed = unwind(params.starts.periodic, chain.lower, chain.upper, seed, q)
        if phase == PHASE_REDUNDANCY and params.rule.kind == SELECT_NEAREST:
            steps = slide_to_seed(problem, problem.table, scratch)
            changed = steps > 0
        if not changed and (phase != PHASE_OBSERVE or steps == 0):
            continue
        position, rotation = error_at(problem, q, scratch.work)
        if not is_reached(params.stop, position, rotation, norm(scratch.work.e)) or (
            phase == PHASE_REDUNDANCY and distance(weights, q, seed) > distance(weights, kept, seed)
        ):
            copy(kept, q)  # a turn of a joint far from zero can cause a large rounding error
        else:
            scratch.error[0], scratch.error[1] = position, rotation
    return steps


@force_inline
def slide_to_seed(problem: PoseProblem, table: ChainTable | None, scratch: SearchScratch) -> int:
    """Move the solution `scratch.q` along the self-motion toward the seed, on the fast path only.

    Returns:
        The number of steps.
    """
    steps = 0
    if table is not None:
        params, seed, q = problem.params, problem.seed, scratch.q
        if distance(params.starts.joint_weights, q, seed) > 0.0:
            steps = slide(problem.chain, params.stop, params.starts, seed, q, scratch.work)
    return steps


@force_inline
def unwind(periodic: Indices, lower: Array, upper: Array, seed: Array, q: Array) -> bool:
    """Turn periodic joints by whole turns to the positions closest to the seed within the limits.

    Args:
        periodic: (n,) 1 for joints whose whole turns do not change the pose, else 0.
        lower, upper: (n,) limits [rad or m].
        seed: (n,) joint positions of the seed [rad or m].
        q: (n,) joint positions, read and written [rad or m].

    Returns:
        Whether any joint was turned.
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
