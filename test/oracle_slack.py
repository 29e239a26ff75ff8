# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of task tolerances: the part of a pose error outside a region."""

import numpy as np
from oracle_task import rotation_vector, swing, twist


def euler_angles(R):
    """Return (a, b, c) of R = Rx(a) Ry(b) Rz(c)."""
    b = np.arctan2(R[0, 2], np.hypot(R[0, 0], R[0, 1]))
    return np.array([np.arctan2(-R[1, 2], R[2, 2]), b, np.arctan2(-R[0, 1], R[0, 0])])


def components(task, T_d, T):
    """(3,) and (3,) what is missing along the axes of the task's frame [m, rad], all axes."""
    frame = T_d[:3, :3] if task.frame == "target" else np.eye(3)
    away = frame.T @ (T_d[:3, 3] - T[:3, 3])
    E = T_d[:3, :3] @ T[:3, :3].T
    if not task.rotation:
        return away, np.zeros(3)
    if task.angles == "euler":
        return away, -euler_angles(frame.T @ E.T @ frame)
    if len(task.rotation) == 3:
        return away, frame.T @ rotation_vector(E)
    if len(task.rotation) == 2:
        (free,) = set("xyz") - set(task.rotation)
        return away, frame.T @ swing(E, frame[:, "xyz".index(free)])
    return away, frame.T @ twist(E, frame[:, "xyz".index(task.rotation)])


def dead_zone(errors, slack, axes, round_axes=""):
    """(3,) errors less their slack, e - clip(e, -slack, slack); zero of axes that do not count.

    Round ones are shortened by the radius along their direction.
    """
    beyond = errors - np.clip(errors, -np.array(slack), slack)
    if round_axes:
        at = ["xyz".index(axis) for axis in round_axes]
        length = np.linalg.norm(errors[at])
        beyond[at] = errors[at] * max(1.0 - slack[at[0]] / length, 0.0) if length > 0.0 else 0.0
    counts = [axis in axes for axis in "xyz"]
    return np.where(counts, beyond, 0.0)


def beyond(task, T_d, T):
    """(3,) and (3,) what of a pose is beyond the region of a task [m, rad]."""
    away, turn = components(task, T_d, T)
    bounds = np.array(task.rotation_tolerance)
    bounds[bounds >= np.pi] = np.inf
    return (
        dead_zone(away, task.position_tolerance, task.position, task.round),
        dead_zone(turn, bounds, task.rotation),
    )
