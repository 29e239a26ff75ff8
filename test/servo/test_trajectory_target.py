"""Poses at equal times: straight between them, at constant rates, and when they begin."""

import numpy as np
import pytest
from oracle import rigid, rotation

from dls_ik.core.se3 import difference
from dls_ik.servo.targets import TrajectoryTarget

Ts = np.array([rigid(rotation([0, k, 1.0], 0.4 * k), [0.1 * k, 0.2, -0.05 * k]) for k in range(4)])
AWAY = rigid(np.eye(3), [5.0, 0.0, 0.0])


def pose(target, now, tip=Ts[0]):
    return target.pose(now, 0.01, lambda: tip)


def test_it_waits_at_the_first_pose_for_the_tip():
    target = TrajectoryTarget(Ts, 0.5, 0.0)
    for now in (0.0, 1.0, 1e9):
        np.testing.assert_array_equal(pose(target, now, AWAY), Ts[0])


@pytest.mark.parametrize("begin", [0.0, 1e9])
def test_it_is_at_each_pose_on_time_and_straight_between(begin):
    target = TrajectoryTarget(Ts, 0.5, begin)
    for share in np.linspace(0.0, 3.0, 25):
        T, leg = pose(target, begin + 0.5 * share, Ts[0] if share == 0.0 else AWAY), int(share)
        if leg == 3:
            np.testing.assert_array_equal(T, Ts[3])
            continue
        whole = difference(Ts[leg], Ts[leg + 1])
        np.testing.assert_allclose(difference(Ts[leg], T), whole * (share - leg), atol=1e-6)


def test_the_last_pose_stays():
    target = TrajectoryTarget(Ts, 0.5, 0.0)
    pose(target, 0.0)
    np.testing.assert_array_equal(pose(target, 1e9), Ts[3])
    assert not target.is_stale(1e9)


def test_it_does_not_begin_before_its_time():
    target = TrajectoryTarget(Ts, 0.5, 10.0)
    np.testing.assert_array_equal(pose(target, 9.99), Ts[0])
    pose(target, 10.0)
    assert np.abs(pose(target, 10.1) - Ts[0]).max() > 1e-3


def test_a_time_before_its_beginning_is_its_beginning():
    """Found by python -m fuzz controller: a clock that is set back."""
    target = TrajectoryTarget(Ts, 0.5, 1.0)
    np.testing.assert_array_equal(pose(target, 100.0), Ts[0])
    for early in (99.9, 90.0, -1e9):
        np.testing.assert_array_equal(pose(target, early), Ts[0])


def test_it_stands_before_its_beginning_and_after_its_end_only():
    target = TrajectoryTarget(Ts, 0.5, 0.0)
    assert target.stands(0.3), "the arm may come there by any way"
    pose(target, 1.0)
    assert not target.stands(1.0)
    assert not target.stands(2.6)
    assert target.stands(2.8)


def test_one_pose_alone():
    target = TrajectoryTarget(Ts[:1], 0.5, 0.0)
    for now in (0.0, 0.1, 5.0):
        np.testing.assert_array_equal(pose(target, now), Ts[0])
    assert target.stands(5.0)
