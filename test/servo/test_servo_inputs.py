"""What a servo is given: refused with a reason, and the joint values stay as it was."""

import numpy as np
import pytest

from dls_ik import RobotModel
from dls_ik.errors import JointValueError, MethodError, OptionError, PoseError
from dls_ik.servo import LocalIk

WAM = RobotModel.wam()


@pytest.fixture
def servo():
    return LocalIk(WAM)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_pose_that_is_not_finite_is_refused_and_nothing_moves(servo, value):
    T = np.eye(4)
    T[1, 3] = value
    before = servo.q
    with pytest.raises(PoseError, match="finite"):
        servo.step(T, 0.01)
    np.testing.assert_array_equal(servo.q, before)


@pytest.mark.parametrize("T", [np.eye(3), np.zeros((4, 4)), np.diag([1.0, 1.0, -1.0, 1.0]), "pose"])
def test_pose_that_is_none_is_refused(servo, T):
    with pytest.raises(PoseError):
        servo.step(T, 0.01)


@pytest.mark.parametrize("dt", [0.0, -0.01, np.nan, np.inf, None, "x"])
def test_time_step_must_be_positive_and_finite(servo, dt):
    with pytest.raises(OptionError, match="dt"):
        servo.step(np.eye(4), dt)


@pytest.mark.parametrize("q", [[0.0] * 6, [np.nan] * 7, np.zeros((2, 7)), "start"])
def test_start_must_be_joint_values(servo, q):
    before = servo.q
    with pytest.raises(JointValueError):
        servo.reset(q)
    np.testing.assert_array_equal(servo.q, before)


def test_unknown_method_and_option_are_refused():
    with pytest.raises(MethodError, match=r"ctp\+sd\+svf"):
        LocalIk(WAM, "magic")
    with pytest.raises(OptionError, match="gamma_max"):
        LocalIk(WAM, gamma=1.0)


def test_without_a_target_the_arm_stands_still(servo):
    before = servo.q
    out = servo.step(None, 0.01)
    np.testing.assert_array_equal(out.q, before)
    assert np.isnan(out.position_error)


def test_joint_values_are_copies(servo):
    start = servo.q
    servo.q[:] = 9.0
    servo.step(None, 0.01).q[:] = 9.0
    np.testing.assert_array_equal(servo.q, start)
    mine = np.full(WAM.n, 0.1)
    servo.reset(mine)
    mine[:] = 9.0
    np.testing.assert_array_equal(servo.q, np.full(WAM.n, 0.1))


def test_a_start_that_no_one_gave_is_inside_the_limits():
    assert WAM.within_limits(LocalIk(WAM).q)
