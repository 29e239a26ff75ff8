# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Self-motion: moving a redundant arm through the solutions of one pose.

Lengths and directions of joint motions are in the joint metric: the motion of joint j is multiplied
by the square root of the weight of joint j.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.attempt import error_at, write_jacobian
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, factor, norm, solve_factored
from dls_ik.core.scene_arrays import CollisionScratch, SceneArrays, collision_scratch
from dls_ik.core.task import is_reached
from dls_ik.core.types import AnyWorkspace, Array, Indices, PoseProblem

STEP_LENGTH = 0.15  # length of one step along the self-motion, in the joint metric
MAX_CORRECTIONS = 4  # maximum number of steps that bring the arm back to the pose after each step
MIN_STEP_SHARE = 0.3  # minimum share of a step that must remain possible within the joint limits
RELATIVE_DAMPING = 1e-10  # damping relative to the trace of J J^T


class SlideScratch(NamedTuple):
    """Scratch arrays of one thread for self-motions, for n joints and r rows of the error."""

    collision: CollisionScratch
    start: Array  # (n,) solution at which self-motions start [rad or m]
    error: Array  # (2,) position error [m] and rotation error [rad] of `start`
    first: Array  # (n,) first direction tried, or direction of the previous step
    nodes: Indices  # (2,) sphere-tree nodes that prove the collision of a pair
    normal: Array  # (3,) direction that separates the first shape of a pair from the second
    before: Array  # (n,) joint positions before a step [rad or m]
    direction: Array  # (n,) unit vector along the self-motion, in the joint metric
    z: Array  # (n,) desired motion, in the joint metric
    dq: Array  # (n,) desired motion plus the correction of the error, in the joint metric
    h: Array  # (n,) 1 for a joint held at its limit, else 0
    B: Array  # (r, n) Jacobian in the joint metric
    A: Array  # (r, r) factored matrix B B^T of the free joints
    y: Array  # (r,) right side and solution of the system with A


@allocating
def slide_scratch(scene: SceneArrays, n: int, r: int) -> SlideScratch:
    """Allocate the scratch arrays of one thread for n joints and r rows of the error."""
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
    problem: PoseProblem, least: float, q: Array, work: AnyWorkspace, slides: SlideScratch
) -> bool:
    """Project a direction of joint motion onto the self-motion at a solution.

    Args:
        problem: The pose.
        least: Minimum squared cosine of the angle between the direction and its projection.
        q: (n,) solution [rad or m].
        work: Scratch arrays of the path, which hold the error and the kinematics at q.
        slides: The unit vector `direction` is replaced by its projection, scaled to a unit vector.

    Returns:
        False, with `direction` unchanged, if the projection does not exist or the squared cosine
        is below the minimum.
    """
    chain, weights = problem.chain, problem.params.starts.joint_weights
    copy(q, slides.before)
    write_jacobian(problem, work)
    take_jacobian(problem.table is not None, weights, work.J, slides.B)
    for j in range(q.shape[0]):
        slides.z[j] = STEP_LENGTH * slides.direction[j]
    has_direction = move_along(
        chain.lower, chain.upper, weights, q, work.e, slides
    ) and update_direction(weights, q, least * STEP_LENGTH, slides)
    copy(slides.before, q)
    return has_direction


@kernel
def step_along(
    problem: PoseProblem, q: Array, error: Array, work: AnyWorkspace, slides: SlideScratch
) -> bool:
    """Move a solution by one step of the self-motion to another solution of the pose.

    Args:
        problem: The pose.
        q: (n,) solution, read and written [rad or m].
        error: (2,) position error [m] and rotation error [rad] of the new solution, written.
        work: Scratch arrays of the path, which hold the error and the kinematics at q.
        slides: The unit vector `direction` gives the direction of the step and is replaced by the
            direction of the actual motion.

    Returns:
        False if joint limits or a singularity end the self-motion; q is then not a solution.
    """
    chain, params = problem.chain, problem.params
    weights = params.starts.joint_weights
    copy(q, slides.before)
    for j in range(q.shape[0]):
        slides.z[j] = STEP_LENGTH * slides.direction[j]
    for _ in range(1 + MAX_CORRECTIONS):
        write_jacobian(problem, work)
        take_jacobian(problem.table is not None, weights, work.J, slides.B)
        if not move_along(chain.lower, chain.upper, weights, q, work.e, slides):
            return False
        error[0], error[1] = error_at(problem, q, work)
        if is_reached(params.stop, error[0], error[1], norm(work.e)):
            return update_direction(weights, q, MIN_STEP_SHARE * STEP_LENGTH, slides)
        slides.z.fill(0.0)
    return False


@force_inline
def take_jacobian(transposed: bool, weights: Array, J: Array, B: Array) -> None:
    """Divide the column of each joint in a Jacobian by the square root of the weight of the joint.

    The result is the Jacobian in the joint metric, in which the motion of a joint is multiplied by
    the square root of its weight.

    Args:
        transposed: Whether J is transposed, with the shape (n, r), as on the fast path.
        weights: (n,) weights of the joints.
        J: (r, n) or (n, r) Jacobian of the scaled error.
        B: (r, n) Jacobian in the joint metric, written.
    """
    r, n = B.shape
    for j in range(n):
        scale = weights[j] ** -0.5
        for i in range(r):
            B[i, j] = scale * (J[j, i] if transposed else J[i, j])


@kernel
def move_along(
    lower: Array, upper: Array, weights: Array, q: Array, e: Array, work: SlideScratch
) -> bool:
    """Move `q` by dq = z + P (e - J z), with P the pseudoinverse of the Jacobian J.

    Of all motions that remove the error to first order, dq is the one closest to the desired motion
    z. Distances are measured in the joint metric: the motion of a joint is multiplied by the square
    root of its weight. A joint that would pass a limit is moved to the limit, and the motion of the
    other joints is computed again.

    Args:
        lower, upper: (n,) limits [rad or m].
        weights: (n,) weights of the joints.
        q: (n,) joint positions, read and written [rad or m].
        e: (r,) scaled error [m].
        work: The desired motion `z` and the Jacobian `B`, both in the joint metric, are read; `z`
            and scratch arrays are written.

    Returns:
        False if the joints that were not moved to a limit cannot remove the error; `q` is then
        unchanged.
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
    """Factor the matrix B B^T of the free joints with a small damping.

    Args:
        B: (r, n) Jacobian in the joint metric; only the columns with h = 0 are used.
        h: (n,) 1 for a joint held at its limit, else 0.
        A: (r, r) factors of :func:`dls_ik.core.linalg.factor`, written.

    Returns:
        False if the matrix is singular.
    """
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
    """Set `work.direction` to the direction of the motion from `work.before` to q.

    The motion is measured in the joint metric: the motion of a joint is multiplied by the square
    root of its weight.

    Args:
        weights: (n,) weights of the joints.
        q: (n,) joint positions after the motion [rad or m].
        least: The component of the motion along the old direction must exceed this value.
        work: The joint positions `before` are read; the unit vector `direction` is read and
            written.

    Returns:
        False if the component is too small; the direction is then unchanged.
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
