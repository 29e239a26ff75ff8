"""Constraints over the wire: one of each kind, checked by forward kinematics of the answer."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from oracle import rigid, rotation, urdf_pose
from robots import URDF
from ros_arms import CURRENT, TIPS, place, request, send
from ros_constraints import euler, joint, orientation, position, primitive, together

from dls_ik.ros.frames import matrix_from_pose

pytestmark = [pytest.mark.ros, pytest.mark.slow]

TEXT = (URDF / "two_wams.urdf").read_text()
TIP, ELBOW = TIPS[0], "left_wam_link4"
ROLLED = {f"left_wam_j{i}": value for i, value in ((1, 0.5), (2, 0.8), (3, 0.6))}
REACHED = place(TIP, **ROLLED)
T_TIP = matrix_from_pose(REACHED.pose)
NEAR = 1e-5


def found(client, *given, **fields):
    response = send(client, request(REACHED, constraints=together(*given), **fields))
    assert response.error_code.val == 1, response.error_code.message
    state = response.solution.joint_state
    return dict(zip(state.name, state.position, strict=True))


def fk(link, values):
    return urdf_pose(TEXT, "base", link, values)


def test_joint(arms_client):
    values = found(arms_client, joint("left_wam_j3", -0.4, 0.1, 0.2))
    assert -0.5 - NEAR <= values["left_wam_j3"] <= -0.2 + NEAR
    np.testing.assert_allclose(fk(TIP, values), T_TIP, atol=NEAR)


def test_orientation_about_one_axis(arms_client):
    R = T_TIP[:3, :3] @ rotation([0, 1, 0], 0.6)
    values = found(arms_client, orientation(TIP, R, (0.05, 0.1, math.pi)))
    T = fk(TIP, values)
    np.testing.assert_allclose(T[:3, 3], T_TIP[:3, 3], atol=NEAR)
    assert (np.abs(euler(R, T[:3, :3]))[:2] <= np.array([0.05, 0.1]) + NEAR).all()


def test_orientation_of_another_link(arms_client):
    R = fk(ELBOW, {**CURRENT, **ROLLED})[:3, :3]
    values = found(arms_client, orientation(ELBOW, R, (0.05, 0.1, 0.02)))
    np.testing.assert_allclose(fk(TIP, values), T_TIP, atol=NEAR)
    angles = euler(R, fk(ELBOW, values)[:3, :3])
    assert (np.abs(angles) <= np.array([0.05, 0.1, 0.02]) + NEAR).all()


def test_elbow_in_a_box_of_a_union(arms_client):
    T = fk(ELBOW, {**CURRENT, **ROLLED}) @ rigid(rotation([1, 1, 0], 0.3), [0, 0, 0])
    boxes = [primitive(1, 0.02, 0.03, 0.04)] * 2
    values = found(arms_client, position(ELBOW, boxes, [rigid(np.eye(3), [0, 0, 9]), T]))
    np.testing.assert_allclose(fk(TIP, values), T_TIP, atol=NEAR)
    p = T[:3, :3].T @ (fk(ELBOW, values)[:3, 3] - T[:3, 3])
    assert (np.abs(p) <= np.array([0.01, 0.015, 0.02]) + NEAR).all()


def test_both_arms_each_with_a_constraint(arms_client):
    poses = [REACHED, place(TIPS[1], right_wam_j4=1.4)]
    fields = {"pose_stamped_vector": poses, "ik_link_names": list(TIPS), "group_name": "both_arms"}
    R = T_TIP[:3, :3] @ rotation([1, 0, 0], 0.5)
    given = orientation(TIP, R, (0.1, 0.1, 0.1)), joint("right_wam_j3", 0.3, 0.1)
    values = found(arms_client, *given, **fields)
    left, right = fk(TIP, values), fk(TIPS[1], values)
    np.testing.assert_allclose(left[:3, 3], T_TIP[:3, 3], atol=NEAR)
    assert (np.abs(euler(R, left[:3, :3])) <= 0.1 + NEAR).all()
    np.testing.assert_allclose(right, matrix_from_pose(poses[1].pose), atol=NEAR)
    assert values["right_wam_j3"] == pytest.approx(0.3, abs=0.1 + NEAR)
