"""Trajectories: to the first pose by whatever way, then through the others on time."""

import numpy as np
import pytest
from drive import BENT, DT, WAM, Drive

from dls_ik.errors import OptionError, PoseError
from dls_ik.servo import ServoState


def line(count, way=(0.0, 0.2, 0.1), q=BENT):
    Ts = np.repeat(WAM.fk(q)[None], count, axis=0)
    Ts[:, :3, 3] += np.linspace(0, 1, count)[:, None] * way
    return Ts


def test_it_is_on_time_from_where_it_begins():
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
def test_it_begins_when_the_arm_is_at_the_first_pose(acceleration):
    Ts = line(3, q=BENT + 0.5)
    drive = Drive(BENT, acceleration=acceleration).trajectory(Ts, 1.0)
    drive.run(12.0)
    begun = next(k for k, out in enumerate(drive.outputs) if not np.array_equal(out.T_d, Ts[0]))
    assert drive.outputs[begun - 1].position_error < 2e-3
    assert drive.last.state is ServoState.REACHED
    drive.assert_limits(acceleration)


def test_it_begins_after_a_joint_motion_not_during_it():
    rng, found = np.random.default_rng(62), 0
    for _ in range(8):
        q = WAM.random(rng)
        Ts = np.repeat(WAM.fk(q)[None], 2, axis=0)
        Ts[1, 2, 3] -= 0.01
        drive = Drive(WAM.random(rng)).trajectory(Ts, 0.5)
        drive.run(12.0)
        for out in drive.outputs:
            if out.state is ServoState.JOINT_MOTION:
                assert np.array_equal(out.T_d, Ts[0]) or np.array_equal(out.T_d, Ts[1])
        begun = next(
            (k for k, o in enumerate(drive.outputs) if not np.array_equal(o.T_d, Ts[0])), 0
        )
        if ServoState.JOINT_MOTION in drive.states[:begun]:
            found += 1
            assert drive.outputs[begun - 1].position_error < 2e-3
    assert found >= 2


def test_one_pose_is_a_target_that_stands():
    drive = Drive(BENT).trajectory(WAM.fk(BENT + 0.4)[None], 1.0)
    assert drive.run_until(ServoState.REACHED, 10.0)
    drive.run(100.0)
    assert drive.last.state is ServoState.REACHED


@pytest.mark.parametrize("period", [1e-3, 3600.0])
def test_periods_at_the_bounds(period):
    drive = Drive(BENT, acceleration=8.0).trajectory(line(4), period)
    drive.run(8.0)
    drive.assert_limits(8.0)
    if period < 1.0:
        assert drive.last.state is ServoState.REACHED
        np.testing.assert_array_equal(drive.last.T_d, line(4)[-1])
    else:
        assert np.linalg.norm(drive.last.T_d[:3, 3] - line(4)[0, :3, 3]) < 1e-3


@pytest.mark.parametrize("period", [0.0, -1.0, 9e-4, 3601.0, np.nan, np.inf, "1", None, True])
def test_other_periods_are_refused(period):
    with pytest.raises(OptionError, match="period"):
        Drive(BENT).trajectory(line(3), period)


def test_an_unreachable_first_pose_is_never_left_and_said():
    Ts = line(3)
    Ts[:, 0, 3] += 3.0
    drive = Drive(BENT).trajectory(Ts, 0.1)
    drive.run(20.0)
    assert drive.last.state is ServoState.UNREACHABLE
    np.testing.assert_array_equal(drive.last.T_d, Ts[0])
    assert np.ptp(drive.q[-50:], axis=0).max() == 0.0


def test_it_begins_as_late_as_it_is_told():
    drive = Drive(BENT).trajectory(line(3), 0.5, age=-2.0)
    drive.run(1.99)
    np.testing.assert_array_equal(drive.last.T_d, line(3)[0])
    drive.run(0.1)
    assert not np.array_equal(drive.last.T_d, line(3)[0])
    drive.run(2.0)
    assert drive.last.state is ServoState.REACHED


def test_a_pose_that_is_none_is_named_by_its_number():
    Ts = line(3)
    Ts[1, 0, 0] = 5.0
    with pytest.raises(PoseError, match="pose 1"):
        Drive(BENT).trajectory(Ts, 1.0)


def test_poses_given_may_change_after():
    Ts = line(3)
    drive = Drive(BENT).trajectory(Ts, 0.2)
    Ts[:] = np.eye(4)
    drive.run(2.0)
    np.testing.assert_allclose(drive.last.T_d, line(3)[-1])
