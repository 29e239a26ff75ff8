"""Frames from tf2, which is made up here: the real one comes with a ROS distribution only."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from geometry_msgs.msg import Quaternion, Transform, Vector3
from oracle import rigid, rotation

from dls_ik.ros.transforms import tf2_lookup


class UnknownFrameError(Exception):
    pass


class Buffer:
    def lookup_transform(self, target, source, time):
        if (target, source) != ("base", "table"):
            raise UnknownFrameError(f"{source} does not exist")
        assert time.nanoseconds == 0
        turn = Quaternion(z=np.sin(0.25), w=np.cos(0.25))
        return SimpleNamespace(
            transform=Transform(translation=Vector3(x=1.0, y=2.0, z=3.0), rotation=turn)
        )


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


def test_latest_transform(lookup):
    expected = rigid(rotation([0, 0, 1], 0.5), [1, 2, 3])
    np.testing.assert_allclose(lookup("base", "table"), expected, atol=1e-12)


def test_what_tf2_does_not_know(lookup):
    with pytest.raises(LookupError, match="tf2 says: nowhere does not exist"):
        lookup("base", "nowhere")


def test_without_tf2(monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(LookupError, match="not installed"):
        tf2_lookup("a node")("base", "table")
