# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One control cycle of following a target: a step that does not oscillate and observes limits."""

from math import sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core import limits
from dls_ik.core.boxes import Boxed
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.kinematics import forward
from dls_ik.core.linalg import copy, copy_matrix, factor, solve_factored, svd, update_svd
from dls_ik.core.se3 import norm3, pose_error
from dls_ik.core.step import general_step
from dls_ik.core.task import jacobian_derivatives, jacobian_there, observe, scaled_error
from dls_ik.core.types import (
    Array,
    Chain,
    Decomposition,
    FollowMethods,
    FollowScratch,
    FollowState,
    GeneralProblem,
    Method,
    StopCriteria,
    Workspace,
)
from dls_ik.core.workspace import new_memory, workspace

HALVINGS = 20  # maximum number of halvings of a step that does not lower the error
MAX_ROUNDING_STEP = 1e-7  # [rad or m] reversals up to this length are attributed to rounding
# Minimum share of a full step after reversals, and factor of the share in a cycle without reversal.
SHORTEST, LONGER = 1e-3, 1.3
LONGER_AT_REST = 2.0  # factor of each joint's share in a cycle in which no step lowers the error
LEAST_RATE = 1e-5  # [1/s] minimum relative decrease of the squared error; slower motion is refused
NEGLIGIBLE_CURVATURE = 1e-3  # curvature that is ignored, relative to the smallest singular value^2
MIN_STIFFNESS = 1e-8  # [m^2/rad^2] added, so that the matrix of the Newton step is regular
MAX_STIFFNESS = 1e4  # [m^2/rad^2] a larger stiffness makes no difference


class FollowProblem(NamedTuple):
    """Inputs of one step toward a target, the same for all functions of a cycle."""

    chain: Chain
    method: Method
    general: GeneralProblem
    stop: StopCriteria
    T_d: Array  # (k, 4, 4) desired poses T_base_tip
    dt: float  # duration of a cycle [s]
    outside: Array  # (n,) 1 for joints beyond a limit, which return to it, and frozen joints; or 0
    mobility: Array  # (n,) factors of the columns of J, see :class:`FollowMethods`


@allocating
def follow(
    arm: Boxed[Chain],
    methods: Boxed[FollowMethods],
    followed: Boxed[FollowState],
    T_d: Array,
    dt: float,
) -> None:
    """Move the joint positions in a state toward the desired poses, for one control cycle.

    A joint beyond a position limit returns toward this limit at its maximum velocity. The other
    joints make the step of the method, which is changed as follows:

    1. The step is shortened along directions in which the curvature of the error would cause
       overshoot, see :func:`keep_from_overshooting`.
    2. The step is multiplied by a factor so that all joints satisfy their velocity limits.
    3. The step of a joint that reverses its previous step is shortened, see
       :func:`keep_from_swinging`.
    4. The step is halved until it lowers the error.

    Because of these changes, the arm comes to rest in singularities and at targets out of reach,
    where the method alone would oscillate. If neither the step nor a shorter step in its direction
    lowers the error, the method `descending` computes the step of this cycle.

    Args:
        arm: The chain of the arm.
        methods: Method of the step, the fallback method `descending`, and tolerances.
        followed: State of following the target, read and written. In its array `observed`, the
            errors are written for the new joint positions, and the singular values of the Jacobian
            of the scaled error for the old joint positions.
        T_d: (k, 4, 4) desired poses.
        dt: Duration of a cycle [s].
    """
    follow_records(arm.record, methods.record, followed.record, T_d, dt)


@kernel
def follow_records(
    chain: Chain, methods: FollowMethods, state: FollowState, T_d: Array, dt: float
) -> None:
    """Run :func:`follow` with the records of its boxes."""
    method, general, descending, plain, stop, mobility = methods
    outside, observed = state.scratch.outside, state.observed
    return_into_limits(chain, dt, state.q, mobility, outside)
    copy(outside, state.limit_activation)
    problem = FollowProblem(chain, method, general, stop, T_d, dt, outside, mobility)
    if _step(problem, state, state.work):
        return
    least, greatest = observed[2], observed[3]
    problem = FollowProblem(chain, descending, plain, stop, T_d, dt, outside, mobility)
    if not _take_fallback_step(problem, state):
        lengthen_shares(state.motion)
    observed[2], observed[3] = least, greatest


@allocating
def _take_fallback_step(problem: FollowProblem, state: FollowState) -> bool:
    """Take a step of the fallback method in `problem`, without memory of earlier cycles.

    Returns:
        Whether a step was taken, as for :func:`_step`.
    """
    memory = new_memory(problem.chain, problem.method, problem.general)
    return _step(problem, state, workspace(problem.chain, problem.general, memory))


@allocating
def new_state(chain: Chain, method: Method, general: GeneralProblem) -> FollowState:
    """Return the state of following a target, with all arrays that are needed in a cycle.

    Args:
        chain: The chain of the arm.
        method: Method of the steps.
        general: Task and parameters of the method.
    """
    r, n = general.task.component.shape[0], chain.lower.shape[0]
    m = min(r, n)
    return FollowState(
        q=np.zeros(n),
        motion=np.zeros(2 * n),
        work=workspace(chain, general, new_memory(chain, method, general)),
        scratch=FollowScratch(
            outside=np.zeros(n),
            free=np.zeros(n),
            e=np.zeros(r),
            J=np.zeros((r, n)),
            left=np.zeros(r),
            F=np.zeros((r, n)),
            K=np.zeros((n, n)),
            curvature=Decomposition(
                B=np.zeros((m, m)), Ut=np.zeros((m, m)), s=np.zeros(m), Vt=np.zeros((m, m))
            ),
            A=np.zeros((m, m)),
            along=np.zeros(m),
            stiff=np.zeros(m),
            trial=np.zeros(n),
            error=np.zeros(2),
        ),
        observed=np.zeros(4),
        limit_activation=np.zeros(n),
    )


@allocating
def tip_pose(arm: Boxed[Chain], q: Array) -> Array:
    """Return the pose T_base_tip (4, 4) of a chain with one tip.

    Args:
        arm: The chain.
        q: (n,) joint positions [rad or m].
    """
    chain, pose = arm.record, np.zeros((1, 4, 4))
    forward(chain, q, np.empty((chain.prismatic.shape[0], 2, 3)), pose[:, :3])
    pose[0, 3, 3] = 1.0
    return pose[0]


@allocating
def tip_errors(arm: Boxed[Chain], q: Array, T_d: Array) -> tuple[float, float]:
    """Return the distance [m] and the angle [rad] between the tip and its desired pose.

    Args:
        arm: The chain, with one tip.
        q: (n,) joint positions [rad or m].
        T_d: (4, 4) desired T_base_tip.
    """
    e = np.empty(6)
    pose_error(T_d, tip_pose(arm, q), np.empty((3, 3)), e)
    return norm3(e[:3]), norm3(e[3:])


@kernel
def _step(problem: FollowProblem, state: FollowState, work: Workspace) -> bool:
    """Move ``state.q`` by one step; do nothing if the error is within ``problem.stop``.

    Args:
        problem: Inputs of the step.
        state: State of following the target, read and written.
        work: Scratch arrays.

    Returns:
        False if neither the step nor a shorter step in its direction lowers the error; ``state.q``
        is then unchanged.
    """
    chain, method, general, stop, T_d, dt, outside, mobility = problem
    q, observed, activation, scratch = state.q, state.observed, work.limit.activation, state.scratch
    free = scratch.free
    # Compute the error and the step of the method.
    observed[0], observed[1] = observe(chain, general, T_d, q, work)
    jacobian_there(chain, general, T_d, work)
    freeze(mobility, work.J)
    observe_singular_values(work, observed)
    copy(work.e, scratch.e)  # the step overwrites e and J
    copy_matrix(work.J, scratch.J)
    scale_columns(mobility, work.J)
    general_step(chain, method, general, T_d, q, work)
    for j in range(q.shape[0]):
        state.limit_activation[j] = max(state.limit_activation[j], activation[j])
        work.dq[j] *= mobility[j] * (1.0 - outside[j])
        free[j] = freedom(chain, method, j, q[j], work.dq[j], activation[j]) * (1.0 - outside[j])
    if observed[0] <= stop.position_tolerance and observed[1] <= stop.rotation_tolerance:
        return True
    # Shorten the step.
    keep_from_overshooting(problem, q, scratch.e, scratch.J, work, observed, scratch)
    keep_velocity(chain, dt, work.dq)
    save_motion(state.motion, scratch)
    keep_from_swinging(work.dq, state.motion)
    if descend(problem, q, work, observed, scratch):
        return True
    restore_motion(state.motion, scratch)
    return False


@kernel
def freeze(mobility: Array, A: Array) -> None:
    """Set the columns of A (r, n) that belong to frozen joints, with the mobility 0, to zero."""
    for j in range(mobility.shape[0]):
        if mobility[j] == 0.0:
            for i in range(A.shape[0]):
                A[i, j] = 0.0


@kernel
def scale_columns(mobility: Array, J: Array) -> None:
    """Multiply each column of J (r, n) by the mobility (n,) of its joint.

    A step u for the scaled Jacobian stands for the step dq = mobility u. The shortest u is the
    least-norm step for the joint weights 1 / mobility^2 (Whitney 1969).
    """
    for j in range(mobility.shape[0]):
        if mobility[j] != 1.0:
            for i in range(J.shape[0]):
                J[i, j] *= mobility[j]


@kernel
def return_into_limits(chain: Chain, dt: float, q: Array, mobility: Array, outside: Array) -> None:
    """Move each joint that is beyond a position limit toward this limit, for one cycle.

    The joint moves with its maximum velocity, and stops when it reaches the limit. Frozen joints do
    not move.

    Args:
        chain: Position and velocity limits of the joints.
        dt: Duration of a cycle [s].
        q: (n,) joint positions, read and written [rad or m].
        mobility: (n,) 0 for frozen joints.
        outside: (n,) written: 1 for each joint that was beyond a limit at the start of the cycle or
            is frozen, else 0.
    """
    outside.fill(0.0)
    for j in range(q.shape[0]):
        if mobility[j] == 0.0:
            outside[j] = 1.0
            continue
        path = min(max(q[j], chain.lower[j]), chain.upper[j]) - q[j]
        if path != 0.0:
            outside[j] = 1.0
            farthest = chain.velocity[j] * dt
            q[j] += min(max(path, -farthest), farthest)


@kernel
def observe_singular_values(work: Workspace, observed: Array) -> None:
    """Write the smallest and the largest singular value of ``work.J`` to ``observed[2:]``."""
    r, n = work.J.shape
    update_svd(work.J, work.last_svd)
    s = work.last_svd.s
    observed[2], observed[3] = s[min(r, n) - 1], s[0]


@force_inline
def freedom(chain: Chain, method: Method, j: int, q: float, dq: float, h: float) -> float:
    """Return the share, 0 to 1, of its step that joint j can make because of its limits.

    The share is 0 at a limit that the step would violate. Otherwise it is 1 - h, except for the
    active set (the limit strategy of ``auto``), SNS and HQP, for which joints are free up to the
    limit.

    Args:
        chain: Limits of the joints.
        method: Gives the limit strategy.
        j: Index of the joint.
        q: Joint position [rad or m].
        dq: Step of the joint [rad or m].
        h: Activation of the limit of the joint, 0 (free) to 1 (held).
    """
    if (q >= chain.upper[j] and dq > 0.0) or (q <= chain.lower[j] and dq < 0.0):
        return 0.0
    return 1.0 if limits.revises(method) or limits.bounds_step(method) else 1.0 - h


@kernel
def keep_from_overshooting(
    problem: FollowProblem,
    q: Array,
    e: Array,
    J_free: Array,
    work: Workspace,
    observed: Array,
    scratch: FollowScratch,
) -> None:
    """Shorten the step ``work.dq`` along directions in which it would overshoot.

    The Hessian (second derivative) of |e|^2 / 2 by q is J^T J + S with S = -sum_i e_i dJ_i / dq,
    where J = -de/dq has the rows J_i. IK methods use only the term J^T J. The term S matters if an
    error e remains after the step, as for targets out of reach. For a stretched arm, J^T J is zero
    along some directions, so that the Hessian is S; near such a configuration, a step computed from
    J alone overshoots.

    The correction uses the singular value decomposition J = U diag(s) V^T. The step has the
    component a_i = v_i . dq along the singular direction v_i. The method has moved as if the
    Hessian were m_i = s_i (u_i . e) / a_i along this direction; m_i is used, but at least s_i^2.
    Newton's method with the Hessian diag(m) + S+ gives the new components
    (diag(m) + S+)^-1 diag(m) a, which replace a. S+ is the positive semidefinite part of V^T S V.
    Therefore the step does not change along directions in which S is negative, nor if no error
    remains.

    Args:
        problem: Inputs of the step.
        q: (n,) joint positions [rad or m].
        e: (r,) scaled error at q [m].
        J_free: (r, n) Jacobian J of the scaled error at q, or J C if distance constraints restrict
            the step, with C the projector onto the unrestricted motions; see core/avoidance.py.
        work: The step `dq` is read and written.
        observed: (4,) errors and singular values, as in :class:`FollowState`.
        scratch: The field `free` is read; other arrays are overwritten.
    """
    r, n = J_free.shape
    m = min(r, n)
    # Return if the error that remains after the step is so small that S is negligible.
    free, left, size = scratch.free, scratch.left, 0.0
    scale = velocity_scale(problem.chain, problem.dt, work.dq)
    for i in range(r):
        left[i] = e[i]
        for j in range(n):
            if free[j] > 0.0:
                left[i] -= J_free[i, j] * work.dq[j] * scale
        size += left[i] * left[i]
    if sqrt(size) * observed[3] <= NEGLIGIBLE_CURVATURE * observed[2] * observed[2]:
        return
    # Find the singular directions of the free joints, and the curvature along these directions.
    for i in range(r):
        for j in range(n):
            scratch.F[i, j] = J_free[i, j] * free[j]
    update_svd(scratch.F, work.last_svd)
    _, Ut, s, Vt = work.last_svd
    A, along, stiff = scratch.A, scratch.along, scratch.stiff
    _curvature(problem, q, Vt, work, scratch)
    # Solve (m + S+) x = m a, and change the step along the directions from a to x.
    for k in range(m):
        along[k], gradient = 0.0, 0.0
        for j in range(n):
            along[k] += Vt[k, j] * work.dq[j]
        for i in range(r):
            gradient += s[k] * Ut[k, i] * e[i]
        stiffness = s[k] * s[k]
        if gradient * along[k] > 0.0:
            stiffness = max(stiffness, min(gradient / along[k], MAX_STIFFNESS))
        A[k, k] += stiffness + MIN_STIFFNESS
        stiff[k] = (stiffness + MIN_STIFFNESS) * along[k]
    if factor(A, m, 0.0):
        solve_factored(A, m, stiff)
        for j in range(n):
            for k in range(m):
                if free[j] > 0.0:  # singular directions of a singular J may include held joints
                    work.dq[j] += (stiff[k] - along[k]) * Vt[k, j]


@kernel
def _curvature(
    problem: FollowProblem, q: Array, Vt: Array, work: Workspace, scratch: FollowScratch
) -> None:
    """Write the positive semidefinite part of V^T S V with S = -sum_i left_i dF_i / dq.

    F_i is row i of the Jacobian of the scaled error with column j multiplied by free[j].

    Args:
        problem: Inputs of the step.
        q: (n,) joint positions [rad or m].
        Vt: (r, n) unit vectors v_i as rows, of which the first m are used.
        work: Scratch arrays.
        scratch: The fields `free` and `left` are read; the result is written to `A`.
    """
    chain, task, T_d = problem.chain, problem.general.task, problem.T_d
    A, K, free, left, slope = scratch.A, scratch.K, scratch.free, scratch.left, scratch.trial
    S, Pt, size, Qt = scratch.curvature
    n, m = q.shape[0], A.shape[0]
    forward(chain, q, work.axes, work.T)
    jacobian_derivatives(chain, task, T_d, work.axes, work.T, work.relative, left, K)
    for k in range(m):
        for j in range(n):
            slope[j] = 0.0
            for i in range(n):
                slope[j] -= free[j] * K[j, i] * Vt[k, i]
        for c in range(m):
            S[c, k] = 0.0
            for j in range(n):
                S[c, k] += Vt[c, j] * slope[j]
    for k in range(m):
        for c in range(k):
            S[c, k] = S[k, c] = 0.5 * (S[c, k] + S[k, c])
    svd(S, Pt, size, Qt)  # S^2 = Q size^2 Q^T
    for c in range(m):
        for k in range(m):
            A[c, k] = 0.5 * S[c, k]
            for i in range(m):
                A[c, k] += 0.5 * Qt[i, c] * size[i] * Qt[i, k]


@force_inline
def velocity_scale(chain: Chain, dt: float, dq: Array) -> float:
    """Return the largest factor, at most 1, for which factor * dq satisfies all velocity limits.

    Args:
        chain: Velocity limits of the joints.
        dt: Duration of a cycle [s].
        dq: (n,) step [rad or m].
    """
    scale = 1.0
    for j in range(dq.shape[0]):
        if abs(dq[j]) * scale > chain.velocity[j] * dt:
            scale = chain.velocity[j] * dt / abs(dq[j])
    return scale


@kernel
def keep_velocity(chain: Chain, dt: float, dq: Array) -> None:
    """Multiply the step dq (n,) in place by :func:`velocity_scale` for a cycle of `dt` [s]."""
    scale = velocity_scale(chain, dt, dq)
    for j in range(dq.shape[0]):
        dq[j] *= scale


@kernel
def keep_from_swinging(dq: Array, motion: Array) -> None:
    """Shorten the steps of joints that reverse direction, so that they do not swing back and forth.

    The step of each joint is multiplied by the share of this joint, at most 1. The share is halved
    if the joint reverses its previous step, and grows otherwise. Each joint has its own share,
    because one joint may swing while the others approach the target.

    Args:
        dq: (n,) step, read and written [rad or m].
        motion: (2 n,) previous steps of the joints, followed by their shares; read and written.
    """
    n = dq.shape[0]
    for j in range(n):
        share = motion[n + j]
        turns = dq[j] * motion[j] < 0.0 and abs(dq[j]) > MAX_ROUNDING_STEP
        motion[j] = dq[j]
        motion[n + j] = max(0.5 * share, SHORTEST) if turns else min(LONGER * share, 1.0)
        dq[j] *= motion[n + j]


@kernel
def save_motion(motion: Array, scratch: FollowScratch) -> None:
    """Save the previous steps and shares, which :func:`keep_from_swinging` changes.

    Args:
        motion: (2 n,) previous steps of the joints, followed by their shares.
        scratch: The steps are written to the first row of `F`, the shares to that of `K`.
    """
    n = motion.shape[0] // 2
    copy(motion[:n], scratch.F[0])
    copy(motion[n:], scratch.K[0])


@kernel
def restore_motion(motion: Array, scratch: FollowScratch) -> None:
    """Restore the previous steps and shares after a step that did not lower the error.

    Otherwise a rejected step and the opposite step of the fallback method would count as a reversal
    in every cycle, and the shares of resting joints would become so small that no step lowers the
    error.

    Args:
        motion: (2 n,) written: previous steps of the joints, followed by their shares.
        scratch: Rows that :func:`save_motion` has written.
    """
    n = motion.shape[0] // 2
    copy(scratch.F[0], motion[:n])
    copy(scratch.K[0], motion[n:])


@kernel
def lengthen_shares(motion: Array) -> None:
    """Increase the shares of all joints in a cycle in which no step lowers the error.

    Otherwise the steps could stay too short to lower the error, and the arm would remain at rest.

    Args:
        motion: (2 n,) previous steps of the joints, followed by their shares; read and written.
    """
    n = motion.shape[0] // 2
    for j in range(n):
        motion[n + j] = min(LONGER_AT_REST * motion[n + j], 1.0)


@kernel
def descend(
    problem: FollowProblem, q: Array, work: Workspace, observed: Array, scratch: FollowScratch
) -> bool:
    """Add to `q` the largest of the shares 1, 1/2, 1/4, ... of ``work.dq`` that lowers the error.

    Args:
        problem: Inputs of the step.
        q: (n,) joint positions, read and written [rad or m].
        work: Holds the step `dq`.
        observed: Errors at q as in :class:`FollowState`; replaced by the errors at the new q.
        scratch: The fields `trial` and `error` are overwritten.

    Returns:
        False if no share lowers the error; `q` is then unchanged.
    """
    chain, general, stop, T_d = problem.chain, problem.general, problem.stop, problem.T_d
    trial, error = scratch.trial, scratch.error
    enough = (1.0 - LEAST_RATE * problem.dt) * scaled_error(stop, observed)
    share = 1.0
    for _ in range(HALVINGS):
        for j in range(q.shape[0]):
            lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
            trial[j] = min(max(q[j] + share * work.dq[j], lower), upper)
        error[0], error[1] = observe(chain, general, T_d, trial, work)
        if scaled_error(stop, error) < enough:
            copy(trial, q)
            observed[0], observed[1] = error[0], error[1]
            return True
        share *= 0.5
    return False
