# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Distance of a joint motion from the lines between the poses of a path, with a proven bound.

Between two successive poses, the origin of the tip should move on a straight line, and the tip
should turn about a fixed axis in proportion to its progress on it. If both poses have the same
origin, only the rotation is compared.

A distance is computed at samples. The distance from a line is a convex function of the position, so
between two samples it exceeds the larger of both distances by at most h^2 / 8 times the largest
acceleration of the tip, with the time h between the samples. The acceleration is bounded by the
velocities and accelerations of the joints and their distances from the tip. The bound on the
rotation neglects terms of third order in h, and has twice the margin instead.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

MIN_LINE_LENGTH = 1e-9  # [m] shorter lines count as rotations about a point


class Lines(NamedTuple):
    """Lines between b successive poses."""

    T: Array  # (b, 4, 4) poses
    shift: Array  # (b - 1, 3) translations [m]
    turn: Array  # (b - 1, 3) rotation vectors in the frame of the first pose [rad]
    length: Array  # (b - 1,) lengths of the translations [m]
    angle: Array  # (b - 1,) angles of the rotations [rad]


def lines_between(T: Array) -> Lines:
    """Return the lines between poses (b, 4, 4)."""
    from scipy.spatial.transform import Rotation

    shift = np.diff(T[:, :3, 3], axis=0)
    R = np.swapaxes(T[:-1, :3, :3], 1, 2) @ T[1:, :3, :3]
    turn = Rotation.from_matrix(R).as_rotvec() if len(R) else np.empty((0, 3))
    return Lines(T, shift, turn, np.linalg.norm(shift, axis=1), np.linalg.norm(turn, axis=1))


def pose_on_line(lines: Lines, k: int, share: float) -> Array:
    """Return the pose (4, 4) at a share, 0 to 1, of line k."""
    from scipy.spatial.transform import Rotation

    T: Array = lines.T[k].copy()
    T[:3, 3] += share * lines.shift[k]
    T[:3, :3] = T[:3, :3] @ Rotation.from_rotvec(share * lines.turn[k]).as_matrix()
    return T


def lever_arms(robot: RobotModel) -> Array:
    """Return the largest distance (n,) of each joint from the tip [m]; 1 for prismatic joints.

    The distance is bounded by the sum of the fixed offsets and the prismatic motions between the
    joint and the tip.
    """
    chain, (lower, upper) = robot.chain, robot.finite_limits()
    offsets = np.linalg.norm(chain.fixed[:, :, 3], axis=1)  # shape (m + 1,)
    stroke = np.maximum(np.abs(lower), np.abs(upper))[chain.variable]
    stroke = np.abs(chain.scale) * stroke + np.abs(chain.offset)
    moved = offsets[1:] + np.where(chain.prismatic, stroke, 0.0)
    arms = np.zeros(robot.n)
    for element, joint in enumerate(chain.variable.tolist()):
        lever = 1.0 if chain.prismatic[element] else moved[element:].sum()
        arms[joint] += abs(chain.scale[element]) * lever
    return arms


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
    arms, turning = lever_arms(robot), turning_joints(robot)
    velocity, acceleration = bounds
    turns = velocity @ turning
    linear = acceleration @ arms + turns * (velocity @ arms)
    # A prismatic joint is turned by the joints before it while it slides.
    linear = linear + (velocity @ (1.0 - turning)) * turns
    return linear, acceleration @ turning + turns**2


def largest_deviations(
    robot: RobotModel, lines: Lines, q: Array, line: Array, excess: tuple[Array, Array]
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
    T = robot.fk(q.reshape(-1, n))
    best = np.full((p, samples - 1), np.inf), np.full((p, samples - 1), np.inf)
    for step in (0, -1, 1):
        k = np.clip(line + step, 0, len(lines.length) - 1)
        found = _from_line(lines, T, np.repeat(k, samples))
        # The rotation of a line is compared at the closest point, which moves along the line.
        rate = lines.angle[k] / np.maximum(lines.length[k], MIN_LINE_LENGTH)
        rate = np.where(lines.length[k] > MIN_LINE_LENGTH, rate, 0.0)
        margins = excess[0], 2.0 * (excess[1] + rate * excess[0])
        ends = [
            np.maximum(each.reshape(p, samples)[:, :-1], each.reshape(p, samples)[:, 1:])
            + margin[:, None]
            for each, margin in zip(found, margins, strict=True)
        ]
        is_closer = np.maximum(*ends) < np.maximum(*best)
        best = np.where(is_closer, ends[0], best[0]), np.where(is_closer, ends[1], best[1])
    return best[0].max(axis=1), best[1].max(axis=1)


def turning_joints(robot: RobotModel) -> Array:
    """Return 1 for each joint (n,) that turns the tip, and 0 for each prismatic joint."""
    turning = np.zeros(robot.n)
    turning[robot.chain.variable[~np.asarray(robot.chain.prismatic)]] = 1.0
    return turning


def distances(lines: Lines, T: Array, line: Array) -> tuple[Array, Array]:
    """Return the distances (m,) [m] and angles (m,) [rad] of poses (m, 4, 4) from the path.

    Args:
        lines: The lines of the path.
        T: (m, 4, 4) poses.
        line: (m,) number of the line to which each pose belongs; of this line and its neighbours,
            the one with the smallest distance is taken.
    """
    best_position, best_rotation = np.full(len(T), np.inf), np.full(len(T), np.inf)
    for step in (0, -1, 1):
        k = np.clip(line + step, 0, len(lines.length) - 1)
        position, rotation = _from_line(lines, T, k)
        is_closer = np.maximum(position, rotation) < np.maximum(best_position, best_rotation)
        best_position = np.where(is_closer, position, best_position)
        best_rotation = np.where(is_closer, rotation, best_rotation)
    return best_position, best_rotation


def _from_line(lines: Lines, T: Array, k: Array) -> tuple[Array, Array]:
    """Return the distances (m,) and angles (m,) of poses (m, 4, 4) from the lines k (m,)."""
    from scipy.spatial.transform import Rotation

    start, shift, length = lines.T[k], lines.shift[k], lines.length[k]
    offset = T[:, :3, 3] - start[:, :3, 3]
    along = np.einsum("ij,ij->i", offset, shift) / np.maximum(length, MIN_LINE_LENGTH) ** 2
    turned = Rotation.from_matrix(np.swapaxes(start[:, :3, :3], 1, 2) @ T[:, :3, :3])
    about = np.einsum("ij,ij->i", turned.as_rotvec(), lines.turn[k])
    about /= np.maximum(lines.angle[k], MIN_LINE_LENGTH) ** 2
    share = np.clip(np.where(length > MIN_LINE_LENGTH, along, about), 0.0, 1.0)
    position = np.linalg.norm(offset - share[:, None] * shift, axis=1)
    wanted = Rotation.from_rotvec(share[:, None] * lines.turn[k])
    return position, (wanted.inv() * turned).magnitude()
