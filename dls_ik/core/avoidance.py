# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One cycle of following a target with minimum distances to obstacles and between links.

The approach of a pair of leaves along its normal is bounded so that the joints can stop in time
(velocity dampers, Faverjon & Tournassoud 1987): N dq >= b, one row per close pair of leaves. Rows
that the step would violate become constraints of higher priority in the formula of all methods,
dq = z + C P (e - J z) with z = N^+ b and C = I - N^+ N of the active rows. The arm therefore avoids
an obstacle by its redundancy before the tip deviates, and the tip deviates only along the normals.
An active-set method finds the constraints: the row violated most is added, and a row that the error
pulls away from its bound is removed.
"""

import numpy as np

from dls_ik.core.follow import (
    HALVINGS,
    LEAST_RATE,
    FollowProblem,
    descend,
    freedom,
    keep_from_overshooting,
    keep_from_swinging,
    keep_velocity,
    observe_singular_values,
    return_into_limits,
    velocity_scale,
)
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, factor, solve_factored
from dls_ik.core.near_pairs import MAX_CONTROLLED_PAIRS, near_rows
from dls_ik.core.scene_arrays import unpack_scene
from dls_ik.core.step import general_step
from dls_ik.core.task import jacobian_there, observe, scaled_error
from dls_ik.core.types import (
    Array,
    Chain,
    FollowState,
    GeneralProblem,
    Indices,
    Memory,
    Method,
    StopCriteria,
    Workspace,
)
from dls_ik.core.workspace import new_memory, workspace

MIN_STOPPING_TIME = 0.1  # [s] avoids jitter when the closest leaves alternate
# The distance left suffices for a stop of STOPPING times the stopping time after CYCLES cycles.
STOPPING, CYCLES = 1.1, 2.0
MAX_ROW_SLACK = 5e-3  # [rad or m] rows with more slack after a step are discarded
GRAM_REGULARISATION = 1e-9  # added to the diagonal of Gram matrices, because unit rows may be equal
MAX_PROJECTION_SWEEPS, PROJECTION_TOLERANCE = 60, 1e-10  # final projection; [rad or m]
MAX_VIOLATION = 1e-9  # [rad or m] tolerated violation of a row


@allocating
def follow_apart(
    chain: Chain,
    method: Method,
    general: GeneralProblem,
    descending: Method,
    plain: GeneralProblem,
    stop: StopCriteria,
    T_d: Array,
    dt: float,
    followed: tuple[Array, Array, Memory, Array, Array],
    scene: tuple[Array, Indices],
    reach: Array,
    least: Array,
    known: tuple[Array, Array],
    watched: tuple[Array, Array, Indices],
    stopping: tuple[Array, float],
    influence: float,
    leaves: Indices,
    pace: Array,
) -> int:
    """Run :func:`dls_ik.core.follow.follow` with minimum distances for the pairs of a scene.

    Args:
        scene, reach, known: As in :func:`dls_ik.core.certificate.certify`, for the reference.
        least: (p + s,) minimum distance of each pair [m].
        watched: As in :func:`dls_ik.core.near_pairs.near_rows`, for the command.
        stopping: (n,) accelerations of a stop [rad/s^2 or m/s^2], infinite without a limit, and the
            delay until the joints reach these accelerations [s].
        influence: Distance within which pairs are considered [m].
        leaves: (MAX_CONTROLLED_PAIRS, 4) for each row of the previous cycle: pair, two leaves, and
            1 if the row was active. -1 in the first column ends the list. Read and written.
        pace: (1,) stopping time in the previous cycle [s], -1 if no row was active; read and
            written.

    Returns:
        The pair of the first active row, -1 without an active row.
    """
    state = FollowState(*followed)
    observed = state.observed
    arrays = unpack_scene(scene[0], scene[1])
    n = state.q.shape[0]
    work = workspace(chain, general, state.memory)
    outside = return_into_limits(chain, dt, state.q)
    copy(outside, state.limit_activation)
    N, room, pair = (
        np.empty((MAX_CONTROLLED_PAIRS, n)),
        np.empty(MAX_CONTROLLED_PAIRS),
        np.empty(MAX_CONTROLLED_PAIRS, np.int64),
    )
    count = near_rows(arrays, reach, least, known, watched, state.q, influence, leaves, N, room,
                      pair)  # fmt: skip
    hindering = np.full(1, -1)
    rows = (N[:count], room[:count], pair[:count])
    problem = FollowProblem(chain, method, general, stop, T_d, dt, outside)
    if _step(problem, state, work, rows, stopping, leaves, pace, hindering):
        return hindering[0]
    least, greatest = observed[2], observed[3]
    work = workspace(chain, plain, new_memory(chain, descending, plain))
    problem = FollowProblem(chain, descending, plain, stop, T_d, dt, outside)
    _step(problem, state, work, rows, stopping, leaves, pace, hindering)
    observed[2], observed[3] = least, greatest
    return hindering[0]


# The step -----------------------------------------------------------------------------------------


@allocating
def _step(
    problem: FollowProblem,
    state: FollowState,
    work: Workspace,
    rows: tuple[Array, Array, Indices],
    stopping: tuple[Array, float],
    leaves: Indices,
    pace: Array,
    hindering: Indices,
) -> bool:
    """Move ``state.q`` by one step of a method; return False if no step lowers the error."""
    chain, method, general, stop, T_d, dt, outside = problem
    q, observed, activation = state.q, state.observed, work.limit.activation
    N, room, pair = rows
    n, m = q.shape[0], N.shape[0]
    observed[0], observed[1] = observe(chain, general, T_d, q, work)
    jacobian_there(chain, general, T_d, work)
    observe_singular_values(work, observed)
    e, J, free = work.e.copy(), work.J.copy(), np.empty(n)
    e_left, J_free = e.copy(), J.copy()
    general_step(chain, method, general, T_d, q, work)
    for j in range(n):
        state.limit_activation[j] = max(state.limit_activation[j], activation[j])
        work.dq[j] *= 1.0 - outside[j]
        free[j] = freedom(chain, method, j, q[j], work.dq[j], activation[j]) * (1.0 - outside[j])
    if observed[0] <= stop.position_tolerance and observed[1] <= stop.rotation_tolerance:
        return True
    b, active = np.empty(m), np.full(n + 1, -1)
    fast, slow, y = np.empty(n), np.empty(n), np.empty(n)
    scale = velocity_scale(chain, dt, work.dq)
    for j in range(n):
        fast[j] = scale * work.dq[j]
    # The stopping time depends on the speed, and the allowed speed on the stopping time. The first
    # cycle solves the step for the longest stopping time, for no approach at all, and then for a
    # stopping time in between. Later cycles start from the stopping time of the previous cycle.
    T = longest = stopping_time(stopping, dt, fast)
    passes, count = 3, 0
    if pace[0] >= 0.0:
        passes, T = 1, min(longest, pace[0] + dt)
        for i in range(m):
            if leaves[i, 3] == 1 and count < n:
                active[count] = i
                count += 1
    for i in range(passes):
        approach_bounds(stopping, dt, np.inf if i == 1 else T, room, b)
        if not _solve_apart(problem, q, e, J, e_left, J_free, N, b, scale, work, active):
            break
        trial = slow if i == 1 else fast
        scale = velocity_scale(chain, dt, work.dq)
        for j in range(n):
            trial[j] = scale * work.dq[j]
        _project(chain, dt, q, N, b, trial)
        if i == 1:
            T = _time_between(stopping, dt, slow, fast, longest)
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
    hindering[0] = -1 if active[0] < 0 else pair[active[0]]
    _take_along(N, active, work.dq, y)
    keep_from_overshooting(problem, q, e_left, J, J_free, free, work, observed)
    for j in range(n):
        work.dq[j] += y[j]
    keep_velocity(chain, dt, work.dq)
    keep_from_swinging(work.dq, state.motion)
    if m > 0:
        _project(chain, dt, q, N, b, work.dq)
        _forget_loose(N, b, work.dq, leaves)
    if active[0] < 0:
        return descend(problem, q, work, observed)
    return _descend_beside(problem, q, work, observed, N, active, e, J)


@allocating
def _descend_beside(
    problem: FollowProblem,
    q: Array,
    work: Workspace,
    observed: Array,
    N: Array,
    active: Indices,
    e: Array,
    J: Array,
) -> bool:
    """Run :func:`dls_ik.core.follow.descend`, with an allowance for the active rows.

    The squared error may grow by the multipliers of the rows times the distances gained, the cost
    of these distances to first order. Without this allowance, a large error toward the obstacle
    would hide a small error along the obstacle.

    Args:
        N: (m, n) rows.
        active: Indices of the active rows; -1 ends the list.
        e: (r,) scaled error at q.
        J: (r, n) scaled Jacobian at q.

    Returns:
        False if no share of ``work.dq`` lowers the error enough.
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
    """Return the time [s] to stop joints that move by dq (n,) per cycle."""
    T, acceleration = MIN_STOPPING_TIME, stopping[0]
    for j in range(dq.shape[0]):
        T = max(T, abs(dq[j]) / dt / acceleration[j])
    return T


@force_inline
def approach_share(stopping: tuple[Array, float], dt: float, T: float) -> float:
    """Return the share of the remaining distance that a step may use, for a stopping time T [s]."""
    return dt / (CYCLES * dt + 0.5 * STOPPING * (T + stopping[1]))


@kernel
def _time_between(
    stopping: tuple[Array, float], dt: float, slow: Array, fast: Array, longest: float
) -> float:
    """Return the stopping time [s] that is consistent with the speed it allows, by bisection.

    Args:
        slow: (n,) step without any approach.
        fast: (n,) step for the longest stopping time.
        longest: Longest stopping time [s].
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
    stopping: tuple[Array, float], dt: float, T: float, room: Array, b: Array
) -> None:
    """Write the minimum motion along each row: a stop after it ends within the distance left.

    Args:
        T: Stopping time [s].
        room: (m,) distance left along each row [rad or m].
        b: (m,) bounds, written [rad or m].
    """
    share = approach_share(stopping, dt, T)
    for i in range(room.shape[0]):
        b[i] = -room[i] * share


@allocating
def _solve_apart(
    problem: FollowProblem,
    q: Array,
    e: Array,
    J: Array,
    e_left: Array,
    J_free: Array,
    N: Array,
    b: Array,
    scale: float,
    work: Workspace,
    active: Indices,
) -> bool:
    """Solve the step again with the violated rows as constraints.

    Args:
        e: (r,) scaled error.
        J: (r, n) scaled Jacobian.
        e_left: (r,) e - J z, written.
        J_free: (r, n) J C, written.
        N: (m, n) rows.
        b: (m,) minimum motion along the rows, for the share `scale` of a step.
        active: (n + 1,) indices of the active rows; -1 ends the list. Read and written.

    Returns:
        Whether any row is active.
    """
    chain, method, general = problem.chain, problem.method, problem.general
    T_d, outside = problem.T_d, problem.outside
    m, n, r = N.shape[0], N.shape[1], e.shape[0]
    taken = np.zeros(m, np.int64)  # number of times each row was added
    G, A, y, force = np.empty((n, n)), np.empty((n, n)), np.empty(n), np.empty(n)
    z, x = np.empty(n), np.empty(n)
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
            if broken > most and taken[i] < 2 and not _holds(active, count, i):
                worst, most = i, broken
        # Otherwise find the active row that the error pulls away from its bound most.
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
            _take_off(N, active, count, A, y, J_free[i])
            for j in range(n):
                work.J[i, j] = J_free[i, j]
            work.e[i] = e_left[i]
        general_step(chain, method, general, T_d, q, work)
        for j in range(n):
            x[j] = work.dq[j] * (1.0 - outside[j])
        _take_off(N, active, count, A, y, x)
        for j in range(n):
            work.dq[j] = z[j] + x[j]
    active[count] = -1
    return count > 0


@kernel
def copy_block(A: Array, B: Array, k: int) -> None:
    """Copy the leading k x k block of A to B."""
    for i in range(k):
        for j in range(k):
            B[i, j] = A[i, j]


@kernel
def _holds(active: Indices, count: int, i: int) -> bool:
    """Return whether row i is among the first `count` active rows."""
    for c in range(count):
        if active[c] == i:
            return True
    return False


@kernel
def _take_off(N: Array, active: Indices, count: int, A: Array, y: Array, x: Array) -> None:
    """Multiply x (n,) by I - N^+ N of the active rows, given the factored Gram matrix A."""
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
def _take_along(N: Array, active: Indices, dq: Array, y: Array) -> None:
    """Move the part of dq (n,) along the active rows of N (m, n) to y (n,)."""
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
    _take_off(N, active, count, A, weight, dq)
    for j in range(n):
        y[j] -= dq[j]


@allocating
def _project(chain: Chain, dt: float, q: Array, N: Array, b: Array, dq: Array) -> None:
    """Move dq (n,) to the closest step that satisfies all rows and the joint limits.

    Hildreth's method corrects one row after the other and keeps a multiplier for each.
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
def _forget_loose(N: Array, b: Array, dq: Array, leaves: Indices) -> None:
    """Discard leaves whose rows are far from restricting the step dq (n,)."""
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
