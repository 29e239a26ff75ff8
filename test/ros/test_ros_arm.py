# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Groups of one node, and several tips at once, as functions."""

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from ros_arms import CURRENT, TIPS, TREE
from ros_requests import ask, refusal, values

from dls_ik import RobotModel
from dls_ik.errors import Code, MethodError, OptionError
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.params import Parameters

GROUPS = {
    "groups": ["left_arm", "right_arm", "both_arms"],
    "group.left_arm.tip": "left_wam_tip",
    "group.right_arm.tip": "right_wam_tip",
    "group.right_arm.base": "right_wam_base",
    "group.right_arm.method": "svf+sd",
    "group.right_arm.timeout": 0.3,
    "group.both_arms.tip": list(TIPS),
}
BOTH = {"stream_group": "both_arms"}


def two_arms(**parameters):
    given = Parameters().changed({**GROUPS, **parameters})
    return Arm(RobotModel.from_tree(TREE, *given.ends()), given)


@pytest.fixture(scope="module")
def arms():
    return two_arms()


def place(link, **moved):
    """Where a link is, with some joints elsewhere."""
    return TREE.pose(link, {**CURRENT, **moved})


def solved(arms, poses, **fields):
    """The joint values of an answer; each link is brought to its pose, all else stays."""
    stamped = [PoseStamped(pose=pose_from_matrix(T)) for T in poses.values()]
    fields = {"pose_stamped_vector": stamped, "ik_link_names": list(poses), **fields}
    found = values(ask(arms, current=CURRENT, **fields))
    for link, T in poses.items():
        np.testing.assert_allclose(TREE.pose(link, found), T, atol=3e-6)
    return found


def moved_joints(found):
    return {name[0] for name in found if found[name] != CURRENT[name]}


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_group_moves_its_own_arm_alone(arms, side):
    T = place(f"{side}_wam_tip", **{f"{side}_wam_j2": 0.7})
    found = solved(arms, {f"{side}_wam_tip": T}, group_name=f"{side}_arm")
    assert moved_joints(found) == {side[0]}


def test_each_group_has_its_own_base_method_and_timeout(arms):
    right = arms.group("right_arm")
    assert (right.solver.robot.base, right.solver.method) == ("right_wam_base", "svf+sd")
    left = arms.group("left_arm")
    assert (left.solver.robot.base, left.solver.method) == ("base", "auto")
    assert (left.timeout, right.timeout) == (0.05, 0.3)


def test_pose_without_a_link_applies_to_the_tip_of_the_group(arms):
    T = place("right_wam_tip", right_wam_j4=1.4)
    stamped = PoseStamped(pose=pose_from_matrix(T))
    found = values(ask(arms, stamped, current=CURRENT, group_name="right_arm"))
    np.testing.assert_allclose(TREE.pose("right_wam_tip", found), T, atol=3e-6)
    fields = {"group_name": "both_arms"}
    refusal(Code.INVALID_LINK_NAME, "several tips.*left_wam_tip", ask, arms, stamped, **fields)


def test_two_tips_are_reached_together(arms):
    poses = {link: place(link, left_wam_j1=0.5, right_wam_j6=0.1) for link in TIPS}
    assert moved_joints(solved(arms, poses, group_name="both_arms")) == {"l", "r"}
    solved(arms, dict(reversed(poses.items())), group_name="both_arms")


def test_links_fixed_to_the_tips_are_reached_with_a_cached_chain(arms):
    links = ["right_wam_link7", "left_wam_tip"]
    solved(arms, {link: place(link, right_wam_j1=0.5) for link in links}, group_name="both_arms")
    group = arms.group("both_arms")
    assert arms.ik_chain(group, links) is arms.ik_chain(group, links), "found once"


def test_tip_without_a_pose_keeps_its_pose(arms):
    poses = {"left_wam_tip": place("left_wam_tip", left_wam_j1=0.5)}
    found = solved(arms, poses, group_name="both_arms")
    np.testing.assert_allclose(TREE.pose("right_wam_tip", found), place("right_wam_tip"), atol=3e-6)


def test_links_of_several_groups_are_reached_from_any_group(arms):
    poses = {link: place(link, left_wam_j1=0.5, right_wam_j4=1.4) for link in TIPS}
    solved(arms, poses, group_name="left_arm")
    elbows = {link: place(link, left_wam_j2=0.1) for link in ("left_wam_link4", "right_wam_tip")}
    solved(arms, elbows)


def test_without_groups_two_links_are_reached_as_well():
    arm = Arm(RobotModel.from_tree(TREE, None, "left_wam_tip"), Parameters())
    poses = {link: place(link, left_wam_j2=0.7, right_wam_j4=1.4) for link in TIPS}
    solved(arm, poses, group_name="anything")


def test_unknown_groups_are_refused_with_the_known_ones(arms):
    words = "'hand'; known: left_arm, right_arm, both_arms$"
    refusal(Code.INVALID_GROUP_NAME, words, arms.group, "hand")
    named = two_arms(group_name="arm")
    assert named.group("arm") is named.group("")
    refusal(Code.INVALID_GROUP_NAME, "both_arms, arm$", named.group, "hand")
    refusal(Code.INVALID_GROUP_NAME, "'x{70,80}\\.\\.\\.", arms.group, "x" * 100_000)


@pytest.mark.parametrize(
    ("given", "tip"),
    [
        ({}, "left_wam_tip"),
        ({"stream_group": "right_arm"}, "right_wam_tip"),
        ({"tip": "right_wam_link5"}, "right_wam_link5"),
    ],
)
def test_stream_group_or_tip_determines_the_tip_that_follows_targets(given, tip):
    arms = two_arms(**given)
    assert arms.robot.tip == arms.controller.robot.tip == tip
    assert arms.group("").solver.robot is arms.robot


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"group.left_arm.tip": "hand"},
            "'left_arm' does not fit.*unknown tip link 'hand'.*links:",
        ),
        ({"group.both_arms.tip": ["left_wam_tip"] * 2}, "'both_arms'.*more than once"),
        ({"group.both_arms.tip": "left_wam_tip, left_wam_link7"}, "'both_arms'.*rigidly attached"),
        ({"group.right_arm.base": "left_wam_base"}, "'right_arm'.*there is no chain"),
        ({"group.both_arms.method": "kdl_lma"}, "'both_arms'.*kdl_lma"),
    ],
)
def test_groups_that_do_not_fit_the_robot_are_refused(given, words):
    with pytest.raises((OptionError, MethodError), match=words):
        two_arms(tip="right_wam_tip", **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": "left_arm, left_arm"}, "groups contains left_arm more than once"),
        ({"group.leg.tip": "foot"}, "unknown parameter 'group.leg.tip'; known: robot"),
        ({"group.left_arm.method": "nope"}, "unknown method 'nope'"),
        ({"group.left_arm.timeout": -1.0}, "group.left_arm.timeout must be from 0 to 3600 \\[s\\]"),
        ({"stream_group": "arm"}, "(left_arm, right_arm, both_arms).; got 'arm'"),
        ({"stream_group": "left_arm", "tip": "left_wam_tip"}, "give one"),
        ({"groups": "both_arms", "group.both_arms.tip": list(TIPS)}, "no group has one tip"),
        ({"relative_pose": [0.0] * 6 + [1.0]}, "needs a stream_group with several tips"),
        (BOTH | {"relative_pose": [0.0] * 3}, "relative_pose must be x, y, z and the unit"),
        (BOTH | {"relative_pose": [0.0] * 7}, "relative_pose must be x, y, z and the unit"),
    ],
)
def test_invalid_group_parameters_are_refused(given, words):
    with pytest.raises((OptionError, MethodError), match=words):
        Parameters().changed(GROUPS).changed(given)


def test_group_of_several_tips_follows_targets_of_each():
    arms = two_arms(**BOTH)
    assert arms.robot.tips == TIPS
    assert [frame.name for frame in arms.controller.frames] == list(TIPS)
    changed = arms.changed(arms.parameters.changed({"relative_pose": [0.0, -0.8, 0, 0, 0, 0, 1.0]}))
    assert [f.name for f in changed.controller.frames][2] == f"{TIPS[1]} in {TIPS[0]}"
    pair = ["left_wam_tip", "left_wam_link7"]
    with pytest.raises(OptionError, match="rigidly attached"):
        two_arms(**BOTH | {"group.both_arms.tip": pair})


def test_groups_change_live_and_keep_their_models(arms):
    changed = arms.changed(arms.parameters.changed({"group.left_arm.timeout": 1.5}))
    assert changed.group("left_arm").timeout == 1.5
    for name in GROUPS["groups"]:
        assert changed.group(name).solver.robot is arms.group(name).solver.robot
