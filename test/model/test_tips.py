"""Base and tips: found or asked for, several solved together, and bad names."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import difference_jacobian, urdf_pose
from robots import LIMIT, joint, random_robots, urdf

from dls_ik.errors import ChainError, RobotModelError
from dls_ik.model import RobotModel, load_urdf

quick = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
UP = '<origin xyz="0 0 1"/>' + LIMIT
OUT = '<origin xyz="1 0 0"/>' + LIMIT
TORSO = urdf(
    "base trunk l_arm l_hand r_arm r_hand tail",
    joint("waist", parent="base", child="trunk", detail=UP),
    joint("r1", parent="trunk", child="r_arm", detail=OUT, axis="0 1 0"),
    joint("r2", parent="r_arm", child="r_hand", detail=OUT, axis="0 1 0"),
    joint("l1", parent="trunk", child="l_arm", detail=OUT, axis="0 0 1"),
    joint("l2", "prismatic", parent="l_arm", child="l_hand", detail=OUT, axis="1 0 0"),
    joint("t", "fixed", parent="base", child="tail"),
)
BOTH = RobotModel.from_urdf(TORSO, tip=("l_hand", "r_hand"))

TWO_ARMS = urdf(
    "world base left tool right camera",
    joint("drive", "floating", "world", "base"),
    joint("l", parent="base", child="left"),
    joint("t", "fixed", "left", "tool"),
    joint("r", parent="base", child="right"),
    joint("c", "fixed", "base", "camera"),
)


@quick
@given(random_robots(), st.data())
def test_each_tip_against_the_oracle(drawn, data):
    moving = [link for i, link in enumerate(drawn.links) if drawn.moves(i)]
    assume(len(moving) > 1)
    tips = data.draw(
        st.lists(st.sampled_from(moving), min_size=2, max_size=min(3, len(moving)), unique=True)
    )
    try:
        robot = RobotModel.from_urdf(drawn.text, "l0", tips)
    except ChainError:
        assume(False)
    q = np.array([drawn.values[name] for name in robot.joint_names])
    expected = [urdf_pose(drawn.text, "l0", tip, drawn.values) for tip in tips]
    np.testing.assert_allclose(robot.fk(q), expected, atol=1e-11)
    J = [difference_jacobian(lambda q, p=p: robot.fk(q)[p], q) for p in range(len(tips))]
    J = np.concatenate(J)
    np.testing.assert_allclose(robot.jacobian(q), J, atol=1e-7 * (1.0 + np.abs(J).max()))


def test_what_it_says_of_itself():
    assert (BOTH.tip, BOTH.tips) == ("l_hand", ("l_hand", "r_hand"))
    assert BOTH.joint_names == ("waist", "l1", "l2", "r1", "r2")
    np.testing.assert_array_equal(BOTH.chain.first, [0, 3, 6])
    assert BOTH.chain.fixed.shape == (8, 3, 4)
    other = RobotModel.from_urdf(TORSO, tip=["r_hand", "l_hand"])
    assert other.joint_names == ("waist", "r1", "r2", "l1", "l2")


@pytest.mark.parametrize(("hand", "columns"), [("l_hand", [0, 1, 2]), ("r_hand", [0, 3, 4])])
def test_a_tip_is_as_it_is_alone(hand, columns):
    alone, p = RobotModel.from_urdf(TORSO, tip=hand), BOTH.tips.index(hand)
    q = BOTH.random(np.random.default_rng(0), 20)
    np.testing.assert_array_equal(BOTH.fk(q)[:, p], alone.fk(q[:, columns]))
    J = BOTH.jacobian(q)[:, 6 * p : 6 * p + 6]
    np.testing.assert_array_equal(J[..., columns], alone.jacobian(q[:, columns]))
    assert not np.delete(J, columns, axis=2).any()


def test_batch_equals_loop():
    q = BOTH.random(np.random.default_rng(0), 10)
    assert BOTH.fk(q).shape == (10, 2, 4, 4)
    assert BOTH.jacobian(q).shape == (10, 12, 5)
    np.testing.assert_array_equal(BOTH.fk(q), [BOTH.fk(each) for each in q])
    np.testing.assert_array_equal(BOTH.jacobian(q), [BOTH.jacobian(each) for each in q])
    assert BOTH.fk(q[0]).shape == (2, 4, 4)
    assert BOTH.fk(q[:0]).shape == (0, 2, 4, 4)
    assert BOTH.jacobian(q[:0]).shape == (0, 12, 5)


@pytest.mark.parametrize("tip", ["l_hand", ["l_hand"], ("l_hand",)])
def test_a_sequence_of_one_is_one_tip(tip):
    robot = RobotModel.from_urdf(TORSO, tip=tip)
    assert (robot.tip, robot.tips) == ("l_hand", ("l_hand",))
    assert robot.fk(np.zeros(3)).shape == (4, 4)
    assert robot.jacobian(np.zeros((2, 3))).shape == (2, 6, 3)


@pytest.mark.parametrize("tip", [None, "", (), []])
def test_no_name_means_find_it(tip):
    assert RobotModel.from_urdf(TORSO, "l_arm", tip).tips == ("l_hand",)


def test_a_tip_above_another():
    robot = RobotModel.from_urdf(TORSO, tip=("r_hand", "r_arm"))
    assert robot.joint_names == ("waist", "r1", "r2")
    J = robot.jacobian([0.1, 0.2, 0.3])
    assert not J[6:, 2].any()
    assert J[:6, 2].any()


def test_link_pose_is_that_of_the_tip():
    q = BOTH.random(np.random.default_rng(1))
    for tip, T in zip(BOTH.tips, BOTH.fk(q), strict=True):
        np.testing.assert_allclose(BOTH.link_pose(tip, q), T, atol=1e-14)


@pytest.mark.parametrize(
    ("tip", "words"),
    [
        (("l_hand", "l_hand"), ["once", "l_hand"]),
        (("l_hand", "r_hand", "foot"), ["tip", "'foot'", "base, trunk"]),
        (("l_hand", ""), ["tip", "''"]),
        (("l_hand", "tail"), ["no moving joint", "'tail'"]),
        (("l_hand", "base"), ["no moving joint", "'base'"]),
        (("l_hand", 3), ["sequence of names", "3"]),
        (7, ["name of a link", "7"]),
        (np.array(["l_hand", "r_hand"]), ["sequence of names"]),
        ({"l_hand": 1}, ["sequence of names"]),
    ],
)
def test_bad_tips_are_refused_with(tip, words):
    with pytest.raises(ChainError) as caught:
        RobotModel.from_urdf(TORSO, tip=tip)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_tip_that_is_not_below_the_base():
    with pytest.raises(ChainError, match=r"no chain leads from 'trunk' down to 'tail'"):
        RobotModel.from_urdf(TORSO, "trunk", ("l_hand", "tail"))


def test_followers_on_any_path_narrow_their_master():
    def follower(multiplier):
        return f'<mimic joint="m" multiplier="{multiplier}"/>' + LIMIT

    text = urdf(
        "a b c d",
        joint("m"),
        joint("f", parent="b", child="c", detail=follower(2)),
        joint("g", parent="b", child="d", detail=follower(-4)),
    )
    robot = RobotModel.from_urdf(text, tip=("c", "d"))
    assert robot.joint_names == ("m",)
    assert (robot.lower[0], robot.upper[0], robot.velocity[0]) == (-0.5, 0.5, 0.375)
    np.testing.assert_array_equal(robot.chain.variable, 0)
    np.testing.assert_array_equal(robot.chain.scale, [1, 2, 1, -4])
    angle = np.arctan2(robot.fk([0.1])[:, 1, 0], robot.fk([0.1])[:, 0, 0])
    np.testing.assert_allclose(angle, [0.3, -0.3])


def test_arrays_are_read_only():
    assert not any(array.flags.writeable for array in BOTH.chain)


def test_other_constructors_take_them_too():
    assert RobotModel.from_tree(load_urdf(TORSO), "trunk", ["l_hand", "r_arm"]).n == 3
    wam = RobotModel.from_name("wam", tip=("wam_tip", "wam_link4"))
    assert wam.fk(np.zeros(7)).shape == (2, 4, 4)


def ends(text, *given):
    robot = RobotModel.from_urdf(text, *given)
    return robot.base, robot.tip


def test_root_and_only_tip():
    assert ends(urdf("a b", joint("j"))) == ("a", "b")


def test_empty_names_mean_find_them():
    assert ends(urdf("a b", joint("j")), "", "") == ("a", "b")


def test_tips_that_do_not_move_are_no_candidates():
    text = urdf("a b eye", joint("j"), joint("k", "fixed", "a", "eye"))
    assert ends(text) == ("a", "b")


def test_tip_below_a_given_base():
    assert ends(TWO_ARMS, "base", "tool") == ("base", "tool")
    text = urdf("r a b c", joint("i", "fixed", "r", "a"), joint("j"), joint("k", "fixed", "r", "c"))
    assert ends(text, "a") == ("a", "b")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("base",), ["several", "tool, right"]),
        (("base", "wrist"), ["tip", "'wrist'", "world, base, left, tool, right, camera"]),
        (("floor", "tool"), ["base", "'floor'", "world, base, left, tool, right, camera"]),
        (("right", "tool"), ["no chain", "'right'", "'tool'", "world, base, left", "camera"]),
        (("tool", "base"), ["no chain", "'tool'", "'base'", "world", "camera"]),
        (("base", "camera"), ["no moving joint", "'camera'", "world, base, left"]),
        (("base", "base"), ["no moving joint", "world, base, left"]),
        (("left",), ["no link moves", "'left'", "world, base, left"]),
        (("world", "tool"), ["'drive'", "floating", "revolute, continuous, prismatic"]),
        ((), ["several", "tool, right, camera"]),
    ],
)
def test_bad_ends_are_refused_with(given, words):
    with pytest.raises(ChainError) as caught:
        RobotModel.from_urdf(TWO_ARMS, *given)
    assert [word for word in words if word not in str(caught.value)] == []


def test_planar_joint_on_the_chain():
    with pytest.raises(ChainError, match=r"'j'.*planar"):
        RobotModel.from_urdf(urdf("a b", joint("j", "planar")))


def test_long_lists_are_shortened():
    links = ["a", "b", *(f"l{i}" for i in range(500))]
    joints = [joint("j"), *(joint(f"k{i}", "fixed", "b", f"l{i}") for i in range(500))]
    with pytest.raises(ChainError, match="and 478 more") as caught:
        RobotModel.from_urdf(urdf(" ".join(links), *joints), tip="nowhere")
    assert len(str(caught.value)) < 300


def test_leaves_and_path():
    tree = load_urdf(TWO_ARMS)
    assert tree.leaves == ("tool", "right", "camera")
    assert [each.name for each in tree.path("base", "tool")] == ["l", "t"]
    assert tree.path("left", "left") == ()
    assert [each.name for each in tree.child_joints["base"]] == ["l", "r", "c"]


def test_fixed_offset_across_a_floating_joint():
    tree = load_urdf(TWO_ARMS)
    assert tree.fixed_offset("world", "camera") is None
    assert tree.fixed_offset("camera", "base") is not None
    with pytest.raises(ChainError, match="'wrist'"):
        tree.fixed_offset("camera", "wrist")


def test_overflowing_lengths():
    far = '<origin xyz="1.7e308 0 0"/><limit lower="0" upper="1"/>'
    text = urdf(
        "a b c", joint("i", "fixed", "a", "b", far), joint("j", parent="b", child="c", detail=far)
    )
    with pytest.raises(RobotModelError, match=r"within 1e\+09 m"):
        RobotModel.from_urdf(text)
