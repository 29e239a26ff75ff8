# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of robot chains and poses to objects of the library Orocos KDL."""

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, RobotModelError
from dls_ik.model.robot import RobotModel
from dls_ik.text import listing


def kdl_chain(robot: RobotModel) -> Any:
    """Return the chain of a robot as a ``PyKDL.Chain``, with one segment for each joint.

    The segments are in the order of the joints from base to tip.

    Raises:
        RobotModelError: If the chain has several tips or mimic joints, which KDL does not support.
        DlsIkError: If PyKDL is not installed.
    """
    kdl = pykdl()
    if len(robot.tips) > 1:
        raise RobotModelError(
            f"a KDL chain has one tip; this robot has {len(robot.tips)}: {listing(robot.tips)}"
        )
    elements = robot.chain.prismatic.shape[0]
    if elements != robot.n or (robot.chain.scale != 1.0).any() or robot.chain.offset.any():
        raise RobotModelError(
            f"the chain to {robot.tip!r} has mimic joints, which KDL chains do not support"
        )
    chain = kdl.Chain()
    for i, name in enumerate(robot.joint_names):
        chain.addSegment(_segment(kdl, robot, i, name))
    return chain


def _segment(kdl: ModuleType, robot: RobotModel, i: int, name: str) -> Any:
    """Return the KDL segment of joint i and of the fixed transform after the joint.

    The joint moves about or along the z axis of its frame. Segment 0 also contains the fixed
    transform from the base to joint 0.

    Args:
        kdl: Module PyKDL.
        robot: Robot.
        i: Index of the joint, from 0.
        name: Name of the joint, which becomes the name of the segment.
    """
    before = kdl_frame(kdl, robot.chain.fixed[0] if i == 0 else np.eye(4))
    prismatic = robot.chain.prismatic[i]
    kind = kdl.Joint.TransAxis if prismatic else kdl.Joint.RotAxis
    joint = kdl.Joint(name, before.p, before.M * kdl.Vector(0.0, 0.0, 1.0), kind)
    return kdl.Segment(name, joint, before * kdl_frame(kdl, robot.chain.fixed[i + 1]))


def kdl_frame(kdl: ModuleType, T: Array) -> Any:
    """Convert a pose matrix (4, 4) or (3, 4) [m] to a ``PyKDL.Frame``.

    Args:
        kdl: Module PyKDL.
        T: Pose.
    """
    rotation = kdl.Rotation(*(float(value) for value in T[:3, :3].ravel()))
    return kdl.Frame(rotation, kdl.Vector(*(float(value) for value in T[:3, 3])))


def pykdl() -> ModuleType:
    """Import and return the module PyKDL.

    Raises:
        DlsIkError: If PyKDL is not installed.
    """
    try:
        return import_module("PyKDL")
    except ImportError as error:
        raise DlsIkError("PyKDL is not installed: apt install python3-pykdl") from error
