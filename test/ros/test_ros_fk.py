"""The answer to compute_fk as a function."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from moveit_msgs.srv import GetPositionFK
from ros_requests import CURRENT, make_arm, refusal, state

from dls_ik.ros.conversions import matrix_from_pose
from dls_ik.ros.frames import Frames
from dls_ik.ros.services.codes import Code
from dls_ik.ros.services.forward import answer_fk


@pytest.fixture(scope="module")
def arm():
    return make_arm()


def ask_fk(arm, links=(), frame="", **fields):
    request = GetPositionFK.Request(fk_link_names=list(links), **fields)
    request.header.frame_id = frame
    return answer_fk(request, arm, CURRENT, Frames())


def test_fk_of_the_tip_by_default(arm):
    answer = ask_fk(arm)
    assert list(answer.response.fk_link_names) == ["tool"]
    (stamped,) = answer.response.pose_stamped
    assert stamped.header.frame_id == "world"
    np.testing.assert_allclose(
        matrix_from_pose(stamped.pose), arm.tree.pose("tool", CURRENT), atol=1e-12
    )


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
    refusal(Code.INVALID_LINK_NAME, "'nope'.*links: world", ask_fk, arm, ["tool", "nope"])
    refusal(Code.FRAME_TRANSFORM_FAILURE, "'table'", ask_fk, arm, [], "table")
    seed = state(["a1"], [math.inf])
    refusal(Code.INVALID_ROBOT_STATE, "'a1'", ask_fk, arm, **seed)
    assert "not used" in ask_fk(arm, **state(["a1"], [])).message
