"""Mimic joints: who drives whom, and within which limits."""

import numpy as np
import pytest
from oracle import difference_jacobian
from robots import LIMIT, joint, urdf

from dls_ik.exceptions import RobotModelError
from dls_ik.model import RobotModel, load_urdf


def mimic(master, multiplier=1.0, offset=0.0, lower=-2, upper=2, velocity=1.5):
    return (
        f'<mimic joint="{master}" multiplier="{multiplier}" offset="{offset}"/>'
        f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="{velocity}"/>'
    )


def two(detail, kind="revolute", first="revolute"):
    return urdf("a b c", joint("m", first), joint("f", kind, "b", "c", detail))


def test_one_variable_and_two_elements():
    robot = RobotModel.from_urdf(two(mimic("m", 0.5, 0.1)))
    assert (robot.joint_names, robot.n) == (("m",), 1)
    np.testing.assert_array_equal(robot.chain.variable, [0, 0])
    np.testing.assert_array_equal(robot.chain.scale, [1.0, 0.5])
    np.testing.assert_array_equal(robot.chain.offset, [0.0, 0.1])
    angle = 1.5 * 0.8 + 0.1
    np.testing.assert_allclose(robot.fk([0.8])[:2, 0], [np.cos(angle), np.sin(angle)])
    J = difference_jacobian(robot.fk, np.array([0.8]))
    np.testing.assert_allclose(robot.jacobian([0.8]), J, atol=1e-8)
    assert robot.jacobian([0.8])[5, 0] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("detail", "limits"),
    [
        (mimic("m"), (-2.0, 2.0, 1.5)),
        (mimic("m", 2.0), (-1.0, 1.0, 0.75)),
        (mimic("m", -1.0, 0.0, -1, 0.5, 1.0), (-0.5, 1.0, 1.0)),
        (mimic("m", 0.5, 1.0, 0.5, 1.5, 9), (-1.0, 1.0, 1.5)),
        (mimic("m", 1.0, 0.0, -9, 1, 0), (-2.0, 1.0, 1.5)),
        (mimic("m", 0.0, 7.0, -1, 1), (-2.0, 2.0, 1.5)),
    ],
)
def test_limits_of_a_follower_narrow_its_master(detail, limits):
    robot = RobotModel.from_urdf(two(detail))
    assert (robot.lower[0], robot.upper[0], robot.velocity[0]) == pytest.approx(limits)


def test_a_follower_without_limits_is_refused_and_does_not_stop_its_master():
    endless = '<mimic joint="m"/><limit effort="1" velocity="1"/>'
    with pytest.raises(RobotModelError, match=r"'f'.*lower and upper"):
        RobotModel.from_urdf(two(endless))
    master = RobotModel.from_urdf(two(endless), tip="b")
    assert (master.lower[0], master.upper[0]) == (-2.0, 2.0)


def test_no_room_to_move():
    with pytest.raises(RobotModelError, match=r"'f'.*'m'.*no room"):
        RobotModel.from_urdf(two(mimic("m", 1.0, 9.0)))


def test_master_off_the_chain_lends_its_name_and_limits():
    text = urdf(
        "a side b c",
        joint("m", parent="a", child="side"),
        joint("f", parent="a", child="b", detail=mimic("m", -2.0, 0.0, -9, 9, 9)),
        joint("k", parent="b", child="c"),
    )
    robot = RobotModel.from_urdf(text, tip="c")
    assert robot.joint_names == ("m", "k")
    np.testing.assert_array_equal(robot.lower, [-2.0, -2.0])
    np.testing.assert_array_equal(robot.chain.scale, [-2.0, 1.0])
    pose = robot.link_pose("side", [0.3, 0.0])
    np.testing.assert_allclose(pose[:2, 0], [np.cos(0.3), np.sin(0.3)])


def test_followers_of_followers():
    text = urdf(
        "a b c d",
        joint("i", detail=mimic("j", 2.0, 1.0, -99, 99)),
        joint("j", parent="b", child="c", detail=mimic("k", 3.0, -1.0, -99, 99)),
        joint("k", parent="c", child="d"),
    )
    drives = load_urdf(text).drives
    assert drives["i"] == ("k", 6.0, -1.0)
    assert drives["j"] == ("k", 3.0, -1.0)
    assert drives["k"] == ("k", 1.0, 0.0)


def test_multiplier_zero_is_a_fixed_joint():
    robot = RobotModel.from_urdf(two(mimic("m", 0.0, 0.5)))
    assert len(robot.chain.prismatic) == 1
    np.testing.assert_allclose(robot.fk([0.0])[:2, 0], [np.cos(0.5), np.sin(0.5)])


@pytest.mark.parametrize(
    ("multiplier", "kind", "continuous"),
    [(2.0, "continuous", True), (0.5, "continuous", False), (1.0, "prismatic", False)],
)
def test_continuous_only_if_a_turn_changes_nothing(multiplier, kind, continuous):
    robot = RobotModel.from_urdf(two(mimic("m", multiplier), kind, "continuous"))
    assert robot.continuous[0] == continuous


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (two(mimic("x")), ["'f'", "'x'", "m, f"]),
        (two(mimic("m"), first="fixed"), ["'f'", "'m'", "fixed"]),
        (two(mimic("m"), first="floating"), ["'m'", "floating"]),
        (two(mimic("f")), ["'f'", "cycle"]),
        (urdf("a b c", joint("m", detail=mimic("f")), joint("f", child="c", detail=mimic("m"))),
         ["cycle", "m, f"]),
    ],
)  # fmt: skip
def test_bad_masters_are_refused_with(text, words):
    with pytest.raises(RobotModelError) as caught:
        RobotModel.from_urdf(text)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_chain_beside_bad_mimics_is_used_and_a_warning_names_them(caplog):
    text = urdf(
        "a b finger1 finger2 tip",
        joint("j1"),
        joint("j2", parent="b", child="tip"),
        joint("f1", "revolute", "b", "finger1", mimic("nobody")),
        joint("f2", "revolute", "finger1", "finger2", mimic("f1", -1.0)),
    )
    robot = RobotModel.from_urdf(text)  # the only tip that can be one
    assert robot.tip == "tip"
    assert robot.joint_names == ("j1", "j2")
    assert set(robot.tree.drives) == {"j1", "j2"}
    (record,) = caplog.records
    assert "f1, f2 cannot be used" in record.getMessage()
    assert "mimics the unknown joint 'nobody'" in record.getMessage()
    np.testing.assert_allclose(
        robot.link_pose("finger2", [0.3, 0.0]),
        robot.link_pose("b", [0.3, 0.0])
        @ robot.tree.joint["f1"].origin
        @ robot.tree.joint["f2"].origin,
    )
    for tip in ("finger1", "finger2"):
        with pytest.raises(RobotModelError, match="joint 'f1': mimics the unknown joint 'nobody'"):
            RobotModel.from_urdf(text, tip=tip)


def test_overflowing_multiplier():
    text = urdf(
        "a b c d",
        joint("i", detail=mimic("j", 1e300)),
        joint("j", parent="b", child="c", detail=mimic("k", 1e300)),
        joint("k", parent="c", child="d", detail=LIMIT),
    )
    with pytest.raises(RobotModelError, match=r"'j'.*overflow"):
        RobotModel.from_urdf(text)
