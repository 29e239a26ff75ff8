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
    AnyWorkspace,
    Array,
    Chain,
    ChainTable,
    FastWorkspace,
    GeneralProblem,
    Indices,
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
    near, params = near_seed(chain, SearchParams(method, stop, starts, SelectionRule(*rule)))
    search_fast(
        chain, near, starts, params, table, PoseTargets(*targets), attempts, Rows(*rows),
        search_scratch(near), fast_workspace(near, LEAF_ROWS), None,
    )  # fmt: skip


@allocating
def search_packed_free(
    numbers: Array,
    integers: Indices,
    scene: PackedScene,
    decided: Indices,
    targets: tuple[Array, Array, Array],
    rule: tuple[int, int, bool],
    until: Indices,
    rows: tuple[Indices, Array, Array],
    opened: tuple[Array, Indices],
) -> None:
    """Search collision-free solutions for all poses on the fast path; called from Python.

    Args:
        numbers, integers, targets, rule, rows: As for :func:`search_packed`.
        scene: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`.
        decided: Field of :class:`FreeSearch`.
        until: (b,) maximum total number of attempts for each pose, including those of earlier
            calls.
        opened: Fields of :class:`OpenSolutions`, read and written.
    """
    chain, table, method, stop, starts = unpack(numbers, integers)
    near, params = near_seed(chain, SearchParams(method, stop, starts, SelectionRule(*rule)))
    arrays = unpack_scene(*scene)
    slides = slide_scratch(arrays, starts.lower.shape[0], 6)
    search_fast(
        chain, near, starts, params, table, PoseTargets(*targets), 0, Rows(*rows),
        search_scratch(near), fast_workspace(near, LEAF_ROWS),
        FreeSearch(arrays, slides, OpenSolutions(*opened), until, decided),
    )  # fmt: skip


@allocating
def near_seed(chain: SerialChain, params: SearchParams) -> tuple[SerialChain, SearchParams]:
    """Return copies of the two structs with new, uninitialised arrays for limits near a seed.

    The new arrays are the joint limits of the chain and the bounds of random starts in the
    parameters; :func:`limits_near_seed` writes them for each pose. All other arrays are shared.
    """
    starts = params.starts
    limits, bounds = np.empty((2, starts.lower.shape[0])), np.empty((2, starts.lower.shape[0]))
    near = SerialChain(
        turn=chain.turn,
        slide=chain.slide,
        link=chain.link,
        variable=chain.variable,
        lower=limits[0],
        upper=limits[1],
        base=chain.base,
        tip=chain.tip,
    )
    around = Starts(bounds[0], bounds[1], starts.periodic, starts.joint_weights)
    return near, SearchParams(params.method, params.stop, around, params.rule)


@kernel
def search_fast(
    chain: SerialChain,
    near: SerialChain,
    starts: Starts,
    params: SearchParams,
    table: ChainTable,
    targets: PoseTargets,
    attempts: int,
    rows: Rows,
    scratch: SearchScratch,
    work: FastWorkspace,
    free: FreeSearch | None,
) -> None:
    """Search solutions for all poses on the fast path, given the structs and all scratch arrays.

    Args:
        chain: The arm, with its joint limits.
        near: Copy of `chain` from :func:`near_seed`, whose joint limits are written for each pose.
        starts: Bounds of random starts without a seed.
        params: Copy of the parameters from :func:`near_seed`, whose bounds of random starts are
            written for each pose.
        table: Table of start configurations.
        targets: The poses and seeds.
        attempts: Maximum number of attempts per pose in this call; unused with a scene.
        rows: State of the searches, read and written.
        scratch: Scratch arrays of the search.
        work: Scratch arrays of the fast path.
        free: Inputs of the search for collision-free solutions; None without a scene.
    """
    for i in range(targets.T.shape[0]):
        T, seed = targets.T[i], targets.seed[min(i, targets.seed.shape[0] - 1)]
        if are_poses(T) and is_finite(seed):
            limits_near_seed(chain, starts, seed, targets.max_change, near, params.starts)
            aim(chain.base, chain.tip, T[0], work.target)
            search_row(near, params, table, None, T, seed, attempts, i, rows, scratch, work, free)


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
    scene: PackedScene,
    decided: Indices,
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
    arrays = unpack_scene(*scene)
    slides = slide_scratch(arrays, chain.lower.shape[0], general.task.component.shape[0])
    search_general(
        chain,
        params,
        general,
        PoseTargets(*targets),
        0,
        Rows(*rows),
        FreeSearch(arrays, slides, OpenSolutions(*opened), until, decided),
    )


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
    starts = params.starts
    limits, bounds = np.empty((2, starts.lower.shape[0])), np.empty((2, starts.lower.shape[0]))
    near = Chain(
        fixed=chain.fixed,
        first=chain.first,
        prismatic=chain.prismatic,
        variable=chain.variable,
        scale=chain.scale,
        offset=chain.offset,
        lower=limits[0],
        upper=limits[1],
        velocity=chain.velocity,
    )
    around = Starts(bounds[0], bounds[1], starts.periodic, starts.joint_weights)
    here = SearchParams(params.method, params.stop, around, params.rule)
    scratch = search_scratch(near)
    work = workspace(chain, general, new_memory(chain, params.method, general))
    for i in range(targets.T.shape[0]):
        T, seed = targets.T[i], targets.seed[min(i, targets.seed.shape[0] - 1)]
        if are_poses(T) and is_finite(seed):
            limits_near_seed(chain, starts, seed, targets.max_change, near, around)
            search_row(near, here, None, general, T, seed, attempts, i, rows, scratch, work, free)


@force_inline
def search_row(
    near: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T: Array,
    seed: Array,
    attempts: int,
    i: int,
    rows: Rows,
    scratch: SearchScratch,
    work: AnyWorkspace,
    free: FreeSearch | None,
) -> None:
    """Search solutions for the pose of row i.

    Args:
        near: The chain with the joint limits near the seed.
        params: The parameters with the bounds of random starts near the seed.
        table, general: One of the two is None, as explained in :mod:`dls_ik.core.search`.
        T: (k, 4, 4) desired poses of the tips.
        seed: (n,) joint positions [rad or m].
        attempts: Maximum number of attempts in this call; unused with a scene.
        i: Index of the row.
        rows: State of all searches, of which row i is read and written.
        scratch: Scratch arrays of the search.
        work: Scratch arrays of the path.
        free: Inputs of the search for collision-free solutions; None without a scene.
    """
    row = Rows(rows.counts[i], rows.best[i], rows.figures[i])
    if free is None:
        search(near, params, table, general, T, seed, attempts, row, scratch, work, None)
    if free is not None:
        opened = OpenSolutions(free.opened.candidates[i], free.opened.answers[i])
        mine = FreeSearch(free.scene, free.slides, opened, free.until, free.decided)
        left = free.until[i] - row.counts[ATTEMPTS_COLUMN]
        search(near, params, table, general, T, seed, left, row, scratch, work, mine)


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
