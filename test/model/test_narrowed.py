"""Limits narrowed by intervals: what is left, of angles that turn freely too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import LIMIT, joint, urdf

from dls_ik import IkSolver, RobotModel
from dls_ik.exceptions import JointValueError, LimitsError

WAM = RobotModel.wam()
TURN = 2.0 * np.pi
WHEEL = RobotModel.from_urdf(
    urdf(
        "a b c d",
        joint("wheel", "continuous", "a", "b", "<origin xyz='0 0 0.3'/>"),
        joint("arm", "revolute", "b", "c", LIMIT, "0 1 0"),
        joint("slide", "prismatic", "c", "d", LIMIT, "1 0 0"),
    )
)
quick = settings(deadline=None, max_examples=200, derandomize=True)


def test_limits_and_intervals_have_in_common_what_both_allow():
    lower, upper = np.full(7, -np.inf), np.full(7, np.inf)
    lower[1], upper[3] = 0.2, 1.0
    robot = WAM.narrowed(lower, upper)
    np.testing.assert_array_equal(robot.lower, np.maximum(WAM.lower, lower))
    np.testing.assert_array_equal(robot.upper, np.minimum(WAM.upper, upper))
    assert robot.joint_names == WAM.joint_names
    q = np.full(7, 0.3)
    np.testing.assert_array_equal(robot.fk(q), WAM.fk(q))
    assert robot.whole is WAM
    assert robot.narrowed(-1.0, 1.0).whole is WAM
    assert not robot.lower.flags.writeable


def test_nothing_in_common_names_joint_and_both_intervals():
    with pytest.raises(LimitsError, match=r"'arm'.*\[-2.0, 2.0\].*\[2.5, 3.0\]"):
        WHEEL.narrowed([-np.inf, 2.5, -np.inf], [np.inf, 3.0, np.inf])
    with pytest.raises(LimitsError, match="'wheel'"):
        WHEEL.narrowed([0.0, -9, -9], [0.5, 9, 9]).narrowed([1.0, -9, -9], [1.5, 9, 9])
    with pytest.raises(LimitsError, match="'arm'"):
        WHEEL.narrowed(-9.0, [9.0, -10.0, 9.0])


@pytest.mark.parametrize("bad", ["low", np.nan, [1.0, 2.0], None, np.inf, [[0.0] * 3] * 2])
def test_what_are_no_limits_is_refused(bad):
    with pytest.raises(LimitsError, match="wheel"):
        WHEEL.narrowed(bad, np.inf)
    with pytest.raises(JointValueError):
        WHEEL.narrowed(-1.0, 1.0, near=[0.0])
    for batch in (np.zeros((0, 3)), np.zeros((2, 3))):
        with pytest.raises(JointValueError, match="one configuration"):
            WHEEL.narrowed(-1.0, 1.0, near=batch)


def test_an_angle_that_is_too_coarse_is_refused():
    for far in (1.0000001e9, 1e16, 1.7976931348623157e308):
        with pytest.raises(LimitsError, match=r"'wheel'.*too coarse"):
            WHEEL.narrowed([far, -1.0, -1.0], [far, 1.0, 1.0])
    assert WHEEL.narrowed([-1e308, -1.0, -1.0], [1e308, 1.0, 1.0]).continuous[0]


def test_limits_from_zero_to_minus_zero_leave_one_value():
    narrow = WHEEL.narrowed(0.0, -0.0)
    assert not narrow.random(np.random.default_rng(0), 3).any()
    assert len(IkSolver(narrow).solve_all(narrow.fk(np.zeros(3)), 2)) == 1


@quick
@given(st.floats(-20.0, 20.0), st.floats(0.0, 3.1), st.floats(-20.0, 20.0))
def test_an_angle_is_the_same_some_turns_on(middle, reach, near):
    bounds = np.array([reach, np.inf, np.inf])
    center = np.array([middle, 0.0, 0.0])
    robot = WHEEL.narrowed(center - bounds, center + bounds, near=[near, 0.0, 0.0])
    moved = 0.5 * (robot.lower[0] + robot.upper[0])
    assert abs(moved - near) <= np.pi + 1e-9
    assert np.cos(moved - middle) == pytest.approx(1.0, abs=1e-9)
    assert robot.upper[0] - robot.lower[0] == pytest.approx(2.0 * reach, abs=1e-9)
    assert not robot.continuous[0]


def test_a_turn_or_more_is_no_bound():
    for lower, upper in ((-np.pi, np.pi), (1.0, 9.0), (-np.inf, 0.0)):
        robot = WHEEL.narrowed([lower, -9, -9], [upper, 9, 9])
        assert robot.continuous[0]
        assert np.isinf(robot.lower[0])


@quick
@given(st.floats(-9.0, 9.0), st.floats(0.1, 3.0), st.floats(-9.0, 9.0), st.floats(0.1, 3.0))
def test_two_intervals_of_an_angle(first, a, second, b):
    """What is left is within both, and is found whenever there is any."""
    apart = abs((first - second + np.pi) % TURN - np.pi)
    ends = [np.array([x, -9.0, -9.0]) for x in (first - a, second - b)]
    tops = [np.array([x, 9.0, 9.0]) for x in (first + a, second + b)]
    once = WHEEL.narrowed(ends[0], tops[0])
    if apart > a + b + 1e-9:
        with pytest.raises(LimitsError):
            once.narrowed(ends[1], tops[1])
    elif apart < a + b - 1e-9:
        both = once.narrowed(ends[1], tops[1])
        for angle in np.linspace(both.lower[0], both.upper[0], 5):
            for middle, reach in ((first, a), (second, b)):
                assert abs((angle - middle + np.pi) % TURN - np.pi) <= reach + 1e-9


@quick
@given(st.integers(0, 10**6), st.floats(0.01, 0.5))
def test_answers_keep_narrowed_limits(seed, reach):
    """From any seed, also of the full pose, and there is one where there must be."""
    rng = np.random.default_rng(seed)
    q = WAM.random(rng)
    middle = q + rng.uniform(-reach, reach, 7)
    robot = WAM.narrowed(middle - reach, middle + reach)
    found = IkSolver(robot, max_restarts=500, random_seed=1).solve(WAM.fk(q), WAM.random(rng), 10.0)
    assert found.success
    assert (np.abs(found.q - middle) <= reach + 1e-15).all()
    assert WAM.within_limits(found.q)
    np.testing.assert_allclose(WAM.fk(found.q), WAM.fk(q), atol=5e-6)


def test_beyond_the_reach_of_the_whole_robot_is_unreachable_for_a_narrowed_one():
    far = WAM.fk(np.full(7, 0.3))
    far[:3, 3] += 5.0
    found = IkSolver(WAM.narrowed(-0.5, 0.9)).solve(far)
    assert found.status.name == "UNREACHABLE"
