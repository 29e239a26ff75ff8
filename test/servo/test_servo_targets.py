# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Single poses, pose streams, twists and trajectories."""

import numpy as np
import pytest
from oracle import rigid, rotation

from dls_ik.core.se3 import difference
from dls_ik.servo.targets import MIN_STREAM_POSES, PoseTarget, TrajectoryTarget, TwistTarget

V = np.array([0.3, -0.1, 0.2, 0.0, 0.5, -0.4])


def at_time(time):
    """Return the pose after a constant twist for a time [s]."""
    angle = np.linalg.norm(V[3:]) * time
    return rigid(rotation(V[3:], angle) if angle else np.eye(3), V[:3] * time)


def stream(feed_forward, count=4, interval=0.1, delay=0.0, timeout=0.25):
    """Return a pose target after `count` poses, each of which arrived after `delay` [s]."""
    target = PoseTarget(timeout, feed_forward)
    for k in range(count):
        target.take(at_time(k * interval), k * interval, k * interval + delay)
    return target


def pose_of(target, now):
    return target.pose(now, 0.01, lambda: np.eye(4))


@pytest.mark.parametrize("ahead", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("delay", [0.0, 0.04])
def test_feed_forward_extrapolates_the_last_two_poses(ahead, delay):
    np.testing.assert_allclose(
        pose_of(stream(True, delay=delay), 0.3 + delay + ahead),
        at_time(0.3 + delay + ahead),
        atol=1e-12,
    )


def test_extrapolation_ends_after_one_and_a_half_intervals():
    target = stream(True)
    np.testing.assert_allclose(pose_of(target, 0.5), at_time(0.45), atol=1e-12)
    np.testing.assert_array_equal(pose_of(target, 0.5), pose_of(target, 0.9))


def test_pose_is_the_last_one_without_feed_forward():
    np.testing.assert_array_equal(pose_of(stream(False), 0.39), at_time(3 * 0.1))


@pytest.mark.parametrize("second", [0.0, 1e-5, 1.0, -0.5])
def test_invalid_intervals_give_no_velocity(second):
    target = PoseTarget(0.25, True)
    target.take(at_time(0.0), 0.0, 10.0)
    target.take(at_time(0.1), second, 10.1)
    np.testing.assert_array_equal(pose_of(target, 10.15), at_time(0.1))


@pytest.mark.parametrize("interval", [0.01, 0.1, 0.24])
def test_stream_times_out_after_timeout(interval):
    target = stream(False, count=MIN_STREAM_POSES, interval=interval)
    last = (MIN_STREAM_POSES - 1) * interval
    assert not target.has_timed_out(last + 0.249)
    assert target.has_timed_out(last + 0.251)


@pytest.mark.parametrize("count", range(1, 9))
def test_fewer_than_five_poses_are_no_stream(count):
    target = stream(False, count=count)
    assert target.has_timed_out(1e6) == (count >= 5)
    start = 10.0  # [s] a pause starts a new run
    for k in range(4):
        target.take(at_time(0.0), start + 0.1 * k, start + 0.1 * k)
        assert not target.has_timed_out(1e6)
    target.take(at_time(0.0), start + 0.4, start + 0.4)
    assert target.has_timed_out(1e6)


def test_finished_stream_is_static_and_never_times_out():
    target = stream(True, count=6)
    assert np.abs(pose_of(target, 0.55) - at_time(0.5)).max() > 1e-3, "the pose is extrapolated"
    target.finish()
    np.testing.assert_array_equal(pose_of(target, 0.55), target.last)
    np.testing.assert_array_equal(target.last, at_time(0.5))
    assert not target.has_timed_out(1e6)


def test_single_and_infrequent_poses_are_no_stream():
    target = stream(True, count=8, interval=1.0)
    assert not target.has_timed_out(1e3)
    target = stream(True, interval=1.0)
    np.testing.assert_array_equal(pose_of(target, 3.5), at_time(3.0))
    single = PoseTarget(0.25, True)
    single.take(at_time(1.0), 5.0, 5.0)
    for now in (5.0, 5.2, 1e6, 1e9):
        np.testing.assert_array_equal(pose_of(single, now), at_time(1.0))
        assert not single.has_timed_out(now)


def test_pose_is_static_after_a_quarter_of_a_second():
    target = PoseTarget(0.25, False)
    for k in range(100):
        target.take(at_time(0.0), k * 0.1, k * 0.1)
        assert target.is_static(k * 0.1) == (k >= 3)
    target.take(at_time(0.1), 10.0, 10.0)
    assert not target.is_static(10.2)
    assert target.is_static(10.26)


def test_repeated_pose_is_static_after_a_tenth_of_a_second():
    target = PoseTarget(0.25, False)
    target.take(at_time(0.0), 0.0, 0.0)
    for k in range(1, 30):
        target.take(at_time(0.1), k * 0.01, k * 0.01)
        assert target.is_static(k * 0.01) == (k >= 11)


@pytest.mark.parametrize("feed_forward", [False, True])
def test_bridge_continues_a_stream_at_its_usual_velocity(feed_forward):
    target = PoseTarget(0.5, feed_forward, bridge_time=0.2)
    for k in range(10):
        T = at_time(k * 0.02)
        if k == 7:
            T[:3, 3] += 0.5  # a glitch
        target.take(T, k * 0.02, k * 0.02)
        pose_of(target, k * 0.02)
    last = 9 * 0.02
    for missing in range(11):
        now = last + 0.02 * missing
        np.testing.assert_allclose(pose_of(target, now), at_time(now), atol=1e-9)
    between = last + 0.045 if feed_forward else last + 0.04
    np.testing.assert_allclose(pose_of(target, last + 0.045), at_time(between), atol=1e-9)
    np.testing.assert_allclose(pose_of(target, last + 0.4), at_time(last + 0.2), atol=1e-9)
    np.testing.assert_array_equal(target.last, at_time(last))
    target.finish()
    np.testing.assert_array_equal(pose_of(target, last + 0.4), at_time(last))


def test_bridge_needs_a_stream():
    target = PoseTarget(0.25, False, bridge_time=0.2)
    for k in range(MIN_STREAM_POSES - 1):
        target.take(at_time(k * 0.02), k * 0.02, k * 0.02)
    np.testing.assert_array_equal(pose_of(target, 0.2), at_time((MIN_STREAM_POSES - 2) * 0.02))


TIP = rigid(rotation([0.2, 0.5, -0.3], 1.0), [0.4, 0.1, 0.7])
WEIGHTS = np.array([1.0, 1.0, 1.0, 0.5, 0.5, 0.5])


def twist_target(V, in_tool=False, lead=0.02, timeout=0.25):
    out = TwistTarget(timeout, lead, 0.5)
    out.take(np.array(V, float), in_tool, 0.0, 0.0)
    return out


def lead_of(T):
    return np.linalg.norm(WEIGHTS * difference(TIP, T))


@pytest.mark.parametrize("in_tool", [False, True])
def test_pose_advances_by_the_twist(in_tool):
    V = np.array([0.1, 0.2, -0.1, 0.3, 0.1, -0.2])
    T = twist_target(V, in_tool).pose(0.0, 0.01, lambda: TIP)
    R = TIP[:3, :3] if in_tool else np.eye(3)
    expected = 0.01 * np.concatenate([R @ V[:3], R @ V[3:]])
    np.testing.assert_allclose(difference(TIP, T), expected, atol=1e-14)


def test_twist_displacements_add_up_over_cycles():
    one, T = twist_target([0.1, 0.0, 0.0, 0.0, 0.0, 0.2]), TIP
    for k in range(100):
        T = one.pose(k * 0.01, 0.01, lambda T=T: T)
    np.testing.assert_allclose(difference(TIP, T), [0.1, 0, 0, 0, 0, 0.2], atol=1e-12)


@pytest.mark.parametrize("lead", [1e-6, 0.02, 0.1])
@pytest.mark.parametrize(
    "V", [[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0], [1e9] * 6, [0, 0, 0, 0, 0, 450]]
)
def test_lead_of_a_blocked_tip_is_bounded(V, lead):
    one = twist_target(V, lead=lead)
    for k in range(50):
        T = one.pose(k * 0.01, 0.01, lambda: TIP)
    step = np.array(V, float) * 0.01
    step *= min(1.0, 1.0 / np.abs(step).max())
    behind = np.linalg.norm(WEIGHTS * step) * 49
    expected = min(lead, behind) + np.linalg.norm(WEIGHTS * step)
    assert lead_of(T) == pytest.approx(expected, rel=1e-6)
    ahead = difference(TIP, T)
    assert ahead @ V / np.linalg.norm(ahead) / np.linalg.norm(V) == pytest.approx(1.0)


def test_lagging_tip_catches_up_slowly():
    """With K_p = 10 [1/s] a lead of 5 mm adds 50 mm/s to the twist."""
    one, T = twist_target([0.4, 0, 0, 0, 0, 0], lead=0.005), TIP
    for k in range(50):
        at = T
        led = one.pose(k * 0.01, 0.01, lambda at=at: at)
        T = at + 0.5 * (led - at)
    assert np.linalg.norm(difference(at, led)) == pytest.approx(0.0045, rel=1e-3)


def test_twist_is_never_static_and_times_out():
    one = twist_target([0.0] * 6)
    assert not one.is_static(100.0)
    assert not one.has_timed_out(0.25)
    assert one.has_timed_out(0.2501)
    one.take(np.zeros(6), True, 1.0, 1.0)
    assert not one.has_timed_out(1.2)


Ts = np.array([rigid(rotation([0, k, 1.0], 0.4 * k), [0.1 * k, 0.2, -0.05 * k]) for k in range(4)])
AWAY = rigid(np.eye(3), [5.0, 0.0, 0.0])


def pose_on(target, now, tip=Ts[0]):
    return target.pose(now, 0.01, lambda: tip)


def test_trajectory_waits_for_tip_and_start_time():
    target = TrajectoryTarget(Ts, 0.5, 0.0)
    for now in (0.0, 1.0, 1e9):
        np.testing.assert_array_equal(pose_on(target, now, AWAY), Ts[0])
    late = TrajectoryTarget(Ts, 0.5, 10.0)
    np.testing.assert_array_equal(pose_on(late, 9.99), Ts[0])
    pose_on(late, 10.0)
    assert np.abs(pose_on(late, 10.1) - Ts[0]).max() > 1e-3


@pytest.mark.parametrize("start", [0.0, 1e9])
def test_trajectory_is_on_time_and_straight(start):
    target = TrajectoryTarget(Ts, 0.5, start)
    for share in np.linspace(0.0, 3.0, 25):
        T, leg = pose_on(target, start + 0.5 * share, Ts[0] if share == 0.0 else AWAY), int(share)
        if leg == 3:
            np.testing.assert_array_equal(T, Ts[3])
            continue
        whole = difference(Ts[leg], Ts[leg + 1])
        np.testing.assert_allclose(difference(Ts[leg], T), whole * (share - leg), atol=1e-6)


def test_time_before_the_start_gives_the_first_pose():
    """Found by python -m fuzz controller: a clock set back."""
    target = TrajectoryTarget(Ts, 0.5, 1.0)
    np.testing.assert_array_equal(pose_on(target, 100.0), Ts[0])
    for early in (99.9, 90.0, -1e9):
        np.testing.assert_array_equal(pose_on(target, early), Ts[0])


def test_trajectory_is_static_before_start_and_after_end():
    target = TrajectoryTarget(Ts, 0.5, 0.0)
    assert target.is_static(0.3), "any path may lead to the first pose"
    pose_on(target, 1.0)
    assert not target.is_static(1.0)
    assert not target.is_static(2.6)
    assert target.is_static(2.8)
    np.testing.assert_array_equal(pose_on(target, 1e9), Ts[3])
    assert not target.has_timed_out(1e9)
    one = TrajectoryTarget(Ts[:1], 0.5, 0.0)
    for now in (0.0, 0.1, 5.0):
        np.testing.assert_array_equal(pose_on(one, now), Ts[0])
    assert one.is_static(5.0)
