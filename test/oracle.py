# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of kinematics: 4x4 products straight from the numbers of a URDF or of DH rows."""

from math import cos, sin
from xml.etree import ElementTree as ET

import numpy as np


def rotation(axis, angle):
    """Return a rotation by Rodrigues' formula; the axis has any length."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    cross = np.column_stack([np.cross(axis, e) for e in np.eye(3)])
    outer = np.outer(axis, axis)
    return cos(angle) * np.eye(3) + sin(angle) * cross + (1 - cos(angle)) * outer


def rigid(R, p):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def numbers(text):
    return [float(word) for word in text.split()]


def urdf_pose(text, base, link, values):
    """Return ``T_base_link`` (4, 4) of any two links.

    Args:
        values: Joint values by name; a mimic joint follows its master.
    """
    robot = ET.fromstring(text)
    return np.linalg.inv(_root_pose(robot, base, values)) @ _root_pose(robot, link, values)


def _root_pose(robot, link, values):
    for joint in robot.findall("joint"):
        if joint.find("child").get("link") == link:
            above = _root_pose(robot, joint.find("parent").get("link"), values)
            return above @ _origin(joint) @ _motion(robot, joint, values)
    return np.eye(4)


def _origin(joint):
    origin = joint.find("origin")
    if origin is None:
        return np.eye(4)
    roll, pitch, yaw = numbers(origin.get("rpy", "0 0 0"))
    R = rotation([0, 0, 1], yaw) @ rotation([0, 1, 0], pitch) @ rotation([1, 0, 0], roll)
    return rigid(R, numbers(origin.get("xyz", "0 0 0")))


def _motion(robot, joint, values):
    kind = joint.get("type")
    if kind not in ("revolute", "continuous", "prismatic"):
        return np.eye(4)
    axis = [1.0, 0.0, 0.0] if joint.find("axis") is None else numbers(joint.find("axis").get("xyz"))
    value = _value(robot, joint, values)
    if kind == "prismatic":
        return rigid(np.eye(3), value * np.array(axis) / np.linalg.norm(axis))
    return rigid(rotation(axis, value), np.zeros(3))


def _value(robot, joint, values):
    mimic = joint.find("mimic")
    if mimic is None:
        return values[joint.get("name")]
    master = robot.find(f"joint[@name='{mimic.get('joint')}']")
    multiplier, offset = float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))
    return multiplier * _value(robot, master, values) + offset


def dh_pose(rows, q):
    """Return the product of Rz(theta) Tz(d) Tx(a) Rx(alpha); rows a, alpha, d, theta, prismatic."""
    T = np.eye(4)
    for (a, alpha, d, theta, prismatic), value in zip(rows, q, strict=True):
        theta, d = (theta, d + value) if prismatic else (theta + value, d)
        T = T @ np.array(
            [
                [cos(theta), -sin(theta) * cos(alpha), sin(theta) * sin(alpha), a * cos(theta)],
                [sin(theta), cos(theta) * cos(alpha), -cos(theta) * sin(alpha), a * sin(theta)],
                [0, sin(alpha), cos(alpha), d],
                [0, 0, 0, 1],
            ]
        )
    return T


def difference_jacobian(fk, q, h=1e-6):
    """Return the geometric Jacobian (6, n) of a function q -> (4, 4), by central differences."""
    J = np.empty((6, len(q)))
    for i, step in enumerate(h * np.eye(len(q))):
        before, after = fk(q - step), fk(q + step)
        turn = after[:3, :3] @ before[:3, :3].T
        J[:3, i] = (after[:3, 3] - before[:3, 3]) / (2 * h)
        vee = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
        J[3:, i] = vee / (4 * h)
    return J
