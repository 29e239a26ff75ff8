"""Twists: the tip moves as it is told, along the axes it is told in, and never more than it may."""

from itertools import pairwise

import numpy as np
import pytest
from arms import published
from drive import BENT, DT, WAM, Drive, reversals, tip_speeds
from oracle import rotation

from dls_ik.core.se3 import difference
from dls_ik.servo import ServoState

pytestmark = pytest.mark.slow

V = np.array([0.05, -0.04, 0.03, 0.1, 0.2, -0.15])
AXES = rotation([0.3, -0.5, 0.8], 1.1)


def again(V, **given):
    return lambda drive: drive.twist(V, **given)


def tip_twists(drive):
    """Of the tip from cycle to cycle, in the base frame (m, 6)."""
    Ts = WAM.fk(drive.q)
    return np.array([difference(a, b) for a, b in pairwise(Ts)]) / drive.dt


def in_axes(R, V):
    return np.concatenate([R @ V[:3], R @ V[3:]])


@pytest.mark.parametrize("R", [np.eye(3), AXES], ids=["base", "given"])
def test_the_tip_has_the_twist_along_fixed_axes(R):
    drive = Drive(BENT)
    drive.run(1.0, again(V, R=R))
    np.testing.assert_allclose(tip_twists(drive)[20:], [in_axes(R, V)] * 80, atol=1e-3)


def test_the_tip_has_the_twist_along_its_own_axes_as_it_turns():
    drive = Drive(BENT)
    drive.run(1.0, again(V))
    own = [in_axes(T[:3, :3], V) for T in WAM.fk(drive.q[:-1])]
    np.testing.assert_allclose(tip_twists(drive)[20:], own[20:], atol=2e-3)


def test_joints_of_limited_acceleration_come_to_the_twist():
    drive = Drive(BENT, acceleration=10.0)
    drive.run(1.0, again(V, R=np.eye(3)))
    np.testing.assert_allclose(tip_twists(drive)[50:], [V] * 50, atol=2e-3)
    drive.assert_limits(10.0)


@pytest.mark.parametrize("R", [None, np.eye(3)])
def test_no_twist_is_no_motion(R):
    drive = Drive(BENT, acceleration=10.0)
    drive.run(2.0, again(np.zeros(6), R=R))
    np.testing.assert_array_equal(drive.q, [drive.start] * len(drive.q))


def test_a_turn_back_from_a_limit_is_at_once():
    q = BENT.copy()
    q[3] = 3.0
    drive = Drive(q)
    inward = np.array([-0.2, 0.0, -0.2, 0.0, 0.0, 0.0])
    drive.run(6.0, again(inward, R=np.eye(3)))
    assert tip_speeds(WAM, drive.q[-20:]).max() < 0.1, "it slides along the limit, no more"
    assert reversals(drive.q[-200:], slowest=0.02) <= 2, "and smoothly"
    tip = WAM.fk(drive.last.q)[:3, 3]
    drive.run(0.3, again(-inward, R=np.eye(3)))
    way = WAM.fk(drive.last.q)[:3, 3] - tip
    assert way @ -inward[:3] / np.linalg.norm(inward) > 0.04, "0.28 m/s for 0.3 s, less the lead"


@pytest.mark.parametrize(
    "V", [np.full(6, 1e9), np.array([0, 0, 0, 0, 0, 1e9]), [1e9, 0, 0, 0, 0, 0]]
)
@pytest.mark.parametrize("R", [None, np.eye(3)])
def test_a_huge_twist_moves_within_limits(V, R):
    drive = Drive(BENT, acceleration=20.0)
    drive.run(3.0, again(V, R=R))
    drive.assert_limits(20.0)
    drive.run(1.0)
    assert drive.last.state is ServoState.STALE
    assert not drive.last.velocity.any()


@pytest.mark.parametrize("speed", [1.0, 10.0, 350.0, 1e6])
def test_a_fast_turn_is_never_the_other_way(speed):
    drive = Drive(BENT)
    drive.run(0.5, again(np.array([0.0, 0.0, 0.0, 0.0, 0.0, speed]), R=np.eye(3)))
    assert (tip_twists(drive)[:, 5] > 0.0).all()


def test_a_denormal_twist_does_no_harm():
    drive = Drive(BENT)
    drive.run(0.5, again(np.full(6, 5e-324)))
    np.testing.assert_allclose(drive.last.q, drive.start, atol=1e-12)


def test_a_twist_that_ceases_ends_within_the_timeout_and_the_braking():
    drive = Drive(BENT, acceleration=5.0, target_timeout=0.1)
    drive.run(1.0, again(4 * V))
    fastest = np.abs(drive.last.velocity).max()
    drive.run(0.1 + fastest / 5.0 + 2 * DT)
    assert drive.last.state is ServoState.STALE
    assert not drive.last.velocity.any()
    drive.assert_limits(5.0)


def test_a_zero_twist_after_a_joint_motion_stops_there():
    rng = np.random.default_rng(61)
    while True:
        drive = Drive(WAM.random(rng), acceleration=8.0).pose(WAM.fk(WAM.random(rng)))
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


@pytest.mark.parametrize("R", [None, np.eye(3)], ids=["own", "base"])
def test_twists_at_a_third_of_the_rate_move_the_tip_as_far_as_they_say(R):
    """A second of moveit_servo's demo of twists: up or down and round, 29 messages of them."""
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
    way = np.linalg.norm(fr3.fk(drive.last.q)[:3, 3] - fr3.fk(q)[:3, 3])
    assert turned == pytest.approx(0.5, rel=0.02)
    assert way == pytest.approx(0.1, rel=0.02)
