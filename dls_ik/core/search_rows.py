# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The searches of a batch of poses, independent of each other: the kernels that Python calls.

Arguments that differ between calls are plain tuples: Numba takes 2 us to recognise a NamedTuple.
"""

import numpy as np

from dls_ik.core.fast.kinematics import aim
from dls_ik.core.fast.packed import unpack
from dls_ik.core.fast.table import LEAF_ROWS
from dls_ik.core.free_solutions import FreeSearch
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.redundancy import slide_scratch
from dls_ik.core.scene_arrays import unpack_scene
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

POSE_TOLERANCE = 1e-9  # maximum deviation of a rotation matrix from orthonormality


@allocating
def search_packed(
    numbers: Array,
    integers: Indices,
    targets: tuple[Array, Array, Array],
    rule: tuple[int, int, bool],
    attempts: int,
    rows: tuple[Indices, Array, Array],
) -> None:
    """Search all rows on the fast path, for arms with one tip; called from Python.

    Args:
        numbers, integers: Fields of :class:`dls_ik.core.fast.packed.Packed`.
        rule: Fields of :class:`SelectionRule`.
        targets, attempts, rows: As for :func:`search_rows`.
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
    scene: tuple[Array, Indices, Indices],
    targets: tuple[Array, Array, Array],
    rule: tuple[int, int, bool],
    until: Indices,
    rows: tuple[Indices, Array, Array],
    opened: tuple[Array, Indices],
) -> None:
    """Search all rows on the fast path for collision-free solutions; called from Python.

    Args:
        numbers, integers, targets, rule, rows: As for :func:`search_packed`.
        scene: Arrays of :func:`dls_ik.core.scene_arrays.pack_scene`, and `decided` of
            :class:`FreeSearch`.
        until: (b,) total number of attempts for each pose, earlier calls included.
        opened: Fields of :class:`OpenSolutions`, read and written.
    """
    chain, table, method, stop, starts = unpack(numbers, integers)
    near, params = near_seed(chain, SearchParams(method, stop, starts, SelectionRule(*rule)))
    arrays = unpack_scene(scene[0], scene[1])
    slides = slide_scratch(arrays, starts.lower.shape[0], 6)
    search_fast(
        chain, near, starts, params, table, PoseTargets(*targets), 0, Rows(*rows),
        search_scratch(near), fast_workspace(near, LEAF_ROWS),
        FreeSearch(arrays, slides, OpenSolutions(*opened), until, scene[2]),
    )  # fmt: skip


@allocating
def near_seed(chain: SerialChain, params: SearchParams) -> tuple[SerialChain, SearchParams]:
    """Return copies with new arrays for the joint limits and start bounds near a seed."""
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
    """Search all rows on the fast path, given the structs and all scratch arrays.

    Args:
        near: Copy of `chain` with its own arrays for the joint limits near a seed.
        params: Parameters with their own arrays for the start bounds near a seed.
        attempts: Maximum number of attempts per pose in this call; unused with a scene.
        free: Inputs of the collision-free search; None without a scene.
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
    """Search all rows on the general path, independently of each other; called from Python.

    Rows are skipped if their pose is not a finite rigid transform, or their seed is not finite.

    Args:
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
    scene: tuple[Array, Indices, Indices],
    targets: tuple[Array, Array, Array],
    until: Indices,
    rows: tuple[Indices, Array, Array],
    opened: tuple[Array, Indices],
) -> None:
    """Search all rows on the general path for collision-free solutions; called from Python.

    Args:
        scene, until, opened: As for :func:`search_packed_free`; others as for :func:`search_rows`.
    """
    arrays = unpack_scene(scene[0], scene[1])
    slides = slide_scratch(arrays, chain.lower.shape[0], general.task.component.shape[0])
    search_general(
        chain,
        params,
        general,
        PoseTargets(*targets),
        0,
        Rows(*rows),
        FreeSearch(arrays, slides, OpenSolutions(*opened), until, scene[2]),
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
    """Search all rows on the general path, given the structs; see :func:`search_fast`."""
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
    """Search row i; see :func:`search_fast`."""
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
    """Write the joint limits and the bounds of random starts within `change` of the seed.

    The bounds of random starts may be whole turns away from those without a seed.

    Args:
        seed: (n,) joint positions [rad or m].
        change: (n,) maximum difference from the seed [rad or m].
        near: Chain whose `lower` and `upper` (n,) are written.
        around: Starts whose `lower` and `upper` (n,) are written.
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
    """Return whether all entries are finite."""
    for j in range(q.shape[0]):
        if not abs(q[j]) < np.inf:
            return False
    return True


@force_inline
def are_poses(T: Array) -> bool:
    """Return whether each of T (k, 4, 4) is a finite rigid transform."""
    for i in range(T.shape[0]):
        if not is_pose(T[i], POSE_TOLERANCE):
            return False
    return True
