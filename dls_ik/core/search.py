"""Attempts from one start after another until a pose is reached, or the best of several."""

from math import pi

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.dexterity import dexterity
from dls_ik.core.jit import borrowing, inlined, kernel, spliced
from dls_ik.core.linalg import copy
from dls_ik.core.loop import REACHED, attempt, error_at, is_reached, norm
from dls_ik.core.observe import jacobian_there, scaled_error
from dls_ik.core.quick.kinematics import aim, arm_jacobian
from dls_ik.core.quick.packed import unpack
from dls_ik.core.quick.slide import slide
from dls_ik.core.quick.table import LEAF, look_up, next_start
from dls_ik.core.random import uniform
from dls_ik.core.se3 import is_pose
from dls_ik.core.types import (
    Arm,
    Array,
    Chain,
    Details,
    Goal,
    Indices,
    Method,
    QuickWork,
    Scratch,
    Starts,
    Structure,
    Table,
    Wish,
)
from dls_ik.core.workspace import new_memory, quick_workspace, workspace

POSE_TOLERANCE = 1e-9  # how far from orthonormal a rotation matrix may be
MOST_TURNS = 1e6  # beyond, a turn would cost digits that tolerances need
FIRST, NEAREST, DEXTROUS = range(3)  # kinds of wishes
ATTEMPTS, STEPS, FOUND, STATE = range(4)  # columns of Rows.counts: begun, made, see below, random
NOTHING, SOMETHING, ALL = range(3)  # found: no solution; one, and the search goes on; it is over
LATE = 32  # attempts after which a pose is no ordinary one
UNKNOWN, EXHAUSTED = -1, -2  # in place of the leaf of a table
TURNS, REDUNDANCY, SAME = range(3)  # by what a solution comes nearer; observed once more


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
        if leaf == UNKNOWN:
            leaf = look_up(chain, quick, goal.rotation_weight, work)
            for _ in range(index - (1 if wish.seeded else 0)):  # taken up where it stopped
                if leaf >= 0 and not next_start(chain, quick, leaf, q, work):
                    leaf = EXHAUSTED
        if leaf >= 0 and next_start(chain, quick, leaf, q, work):
            return leaf
    random_start(starts, index >= LATE and index % 4 == 0, state, q)
    if wish.kind == NEAREST:
        draw_near(seed, uniform(state), q)
    return EXHAUSTED


@inlined
def draw_near(seed: Array, share: float, q: Array) -> None:
    """Leave only a share of the way from the seed (n,) to q (n,)."""
    for j in range(q.shape[0]):
        q[j] = seed[j] + share * (q[j] - seed[j])


@inlined
def is_patient(goal: Goal, index: int) -> bool:
    """Whether attempt `index` is one of those that go on while they get anywhere.

    Of the late ones every other does: from most starts such poses are reached slowly or not at all.
    """
    every = min(goal.patience, 2) if index >= LATE else goal.patience
    return every > 0 and (index + 1) % every == 0


@inlined
def from_seed(turning: Indices, seed: Array, q: Array) -> None:
    """Copy the seed (n,), so far from zero that digits are lost without its whole turns."""
    for j in range(q.shape[0]):
        q[j] = seed[j]
        if turning[j] != 0 and abs(q[j]) > 2.0 * pi * MOST_TURNS:
            q[j] -= 2.0 * pi * np.floor(q[j] / (2.0 * pi) + 0.5)


@inlined
def is_finite(q: Array) -> bool:
    """Whether no entry is NaN or inf."""
    for j in range(q.shape[0]):
        if not abs(q[j]) < np.inf:
            return False
    return True


@spliced
def are_poses(T: Array) -> bool:
    """Whether each of T (k, 4, 4) is a finite rigid transform."""
    for i in range(T.shape[0]):
        if not is_pose(T[i], POSE_TOLERANCE):
            return False
    return True


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


@inlined
def distance(weights: Array, q: Array, seed: Array) -> float:
    """Squared distance of two configurations (n,) in the joint metric."""
    total = 0.0
    for j in range(q.shape[0]):
        total += weights[j] * (q[j] - seed[j]) ** 2
    return total


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
    value = 0.0
    if wish.kind == DEXTROUS:
        if details is not None:
            jacobian_there(chain, details, T_d, work)
            value = -dexterity(work.J)
        if quick is not None:
            arm_jacobian(
                chain.turn, chain.slide, chain.variable, work.axes, work.T, goal.rotation_weight,
                work.J,
            )  # fmt: skip
            value = -dexterity(work.J)
    return value


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
        if quick is not None:  # noqa: SIM102 - Numba leaves out what is None, not what is both
            if phase == REDUNDANCY and wish.kind == NEAREST:
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


@spliced
def narrow(lower: Array, upper: Array, seed: Array, change: Array, low: Array, high: Array) -> None:
    """Write what is left of bounds (n,) within `change` (n,) of the seed."""
    for j in range(seed.shape[0]):
        low[j] = max(lower[j], seed[j] - change[j])
        high[j] = min(upper[j], seed[j] + change[j])


@kernel
def search_packed(
    numbers: Array,
    integers: NDArray[np.int64],
    Ts: Array,
    seeds: Array,
    change: Array,
    kind: int,
    compared: int,
    seeded: bool,
    attempts: int,
    counts: NDArray[np.int64],
    best: Array,
    figures: Array,
) -> None:
    """:func:`search_rows` on the quick path; the entry point from Python.

    Args:
        numbers, integers: of :class:`dls_ik.core.quick.packed.Packed`.
        kind, compared, seeded: of :class:`Wish`.
        counts, best, figures: of :class:`Rows`.
    """
    arm, table, method, goal, starts = unpack(numbers, integers)
    n = best.shape[1]
    limits, bounds = np.empty((2, n)), np.empty((2, n))
    near = Arm(arm.turn, arm.slide, arm.link, arm.variable, limits[0], limits[1], arm.base, arm.tip)
    around = Starts(bounds[0], bounds[1], starts.turning, starts.joint_weights)
    work, wish = quick_workspace(near, LEAF), Wish(kind, compared, seeded)
    search_quick(
        arm, near, method, goal, starts, around, table, wish, Ts, seeds, change, attempts, counts,
        best, figures, np.empty(1, np.uint64), np.empty(n), np.empty(2), np.empty(n), work,
    )  # fmt: skip


@borrowing
def search_quick(
    arm: Arm,
    near: Arm,
    method: Method,
    goal: Goal,
    starts: Starts,
    around: Starts,
    table: Table,
    wish: Wish,
    Ts: Array,
    seeds: Array,
    change: Array,
    attempts: int,
    counts: NDArray[np.int64],
    best: Array,
    figures: Array,
    state: NDArray[np.uint64],
    q: Array,
    now: Array,
    kept: Array,
    work: QuickWork,
) -> None:
    """:func:`search_packed` with the structs and all scratch.

    Args:
        near, around: `arm` and `starts` with room for bounds of their own.
        state: (1,), q: (n,), now: (2,), kept: (n,), work: scratch.
    """
    for i in range(Ts.shape[0]):
        seed = seeds[min(i, seeds.shape[0] - 1)]
        if are_poses(Ts[i]) and is_finite(seed):
            narrow(arm.lower, arm.upper, seed, change, near.lower, near.upper)
            narrow(starts.lower, starts.upper, seed, change, around.lower, around.upper)
            aim(arm.base, arm.tip, Ts[i, 0], work.target)
            search(
                near, method, goal, around, table, None, wish, Ts[i], seed, state, counts[i],
                attempts, q, now, kept, best[i], figures[i], work,
            )  # fmt: skip


@kernel
def search_rows(
    chain: Chain,
    method: Method,
    goal: Goal,
    starts: Starts,
    details: Details,
    wish: Wish,
    Ts: Array,
    seeds: Array,
    change: Array,
    attempts: int,
    counts: NDArray[np.int64],
    best: Array,
    figures: Array,
) -> None:
    """:func:`search` for every row, each as if it were alone; the entry point from Python.

    Rows of `Ts` or `seeds` that are not finite poses or joint values are passed over.

    Args:
        Ts: (b, k, 4, 4), seeds: (b, n), or (1, n) for all.
        change: (n,) by which an answer may differ from its seed [rad or m].
        counts, best, figures: of :class:`Rows`, what is known of each pose, stepped.
    """
    n = best.shape[1]
    limits, bounds = np.empty((2, n)), np.empty((2, n))
    near = Chain(
        chain.fixed, chain.first, chain.prismatic, chain.variable, chain.scale, chain.offset,
        limits[0], limits[1], chain.velocity,
    )  # fmt: skip
    around = Starts(bounds[0], bounds[1], starts.turning, starts.joint_weights)
    work = workspace(chain, details, new_memory(chain, method, details))
    state, q, now, kept = np.empty(1, np.uint64), np.empty(n), np.empty(2), np.empty(n)
    for i in range(Ts.shape[0]):
        seed = seeds[min(i, seeds.shape[0] - 1)]
        if are_poses(Ts[i]) and is_finite(seed):
            narrow(chain.lower, chain.upper, seed, change, limits[0], limits[1])
            narrow(starts.lower, starts.upper, seed, change, bounds[0], bounds[1])
            search(
                near, method, goal, around, None, details, wish, Ts[i], seed, state, counts[i],
                attempts, q, now, kept, best[i], figures[i], work,
            )  # fmt: skip
