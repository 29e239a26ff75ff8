"""The moveit_msgs that this machine has are the published ones."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import ModuleType

import pytest
from moveit_msgs import msg as messages
from moveit_msgs.msg import MoveItErrorCodes
from rosidl_generator_py import import_type_support

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
