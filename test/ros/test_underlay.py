# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests that the message packages of this machine equal the published ones."""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from moveit_msgs import msg as messages
from moveit_msgs.msg import MoveItErrorCodes
from rosidl_generator_py import import_type_support

from dls_ik import PlanningScene, RobotModel
from dls_ik.model.rotations import transform
from dls_ik.scene.messages import read_messages
from dls_ik.scene.scene_message import scene_fields

# Type hashes of version 1 of the definitions in the published packages
PUBLISHED_HASHES = {
    "moveit_msgs/srv/GetPositionIK": (
        "054ed6f6f71a09b01b5246c5d80beb4dacc6f444f58df039849c76292933e9e3"
    ),
    "moveit_msgs/srv/GetPositionFK": (
        "2f16ec361a135d84b85a29385abeb9eeb025e39c09038bd6b2826645edc7edad"
    ),
    "moveit_msgs/srv/GetStateValidity": (
        "e9fcd24ae0fd8c2f16d4afe397efaf03427d1f899fe91ecf6cb7f7f1c6ca8720"
    ),
    "moveit_msgs/srv/GetPlanningScene": (
        "7ed7e96238b902174d985b0eb739ea08c95377e8e46a6a9014c22497faf79cd2"
    ),
    "moveit_msgs/srv/ApplyPlanningScene": (
        "8e6134783db0987c0acedbfd2f16f608a8f7a54e83a7bbb372e851af419f4d72"
    ),
    "moveit_msgs/srv/GetMotionPlan": (
        "0e118e1d8d53d5fea8eea309fc06a58239fa0e617864127e7de8399ab7335b27"
    ),
    "moveit_msgs/srv/GetCartesianPath": (
        "b19f501df5d378141d918199894c3ad24533e76021a880b15dc5d62fec8d7b1a"
    ),
    "moveit_msgs/srv/ServoCommandType": (
        "2065f4daf271249330596d344ecd48f5c2d2a52e3b21b1fc56d99c52b8eeae22"
    ),
    "moveit_msgs/action/ExecuteTrajectory": (
        "e1ed3386f275fc8cea91cc78701074f892e78e583be2f8063eea5616dd1065fc"
    ),
    "moveit_msgs/action/MoveGroup": (
        "8c41d70908a2d26b564ddac31e9710f697a753bbd2a4d229542f76271daefc0b"
    ),
    "control_msgs/action/FollowJointTrajectory": (
        "ff29901b2693f5deb847e96084a1c2cdb26e70b7c847be21859b70a55fb29cf0"
    ),
    "control_msgs/action/GripperCommand": (
        "e17c0e644eccf14bea84a0a93e0977182872c2eb7873ca6694900059b46dbc84"
    ),
    "control_msgs/msg/JointJog": (
        "ba249455a20f70168a1acb7bf43b776b72ff1f7eb5fc4cfea443f749e963c6e7"
    ),
}


class TypeHash(ctypes.Structure):
    """rosidl_type_hash_t."""

    _fields_ = (("version", ctypes.c_uint8), ("value", ctypes.c_uint8 * 32))

    def __str__(self) -> str:
        return f"RIHS{self.version:02d}_{bytes(self.value).hex()}"


def compiled_hash(module: ModuleType, interface: str) -> str:
    """Ask the compiled type support for the hash that it announces to others."""
    library = ctypes.CDLL(str(module.__file__))
    try:
        get_type_hash = getattr(library, f"{interface.replace('/', '__')}__get_type_hash")
    except AttributeError:
        pytest.skip("this ROS distribution has no type hashes")
    get_type_hash.restype = ctypes.POINTER(TypeHash)
    return str(get_type_hash(None).contents)


def is_built_from_underlay() -> bool:
    """Tell whether moveit_msgs lives in this virtual environment, not in a ROS installation."""
    return Path(sys.prefix) in Path(messages.__file__).parents


@pytest.mark.parametrize("interface", PUBLISHED_HASHES)
def test_type_hash_is_the_published_one(interface: str) -> None:
    package = interface.partition("/")[0]
    found = compiled_hash(import_type_support(package), interface)
    if not is_built_from_underlay() and package == "control_msgs":
        pytest.skip("the distribution has its own version of control_msgs")
    if not is_built_from_underlay() and not hasattr(MoveItErrorCodes, "source"):
        pytest.skip("this moveit_msgs is older than the published hashes (2.4)")
    assert found == f"RIHS01_{PUBLISHED_HASHES[interface]}"


def test_underlay_messages_include_servo_status() -> None:
    if not is_built_from_underlay():
        pytest.skip("moveit_msgs comes from a ROS installation")
    assert messages.ServoStatus.JOINT_BOUND == 6
    assert messages.ServoStatus.INVALID == -1


def test_scene_message_and_its_yaml_give_equal_changes() -> None:
    sides = {"x": 0.0, "y": 0.0, "z": 1.0, "w": 1.0}
    fields = {
        "is_diff": True,
        "robot_state": {"is_diff": True, "joint_state": {"name": ["a"], "position": [0.5]}},
        "allowed_collision_matrix": {
            "entry_names": ["a", "b"],
            "entry_values": [{"enabled": [False, True]}, {"enabled": [True, False]}],
        },
        "world": {
            "collision_objects": [
                {
                    "id": "all",
                    "header": {"frame_id": "base"},
                    "operation": b"\x02",
                    "pose": {"position": {"x": 1.0}, "orientation": sides},
                    "primitives": [{"type": 3, "dimensions": [2.0, 0.5]}],
                    "primitive_poses": [{"position": {"y": 1.0}}],
                    "meshes": [{
                        "vertices": [{"x": 0.0}, {"x": 1.0}, {"y": 1.0}],
                        "triangles": [{"vertex_indices": [0, 1, 2]}],
                    }],
                    "planes": [{"coef": [0.0, 0.0, 1.0, -2.0]}],
                }
            ],
            "octomap": {"octomap": {"data": [1, -1]}},
        },
    }  # fmt: skip
    message = messages.PlanningScene()
    set_fields(message, fields)
    given, read = read_messages(fields), read_messages(message)
    assert read.notes == given.notes == ("an octomap is not supported; its space counts as free",)
    assert repr(read.operations) == repr(given.operations)
    empty = read_messages(messages.PlanningScene())  # a full scene without anything
    assert [type(each).__name__ for each in empty.operations] == [
        "RemoveObject", "RemoveAttached", "ResetAllowed",
    ]  # fmt: skip


def test_planning_scene_converts_to_a_message() -> None:
    scene = PlanningScene(RobotModel.wam())
    scene.add_box("box", [0.1, 0.2, 0.3], transform(None, np.array([1.0, 0.0, 0.0])))
    scene.add_capsule("rod", 0.1, 0.5)
    scene.attach("rod", "wam_link7", ["wam_link5"])
    message = messages.PlanningScene()
    set_fields(message, scene_fields(scene.snapshot))
    assert repr(read_messages(message)) == repr(read_messages(scene_fields(scene.snapshot)))
    (box,) = message.world.collision_objects
    assert (box.id, box.pose.position.x, box.primitives[0].type) == ("box", 1.0, 1)


def set_fields(message: Any, fields: dict[str, Any]) -> None:
    """Set fields of a message from mappings, as ``ros2 topic pub`` does."""
    for key, value in fields.items():
        kind = message.get_fields_and_field_types()[key]
        if isinstance(value, dict):
            set_fields(getattr(message, key), value)
        elif kind.startswith("sequence<") and "/" in kind:
            package, name = kind.removeprefix("sequence<").removesuffix(">").split("/")
            made = [getattr(import_module(f"{package}.msg"), name)() for _ in value]
            for each, given in zip(made, value, strict=True):
                set_fields(each, given)
            setattr(message, key, made)
        else:
            setattr(message, key, value)
