"""Base and tip: found when unambiguous, asked for with the candidates when not."""

import pytest
from robots import joint, urdf

from dls_ik.exceptions import ChainError
from dls_ik.model import RobotModel, load_urdf

TWO_ARMS = urdf(
    "world base left tool right camera",
    joint("drive", "floating", "world", "base"),
    joint("l", parent="base", child="left"),
    joint("t", "fixed", "left", "tool"),
    joint("r", parent="base", child="right"),
    joint("c", "fixed", "base", "camera"),
)


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
    assert [each.name for each in tree.below["base"]] == ["l", "r", "c"]


def test_fixed_offset_across_a_floating_joint():
    tree = load_urdf(TWO_ARMS)
    assert tree.fixed_offset("world", "camera") is None
    assert tree.fixed_offset("camera", "base") is not None
    with pytest.raises(ChainError, match="'wrist'"):
        tree.fixed_offset("camera", "wrist")


def test_overflowing_lengths():
    from dls_ik.exceptions import RobotModelError

    far = '<origin xyz="1.7e308 0 0"/><limit lower="0" upper="1"/>'
    text = urdf(
        "a b c", joint("i", "fixed", "a", "b", far), joint("j", parent="b", child="c", detail=far)
    )
    with pytest.raises(RobotModelError, match="beyond"):
        RobotModel.from_urdf(text)
