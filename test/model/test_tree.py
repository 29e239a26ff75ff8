# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Trees: mimic joints, and the kinematics of random trees compared with the oracle."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import difference_jacobian, urdf_pose
from random_robots import random_robots
from robots import LIMIT, joint, urdf

from dls_ik.errors import ChainError, RobotModelError
from dls_ik.model import RobotModel, load_urdf

quick = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def mimic(master, multiplier=1.0, offset=0.0, lower=-2, upper=2, velocity=1.5):
    return (
        f'<mimic joint="{master}" multiplier="{multiplier}" offset="{offset}"/>'
        f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="{velocity}"/>'
    )


def two_joints(detail, kind="revolute", first="revolute"):
    return urdf("a b c", joint("m", first), joint("f", kind, "b", "c", detail))


def test_a_mimic_joint_shares_the_variable_of_its_master():
    robot = RobotModel.from_urdf(two_joints(mimic("m", 0.5, 0.1)))
    assert (robot.joint_names, robot.n) == (("m",), 1)
    np.testing.assert_array_equal(robot.chain.variable, [0, 0])
    np.testing.assert_array_equal(robot.chain.scale, [1.0, 0.5])
    np.testing.assert_array_equal(robot.chain.offset, [0.0, 0.1])
    angle = 1.5 * 0.8 + 0.1
    np.testing.assert_allclose(robot.fk([0.8])[:2, 0], [np.cos(angle), np.sin(angle)])
    assert robot.jacobian([0.8])[5, 0] == pytest.approx(1.5)
    fixed = RobotModel.from_urdf(two_joints(mimic("m", 0.0, 0.5)))  # a multiplier of zero
    assert len(fixed.chain.prismatic) == 1
    np.testing.assert_allclose(fixed.fk([0.0])[:2, 0], [np.cos(0.5), np.sin(0.5)])


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
def test_limits_of_a_mimic_joint_narrow_its_master(detail, limits):
    robot = RobotModel.from_urdf(two_joints(detail))
    assert (robot.lower[0], robot.upper[0], robot.velocity[0]) == pytest.approx(limits)


def test_mimic_joints_without_limits_are_refused_or_do_not_narrow():
    endless = '<mimic joint="m"/><limit effort="1" velocity="1"/>'
    with pytest.raises(RobotModelError, match=r"'f'.*lower and upper"):
        RobotModel.from_urdf(two_joints(endless))
    master = RobotModel.from_urdf(two_joints(endless), tip="b")
    assert (master.lower[0], master.upper[0]) == (-2.0, 2.0)


def test_a_master_off_the_chain_gives_name_and_limits():
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


def test_chained_mimic_joints_resolve_to_one_master():
    text = urdf(
        "a b c d",
        joint("i", detail=mimic("j", 2.0, 1.0, -99, 99)),
        joint("j", parent="b", child="c", detail=mimic("k", 3.0, -1.0, -99, 99)),
        joint("k", parent="c", child="d"),
    )
    drives = load_urdf(text).mimic_of
    assert drives["i"] == ("k", 6.0, -1.0)
    assert drives["j"] == ("k", 3.0, -1.0)
    assert drives["k"] == ("k", 1.0, 0.0)


@pytest.mark.parametrize(
    ("multiplier", "kind", "continuous"),
    [(2.0, "continuous", True), (0.5, "continuous", False), (1.0, "prismatic", False)],
)
def test_continuous_mimic_joints_need_an_integer_multiplier(multiplier, kind, continuous):
    robot = RobotModel.from_urdf(two_joints(mimic("m", multiplier), kind, "continuous"))
    assert robot.continuous[0] == continuous


HUGE = urdf(
    "a b c d",
    joint("i", detail=mimic("j", 1e300)),
    joint("j", parent="b", child="c", detail=mimic("k", 1e300)),
    joint("k", parent="c", child="d", detail=LIMIT),
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (two_joints(mimic("x")), ["'f'", "'x'", "m, f"]),
        (two_joints(mimic("m"), first="fixed"), ["'f'", "'m'", "fixed"]),
        (two_joints(mimic("m"), first="floating"), ["'m'", "floating"]),
        (two_joints(mimic("f")), ["'f'", "cycle"]),
        (two_joints(mimic("m", 1.0, 9.0)), ["'f'", "'m'", "exclude every position"]),
        (urdf("a b c", joint("m", detail=mimic("f")), joint("f", child="c", detail=mimic("m"))),
         ["cycle", "m, f"]),
        (HUGE, ["'j'", "within"]),
    ],
)  # fmt: skip
def test_invalid_masters_are_refused(text, words):
    with pytest.raises(RobotModelError) as caught:
        RobotModel.from_urdf(text)
    assert [word for word in words if word not in str(caught.value)] == []


def test_invalid_mimic_joints_off_the_chain_give_a_warning(caplog):
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
    assert set(robot.tree.mimic_of) == {"j1", "j2"}
    (record,) = caplog.records
    assert "f1, f2 are not usable" in record.getMessage()
    assert "mimics the unknown joint 'nobody'" in record.getMessage()
    np.testing.assert_allclose(
        robot.link_pose("finger2", [0.3, 0.0]),
        robot.link_pose("b", [0.3, 0.0])
        @ robot.tree.joint["f1"].origin
        @ robot.tree.joint["f2"].origin,
    )
    for tip in ("finger1", "finger2"):
        with pytest.raises(RobotModelError, match=r"'f1'.*'nobody'"):
            RobotModel.from_urdf(text, tip=tip)


def chain_of(drawn, base, tip):
    """Return the robot and the values of its variables; discard chains that cannot move."""
    try:
        robot = RobotModel.from_urdf(drawn.text, base, tip)
    except ChainError:
        assume(False)
    return robot, np.array([drawn.values[name] for name in robot.joint_names])


def cannot_move(drawn, tip):
    """Tell whether all joints above a link mimic others with multiplier 0."""
    tree = load_urdf(drawn.text)
    path = [joint for joint in tree.path("l0", tip) if joint.is_driven]
    return all(tree.mimic_of[joint.name].multiplier == 0.0 for joint in path)


@quick
@given(random_robots(), st.data())
def test_fk_and_jacobian_of_random_trees_match_the_oracle(drawn, data):
    tip = data.draw(st.integers(1, len(drawn.links) - 1))
    above = [0, *drawn.above(tip)]
    base = f"l{data.draw(st.sampled_from(above))}"
    robot, q = chain_of(drawn, base, f"l{tip}")
    expected = urdf_pose(drawn.text, base, f"l{tip}", drawn.values)
    np.testing.assert_allclose(robot.fk(q), expected, atol=1e-11)
    differences = difference_jacobian(robot.fk, q)
    scale = 1.0 + np.abs(differences).max()
    np.testing.assert_allclose(robot.jacobian(q), differences, atol=1e-7 * scale)


@quick
@given(random_robots(), st.data())
def test_poses_of_links_off_the_chain_match_the_oracle(drawn, data):
    for link in drawn.links:
        expected = urdf_pose(drawn.text, "l0", link, drawn.values)
        pose = load_urdf(drawn.text).pose(link, drawn.values)
        np.testing.assert_allclose(pose, expected, atol=1e-11)
    robot, q = chain_of(drawn, None, drawn.links[-1])
    link = data.draw(st.sampled_from(drawn.links))
    others = {k: v for k, v in drawn.values.items() if k not in robot.joint_names}
    expected = urdf_pose(drawn.text, "l0", link, drawn.values)
    np.testing.assert_allclose(robot.link_pose(link, q, others), expected, atol=1e-11)


@quick
@given(random_robots(), st.data())
def test_fixed_offset_exists_only_for_rigidly_attached_links(drawn, data):
    a, b = (data.draw(st.sampled_from(range(len(drawn.links)))) for _ in range(2))
    between = set(drawn.above(a)) ^ set(drawn.above(b))
    rigid = all(drawn.kinds[i - 1] == "fixed" for i in between)
    offset = load_urdf(drawn.text).fixed_offset(f"l{a}", f"l{b}")
    assert (offset is not None) == rigid
    if rigid:
        expected = urdf_pose(drawn.text, f"l{a}", f"l{b}", drawn.values)
        np.testing.assert_allclose(offset, expected, atol=1e-11)


@quick
@given(random_robots())
def test_the_only_tip_is_found_or_candidates_are_listed(drawn):
    inner = {f"l{i}" for i in drawn.parents}
    moving = [x for i, x in enumerate(drawn.links) if x not in inner and drawn.moves(i)]
    try:
        tip, words = RobotModel.from_urdf(drawn.text).tip, ""
    except ChainError as error:
        tip, words = None, str(error)
    if len(moving) == 1 and not cannot_move(drawn, moving[0]):
        assert tip == moving[0]
    elif tip is None and moving:
        assert any(link in words for link in moving)
    else:
        assert tip in moving or (tip is None and words)


@quick
@given(random_robots())
def test_values_within_the_limits_keep_the_limits_of_every_element(drawn):
    robot, _ = chain_of(drawn, None, drawn.links[-1])
    path = robot.tree.path(robot.base, robot.tip)
    for q in robot.random(20, np.random.default_rng(0)):
        values = robot.tree.values(dict(zip(robot.joint_names, q, strict=True)))
        for each in path:
            if each.is_driven and robot.tree.mimic_of[each.name].multiplier:
                assert each.lower - 1e-9 <= values[each.name] <= each.upper + 1e-9
    fastest = np.abs(robot.chain.scale) * robot.velocity[robot.chain.variable]
    assert (fastest <= 1.0 + 1e-9).all()
