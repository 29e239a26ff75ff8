# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of tasks: rows of the scaled error of each tip, and of its Jacobian."""

from types import SimpleNamespace

import numpy as np

POSE = SimpleNamespace(position="xyz", rotation="xyz", frame="base", weights=None, tip=None)


def rotation_vector(R):
    """Return axis times angle; near pi the axis is an eigenvector of the symmetric part."""
    vee = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    cosine = 0.5 * (np.trace(R) - 1.0)
    angle = np.arctan2(np.linalg.norm(vee), cosine)
    if cosine > -0.9:
        return vee * (angle / np.linalg.norm(vee) if vee.any() else 1.0)
    axis = np.linalg.eigh(R + R.T)[1][:, -1]
    return angle * axis * (1.0 if axis @ vee >= 0.0 else -1.0)


def pose_error(T_d, T):
    """(6,): position difference, rotation vector of R_d R^T, both in the base frame."""
    return np.concatenate([T_d[:3, 3] - T[:3, 3], rotation_vector(T_d[:3, :3] @ T[:3, :3].T)])


def swing(R, b):
    """Return the shortest rotation from R^T b, the direction of the tool, to b."""
    a = R.T @ b
    normal = np.cross(a, b)
    sine = np.linalg.norm(normal)
    if sine == 0.0:
        other = np.cross(b, np.eye(3)[np.argmin(np.abs(b))])
        return np.zeros(3) if a @ b > 0.0 else np.pi * other / np.linalg.norm(other)
    return np.arctan2(sine, a @ b) * normal / sine


def half_angles(R):
    """Return the unit quaternion: cos(theta / 2), and sin(theta / 2) times the axis."""
    turn = rotation_vector(R)
    theta = np.linalg.norm(turn)
    return np.cos(0.5 * theta), 0.5 * np.sinc(0.5 * theta / np.pi) * turn


def twist(R, b):
    """Return the twist angle psi of R about b: tan(psi / 2) = tan(theta / 2) (n . b)."""
    w, v = half_angles(R)
    return 2.0 * np.arctan2(v @ b, w) * b


def twist_row(R, b):
    """(3,): what a rotation of the tool takes off the twist.

    R (1, -omega / 2) has w + v . omega / 2 and v - (w omega + v x omega) / 2; then the derivative
    of the arc tangent.
    """
    w, v = half_angles(R)
    return (w**2 * b + w * np.cross(b, v) + (v @ b) * v) / (w**2 + (v @ b) ** 2)


def turning(axes, R, frame):
    """(3,) in the base frame: what is left to turn when only some axes of a frame count.

    Args:
        axes: of 3 the whole rotation, of 2 the swing of the third, of 1 the twist about it.
        R: R_d R^T. frame: (3, 3) whose columns are the axes.
    """
    if len(axes) == 2:
        (free,) = set("xyz") - set(axes)
        return swing(R, frame[:, "xyz".index(free)])
    if len(axes) == 1:
        return twist(R, frame[:, "xyz".index(axes)])
    return rotation_vector(R) if axes else np.zeros(3)


def picked(task):
    """Indices of the rows of (position, rotation) that count, and the group of each."""
    at = ["xyz".index(a) for a in task.position], ["xyz".index(a) for a in task.rotation]
    return [*at[0], *(3 + i for i in at[1])], [0] * len(at[0]) + [1] * len(at[1])


class Rows:
    """Stacked rows of one task per tip."""

    def __init__(self, robot, task=None, weight=0.5):
        self.robot = robot
        k = np.reshape(robot.fk(np.zeros(robot.n)), (-1, 4, 4)).shape[0]
        self.tasks = list(task) if isinstance(task, (list, tuple)) else [task or POSE] * k
        self.weight = weight
        groups = [[2 * i + g for g in picked(t)[1]] for i, t in enumerate(self.tasks)]
        self.groups = np.unique(np.concatenate(groups), return_inverse=True)[1]

    def _scale(self, task):
        rows, _ = picked(task)
        weights = np.ones(len(rows)) if task.weights is None else np.array(task.weights, float)
        return weights * np.where(np.array(rows) >= 3, self.weight, 1.0)

    def error(self, q, T_d):
        """(r,) scaled, as e."""
        parts = []
        Ts = np.reshape(self.robot.fk(q), (-1, 4, 4))
        for task, goal, T in zip(self.tasks, np.reshape(T_d, (-1, 4, 4)), Ts, strict=True):
            frame = _frame(task, goal)
            away = goal[:3, 3] - T[:3, 3]
            turn = turning(task.rotation, goal[:3, :3] @ T[:3, :3].T, frame)
            full = np.concatenate([frame.T @ away, frame.T @ turn])
            parts.append(self._scale(task) * full[picked(task)[0]])
        return np.concatenate(parts)

    def jacobian(self, q, T_d=None):
        """(r, n) scaled; without a target as if the tips were there."""
        parts = []
        Ts = np.reshape(self.robot.fk(q), (-1, 4, 4))
        Js = np.reshape(self.robot.jacobian(q), (-1, 6, self.robot.n))
        goals = Ts if T_d is None else np.reshape(T_d, (-1, 4, 4))
        for task, goal, T, J in zip(self.tasks, goals, Ts, Js, strict=True):
            frame = _frame(task, goal)
            turned = np.concatenate([frame.T @ J[:3], frame.T @ J[3:]])
            if len(task.rotation) == 1:
                i = "xyz".index(task.rotation)
                turned[3 + i] = twist_row(goal[:3, :3] @ T[:3, :3].T, frame[:, i]) @ J[3:]
            parts.append(self._scale(task)[:, None] * turned[picked(task)[0]])
        return np.concatenate(parts)


def _frame(task, goal):
    return goal[:3, :3] if task.frame == "target" else np.eye(3)


def error_and_jacobian(robot, T_d, q, weight=0.5, task=None):
    """Both with their rows scaled, rotation rows by ``weight`` [m/rad] too."""
    rows = Rows(robot, task, weight)
    return rows.error(q, T_d), rows.jacobian(q, T_d)
