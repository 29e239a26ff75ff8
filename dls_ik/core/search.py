"""Attempts from one start after another until a pose is reached."""

from math import floor, pi

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel, spliced
from dls_ik.core.linalg import copy
from dls_ik.core.loop import REACHED, attempt, is_reached, norm, observe
from dls_ik.core.random import uniform
from dls_ik.core.se3 import is_pose
from dls_ik.core.types import Array, Chain, Details, Goal, Method, Rows, Starts, Workspace
from dls_ik.core.workspace import new_memory, workspace

POSE_TOLERANCE = 1e-9  # how far from orthonormal a rotation matrix may be


@spliced
def scaled_error(goal: Goal, error: Array) -> float:
    """Squared norm of the scaled error [m^2] from (position [m], rotation error [rad])."""
    return error[0] ** 2 + (goal.rotation_weight * error[1]) ** 2


@spliced
def choose_start(
    starts: Starts, seed: Array, index: int, state: NDArray[np.uint64], q: Array
) -> None:
    """Write the start of attempt `index` to q (n,): the seed, then uniform in the limits."""
    for j in range(q.shape[0]):
        if index == 0:
            q[j] = seed[j]
        else:
            q[j] = starts.lower[j] + uniform(state) * (starts.upper[j] - starts.lower[j])


@spliced
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


@kernel
def unwind(starts: Starts, seed: Array, q: Array) -> None:
    """Turn joints without limits by whole turns to where they are nearest the seed, in place."""
    for j in range(q.shape[0]):
        if starts.turning[j]:
            q[j] -= 2.0 * pi * floor((q[j] - seed[j]) / (2.0 * pi) + 0.5)


@spliced
def search(
    chain: Chain,
    method: Method,
    goal: Goal,
    starts: Starts,
    quick: bool | None,
    details: Details | None,
    T_d: Array,
    seed: Array,
    state: NDArray[np.uint64],
    counts: NDArray[np.int64],
    attempts: int,
    q: Array,
    best: Array,
    error: Array,
    work: Workspace,
) -> bool:
    """Make up to `attempts` more attempts; say whether the last one reached the pose.

    Called again with the same state, counts, best and error it goes on where it stopped, so that
    where a caller looks at the clock does not change what is found.

    Args:
        T_d: (k, 4, 4) desired poses, seed: (n,).
        state: (1,) of the random generator.
        counts: (2,) attempts begun and steps made so far.
        q: (n,) scratch.
        best: (n,) out: joint values with the least scaled error among the ends of the attempts.
        error: (2,) out: position [m] and rotation error [rad] there.
    """
    now = np.empty(2)
    for _ in range(attempts):
        choose_start(starts, seed, counts[0], state, q)
        status, steps = attempt(chain, method, goal, quick, details, T_d, q, work, now)
        first = counts[0] == 0
        counts[0] += 1
        counts[1] += steps
        if first or status == REACHED or scaled_error(goal, now) < scaled_error(goal, error):
            copy(q, best)
            copy(now, error)
        if status == REACHED:
            unwind(starts, seed, q)
            now[0], now[1] = observe(chain, goal, quick, details, T_d, q, work)
            if is_reached(goal, now[0], now[1], norm(work.e)):
                copy(q, best)  # far from zero a turn costs digits
                copy(now, error)
            return True
    return False


@kernel
def search_rows(
    chain: Chain,
    method: Method,
    goal: Goal,
    starts: Starts,
    quick: bool | None,
    details: Details | None,
    Ts: Array,
    seeds: Array,
    attempts: int,
    rows: Rows,
) -> None:
    """:func:`search` for every row, each as if it were alone; the entry point from Python.

    Rows of `Ts` or `seeds` that are not finite poses or joint values are passed over.

    Args:
        Ts: (b, k, 4, 4), seeds: (b, n), rows: what is known of each pose, stepped.
    """
    q = np.empty(seeds.shape[1])
    work = workspace(chain, details, new_memory(chain, method, details))
    for i in range(Ts.shape[0]):
        if are_poses(Ts[i]) and is_finite(seeds[i]):
            rows.reached[i] = search(
                chain,
                method,
                goal,
                starts,
                quick,
                details,
                Ts[i],
                seeds[i],
                rows.state[i : i + 1],
                rows.counts[i],
                attempts,
                q,
                rows.best[i],
                rows.error[i],
                work,
            )
