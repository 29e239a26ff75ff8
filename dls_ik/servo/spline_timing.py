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
from dls_ik.servo.speed_profile import PathSpline, fastest_motion

MIN_DURATION = 1e-3  # [s] duration of a path without motion
MIN_POINT_INTERVAL = 2e-6  # [s] knots of a trajectory closer to each other are merged
SAME_POINT_TOLERANCE = 1e-6  # [rad or m] configurations closer to each other are merged
DENSE_POINT_INTERVAL = 0.02  # [s] largest time between two points along a dense path


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
    """Return the fastest trajectory through the configurations of a path, from rest to rest.

    The joints move along the cubic spline through the configurations.

    Args:
        path: (m, n) configurations close to each other [rad or m].
        limits: Limits of the motion. A share of the accelerations and jerks is left for corrections
            of a command that follows the trajectory.
    """
    q = _without_repetitions(path)
    if len(q) < 2:
        return _standstill(q[0])
    reduced = limits._replace(
        acceleration=USED_LIMIT_SHARE * limits.acceleration, jerk=USED_LIMIT_SHARE * limits.jerk
    )
    return fastest_motion(PathSpline(q), reduced, DENSE_POINT_INTERVAL).motion


def _without_repetitions(path: Array) -> Array:
    """Return the configurations farther than a tolerance from the previous one, with both ends.

    Only the first configuration is returned if the path ends there without motion.
    """
    kept = [0]
    for i in range(1, len(path)):
        if np.abs(path[i] - path[kept[-1]]).max() > SAME_POINT_TOLERANCE:
            kept.append(i)
    end = len(path) - 1
    while len(kept) > 1 and np.abs(path[end] - path[kept[-1]]).max() <= SAME_POINT_TOLERANCE:
        kept.pop()
    if (path[end] != path[kept[-1]]).any():
        kept.append(end)
    return np.asarray(path[kept])


def _standstill(q: Array) -> JointSpline:
    return JointSpline(np.array([0.0, MIN_DURATION]), np.array([q, q]))
