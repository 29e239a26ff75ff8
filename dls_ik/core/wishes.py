"""Which solution is wanted: how solutions are compared, and brought nearer to the seed."""

from math import pi

import numpy as np

from dls_ik.core.dexterity import dexterity
from dls_ik.core.jit import inlined, spliced
from dls_ik.core.linalg import copy
from dls_ik.core.loop import error_at, is_reached, norm, write_jacobian
from dls_ik.core.quick.slide import slide
from dls_ik.core.types import (
    Array,
    Details,
    Goal,
    Indices,
    Scratch,
    Starts,
    Structure,
    Table,
    Wish,
)

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
