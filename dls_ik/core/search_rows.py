"""Searches for many poses, each as if it were alone: the kernels that Python calls."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.fast.kinematics import aim
from dls_ik.core.fast.packed import unpack
from dls_ik.core.fast.table import LEAF
from dls_ik.core.jit import borrowing, inlined, kernel, spliced
from dls_ik.core.se3 import is_pose
from dls_ik.core.search import search
from dls_ik.core.types import (
    WIDEST,
    Arm,
    Array,
    Chain,
    Details,
    Goal,
    Method,
    QuickWork,
    Starts,
    Structure,
    Table,
    Wish,
)
from dls_ik.core.workspace import new_memory, quick_workspace, workspace

POSE_TOLERANCE = 1e-9  # how far from orthonormal a rotation matrix may be


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
        numbers, integers: of :class:`dls_ik.core.fast.packed.Packed`.
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
            narrow_starts(near, starts, seed, change, around)
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
            narrow_starts(near, starts, seed, change, around)
            search(
                near, method, goal, around, None, details, wish, Ts[i], seed, state, counts[i],
                attempts, q, now, kept, best[i], figures[i], work,
            )  # fmt: skip


@spliced
def narrow(lower: Array, upper: Array, seed: Array, change: Array, low: Array, high: Array) -> None:
    """Write what is left of bounds (n,) within `change` (n,) of the seed."""
    for j in range(seed.shape[0]):
        low[j] = min(max(lower[j], seed[j] - change[j]), upper[j])
        high[j] = max(min(upper[j], seed[j] + change[j]), low[j])


@spliced
def narrow_starts(
    near: Structure, starts: Starts, seed: Array, change: Array, around: Starts
) -> None:
    """Write the bounds of random starts, which may be turns away from those without a seed.

    Args:
        near: with the limits that :func:`narrow` left.
        around: out.
    """
    narrow(starts.lower, starts.upper, seed, change, around.lower, around.upper)
    for j in range(seed.shape[0]):
        if near.upper[j] - near.lower[j] <= WIDEST:
            around.lower[j], around.upper[j] = near.lower[j], near.upper[j]


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
