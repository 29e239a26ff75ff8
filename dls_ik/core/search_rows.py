# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Python calls to search solutions for a batch of poses.

The searches of the poses are independent of each other. Each pose has a row in the arrays of
:class:`PoseTargets` and :class:`Rows`. The fast path and the general path are explained in
:mod:`dls_ik.core.search`.

Arguments that differ between calls are plain tuples, because Numba takes 2 us to recognise a
NamedTuple.
"""

import numpy as np

from dls_ik.core.fast.kinematics import aim
from dls_ik.core.fast.packed import unpack
from dls_ik.core.fast.table import LEAF_ROWS
from dls_ik.core.free_solutions import FreeSearch
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.redundancy import slide_scratch
from dls_ik.core.scene_arrays import PackedScene, unpack_scene
from dls_ik.core.se3 import is_pose
from dls_ik.core.search import search
from dls_ik.core.selection import ATTEMPTS_COLUMN, OpenSolutions
from dls_ik.core.types import (
    WIDEST,
    AnyChain,
    Array,
    Chain,
    ChainTable,
    GeneralProblem,
    Indices,
    PoseProblem,
    PoseTargets,
    Rows,
    SearchParams,
    SearchScratch,
    SelectionRule,
    SerialChain,
    Starts,
)
from dls_ik.core.workspace import fast_workspace, new_memory, search_scratch, workspace

POSE_TOLERANCE = 1e-9  # maximum deviation of R R^T from the identity for a rotation matrix R


@allocating
def search_packed(
    numbers: Array,
    integers: Indices,
    targets: tuple[Array, Array, Array],
    rule: tuple[int, int, bool],
    attempts: int,
    rows: tuple[Indices, Array, Array],
) -> None:
    """Search solutions for all poses on the fast path; called from Python.

    Args:
        numbers, integers: Fields of :class:`dls_ik.core.fast.packed.Packed`: the arm with one tip,
            the method and the table.
        targets: Fields of :class:`PoseTargets`.
        rule: Fields of :class:`SelectionRule`.
        attempts: Maximum number of attempts per pose in this call.
        rows: Fields of :class:`Rows`, read and written.
    """
    chain, table, method, stop, starts = unpack(numbers, integers)
    params = SearchParams(method, stop, starts, SelectionRule(*rule))
    scratch = search_scratch(starts, fast_workspace(chain, LEAF_ROWS))
    search_fast(chain, params, table, PoseTargets(*targets), attempts, Rows(*rows), scratch, None)


@allocating
def search_packed_free(
    numbers: Array,
    integers: Indices,
    scene: tuple[PackedScene, Indices],
    targets: tuple[Array, Array, Array],
    rule: tuple[int, int, bool],
    until: Indices,
    rows: tuple[Indices, Array, Array],
    opened: tuple[Array, Indices],
) -> None:
    """Search collision-free solutions for all poses on the fast path; called from Python.

    Args:
        numbers, integers, targets, rule, rows: As for :func:`search_packed`.
        scene: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`, and field `decided` of
            :class:`FreeSearch`.
        until: (b,) maximum total number of attempts for each pose, including those of earlier
            calls.
        opened: Fields of :class:`OpenSolutions`, read and written.
    """
    chain, table, method, stop, starts = unpack(numbers, integers)
    params = SearchParams(method, stop, starts, SelectionRule(*rule))
    scratch = search_scratch(starts, fast_workspace(chain, LEAF_ROWS))
    arrays = unpack_scene(*scene[0])
    slides = slide_scratch(arrays, chain.lower.shape[0], 6)
    free = FreeSearch(arrays, slides, OpenSolutions(*opened), until, scene[1])
    search_fast(chain, params, table, PoseTargets(*targets), 0, Rows(*rows), scratch, free)


@kernel
def search_fast(
    chain: SerialChain,
    params: SearchParams,
    table: ChainTable,
    targets: PoseTargets,
    attempts: int,
    rows: Rows,
    scratch: SearchScratch,
    free: FreeSearch | None,
) -> None:
    """Search solutions for all poses on the fast path, given the structs and all scratch arrays.

    Args:
        chain: The arm, with its joint limits.
        params: Parameters of the searches.
        table: Table of start configurations.
        targets: The poses and seeds.
        attempts: Maximum number of attempts per pose in this call; unused with a scene.
        rows: State of the searches, read and written.
        scratch: Scratch arrays.
        free: Inputs of the search for collision-free solutions; None without a scene.
    """
    near = SerialChain(
        turn=chain.turn,
        slide=chain.slide,
        link=chain.link,
        variable=chain.variable,
        lower=scratch.lower,
        upper=scratch.upper,
        base=chain.base,
        tip=chain.tip,
    )
    here = SearchParams(params.method, params.stop, scratch.starts, params.rule)
    for i in range(targets.T.shape[0]):
        T, seed = targets.T[i], targets.seed[min(i, targets.seed.shape[0] - 1)]
        if are_poses(T) and is_finite(seed):
            limits_near_seed(chain, params.starts, seed, targets.max_change, near, here.starts)
            aim(chain.base, chain.tip, T[0], scratch.work.target)
            problem = PoseProblem(near, here, table, None, T, seed)
            search_row(problem, attempts, i, rows, scratch, free)


@allocating
def search_rows(
    chain: Chain,
    params: SearchParams,
    general: GeneralProblem,
    targets: tuple[Array, Array, Array],
    attempts: int,
    rows: tuple[Indices, Array, Array],
) -> None:
    """Search solutions for all poses by the steps for tasks of any kind; called from Python.

    A row is skipped if its desired poses are not finite rigid transforms or its seed is not finite.

    Args:
        chain: The chain of the arm.
        params: Parameters of the searches.
        general: The task and further inputs of the steps.
        targets: Fields of :class:`PoseTargets`.
        attempts: Maximum number of attempts per pose in this call.
        rows: Fields of :class:`Rows`, read and written.
    """
    search_general(chain, params, general, PoseTargets(*targets), attempts, Rows(*rows), None)


@allocating
def search_rows_free(
    chain: Chain,
    params: SearchParams,
    general: GeneralProblem,
    scene: tuple[PackedScene, Indices],
    targets: tuple[Array, Array, Array],
    until: Indices,
    rows: tuple[Indices, Array, Array],
    opened: tuple[Array, Indices],
) -> None:
    """Search collision-free solutions for all poses on the general path; called from Python.

    Args:
        chain, params, general, targets, rows: As for :func:`search_rows`.
        scene, until, opened: As for :func:`search_packed_free`.
    """
    arrays = unpack_scene(*scene[0])
    slides = slide_scratch(arrays, chain.lower.shape[0], general.task.component.shape[0])
    free = FreeSearch(arrays, slides, OpenSolutions(*opened), until, scene[1])
    search_general(chain, params, general, PoseTargets(*targets), 0, Rows(*rows), free)


@allocating
def search_general(
    chain: Chain,
    params: SearchParams,
    general: GeneralProblem,
    targets: PoseTargets,
    attempts: int,
    rows: Rows,
    free: FreeSearch | None,
) -> None:
    """Search solutions for all poses on the general path, given the structs.

    Args:
        chain: The chain of the arm.
        params: Parameters of the searches.
        general: The task and further inputs of the steps.
        targets: The poses and seeds.
        attempts: Maximum number of attempts per pose in this call; unused with a scene.
        rows: State of the searches, read and written.
        free: Inputs of the search for collision-free solutions; None without a scene.
    """
    work = workspace(chain, general, new_memory(chain, params.method, general))
    scratch = search_scratch(params.starts, work)
    near = Chain(
        fixed=chain.fixed,
        first=chain.first,
        prismatic=chain.prismatic,
        variable=chain.variable,
        scale=chain.scale,
        offset=chain.offset,
        lower=scratch.lower,
        upper=scratch.upper,
        velocity=chain.velocity,
    )
    here = SearchParams(params.method, params.stop, scratch.starts, params.rule)
    for i in range(targets.T.shape[0]):
        T, seed = targets.T[i], targets.seed[min(i, targets.seed.shape[0] - 1)]
        if are_poses(T) and is_finite(seed):
            limits_near_seed(chain, params.starts, seed, targets.max_change, near, here.starts)
            problem = PoseProblem(near, here, None, general, T, seed)
            search_row(problem, attempts, i, rows, scratch, free)


@force_inline
def search_row(
    problem: PoseProblem,
    attempts: int,
    i: int,
    rows: Rows,
    scratch: SearchScratch,
    free: FreeSearch | None,
) -> None:
    """Search solutions for the pose of row i.

    Args:
        problem: The pose.
        attempts: Maximum number of attempts in this call; unused with a scene.
        i: Index of the row.
        rows: State of all searches, of which row i is read and written.
        scratch: Scratch arrays.
        free: Inputs of the search for collision-free solutions; None without a scene.
    """
    row = Rows(rows.counts[i], rows.best[i], rows.figures[i])
    if free is None:
        search(problem, attempts, row, scratch, None)
    if free is not None:
        opened = OpenSolutions(free.opened.candidates[i], free.opened.answers[i])
        mine = FreeSearch(free.scene, free.slides, opened, free.until, free.decided)
        left = free.until[i] - row.counts[ATTEMPTS_COLUMN]
        search(problem, left, row, scratch, mine)


@force_inline
def limits_near_seed(
    chain: AnyChain, starts: Starts, seed: Array, change: Array, near: AnyChain, around: Starts
) -> None:
    """Restrict the joint limits and the bounds of random starts to the neighbourhood of a seed.

    The restricted joint limits are also the bounds of random starts if their range is finite.
    Otherwise the bounds are the part of ``starts`` that is in the neighbourhood.

    Args:
        chain: The joint limits.
        starts: Bounds of random starts without a seed.
        seed: (n,) joint positions [rad or m].
        change: (n,) maximum difference from the seed [rad or m].
        near: Chain whose `lower` and `upper` (n,) are written.
        around: Bounds of random starts whose `lower` and `upper` (n,) are written.
    """
    for j in range(seed.shape[0]):
        low, high = seed[j] - change[j], seed[j] + change[j]
        near.lower[j] = min(max(chain.lower[j], low), chain.upper[j])
        near.upper[j] = max(min(chain.upper[j], high), near.lower[j])
        around.lower[j] = min(max(starts.lower[j], low), starts.upper[j])
        around.upper[j] = max(min(starts.upper[j], high), around.lower[j])
        if near.upper[j] - near.lower[j] <= WIDEST:
            around.lower[j], around.upper[j] = near.lower[j], near.upper[j]


@force_inline
def is_finite(q: Array) -> bool:
    """Return whether all entries of q (n,) are finite."""
    for j in range(q.shape[0]):
        if not abs(q[j]) < np.inf:
            return False
    return True


@force_inline
def are_poses(T: Array) -> bool:
    """Return whether all matrices in T (k, 4, 4) are finite rigid transforms."""
    for i in range(T.shape[0]):
        if not is_pose(T[i], POSE_TOLERANCE):
            return False
    return True
