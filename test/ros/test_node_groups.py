"""The groups of the running node: declared as all parameters are, and refused at the start."""

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from ros_arms import ARGUMENTS, TIPS, place, request, send
from ros_client import Client, NodeProcess

pytestmark = pytest.mark.ros


def test_groups_are_described_and_change_live(arms_client):
    tip, method, timeout = arms_client.describe_parameters(
        "group.both_arms.tip", "group.left_arm.method", "group.right_arm.timeout"
    )
    assert tip.read_only
    assert "string array" in tip.additional_constraints
    assert not method.read_only
    assert (timeout.description[-3:], timeout.floating_point_range[0].to_value) == ("[s]", 3600.0)
    assert list(arms_client.get_parameter("group.both_arms.tip").string_array_value) == list(TIPS)
    try:
        changed = {"group.left_arm.method": "svf+sd", "group.right_arm.timeout": 0.2}
        assert arms_client.set_parameters(**changed).successful
        far = place(TIPS[0])
        far.pose.position.x = 9.0
        answer = send(arms_client, request(far, group_name="left_arm"))
        assert "no attempt reached" in answer.error_code.message
    finally:
        changed = {"group.left_arm.method": "", "group.right_arm.timeout": 0.1}
        assert arms_client.set_parameters(**changed).successful
    refused = arms_client.set_parameters(**{"group.both_arms.method": "kdl_lma"})
    assert "group 'both_arms'" in refused.reason
    refused = arms_client.set_parameters(**{"group.both_arms.tip": "left_wam_tip"})
    assert "read-only" in refused.reason


def test_the_node_says_which_groups_it_serves(arms_client):
    arms_client.process.wait_for_line("ready", "for left_arm, right_arm, both_arms")


def test_a_group_that_does_not_fit_ends_the_start():
    wrong = ("-p", "group.left_arm.tip:=hand", "-p", "group.leg.tip:=foot")
    arguments = ("-r", "__ns:=/wrong", *ARGUMENTS, "-p", "stream_group:=right_arm", *wrong)
    with NodeProcess(*arguments) as node:
        node.wait_for_line("WARN", "unknown parameter 'group.leg.tip'", "group.left_arm.tip")
        node.wait_for_line("FATAL", "group 'left_arm' does not fit", "'hand'", "left_wam_link1")
        assert node.process.wait(15.0) == 1


def test_a_node_without_groups_takes_two_links_as_well():
    arguments = ("-r", "__ns:=/plain", *ARGUMENTS[:2], "-p", "tip:=left_wam_tip")
    with NodeProcess(*arguments) as node, Client("plain") as client:
        node.wait_for_line("ready")
        poses = [place(tip, left_wam_j2=0.7, right_wam_j4=1.4) for tip in TIPS]
        whole = request(pose_stamped_vector=poses, ik_link_names=TIPS, group_name="anything")
        answer = send(client, whole)
        assert answer.error_code.val == 1, answer.error_code.message
