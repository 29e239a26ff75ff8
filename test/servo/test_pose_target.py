"""Poses that stand, streams of them, and how they move on between messages."""

import numpy as np
import pytest
from oracle import rigid, rotation

from dls_ik.servo.targets import PoseTarget

V = np.array([0.3, -0.1, 0.2, 0.0, 0.5, -0.4])


def at(time):
    """The pose of a constant twist."""
    angle = np.linalg.norm(V[3:]) * time
    return rigid(rotation(V[3:], angle) if angle else np.eye(3), V[:3] * time)


def stream(feed_forward, count=4, interval=0.1, delay=0.0, timeout=0.25):
    """A target that has taken some poses, the last at (count - 1) * interval + delay."""
    target = PoseTarget(timeout, feed_forward)
    for k in range(count):
        target.take(at(k * interval), k * interval, k * interval + delay)
    return target


def pose(target, now):
    return target.pose(now, 0.01, lambda: np.eye(4))


@pytest.mark.parametrize("ahead", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("delay", [0.0, 0.04])
def test_feed_forward_goes_on_as_the_last_two_did(ahead, delay):
    np.testing.assert_allclose(
        pose(stream(True, delay=delay), 0.3 + delay + ahead), at(0.3 + delay + ahead), atol=1e-12
    )


def test_it_goes_on_for_one_interval_and_a_half_and_then_stands():
    target = stream(True)
    np.testing.assert_allclose(pose(target, 0.5), at(0.45), atol=1e-12)
    np.testing.assert_array_equal(pose(target, 0.5), pose(target, 0.9))


def test_without_feed_forward_it_is_the_last_one():
    np.testing.assert_array_equal(pose(stream(False), 0.39), at(3 * 0.1))


@pytest.mark.parametrize("second", [0.0, 1e-5, 1.0, -0.5])
def test_a_time_between_that_says_nothing_gives_no_velocity(second):
    target = PoseTarget(0.25, True)
    target.take(at(0.0), 0.0, 10.0)
    target.take(at(0.1), second, 10.1)
    np.testing.assert_array_equal(pose(target, 10.15), at(0.1))


def test_a_single_one_never_moves_nor_is_stale():
    target = PoseTarget(0.25, True)
    target.take(at(1.0), 5.0, 5.0)
    for now in (5.0, 5.2, 1e6, 1e9):
        np.testing.assert_array_equal(pose(target, now), at(1.0))
        assert not target.is_stale(now)


@pytest.mark.parametrize("interval", [0.01, 0.1, 0.24])
def test_a_stream_is_stale_when_it_has_ceased_for_the_timeout(interval):
    target = stream(False, interval=interval)
    last = 3 * interval
    assert not target.is_stale(last + 0.249)
    assert target.is_stale(last + 0.251)


def test_one_now_and_then_is_no_stream():
    target = stream(True, interval=1.0)
    assert not target.is_stale(1e3)
    np.testing.assert_array_equal(pose(target, 3.5), at(3.0))


def test_it_stands_when_it_has_not_changed_for_a_quarter_of_a_second():
    target = PoseTarget(0.25, False)
    for k in range(100):
        target.take(at(0.0), k * 0.1, k * 0.1)
        assert target.stands(k * 0.1) == (k >= 3)
    target.take(at(0.1), 10.0, 10.0)
    assert not target.stands(10.2)
    assert target.stands(10.26)
