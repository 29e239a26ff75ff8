# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Lines between successive poses of a path, and distances of other poses from these lines.

Along a line, the origin of the tip moves straight, and the tip turns about a fixed axis in
proportion to the distance. If both poses have the same origin, the line is a rotation.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.jit import allocating
from dls_ik.core.se3 import moved, norm3, pose_error
from dls_ik.core.types import Array, Indices

MIN_LINE_LENGTH = 1e-9  # [m] shorter lines count as rotations about a point


class Lines(NamedTuple):
    """Lines between b successive poses."""

    T: Array  # (b, 4, 4) poses
    V: Array  # (b - 1, 6) motions in the base frame: translation [m] and rotation vector [rad]


@allocating
def line_motions(T: Array) -> Array:
    """Return the motions (b - 1, 6) in the base frame between successive poses T (b, 4, 4)."""
    V, relative = np.empty((T.shape[0] - 1, 6)), np.empty((3, 3))
    for i in range(V.shape[0]):
        pose_error(T[i + 1], T[i], relative, V[i])
    return V


@allocating
def line_distances(lines: Lines, T: Array, line: Indices) -> Array:
    """Return the distances [m] and angles [rad] (m, 2) of poses from lines.

    A pose is compared with the closest point of its line, or with the closest orientation if the
    line is a rotation.

    Args:
        lines: The lines of the path.
        T: (m, 4, 4) poses.
        line: (m,) number of the line of each pose.
    """
    out, relative = np.empty((T.shape[0], 2)), np.empty((3, 3))
    offset, error, part = np.empty(6), np.empty(6), np.empty(6)
    for i in range(T.shape[0]):
        start, V = lines.T[line[i]], lines.V[line[i]]
        pose_error(T[i], start, relative, offset)
        first = 0 if sqrt(V[0] ** 2 + V[1] ** 2 + V[2] ** 2) > MIN_LINE_LENGTH else 3
        dot, square = 0.0, MIN_LINE_LENGTH**2
        for a in range(first, first + 3):
            dot += offset[a] * V[a]
            square += V[a] * V[a]
        share = min(max(dot / square, 0.0), 1.0)
        for a in range(6):
            part[a] = share * V[a]
        pose_error(moved(start, part), T[i], relative, error)
        out[i, 0], out[i, 1] = norm3(error), norm3(error[3:])
    return out
