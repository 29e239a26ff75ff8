# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Views of serialized messages have the fields that rclpy reads."""

import struct

import pytest
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.serialization import deserialize_message, serialize_message

from dls_ik.ros.cdr import PoseStampedView, read_message, read_pose


def message(frame="base_link", sec=-3, nanosec=4_000_000_000):
    made = PoseStamped()
    made.header.frame_id, made.header.stamp.sec, made.header.stamp.nanosec = frame, sec, nanosec
    p, o = made.pose.position, made.pose.orientation
    p.x, p.y, p.z, o.x, o.y, o.z, o.w = 0.1, -2e300, float("inf"), 0.5, -0.5, 1e-310, -0.0
    return made


def fields(made):
    p, o, header = made.pose.position, made.pose.orientation, made.header
    numbers = p.x, p.y, p.z, o.x, o.y, o.z, o.w
    return header.stamp.sec, header.stamp.nanosec, header.frame_id, list(map(repr, numbers))


FRAMES = ["", "a", "base_link", "Gelenk_\u00e4", *("x" * k for k in range(2, 20)), "x" * 5000]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_pose_is_read_as_rclpy_reads_it(frame):
    data = serialize_message(message(frame))
    view = read_message(data, PoseStamped)
    assert isinstance(view, PoseStampedView)
    assert fields(view) == fields(deserialize_message(data, PoseStamped))


@pytest.mark.parametrize("change", [b"\xffase_link", b"base\0link"])
def test_invalid_characters_in_frames_are_read_as_rclpy_reads_them(change):
    data = serialize_message(message()).replace(b"base_link", change)
    assert fields(read_pose(data)) == fields(deserialize_message(data, PoseStamped))


def test_unsupported_encodings_and_truncated_data_are_left_to_rclpy():
    data = serialize_message(message())
    assert read_pose(b"\x00\x00" + data[2:]) is None, "big endian"
    assert read_pose(b"\x00\x07" + data[2:]) is None, "another encoding"
    assert all(read_pose(data[:k]) is None for k in range(len(data) - 3))
    long = data[:12] + struct.pack("<I", 2**32 - 1) + data[16:]
    assert read_pose(long) is None
    assert isinstance(read_message(serialize_message(TwistStamped()), TwistStamped), TwistStamped)
