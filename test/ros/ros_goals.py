# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""States, goals and requests of motions of the WAM."""

import numpy as np
from geometry_msgs.msg import Pose
from moveit_msgs.msg import (
    Constraints,
    JointConstraint,
    OrientationConstraint,
    PositionConstraint,
    RobotState,
)
from moveit_msgs.srv import GetCartesianPath
from out_of_grasp import out_of_grasp
from ros_streamer import HOME
from ros_wam import WAM
from shape_msgs.msg import SolidPrimitive

from dls_ik.ros.frames import pose_from_matrix

LINK = "wam_tip"


def no_goal():
    """Return a pose without a solution, for which the solver searches until its time is up."""
    return out_of_grasp(WAM, np.random.default_rng(1))


def at(q):
    state = RobotState()
    state.joint_state.name, state.joint_state.position = list(WAM.joint_names), list(map(float, q))
    return state


def joint_goal(q, names=WAM.joint_names):
    pairs = zip(names, q, strict=True)
    return Constraints(
        joint_constraints=[
            JointConstraint(joint_name=name, position=float(x), weight=1.0) for name, x in pairs
        ]
    )


def pose_goal(T, link=LINK):
    region = PositionConstraint(link_name=link)
    region.constraint_region.primitives = [
        SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[0.001])
    ]
    region.constraint_region.primitive_poses = [pose_from_matrix(T)]
    turn = OrientationConstraint(link_name=link, orientation=pose_from_matrix(T).orientation)
    turn.absolute_x_axis_tolerance = turn.absolute_y_axis_tolerance = 0.001
    turn.absolute_z_axis_tolerance = 0.001
    return Constraints(position_constraints=[region], orientation_constraints=[turn])


def long_path():
    """Return a request for a path to and fro, with some thousand poses."""
    waypoints: list[Pose] = []
    for y in (0.3, -0.3) * 5:
        T = WAM.fk(HOME)
        T[1, 3] += y
        waypoints.append(pose_from_matrix(T))
    return GetCartesianPath.Request(waypoints=waypoints, max_step=0.002, start_state=at(HOME))
