"""The answer to compute_fk as a function."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from moveit_msgs.srv import GetPositionFK
from oracle import rigid
from ros_requests import CURRENT, make_arm, refusal, state

from dls_ik.ros.errors import Code
from dls_ik.ros.frames import Frames, matrix_from_pose
from dls_ik.ros.services.ik import answer_fk


@pytest.fixture(scope="module")
def arm():
    return make_arm()


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


def test_fk_of_the_tip_by_default(arm):
    answer = ask_fk(arm)
    assert list(answer.response.fk_link_names) == ["tool"]
    (stamped,) = answer.response.pose_stamped
    assert stamped.header.frame_id == "world"
    np.testing.assert_allclose(
        matrix_from_pose(stamped.pose), arm.tree.pose("tool", CURRENT), atol=1e-12
    )


def test_joints_that_the_state_lacks_are_where_they_are(arm):
    answer = ask_fk(arm, ["tool"], **state(["a2"], [0.9]))
    expected = arm.tree.pose("tool", {**CURRENT, "a2": 0.9})
    np.testing.assert_allclose(
        matrix_from_pose(answer.response.pose_stamped[0].pose), expected, atol=1e-12
    )


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


def test_fk_refusals(arm):
    some = ["tool", "nope", "j1", "neither", "nope"]
    refusal(Code.INVALID_LINK_NAME, "'nope', 'neither'; links: world", ask_fk, arm, some)
    refusal(Code.FRAME_TRANSFORM_FAILURE, "'table'", ask_fk, arm, ["tool"], "table")
    seed = state(["a1"], [math.inf])
    refusal(Code.INVALID_ROBOT_STATE, "'a1'", ask_fk, arm, ["tool"], **seed)
    assert "not used" in ask_fk(arm, ["tool"], **state(["a1"], [])).message
