# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Motion by a stack of tasks: the search for a configuration, and the motion in a stream.

Each step solves the linear equations of all levels with strict priorities (core/hierarchy.py). A
linear step of a lower level changes the errors of the levels above by terms of second order;
corrections remove this change.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.boxes import Boxed
from dls_ik.core.hierarchy import Bounds, solve_levels
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.stack import ROW_OBJECTIVE, StackParams, stack_rows
from dls_ik.core.types import Array

MAX_DRIFT_CORRECTIONS = 3  # maximum number of corrections of a step, or of a halved step
LARGEST_STEP = 0.5  # [rad or m] largest joint step of a search
SMALLEST_SEARCH_STEP = 1e-10  # [rad or m] a search ends if the largest joint step is shorter
LEVEL_TOLERANCE = 1e-9  # norm of the scaled error of a level up to which it counts as zero
NEGLIGIBLE_CHANGE = 1e-13  # relative change of the cost of a level that counts as no change
HIGHEST_DRIFT = 1e-8  # largest change of the first level's scaled error by the lower levels
BRAKING_SHARE = 0.25  # share of the acceleration limits for braking before a joint limit
MAX_DRIFT_HALVINGS = 5  # maximum number of halvings of a step that exceeds HIGHEST_DRIFT


class StackLimits(NamedTuple):
    """Limits of the motion that the lower levels add in a stream."""

    lower: Array  # (n,) lower joint limits [rad or m]
    upper: Array  # (n,) upper joint limits [rad or m]
    velocity: Array  # (n,) limits of the whole motion; 0 for frozen joints [rad/s or m/s]
    acceleration: Array  # (n,) limits of the added motion [rad/s^2 or m/s^2]
    rate: float  # share of the error of a lower level that is removed per time [1/s]


class StackState(NamedTuple):
    """Motion that the lower levels add in a stream; updated in place in each cycle."""

    velocity: Array  # (n,) velocity that they added in the last cycle [rad/s or m/s]
    # (l,) norm of the scaled error of each level without objectives; NaN if it has nothing else
    residual: Array


@allocating
def search_levels(
    box: Boxed[StackParams], T_d: Array, q: Array, max_iterations: int, e: Array, cost: Array
) -> int:
    """Minimise the errors of all levels by priority, within the joint limits.

    Unless `max_iterations` ends the search, the result is a local minimum: no small step reduces
    the error of a level without a larger error on a level above. Each iteration is a Gauss-Newton
    step within a trust region.

    Args:
        box: The tasks.
        T_d: (k, 4, 4) desired poses of the frames.
        q: (n,) start within the limits, overwritten by the result [rad or m].
        max_iterations: Maximum number of iterations.
        e: (m,) scaled errors of all rows at the result, written.
        cost: (l,) cost of each level, see :func:`dls_ik.core.stack.stack_rows`; written.

    Returns:
        The number of iterations.
    """
    stack = box.record
    m, n = stack.kind.shape[0], q.shape[0]
    lower, upper = stack.frames.lower, stack.frames.upper
    A, e_new, A_new = np.empty((m, n)), np.empty(m), np.empty((m, n))
    low, high, x, trial = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    new, last = np.empty(cost.shape[0]), stack.ends[stack.ends.shape[0] - 2]
    if stack.ends.shape[0] == 1:
        last = m
    bounds = Bounds(np.eye(n), low, high)
    radius = LARGEST_STEP
    stack_rows(stack, T_d, q, e, A, cost)
    for iteration in range(max_iterations):
        for j in range(n):
            low[j] = min(max(lower[j] - q[j], -radius), 0.0)
            high[j] = max(min(upper[j] - q[j], radius), 0.0)
            x[j] = 0.0
        solve_levels(A, e, stack.ends, bounds, x)
        size = _apply(q, x, trial)
        if size < SMALLEST_SEARCH_STEP:
            return iteration
        stack_rows(stack, T_d, trial, e_new, A_new, new)
        if last < m:
            for _ in range(MAX_DRIFT_CORRECTIONS):
                if not _correct(stack, e_new, A_new, last, bounds, q, x, trial):
                    break
                stack_rows(stack, T_d, trial, e_new, A_new, new)
        order = compare_levels(new, cost)
        if order > 0:
            q[:], cost[:], e[:], A[:] = trial, new, e_new, A_new
            radius = min(2.0 * radius, LARGEST_STEP)
        else:
            radius = 0.25 * min(size, radius)
            if order == 0 or radius < SMALLEST_SEARCH_STEP:
                return iteration
    return max_iterations


@kernel
def _apply(q: Array, x: Array, trial: Array) -> float:
    """Write q + x to `trial`; return the largest absolute entry of x. All arrays are (n,)."""
    size = 0.0
    for j in range(q.shape[0]):
        trial[j] = q[j] + x[j]
        size = max(size, abs(x[j]))
    return size


@allocating
def _correct(
    stack: StackParams,
    e: Array,
    A: Array,
    last: int,
    bounds: Bounds,
    q: Array,
    x: Array,
    trial: Array,
) -> bool:
    """Reduce the errors of all levels but the last, and change the last as little as possible.

    Args:
        stack: The tasks.
        e: (m,) errors at `trial`.
        A: (m, n) Jacobians at `trial`.
        last: Index of the first row of the last level.
        bounds: Bounds on the whole step x.
        q: (n,) joint positions before the step [rad or m].
        x: (n,) whole step, changed.
        trial: (n,) joint positions after the step, changed [rad or m].

    Returns:
        False if the errors are so small that no correction was made.
    """
    n, square = q.shape[0], 0.0
    left = np.zeros(e.shape[0])
    for i in range(last):
        left[i] = e[i]
        square += e[i] * e[i]
    if square <= 1e-4 * LEVEL_TOLERANCE * LEVEL_TOLERANCE:
        return False
    y = np.zeros(n)
    solve_levels(A, left, stack.ends, remaining_bounds(bounds, x), y)
    for j in range(n):
        x[j] += y[j]
        trial[j] = q[j] + x[j]
    return True


@allocating
def remaining_bounds(bounds: Bounds, x: Array) -> Bounds:
    """Return the bounds on what may be added to a step x (n,); zero satisfies them."""
    C, low, high = bounds
    below, above = np.empty(low.shape[0]), np.empty(low.shape[0])
    for c in range(low.shape[0]):
        value = 0.0
        for j in range(x.shape[0]):
            value += C[c, j] * x[j]
        below[c], above[c] = min(low[c] - value, 0.0), max(high[c] - value, 0.0)
    return Bounds(C, below, above)


@kernel
def compare_levels(new: Array, old: Array) -> int:
    """Return 1 if the costs `new` (l,) are smaller than `old` by priority, -1 if larger, else 0.

    The first level that differs decides.
    """
    for k in range(old.shape[0]):
        small = 0.5 * LEVEL_TOLERANCE * LEVEL_TOLERANCE
        if abs(new[k]) <= small and abs(old[k]) <= small:
            continue
        change = new[k] - old[k]
        if abs(change) > NEGLIGIBLE_CHANGE * max(abs(old[k]), abs(new[k])):
            return 1 if change < 0.0 else -1
    return 0


@allocating
def add_levels(
    box: Boxed[StackParams],
    limits: Boxed[StackLimits],
    moved: Boxed[StackState],
    T_d: Array,
    before: Array,
    q: Array,
    dt: float,
    near: tuple[Array, Array],
) -> None:
    """Add the motion of the lower levels to a step of the first level, for one control cycle.

    The first level, the task of the tips, has already made its step by the chosen IK method. The
    lower levels move within what remains of the velocity limits, and change the error of the first
    level by at most HIGHEST_DRIFT. The added velocity changes by at most the acceleration limit
    times dt, unless limits or the first level require less motion. Within these limits, errors
    decrease exponentially; velocities are at most the acceleration limit divided by the rate.

    Args:
        box: The tasks.
        limits: Limits of the motion.
        moved: State of the motion, read and written.
        T_d: (k, 4, 4) desired poses of the frames.
        before: (n,) joint positions before the cycle [rad or m].
        q: (n,) joint positions after the step of the first level, changed [rad or m].
        dt: Duration of the cycle [s].
        near: Rows N (c, n) and lower bounds (c,) on N dq of the whole motion dq of the cycle, which
            keep distances between links and objects.
    """
    stack, within, state = box.record, limits.record, moved.record
    m, n, first = stack.kind.shape[0], q.shape[0], stack.ends[0]
    e, A, cost = np.empty(m), np.empty((m, n)), np.empty(stack.ends.shape[0])
    e_new, A_new, trial = np.empty(m), np.empty((m, n)), np.empty(n)
    stack_rows(stack, T_d, q, e, A, cost)
    x, bounds = start_and_bounds(within, state, before, q, dt, near)
    b, share = np.zeros(m), min(1.0, within.rate * dt)
    for i in range(first, m):
        b[i] = share * e[i]
    solve_levels(A, b, stack.ends, bounds, x)
    for halving in range(MAX_DRIFT_HALVINGS + 1):
        drift = 0.0
        for correction in range(MAX_DRIFT_CORRECTIONS + 1):
            _apply(q, x, trial)
            stack_rows(stack, T_d, trial, e_new, A_new, cost)
            drift = 0.0
            for i in range(m):
                b[i] = e_new[i] - e[i] if i < first else 0.0
                drift += b[i] * b[i]
            drift = sqrt(drift)
            if drift <= 1e-3 * HIGHEST_DRIFT or correction == MAX_DRIFT_CORRECTIONS:
                break
            y = np.zeros(n)
            solve_levels(A_new, b, stack.ends, remaining_bounds(bounds, x), y)
            for j in range(n):
                x[j] += y[j]
        if drift <= HIGHEST_DRIFT or halving == MAX_DRIFT_HALVINGS:
            break
        for j in range(n):
            x[j] *= 0.5
    if drift > HIGHEST_DRIFT:
        for j in range(n):
            x[j] = 0.0
        _apply(q, x, trial)
        stack_rows(stack, T_d, trial, e_new, A_new, cost)
    for j in range(n):
        q[j] = min(max(trial[j], min(within.lower[j], q[j])), max(within.upper[j], q[j]))
        state.velocity[j] = x[j] / dt
    start = 0
    for level in range(stack.ends.shape[0]):
        square, count = 0.0, 0
        for i in range(start, stack.ends[level]):
            if stack.kind[i] != ROW_OBJECTIVE:
                square += e_new[i] * e_new[i]
                count += 1
        state.residual[level] = sqrt(square) if count > 0 else np.nan
        start = stack.ends[level]


@allocating
def start_and_bounds(
    limits: StackLimits,
    state: StackState,
    before: Array,
    q: Array,
    dt: float,
    near: tuple[Array, Array],
) -> tuple[Array, Bounds]:
    """Return an initial value for the step of the lower levels, and the bounds on the step.

    The start is the motion of the last cycle, shortened as far as the acceleration limits allow.

    Args:
        limits: Limits of the motion.
        state: State of the motion.
        before: (n,) joint positions before the cycle [rad or m].
        q: (n,) joint positions after the step of the first level [rad or m].
        dt: Duration of the cycle [s].
        near: Rows and bounds of near pairs, see :func:`add_levels`.

    Returns:
        The start x (n,), and the bounds on the step.
    """
    n, N = q.shape[0], near[0]
    count = N.shape[0]
    C, x = np.zeros((n + count, n)), np.empty(n)
    low, high = np.empty(n + count), np.empty(n + count)
    for j in range(n):
        C[j, j] = 1.0
        made, farthest = q[j] - before[j], limits.velocity[j] * dt
        # Compute the largest steps from which the joint can still brake before its limits.
        braking = BRAKING_SHARE * 2.0 * limits.acceleration[j]
        below = -sqrt(braking * max(q[j] - limits.lower[j], 0.0)) * dt
        above = sqrt(braking * max(limits.upper[j] - q[j], 0.0)) * dt
        low[j] = min(max(-farthest - made, limits.lower[j] - q[j], below), 0.0)
        high[j] = max(min(farthest - made, limits.upper[j] - q[j], above), 0.0)
        change = limits.acceleration[j] * dt * dt
        last, cap = state.velocity[j] * dt, limits.acceleration[j] / limits.rate * dt
        least, most = max(low[j], -cap, last - change), min(high[j], cap, last + change)
        x[j] = max(last - change, 0.0) if last > 0.0 else min(last + change, 0.0)
        x[j] = min(max(x[j], low[j]), high[j])
        low[j], high[j] = min(least, x[j]), max(most, x[j])
    for c in range(count):
        made, added = 0.0, 0.0
        for j in range(n):
            C[n + c, j] = N[c, j]
            made += N[c, j] * (q[j] - before[j])
            added += N[c, j] * x[j]
        low[n + c], high[n + c] = min(near[1][c] - made, added), np.inf
    return x, Bounds(C, low, high)
