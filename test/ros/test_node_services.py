"""The services of the running node, over the wire."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from moveit_msgs.srv import GetPositionFK
from out_of_grasp import out_of_grasp
from ros_wam import WAM, Q, bad_pose, ik, stamped, state
from sensor_msgs.msg import JointState

from dls_ik.ros.frames import matrix_from_pose

pytestmark = [pytest.mark.ros, pytest.mark.installed]


def kdl_pose(q):
    """Forward kinematics by PyKDL."""
    kdl = pytest.importorskip("PyKDL", reason="needs PyKDL")
    from dls_ik.model.kdl import kdl_chain

    chain = kdl_chain(WAM)
    joints = kdl.JntArray(WAM.n)
    for i, value in enumerate(q):
        joints[i] = value
    frame = kdl.Frame()
    kdl.ChainFkSolverPos_recursive(chain).JntToCart(joints, frame)
    T = np.eye(4)
    T[:3] = [[frame[i, j] for j in range(4)] for i in range(3)]
    return T


def test_random_poses_are_solved_within_tolerance_and_limits(client):
    for q in WAM.random(np.random.default_rng(5), 50):
        T = WAM.fk(q)
        response = ik(client, stamped(T), timeout=2.0)
        assert response.error_code.val == 1, response.error_code.message
        assert response.error_code.source == "dls_ik"
        joint_state = response.solution.joint_state
        assert tuple(joint_state.name) == WAM.joint_names
        assert joint_state.header.frame_id == "wam_base"
        assert WAM.within_limits(joint_state.position)
        np.testing.assert_allclose(kdl_pose(joint_state.position), T, atol=2e-6)


def test_seed_decides_which_solution(client):
    for _ in range(3):
        found = ik(client, **state(WAM.joint_names, Q + 0.01)).solution.joint_state.position
        np.testing.assert_allclose(found, Q, atol=0.05)


def test_fk(client):
    request = GetPositionFK.Request(fk_link_names=["wam_tip", "wam_base"])
    request.robot_state.joint_state = JointState(name=list(WAM.joint_names), position=Q.tolist())
    response = client.call(GetPositionFK, "compute_fk", request)
    assert response.error_code.val == 1
    assert list(response.fk_link_names) == ["wam_tip", "wam_base"]
    tip, base = response.pose_stamped
    np.testing.assert_allclose(matrix_from_pose(tip.pose), kdl_pose(Q), atol=1e-12)
    np.testing.assert_allclose(matrix_from_pose(base.pose), np.eye(4), atol=1e-12)
    assert tip.header.frame_id == "wam_base"
    request.header.frame_id = "nowhere"
    assert client.call(GetPositionFK, "compute_fk", request).error_code.val == -21


BAD = {  # the table of codes is tested with two arms
    "nan": (-27, "nan", {"pose": bad_pose(position=(math.nan, 0.0, 0.0))}),
    "group": (-15, "arm, wam", {"group_name": "hand"}),
    "reach": (-31, "nearest", {"pose": bad_pose(position=(5.0, 0.0, 0.0))}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_request_is_refused_with_a_reason(client, name):
    code, words, fields = BAD[name]
    response = ik(client, **fields)
    assert response.error_code.val == code, response.error_code.message
    assert words in response.error_code.message
    assert list(response.solution.joint_state.name) == []
    assert list(response.solution.joint_state.position) == []


def test_beyond_reach_is_answered_at_once(client):
    response = ik(client, bad_pose(position=(5.0, 0.0, 0.0)), timeout=5.0)
    assert response.error_code.val == -31
    assert (
        "no configuration inside the joint limits reaches the pose" in response.error_code.message
    )


def test_what_is_not_found_is_tried_for_the_timeout(client):
    pose = stamped(out_of_grasp(WAM, np.random.default_rng(1)))
    response = ik(client, pose, timeout=2.0)
    spent = float(response.error_code.message.split("tried for ")[1].split(" ms")[0])
    assert response.error_code.val == -31
    assert spent >= 1000.0, "of 2000, of which the request waited some"
