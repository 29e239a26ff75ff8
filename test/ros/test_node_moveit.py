# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""What MoveIt's srv_kinematics_plugin and pymoveit2 send, and what they make of the answer.

docs/lab/error_codes.md says where this was read. The requests are put together as described there.
"""

import re

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import PoseStamped, Transform, TwistStamped
from moveit_msgs.srv import GetPositionFK
from robots import CONFIG, ROOT
from ros_arms import BENT, CURRENT, TIPS, TREE, joint_state, place, request, send
from ros_client import Client, NodeProcess
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from dls_ik.model.rotations import inverse
from dls_ik.ros.frames import matrix_from_pose

pytestmark = [pytest.mark.ros, pytest.mark.installed]

SIDES = pytest.mark.parametrize("side", ["left", "right"])


def colliding(side, stamped, values=CURRENT, **fields):
    """A request to a group that asks to avoid collisions, as move_group does."""
    group = {"group_name": f"{side}_arm", "avoid_collisions": True}
    return request(stamped, values, **group, **fields)


class Plugin:
    """The plugin for one group of a chain, in the process of move_group."""

    def __init__(self, client, side):
        self.client, self.side = client, side
        self.joints = [f"{side}_wam_j{i + 1}" for i in range(7)]
        self.state = dict.fromkeys(CURRENT, 0.0)  # the defaults of the model

    def search(self, pose, seed):
        """The code, and the joint values of the group."""
        self.state.update(zip(self.joints, seed, strict=True))
        stamped = PoseStamped(pose=pose)
        stamped.header.frame_id = f"{self.side}_wam_base"
        link = f"{self.side}_wam_tip"
        asked = colliding(self.side, stamped, self.state, ik_link_name=link)
        state = asked.ik_request.robot_state
        state.joint_state.header.frame_id = "base"
        state.multi_dof_joint_state.header.frame_id = "base"
        state.multi_dof_joint_state.joint_names = ["virtual_joint"]
        state.multi_dof_joint_state.transforms = [Transform()]
        response = send(self.client, asked)
        if response.error_code.val == 1:
            solution = response.solution.joint_state
            self.state = {**self.state, **dict(zip(solution.name, solution.position, strict=True))}
        return response, [self.state[name] for name in self.joints]


@SIDES
def test_srv_kinematics_plugin_requests_are_solved_in_sequence(arms_client, side):
    plugin = Plugin(arms_client, side)
    seed = [0.0] * 7
    for angle in (0.3, 0.6, 0.9):
        wanted = place(f"{side}_wam_tip", f"{side}_wam_base", **{f"{side}_wam_j4": 1.0 + angle})
        response, seed = plugin.search(wanted.pose, seed)
        assert response.error_code.val == 1, response.error_code.message
        found = TREE.pose(f"{side}_wam_tip", plugin.state)
        T_root_base = TREE.pose(f"{side}_wam_base", plugin.state)
        expected = T_root_base @ matrix_from_pose(wanted.pose)
        np.testing.assert_allclose(found, expected, atol=3e-6)
        assert list(response.solution.multi_dof_joint_state.joint_names) == []
        assert not response.solution.is_diff
        other = "right" if side == "left" else "left"
        assert all(plugin.state[f"{other}_wam_j{i + 1}"] == 0.0 for i in range(7))


def test_plugin_request_for_several_tips_solves_all_tips(arms_client):
    poses = [place(tip, "base", left_wam_j2=0.8, right_wam_j2=0.3) for tip in TIPS]
    fields = {"ik_link_names": list(TIPS), "pose_stamped_vector": poses}
    group = {"group_name": "both_arms", "avoid_collisions": True}
    response = send(arms_client, request(**group, **fields))
    assert response.error_code.val == 1, response.error_code.message
    solution = response.solution.joint_state
    found = dict(zip(solution.name, solution.position, strict=True))
    for tip, wanted in zip(TIPS, poses, strict=True):
        expected = matrix_from_pose(wanted.pose)
        np.testing.assert_allclose(TREE.pose(tip, found), expected, atol=3e-6)


def now(client):
    return client.node.get_clock().now().to_msg()


def heard():
    """A joint state as a driver of more than this robot publishes it."""
    state = joint_state({**CURRENT, "gripper_finger": 0.02})
    state.header.frame_id = "base"
    state.velocity = [0.0] * len(state.name)
    state.effort = [0.0] * len(state.name)
    return state


@pytest.mark.parametrize(("side", "link"), [("left", ""), ("right", "wam_link7")])
def test_pymoveit2_computes_ik(arms_client, side, link):
    link = link and f"{side}_{link}"
    stamped = place(link or f"{side}_wam_tip", f"{side}_wam_base")
    stamped.header.stamp = now(arms_client)
    asked = colliding(side, stamped, ik_link_name=link)
    asked.ik_request.robot_state.is_diff = False
    asked.ik_request.robot_state.joint_state = heard()
    response = send(arms_client, asked)
    assert response.error_code.val == 1
    assert list(response.solution.joint_state.name) == list(CURRENT)
    np.testing.assert_allclose(
        response.solution.joint_state.position, list(CURRENT.values()), atol=1e-6
    )


@pytest.mark.parametrize("side", ["right"])
def test_pymoveit2_computes_ik_from_a_list_of_joint_positions(arms_client, side):
    stamped = place(f"{side}_wam_tip", f"{side}_wam_base", **{f"{side}_wam_j4": 1.1})
    stamped.header.stamp = now(arms_client)
    names = [f"{side}_wam_j{i + 1}" for i in range(7)]  # joints of the arm only
    asked = colliding(side, stamped, dict(zip(names, BENT, strict=True)))
    start = asked.ik_request.robot_state.joint_state  # no stamp and no frame
    start.velocity, start.effort = [0.0] * 7, [0.0] * 7
    response = send(arms_client, asked)
    assert response.error_code.val == 1, response.error_code.message
    solution = response.solution.joint_state
    found = dict(zip(solution.name, solution.position, strict=True))
    assert found.keys() == CURRENT.keys()
    T_base_tip = inverse(TREE.pose(f"{side}_wam_base", found)) @ TREE.pose(f"{side}_wam_tip", found)
    np.testing.assert_allclose(T_base_tip, matrix_from_pose(stamped.pose), atol=3e-6)


def test_pymoveit2_computes_fk(arms_client):
    request = GetPositionFK.Request(fk_link_names=["left_wam_tip"])
    request.header.frame_id, request.header.stamp = "left_wam_base", now(arms_client)
    request.robot_state.joint_state = heard()
    response = arms_client.call(GetPositionFK, "compute_fk", request)
    assert response.error_code.val == 1
    expected = matrix_from_pose(place("left_wam_tip", "left_wam_base").pose)
    found = matrix_from_pose(response.pose_stamped[0].pose)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_groups_that_move_group_asks_for_are_those_of_the_node():
    asked = yaml.safe_load((CONFIG / "moveit" / "kinematics.yaml").read_text())
    node = yaml.safe_load((CONFIG / "moveit" / "ik_node.yaml").read_text())
    parameters = node["/**"]["ros__parameters"]
    assert set(asked) < set(parameters["groups"]) == set(parameters["group"])
    for entry in asked.values():
        assert entry["kinematics_solver"] == "srv_kinematics_plugin/SrvKinematicsPlugin"
        assert entry["kinematics_solver_service_name"] == "/dls_ik/compute_ik"


def test_documented_command_serves_a_moveit_servo_client():
    """By the command of docs/moveit_servo.md."""
    from moveit_msgs import msg

    if not hasattr(msg, "ServoStatus"):
        pytest.skip("needs moveit_msgs 2.3")
    page = (ROOT / "docs" / "moveit_servo.md").read_text()
    command = re.search(r"^ik_node --ros-args (.*)$", page, re.MULTILINE)[1]
    arguments = ["-r", "__ns:=/jogged", "-p", "feedback_mode:=none", *command.split()]
    with NodeProcess(*arguments) as node, Client("/jogged") as client:
        node.wait_for_line("ready")
        heard = client.listen(JointTrajectory, "joint_trajectory_controller/joint_trajectory")
        said = client.listen(msg.ServoStatus, "servo_node/status")
        twists = client.publisher(TwistStamped, "servo_node/delta_twist_cmds", 10)
        poses = client.publisher(PoseStamped, "servo_node/pose_target_cmds", 10)
        jog = TwistStamped()
        jog.header.frame_id, jog.twist.linear.z = "wam_base", -0.2
        client.spin_until(lambda: twists.publish(jog) or _moved(heard), what="a trajectory")
        answer = client.call(SetBool, "servo_node/pause_servo", SetBool.Request(data=True))
        assert answer.success
        client.spin_until(lambda: said and "paus" in said[-1].message, what="a status")
        answer = client.call(SetBool, "servo_node/pause_servo", SetBool.Request(data=False))
        assert answer.success
        far = PoseStamped()
        far.header.frame_id, far.pose.position.x = "wam_base", 9.0
        client.spin_until(
            lambda: poses.publish(far) or said[-1].code == 2, what="a status of the pose"
        )


def _moved(heard):
    return len(heard) > 1 and heard[0].points[-1].positions != heard[-1].points[-1].positions
