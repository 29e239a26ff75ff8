# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Base and tips: found or given, several tips, offsets, invalid names."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import difference_jacobian, rigid, rotation, urdf_pose
from random_robots import random_robots
from robots import LIMIT, joint, urdf

from dls_ik import IkSolver, Task
from dls_ik.errors import AmbiguousTipError, ChainError, JointValueError, RobotModelError
from dls_ik.model import Joint, RobotModel, load_urdf

quick = settings(max_examples=30, suppress_health_check=list(HealthCheck))
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
def test_fk_and_jacobian_of_each_tip_match_the_oracle(drawn, data):
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


def test_robot_with_two_tips_combines_joints_and_stacks_results():
    assert (BOTH.tip, BOTH.tips) == ("l_hand", ("l_hand", "r_hand"))
    assert BOTH.joint_names == ("waist", "l1", "l2", "r1", "r2")
    np.testing.assert_array_equal(BOTH.chain.first, [0, 3, 6])
    assert BOTH.chain.fixed.shape == (8, 3, 4)
    other = RobotModel.from_urdf(TORSO, tip=["r_hand", "l_hand"])
    assert other.joint_names == ("waist", "r1", "r2", "l1", "l2")
    assert not any(array.flags.writeable for array in BOTH.chain)
    q = BOTH.random(10, np.random.default_rng(0))
    np.testing.assert_array_equal(BOTH.fk(q), [BOTH.fk(each) for each in q])
    np.testing.assert_array_equal(BOTH.jacobian(q), [BOTH.jacobian(each) for each in q])
    for size in (10, 0):
        assert BOTH.fk(q[:size]).shape == (size, 2, 4, 4)
        assert BOTH.jacobian(q[:size]).shape == (size, 12, 5)


@pytest.mark.parametrize(("hand", "columns"), [("l_hand", [0, 1, 2]), ("r_hand", [0, 3, 4])])
def test_each_tip_equals_a_robot_with_one_tip(hand, columns):
    alone, p = RobotModel.from_urdf(TORSO, tip=hand), BOTH.tips.index(hand)
    q = BOTH.random(20, np.random.default_rng(0))
    np.testing.assert_array_equal(BOTH.fk(q)[:, p], alone.fk(q[:, columns]))
    J = BOTH.jacobian(q)[:, 6 * p : 6 * p + 6]
    np.testing.assert_array_equal(J[..., columns], alone.jacobian(q[:, columns]))
    assert not np.delete(J, columns, axis=2).any()


def test_tip_may_be_above_another_in_every_constructor():
    robot = RobotModel.from_urdf(TORSO, tip=("r_hand", "r_arm"))
    assert robot.joint_names == ("waist", "r1", "r2")
    J = robot.jacobian([0.1, 0.2, 0.3])
    assert not J[6:, 2].any()
    assert J[:6, 2].any()
    assert RobotModel.from_tree(load_urdf(TORSO), "trunk", ["l_hand", "r_arm"]).n == 3
    wam = RobotModel.from_name("wam", tip=("wam_tip", "wam_link4"))
    assert wam.fk(np.zeros(7)).shape == (2, 4, 4)


@pytest.mark.parametrize(
    ("tip", "words"),
    [
        (("l_hand", "l_hand"), ["once", "l_hand"]),
        (("l_hand", "r_hand", "foot"), ["tip", "'foot'", "base, trunk"]),
        (("l_hand", ""), ["tip", "''"]),
        (("l_hand", "tail"), ["no moving joint", "'tail'"]),
        (("l_hand", "base"), ["no moving joint", "'base'"]),
        (("l_hand", 3), ["sequence of them", "3"]),
        (7, ["link name", "7"]),
        (np.array(["l_hand", "r_hand"]), ["sequence of them"]),
        ({"l_hand": 1}, ["sequence of them"]),
    ],
)
def test_invalid_tips_are_refused(tip, words):
    with pytest.raises(ChainError) as caught:
        RobotModel.from_urdf(TORSO, tip=tip)
    assert [word for word in words if word not in str(caught.value)] == []


def test_mimic_joints_on_any_path_narrow_their_master():
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


STAND = urdf(
    "r a b c", joint("i", "fixed", "r", "a"), joint("j"), joint("k", "fixed", "r", "c")
)  # a and c do not move


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (urdf("a b", joint("j")), (), ("a", "b")),
        (urdf("a b", joint("j")), ("", ""), ("a", "b")),
        (STAND, (), ("r", "b")),
        (STAND, ("a",), ("a", "b")),
        (TWO_ARMS, ("base", "tool"), ("base", "tool")),
        *((TORSO, ("l_arm", tip), ("l_arm", "l_hand")) for tip in (None, "", (), [])),
        *((TORSO, ("base", tip), ("base", "l_hand")) for tip in ("l_hand", ["l_hand"])),
    ],
)
def test_base_and_tip_are_found_or_given(text, given, expected):
    robot = RobotModel.from_urdf(text, *given)
    assert (robot.base, robot.tips) == (expected[0], expected[1:])
    assert robot.fk(np.zeros(robot.n)).shape == (4, 4)
    assert robot.jacobian(np.zeros((2, robot.n))).shape == (2, 6, robot.n)


# As in descriptions from the wild: frames on the last link, and grippers.
WRIST = (joint("pan"), joint("roll", parent="b", child="wrist", axis="0 1 0"))


def arm(**kinds):
    """Return an arm whose wrist carries links on joints of the given kinds."""
    joints = [joint(f"j_{name}", kind, "wrist", name) for name, kind in kinds.items()]
    return urdf(f"a b wrist {' '.join(kinds)}", *WRIST, *joints)


def with_side_link(link, text):
    """Return an arm with one more link, moved by a further joint relative to the second link."""
    moved = joint("w", parent="b", child=link)
    return text.replace("</robot>", f'{moved}<link name="{link}"/></robot>')


def chain(*links):
    """Return a serial arm of the given links."""
    joints = [joint(f"joint_{b}", parent=a, child=b, axis="0 1 0") for a, b in pairwise(links)]
    return urdf(" ".join(links), *joints)


def with_joints(text, *joints):
    """Return a robot with additional joints, each (name, kind, parent, child)."""
    more = "".join(
        joint(name, kind, parent, child) + f'<link name="{child}"/>'
        for name, kind, parent, child in joints
    )
    return text.replace("</robot>", f"{more}</robot>")


SIX = chain("base", *(f"link_{k}" for k in range(1, 7)))
Z1 = with_joints(
    SIX,
    ("gripper_mount", "fixed", "link_6", "gripperStator"),
    ("jointGripper", "revolute", "gripperStator", "gripperMover"),
)
KR210 = with_joints(
    SIX,
    ("joint_1-frame", "fixed", "link_1", "counterweight"),
    ("link_6-tool0", "fixed", "link_6", "tool0"),
)
MOBILE = with_joints(
    SIX,
    ("imu_joint", "fixed", "base", "imu_link"),
    ("wheel_r", "continuous", "base", "wheel_right_link"),
    ("wheel_l", "continuous", "base", "wheel_left_link"),
    ("mount", "fixed", "link_6", "gripper_link"),
    ("r_gripper_finger_joint", "prismatic", "gripper_link", "r_gripper_finger_link"),
    ("l_gripper_finger_joint", "prismatic", "gripper_link", "l_gripper_finger_link"),
    ("head_pan", "revolute", "base", "head_pan_link"),
    ("head_tilt", "revolute", "head_pan_link", "head_tilt_link"),
    ("camera", "fixed", "head_tilt_link", "head_camera_rgb_optical_frame"),
)
NESTED = with_joints(
    SIX,
    ("mount", "fixed", "link_6", "hand_base"),
    ("jaw_joint", "fixed", "hand_base", "left_jaw"),
    ("rod_joint", "fixed", "hand_base", "rod"),
    ("finger_joint", "fixed", "rod", "right_finger"),
)
HUMANOID = with_joints(
    SIX,
    ("l_tool", "fixed", "link_6", "left_tool_frame"),
    *((f"r{k}", "revolute", f"r{k - 1}" if k else "base", f"r{k}") for k in range(6)),
    ("r_tool", "fixed", "r5", "right_tool_frame"),
    *((f"leg{k}", "revolute", "base", f"foot{k}") for k in range(6)),
    ("imu", "fixed", "link_1", "TorsoIMULink"),
    *((f"wheel{k}", "revolute", "base", f"wheel_{k}_link") for k in range(20)),
)
HANDS = [joint(name, parent="a", child=name) for name in ("l_finger", "r_finger")]


@pytest.mark.parametrize(
    ("text", "tip"),
    [
        (arm(flange="fixed", tool0="fixed", ft_frame="fixed"), "tool0"),
        (arm(frame="fixed", moving_jaw="revolute"), "frame"),
        (arm(jaw="revolute"), "wrist"),
        (arm(hand_tcp="fixed", leftfinger="prismatic"), "hand_tcp"),
        (arm(l_finger="prismatic", r_finger="prismatic"), "wrist"),
        (arm(link_eef="fixed", link_tcp="fixed"), "link_tcp"),
        (arm(camera="fixed", ee_link="fixed"), "ee_link"),
        (arm(plate="fixed", flange="fixed"), "flange"),
        (with_side_link("wheel", arm(tool0="fixed")), "tool0"),
        (arm(camera="fixed", imu_link="fixed", l_finger="prismatic"), "wrist"),
        (arm(camera="fixed", imu_link="fixed"), "wrist"),
        (arm(camera="fixed"), "camera"),
        (with_joints(SIX, ("wrist_roll", "revolute", "link_6", "gripper_link")), "gripper_link"),
        (NESTED, "hand_base"),
        (arm(l_finger="fixed", r_finger="fixed"), "wrist"),
        (Z1, "gripperStator"),
        (KR210, "tool0"),
        (MOBILE, "gripper_link"),
    ],
)
def test_grippers_are_ignored_and_tool_frames_preferred(text, tip):
    assert RobotModel.from_urdf(text).tips == (tip,)


@pytest.mark.parametrize(
    "text",
    [
        arm(tool_a="fixed", tool_b="fixed"),
        arm(plate="fixed", bolt="fixed"),
        with_side_link("lamp", arm(tool0="fixed")),
        urdf("a l_finger r_finger", *HANDS),
    ],
    ids=["two of a kind", "no name for tools", "another body", "a hand"],
)
def test_messages_about_several_tips_show_how_to_type_them(text):
    with pytest.raises(
        AmbiguousTipError, match=r"choose one: (tip='\w+')( or tip='\w+')+$"
    ) as caught:
        RobotModel.from_urdf(text)
    for tip in caught.value.tips:
        assert RobotModel.from_urdf(text, tip=tip).tips == (tip,)


def test_up_to_five_tips_are_proposed_without_sensors_and_wheels():
    with pytest.raises(AmbiguousTipError) as caught:
        RobotModel.from_urdf(HUMANOID)
    assert caught.value.tips[:2] == ("left_tool_frame", "right_tool_frame")
    assert len(caught.value.tips) == 5
    assert not [tip for tip in caught.value.tips if "wheel" in tip or "IMU" in tip]
    assert len(str(caught.value)) < 200


PLANAR = urdf("a b", joint("j", "planar"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("base",), ["several", "tip='tool' or tip='right'"]),
        (("base", "wrist"), ["tip", "'wrist'", "world, base, left, tool, right, camera"]),
        (("floor", "tool"), ["base", "'floor'", "world, base, left, tool, right, camera"]),
        (("right", "tool"), ["no chain", "'right'", "'tool'", "world, base, left", "camera"]),
        (("tool", "base"), ["no chain", "'tool'", "'base'", "world", "camera"]),
        (("base", "camera"), ["no moving joint", "'camera'", "world, base, left"]),
        (("base", "base"), ["no moving joint", "world, base, left"]),
        (("left",), ["no link moves", "'left'", "world, base, left"]),
        (("world", "tool"), ["'drive'", "floating", "revolute, continuous, prismatic"]),
        ((), ["several", "tip='tool' or tip='right'"]),
        ((None, "b"), ["'j'", "planar"]),
    ],
)
def test_invalid_bases_and_tips_are_refused(given, words):
    with pytest.raises(ChainError) as caught:
        RobotModel.from_urdf(PLANAR if "b" in given else TWO_ARMS, *given)
    assert [word for word in words if word not in str(caught.value)] == []


def test_long_lists_in_messages_are_shortened():
    links = ["a", "b", *(f"l{i}" for i in range(500))]
    joints = [joint("j"), *(joint(f"k{i}", "fixed", "b", f"l{i}") for i in range(500))]
    with pytest.raises(ChainError, match="and 478 more") as caught:
        RobotModel.from_urdf(urdf(" ".join(links), *joints), tip="nowhere")
    assert len(str(caught.value)) < 300


def test_tree_of_two_arms_has_expected_leaves_paths_and_offsets():
    tree = load_urdf(TWO_ARMS)
    assert tree.leaves == ("tool", "right", "camera")
    assert [each.name for each in tree.path("base", "tool")] == ["l", "t"]
    assert tree.path("left", "left") == ()
    assert [each.name for each in tree.child_joints["base"]] == ["l", "r", "c"]
    assert tree.fixed_offset("world", "camera") is None
    assert tree.fixed_offset("camera", "base") is not None
    with pytest.raises(ChainError, match="'wrist'"):
        tree.fixed_offset("camera", "wrist")


WAM = RobotModel.wam()
AT = "<origin xyz='0.1 0.2 0.3' rpy='0.3 -0.2 0.5'/>"
HAND = urdf(
    "base arm hand finger tip other",
    joint("j1", "revolute", "base", "arm", AT + LIMIT),
    joint("j2", "revolute", "arm", "hand", AT + LIMIT, "0 1 0"),
    joint("f1", "revolute", "hand", "finger", AT + LIMIT, "1 0 0"),
    joint("f2", "revolute", "finger", "tip", AT + LIMIT + "<mimic joint='j1' multiplier='0.5'/>"),
    joint("o", "revolute", "base", "other", AT + LIMIT),
)
OFFSET = rigid(rotation([1, 2, 3], 0.7), [0.03, -0.1, 0.2])


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.sampled_from(WAM.tree.links[1:]))
def test_additional_tips_have_the_pose_of_their_link(seed, link):
    robot = WAM.with_tip(link, OFFSET)
    q = WAM.random(rng=np.random.default_rng(seed))
    poses, J = robot.fk(q), robot.jacobian(q)
    np.testing.assert_array_equal(poses[0], WAM.fk(q))
    np.testing.assert_allclose(poses[1], WAM.link_pose(link, q) @ OFFSET, atol=1e-13)
    expected = difference_jacobian(lambda q: robot.fk(q)[1], q)
    np.testing.assert_allclose(J[6:], expected, atol=1e-7)
    assert robot.joint_names == WAM.joint_names
    assert robot.tips == (WAM.tip, link)
    np.testing.assert_array_equal(robot.offsets, [np.eye(4), OFFSET])


def test_a_link_with_two_offsets_gives_two_tips():
    robot = RobotModel.from_tree(WAM.tree, WAM.base, (WAM.tip, WAM.tip), (None, OFFSET))
    q = np.full(7, 0.4)
    np.testing.assert_allclose(robot.fk(q)[1], WAM.fk(q) @ OFFSET, atol=1e-14)
    one = RobotModel.from_tree(WAM.tree, tip=WAM.tip, offsets=[OFFSET])
    np.testing.assert_allclose(one.fk(q), WAM.fk(q) @ OFFSET, atol=1e-14)
    found = IkSolver(one).solve(one.fk(q), np.zeros(7), 5.0)
    assert found.success
    np.testing.assert_allclose(one.fk(found.q), one.fk(q), atol=5e-6)


def test_joints_off_the_chain_keep_the_given_positions():
    arm = RobotModel.from_urdf(HAND, "base", "hand")
    q, others = np.array([0.3, -0.4]), {"f1": 0.8}
    finger = arm.with_tip("finger", OFFSET, others)
    expected = arm.link_pose("finger", q, others) @ OFFSET
    np.testing.assert_allclose(finger.fk(q)[1], expected, atol=1e-14)
    np.testing.assert_allclose(
        arm.with_tip("finger").fk(q)[1], arm.link_pose("finger", q), atol=1e-14
    )
    with pytest.raises(JointValueError):
        arm.with_tip("finger", others={"f9": 0.0})


def test_additional_tips_keep_narrowed_limits():
    narrow = WAM.narrowed(-0.3, 0.4).with_tip("wam_link3")
    np.testing.assert_array_equal(narrow.lower, WAM.narrowed(-0.3, 0.4).lower)
    again = narrow.narrowed(-0.1, 1.0)
    np.testing.assert_array_equal(again.upper, narrow.upper)
    assert again.fk(np.zeros(7)).shape == (2, 4, 4)


def test_tips_moved_by_joints_off_the_chain_are_refused():
    arm = RobotModel.from_urdf(HAND, "base", "hand")
    with pytest.raises(ChainError, match="no joint of the chain moves"):
        arm.with_tip("other")
    with pytest.raises(ChainError, match="no joint of the chain moves"):
        arm.with_tip("base")
    with pytest.raises(ChainError, match="f1"):
        arm.with_tip("tip")
    with pytest.raises(ChainError, match="there is no chain"):
        RobotModel.from_urdf(HAND, "arm", "hand").with_tip("other")
    with pytest.raises(ChainError, match="nowhere"):
        arm.with_tip("nowhere")


@pytest.mark.parametrize("bad", [np.eye(3), 2.0 * np.eye(4), np.full((4, 4), np.nan), "x", 1.0])
def test_offsets_must_be_rigid_transforms(bad):
    with pytest.raises(ChainError, match="offset of tip 'wam_link3'"):
        WAM.with_tip("wam_link3", bad)
    with pytest.raises(ChainError, match="one offset each"):
        RobotModel.from_tree(WAM.tree, tip=WAM.tip, offsets=[None, None])


def test_nearly_rigid_offsets_are_corrected():
    """The optimized kinematics assume exact rotations."""
    rng = np.random.default_rng(8)
    rough = OFFSET + np.pad(2e-7 * rng.uniform(-1.0, 1.0, (3, 3)), (0, 1))
    robot = RobotModel.from_tree(WAM.tree, tip=WAM.tip, offsets=[rough])
    for exact in (robot.offsets[0], Joint("j", "fixed", "a", "b", rough).origin):
        np.testing.assert_allclose(exact[:3, :3] @ exact[:3, :3].T, np.eye(3), rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(exact, rough, rtol=0.0, atol=1e-6)
    q = robot.random(rng=rng)
    solver = IkSolver(robot, position_tolerance=1e-10, rotation_tolerance=1e-10)
    found = solver.solve(robot.fk(q), robot.random(rng=rng), 5.0)
    assert found.success
    np.testing.assert_allclose(robot.fk(found.q), robot.fk(q), rtol=0.0, atol=4e-10)
    for bad, words in ((1.1 * np.diag([1, 1, 1, 1 / 1.1]), "scaled by 1.1"), (OFFSET.T, "rigid")):
        with pytest.raises(RobotModelError, match=f"'j'.*{words}"):
            Joint("j", "fixed", "a", "b", bad)


def test_solver_keeps_the_elbow_in_a_region_and_the_hand_at_its_target():
    robot = WAM.with_tip("wam_link3", OFFSET)
    solver = IkSolver(robot, task=[Task(), Task.box(0.05, 0.1, 0.2)], max_restarts=500)
    rng = np.random.default_rng(2)
    goals = robot.fk(robot.random(50, rng))
    found = solver.solve_batch(goals, robot.random(50, rng))
    assert found.success.all()
    reached = robot.fk(found.q)
    np.testing.assert_allclose(reached[:, 0], goals[:, 0], atol=5e-6)
    away = reached[:, 1, :3, 3] - goals[:, 1, :3, 3]
    local = np.einsum("bij,bi->bj", goals[:, 1, :3, :3], away)
    assert (np.abs(local) <= [0.05 + 1e-12, 0.1 + 1e-12, 0.2 + 1e-12]).all()
