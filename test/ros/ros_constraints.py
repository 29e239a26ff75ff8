# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Constraints in requests, and an independent implementation to check answers."""

import numpy as np
from geometry_msgs.msg import Pose
from moveit_msgs.msg import (
    Constraints,
    JointConstraint,
    OrientationConstraint,
    PositionConstraint,
    VisibilityConstraint,
)
from oracle_slack import euler_angles
from oracle_task import rotation_vector
from shape_msgs.msg import SolidPrimitive

from dls_ik.ros.frames import pose_from_matrix


def joint(name, position, below=0.1, above=None):
    above = below if above is None else above
    fields = {"position": position, "tolerance_below": below, "tolerance_above": above}
    return Constraints(joint_constraints=[JointConstraint(joint_name=name, **fields)])


def orientation(link, R, tolerances, frame="", parameterization=0):
    given = OrientationConstraint(link_name=link, parameterization=parameterization)
    given.header.frame_id = frame
    T = np.eye(4)
    T[:3, :3] = R
    given.orientation = pose_from_matrix(T).orientation
    for axis, tolerance in zip("xyz", tolerances, strict=True):
        setattr(given, f"absolute_{axis}_axis_tolerance", float(tolerance))
    return Constraints(orientation_constraints=[given])


def primitive(kind, *dimensions):
    return SolidPrimitive(type=kind, dimensions=list(map(float, dimensions)))


def position(link, primitives, poses, offset=(0, 0, 0), frame=""):
    given = PositionConstraint(link_name=link)
    given.header.frame_id = frame
    o = given.target_point_offset
    o.x, o.y, o.z = map(float, offset)
    given.constraint_region.primitives = list(primitives)
    given.constraint_region.primitive_poses = [
        pose if isinstance(pose, Pose) else pose_from_matrix(pose) for pose in poses
    ]
    return Constraints(position_constraints=[given])


def visibility():
    return Constraints(visibility_constraints=[VisibilityConstraint()])


def together(*several):
    whole = Constraints()
    for kind in ("joint", "position", "orientation", "visibility"):
        name = f"{kind}_constraints"
        setattr(whole, name, [each for given in several for each in getattr(given, name)])
    return whole


def euler(R_d, R):
    """Return the Euler angles (3,) of a rotation relative to another, as move_group does."""
    return np.array(euler_angles(R_d.T @ R))


def vector_in_frame(R_frame, R_d, R):
    """Return the rotation vector (3,) from R_d to R along the axes of a frame."""
    return R_frame.T @ rotation_vector(R @ R_d.T)
