# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Poses of messages, and frames of tf2, which is made up here as it needs a distribution."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, Transform, Vector3
from oracle import rigid, rotation

from dls_ik.errors import PoseError
from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix, tf2_lookup

ANGLES = [0.0, 1e-9, 1e-4, 1.0, math.pi - 1e-9, math.pi, math.pi + 1e-9, 6.0]


@pytest.mark.parametrize("angle", ANGLES)
def test_pose_converted_to_a_message_and_back_is_unchanged(angle):
    rng = np.random.default_rng(3)
    for axis in [*np.eye(3), *-np.eye(3), *rng.normal(size=(20, 3))]:
        T = rigid(rotation(axis, angle), rng.normal(size=3))
        pose = pose_from_matrix(T)
        assert pose.orientation.w >= 0.0
        np.testing.assert_allclose(matrix_from_pose(pose), T, atol=1e-15)


def pose_with(position=(0.0, 0.0, 0.0), quaternion=(0.0, 0.0, 0.0, 1.0)):
    x, y, z, w = map(float, quaternion)
    position = Point(**dict(zip("xyz", map(float, position), strict=True)))
    return Pose(position=position, orientation=Quaternion(x=x, y=y, z=z, w=w))


@pytest.mark.parametrize("scale", [1e-4, 0.999, 1.0, 1.001, -2.0, 1e100])
def test_quaternion_is_normalised(scale):
    quaternion = scale * np.array([0.5, 0.5, 0.5, 0.5])
    expected = rotation([1, 1, 1], 2 * math.pi / 3)
    T = matrix_from_pose(pose_with(quaternion=quaternion))
    np.testing.assert_allclose(T[:3, :3], expected, atol=1e-15)


@pytest.mark.parametrize(
    ("position", "quaternion", "words"),
    [
        ((math.nan, 0, 0), (0, 0, 0, 1), "position.*nan"),
        ((0, 0, 0), (0, 0, math.nan, 1), "quaternion.*nan"),
        ((0, 0, 0), (0, 0, 0, -math.inf), "quaternion.*inf"),
        ((0, 0, 0), (0, 0, 0, 0), "must not be zero"),
        ((0, 0, 0), (1e-9, 0, 0, 0), "must not be zero"),
        ((0, 0, 0), (1e308, 1e308, 1e308, 1e308), "must not be zero"),
    ],
)
def test_invalid_pose_is_refused(position, quaternion, words):
    with pytest.raises(PoseError, match=words):
        matrix_from_pose(pose_with(position, quaternion))


class UnknownFrameError(Exception):
    pass


class Buffer:
    """Knows the table at 9 and at 10 s, a little farther on, and the wall at all times."""

    def lookup_transform(self, target, source, time):
        if target != "base" or source not in ("table", "wall"):
            raise UnknownFrameError(f"{source} does not exist")
        now = time.nanoseconds
        if source == "table" and now not in (0, 9 * 10**9, 10 * 10**9):
            raise UnknownFrameError(f"would require\n extrapolation to {now}")
        turn = Quaternion(z=np.sin(0.25), w=np.cos(0.25))
        x = 0.0 if now == 9 * 10**9 else 1.0
        transform = Transform(translation=Vector3(x=x, y=2.0, z=3.0), rotation=turn)
        newest = Time(sec=10 if source == "table" else 0)
        return SimpleNamespace(transform=transform, header=SimpleNamespace(stamp=newest))


@pytest.fixture
def lookup(monkeypatch):
    listeners = []
    fake = SimpleNamespace(
        Buffer=Buffer,
        TransformListener=lambda *given: listeners.append(given),
        TransformException=UnknownFrameError,
    )
    monkeypatch.setitem(sys.modules, "tf2_ros", fake)
    found = tf2_lookup("a node")
    assert listeners[0][1] == "a node"
    return found


@pytest.mark.parametrize("stamp", [None, Time(), Time(sec=10), Time(sec=10, nanosec=100_000_000)])
def test_latest_transform_serves_no_stamp_or_a_slightly_later_one(lookup, stamp):
    expected = rigid(rotation([0, 0, 1], 0.5), [1, 2, 3])
    np.testing.assert_allclose(lookup("base", "table", stamp), expected, atol=1e-12)


def test_lookup_returns_the_transform_at_the_stamp(lookup):
    expected = rigid(rotation([0, 0, 1], 0.5), [0, 2, 3])
    np.testing.assert_allclose(lookup("base", "table", Time(sec=9)), expected, atol=1e-12)


def test_static_transforms_are_valid_at_any_time(lookup):
    assert lookup("base", "wall", Time(sec=77))[0, 3] == 1.0


@pytest.mark.parametrize("stamp", [Time(sec=8), Time(sec=10, nanosec=100_000_001)])
def test_stamps_outside_the_tf2_buffer_raise_lookup_error(lookup, stamp):
    with pytest.raises(LookupError, match="extrapolation"):
        lookup("base", "table", stamp)


def test_frames_unknown_to_tf2_raise_lookup_error(lookup):
    with pytest.raises(LookupError, match="tf2 says: nowhere does not exist"):
        lookup("base", "nowhere", None)


def test_missing_tf2_raises_lookup_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(LookupError, match="not installed"):
        tf2_lookup("a node")("base", "table", None)
