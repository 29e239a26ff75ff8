"""The answers to compute_ik and compute_fk as functions: what each field of a request changes."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK
from oracle import rigid, rotation
from ros_requests import CURRENT, NAMES, ask, make_arm, pose, refusal, values
from ros_wam import state

from dls_ik.errors import Code
from dls_ik.ros.frames import Frames, matrix_from_pose, pose_from_matrix
from dls_ik.ros.services.server import answer_fk

TURN_ABOUT_Z = rigid(rotation([0, 0, 1], 0.5), [0.1, -0.2, 0.3])


@pytest.fixture(scope="module")
def arm():
    return make_arm()


def assert_reached(arm, link, found, **moved):
    expected = arm.tree.pose(link, {**CURRENT, **moved})
    np.testing.assert_allclose(arm.tree.pose(link, found), expected, atol=2e-6)


def test_answer_has_all_joints_in_the_order_of_the_model(arm):
    answer = ask(arm, pose(arm, "tool", a3=0.9), current={**CURRENT, "grip": 0.3, "pan": 9.0})
    state = answer.response.solution.joint_state
    assert list(state.name) == NAMES
    assert state.header.frame_id == "world"
    found = values(answer)
    assert_reached(arm, "tool", found, a3=0.9)
    assert (found["rail_joint"], found["grip"], found["pan"]) == (0.4, 0.3, 9.0)
    assert found["follow"] == -0.3
    assert "solved to" in answer.message


@pytest.mark.parametrize("frame", ["", "/world", "rail", "camera", "tool"])
def test_frames_of_the_robot(arm, frame):
    stamped = pose(arm, "tool", frame.strip("/"), a2=0.8, a6=-0.4)
    stamped.header.frame_id = frame
    found = values(ask(arm, stamped))
    assert_reached(arm, "tool", found, a2=0.8, a6=-0.4)


def test_a_quaternion_of_another_length_is_told_in_the_answer(arm):
    stamped = pose(arm, "tool", a3=0.9)
    assert "quaternion" not in ask(arm, stamped).message
    o = stamped.pose.orientation
    o.x, o.y, o.z, o.w = 1.5 * o.x, 1.5 * o.y, 1.5 * o.z, 1.5 * o.w
    message = ask(arm, stamped).message
    assert "has length 1.5 and was taken as" in message
    assert message.endswith("w is 1 where it is left out")


def test_other_frames_come_from_a_lookup(arm):
    asked = []

    def lookup(target, source, stamp):
        asked.append((target, source, stamp.nanosec))
        return TURN_ABOUT_Z

    wanted = arm.tree.pose("tool", {**CURRENT, "a2": 0.8})
    stamped = PoseStamped(pose=pose_from_matrix(np.linalg.inv(TURN_ABOUT_Z) @ wanted))
    stamped.header.frame_id, stamped.header.stamp.nanosec = "table", 5
    found = values(ask(arm, stamped, Frames(lookup)))
    assert asked == [("world", "table", 5)]
    assert_reached(arm, "tool", found, a2=0.8)


@pytest.mark.parametrize("link", ["flange", "palm", "j6", "finger"])
def test_links_fixed_to_the_tip_or_beyond_it(arm, link):
    found = values(ask(arm, pose(arm, link, a3=0.9), ik_link_name=link))
    assert_reached(arm, link, found, a3=0.9)
    assert found["follow"] == -found["grip"]
    assert found["rail_joint"] == 0.4


def test_link_beside_the_arm_or_above_its_base_leaves_the_arm_where_it_is(arm):
    found = values(ask(arm, pose(arm, "rail", rail_joint=-0.7), ik_link_name="rail"))
    assert found["rail_joint"] == pytest.approx(-0.7, abs=1e-5)
    found = values(ask(arm, pose(arm, "camera", pan=1.0, tilt=0.5), ik_link_name="camera"))
    assert (found["pan"], found["tilt"]) == pytest.approx((1.0, 0.5), abs=1e-5)
    assert {name: found[name] for name in CURRENT} == CURRENT


def test_seed_overlays_the_current_state(arm):
    seed = state(["grip", "a3", "unknown"], [0.2, 1.0, math.nan])
    found = values(ask(arm, pose(arm, "tool", a3=1.1), **seed))
    assert found["grip"] == 0.2
    assert found["rail_joint"] == 0.4
    assert found["a3"] == pytest.approx(1.1, abs=1e-4)


def test_seed_moves_the_frames_of_links(arm):
    stamped = pose(arm, "tool", a2=0.8)  # as seen from the root, with the rail where it is
    rail_frame = pose(arm, "tool", "rail", a2=0.8)
    found = values(ask(arm, rail_frame, **state(["rail_joint"], [1.0])))
    moved = arm.tree.pose("tool", found)
    np.testing.assert_allclose(moved[1, 3] - stamped.pose.position.y, 0.6, atol=1e-5)
    assert found["rail_joint"] == 1.0


@pytest.mark.parametrize("is_diff", [True, False])
def test_a_state_overlays_the_current_one_whether_it_is_a_difference_or_not(arm, is_diff):
    for names, given, grip in ((["grip"], [0.2], 0.2), ([], [], 0.0)):
        fields = state(names, given)
        fields["robot_state"].is_diff = is_diff
        found = values(ask(arm, pose(arm, "tool"), **fields))
        assert (found["grip"], found["rail_joint"]) == (grip, 0.4)


def test_seed_outside_the_limits_is_taken(arm):
    answer = ask(arm, pose(arm, "tool"), **state(["a1", "a2", "a3"], [50.0, -7.0, 3.0]))
    found = values(answer)
    assert arm.robot.within_limits([found[name] for name in arm.robot.joint_names])


def test_arm_keeps_its_servo_until_the_stream_is_concerned(arm):
    assert arm.changed(arm.parameters.changed({"method": "jd"})).controller is arm.controller
    assert arm.changed(arm.parameters.changed({"group_name": "x"})).controller is arm.controller
    assert arm.changed(arm.parameters.changed({"nu": 5.0})).controller is not arm.controller
    assert arm.changed(arm.parameters.changed({"stream_method": "jd"})).controller.method == "jd"


def ask_fk(arm, links=(), frame="", **fields):
    request = GetPositionFK.Request(fk_link_names=list(links), **fields)
    request.header.frame_id = frame
    return answer_fk(request, arm, CURRENT, Frames())


def test_more_links_than_anybody_needs_are_refused(arm):
    words = "at most 1000 links in a request, given 1001"
    refusal(Code.INVALID_LINK_NAME, words, ask_fk, arm, ["tool"] * 1001)
    assert len(ask_fk(arm, ["tool"] * 1000).response.pose_stamped) == 1000


def test_a_frame_with_a_name_of_any_length_is_not_looked_up(arm):
    asked = []
    request = GetPositionFK.Request()
    request.header.frame_id = "x" * 257
    words = "unknown frame 'xx.*at most 256 characters"
    frames = Frames(lambda *given: asked.append(given))
    refusal(Code.FRAME_TRANSFORM_FAILURE, words, answer_fk, request, arm, CURRENT, frames)
    assert asked == []


def test_links_come_back_in_the_order_and_as_often_as_asked_for(arm):
    links = ["tool", "camera", "/tool", "tool"]
    answer = ask_fk(arm, links)
    assert list(answer.response.fk_link_names) == links
    tool, camera, again, last = (stamped.pose for stamped in answer.response.pose_stamped)
    assert tool == again == last != camera


def test_frames_that_the_robot_lacks_are_looked_up_at_the_stamp(arm):
    asked = []

    def lookup(target, source, stamp):
        asked.append((target, source, stamp.sec))
        return rigid(np.eye(3), [1, 2, 3])

    request = GetPositionFK.Request(fk_link_names=["tool"])
    request.header.frame_id, request.header.stamp.sec = "table", 7
    answer = answer_fk(request, arm, CURRENT, Frames(lookup))
    (stamped,) = answer.response.pose_stamped
    assert asked == [("world", "table", 7)]
    assert stamped.header.frame_id == "table"
    found = matrix_from_pose(stamped.pose)[:3, 3]
    np.testing.assert_allclose(found, arm.tree.pose("tool", CURRENT)[:3, 3] - [1, 2, 3], atol=1e-12)


@pytest.mark.parametrize("frame", ["", "world", "j4", "/camera"])
def test_fk_of_any_links_in_any_frame(arm, frame):
    links = ["world", "thumb", "camera", "j2"]
    answer = ask_fk(arm, links, frame, **state(["grip", "a1"], [0.5, 1.0]))
    at = {**CURRENT, "grip": 0.5, "a1": 1.0}
    T_root_frame = arm.tree.pose(frame.strip("/") or "world", at)
    assert list(answer.response.fk_link_names) == links
    for link, stamped in zip(links, answer.response.pose_stamped, strict=True):
        assert stamped.header.frame_id == (frame.strip("/") or "world")
        T = T_root_frame @ matrix_from_pose(stamped.pose)
        np.testing.assert_allclose(T, arm.tree.pose(link, at), atol=1e-12)
