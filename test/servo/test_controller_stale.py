"""Targets that are too old, or cease to come; and those that stand."""

import numpy as np
import pytest
from drive import BENT, DT, WAM, Drive

from dls_ik.errors import StaleTargetError
from dls_ik.servo import ServoState

FAR = WAM.fk(BENT + 0.8)


def test_before_any_target_the_arm_waits_where_it_is():
    drive = Drive(BENT)
    drive.run(1.0)
    assert set(drive.states) == {ServoState.WAITING}
    np.testing.assert_array_equal(drive.last.q, BENT)


@pytest.mark.parametrize("interval", [0.01, 0.1, 0.24])
def test_a_stream_that_ceases_stops_within_the_timeout_and_the_braking(interval):
    drive = Drive(BENT, acceleration=4.0)
    drive.pose(FAR).run(interval)
    drive.pose(FAR).run(0.24)
    assert drive.last.state is not ServoState.STALE
    fastest = np.abs(drive.last.velocity).max()
    assert fastest > 0.4
    drive.run(2 * DT + fastest / 4.0)
    assert drive.last.state is ServoState.STALE
    assert not drive.last.velocity.any()
    drive.assert_limits(4.0)
    drive.run(2.0)
    assert drive.last.state is ServoState.STALE


@pytest.mark.parametrize("interval", [None, 1.0, 0.3])
def test_single_and_slow_targets_stay_in_force(interval):
    drive = Drive(BENT).pose(FAR)
    for _ in range(5):
        drive.run(interval or 1.0)
        if interval:
            drive.pose(FAR)
    drive.run(10.0)
    assert ServoState.STALE not in drive.states
    assert drive.last.state is ServoState.REACHED


def test_after_a_stream_has_ceased_one_pose_is_enough():
    drive = Drive(BENT).pose(FAR)
    drive.run(0.05)
    drive.pose(FAR).run(0.5)
    assert drive.last.state is ServoState.STALE
    drive.pose(FAR)
    assert drive.run_until(ServoState.REACHED, 10.0)


GIVE = [
    lambda drive, age: drive.pose(FAR, age=age),
    lambda drive, age: drive.twist(np.ones(6), age=age),
    lambda drive, age: drive.trajectory([FAR], 1.0, age=age),
]


@pytest.mark.parametrize("give", GIVE, ids=["pose", "twist", "trajectory"])
def test_too_old_a_target_is_refused_and_nothing_changes(give):
    drive, twin = Drive(BENT).pose(FAR), Drive(BENT).pose(FAR)
    for age in (0.26, 60.0, 1e9):
        with pytest.raises(StaleTargetError, match="target_timeout"):
            give(drive, age)
        np.testing.assert_array_equal(drive.run(0.05)[-1].q, twin.run(0.05)[-1].q)


@pytest.mark.parametrize("give", GIVE, ids=["pose", "twist", "trajectory"])
def test_a_target_from_the_future_is_refused_and_nothing_changes(give):
    drive, twin = Drive(BENT).pose(FAR), Drive(BENT).pose(FAR)
    for age in (-61.0, -1e9):
        with pytest.raises(StaleTargetError, match="stamp_tolerance"):
            give(drive, age)
        np.testing.assert_array_equal(drive.run(0.05)[-1].q, twin.run(0.05)[-1].q)


@pytest.mark.parametrize("age", [0.0, 0.1, 0.25, -0.1])
def test_ages_in_between_are_taken_and_told(age):
    drive = Drive(BENT).pose(FAR, age=age)
    drive.run(0.1)
    assert drive.last.target_age == pytest.approx(0.1 + max(age, 0.0))


def test_bounds_of_ages_are_options():
    drive = Drive(BENT, target_timeout=2.0, stamp_tolerance=0.0)
    drive.pose(FAR, age=1.9)
    with pytest.raises(StaleTargetError):
        drive.pose(FAR, age=-0.01)
