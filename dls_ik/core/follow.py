# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One cycle of following a target: a calm step within velocity and position limits."""

from math import sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core import limits
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, factor, solve_factored, svd
from dls_ik.core.step import general_step
from dls_ik.core.task import jacobian_there, observe, scaled_error
from dls_ik.core.types import (
    Array,
    Chain,
    FollowState,
    GeneralProblem,
    Memory,
    Method,
    StopCriteria,
    Workspace,
)
from dls_ik.core.workspace import new_memory, workspace

HALVINGS = 20  # of a step that would lead away from the target, before it is left out
STILL = 1e-7  # [rad or m] shorter reversals are rounding
SHORTEST, LONGER = 1e-3, 1.3  # least share of a full step after reversals; its growth without
LEAST_RATE = 1e-5  # [1/s] least share of the squared error that motion takes off; less is creep
NEGLIGIBLE = 1e-3  # curvature of the error relative to the least squared singular value
DIFFERENCE = 1e-4  # [rad or m] steps of the finite differences that curvature is found by
TINY = 1e-8  # [m^2/rad^2] keeps the matrix regular where neither J nor curvature hold a direction
STIFFEST = 1e4  # [m^2/rad^2] above which stiffness of a step makes no difference


class FollowProblem(NamedTuple):
    """Inputs of a step toward a target."""

    chain: Chain
    method: Method
    general: GeneralProblem
    stop: StopCriteria
    T_d: Array  # (k, 4, 4) desired poses
    dt: float  # [s] of the cycle
    outside: Array  # (n,) 1 for joints that come back from beyond a limit, else 0


@allocating
def follow(
    chain: Chain,
    method: Method,
    general: GeneralProblem,
    descending: Method,
    plain: GeneralProblem,
    stop: StopCriteria,
    T_d: Array,
    dt: float,
    followed: tuple[Array, Array, Memory, Array, Array],
) -> None:
    """Move ``q`` of the state (n,) one cycle of `dt` [s] toward the pose, in place.

    Joints beyond a limit come back first, at their own speed. The step of the others is the
    method's, shortened along directions in which the error that it leaves curves, scaled as a whole
    to the velocity limits so that the path keeps its direction, and halved until it lowers the
    error: beyond reach and in a singularity the arm then settles, where the bare method would
    oscillate. The steps of some methods do not lower the error everywhere: there the step of a
    method that does takes their place. A joint that reverses its last step takes a shorter one,
    more so each time, so that the arm does not swing on its way.

    Args:
        descending: a method whose steps lower the error wherever that is possible, for `plain`.
        T_d: (k, 4, 4) desired poses.
        followed: fields of :class:`FollowState`, in and out; the errors in `observed` are those at
            the new q, the singular values those of the scaled Jacobian at the old one.
    """
    state = FollowState(*followed)
    observed = state.observed
    work = workspace(chain, general, state.memory)
    outside = return_into_limits(chain, dt, state.q)
    copy(outside, state.limit_activation)
    problem = FollowProblem(chain, method, general, stop, T_d, dt, outside)
    if _step(problem, state, work):
        return
    least, greatest = observed[2], observed[3]
    work = workspace(chain, plain, new_memory(chain, descending, plain))
    problem = FollowProblem(chain, descending, plain, stop, T_d, dt, outside)
    _step(problem, state, work)
    observed[2], observed[3] = least, greatest


@allocating
def _step(problem: FollowProblem, state: FollowState, work: Workspace) -> bool:
    """Move ``state.q`` by one step of a method; return False where no step lowers the error."""
    chain, method, general, stop, T_d, dt, outside = problem
    q, observed, activation = state.q, state.observed, work.limit.activation
    # The error there, and the step of the method.
    observed[0], observed[1] = observe(chain, general, T_d, q, work)
    jacobian_there(chain, general, T_d, work)
    observe_singular_values(work, observed)
    e, J, free = work.e.copy(), work.J.copy(), np.empty(q.shape[0])  # the step overwrites e and J
    general_step(chain, method, general, T_d, q, work)
    for j in range(q.shape[0]):
        state.limit_activation[j] = max(state.limit_activation[j], activation[j])
        work.dq[j] *= 1.0 - outside[j]
        free[j] = freedom(chain, method, j, q[j], work.dq[j], activation[j]) * (1.0 - outside[j])
    if observed[0] <= stop.position_tolerance and observed[1] <= stop.rotation_tolerance:
        return True
    # How much of it is taken.
    keep_from_overshooting(problem, q, e, J, J, free, work, observed)
    keep_velocity(chain, dt, work.dq)
    keep_from_swinging(work.dq, state.motion)
    return descend(problem, q, work, observed)


@allocating
def return_into_limits(chain: Chain, dt: float, q: Array) -> Array:
    """Move joints beyond a limit toward it at their velocity limit; return 1 for each of them."""
    outside = np.zeros(q.shape[0])
    for j in range(q.shape[0]):
        way = min(max(q[j], chain.lower[j]), chain.upper[j]) - q[j]
        if way != 0.0:
            outside[j] = 1.0
            farthest = chain.velocity[j] * dt
            q[j] += min(max(way, -farthest), farthest)
    return outside


@allocating
def observe_singular_values(work: Workspace, observed: Array) -> None:
    """Write the least and the greatest singular value of ``work.J`` to `observed` (4,)."""
    r, n = work.J.shape
    s = np.empty(r)
    svd(work.J, np.empty((r, r)), s, np.empty((r, n)))
    observed[2], observed[3] = s[min(r, n) - 1], s[0]


@force_inline
def freedom(chain: Chain, method: Method, j: int, q: float, dq: float, h: float) -> float:
    """Return how far a joint takes part in the motion, 0 to 1: not where its limit stops the step.

    Joints of the active set are on their way to a limit, and count until they are there.
    """
    if (q >= chain.upper[j] and dq > 0.0) or (q <= chain.lower[j] and dq < 0.0):
        return 0.0
    return 1.0 if limits.revises(method) else 1.0 - h


@allocating
def keep_from_overshooting(
    problem: FollowProblem,
    q: Array,
    e: Array,
    J: Array,
    J_free: Array,
    free: Array,
    work: Workspace,
    observed: Array,
) -> None:
    """Shorten ``work.dq`` along directions in which the error that it leaves curves.

    Half the squared error has the second derivative J^T J + S, S = -sum_i e_i d^2 e_i / dq^2, of
    which methods use the first part. S counts where an error e remains, as beyond reach: a
    stretched arm is held by S alone, and a step by J overshoots the more, the nearer J is to
    singular there. With J = U s V^T and a = V^T dq, m_i = s_i (u_i . e) / a_i is the stiffness that
    the method assumes of direction i, at least s_i^2, and the step becomes (m + S+)^-1 m a, the
    Newton step of a method that only inverts J. S+ is the positive part of V^T S V: the step stays
    as it is where the error curves down, and where it leaves no error.

    Args:
        e: (r,) scaled error and J: (r, n) its Jacobian at q.
        J_free: (r, n) of the motion that the step may make.
        free: (n,) how far each joint takes part, 0 to 1.
    """
    r, n = J.shape
    m = min(r, n)
    # The error that the step leaves: is it worth the curvature?
    left, size = np.empty(r), 0.0
    scale = velocity_scale(problem.chain, problem.dt, work.dq)
    for i in range(r):
        left[i] = e[i]
        for j in range(n):
            if free[j] > 0.0:
                left[i] -= J_free[i, j] * work.dq[j] * scale
        size += left[i] * left[i]
    if sqrt(size) * observed[3] <= NEGLIGIBLE * observed[2] * observed[2]:
        return
    # The directions of the joints that are free, and the curvature along them.
    F, G = J_free.copy(), J.copy()
    for i in range(r):
        for j in range(n):
            F[i, j] *= free[j]
            G[i, j] *= free[j]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty((r, n))
    svd(F, Ut, s, Vt)
    A, along, stiff = np.empty((m, m)), np.empty(m), np.empty(m)
    _curvature(problem, q, G, free, left, Vt, work, A)
    # (m + S+) x = m a, and the step along those directions becomes x.
    for k in range(m):
        along[k], gradient = 0.0, 0.0
        for j in range(n):
            along[k] += Vt[k, j] * work.dq[j]
        for i in range(r):
            gradient += s[k] * Ut[k, i] * e[i]
        stiffness = s[k] * s[k]
        if gradient * along[k] > 0.0:
            stiffness = max(stiffness, min(gradient / along[k], STIFFEST))
        A[k, k] += stiffness + TINY
        stiff[k] = (stiffness + TINY) * along[k]
    if factor(A, m, 0.0):
        solve_factored(A, m, stiff)
        for j in range(n):
            for k in range(m):
                if free[j] > 0.0:  # V may hold other joints where J is singular
                    work.dq[j] += (stiff[k] - along[k]) * Vt[k, j]


@allocating
def _curvature(
    problem: FollowProblem,
    q: Array,
    F: Array,
    free: Array,
    left: Array,
    Vt: Array,
    work: Workspace,
    A: Array,
) -> None:
    """Write the positive part of V^T S V (m, m), S = -sum_i left_i d^2 e_i / dq^2.

    By finite differences of the Jacobian, which serve every task.

    Args:
        F: (r, n) Jacobian at q times free (n,), Vt: (r, n), of which m rows count.
    """
    chain, general, T_d = problem.chain, problem.general, problem.T_d
    r, n = F.shape
    m = A.shape[0]
    S, trial, slope = np.empty((m, m)), np.empty(n), np.empty(n)
    for k in range(m):
        for j in range(n):
            trial[j] = q[j] + DIFFERENCE * Vt[k, j]
        observe(chain, general, T_d, trial, work)
        jacobian_there(chain, general, T_d, work)
        for j in range(n):
            slope[j] = 0.0
            for i in range(r):
                slope[j] -= (work.J[i, j] * free[j] - F[i, j]) * left[i] / DIFFERENCE
        for c in range(m):
            S[c, k] = 0.0
            for j in range(n):
                S[c, k] += Vt[c, j] * slope[j]
    for k in range(m):
        for c in range(k):
            S[c, k] = S[k, c] = 0.5 * (S[c, k] + S[k, c])
    Pt, size, Qt = np.empty((m, m)), np.empty(m), np.empty((m, m))
    svd(S, Pt, size, Qt)  # S^2 = Q size^2 Q^T
    for c in range(m):
        for k in range(m):
            A[c, k] = 0.5 * S[c, k]
            for i in range(m):
                A[c, k] += 0.5 * Qt[i, c] * size[i] * Qt[i, k]


@force_inline
def velocity_scale(chain: Chain, dt: float, dq: Array) -> float:
    """Return the share of a step that the velocity limits allow."""
    scale = 1.0
    for j in range(dq.shape[0]):
        if abs(dq[j]) * scale > chain.velocity[j] * dt:
            scale = chain.velocity[j] * dt / abs(dq[j])
    return scale


@kernel
def keep_velocity(chain: Chain, dt: float, dq: Array) -> None:
    """Scale the whole step to the velocity limits."""
    scale = velocity_scale(chain, dt, dq)
    for j in range(dq.shape[0]):
        dq[j] *= scale


@kernel
def keep_from_swinging(dq: Array, motion: Array) -> None:
    """Shorten the steps of joints that reverse their last ones; lengthen those of others.

    Joint by joint, as one may swing more each time while the others approach the target.
    """
    n = dq.shape[0]
    for j in range(n):
        share = motion[n + j]
        turns = dq[j] * motion[j] < 0.0 and abs(dq[j]) > STILL
        motion[j] = dq[j]
        motion[n + j] = max(0.5 * share, SHORTEST) if turns else min(LONGER * share, 1.0)
        dq[j] *= motion[n + j]


@allocating
def descend(problem: FollowProblem, q: Array, work: Workspace, observed: Array) -> bool:
    """Move `q` by the largest share of ``work.dq`` that lowers the error, if there is one."""
    chain, general, stop, T_d = problem.chain, problem.general, problem.stop, problem.T_d
    trial, error = np.empty(q.shape[0]), np.empty(2)
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
