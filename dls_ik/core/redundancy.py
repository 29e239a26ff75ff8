"""Motion along the solutions of a pose, by the arm's redundancy.

Each function serves both paths: one of `table` and `general` is None, as in
:mod:`dls_ik.core.search`.
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

SLIDE = 0.15  # length of a step in the joint metric
CORRECTIONS = 4  # most steps back to the solutions after each
LEAST_SHARE = 0.3  # of a step that limits have to leave
TINY = 1e-10  # damping, relative to the squared Jacobian


class SlideScratch(NamedTuple):
    """Scratch of one thread for n joints and r rows of the error, and of collision checks."""

    collision: CollisionScratch
    start: Array  # (n,) solution that slides begin from [rad or m]
    error: Array  # (2,) position [m] and rotation error [rad] there
    first: Array  # (n,) the way that was taken first, or before
    nodes: Indices  # (2,) of the shapes of a pair, where they collide
    normal: Array  # (3,) direction in which the first one leaves the other, of any length
    before: Array  # (n,) before a step [rad or m]
    way: Array  # (n,) unit vector along the solutions, in the joint metric as all below
    z: Array  # (n,) wanted motion
    dq: Array  # (n,) motion that takes off the error too
    h: Array  # (n,) 1 where a joint is held at its limit, else 0
    B: Array  # (r, n) Jacobian
    A: Array  # (r, r)
    y: Array  # (r,)


@allocating
def slide_scratch(scene: SceneArrays, n: int, r: int) -> SlideScratch:
    """Allocate the scratch of one thread."""
    return SlideScratch(
        collision=collision_scratch(scene),
        start=np.zeros(n),
        error=np.zeros(2),
        first=np.zeros(n),
        nodes=np.zeros(2, np.int64),
        normal=np.zeros(3),
        before=np.zeros(n),
        way=np.zeros(n),
        z=np.zeros(n),
        dq=np.zeros(n),
        h=np.zeros(n),
        B=np.zeros((r, n)),
        A=np.zeros((r, r)),
        y=np.zeros(r),
    )


@force_inline
def find_way(
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
    """Turn the unit vector `slides.way` to the direction along the solutions nearest to it.

    Args:
        least: squared cosine of the angle between the two, below which there is none.
        q: (n,) solution last observed.

    Returns:
        False where there is none.
    """
    weights = params.starts.joint_weights
    copy(q, slides.before)
    write_jacobian(chain, params.stop, table, general, T_d, work)
    take_jacobian(table is not None, weights, work.J, slides.B)
    for j in range(q.shape[0]):
        slides.z[j] = SLIDE * slides.way[j]
    is_way = move_along(chain.lower, chain.upper, weights, q, work.e, slides) and turn_way(
        weights, q, least * SLIDE, slides
    )
    copy(slides.before, q)
    return is_way


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
    """Move a solution `q` (n,), last observed, by a step along `slides.way` to another one.

    Args:
        error: (2,) out: position [m] and rotation error [rad] there.

    Returns:
        False where limits, or a singularity, end the way.
    """
    weights = params.starts.joint_weights
    copy(q, slides.before)
    for j in range(q.shape[0]):
        slides.z[j] = SLIDE * slides.way[j]
    for _ in range(1 + CORRECTIONS):
        write_jacobian(chain, params.stop, table, general, T_d, work)
        take_jacobian(table is not None, weights, work.J, slides.B)
        if not move_along(chain.lower, chain.upper, weights, q, work.e, slides):
            return False
        error[0], error[1] = error_at(chain, params.stop, table, general, T_d, q, work)
        if is_reached(params.stop, error[0], error[1], norm(work.e)):
            return turn_way(weights, q, LEAST_SHARE * SLIDE, slides)
        slides.z.fill(0.0)
    return False


@force_inline
def take_jacobian(transposed: bool, weights: Array, J: Array, B: Array) -> None:
    """Write J (r, n), or (n, r) if it is transposed, to B (r, n) in the joint metric."""
    r, n = B.shape
    for j in range(n):
        scale = weights[j] ** -0.5
        for i in range(r):
            B[i, j] = scale * (J[j, i] if transposed else J[i, j])


@kernel
def move_along(
    lower: Array, upper: Array, weights: Array, q: Array, e: Array, work: SlideScratch
) -> bool:
    """Write dq = z + P (e - J z), P the inverse of J, and move `q` (n,) by it within the limits.

    To first order the motion nearest z that takes off the error.

    Args:
        e: (r,) scaled error; work: with `z` and `B`.

    Returns:
        False where the joints that are inside their limits cannot take off the error.
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
    """Factor B B^T (r, r) of the columns of the joints that are not held, slightly damped."""
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
        A[i, i] += TINY * trace
    return bool(factor(A, r, 0.0))


@force_inline
def turn_way(weights: Array, q: Array, least: float, work: SlideScratch) -> bool:
    """Write the direction of the motion from `before` to q (n,) to `way`.

    Returns:
        False if it went less far than `least` along the way before.
    """
    ahead = 0.0
    for j in range(q.shape[0]):
        work.dq[j] = (q[j] - work.before[j]) * weights[j] ** 0.5
        ahead += work.dq[j] * work.way[j]
    moved = norm(work.dq)
    if not ahead > least:
        return False
    for j in range(q.shape[0]):
        work.way[j] = work.dq[j] / moved
    return True
