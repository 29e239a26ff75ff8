# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Distance of a joint motion from the lines between the poses of a path, with a proven bound.

Between two successive poses, the origin of the tip should move on a straight line, and the tip
should turn about a fixed axis in proportion to its progress on it. If both poses have the same
origin, only the rotation is compared (:mod:`dls_ik.core.path_lines`).

A distance is computed at samples. The distance from a line is a convex function of the position, so
between two samples it exceeds the larger of both distances by at most h^2 / 8 times the largest
acceleration of the tip, with the time h between the samples. The acceleration is bounded by the
velocities and accelerations of the joints and their distances from the tip. The bound on the
rotation neglects terms of third order in h, and has twice the margin instead.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.path_lines import MIN_LINE_LENGTH, Lines, line_distances, line_motions
from dls_ik.core.se3 import moved
from dls_ik.core.types import Array, Indices
from dls_ik.model.robot import RobotModel
from dls_ik.servo.tip_speed import lever_bounds


def lines_between(T: Array) -> Lines:
    """Return the lines between poses (b, 4, 4)."""
    T = np.ascontiguousarray(T)
    return Lines(T, line_motions(T))


def pose_on_line(lines: Lines, k: int, share: float) -> Array:
    """Return the pose (4, 4) at a share, 0 to 1, of line k."""
    return moved(lines.T[k], share * lines.V[k])


def lever_arms(robot: RobotModel) -> tuple[Array, Array]:
    """Return bounds (n,) on the linear and the angular speed of the tip per unit joint velocity."""
    chain, arms = robot.chain, np.zeros((2, robot.n))
    np.add.at(arms.T, chain.variable, (np.abs(chain.scale) * lever_bounds(robot)).T)
    return arms[0], arms[1]


class JointBounds(NamedTuple):
    """Largest velocity and acceleration of each joint during each of p motions."""

    velocity: Array  # (p, n) [rad/s or m/s]
    acceleration: Array  # (p, n) [rad/s^2 or m/s^2]


def tip_accelerations(robot: RobotModel, bounds: JointBounds) -> tuple[Array, Array]:
    """Return bounds (p,) on the linear [m/s^2] and angular [rad/s^2] acceleration of the tip.

    A joint moves the tip at most at its velocity times its lever arm, and the direction of this
    motion turns at most at the sum of the velocities of all revolute joints.

    Args:
        robot: Robot with one tip.
        bounds: Largest velocities and accelerations of the joints during p motions.
    """
    arms, turning = lever_arms(robot)
    velocity, acceleration = bounds
    turns = velocity @ turning
    linear = acceleration @ arms + turns * (velocity @ arms)
    # A prismatic joint is turned by the joints before it while it slides.
    linear = linear + (velocity @ np.where(turning > 0.0, 0.0, arms)) * turns
    return linear, acceleration @ turning + turns**2


def largest_deviations(
    robot: RobotModel, lines: Lines, q: Array, line: Indices, excess: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return bounds on the distances of p motions from the path.

    Args:
        robot: Robot with one tip.
        lines: The lines of the path.
        q: (p, k + 1, n) joint positions at equal times of each motion [rad or m].
        line: (p,) number of the line that the tip should follow during each motion; its neighbours
            are tried too.
        excess: (p,) each, h^2 / 8 times the linear acceleration [m] and the angular acceleration
            [rad] of the tip, with the time h between two samples.

    Returns:
        Bounds on the distance from the path [m] and on the rotation [rad], each (p,).
    """
    p, samples, n = q.shape
    T = np.ascontiguousarray(robot.fk(q.reshape(-1, n)))
    length, angle = (np.linalg.norm(part, axis=1) for part in (lines.V[:, :3], lines.V[:, 3:]))
    best = np.full((p, samples - 1, 2), np.inf)
    for step in (0, -1, 1):
        k = np.clip(line + step, 0, len(lines.V) - 1)
        found = line_distances(lines, T, np.repeat(k, samples)).reshape(p, samples, 2)
        # The rotation of a line is compared at the closest point, which moves along the line.
        is_long = length[k] > MIN_LINE_LENGTH
        rate = np.where(is_long, angle[k] / np.maximum(length[k], MIN_LINE_LENGTH), 0.0)
        margins = np.stack([excess[0], 2.0 * (excess[1] + rate * excess[0])], axis=1)
        ends = np.maximum(found[:, :-1], found[:, 1:]) + margins[:, None]
        is_closer = ends.max(axis=2) < best.max(axis=2)
        best = np.where(is_closer[..., None], ends, best)
    largest = best.max(axis=1)
    return largest[:, 0], largest[:, 1]


def distances(lines: Lines, T: Array, line: Indices) -> tuple[Array, Array]:
    """Return the distances (m,) [m] and angles (m,) [rad] of poses (m, 4, 4) from the path.

    Args:
        lines: The lines of the path.
        T: (m, 4, 4) poses.
        line: (m,) number of the line to which each pose belongs; of this line and its neighbours,
            the one with the smallest distance is taken.
    """
    T, best = np.ascontiguousarray(T), np.full((len(T), 2), np.inf)
    for step in (0, -1, 1):
        found = line_distances(lines, T, np.clip(line + step, 0, len(lines.V) - 1))
        is_closer = found.max(axis=1) < best.max(axis=1)
        best = np.where(is_closer[:, None], found, best)
    return best[:, 0], best[:, 1]
