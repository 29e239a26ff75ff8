# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One cycle of following a target with minimum distances to obstacles and between links.

Shapes are sphere trees, whose leaves contain small pieces of the solids. The speed at which the two
leaves of a close pair approach each other is bounded so that the joints can stop in time (velocity
dampers, Faverjon & Tournassoud 1987). For a step dq these bounds are N dq >= b. Each close pair of
leaves has one row of N, the derivative of the distance of the two leaves by the joint positions,
scaled to a unit vector.

Rows that the step would violate become active: they are constraints of higher priority in the
formula of all methods, dq = z + C P (e - J z), with z = N^+ b and C = I - N^+ N for the active rows
of N. The arm therefore avoids an obstacle by its redundancy before the tip deviates, and the tip
deviates only along the normals. An active-set method finds the active rows: it adds the row that is
violated most, and removes a row if the error pulls the arm away from the bound of that row.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.boxes import Boxed
from dls_ik.core.follow import (
    HALVINGS,
    LEAST_RATE,
    FollowProblem,
    descend,
    freedom,
    freeze,
    keep_from_overshooting,
    keep_from_swinging,
    keep_velocity,
    lengthen_shares,
    observe_singular_values,
    restore_motion,
    return_into_limits,
    save_motion,
    scale_columns,
    velocity_scale,
)
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, copy_matrix, factor, solve_factored
from dls_ik.core.near_pairs import MAX_CONTROLLED_PAIRS, NearRows, near_rows
from dls_ik.core.step import general_step
from dls_ik.core.task import jacobian_there, observe, scaled_error
from dls_ik.core.types import Array, Chain, FollowMethods, FollowState, Indices, Workspace
from dls_ik.core.workspace import new_memory, workspace

MIN_STOPPING_TIME = 0.1  # [s] avoids jitter when the closest leaves alternate
# A step may approach an obstacle only so far that the remaining distance suffices to continue for
# two cycles and then to stop in 1.1 times the stopping time.
STOPPING, CYCLES = 1.1, 2.0
MAX_ROW_SLACK = 5e-3  # [rad or m] rows with N dq - b above this value are discarded after a step
GRAM_REGULARISATION = 1e-9  # added to the diagonal of Gram matrices, because unit rows may be equal
MAX_PROJECTION_SWEEPS, PROJECTION_TOLERANCE = 60, 1e-10  # tolerance in [rad or m]
MAX_VIOLATION = 1e-9  # [rad or m] tolerated violation of a row


@allocating
def follow_apart(
    arm: Boxed[Chain],
    methods: Boxed[FollowMethods],
    followed: Boxed[FollowState],
    constraints: Boxed[NearRows],
    T_d: Array,
    dt: float,
) -> int:
    """Run :func:`dls_ik.core.follow.follow` with minimum distances for the pairs of a scene.

    The minimum distances are linear constraints N dq >= b on the step dq. Each row of N belongs to
    a close pair of shapes; a row is active if it restricts the step. `arm`, `methods`, `followed`,
    `T_d` and `dt` are the arguments of :func:`dls_ik.core.follow.follow`.

    Args:
        constraints: The scene and the state of the distance constraints, read and written.

    Returns:
        The index of the pair of shapes to which the first active row belongs; -1 if no row is
        active.
    """
    state = followed.record
    r, n = state.scratch.J.shape
    scratch = RowScratch(
        N=np.empty((MAX_CONTROLLED_PAIRS, n)),
        remaining=np.empty(MAX_CONTROLLED_PAIRS),
        pair=np.empty(MAX_CONTROLLED_PAIRS, np.int64),
        b=np.empty(MAX_CONTROLLED_PAIRS),
        active=np.empty(n + 1, np.int64),
        taken=np.empty(MAX_CONTROLLED_PAIRS, np.int64),
        blocking_pair=np.full(1, -1),
        motions=np.empty((7, n)),
        e_left=np.empty(r),
        J_free=np.empty((r, n)),
        G=np.empty((n, n)),
        A=np.empty((n, n)),
    )
    _follow_apart(arm.record, methods.record, state, constraints.record, T_d, dt, scratch)
    return scratch.blocking_pair[0]


class RowScratch(NamedTuple):
    """Scratch arrays of a cycle with distance constraints N dq >= b, for at most c rows."""

    N: Array  # (c, n) unit vectors along which distances grow
    remaining: Array  # (c,) motion against each row up to the minimum distance [rad or m]
    pair: Indices  # (c,) index of the pair of shapes to which each row belongs
    b: Array  # (c,) lower bounds of N dq [rad or m]
    active: Indices  # (n + 1,) indices of the active rows; -1 ends the list
    taken: Indices  # (c,) number of times each row became active
    blocking_pair: Indices  # (1,) index of the pair of the first active row, or -1
    motions: Array  # (7, n) joint motions
    e_left: Array  # (r,) see :class:`ErrorModel`
    J_free: Array  # (r, n) see :class:`ErrorModel`
    G: Array  # (n, n) dot products of the active rows
    A: Array  # (n, n) factors of G


@kernel
def _follow_apart(
    chain: Chain,
    methods: FollowMethods,
    state: FollowState,
    near: NearRows,
    T_d: Array,
    dt: float,
    scratch: RowScratch,
) -> None:
    """Run :func:`follow_apart` with the records of its boxes."""
    method, general, descending, plain, stop, mobility = methods
    observed, outside = state.observed, state.scratch.outside
    return_into_limits(chain, dt, state.q, mobility, outside)
    copy(outside, state.limit_activation)
    count = near_rows(near, state.q, scratch.N, scratch.remaining, scratch.pair)
    freeze(mobility, scratch.N[:count])
    problem = FollowProblem(chain, method, general, stop, T_d, dt, outside, mobility)
    if _step(problem, state, state.work, count, near, scratch):
        return
    least, greatest = observed[2], observed[3]
    problem = FollowProblem(chain, descending, plain, stop, T_d, dt, outside, mobility)
    if not _take_fallback_step(problem, state, count, near, scratch):
        lengthen_shares(state.motion)
    observed[2], observed[3] = least, greatest


@allocating
def _take_fallback_step(
    problem: FollowProblem, state: FollowState, count: int, near: NearRows, scratch: RowScratch
) -> bool:
    """Take a step of the fallback method in `problem`, without memory of earlier cycles.

    Returns:
        Whether a step was taken, as for :func:`_step`.
    """
    memory = new_memory(problem.chain, problem.method, problem.general)
    work = workspace(problem.chain, problem.general, memory)
    return _step(problem, state, work, count, near, scratch)


# The step -----------------------------------------------------------------------------------------


class ErrorModel(NamedTuple):
    """Scaled error e and its Jacobian J, with and without the motion that active rows fix.

    Active rows are the rows of the distance constraints N dq >= b that restrict the step dq. They
    fix the motion z = N^+ b. The method corrects the error e - J z that remains, with the Jacobian
    J C of the motion that the rows do not restrict; C = I - N^+ N projects onto the null space of
    the active rows.
    """

    e: Array  # (r,) scaled error at q [m]
    J: Array  # (r, n) Jacobian of the scaled error at q
    e_left: Array  # (r,) e - J z
    J_free: Array  # (r, n) J C


@kernel
def _step(
    problem: FollowProblem,
    state: FollowState,
    work: Workspace,
    m: int,
    near: NearRows,
    scratch: RowScratch,
) -> bool:
    """Move ``state.q`` by one step of a method with minimum distances.

    Args:
        problem: Inputs of the step.
        state: State of following the target, read and written.
        work: Scratch arrays for the method of `problem`.
        m: Number of rows of the distance constraints.
        near: The fields `stopping`, `leaves` and `pace` are used; the last two are also written.
        scratch: The first m rows of `N`, `remaining` and `pair` are read; `blocking_pair` is
            written.

    Returns:
        False if neither the step nor a shorter step in its direction lowers the error; ``state.q``
        is then unchanged.
    """
    chain, method, general, stop, T_d, dt, outside, mobility = problem
    q, observed, activation = state.q, state.observed, work.limit.activation
    N, remaining, b, active = scratch.N[:m], scratch.remaining[:m], scratch.b[:m], scratch.active
    fast, slow, y = scratch.motions[0], scratch.motions[1], scratch.motions[2]
    stopping, leaves, pace = near.stopping, near.leaves, near.pace
    n = q.shape[0]
    observed[0], observed[1] = observe(chain, general, T_d, q, work)
    jacobian_there(chain, general, T_d, work)
    freeze(mobility, work.J)
    observe_singular_values(work, observed)
    e, J, free = state.scratch.e, state.scratch.J, state.scratch.free
    model = ErrorModel(e, J, scratch.e_left, scratch.J_free)
    copy(work.e, e)
    copy(work.e, model.e_left)
    copy_matrix(work.J, J)
    copy_matrix(work.J, model.J_free)
    scale_columns(mobility, work.J)
    general_step(chain, method, general, T_d, q, work)
    for j in range(n):
        state.limit_activation[j] = max(state.limit_activation[j], activation[j])
        work.dq[j] *= mobility[j] * (1.0 - outside[j])
        free[j] = freedom(chain, method, j, q[j], work.dq[j], activation[j]) * (1.0 - outside[j])
    if observed[0] <= stop.position_tolerance and observed[1] <= stop.rotation_tolerance:
        return True
    active.fill(-1)
    scale = velocity_scale(chain, dt, work.dq)
    for j in range(n):
        fast[j] = scale * work.dq[j]
    # The stopping time depends on the speed of the joints, and the speed that the bounds allow
    # depends on the stopping time. The first cycle with active rows solves the step three times:
    # for the longest stopping time, for an infinite one (no approach at all), and for a stopping
    # time in between. Later cycles start from the stopping time of the previous cycle.
    T = longest = stopping_time(stopping, dt, fast)
    passes, count = 3, 0
    if pace[0] >= 0.0:
        passes, T = 1, min(longest, pace[0] + dt)
        for i in range(m):
            if leaves[i, 3] == 1 and count < n:
                active[count] = i
                count += 1
    for i in range(passes):
        approach_bounds(stopping, dt, np.inf if i == 1 else T, remaining, b)
        if not _solve_with_rows(problem, q, model, scale, work, m, scratch):
            break
        trial = slow if i == 1 else fast
        scale = velocity_scale(chain, dt, work.dq)
        for j in range(n):
            trial[j] = scale * work.dq[j]
        _project(chain, dt, q, N, b, trial)
        if i == 1:
            T = _consistent_stopping_time(stopping, dt, slow, fast, longest)
        else:
            pace[0] = 0.5 * (T + stopping_time(stopping, dt, trial))
    if active[0] < 0:
        pace[0] = -1.0
    for i in range(m):
        leaves[i, 3] = 0
    for i in range(n):
        if active[i] < 0:
            break
        leaves[active[i], 3] = 1
    scratch.blocking_pair[0] = -1 if active[0] < 0 else scratch.pair[active[0]]
    _split_row_motion(N, active, work.dq, y)
    keep_from_overshooting(problem, q, model.e_left, model.J_free, work, observed, state.scratch)
    for j in range(n):
        work.dq[j] += y[j]
    keep_velocity(chain, dt, work.dq)
    save_motion(state.motion, state.scratch)
    keep_from_swinging(work.dq, state.motion)
    if m > 0:
        _project(chain, dt, q, N, b, work.dq)
        _discard_loose_rows(N, b, work.dq, leaves)
    if active[0] < 0:
        has_moved = descend(problem, q, work, observed, state.scratch)
    else:
        has_moved = _descend_along_rows(problem, q, work, observed, N, active, e, J)
    if not has_moved:
        restore_motion(state.motion, state.scratch)
    return has_moved


@allocating
def _descend_along_rows(
    problem: FollowProblem,
    q: Array,
    work: Workspace,
    observed: Array,
    N: Array,
    active: Indices,
    e: Array,
    J: Array,
) -> bool:
    """Run :func:`dls_ik.core.follow.descend`, but let the error grow where active rows require it.

    An active row can force the step to move away from an obstacle, which raises the error. To first
    order, the squared error grows by the multiplier of the row times the distance gained, and this
    growth is allowed. Without the allowance, the increase of a large error toward the obstacle
    would hide the decrease of a small error along the obstacle.

    Args:
        problem: Inputs of the step.
        q: (n,) joint positions [rad or m], read and written.
        work: Holds the step `dq`.
        observed: (4,) errors and singular values as in :class:`FollowState`; errors are written.
        N: (m, n) derivatives of the distances of close pairs of leaves, as unit vectors.
        active: Indices of the active rows of N; -1 ends the list.
        e: (r,) scaled error at q [m].
        J: (r, n) Jacobian of the scaled error at q.

    Returns:
        False if neither ``work.dq`` nor a shorter step in its direction lowers the error enough; q
        is then unchanged.
    """
    chain, general, stop, T_d = problem.chain, problem.general, problem.stop, problem.T_d
    n, count = q.shape[0], 0
    while active[count] >= 0:
        count += 1
    A, weight, force = np.empty((count, count)), np.empty(count), np.zeros(n)
    for i in range(e.shape[0]):
        left = e[i]
        for j in range(n):
            left -= J[i, j] * work.dq[j]
        for j in range(n):
            force[j] += J[i, j] * left
    for c in range(count):
        weight[c] = 0.0
        for j in range(n):
            weight[c] -= N[active[c], j] * force[j]
        for d in range(count):
            A[c, d] = GRAM_REGULARISATION if c == d else 0.0
            for j in range(n):
                A[c, d] += N[active[c], j] * N[active[d], j]
    factor(A, count, 0.0)
    solve_factored(A, count, weight)
    gain = 0.0
    for c in range(count):
        away = 0.0
        for j in range(n):
            away += N[active[c], j] * work.dq[j]
        gain += 2.0 * max(weight[c], 0.0) * max(away, 0.0)
    trial, error = np.empty(n), np.empty(2)
    enough, share = (1.0 - LEAST_RATE * problem.dt) * scaled_error(stop, observed), 1.0
    for _ in range(HALVINGS):
        for j in range(n):
            lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
            trial[j] = min(max(q[j] + share * work.dq[j], lower), upper)
        error[0], error[1] = observe(chain, general, T_d, trial, work)
        if scaled_error(stop, error) < enough + share * gain:
            copy(trial, q)
            observed[0], observed[1] = error[0], error[1]
            return True
        share *= 0.5
    return False


@kernel
def stopping_time(stopping: tuple[Array, float], dt: float, dq: Array) -> float:
    """Return the time [s] that the slowest joint needs to brake, at least MIN_STOPPING_TIME.

    Args:
        stopping: Braking accelerations (n,) of the joints [rad/s^2 or m/s^2], and the delay before
            they are reached [s], which is not used here.
        dt: Duration of a cycle [s].
        dq: (n,) motion of the joints in one cycle, dt times their velocities [rad or m].
    """
    T, acceleration = MIN_STOPPING_TIME, stopping[0]
    for j in range(dq.shape[0]):
        T = max(T, abs(dq[j]) / dt / acceleration[j])
    return T


@force_inline
def approach_share(stopping: tuple[Array, float], dt: float, T: float) -> float:
    """Return the share, 0 to 1, by which one step may reduce the excess over a minimum distance.

    With this share, the joints can still stop before the distance falls below the minimum.

    Args:
        stopping: Braking accelerations (n,) of the joints [rad/s^2 or m/s^2], which are not used
            here, and the delay before they are reached [s].
        dt: Duration of a cycle [s].
        T: Time that the joints need to brake [s].
    """
    return dt / (CYCLES * dt + 0.5 * STOPPING * (T + stopping[1]))


@kernel
def _consistent_stopping_time(
    stopping: tuple[Array, float], dt: float, slow: Array, fast: Array, longest: float
) -> float:
    """Return the time T [s] that the joints need to brake after the step that is allowed for T.

    The allowed step depends on T: the longer the joints need to brake, the less a step may approach
    an obstacle. The step is interpolated between `slow` and `fast`, and T is found by bisection.

    Args:
        stopping: Braking accelerations (n,) of the joints [rad/s^2 or m/s^2], and the delay before
            they are reached [s].
        dt: Duration of a cycle [s].
        slow: (n,) step that approaches no obstacle [rad or m].
        fast: (n,) step that is allowed if the joints need the time `longest` to brake [rad or m].
        longest: Upper bound of T [s].
    """
    low, high, most = 0.0, longest, approach_share(stopping, dt, longest)
    acceleration = stopping[0]
    for _ in range(12):
        T, needed = 0.5 * (low + high), MIN_STOPPING_TIME
        share = approach_share(stopping, dt, T) / most
        for j in range(slow.shape[0]):
            needed = max(needed, abs(slow[j] + share * (fast[j] - slow[j])) / dt / acceleration[j])
        if needed > T:
            low = T
        else:
            high = T
    return high


@kernel
def approach_bounds(
    stopping: tuple[Array, float], dt: float, T: float, remaining: Array, b: Array
) -> None:
    """Write the bounds b of the distance constraints N dq >= b on a step dq.

    The m rows of N (m, n) are unit vectors of joint motion along which the distances of close pairs
    grow, see :class:`NearRows`. After a step that satisfies the constraints, the joints can stop
    before a distance falls below its minimum.

    Args:
        stopping: Braking accelerations (n,) of the joints [rad/s^2 or m/s^2], and the delay before
            they are reached [s].
        dt: Duration of a cycle [s].
        T: Time that the joints need to brake [s].
        remaining: (m,) joint motion against each row of N after which the minimum distance is
            reached [rad or m]; negative if the distance is below the minimum.
        b: (m,) bounds, written [rad or m]: negative if the pair may approach, positive if it must
            separate.
    """
    share = approach_share(stopping, dt, T)
    for i in range(remaining.shape[0]):
        b[i] = -remaining[i] * share


@kernel
def _solve_with_rows(
    problem: FollowProblem,
    q: Array,
    model: ErrorModel,
    scale: float,
    work: Workspace,
    m: int,
    scratch: RowScratch,
) -> bool:
    """Solve the step ``work.dq`` again with the violated rows of N dq >= b as constraints.

    Args:
        problem: Inputs of the step.
        q: (n,) joint positions [rad or m].
        model: Error and Jacobian; `e_left` and `J_free` are written.
        scale: Factor that scales ``work.dq`` to the velocity limits.
        work: The step `dq` is read and written.
        m: Number of rows of the distance constraints.
        scratch: The first m rows of `N` and `b` are read, with b the lower bounds of N dq for dq =
            `scale` times ``work.dq``; `active` is read and written.

    Returns:
        Whether any row is active.
    """
    chain, method, general = problem.chain, problem.method, problem.general
    T_d, outside, mobility = problem.T_d, problem.outside, problem.mobility
    e, J, e_left, J_free = model
    N, b, active, taken = scratch.N, scratch.b, scratch.active, scratch.taken
    G, A, motions = scratch.G, scratch.A, scratch.motions
    y, force, z, x = motions[3], motions[4], motions[5], motions[6]
    n, r = N.shape[1], e.shape[0]
    taken.fill(0)  # number of times each row became active
    count, is_solved = 0, True
    while active[count] >= 0:
        taken[active[count]] = 1
        count, is_solved = count + 1, False
    for _ in range(4 * n + 4):
        # Find the row that is violated most.
        worst, most = -1, MAX_VIOLATION
        for i in range(m if is_solved and count < n else 0):
            along = 0.0
            for j in range(n):
                along += N[i, j] * work.dq[j]
            broken = b[i] - scale * along
            if broken > most and taken[i] < 2 and not _is_active(active, count, i):
                worst, most = i, broken
        # If no row is violated, find the active row from whose bound the error pulls the arm most.
        if worst < 0 and is_solved:
            leaves = -1
            if count > 0:
                for i in range(n):
                    force[i] = 0.0
                for i in range(r):
                    left = e[i]
                    for j in range(n):
                        left -= J[i, j] * work.dq[j]
                    for j in range(n):
                        force[j] += J[i, j] * left
                size = 0.0
                for c in range(count):
                    y[c] = 0.0
                    for j in range(n):
                        y[c] -= N[active[c], j] * force[j]
                        size = max(size, abs(force[j]))
                copy_block(G, A, count)
                factor(A, count, 0.0)
                solve_factored(A, count, y)
                least = -1e-9 * size
                for c in range(count):
                    if y[c] < least:
                        leaves, least = c, y[c]
            if leaves < 0:
                break
            for c in range(leaves, count - 1):
                active[c] = active[c + 1]
            count -= 1
        elif is_solved:
            active[count] = worst
            taken[worst] += 1
            count += 1
        is_solved = True
        # Compute z = N^+ b, J C and e - J z.
        for c in range(count):
            for d in range(count):
                G[c, d] = GRAM_REGULARISATION if c == d else 0.0
                for j in range(n):
                    G[c, d] += N[active[c], j] * N[active[d], j]
            y[c] = b[active[c]] / scale
        copy_block(G, A, count)
        factor(A, count, 0.0)
        solve_factored(A, count, y)
        for j in range(n):
            z[j] = 0.0
            for c in range(count):
                z[j] += N[active[c], j] * y[c]
        for i in range(r):
            e_left[i] = e[i]
            for j in range(n):
                e_left[i] -= J[i, j] * z[j]
            for j in range(n):
                J_free[i, j] = J[i, j]
            _remove_row_motion(N, active, count, A, y, J_free[i])
            for j in range(n):
                work.J[i, j] = mobility[j] * J_free[i, j]
            work.e[i] = e_left[i]
        general_step(chain, method, general, T_d, q, work)
        for j in range(n):
            x[j] = mobility[j] * work.dq[j] * (1.0 - outside[j])
        _remove_row_motion(N, active, count, A, y, x)
        for j in range(n):
            work.dq[j] = z[j] + x[j]
    active[count] = -1
    return count > 0


@kernel
def copy_block(A: Array, B: Array, k: int) -> None:
    """Copy the first k rows and columns of A to B."""
    for i in range(k):
        for j in range(k):
            B[i, j] = A[i, j]


@kernel
def _is_active(active: Indices, count: int, i: int) -> bool:
    """Return whether i is one of the first `count` indices in `active`."""
    for c in range(count):
        if active[c] == i:
            return True
    return False


@kernel
def _remove_row_motion(N: Array, active: Indices, count: int, A: Array, y: Array, x: Array) -> None:
    """Remove from x (n,) the motion along the active rows of N: multiply x by I - N^+ N.

    Args:
        N: (m, n) rows, of which only the active rows are used.
        active: Indices of the active rows.
        count: Number of active rows.
        A: Factored Gram matrix of the active rows.
        y: (count,) scratch.
        x: (n,) vector, read and written.
    """
    n = x.shape[0]
    for c in range(count):
        y[c] = 0.0
        for j in range(n):
            y[c] += N[active[c], j] * x[j]
    solve_factored(A, count, y)
    for c in range(count):
        for j in range(n):
            x[j] -= N[active[c], j] * y[c]


@allocating
def _split_row_motion(N: Array, active: Indices, dq: Array, y: Array) -> None:
    """Split a step into its component along the active rows of N and the orthogonal component.

    Args:
        N: (m, n) rows.
        active: Indices of the active rows; -1 ends the list.
        dq: (n,) step, replaced by its orthogonal component [rad or m].
        y: (n,) component of the step in the span of the active rows, written [rad or m].
    """
    n, count = dq.shape[0], 0
    while active[count] >= 0:
        count += 1
    A, weight = np.empty((count, count)), np.empty(count)
    for c in range(count):
        for d in range(count):
            A[c, d] = GRAM_REGULARISATION if c == d else 0.0
            for j in range(n):
                A[c, d] += N[active[c], j] * N[active[d], j]
    factor(A, count, 0.0)
    copy(dq, y)
    _remove_row_motion(N, active, count, A, weight, dq)
    for j in range(n):
        y[j] -= dq[j]


@allocating
def _project(chain: Chain, dt: float, q: Array, N: Array, b: Array, dq: Array) -> None:
    """Replace dq (n,) by the closest step that satisfies N dq >= b and the joint limits.

    The position and velocity limits must be satisfied in a cycle of `dt` [s]. Hildreth's method is
    used: it corrects one constraint after the other and stores a multiplier for each constraint.
    """
    m, n = N.shape
    low, high = np.empty(n), np.empty(n)
    for j in range(n):
        farthest = chain.velocity[j] * dt
        low[j] = max(-farthest, min(chain.lower[j] - q[j], 0.0))
        high[j] = min(farthest, max(chain.upper[j] - q[j], 0.0))
    worst = 0.0
    for i in range(m):
        along = 0.0
        for j in range(n):
            along += N[i, j] * dq[j]
        worst = max(worst, b[i] - along)
    if worst <= PROJECTION_TOLERANCE:
        return
    multiplier, at_low, at_high = np.zeros(m), np.zeros(n), np.zeros(n)
    for _ in range(MAX_PROJECTION_SWEEPS):
        change = 0.0
        for i in range(m):
            along = 0.0
            for j in range(n):
                along += N[i, j] * dq[j]
            step = max(b[i] - along, -multiplier[i])
            multiplier[i] += step
            change = max(change, abs(step))
            for j in range(n):
                dq[j] += step * N[i, j]
        for j in range(n):
            step = max(low[j] - dq[j], -at_low[j])
            at_low[j] += step
            dq[j] += step
            change = max(change, abs(step))
            step = max(dq[j] - high[j], -at_high[j])
            at_high[j] += step
            dq[j] -= step
            change = max(change, abs(step))
        if change <= PROJECTION_TOLERANCE:
            break


@kernel
def _discard_loose_rows(N: Array, b: Array, dq: Array, leaves: Indices) -> None:
    """Discard distance constraints that the step satisfies with a large margin.

    Row i of N dq >= b belongs to entry i of `leaves`. The entry is removed if N dq - b exceeds
    MAX_ROW_SLACK in row i.

    Args:
        N: (m, n) derivatives of the distances by the joint positions, as unit vectors.
        b: (m,) lower bounds of N dq [rad or m].
        dq: (n,) step [rad or m].
        leaves: List of the constraints, the field `leaves` of :class:`NearRows`; read and written.
    """
    kept = 0
    for i in range(N.shape[0]):
        along = 0.0
        for j in range(N.shape[1]):
            along += N[i, j] * dq[j]
        if along - b[i] < MAX_ROW_SLACK:
            for c in range(4):
                leaves[kept, c] = leaves[i, c]
            kept += 1
    if kept < leaves.shape[0]:
        leaves[kept, 0] = -1
