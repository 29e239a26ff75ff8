"""The RViz configuration and the example parameters, read without RViz and ROS."""

from dataclasses import replace

import pytest
import yaml
from robots import CONFIG, URDF

from dls_ik.model.robot import RobotModel

RVIZ, TWO = (
    yaml.safe_load((CONFIG / f"{name}.rviz").read_text())["Visualization Manager"]
    for name in ("ik", "two_wams")
)
DISPLAYS = {display["Class"].rpartition("/")[2]: display for display in RVIZ["Displays"]}


def test_rviz_opens_for_the_wam() -> None:
    assert RVIZ["Global Options"]["Fixed Frame"] == RobotModel.wam().tree.root
    assert set(DISPLAYS) == {"Grid", "RobotModel", "TF", "Pose", "MarkerArray"}
    assert all(display["Enabled"] for display in DISPLAYS.values())


def test_rviz_listens_to_relative_topics_as_they_are_published() -> None:
    description = DISPLAYS["RobotModel"]["Description Topic"]
    assert description["Value"] == "robot_description"
    assert description["Durability Policy"] == "Transient Local"
    target = DISPLAYS["Pose"]["Topic"]
    assert target["Value"] == "target_pose"
    assert target["Reliability Policy"] == "Best Effort"
    assert DISPLAYS["MarkerArray"]["Topic"]["Value"] == "dls_ik/markers"


def test_the_example_parameters_are_the_defaults_but_for_a_bent_wam_that_speeds_up_slowly() -> None:
    parameters = pytest.importorskip("dls_ik.ros.parameters", reason="needs the node")
    file = yaml.safe_load((CONFIG / "ik_params.yaml").read_text())
    example = parameters.Parameters().changed(file["/**"]["ros__parameters"])
    start = example.initial_positions
    assert replace(example, initial_positions=(), acceleration=()) == parameters.Parameters()
    assert start
    assert example.acceleration
    assert RobotModel.wam().within_limits(start)


def test_rviz_opens_for_two_wams_and_shows_target_and_markers_of_each() -> None:
    robot = RobotModel.from_urdf(URDF / "two_wams.urdf", tip="left_wam_tip")
    assert TWO["Global Options"]["Fixed Frame"] == robot.tree.root
    topics = {
        display["Topic"]["Value"]: display["Topic"]["Reliability Policy"]
        for display in TWO["Displays"]
        if "Topic" in display
    }
    assert topics == {
        "left/target_pose": "Best Effort",
        "right/target_pose": "Best Effort",
        "left/dls_ik/markers": "Reliable",
        "right/dls_ik/markers": "Reliable",
    }
    assert {d["Class"] for d in TWO["Displays"]} == {d["Class"] for d in RVIZ["Displays"]}


def test_the_example_parameters_of_the_simulated_arm_start_as_those_of_the_node() -> None:
    sim_arm = pytest.importorskip("dls_ik.ros.sim_arm.parameters", reason="needs the node")
    files = (yaml.safe_load((CONFIG / f"{name}_params.yaml").read_text()) for name in ("ik", "sim"))
    ik, sim = (file["/**"]["ros__parameters"] for file in files)
    assert sim_arm.SimArmParameters().changed(sim).initial_positions == tuple(
        ik["initial_positions"]
    )
