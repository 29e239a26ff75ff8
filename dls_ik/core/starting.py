"""Where the attempts of a search start: the seed, rows of the table, random joint values."""

from math import pi

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import inlined, spliced
from dls_ik.core.quick.table import look_up, next_start
from dls_ik.core.random import uniform
from dls_ik.core.types import Array, Goal, Indices, Scratch, Starts, Structure, Table, Wish
from dls_ik.core.wishes import MOST_TURNS, NEAREST, unwind

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
