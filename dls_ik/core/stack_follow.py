# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One control cycle in which all levels of a stack of tasks follow moving targets.

core/stack_motion.py adds lower levels to the step of an IK method. Here every level is a level of
the hierarchy, so that a relative pose of two tips may stand above the pose of a tip. The step keeps
the acceleration limits, so that the command can follow it without deviation: a deviation of single
joints would change the errors of all levels.

The error of a level has two parts. The step removes the error due to the motion of the targets in
this cycle at once. It reduces the error that remains from earlier cycles at a speed from which the
joints can still brake before the error is zero.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.boxes import Boxed
from dls_ik.core.hierarchy import Bounds, factor_rows, longest_row, product, solve_level
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.kinematics import compose, forward
from dls_ik.core.se3 import norm3, pose_error
from dls_ik.core.stack import ROW_FRAME, ROW_LINEAR, ROW_OBJECTIVE, StackParams, stack_rows
from dls_ik.core.stack_motion import StackLimits, StackState, start_and_bounds
from dls_ik.core.types import Array, Chain, Indices

BRAKING_ESTIMATE = 0.3  # share of the acceleration limits for braking before an error is zero
# Damping of a level, lambda^2 = share * |e| * (longest row), bounds steps near singular
# configurations, in which the curvature of the error is not negligible. The share grows with the
# share of the error that a step removes.
MIN_DAMPING_SHARE, DAMPING_GROWTH = 0.3, 0.7
NEGLIGIBLE_DAMPING = 1e-5  # smaller lambda^2 / (longest row)^2 are ignored
MIDPOINT_STEP = 2e-3  # [rad or m] longer steps use the Jacobian in the middle of the step
HELD_DISTANCE = 1e-4  # [rad or m] a joint closer to its limit counts as held


class LevelLimits(NamedTuple):
    """Limits of the motion of all levels, and the mobility of the joints."""

    motion: StackLimits  # limits of the whole motion
    mobility: Array  # (n,) 1 / sqrt(weight) of each joint, 0 for frozen joints
    rate: float  # share of the error of a task without a frame that is removed per time [1/s]


class LevelState(NamedTuple):
    """State of the motion of all levels; updated in place in each cycle."""

    motion: StackState  # velocity of the last cycle, and residuals of the levels
    error: Array  # (m,) scaled errors of all rows after the last cycle
    known: Array  # (1,) 1 if `error` is that of the last cycle, else 0
    frame_errors: Array  # (k, 2) position [m] and rotation error [rad] of each frame
    held: Array  # (n,) 1 for joints at a position limit, else 0


@allocating
def follow_levels(
    box: Boxed[StackParams],
    limits: Boxed[LevelLimits],
    followed: Boxed[LevelState],
    T_d: Array,
    q: Array,
    dt: float,
    near: tuple[Array, Array],
) -> None:
    """Move the joint positions toward the targets of all levels, for one control cycle.

    A joint beyond a position limit returns toward this limit at its maximum velocity.

    Args:
        box: The tasks.
        limits: Limits of the motion.
        followed: State of the motion, read and written.
        T_d: (k, 4, 4) desired poses of the frames.
        q: (n,) joint positions, read and written [rad or m].
        dt: Duration of the cycle [s].
        near: Rows N (c, n) and lower bounds (c,) on N dq, which keep distances between links and
            objects.
    """
    stack, within, state = box.record, limits.record, followed.record
    motion, mobility, velocity = within.motion, within.mobility, state.motion.velocity
    m, n, levels = stack.kind.shape[0], q.shape[0], stack.ends.shape[0]
    e, A, cost = np.empty(m), np.empty((m, n)), np.empty(levels)
    outside = _return(motion, dt, q, velocity)
    stack_rows(stack, T_d, q, e, A, cost)
    middle, longest = np.empty(n), 0.0
    for j in range(n):
        middle[j] = q[j] + 0.5 * velocity[j] * dt
        longest = max(longest, abs(velocity[j]) * dt)
    if longest > MIDPOINT_STEP:
        stack_rows(stack, T_d, middle, np.empty(m), A, cost)
    x, bounds = start_and_bounds(motion, state.motion, q, q, dt, near)
    for j in range(n):
        if outside[j] > 0.0:
            bounds.low[j], bounds.high[j] = x[j], x[j]
        x[j] = x[j] / mobility[j] if mobility[j] > 0.0 else 0.0
        for i in range(m):
            A[i, j] *= mobility[j]
        for c in range(bounds.C.shape[0]):
            bounds.C[c, j] *= mobility[j]
    _solve(stack, within, state, e, A, dt, bounds, x)
    for j in range(n):
        after = q[j] + mobility[j] * x[j]
        after = min(max(after, min(motion.lower[j], q[j])), max(motion.upper[j], q[j]))
        velocity[j], q[j] = (after - q[j]) / dt, after
        at_limit = min(after - motion.lower[j], motion.upper[j] - after) < HELD_DISTANCE
        state.held[j] = 1.0 if at_limit else 0.0
    stack_rows(stack, T_d, q, state.error, A, cost)
    state.known[0] = 1.0
    frame_errors(stack.frames, stack.reference, T_d, q, state.frame_errors)
    start = 0
    for level in range(levels):
        square, count = 0.0, 0
        for i in range(start, stack.ends[level]):
            if stack.kind[i] != ROW_OBJECTIVE:
                square += state.error[i] * state.error[i]
                count += 1
        state.motion.residual[level] = sqrt(square) if count > 0 else np.nan
        start = stack.ends[level]


@allocating
def _return(limits: StackLimits, dt: float, q: Array, velocity: Array) -> Array:
    """Move joints beyond a position limit toward it; return (n,) 1 for these joints, else 0.

    Args:
        limits: Limits of the motion.
        dt: Duration of the cycle [s].
        q: (n,) joint positions, changed [rad or m].
        velocity: (n,) velocity of the last cycle; set to zero for these joints.
    """
    outside = np.zeros(q.shape[0])
    for j in range(q.shape[0]):
        path = min(max(q[j], limits.lower[j]), limits.upper[j]) - q[j]
        if path != 0.0:
            farthest = limits.velocity[j] * dt
            q[j] += min(max(path, -farthest), farthest)
            outside[j], velocity[j] = 1.0, 0.0
    return outside


@allocating
def _solve(
    stack: StackParams,
    within: LevelLimits,
    state: LevelState,
    e: Array,
    A: Array,
    dt: float,
    bounds: Bounds,
    x: Array,
) -> None:
    """Solve all levels with strict priorities within bounds.

    Args:
        stack: The tasks.
        within: Limits of the motion.
        state: State of the motion.
        e: (m,) scaled errors.
        A: (m, n) Jacobians, with columns multiplied by the mobility.
        dt: Duration of the cycle [s].
        bounds: Bounds on the step.
        x: (n,) start within the bounds, overwritten by the step; both divided by the mobility.
    """
    n, start, Z = x.shape[0], 0, np.eye(x.shape[0])
    acceleration = np.empty(n)
    for j in range(n):
        mobility = within.mobility[j]
        acceleration[j] = within.motion.acceleration[j] / mobility if mobility > 0.0 else np.inf
    for level in range(stack.ends.shape[0]):
        end = stack.ends[level]
        r, p = end - start, Z.shape[1]
        if p == 0:
            break
        if r == 0:
            continue
        rows = A[start:end]
        length = longest_row(rows)
        b = np.empty(r)
        square = _desired(stack, state, (start, within.rate, dt), e, rows, acceleration, b)
        extra = n if square > NEGLIGIBLE_DAMPING * length * length else 0
        B, c = np.zeros((r + extra, n)), np.zeros(r + extra)
        for i in range(r):
            c[i] = b[i]
            for j in range(n):
                B[i, j] = rows[i, j]
        for j in range(extra):
            B[r + j, j] = sqrt(square)
        least = 1e-10 * length
        solve_level(B, c, product(B, Z), least, Z, bounds, x)
        if level < stack.ends.shape[0] - 1:
            G, Q, order = product(rows, Z), np.empty((p, p)), np.empty(r, np.int64)
            rank = factor_rows(G, least, Q, order)
            Z = product(Z, Q[:, rank:])
        start = end


@kernel
def _desired(
    stack: StackParams,
    state: LevelState,
    timing: tuple[int, float, float],
    e: Array,
    rows: Array,
    acceleration: Array,
    b: Array,
) -> float:
    """Write the change of the errors of a level that is desired in this cycle.

    Args:
        stack: The tasks.
        state: Gives the errors after the last cycle.
        timing: Index of the first row of the level; share of the error of a task without a frame
            that is removed per time [1/s]; duration of the cycle [s].
        e: (m,) scaled errors of all levels.
        rows: (r, n) Jacobian of the level.
        acceleration: (n,) acceleration limits.
        b: (r,) desired change, written.

    Returns:
        The square of the damping factor of the level.
    """
    (first, rate, dt), (r, n) = timing, rows.shape
    square, curved = 0.0, False
    for i in range(r):
        k = first + i
        # The error after the last cycle is what remains of earlier errors.
        b[i] = e[k] if state.known[0] == 0.0 else state.error[k]
        square += b[i] * b[i]
        is_linear = stack.kind[k] == ROW_LINEAR or stack.kind[k] == ROW_OBJECTIVE
        curved = curved or not is_linear
    size = sqrt(square)
    if size == 0.0:
        for i in range(r):
            b[i] = e[first + i]
        return 0.0
    # Along the gradient g = J^T e / |e|, the error changes by |g|^2 per unit of the motion g.
    along, hardest = 0.0, 0.0
    for j in range(n):
        g = 0.0
        for i in range(r):
            g += rows[i, j] * b[i] / size
        along += g * g
        hardest = max(hardest, abs(g) / acceleration[j])
    share = 1.0
    if hardest > 0.0:
        share = min(1.0, dt * sqrt(2.0 * BRAKING_ESTIMATE * along / hardest / size))
    for i in range(r):
        k, left = first + i, b[i]
        moved = e[k] - left
        part = share if stack.kind[k] == ROW_FRAME else min(share, rate * dt)
        b[i] = moved + part * left
    if not curved:
        return 0.0
    return (MIN_DAMPING_SHARE + DAMPING_GROWTH * share) * size * longest_row(rows)


@allocating
def frame_errors(chain: Chain, reference: Indices, T_d: Array, q: Array, errors: Array) -> None:
    """Write the position error [m] and the rotation error [rad] of each frame.

    Args:
        chain: Chain whose k tips are the frames.
        reference: (k,) index of the frame in which a desired pose is given, -1 for the base.
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        errors: (k, 2) written.
    """
    k = errors.shape[0]
    axes, T = np.empty((chain.prismatic.shape[0], 2, 3)), np.empty((k, 3, 4))
    forward(chain, q, axes, T)
    target, relative, e = np.empty((3, 4)), np.empty((3, 3)), np.empty(6)
    for p in range(k):
        if reference[p] < 0:
            target[:] = T_d[p, :3]
        else:
            compose(T[reference[p]], T_d[p, :3], target)
        pose_error(target, T[p], relative, e)
        errors[p, 0], errors[p, 1] = norm3(e[:3]), norm3(e[3:])


@allocating
def errors_of_frames(arm: Boxed[Chain], reference: Indices, T_d: Array, q: Array) -> Array:
    """Return the errors (k, 2) of :func:`frame_errors`."""
    errors = np.empty((T_d.shape[0], 2))
    frame_errors(arm.record, reference, T_d, q, errors)
    return errors


@allocating
def poses_of_frames(arm: Boxed[Chain], reference: Indices, q: Array) -> Array:
    """Return the pose (k, 4, 4) of each frame in its reference frame.

    Args:
        arm: Chain whose k tips are the frames.
        reference: (k,) index of the frame in which a pose is given, -1 for the base.
        q: (n,) joint positions [rad or m].
    """
    chain, k = arm.record, reference.shape[0]
    T, poses = np.empty((k, 3, 4)), np.zeros((k, 4, 4))
    forward(chain, q, np.empty((chain.prismatic.shape[0], 2, 3)), T)
    for p in range(k):
        poses[p, 3, 3], r = 1.0, reference[p]
        for a in range(3):
            for b in range(4):
                if r < 0:
                    poses[p, a, b] = T[p, a, b]
                    continue
                for c in range(3):  # R_r^T T_p
                    poses[p, a, b] += T[r, c, a] * (T[p, c, b] - (T[r, c, 3] if b == 3 else 0.0))
    return poses
