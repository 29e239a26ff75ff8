# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""WAM, and requests to its node."""

import math

import numpy as np
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionIK
from ros_client import ENOUGH
from sensor_msgs.msg import JointState

from dls_ik import RobotModel
from dls_ik.ros.frames import pose_from_matrix

WAM = RobotModel.wam()
Q = np.array([0.3, 0.6, -0.2, 1.5, 0.4, -0.3, 0.5])


def stamped(T=None, frame=""):
    message = PoseStamped(pose=pose_from_matrix(WAM.fk(Q) if T is None else T))
    message.header.frame_id = frame
    return message


def ik(client, pose=None, timeout=ENOUGH, **fields):
    """Return the answer to an IK request with a timeout [s], repeated if it times out unstarted."""
    request = GetPositionIK.Request()
    request.ik_request.pose_stamped = stamped() if pose is None else pose
    request.ik_request.timeout.sec = math.floor(timeout)
    request.ik_request.timeout.nanosec = round(timeout % 1.0 * 1e9)
    for name, value in fields.items():
        setattr(request.ik_request, name, value)
    if timeout >= ENOUGH:  # such requests must not time out
        return client.call(GetPositionIK, "compute_ik", request)
    return client.call_in_time(GetPositionIK, "compute_ik", request)


def state(names, positions):
    fields = GetPositionIK.Request().ik_request
    fields.robot_state.joint_state = JointState(name=list(names), position=list(positions))
    return {"robot_state": fields.robot_state}


def bad_pose(position=(0.0, 0.0, 0.5), quaternion=(0.0, 0.0, 0.0, 1.0)):
    message = PoseStamped()
    p, o = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = position
    o.x, o.y, o.z, o.w = quaternion
    return message
