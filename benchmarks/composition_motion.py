# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels of the judges: differences of commands, speeds of the tip, points of trajectories."""

import numpy as np
from numba import njit

from benchmarks.exact_distances import Kinematics, link_poses
from dls_ik.core.types import Array, Flags

ROUNDING = 4e-16  # relative rounding error of a double
SAMPLES = 8  # number of samples per piece of a trajectory


@njit(cache=True)
def motion_excess(
    q: Array,
    dt: Array,
    start: Array,
    rests: Flags,
    limits: tuple[Array, Array, Array],
    rates: tuple[float, float, float],
) -> Array:
    """Return ratios (m, 4) to limits of position (excess), velocity, acceleration and jerk.

    They are divided differences of the commands (m, n) over the times (m,) [s] between them. A
    command may be as fast as a limit before until it was slower than the new one.

    Args:
        start: (m, n) where commands start that start at rest.
        limits: lower, upper, velocity (m, n).
        rates: of acceleration and jerk; time [s] after a change in which the limit before holds.
    """
    lower, upper, fastest = limits
    A, J, grace = rates
    m, n = q.shape
    out = np.zeros((m, 4))
    before, v, a = q[0].copy(), np.zeros(n), np.zeros(n)
    allowed, since = fastest[0].copy(), 0.0
    last = first = dt[0]
    for i in range(m):
        if rests[i]:
            before[:], v[:], a[:] = start[i], 0.0, 0.0
            last = first = dt[i]
        h = dt[i]
        since += h
        if i and (fastest[i] != fastest[i - 1]).any():
            since = h
        hardest = A * max(1.0, 2.0 * h / (h + last)) if np.isinf(J) else A
        for j in range(n):
            over = max(q[i, j] - max(upper[i, j], before[j]), min(lower[i, j], before[j]) - q[i, j])
            out[i, 0] = max(out[i, 0], over)
            new = (q[i, j] - before[j]) / h
            change = 2.0 * (new - v[j]) / (h + last)
            bend = 3.0 * (change - a[j]) / (h + last + first)
            if since > grace and abs(v[j]) <= fastest[i, j] * (1.0 + 1e-9):
                allowed[j] = fastest[i, j]
            allowed[j] = max(allowed[j], fastest[i, j])
            noise = ROUNDING * (1.0 + abs(q[i, j])) / h
            out[i, 1] = max(out[i, 1], (abs(new) - noise) / allowed[j])
            noise *= 4.0 / min(h, last)
            out[i, 2] = max(out[i, 2], (abs(change) - noise) / hardest)
            noise *= 8.0 / min(h, min(last, first))
            out[i, 3] = max(out[i, 3], (abs(bend) - noise) / J)
            v[j], a[j], before[j] = new, change, q[i, j]
        first, last = last, h
    return out


@njit(cache=True)
def tip_speeds(
    kinematics: Kinematics, link: int, paths: Array, dt: Array, limits: Array, brakes: Flags
) -> tuple[Array, Array]:
    """Return ratios (m,) of the tip's speeds between commands to limits, and these (m, 2).

    A limit that becomes stricter does not count while the arm brakes from the limit before.

    Args:
        paths: (m, s + 1, n) joint values at equal intervals, from one command to the next.
        dt: (m,) duration of each path [s].
        limits: (m, 2) linear [m/s] and angular [rad/s].
        brakes: (m,) whether the arm reaches a command on the stop that was in flight when a limit
            became stricter.
    """
    m, s = len(paths), paths.shape[1] - 1
    ratio, allowed = np.zeros(m), limits.copy()
    poses, limit = np.empty((s + 1, 3, 4)), limits[0].copy()
    for i in range(m):
        link_poses(kinematics, paths[i], link, poses)
        h = dt[i] / s
        speed = np.zeros(2)
        for p in range(s):
            chord, turn = 0.0, 0.0
            for r in range(3):
                chord += (poses[p + 1, r, 3] - poses[p, r, 3]) ** 2
                for c in range(3):
                    turn += (poses[p + 1, r, c] - poses[p, r, c]) ** 2
            speed[0] = max(speed[0], np.sqrt(chord) / h)
            speed[1] = max(speed[1], 2.0 * np.arcsin(min(np.sqrt(turn / 8.0), 1.0)) / h)
        for k in range(2):
            if limits[i, k] >= limit[k] or not brakes[i]:
                limit[k] = limits[i, k]
            allowed[i, k] = limit[k]
            ratio[i] = max(ratio[i], (speed[k] - 1e-9) / limit[k])
    return ratio, allowed


@njit(cache=True)
def on_piece(h: float, t: float, ends: Array, is_quintic: bool, out: Array) -> None:
    """Write position, velocity and acceleration (3,) at t of a piece of `h` [s].

    joint_trajectory_controller interpolates by a cubic where points have velocities, and by a
    quintic where they have accelerations too.

    Args:
        ends: (6,) position, velocity and acceleration at the start, and at the end.
    """
    q0, v0, a0, q1, v1, a1 = ends
    if not is_quintic:
        b = (3.0 * (q1 - q0) / h - 2.0 * v0 - v1) / h
        c = (2.0 * (q0 - q1) / h + v0 + v1) / (h * h)
        out[0] = q0 + t * (v0 + t * (b + t * c))
        out[1] = v0 + t * (2.0 * b + 3.0 * c * t)
        out[2] = 2.0 * b + 6.0 * c * t
        return
    d = q1 - q0
    c3 = (20.0 * d - (8.0 * v1 + 12.0 * v0) * h - (3.0 * a0 - a1) * h * h) / (2.0 * h**3)
    c4 = (-30.0 * d + (14.0 * v1 + 16.0 * v0) * h + (3.0 * a0 - 2.0 * a1) * h * h) / (2.0 * h**4)
    c5 = (12.0 * d - 6.0 * (v1 + v0) * h + (a1 - a0) * h * h) / (2.0 * h**5)
    out[0] = q0 + t * (v0 + t * (0.5 * a0 + t * (c3 + t * (c4 + t * c5))))
    out[1] = v0 + t * (a0 + t * (3.0 * c3 + t * (4.0 * c4 + t * 5.0 * c5)))
    out[2] = a0 + t * (6.0 * c3 + t * (12.0 * c4 + t * 20.0 * c5))


@njit(cache=True)
def judge_points(
    times: Array, offsets: Array, q: Array, v: Array, a: Array, velocity: float, hardest: float
) -> Array:
    """Return ratios (m, 2) to limits of velocity and acceleration between points.

    A message replaces the trajectory before: the arm moves from its desired state then to the
    first point. The points of each message are followed to the end, as if it were the last.

    Args:
        times: (m,) of the messages [s].
        offsets: (m, k) of the points; q, v: (m, k, n); a: (m, k, n), or (m, 0, n).
    """
    m, k, n = q.shape
    is_quintic = a.shape[1] > 0
    out, at, ends = np.zeros((m, 2)), np.empty(3), np.zeros(6)
    states, is_known = np.zeros((n, 3)), False
    for i in range(m):
        if i:  # the desired state on the trajectory before
            t = times[i] - times[i - 1]
            if t < offsets[i - 1, 0] and not is_known:
                continue
            for j in range(n):
                p = 0
                while p < k and offsets[i - 1, p] < t - 1e-12:
                    p += 1
                if p == k:
                    states[j] = 0.0
                    states[j, 0] = q[i - 1, k - 1, j]
                    continue
                ends[:] = 0.0
                begin = 0.0
                if p == 0:
                    ends[:3] = states[j]
                else:
                    begin = offsets[i - 1, p - 1]
                    ends[0], ends[1] = q[i - 1, p - 1, j], v[i - 1, p - 1, j]
                    ends[2] = a[i - 1, p - 1, j] if is_quintic else 0.0
                ends[3], ends[4] = q[i - 1, p, j], v[i - 1, p, j]
                ends[5] = a[i - 1, p, j] if is_quintic else 0.0
                on_piece(offsets[i - 1, p] - begin, t - begin, ends, is_quintic, at)
                states[j] = at
            is_known = True
        for j in range(n):
            for p in range(k):
                if p == 0 and not is_known:
                    continue
                begin = offsets[i, p - 1] if p else 0.0
                if p == 0:
                    ends[:3] = states[j]
                else:
                    ends[0], ends[1] = q[i, p - 1, j], v[i, p - 1, j]
                    ends[2] = a[i, p - 1, j] if is_quintic else 0.0
                ends[3], ends[4] = q[i, p, j], v[i, p, j]
                ends[5] = a[i, p, j] if is_quintic else 0.0
                h = offsets[i, p] - begin
                for s in range(SAMPLES + 1):
                    on_piece(h, h * s / SAMPLES, ends, is_quintic, at)
                    out[i, 0] = max(out[i, 0], abs(at[1]) / velocity)
                    out[i, 1] = max(out[i, 1], abs(at[2]) / hardest)
    return out
