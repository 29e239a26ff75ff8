# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Timing of joint paths under velocity and acceleration limits.

A path of few configurations with straight segments between them gets rounded corners, see
:class:`dls_ik.servo.joint_motion.TimedPath`. A path of many configurations close to each other,
such as the answers along a line of poses, passes all of them.
"""

from __future__ import annotations

import numpy as np

from dls_ik.core.types import Array
from dls_ik.scene.joint_paths import PathPairs
from dls_ik.servo.joint_motion import USED_LIMIT_SHARE, MotionLimits, TimedPath
from dls_ik.servo.joint_spline import JointSpline

MIN_DURATION = 1e-3  # [s] duration of a path without motion
MIN_POINT_INTERVAL = 1e-6  # [s] knots of a trajectory closer to each other are merged
SAME_POINT_TOLERANCE = 1e-9  # [rad or m] configurations closer to each other are merged
SLOWEST_STEP = 1e-9  # smallest squared path speed between two configurations [1/s^2]


def time_segments(path: Array, limits: MotionLimits, pairs: PathPairs | None = None) -> JointSpline:
    """Return a trajectory along the straight segments of a path, with rounded corners.

    Args:
        path: (m, n) configurations joined by straight segments [rad or m].
        limits: Limits of the motion.
        pairs: Pairs, and the margin that each pair keeps in rounded corners; None: no checks.
    """
    path = _without_repetitions(path)
    if len(path) < 2:
        return _standstill(path[0])
    times, q, v = TimedPath(path, limits, pairs).knots(MIN_POINT_INTERVAL)
    return JointSpline(times, q, v)


def time_dense_path(path: Array, limits: MotionLimits) -> JointSpline:
    """Return a trajectory through all configurations of a path, as fast as the limits permit.

    The squared path speed is as large as possible at each configuration: a backward pass computes
    from which speeds the arm can still stop, a forward pass accelerates as much as the limits
    permit (the two passes of TOPP-RA, Pham & Pham 2018). Derivatives along the path are finite
    differences. If the polynomials between the configurations exceed a limit, the whole trajectory
    is slowed down.

    Args:
        path: (m, n) configurations close to each other [rad or m].
        limits: Limits of the motion; jerk limits and limits of the tip are not used.
    """
    q = _without_repetitions(path)
    if len(q) < 2:
        return _standstill(q[0])
    if len(q) == 2:  # the speed between two points at rest would be 0
        q = np.array([q[0], 0.5 * (q[0] + q[1]), q[1]])
    first, second = _derivatives(q)
    limits = limits._replace(acceleration=USED_LIMIT_SHARE * limits.acceleration)
    x = _squared_speeds(first, second, limits)
    speed = np.sqrt(x)
    steps = 2.0 / np.maximum(speed[:-1] + speed[1:], np.sqrt(SLOWEST_STEP))
    times = np.concatenate([[0.0], np.cumsum(steps)])
    spline = JointSpline(times, q, first * speed[:, None])
    velocity, acceleration = spline.peaks(limits.velocity, limits.acceleration)
    return spline.stretched(max(1.0, velocity.ratio, float(np.sqrt(acceleration.ratio))))


def _without_repetitions(path: Array) -> Array:
    moved = np.abs(np.diff(path, axis=0)).max(axis=1) > SAME_POINT_TOLERANCE
    kept: Array = path[np.concatenate([[True], moved])]
    return kept


def _standstill(q: Array) -> JointSpline:
    return JointSpline(np.array([0.0, MIN_DURATION]), np.array([q, q]))


def _derivatives(q: Array) -> tuple[Array, Array]:
    """Return first and second differences (m, n) of configurations q (m, n), per configuration."""
    first, second = np.empty_like(q), np.zeros_like(q)
    first[0], first[-1] = q[1] - q[0], q[-1] - q[-2]
    first[1:-1] = 0.5 * (q[2:] - q[:-2])
    second[1:-1] = q[2:] - 2.0 * q[1:-1] + q[:-2]
    return first, second


def _squared_speeds(first: Array, second: Array, limits: MotionLimits) -> Array:
    """Return the squared path speeds (m,) [1/s^2] of the fastest motion from rest to rest.

    The acceleration of a joint is ``first u + second x``, with the squared path speed x and the
    path acceleration u, which is half the difference of x between two configurations.

    Args:
        first: (m, n) first derivatives of the path [rad or m].
        second: (m, n) second derivatives of the path [rad or m].
        limits: Limits of the motion.
    """
    size = np.abs(first)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.nanmin((limits.velocity / size) ** 2, axis=1)  # (m,) bounds by velocity limits
        still = size < SAME_POINT_TOLERANCE
        curved = np.where(
            still & (np.abs(second) > 0.0), limits.acceleration / np.abs(second), np.inf
        )
        # The limits of u are -a - b x and a - b x for each joint that moves.
        a = np.where(still, np.inf, limits.acceleration / size)
        b = np.where(still, 0.0, second * np.sign(first) / size)
        both = (a[:, :, None] + a[:, None, :]) / np.maximum(b[:, None, :] - b[:, :, None], 1e-12)
        ahead = np.where(b > 0.5, a / np.maximum(b - 0.5, 1e-12), np.inf)
    bound = np.minimum(bound, curved.min(axis=1))
    bound = np.minimum(bound, np.nanmin(both.reshape(len(first), -1), axis=1))
    bound = np.minimum(bound, ahead.min(axis=1))
    bound[[0, -1]] = 0.0
    for i in range(len(first) - 2, 0, -1):
        slope = 0.5 - b[i]
        down = np.where(slope > 0.0, (0.5 * bound[i + 1] + a[i]) / np.maximum(slope, 1e-12), np.inf)
        bound[i] = min(bound[i], down.min())
    x = np.zeros(len(first))
    for i in range(len(first) - 1):
        most = float((a[i] - b[i] * x[i]).min())
        x[i + 1] = min(bound[i + 1], max(x[i] + 2.0 * most, 0.0))
    return x
