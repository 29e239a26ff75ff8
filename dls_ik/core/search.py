"""Attempts from one start after another until a pose is reached, or the best of several.

Each function serves both paths. One of `table` and `general` is None: Numba leaves out the branch
of the one that is None, so that each of the two kinds of solvers is compiled without the other.
"""

from math import pi

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import limits
from dls_ik.core.fast.kinematics import arm_jacobian_there, observe_arm
from dls_ik.core.fast.step import fast_step, slide
from dls_ik.core.fast.table import look_up, next_start
from dls_ik.core.jit import force_inline
from dls_ik.core.linalg import copy, dexterity, norm
from dls_ik.core.step import general_step
from dls_ik.core.task import is_reached, jacobian_there, observe, scaled_error
from dls_ik.core.types import (
    AnyChain,
    AnyWorkspace,
    Array,
    ChainTable,
    GeneralProblem,
    Indices,
    Method,
    Rows,
    SearchParams,
    SearchScratch,
    Starts,
    StopCriteria,
)
from dls_ik.core.workspace import forget

ATTEMPTS, STEPS, FOUND, STATE = range(4)  # columns of Rows.counts: begun, made, see below, random
NOTHING, SOMETHING, ALL = range(3)  # found: no solution; one, and the search goes on; it is over
FIRST, NEAREST, DEXTROUS = range(3)  # kinds of SelectionRule
LATE = 32  # attempts after which a pose counts as difficult
UNKNOWN, EXHAUSTED = -1, -2  # in place of the leaf of a table
TURNS, REDUNDANCY, SAME = range(3)  # by what a solution comes nearer; observed once more
MOST_TURNS = 1e6  # beyond, a turn would cost digits that tolerances need
FARTHEST_VALUE = 1e18  # [rad or m] of a joint at the start
REACHED, SLOW, OUT_OF_ITERATIONS = range(3)
LONG_STEPS, LONG_RATIO = 8, 0.95  # times max_iterations; in place of the stall ratio


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
) -> None:
    """Make up to `attempts` more attempts.

    Called again with the same row it goes on where it stopped, so that the moments at which a
    caller looks at the clock do not change the result.

    Args:
        table, general: one of them is None, see this module.
        T_d: (k, 4, 4) desired poses, seed: (n,).
        row: in and out: of one pose, counts (4,), best (n,), figures (3,).
    """
    method, stop, kind = params.method, params.stop, params.rule.kind
    counts, best, figures = row.counts, row.best, row.figures
    q, now, state = scratch.q, scratch.error, scratch.random_state
    leaf = UNKNOWN
    state[0] = np.uint64(counts[STATE])
    for _ in range(attempts):
        if counts[FOUND] == ALL:
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
            value = measure(chain, params, table, general, T_d, seed, q, work)
            if counts[FOUND] == NOTHING or value < figures[2]:
                copy(q, best)
                figures[0], figures[1], figures[2] = now[0], now[1], value
            counts[FOUND] = SOMETHING
            if kind == FIRST or (kind == NEAREST and value == 0.0):
                counts[FOUND] = ALL
        elif counts[FOUND] == NOTHING and (
            is_first or scaled_error(stop, now) < scaled_error(stop, figures)
        ):
            copy(q, best)
            figures[0], figures[1] = now[0], now[1]
        if counts[FOUND] == SOMETHING and counts[ATTEMPTS] >= params.rule.num_candidates:
            counts[FOUND] = ALL
    counts[STATE] = np.int64(state[0])


# One attempt --------------------------------------------------------------------------------------


@force_inline
def error_at(
    chain: AnyChain,
    stop: StopCriteria,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    q: Array,
    work: AnyWorkspace,
) -> tuple[float, float]:
    """Write the scaled error at `q`; return the largest position [m] and rotation error [rad].

    Args:
        T_d: (k, 4, 4) desired poses; the fast path has its target in `work`.
    """
    position, rotation = 0.0, 0.0
    if general is not None:
        position, rotation = observe(chain, general, T_d, q, work)
    if table is not None:
        position, rotation = observe_arm(chain, stop.rotation_weight, q, work)
    return position, rotation


@force_inline
def write_jacobian(
    chain: AnyChain,
    stop: StopCriteria,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    work: AnyWorkspace,
) -> None:
    """Write the Jacobian of the scaled error at the configuration last observed."""
    if general is not None:
        jacobian_there(chain, general, T_d, work)
    if table is not None:
        arm_jacobian_there(chain, stop.rotation_weight, work)


@force_inline
def make_step(
    chain: AnyChain,
    method: Method,
    stop: StopCriteria,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    error: float,
    q: Array,
    work: AnyWorkspace,
) -> None:
    """Move `q` by a step of the method for the error observed there.

    Args:
        error: norm of the scaled error [m].
    """
    write_jacobian(chain, stop, table, general, T_d, work)
    if general is not None:
        general_step(chain, method, general, T_d, q, work)
    if table is not None:
        fast_step(chain, method, error, q, work)
    for j in range(q.shape[0]):
        q[j] += work.dq[j]
    if limits.clips(method):
        limits.clip_to_limits(chain.lower, chain.upper, q)


@force_inline
def attempt(
    chain: AnyChain,
    method: Method,
    stop: StopCriteria,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    is_long: bool,
    q: Array,
    work: AnyWorkspace,
    out: Array,
) -> tuple[int, int]:
    """Step `q` toward the pose until it is reached or the attempt is given up.

    Args:
        T_d: (k, 4, 4) desired poses, q: (n,) in and out [rad or m].
        is_long: go on while the error falls, as needed where the arm is stretched out.
        out: (2,) position [m] and rotation error [rad] at the last q.

    Returns:
        REACHED, SLOW or OUT_OF_ITERATIONS, and the number of steps made.
    """
    if limits.clips(method):
        limits.clip_to_limits(chain.lower, chain.upper, q)
    if general is not None:
        forget(work.memory)
    most, ratio = stop.max_iterations, stop.stall_ratio
    if is_long:
        most, ratio = LONG_STEPS * most, LONG_RATIO
    last, slow = 1e300, 0
    iteration = 0
    while True:
        out[0], out[1] = error_at(chain, stop, table, general, T_d, q, work)
        error = norm(work.e)
        if is_reached(stop, out[0], out[1], error):
            return REACHED, iteration
        if iteration >= most:
            return OUT_OF_ITERATIONS, iteration
        slow = slow + 1 if error > ratio * last else 0
        if stop.stall_count > 0 and slow >= stop.stall_count:
            return SLOW, iteration
        last = error
        make_step(chain, method, stop, table, general, T_d, error, q, work)
        iteration += 1


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


# Selection of a solution -------------------------------------------------------------------------


@force_inline
def measure(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    seed: Array,
    q: Array,
    work: AnyWorkspace,
) -> float:
    """Measure the solution last observed by the rule: the less the better."""
    if params.rule.kind == NEAREST:
        return distance(params.starts.joint_weights, q, seed)
    if params.rule.kind == DEXTROUS:
        write_jacobian(chain, params.stop, table, general, T_d, work)
        return -dexterity(work.J)
    return 0.0


@force_inline
def distance(weights: Array, q: Array, seed: Array) -> float:
    """Squared distance of two configurations (n,) in the joint metric."""
    total = 0.0
    for j in range(q.shape[0]):
        total += weights[j] * (q[j] - seed[j]) ** 2
    return total


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
