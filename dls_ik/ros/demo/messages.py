"""Between arrays and the messages of a client, written apart from the node's own conversions."""

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import MoveItErrorCodes

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

SUCCESS = int(MoveItErrorCodes.SUCCESS)
NO_IK_SOLUTION = int(MoveItErrorCodes.NO_IK_SOLUTION)


def code_name(code: int) -> str:
    """The name of a MoveIt error code, such as ``NO_IK_SOLUTION``."""
    for name in dir(MoveItErrorCodes):
        if name.isupper() and getattr(MoveItErrorCodes, name) == code:
            return name
    return f"code {code}"


def pose_message(T: Array, frame: str, stamp: Time) -> PoseStamped:
    """A (4, 4) pose as a message."""
    message = PoseStamped()
    message.header.frame_id, message.header.stamp = frame, stamp
    position, orientation = message.pose.position, message.pose.orientation
    position.x, position.y, position.z = T[:3, 3].tolist()
    orientation.x, orientation.y, orientation.z, orientation.w = quaternion(T[:3, :3]).tolist()
    return message


def joint_values(robot: RobotModel, state: Any) -> Array | None:
    """The robot's joints (n,) in a JointState; None unless it holds them all."""
    values = dict(zip(state.name, state.position, strict=False))
    if any(name not in values for name in robot.joint_names):
        return None
    return np.array([values[name] for name in robot.joint_names])


def seconds(stamp: Time) -> float:
    """A time stamp as one number [s]."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def quaternion(R: Array) -> Array:
    """The unit quaternion (x, y, z, w) of a (3, 3) rotation: an eigenvector, see Bar-Itzhack."""
    K = np.zeros((4, 4))
    K[:3, :3] = R + R.T - np.trace(R) * np.eye(3)
    K[:3, 3] = K[3, :3] = (R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])
    K[3, 3] = np.trace(R)
    vectors: Array = np.linalg.eigh(K)[1]
    return vectors[:, -1]
