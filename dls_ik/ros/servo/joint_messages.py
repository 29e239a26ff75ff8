# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint velocities (``JointJog``) and joint positions (``JointState``) as targets."""

import math
from collections.abc import Sequence
from typing import Any

from sensor_msgs.msg import JointState

from dls_ik.errors import JointValueError
from dls_ik.model.robot import RobotModel
from dls_ik.servo import Controller
from dls_ik.text import listing

try:
    from control_msgs.msg import JointJog as JointJog
except ImportError:  # control_msgs is not installed
    JointJog = None


def follow_joint_message(
    controller: Controller, message: Any, scale: float, now: float, age: float
) -> None:
    """Pass a message to a controller.

    Args:
        controller: Controller of the arm.
        message: ``JointJog`` or ``JointState``.
        scale: Factor of joint velocities.
        now: Current time on the steady clock [s].
        age: Age of the message [s].

    Raises:
        JointValueError: If the message is not valid.
        StaleTargetError: If the stamp is too old, or in the future.
        HeldError: If the controller is paused or in a fault.
    """
    if isinstance(message, JointState):
        robot = controller.robot
        given = _by_name(message.name, message.position, "positions")
        positions = {k: v for k, v in given.items() if k not in _other_joints(robot)} or given
        controller.follow_joint_position(positions, now, age)
        return
    velocities, displacements = message.velocities, message.displacements
    if len(velocities) and len(displacements):
        raise JointValueError(
            f"a JointJog must have velocities or displacements; got {len(velocities)} velocities "
            f"and {len(displacements)} displacements"
        )
    if len(displacements):
        by = _by_name(message.joint_names, displacements, "displacements")
        command = dict(zip(controller.robot.joint_names, controller.command.tolist(), strict=True))
        positions = {name: value + command.get(name, 0.0) for name, value in by.items()}
        controller.follow_joint_position(positions, now, age)
        return
    given = _by_name(message.joint_names, velocities, "velocities")
    scaled = {name: scale * value for name, value in given.items()}
    controller.follow_joint_velocity(scaled, now, age)


def _other_joints(robot: RobotModel) -> set[str]:
    """Return the names of joints of a robot, such as a gripper's, that do not follow targets."""
    return set(robot.tree.joint) - set(robot.joint_names)


def _by_name(names: Sequence[str], values: Sequence[float], field: str) -> dict[str, float]:
    """Return the values of a message by joint name.

    Raises:
        JointValueError: If the message has no names, another number of values than names, or a name
            twice, or a value is not finite.
    """
    if not names or len(names) != len(values):
        raise JointValueError(
            f"a message must name at least one joint, and have as many {field} as names; got "
            f"{len(names)} names and {len(values)} {field}"
        )
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise JointValueError(f"a message names joints more than once: {listing(twice)}")
    for name, value in zip(names, values, strict=True):
        if not math.isfinite(value):
            raise JointValueError(f"{field} of joint {name!r} must be finite; got {value}")
    return dict(zip(names, map(float, values), strict=True))
