"""Targets that stand: the reachable ones are all reached, by joint motion where it takes that."""

import numpy as np
import pytest
from arms import published
from drive import DT, WAM, Drive

from dls_ik.servo import ServoState

pytestmark = pytest.mark.slow

SLOWEST = 40.0  # [s] to any target, with joints of 1 to 2 rad/s


def reached(robot, rng, count, seconds=SLOWEST, **options):
    """Drives from random starts that were at rest at random targets; asserts that all were."""
    drives = []
    for _ in range(count):
        drive = Drive(robot.random(rng), robot, **options)
        drive.pose(robot.fk(robot.random(rng)))
        assert drive.run_until(ServoState.REACHED, seconds), drive.last
        assert drive.last.position_error <= 1e-6
        assert drive.last.rotation_error <= 1e-6
        drives.append(drive)
    return drives


LIMITS = [{}, {"acceleration": 8.0}, {"acceleration": 8.0, "jerk": 200.0}]


@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: "+".join(limits) or "velocity")
def test_wam_reaches_every_target_within_its_limits(limits):
    if "jerk" in limits:
        pytest.importorskip("ruckig")
    for drive in reached(WAM, np.random.default_rng(41), 12 if "jerk" in limits else 50, **limits):
        drive.assert_limits(**limits)


@pytest.mark.parametrize("name", ["fetch", "gen3", "column_lwr", "ur5e", "stanford", "youbot"])
def test_other_arms_reach_every_target_within_their_limits(name):
    for drive in reached(published(name), np.random.default_rng(42), 8, acceleration=4.0):
        drive.assert_limits(4.0)


def test_with_hold_the_state_says_where_the_arm_stalls():
    rng, ends = np.random.default_rng(43), {ServoState.REACHED: 0, ServoState.STALLED: 0}
    for _ in range(16):
        drive = Drive(WAM.random(rng), when_stuck="hold").pose(WAM.fk(WAM.random(rng)))
        drive.run(12.0)
        assert ServoState.JOINT_MOTION not in drive.states
        ends[drive.last.state] += 1
        if drive.last.state is ServoState.STALLED:
            assert max(drive.last.position_error, drive.last.rotation_error) > 1e-6
            assert np.ptp(drive.q[-50:], axis=0).max() < 1e-4
    assert min(ends.values()) >= 2, "local motion alone reaches about half"


def test_joint_motion_is_said_while_it_is_done_and_is_straight():
    rng, found = np.random.default_rng(44), 0
    for drive in reached(WAM, rng, 20, acceleration=8.0):
        moves = np.array([state is ServoState.JOINT_MOTION for state in drive.states])
        if moves.sum() < 80:
            continue
        found += 1
        q = drive.q[1:][moves]
        q = q[len(q) // 2 :]  # the creep with which it began is over
        way = (q - q[0]) @ (q[-1] - q[0]) / np.sum((q[-1] - q[0]) ** 2)
        np.testing.assert_allclose(q, q[0] + np.outer(way, q[-1] - q[0]), atol=1e-3)
        assert (np.diff(way) >= -1e-9).all()
    assert found >= 3


def test_accuracy_at_a_standing_target_and_nothing_moves_any_more():
    rng = np.random.default_rng(45)
    for drive in reached(WAM, rng, 10, acceleration=5.0):
        before = drive.last.q
        drive.run(100 * DT)
        np.testing.assert_array_equal(drive.last.q, before)
        error = WAM.fk(before) - drive.last.T_d
        assert np.abs(error).max() <= 1e-6


def test_a_start_outside_the_limits_comes_back_and_reaches():
    outside = np.array([0.0, -2.2, 0.0, 3.4, 0.0, 1.9, 0.0])
    drive = Drive(outside, acceleration=8.0).pose(WAM.fk(WAM.random(np.random.default_rng(46))))
    assert drive.run_until(ServoState.REACHED, SLOWEST)
    drive.assert_limits(8.0)
    assert WAM.within_limits(drive.last.q)


@pytest.mark.parametrize("now", [0.0, 1e9, -5.0])
def test_it_does_not_matter_what_time_it_is(now):
    T = WAM.fk(WAM.random(np.random.default_rng(47)))
    drives = [Drive(np.full(WAM.n, 0.4), now=start).pose(T) for start in (0.0, now)]
    for drive in drives:
        assert drive.run_until(ServoState.REACHED, SLOWEST)
    assert len(drives[0].outputs) == pytest.approx(len(drives[1].outputs), abs=2)


@pytest.mark.parametrize("jerk", [30.0, 200.0])
def test_limits_of_jerk_do_not_lead_away_from_the_target_first(jerk):
    pytest.importorskip("ruckig")
    q = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
    drive = Drive(q, acceleration=5.0, jerk=jerk).pose(WAM.fk(q + 0.5))
    drive.run(1.0)
    errors = [out.position_error for out in drive.outputs]
    assert np.max(errors) <= errors[0] + 1e-4
