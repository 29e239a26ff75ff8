# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests that the SROS 2 policy allows exactly the actions of the node."""

import importlib.util
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from robots import URDF
from ros_client import Client, NodeProcess
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dls_ik.ros.robot_source import DESCRIPTION_QOS

pytestmark = pytest.mark.ros
POLICY = Path(__file__).resolve().parents[2] / "config" / "sros2" / "dls_ik_policy.xml"
SPACE, NODE = "/policy", "dls_ik"


def allowed(kind, permission):
    """The full names that the policy allows."""
    found = of_actions(kind, permission)
    for group in ET.parse(POLICY).getroot().iter(f"{kind}s"):
        if group.get(permission) == "ALLOW":
            found |= {full_name(entry.text) for entry in group.iter(kind)}
    return found


def of_actions(kind, permission):
    """The full names of the topics and services of the actions that the policy allows."""
    parts = {
        ("topic", "publish"): ("feedback", "status"),
        ("service", "reply"): ("send_goal", "cancel_goal", "get_result"),
    }.get((kind, permission), ())
    actions = ET.parse(POLICY).getroot().iter("action")
    return {f"{full_name(each.text)}/_action/{part}" for each in actions for part in parts}


def full_name(name):
    """The name as it is in the namespace of the test, where no other node has the same name."""
    if name[0] == "/":
        return name
    return f"{SPACE}/{name}" if name[0] != "~" else f"{SPACE}/{NODE}{name[1:]}"


def not_here():
    """What a machine without tf2 and RViz, or an older distribution, has not."""
    missing = set() if importlib.util.find_spec("tf2_ros") else {"/tf", "/tf_static"}
    if not importlib.util.find_spec("interactive_markers"):
        names = ("feedback", "update", "get_interactive_markers")
        missing |= {full_name(f"~/target/{name}") for name in names}
    is_humble = os.environ.get("ROS_DISTRO") == "humble"
    on_humble = {full_name("~/get_type_description"), full_name("~/switch_command_type")}
    return missing | (on_humble if is_humble else set())


def test_policy_profile_names_the_node():
    profile = ET.parse(POLICY).getroot().find("enclaves/enclave/profiles/profile")
    assert (profile.get("ns"), profile.get("node")) == ("/", NODE)


def test_policy_permits_exactly_the_topics_and_services_of_the_node():
    outputs = "joint_state,joint_trajectory,position_array,velocity_array,servo_ticks"
    arguments = ["-r", f"__ns:={SPACE}", "-p", f"output_type:={outputs}"]
    arguments += ["-p", "servo_resolution:=[0.001]", "-p", "use_sim_time:=true"]
    arguments += ["-p", "interactive_marker:=true", "-p", "move_group_interface:=true"]
    with NodeProcess(*arguments) as node, Client(SPACE) as client:
        node.wait_for_line("waiting for a robot")
        driver = client.node.create_publisher(JointState, "joint_states", 1)
        robot = client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
        robot.publish(String(data=(URDF / "planar_2r.urdf").read_text()))
        node.wait_for_line("ready")
        ways = {
            ("topic", "publish"): client.node.get_publisher_names_and_types_by_node,
            ("topic", "subscribe"): client.node.get_subscriber_names_and_types_by_node,
            ("service", "reply"): client.node.get_service_names_and_types_by_node,
            ("service", "request"): client.node.get_client_names_and_types_by_node,
        }
        for (kind, permission), ask in ways.items():
            wanted = allowed(kind, permission) - not_here()

            def seen(ask=ask):
                return {name for name, _ in ask(NODE, SPACE)}

            def agree(seen=seen, wanted=wanted):
                return seen() == wanted

            try:
                client.spin_until(agree)
            except AssertionError:
                assert seen() == wanted, (kind, permission)
        client.node.destroy_publisher(driver)
        assert "Traceback" not in node.output
