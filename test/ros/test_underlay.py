"""The moveit_msgs that this machine has are the published ones, and work."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Pose, PoseStamped
from moveit_msgs import msg as messages
from moveit_msgs.msg import (
    AttachedCollisionObject,
    CollisionObject,
    JointConstraint,
    MoveItErrorCodes,
    PositionIKRequest,
    RobotState,
)
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rclpy.serialization import deserialize_message, serialize_message
from rosidl_generator_py import import_type_support
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive

PUBLISHED_HASHES = {
    "GetPositionIK": "RIHS01_054ed6f6f71a09b01b5246c5d80beb4dacc6f444f58df039849c76292933e9e3",
    "GetPositionFK": "RIHS01_2f16ec361a135d84b85a29385abeb9eeb025e39c09038bd6b2826645edc7edad",
}


class TypeHash(ctypes.Structure):
    """rosidl_type_hash_t."""

    _fields_ = (("version", ctypes.c_uint8), ("value", ctypes.c_uint8 * 32))

    def __str__(self) -> str:
        return f"RIHS{self.version:02d}_{bytes(self.value).hex()}"


def compiled_hash(module: ModuleType, service: str) -> str:
    """Ask the compiled type support for the hash that it announces to others."""
    library = ctypes.CDLL(str(module.__file__))
    try:
        get_type_hash = getattr(library, f"moveit_msgs__srv__{service}__get_type_hash")
    except AttributeError:
        pytest.skip("this ROS distribution has no type hashes")
    get_type_hash.restype = ctypes.POINTER(TypeHash)
    return str(get_type_hash(None).contents)


def is_built_from_underlay() -> bool:
    """Tell whether moveit_msgs lives in this virtual environment, not in a ROS installation."""
    return Path(sys.prefix) in Path(messages.__file__).parents


@pytest.mark.parametrize("service", PUBLISHED_HASHES)
def test_type_hash_is_the_published_one(service: str) -> None:
    found = compiled_hash(import_type_support("moveit_msgs"), service)
    if not is_built_from_underlay() and not hasattr(MoveItErrorCodes, "source"):
        pytest.skip("this moveit_msgs is older than the published hashes (2.4)")
    assert found == PUBLISHED_HASHES[service]


def test_servo_status_is_there_when_built_from_the_underlay() -> None:
    if not is_built_from_underlay():
        pytest.skip("moveit_msgs comes from a ROS installation")
    assert messages.ServoStatus.JOINT_BOUND == 6
    assert messages.ServoStatus.INVALID == -1


def make_request() -> PositionIKRequest:
    """Return a request that sets fields on every level of nesting."""
    pose = PoseStamped(pose=Pose())
    pose.header.frame_id = "base"
    pose.pose.position.x = 0.25
    pose.pose.orientation.w = -1.0
    box = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.1, 0.2, 0.3])
    held = AttachedCollisionObject(
        link_name="tip",
        object=CollisionObject(id="cup", operation=CollisionObject.ADD, primitives=[box]),
        touch_links=["finger"],
    )
    held.object.type.key = "mug"
    request = PositionIKRequest(
        group_name="arm",
        avoid_collisions=True,
        pose_stamped=pose,
        pose_stamped_vector=[pose, PoseStamped()],
        timeout=Duration(sec=1, nanosec=5),
        robot_state=RobotState(
            joint_state=JointState(name=["j1", "j2"], position=[0.5, -0.5]),
            attached_collision_objects=[held],
            is_diff=True,
        ),
    )
    request.constraints.joint_constraints = [JointConstraint(joint_name="j1", position=0.1)]
    return request


def test_ik_request_survives_serialization() -> None:
    sent = GetPositionIK.Request(ik_request=make_request())
    received = deserialize_message(serialize_message(sent), GetPositionIK.Request)
    assert received == sent
    held = received.ik_request.robot_state.attached_collision_objects[0]
    assert held.object.type.key == "mug"
    assert list(received.ik_request.robot_state.joint_state.position) == [0.5, -0.5]


def test_responses_survive_serialization() -> None:
    ik = GetPositionIK.Response(error_code=MoveItErrorCodes(val=MoveItErrorCodes.NO_IK_SOLUTION))
    ik.solution.joint_state.name = ["j1"]
    fk = GetPositionFK.Response(pose_stamped=[PoseStamped()], fk_link_names=["tip"])
    for sent in (ik, fk):
        assert deserialize_message(serialize_message(sent), type(sent)) == sent
