# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Streams and ages of targets, twists and trajectories of a controller."""

from itertools import pairwise

import numpy as np
import pytest
from arms import published
from drive import BENT, DT, WAM, Drive, reversals, tip_speeds
from oracle import rotation

from dls_ik.core.se3 import difference
from dls_ik.errors import OptionError, PoseError, StaleTargetError
from dls_ik.servo import ServoState

RATE, CYCLE = 30.0, 0.002  # [Hz] rate of targets, [s] period of cycles
RADIUS, TURN = 0.1, 2.0  # [m], [s]


def circle(time):
    T = WAM.fk(BENT)
    angle = 2 * np.pi * time / TURN
    T[1, 3] += RADIUS * np.sin(angle)
    T[2, 3] += RADIUS * (1 - np.cos(angle))
    return T


def follow(path, seconds, **options):
    """Send targets at RATE; return the tip's position errors to the path after one second."""
    drive, sent = Drive(BENT, dt=CYCLE, **options), -1
    errors = []
    while drive.now < seconds:
        if int(drive.now * RATE + 1e-9) > sent:
            sent = int(drive.now * RATE + 1e-9)
            drive.pose(path(drive.now))
        drive.run(CYCLE)
        if drive.now > 1.0:
            tip = WAM.fk(drive.last.q)[:3, 3]
            errors.append(np.linalg.norm(tip - path(drive.now)[:3, 3]))
    return drive, np.array(errors)


@pytest.mark.parametrize("limits", [{}, {"acceleration": 40.0}])
def test_feed_forward_reduces_error_on_a_circle(limits):
    without = np.mean(follow(circle, 4.0, **limits)[1])
    drive, errors = follow(circle, 4.0, feed_forward=True, **limits)
    speed = 2 * np.pi * RADIUS / TURN
    assert without > 0.3 * speed / RATE, "lag of half an interval"
    assert np.mean(errors) < without / 2.5
    drive.assert_limits(**limits)


def test_end_of_stream_causes_no_jump():
    drive, _ = follow(circle, 2.0, feed_forward=True, acceleration=10.0)
    before = len(drive.outputs)
    drive.run(2.0)
    drive.assert_limits(10.0)
    assert drive.last.state is ServoState.REACHED
    moved = WAM.fk(drive.last.q)[:3, 3] - WAM.fk(drive.outputs[before - 1].q)[:3, 3]
    speed = 2 * np.pi * RADIUS / TURN
    assert np.linalg.norm(moved) < speed * 2.5 / RATE, (
        "at most 2.5 intervals of extrapolation and motion"
    )


def test_static_stream_is_reached_with_feed_forward():
    drive = Drive(BENT, dt=CYCLE, feed_forward=True)
    T = WAM.fk(BENT + 0.2)
    drive.run(2.0, lambda drive: drive.pose(T))
    assert drive.last.state is ServoState.REACHED
    assert np.ptp(drive.q[-100:], axis=0).max() == 0.0


def test_target_per_cycle_is_followed_to_a_millimetre():
    drive = Drive(BENT)
    errors = []
    for _ in range(500):
        drive.pose(circle(drive.now))
        errors.append(drive.run(0.01)[-1].position_error)
    assert np.max(errors) < 1e-3


def test_slow_target_never_counts_as_stalled():
    T = WAM.fk(BENT)
    drive = Drive(BENT)

    def circle(drive):
        phase = 2.0 * np.pi * drive.now / 10.0
        T_d = T.copy()
        T_d[:3, 3] += 0.05 * np.array([0.0, np.cos(phase) - 1.0, np.sin(phase)])
        drive.pose(T_d)

    drive.run(10.0, each=circle)
    assert ServoState.STALLED not in drive.states
    assert np.max([out.position_error for out in drive.outputs]) < 5e-3


FAR = WAM.fk(BENT + 0.8)


@pytest.mark.parametrize("interval", [0.01, 0.05])
def test_stream_far_from_its_end_stops_after_timeout(
    interval,
):
    drive = Drive(BENT, acceleration=4.0)
    drive.run(0.5)
    assert set(drive.states) == {ServoState.WAITING}
    np.testing.assert_array_equal(drive.last.q, BENT)
    for _ in range(4):
        drive.pose(FAR).run(interval)
    drive.pose(FAR).run(0.24)
    assert drive.last.state is not ServoState.TIMED_OUT
    fastest = np.abs(drive.last.velocity).max()
    assert fastest > 0.4
    drive.run(2 * DT + fastest / 4.0)
    assert drive.last.state is ServoState.TIMED_OUT
    assert not drive.last.velocity.any()
    drive.assert_limits(4.0)
    drive.run(2.0)
    assert drive.last.state is ServoState.TIMED_OUT
    drive.pose(FAR)
    assert drive.run_until(ServoState.REACHED, 10.0), "a single pose is reached"


@pytest.mark.parametrize("interval", [None, 1.0, 0.3])
def test_single_and_infrequent_poses_stay_in_force(interval):
    drive = Drive(BENT).pose(FAR)
    for _ in range(5):
        drive.run(interval or 1.0)
        if interval:
            drive.pose(FAR)
    drive.run(10.0)
    assert ServoState.TIMED_OUT not in drive.states
    assert drive.last.state is ServoState.REACHED


GIVE = [
    lambda drive, age: drive.pose(FAR, age=age),
    lambda drive, age: drive.twist(np.ones(6), age=age),
    lambda drive, age: drive.trajectory([FAR], 1.0, age=age),
]


@pytest.mark.parametrize("give", GIVE, ids=["pose", "twist", "trajectory"])
def test_stale_and_future_targets_raise_and_change_nothing(give):
    drive, twin = Drive(BENT).pose(FAR), Drive(BENT).pose(FAR)
    for age, option in [(0.26, "target_timeout"), (1e9, "target_timeout"),
                        (-61.0, "stamp_tolerance"), (-1e9, "stamp_tolerance")]:  # fmt: skip
        is_trajectory = option == "stamp_tolerance" and give is GIVE[2]
        with pytest.raises(StaleTargetError, match="than 60 s" if is_trajectory else option):
            give(drive, age)
        np.testing.assert_array_equal(drive.run(0.05)[-1].q, twin.run(0.05)[-1].q)


def test_valid_ages_are_reported_and_bounded_by_options():
    for age in (0.0, 0.1, 0.25, -0.1):
        drive = Drive(BENT).pose(FAR, age=age)
        drive.run(0.1)
        assert drive.last.target_age == pytest.approx(0.1 + max(age, 0.0))
    drive = Drive(BENT, target_timeout=2.0, stamp_tolerance=0.0)
    drive.pose(FAR, age=1.9)
    with pytest.raises(StaleTargetError):
        drive.pose(FAR, age=-0.01)


V = np.array([0.05, -0.04, 0.03, 0.1, 0.2, -0.15])
AXES = rotation([0.3, -0.5, 0.8], 1.1)


def again(V, **given):
    return lambda drive: drive.twist(V, **given)


def tip_twists(drive):
    """Return the twists (m, 6) of the tip between cycles, in the base frame."""
    Ts = WAM.fk(drive.q)
    return np.array([difference(a, b) for a, b in pairwise(Ts)]) / drive.dt


def in_axes(R, V):
    return np.concatenate([R @ V[:3], R @ V[3:]])


@pytest.mark.slow
@pytest.mark.parametrize("R", [np.eye(3), AXES, None], ids=["base", "given", "own"])
def test_tip_moves_by_twist_along_given_axes(R):
    drive = Drive(BENT)
    drive.run(1.0, again(V, R=R))
    own = [in_axes(T[:3, :3] if R is None else R, V) for T in WAM.fk(drive.q[:-1])]
    atol = 2e-3 if R is None else 1e-3
    np.testing.assert_allclose(tip_twists(drive)[20:], own[20:], atol=atol)


@pytest.mark.slow
def test_twist_is_attained_with_limited_acceleration():
    drive = Drive(BENT, acceleration=10.0)
    drive.run(1.0, again(V, R=np.eye(3)))
    np.testing.assert_allclose(tip_twists(drive)[50:], [V] * 50, atol=2e-3)
    drive.assert_limits(10.0)


@pytest.mark.slow
def test_motion_away_from_a_limit_starts_at_once():
    q = BENT.copy()
    q[3] = 3.0
    drive = Drive(q)
    inward = np.array([-0.2, 0.0, -0.2, 0.0, 0.0, 0.0])
    drive.run(6.0, again(inward, R=np.eye(3)))
    assert tip_speeds(WAM, drive.q[-20:]).max() < 0.1, "the tip only slides along the limit"
    assert reversals(drive.q[-200:], slowest=0.02) <= 2, "without reversals"
    tip = WAM.fk(drive.last.q)[:3, 3]
    drive.run(0.3, again(-inward, R=np.eye(3)))
    moved = WAM.fk(drive.last.q)[:3, 3] - tip
    assert moved @ -inward[:3] / np.linalg.norm(inward) > 0.04, "0.28 m/s for 0.3 s, minus the lead"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("V", "R"),
    [
        (np.zeros(6), np.eye(3)),
        (np.zeros(6), None),
        (np.full(6, 1e9), None),
        (np.array([0, 0, 0, 0, 0, 1e9]), np.eye(3)),
        ([1e9, 0, 0, 0, 0, 0], None),
    ],
)
def test_huge_twist_keeps_limits_and_zero_twist_rests(V, R):
    drive = Drive(BENT, acceleration=20.0)
    drive.run(2.0, again(V, R=R))
    drive.assert_limits(20.0)
    assert np.any(V) or (drive.q == drive.start).all()
    drive.run(1.0)
    assert drive.last.state is ServoState.TIMED_OUT
    assert not drive.last.velocity.any()


@pytest.mark.slow
def test_fast_rotation_never_reverses():
    for speed in (1.0, 10.0, 350.0, 1e6):
        drive = Drive(BENT)
        drive.run(0.5, again(np.array([0.0, 0.0, 0.0, 0.0, 0.0, speed]), R=np.eye(3)))
        assert (tip_twists(drive)[:, 5] > 0.0).all()


@pytest.mark.slow
def test_twist_stops_after_timeout():
    drive = Drive(BENT, acceleration=5.0, target_timeout=0.1)
    drive.run(1.0, again(4 * V))
    fastest = np.abs(drive.last.velocity).max()
    drive.run(0.1 + fastest / 5.0 + 2 * DT)
    assert drive.last.state is ServoState.TIMED_OUT
    assert not drive.last.velocity.any()
    drive.assert_limits(5.0)


@pytest.mark.slow
def test_zero_twist_stops_a_joint_motion():
    rng = np.random.default_rng(61)
    while True:
        drive = Drive(WAM.random(rng=rng), acceleration=8.0).pose(WAM.fk(WAM.random(rng=rng)))
        drive.run(6.0)
        moving = [k for k, state in enumerate(drive.states) if state is ServoState.JOINT_MOTION]
        if len(moving) > 60:
            break
    drive = Drive(drive.start, acceleration=8.0).pose(drive.last.T_d)
    drive.run((moving[0] + 30) * DT)
    assert drive.last.state is ServoState.JOINT_MOTION
    q, v = drive.last.q, np.abs(drive.last.velocity)
    drive.run(2.0, again(np.zeros(6)))
    assert (np.abs(drive.last.q - q) <= v * (v.max() / 16.0 + 2 * DT) + 1e-6).all(), "braking only"
    assert not drive.last.velocity.any()
    drive.assert_limits(8.0)


@pytest.mark.slow
@pytest.mark.parametrize("R", [None, np.eye(3)], ids=["own", "base"])
def test_twists_slower_than_cycles_move_the_full_distance(R):
    """Send one second of the twists of moveit_servo's demo: vertical motion with rotation."""
    fr3, q = published("fr3"), np.pi * np.array([0.0, -0.25, 0.0, -0.75, 0.0, 0.5, 0.25])
    drive, count = Drive(q, robot=fr3), 0

    def each(drive):
        nonlocal count
        if count % 3 == 0:
            drive.twist(np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.5]), R=R)
        count += 1

    drive.run(1.0, each)
    R_before, R_after = (fr3.fk(each)[:3, :3] for each in (q, drive.last.q))
    turned = np.arccos(0.5 * np.trace(R_before.T @ R_after) - 0.5)
    moved = np.linalg.norm(fr3.fk(drive.last.q)[:3, 3] - fr3.fk(q)[:3, 3])
    assert turned == pytest.approx(0.5, rel=0.02)
    assert moved == pytest.approx(0.1, rel=0.02)


def line(count, extent=(0.0, 0.2, 0.1), q=BENT):
    Ts = np.repeat(WAM.fk(q)[None], count, axis=0)
    Ts[:, :3, 3] += np.linspace(0, 1, count)[:, None] * extent
    return Ts


def test_trajectory_is_on_time_from_its_start():
    Ts = line(5)
    drive = Drive(BENT).trajectory(Ts, 0.5)
    for k in range(1, 201):
        drive.run(DT)
        share = min((k - 1) * DT / 2.0, 1.0)
        expected = Ts[0, :3, 3] + share * (Ts[-1, :3, 3] - Ts[0, :3, 3])
        np.testing.assert_allclose(drive.last.T_d[:3, 3], expected, atol=1e-12)
        assert drive.last.position_error < 1e-3
    drive.run(1.0)
    assert drive.last.state is ServoState.REACHED


@pytest.mark.parametrize("acceleration", [np.inf, 2.0, 0.5])
def test_trajectory_starts_at_the_first_pose(acceleration):
    Ts = line(3, q=BENT + 0.5)
    drive = Drive(BENT, acceleration=acceleration).trajectory(Ts, 1.0)
    drive.run(12.0)
    start = next(k for k, out in enumerate(drive.outputs) if not np.array_equal(out.T_d, Ts[0]))
    assert drive.outputs[start - 1].position_error < 2e-3
    assert drive.last.state is ServoState.REACHED
    drive.assert_limits(acceleration)


def test_trajectory_starts_after_a_joint_motion():
    rng, found = np.random.default_rng(62), 0
    for _ in range(8):
        q = WAM.random(rng=rng)
        Ts = np.repeat(WAM.fk(q)[None], 2, axis=0)
        Ts[1, 2, 3] -= 0.01
        drive = Drive(WAM.random(rng=rng)).trajectory(Ts, 0.5)
        drive.run(12.0)
        for out in drive.outputs:
            if out.state is ServoState.JOINT_MOTION:
                assert np.array_equal(out.T_d, Ts[0]) or np.array_equal(out.T_d, Ts[1])
        start = next(
            (k for k, o in enumerate(drive.outputs) if not np.array_equal(o.T_d, Ts[0])), 0
        )
        if ServoState.JOINT_MOTION in drive.states[:start]:
            found += 1
            assert drive.outputs[start - 1].position_error < 2e-3
        if found == 2:
            return
    pytest.fail("no joint motion")


@pytest.mark.parametrize("period", [1e-3, 3600.0])
def test_smallest_and_largest_trajectory_periods_keep_limits(period):
    Ts = line(4)
    drive = Drive(BENT, acceleration=8.0).trajectory(Ts, period)
    Ts[:] = np.eye(4)  # the controller keeps a copy
    drive.run(8.0)
    drive.assert_limits(8.0)
    if period < 1.0:
        assert drive.last.state is ServoState.REACHED
        np.testing.assert_array_equal(drive.last.T_d, line(4)[-1])
    else:
        assert np.linalg.norm(drive.last.T_d[:3, 3] - line(4)[0, :3, 3]) < 1e-3


def test_invalid_periods_and_poses_of_trajectories_raise():
    for period in (0.0, -1.0, 9e-4, 3601.0, np.nan, np.inf, "1", None, True):
        with pytest.raises(OptionError, match="period"):
            Drive(BENT).trajectory(line(3), period)
    Ts = line(3)
    Ts[1, 0, 0] = 5.0
    with pytest.raises(PoseError, match="pose 1"):
        Drive(BENT).trajectory(Ts, 1.0)


def test_unreachable_first_pose_is_reported():
    Ts = line(3)
    Ts[:, 0, 3] += 3.0
    drive = Drive(BENT).trajectory(Ts, 0.1)
    drive.run(20.0)
    assert drive.last.state is ServoState.UNREACHABLE
    np.testing.assert_array_equal(drive.last.T_d, Ts[0])
    assert np.ptp(drive.q[-50:], axis=0).max() == 0.0


def test_trajectory_starts_at_a_future_time():
    drive = Drive(BENT).trajectory(line(3), 0.5, age=-2.0)
    drive.run(1.99)
    np.testing.assert_array_equal(drive.last.T_d, line(3)[0])
    drive.run(0.1)
    assert not np.array_equal(drive.last.T_d, line(3)[0])
    drive.run(2.0)
    assert drive.last.state is ServoState.REACHED


def test_bridged_dropout_causes_no_stop():
    def run(**options):
        drive = Drive(BENT, dt=0.01, acceleration=5.0, **options)
        tips = []
        for k in range(150):
            T = WAM.fk(BENT)
            T[1, 3] += 0.2 * max(0.0, k * 0.01 - 0.3)
            if not 100 <= k < 115:
                drive.pose(T)
            drive.run(0.01)
            tips.append(WAM.fk(drive.last.q)[:3, 3] - T[:3, 3])
        drive.assert_limits(5.0)
        speed = np.array([out.velocity for out in drive.outputs])[100:130]
        return np.linalg.norm(tips[145]), np.abs(speed).max(axis=1).min()

    error, slowest = run(bridge_time=0.2)
    assert error < 1e-3
    stopped_error, stopped = run()
    assert slowest > 5.0 * stopped
    assert stopped_error > error
