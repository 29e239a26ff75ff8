# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Constraints of compute_ik as a function: what each does to the answer, and what is refused."""

import math
from contextlib import suppress

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Quaternion
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moveit_msgs.msg import PositionIKRequest
from oracle import rigid, rotation
from ros_arms import CURRENT as BOTH_CURRENT
from ros_arms import TIPS, place, robot_and_parameters
from ros_constraints import (
    euler,
    joint,
    orientation,
    position,
    primitive,
    together,
    vector_in_frame,
)
from ros_requests import CURRENT, answer_ik, ask, make_arm, pose, refusal, values
from ros_wam import state
from shape_msgs.msg import Mesh

from dls_ik.errors import Code, DlsIkError
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, matrix_from_pose
from fuzz.source import Source
from fuzz.targets.node import changed

BOX, SPHERE, CYLINDER = 1, 2, 3
TURN = rotation([1, 2, 3], 0.7)
NEAR = 1e-5


@pytest.fixture(scope="module")
def arm():
    return make_arm()


def solved(arm, stamped, *given, **fields):
    return values(ask(arm, stamped, constraints=together(*given), **fields))


def assert_at(arm, link, found, stamped):
    T = matrix_from_pose(stamped.pose)
    np.testing.assert_allclose(arm.tree.pose(link, found), T, atol=NEAR)


def assert_position(arm, link, found, stamped):
    p = matrix_from_pose(stamped.pose)[:3, 3]
    np.testing.assert_allclose(arm.tree.pose(link, found)[:3, 3], p, atol=NEAR)


@pytest.mark.parametrize("value", [0.5, 0.9])
def test_joint_constraint_bounds_the_joint_in_the_solution(arm, value):
    stamped = pose(arm, "tool", a3=value)
    free = solved(arm, stamped)
    found = solved(arm, stamped, joint("a3", value, 0.02, 0.01))
    assert value - 0.02 <= found["a3"] <= value + 0.01
    assert free["a3"] == pytest.approx(value, abs=NEAR)
    assert_at(arm, "tool", found, stamped)


def test_joint_constraint_chooses_another_branch(arm):
    stamped = pose(arm, "tool", a4=1.6, a6=1.6)  # the wrist may be turned over
    assert solved(arm, stamped)["a5"] > 0.0
    found = solved(arm, stamped, joint("a5", -0.5, 1.0, 0.3))
    assert found["a5"] <= -0.2
    assert_at(arm, "tool", found, stamped)


def test_mimic_joint_constraint_applies_to_its_master(arm):
    stamped = pose(arm, "finger", a3=0.9, grip=0.22)
    found = solved(arm, stamped, joint("follow", -0.25, 0.05), ik_link_name="finger")
    assert -0.3 <= found["follow"] <= -0.2
    assert found["grip"] == -found["follow"]


def test_continuous_joint_constraint_ignores_whole_turns(arm):
    stamped = pose(arm, "camera", pan=1.0, tilt=0.5)
    seed = state(["pan"], [4 * math.pi])
    found = solved(
        arm, stamped, joint("pan", 1.0 - 2 * math.pi, 0.1), ik_link_name="camera", **seed
    )
    assert found["pan"] == pytest.approx(1.0 + 4 * math.pi, abs=1e-3)


def test_constraint_on_a_joint_outside_the_chain_is_checked(arm):
    stamped = pose(arm, "tool")
    assert solved(arm, stamped, joint("rail_joint", 0.45), joint("pan", 2 * math.pi))
    words = "'pan' is at 0.0, outside"
    refusal(Code.NO_IK_SOLUTION, words, solved, arm, stamped, joint("pan", math.pi))


def test_disjoint_intervals_of_a_joint_have_no_solution(arm):
    given = joint("a1", 0.5), joint("a1", 0.8)
    words = r"'a1': limits \[0.4, 0.6\] and interval \[0.7"
    refusal(Code.NO_IK_SOLUTION, words, solved, arm, pose(arm, "tool"), *given)


@pytest.mark.parametrize(
    ("link", "tolerances"),
    [("tool", (0.2, 0.3, 0.1)), ("flange", (0.1, 0.1, math.pi)), ("flange", (0, 0, 0))],
)
def test_orientation_constraint_excluding_the_pose_overrides_its_rotation(arm, tolerances, link):
    stamped = pose(arm, "tool", a3=0.9)
    R = arm.tree.pose(link, {**CURRENT, "a5": 0.9})[:3, :3]
    found = solved(arm, stamped, orientation(link, R, tolerances))
    assert_position(arm, "tool", found, stamped)
    angles = euler(R, arm.tree.pose(link, found)[:3, :3])
    assert (np.abs(angles) <= np.array(tolerances) + NEAR).all()


@pytest.mark.parametrize("frame", ["", "camera"])
def test_rotation_vector_tolerances_are_along_axes_of_the_header_frame(arm, frame):
    stamped = pose(arm, "tool", a3=0.9)
    current = {**CURRENT, "pan": 0.6, "tilt": 0.5}
    R_frame = arm.tree.pose(frame or "world", current)[:3, :3]
    R = arm.tree.pose("tool", {**CURRENT, "a5": 0.9})[:3, :3]
    given = orientation("tool", R_frame.T @ R, (0.02, 0.05, 0.5), frame, 1)
    found = solved(arm, stamped, given, current=current)
    vector = vector_in_frame(R_frame, R, arm.tree.pose("tool", found)[:3, :3])
    assert (np.abs(vector) <= np.array([0.02, 0.05, 0.5]) + NEAR).all()


def test_pose_within_its_orientation_constraint_is_reached_exactly(arm):
    stamped = pose(arm, "tool", a3=0.9)
    T = matrix_from_pose(stamped.pose)
    found = solved(arm, stamped, orientation("tool", T[:3, :3] @ TURN, (math.pi, math.pi, 4)))
    np.testing.assert_allclose(arm.tree.pose("tool", found), T, atol=NEAR)


def test_unreachable_orientation_deviates_within_its_constraint(arm):
    stamped = pose(arm, "tool", a2=0.0, a3=0.0, a4=0.0, a5=0.1)
    stamped.pose.orientation = Quaternion(x=1.0, w=0.0)  # it points down, where it hardly can
    refusal(Code.NO_IK_SOLUTION, "no configuration", solved, arm, stamped)
    answer = ask(arm, stamped, constraints=orientation("tool", TURN, [math.pi] * 3))
    assert "the orientation differs from the requested pose" in answer.message
    assert_position(arm, "tool", values(answer), stamped)


def test_orientation_constraint_keeps_the_position_of_the_requested_link(arm):
    stamped = pose(arm, "flange", a3=0.9)  # the tip of the group is the tool, beside it
    R = arm.tree.pose("flange", {**CURRENT, "a5": 1.2})[:3, :3]
    given = orientation("flange", R, (0.1, 0.1, 0.1))
    found = solved(arm, stamped, given, ik_link_name="flange")
    assert_position(arm, "flange", found, stamped)


SHAPES = {
    BOX: ((0.1, 0.2, 0.3), lambda p: (np.abs(p) <= [0.05, 0.1, 0.15]).all()),
    SPHERE: ((0.08,), lambda p: np.linalg.norm(p) <= 0.08),
    CYLINDER: ((0.3, 0.06), lambda p: np.hypot(*p[:2]) <= 0.06 and abs(p[2]) <= 0.15),
}


@pytest.mark.parametrize(
    ("kind", "frame"), [(BOX, "camera"), (SPHERE, ""), (CYLINDER, "camera"), (CYLINDER, "")]
)
def test_position_constraint_keeps_a_tool_point_inside_its_region(arm, kind, frame):
    dimensions, is_inside = SHAPES[kind]
    offset = np.array([0.0, 0.1, 0.2])
    aim = arm.tree.pose("tool", {**CURRENT, "a3": 0.9, "a5": 0.9})
    T_frame = arm.tree.pose(frame or "world", CURRENT)
    T = rigid(TURN, aim[:3, :3] @ offset + aim[:3, 3])
    region = position(
        "tool", [primitive(kind, *dimensions)], [np.linalg.inv(T_frame) @ T], offset, frame
    )
    stamped = pose(arm, "tool", a3=0.9, a5=0.9)
    stamped.pose.orientation = pose(arm, "tool", a3=0.4, a5=-0.9).pose.orientation
    found = solved(arm, stamped, region, orientation("tool", np.eye(3), [4] * 3))
    tool = arm.tree.pose("tool", found)
    np.testing.assert_allclose(tool[:3, 3], aim[:3, 3], atol=NEAR)
    p = T[:3, :3].T @ (tool[:3, :3] @ offset + tool[:3, 3] - T[:3, 3])
    assert is_inside(p * (1 - NEAR))


def test_position_constraint_is_met_in_any_region_of_its_union(arm):
    there = {**CURRENT, "a2": -0.6, "a3": 1.0}
    stamped = pose(arm, "tool", **there)
    elbow = arm.tree.pose("j3", there)
    ball = primitive(SPHERE, 0.05)
    far = rigid(np.eye(3), [9, 9, 9])
    found = solved(arm, stamped, position("j3", [ball, ball], [far, elbow]))
    assert np.linalg.norm(arm.tree.pose("j3", found)[:3, 3] - elbow[:3, 3]) <= 0.05 + NEAR
    assert_at(arm, "tool", found, stamped)


def test_unsatisfiable_constraint_is_named(arm):
    ball = primitive(SPHERE, 0.05)
    stamped, far = pose(arm, "tool"), rigid(np.eye(3), [9, 9, 9])
    words = "violated by the closest configuration: position constraint of link 'j3'"
    refusal(Code.NO_IK_SOLUTION, words, solved, arm, stamped, position("j3", [ball], [far]))
    words = "position constraint of link 'camera' cannot be satisfied: no joint that is solved for"
    refusal(Code.NO_IK_SOLUTION, words, solved, arm, stamped, position("camera", [ball], [far]))


def test_method_without_tolerance_support_refuses_constraints():
    arm = make_arm(method="kdl_lma")
    pytest.importorskip("PyKDL", reason="needs PyKDL")
    given = orientation("tool", TURN, (0.1, 0.1, 4))
    refusal(Code.NO_IK_SOLUTION, "constraints: .*kdl_lma", solved, arm, pose(arm, "tool"), given)


NAN, INF, I3, I4 = math.nan, math.inf, np.eye(3), np.eye(4)
BALL = primitive(2, 0.1)
INVALID = Code.INVALID_GOAL_CONSTRAINTS


def no_direction():
    given = orientation("tool", I3, (1, 1, 1))
    q = given.orientation_constraints[0].orientation
    q.x = q.y = q.z = q.w = 0.0
    return given


def mesh():
    given = position("tool", [BALL], [I4])
    given.position_constraints[0].constraint_region.meshes = [Mesh()]
    return given


def region_at_nan():
    given = position("tool", [BALL], [I4])
    given.position_constraints[0].constraint_region.primitive_poses[0].position.x = NAN
    return given


BAD = {
    "region at nan": (INVALID, "link 'tool': .*nan", region_at_nan()),
    "joint without a name": (INVALID, "''; joints", joint("", 0.0)),
    "joint that is fixed": (INVALID, "'tool_joint'", joint("tool_joint", 0.0)),
    "joint at nan": (INVALID, "'a1': position .* got nan", joint("a1", NAN)),
    "joint at inf": (INVALID, "'a1': position .* got inf", joint("a1", INF)),
    "tolerance nan": (INVALID, "at least 0; got nan and nan", joint("a1", 0.0, NAN)),
    "no link": (Code.INVALID_LINK_NAME, "''; links", position("", [BALL], [I4])),
    "angle below 0": (INVALID, "at least 0 rad; .*-1", orientation("tool", I3, (1, -1, 1))),
    "angle nan": (INVALID, "at least 0 rad; .*nan", orientation("tool", I3, (1, 1, NAN))),
    "quaternion": (INVALID, "link 'tool': .*must not be zero", no_direction()),
    "no region": (INVALID, "no primitives", position("tool", [], [])),
    "meshes": (INVALID, "meshes are not supported", mesh()),
    "no shape": (INVALID, "type 9 ", position("tool", [primitive(9, 1, 1)], [I4])),
    "length nan": (INVALID, "above 0 m; got .*nan", position("tool", [primitive(2, NAN)], [I4])),
    "two lengths": (
        INVALID,
        "must be x, y, z, lengths",
        position("tool", [primitive(1, 1, 1)], [I4]),
    ),
    "offset": (INVALID, "offset .*nan", position("tool", [BALL], [I4], (0, NAN, 0))),
    "union": (
        INVALID,
        "at most 64 primitives; got 65",
        position("tool", [BALL] * 65, [I4] * 65),
    ),
    "unions": (
        INVALID,
        "at most 64 combinations; got 100",
        together(*[position("j3", [BALL] * 10, [I4] * 10)] * 2),
    ),
    "many joints": (INVALID, "256 on joints", together(*[joint("a1", 0.0)] * 257)),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_constraints_are_refused(arm, name):
    code, words, constraints = BAD[name]
    refusal(code, words, ask, arm, pose(arm, "tool"), constraints=constraints)


GOOD = together(
    joint("a3", 0.7, 0.5),
    orientation("tool", I3, (1.0, 2.0, 3.0), "camera", 1),
    position("j3", [BALL, primitive(1, 1, 1, 1)], [I4, I4], (0.1, 0, 0)),
)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=150))
def test_any_constraints_are_answered_or_refused(arm, data):
    constraints = changed(Source(data), GOOD, ("", "/", "tool", "j3", "camera", *CURRENT))
    request = PositionIKRequest(pose_stamped=pose(arm, "tool"), constraints=constraints)
    request.timeout = Duration(nanosec=5_000_000)
    with suppress(DlsIkError):
        found = values(answer_ik(request, arm, CURRENT, Frames()))
        assert arm.robot.within_limits([found[name] for name in arm.robot.joint_names])


def test_each_of_two_arms_meets_its_constraint():
    arms = Arm(*robot_and_parameters())
    moved = {f"left_wam_j{i}": value for i, value in ((1, 0.5), (2, 0.8), (3, 0.6))}
    poses = [place(TIPS[0], **moved), place(TIPS[1], right_wam_j4=1.4)]
    T = matrix_from_pose(poses[0].pose)
    R = T[:3, :3] @ rotation([1, 0, 0], 0.5)
    given = orientation(TIPS[0], R, (0.1, 0.1, 0.1)), joint("right_wam_j3", 0.3, 0.1)
    fields = {"pose_stamped_vector": poses, "ik_link_names": list(TIPS), "group_name": "both_arms"}
    found = solved(arms, None, *given, current=BOTH_CURRENT, **fields)
    left, right = (arms.tree.pose(tip, found) for tip in TIPS)
    np.testing.assert_allclose(left[:3, 3], T[:3, 3], atol=NEAR)
    assert (np.abs(euler(R, left[:3, :3])) <= 0.1 + NEAR).all()
    np.testing.assert_allclose(right, matrix_from_pose(poses[1].pose), atol=NEAR)
    assert found["right_wam_j3"] == pytest.approx(0.3, abs=0.1 + NEAR)
