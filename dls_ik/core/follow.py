"""One cycle of following a target: a step within velocity and position limits, and calm."""

from math import sqrt

import numpy as np

from dls_ik.core import limits
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.linalg import copy, factor, solve_factored, svd
from dls_ik.core.step import general_step
from dls_ik.core.task import jacobian_there, observe, scaled_error
from dls_ik.core.types import Array, Chain, Details, Goal, Memory, Method, Workspace
from dls_ik.core.workspace import new_memory, workspace

HALVINGS = 20  # of a step that would lead away from the target, before it is left out
STILL = 1e-7  # [rad or m] steps that turn back and are shorter are rounding
SHORTEST, LONGER = 1e-3, 1.3  # share of a full step after turns, and its growth without
LEAST_RATE = 1e-5  # [1/s] share of the squared error that motion must take off, not to be creep
NEGLIGIBLE = 1e-3  # curvature of the error relative to the least squared singular value
DIFFERENCE = 1e-4  # [rad or m] steps of the finite differences that curvature is found by
TINY = 1e-8  # [m^2/rad^2] keeps the matrix regular where neither J nor curvature hold a direction
STIFFEST = 1e4  # [m^2/rad^2] above which stiffness of a step makes no difference


@kernel
def follow(
    chain: Chain,
    method: Method,
    descending: Method,
    goal: Goal,
    details: Details,
    plain: Details,
    T_d: Array,
    dt: float,
    q: Array,
    motion: Array,
    memory: Memory,
    seen: Array,
    held: Array,
) -> None:
    """Move `q` (n,) one cycle of `dt` [s] toward the pose, in place.

    Joints beyond a limit come back first, at their own speed. The step of the others is the
    method's, shortened along directions in which the error that it leaves curves, scaled as a whole
    to the velocity limits so that the path keeps its direction, and halved until it lowers the
    error: beyond reach and in a singularity the arm then settles, where the bare method would go
    back and forth. Not every method leads down everywhere: where it does not, the step of one that
    does takes its place. A joint that turns back on its last step takes a shorter one, more so each
    time, so that the arm does not swing on its way.

    Args:
        descending: a method whose steps lower the error wherever that is possible; `plain` goes
            with it.
        T_d: (k, 4, 4) desired poses.
        motion: (2 n,) in and out: the last step, and the share that each joint takes of a full one;
            zeros and ones to begin with.
        memory: in and out, of the method.
        seen: (4,) out: position [m] and rotation error [rad] at the new q; least and greatest
            singular value of the scaled Jacobian at the old one.
        held: (n,) out: 0 free to 1 held, how far each joint is held by its limit.
    """
    work = workspace(chain, details, memory)
    outside = _return_into_limits(chain, dt, q)
    copy(outside, held)
    if _step(chain, method, goal, details, T_d, dt, outside, q, motion, work, seen, held):
        return
    least, greatest = seen[2], seen[3]
    work = workspace(chain, plain, new_memory(chain, descending, plain))
    _step(chain, descending, goal, plain, T_d, dt, outside, q, motion, work, seen, held)
    seen[2], seen[3] = least, greatest


@kernel
def _step(
    chain: Chain,
    method: Method,
    goal: Goal,
    details: Details,
    T_d: Array,
    dt: float,
    outside: Array,
    q: Array,
    motion: Array,
    work: Workspace,
    seen: Array,
    held: Array,
) -> bool:
    """Move `q` by one step of a method; return whether there was one, or none was needed."""
    seen[0], seen[1] = observe(chain, details, T_d, q, work)
    jacobian_there(chain, details, T_d, work)
    _see_singular_values(work, seen)
    e, J, free = work.e.copy(), work.J.copy(), np.empty(q.shape[0])  # the step spoils e and J
    general_step(chain, method, details, T_d, q, work)
    for j in range(q.shape[0]):
        held[j] = max(held[j], work.h[j])
        work.dq[j] *= 1.0 - outside[j]
        free[j] = _freedom(chain, method, j, q[j], work.dq[j], work.h[j]) * (1.0 - outside[j])
    if seen[0] <= goal.position_tolerance and seen[1] <= goal.rotation_tolerance:
        return True
    _keep_from_overshooting(chain, details, T_d, dt, q, e, J, free, work, seen)
    _keep_velocity(chain, dt, work.dq)
    _keep_from_swinging(work.dq, motion)
    return _descend(chain, goal, details, T_d, dt, q, work, seen)


@spliced
def _return_into_limits(chain: Chain, dt: float, q: Array) -> Array:
    """Move joints beyond a limit toward it at their velocity limit; return 1 for each of them."""
    outside = np.zeros(q.shape[0])
    for j in range(q.shape[0]):
        way = min(max(q[j], chain.lower[j]), chain.upper[j]) - q[j]
        if way != 0.0:
            outside[j] = 1.0
            farthest = chain.velocity[j] * dt
            q[j] += min(max(way, -farthest), farthest)
    return outside


@spliced
def _see_singular_values(work: Workspace, seen: Array) -> None:
    r, n = work.J.shape
    s = np.empty(r)
    svd(work.J, np.empty((r, r)), s, np.empty((r, n)))
    seen[2], seen[3] = s[min(r, n) - 1], s[0]


@spliced
def _freedom(chain: Chain, method: Method, j: int, q: float, dq: float, h: float) -> float:
    """How far a joint takes part in the motion, 0 to 1: not where its limit stops the step.

    Joints of the active set are on their way to a limit, and count until they are there.
    """
    if (q >= chain.upper[j] and dq > 0.0) or (q <= chain.lower[j] and dq < 0.0):
        return 0.0
    return 1.0 if limits.revises(method) else 1.0 - h


@kernel
def _keep_from_overshooting(
    chain: Chain,
    details: Details,
    T_d: Array,
    dt: float,
    q: Array,
    e: Array,
    J: Array,
    free: Array,
    work: Workspace,
    seen: Array,
) -> None:
    """Shorten ``work.dq`` along directions in which the error that it leaves curves.

    Half the squared error has the second derivative J^T J + S, S = -sum_i e_i d^2 e_i / dq^2, of
    which methods know the first part. S counts where an error e is left, as beyond reach: a
    stretched arm that is pulled on is held by S alone, and a step by J leads as far past that place
    as J is singular there. With J = U s V^T and a = V^T dq, m_i = s_i (u_i . e) / a_i is how stiff
    the method takes direction i to be, at least s_i^2, and the step becomes (m + S+)^-1 m a, the
    Newton step of a method that only inverts J. S+ is the positive part of V^T S V: where the error
    curves down nothing is changed, nor is it for a step that leaves no error.

    Args:
        e: (r,) scaled error and J: (r, n) its Jacobian at q.
        free: (n,) how far each joint takes part, 0 to 1.
    """
    r, n = J.shape
    m = min(r, n)
    left, size, scale = np.empty(r), 0.0, _velocity_scale(chain, dt, work.dq)
    for i in range(r):
        left[i] = e[i]
        for j in range(n):
            if free[j] > 0.0:
                left[i] -= J[i, j] * work.dq[j] * scale
        size += left[i] * left[i]
    if sqrt(size) * seen[3] <= NEGLIGIBLE * seen[2] * seen[2]:
        return
    F = J.copy()
    for i in range(r):
        for j in range(n):
            F[i, j] *= free[j]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty((r, n))
    svd(F, Ut, s, Vt)
    A, along, stiff = np.empty((m, m)), np.empty(m), np.empty(m)
    _curvature(chain, details, T_d, q, F, free, left, Vt, work, A)
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


@kernel
def _curvature(
    chain: Chain,
    details: Details,
    T_d: Array,
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
    r, n = F.shape
    m = A.shape[0]
    S, trial, slope = np.empty((m, m)), np.empty(n), np.empty(n)
    for k in range(m):
        for j in range(n):
            trial[j] = q[j] + DIFFERENCE * Vt[k, j]
        observe(chain, details, T_d, trial, work)
        jacobian_there(chain, details, T_d, work)
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


@spliced
def _velocity_scale(chain: Chain, dt: float, dq: Array) -> float:
    """The share of a step that the velocity limits let through."""
    scale = 1.0
    for j in range(dq.shape[0]):
        if abs(dq[j]) * scale > chain.velocity[j] * dt:
            scale = chain.velocity[j] * dt / abs(dq[j])
    return scale


@spliced
def _keep_velocity(chain: Chain, dt: float, dq: Array) -> None:
    """Scale the whole step to the velocity limits."""
    scale = _velocity_scale(chain, dt, dq)
    for j in range(dq.shape[0]):
        dq[j] *= scale


@spliced
def _keep_from_swinging(dq: Array, motion: Array) -> None:
    """Shorten the steps of joints that turn back on their last ones; lengthen those of others.

    Joint by joint, as one may swing more each time while the others are well on their way.
    """
    n = dq.shape[0]
    for j in range(n):
        share = motion[n + j]
        turns = dq[j] * motion[j] < 0.0 and abs(dq[j]) > STILL
        motion[j] = dq[j]
        motion[n + j] = max(0.5 * share, SHORTEST) if turns else min(LONGER * share, 1.0)
        dq[j] *= motion[n + j]


@kernel
def _descend(
    chain: Chain,
    goal: Goal,
    details: Details,
    T_d: Array,
    dt: float,
    q: Array,
    work: Workspace,
    seen: Array,
) -> bool:
    """Move `q` by the largest share of ``work.dq`` that lowers the error, if there is one."""
    trial, error = np.empty(q.shape[0]), np.empty(2)
    enough = (1.0 - LEAST_RATE * dt) * scaled_error(goal, seen)
    share = 1.0
    for _ in range(HALVINGS):
        for j in range(q.shape[0]):
            lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
            trial[j] = min(max(q[j] + share * work.dq[j], lower), upper)
        error[0], error[1] = observe(chain, details, T_d, trial, work)
        if scaled_error(goal, error) < enough:
            copy(trial, q)
            seen[0], seen[1] = error[0], error[1]
            return True
        share *= 0.5
    return False
