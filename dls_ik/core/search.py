"""Attempts from one start after another until a pose is reached, or the best of several."""

from math import pi

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.attempt import REACHED, attempt, error_at, write_jacobian
from dls_ik.core.fast.step import slide
from dls_ik.core.fast.table import look_up, next_start
from dls_ik.core.jit import inlined, spliced
from dls_ik.core.linalg import copy, dexterity, norm
from dls_ik.core.task import is_reached, scaled_error
from dls_ik.core.types import (
    Array,
    Details,
    Goal,
    Indices,
    Method,
    Scratch,
    Starts,
    Structure,
    Table,
    Wish,
)

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


# Starts -------------------------------------------------------------------------------------------
#
# Where the attempts of a search start: the seed, rows of the table, random joint values.


LATE = 32  # attempts after which a pose is no ordinary one
UNKNOWN, EXHAUSTED = -1, -2  # in place of the leaf of a table
FARTHEST_VALUE = 1e18  # [rad or m] of a joint at the start


@spliced
def choose_start(
    chain: Structure,
    goal: Goal,
    starts: Starts,
    quick: Table | None,
    wish: Wish,
    seed: Array,
    index: int,
    leaf: int,
    state: NDArray[np.uint64],
    q: Array,
    work: Scratch,
) -> int:
    """Write the start of attempt `index` to q (n,): the seed, then from the table, then random.

    Of the late ones every fourth has joints at their bounds.

    Args:
        leaf: of the table, from the attempt before; UNKNOWN at first.

    Returns:
        The leaf, for the next attempt.
    """
    if index == 0 and wish.seeded:
        from_seed(starts.turning, seed, q)
        return leaf
    if quick is not None:
        used = 0
        if leaf == UNKNOWN:
            leaf = look_up(chain, quick, goal.rotation_weight, work)
            used = index - (1 if wish.seeded else 0)  # taken up where it stopped
        while leaf >= 0:
            if not next_start(chain, quick, leaf, q, work):
                leaf = EXHAUSTED
            elif used == 0:
                turn_inside(starts.turning, chain.lower, chain.upper, q)
                return leaf
            used -= 1
    random_start(starts, index >= LATE and index % 4 == 0, state, q)
    if wish.kind == NEAREST:
        unwind(starts.turning, chain.lower, chain.upper, seed, q)
        draw_near(seed, uniform(state), q)
    return EXHAUSTED


@inlined
def is_patient(goal: Goal, index: int) -> bool:
    """Whether attempt `index` is one of those that go on while they get anywhere.

    Of the late ones every other does: from most starts such poses are reached slowly or not at all.
    """
    every = min(goal.patience, 2) if index >= LATE else goal.patience
    return every > 0 and (index + 1) % every == 0


@inlined
def from_seed(turning: Indices, seed: Array, q: Array) -> None:
    """Copy the seed (n,), so far from zero that digits are lost without its whole turns.

    No farther than that their squares are numbers too.
    """
    for j in range(q.shape[0]):
        q[j] = min(max(seed[j], -FARTHEST_VALUE), FARTHEST_VALUE)
        if turning[j] != 0 and abs(q[j]) > 2.0 * pi * MOST_TURNS:
            q[j] -= 2.0 * pi * np.floor(q[j] / (2.0 * pi) + 0.5)


@inlined
def turn_inside(turning: Indices, lower: Array, upper: Array, q: Array) -> None:
    """Turn joints beyond a limit by whole turns to where they are nearest the middle, in place.

    The limits may be those around a seed that is some turns away.
    """
    for j in range(q.shape[0]):
        if turning[j] != 0 and not lower[j] <= q[j] <= upper[j]:
            turns = np.floor((q[j] - 0.5 * (lower[j] + upper[j])) / (2.0 * pi) + 0.5)
            if abs(turns) <= MOST_TURNS:
                q[j] -= 2.0 * pi * turns


@spliced
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


@inlined
def draw_near(seed: Array, share: float, q: Array) -> None:
    """Leave only a share of the way from the seed (n,) to q (n,)."""
    for j in range(q.shape[0]):
        q[j] = seed[j] + share * (q[j] - seed[j])


# Random numbers -----------------------------------------------------------------------------------
#
# A small generator with its state in the open, so that a search can be stopped and taken up.
#
# SplitMix64 (Steele, Lea & Flood 2014): one 64-bit word of state, any value is a good seed.


@inlined
def uniform(state: NDArray[np.uint64]) -> float:
    """Return the next number in [0, 1); `state` (1,) is stepped."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 1.1102230246251565e-16


# Which solution is wanted -------------------------------------------------------------------------
#
# Which solution is wanted: how solutions are compared, and brought nearer to the seed.


FIRST, NEAREST, DEXTROUS = range(3)  # kinds of wishes
TURNS, REDUNDANCY, SAME = range(3)  # by what a solution comes nearer; observed once more
MOST_TURNS = 1e6  # beyond, a turn would cost digits that tolerances need


@spliced
def measure(
    chain: Structure,
    goal: Goal,
    starts: Starts,
    quick: Table | None,
    details: Details | None,
    wish: Wish,
    T_d: Array,
    seed: Array,
    q: Array,
    work: Scratch,
) -> float:
    """What a wish goes by, the less the better, at the solution last observed."""
    if wish.kind == NEAREST:
        return distance(starts.joint_weights, q, seed)
    if wish.kind == DEXTROUS:
        write_jacobian(chain, goal, quick, details, T_d, work)
        return -dexterity(work.J)
    return 0.0


@inlined
def distance(weights: Array, q: Array, seed: Array) -> float:
    """Squared distance of two configurations (n,) in the joint metric."""
    total = 0.0
    for j in range(q.shape[0]):
        total += weights[j] * (q[j] - seed[j]) ** 2
    return total


@spliced
def approach(
    chain: Structure,
    goal: Goal,
    starts: Starts,
    quick: Table | None,
    details: Details | None,
    wish: Wish,
    T_d: Array,
    seed: Array,
    q: Array,
    now: Array,
    kept: Array,
    work: Scratch,
) -> int:
    """Bring a solution `q` nearer to the seed, as far as it stays one; return the steps it took.

    By whole turns, and where the nearest one is wanted along the arm's redundancy.
    """
    steps, weights = 0, starts.joint_weights
    for phase in range(TURNS, SAME + 1):
        changed = False
        copy(q, kept)
        if phase == TURNS:
            changed = unwind(starts.turning, chain.lower, chain.upper, seed, q)
        if quick is not None:
            farther = distance(weights, q, seed) > 0.0
            if phase == REDUNDANCY and wish.kind == NEAREST and farther:
                steps = slide(chain, goal, starts, seed, q, work)
                changed = steps > 0
        if not changed and (phase != SAME or steps == 0):
            continue
        position, rotation = error_at(chain, goal, quick, details, T_d, q, work)
        if not is_reached(goal, position, rotation, norm(work.e)) or (
            phase == REDUNDANCY and distance(weights, q, seed) > distance(weights, kept, seed)
        ):
            copy(kept, q)  # also where far from zero a turn costs digits
        else:
            now[0], now[1] = position, rotation
    return steps


@inlined
def unwind(turning: Indices, lower: Array, upper: Array, seed: Array, q: Array) -> bool:
    """Turn joints by whole turns to where they are nearest the seed within limits, in place.

    Returns:
        Whether one was turned.
    """
    turned = False
    for j in range(q.shape[0]):
        if turning[j] != 0 and abs(q[j] - seed[j]) > pi:
            turns = np.floor((q[j] - seed[j]) / (2.0 * pi) + 0.5)
            turns = min(turns, np.floor((q[j] - lower[j]) / (2.0 * pi)))
            turns = max(turns, np.ceil((q[j] - upper[j]) / (2.0 * pi)))
            if turns != 0.0 and abs(turns) <= MOST_TURNS:
                q[j] = min(max(q[j] - 2.0 * pi * turns, lower[j]), upper[j])
                turned = True
    return turned
