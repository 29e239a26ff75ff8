# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Self-motion: moving a redundant arm through the solutions of one pose.

Lengths and directions are in the joint metric, in which joint j is scaled by the square root of its
weight. Each function serves the fast path (`table` given) and the general path (`general` given);
see :mod:`dls_ik.core.search`.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.attempt import error_at, write_jacobian
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, factor, norm, solve_factored
from dls_ik.core.scene_arrays import CollisionScratch, SceneArrays, collision_scratch
from dls_ik.core.task import is_reached
from dls_ik.core.types import (
    AnyChain,
    AnyWorkspace,
    Array,
    ChainTable,
    GeneralProblem,
    Indices,
    SearchParams,
)

STEP_LENGTH = 0.15  # length of one step along the self-motion
MAX_CORRECTIONS = 4  # maximum number of steps that bring the arm back to the pose after each step
MIN_STEP_SHARE = 0.3  # minimum share of a step that the joint limits must leave
RELATIVE_DAMPING = 1e-10  # damping relative to the trace of J J^T


class SlideScratch(NamedTuple):
    """Scratch arrays of one thread for n joints and r error rows, and for its collision checks."""

    collision: CollisionScratch
    start: Array  # (n,) solution at which self-motions start [rad or m]
    error: Array  # (2,) position error [m] and rotation error [rad] of `start`
    first: Array  # (n,) first direction tried, or direction of the previous step
    nodes: Indices  # (2,) sphere-tree nodes of a pair that prove its collision
    normal: Array  # (3,) direction in which the first shape leaves the second, of any length
    before: Array  # (n,) joint positions before a step [rad or m]
    direction: Array  # (n,) unit vector along the self-motion
    z: Array  # (n,) wanted motion
    dq: Array  # (n,) wanted motion plus the correction of the error
    h: Array  # (n,) 1 for a joint held at its limit, else 0
    B: Array  # (r, n) Jacobian
    A: Array  # (r, r)
    y: Array  # (r,)


@allocating
def slide_scratch(scene: SceneArrays, n: int, r: int) -> SlideScratch:
    """Allocate the scratch arrays of one thread."""
    return SlideScratch(
        collision=collision_scratch(scene),
        start=np.zeros(n),
        error=np.zeros(2),
        first=np.zeros(n),
        nodes=np.zeros(2, np.int64),
        normal=np.zeros(3),
        before=np.zeros(n),
        direction=np.zeros(n),
        z=np.zeros(n),
        dq=np.zeros(n),
        h=np.zeros(n),
        B=np.zeros((r, n)),
        A=np.zeros((r, r)),
        y=np.zeros(r),
    )


@force_inline
def find_direction(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    least: float,
    q: Array,
    work: AnyWorkspace,
    slides: SlideScratch,
) -> bool:
    """Project the unit vector `slides.direction` (n,) onto the self-motion at a solution.

    Args:
        least: Minimum squared cosine of the angle between the vector and its projection.
        q: (n,) solution, evaluated last [rad or m].

    Returns:
        Whether a projection exists with an angle that small.
    """
    weights = params.starts.joint_weights
    copy(q, slides.before)
    write_jacobian(chain, params.stop, table, general, T_d, work)
    take_jacobian(table is not None, weights, work.J, slides.B)
    for j in range(q.shape[0]):
        slides.z[j] = STEP_LENGTH * slides.direction[j]
    has_direction = move_along(
        chain.lower, chain.upper, weights, q, work.e, slides
    ) and update_direction(weights, q, least * STEP_LENGTH, slides)
    copy(slides.before, q)
    return has_direction


@kernel
def step_along(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    q: Array,
    error: Array,
    work: AnyWorkspace,
    slides: SlideScratch,
) -> bool:
    """Move a solution by one step along `slides.direction` (n,) to the next solution of the pose.

    Args:
        q: (n,) solution, evaluated last; read and written [rad or m].
        error: (2,) position error [m] and rotation error [rad] of the next solution, written.

    Returns:
        False if joint limits or a singularity end the self-motion.
    """
    weights = params.starts.joint_weights
    copy(q, slides.before)
    for j in range(q.shape[0]):
        slides.z[j] = STEP_LENGTH * slides.direction[j]
    for _ in range(1 + MAX_CORRECTIONS):
        write_jacobian(chain, params.stop, table, general, T_d, work)
        take_jacobian(table is not None, weights, work.J, slides.B)
        if not move_along(chain.lower, chain.upper, weights, q, work.e, slides):
            return False
        error[0], error[1] = error_at(chain, params.stop, table, general, T_d, q, work)
        if is_reached(params.stop, error[0], error[1], norm(work.e)):
            return update_direction(weights, q, MIN_STEP_SHARE * STEP_LENGTH, slides)
        slides.z.fill(0.0)
    return False


@force_inline
def take_jacobian(transposed: bool, weights: Array, J: Array, B: Array) -> None:
    """Write J (r, n), or (n, r) if `transposed`, to B (r, n) in the joint metric."""
    r, n = B.shape
    for j in range(n):
        scale = weights[j] ** -0.5
        for i in range(r):
            B[i, j] = scale * (J[j, i] if transposed else J[i, j])


@kernel
def move_along(
    lower: Array, upper: Array, weights: Array, q: Array, e: Array, work: SlideScratch
) -> bool:
    """Compute dq = z + P (e - J z), P the pseudoinverse of J, and move `q` by dq within its limits.

    To first order, dq is the motion closest to z that removes the error. Joints that would leave
    their limits are held there, one more with each pass.

    Args:
        q: (n,) joint positions, read and written [rad or m].
        e: (r,) scaled error.
        work: Scratch arrays with the inputs `z` and `B`.

    Returns:
        False if the joints inside their limits cannot remove the error.
    """
    B, y, z, dq, h = work.B, work.y, work.z, work.dq, work.h
    r, n = B.shape
    h.fill(0.0)
    again = True
    while again:
        if not factor_free(B, h, work.A):
            return False
        for i in range(r):
            y[i] = e[i]
            for j in range(n):
                y[i] -= B[i, j] * z[j]
        solve_factored(work.A, r, y)
        again = False
        for j in range(n):
            dq[j] = z[j]
            if h[j] != 0.0:
                continue
            for i in range(r):
                dq[j] += B[i, j] * y[i]
            there = q[j] + dq[j] * weights[j] ** -0.5
            limit = min(max(there, lower[j]), upper[j])
            if limit != there:
                h[j], z[j], again = 1.0, (limit - q[j]) * weights[j] ** 0.5, True
    for j in range(n):
        q[j] = min(max(q[j] + dq[j] * weights[j] ** -0.5, lower[j]), upper[j])
    return True


@force_inline
def factor_free(B: Array, h: Array, A: Array) -> bool:
    """Factor B B^T (r, r), slightly damped, with the columns of the joints that are not held."""
    r, n = B.shape
    trace = 0.0
    for i in range(r):
        for k in range(i + 1):
            total = 0.0
            for j in range(n):
                if h[j] == 0.0:
                    total += B[i, j] * B[k, j]
            A[i, k] = total
        trace += A[i, i]
    for i in range(r):
        A[i, i] += RELATIVE_DAMPING * trace
    return bool(factor(A, r, 0.0))


@force_inline
def update_direction(weights: Array, q: Array, least: float, work: SlideScratch) -> bool:
    """Set `work.direction` (n,) to the direction of the motion from `work.before` to q (n,).

    Args:
        least: Minimum length of the motion along the previous direction.

    Returns:
        False if the motion is shorter; `work.direction` is then unchanged.
    """
    ahead = 0.0
    for j in range(q.shape[0]):
        work.dq[j] = (q[j] - work.before[j]) * weights[j] ** 0.5
        ahead += work.dq[j] * work.direction[j]
    moved = norm(work.dq)
    if not ahead > least:
        return False
    for j in range(q.shape[0]):
        work.direction[j] = work.dq[j] / moved
    return True
