# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The RViz configuration and the example parameters, read without RViz and ROS."""

import copy
import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import yaml
from robots import CONFIG, ROOT, URDF

from dls_ik.model.robot import RobotModel

FILES = {
    name: yaml.safe_load((CONFIG / f"{name}.rviz").read_text())["Visualization Manager"]
    for name in ("ik", "wam", "two_wams")
}
RVIZ, TWO = FILES["ik"], FILES["two_wams"]
DISPLAYS = {display["Class"].rpartition("/")[2]: display for display in RVIZ["Displays"]}
QOS = {"Value", "Depth", "Durability Policy", "History Policy", "Reliability Policy"}

# The names of RViz, from Humble to Rolling; it passes over others without a word.
OF_ALL = {"Class", "Name", "Enabled", "Value"}
PROPERTIES = {
    "Grid": {
        *("Alpha", "Cell Size", "Color", "Line Style", "Normal Cell Count", "Offset", "Plane"),
        *("Plane Cell Count", "Reference Frame"),
    },
    "RobotModel": {
        *("Alpha", "Collision Enabled", "Description File", "Description Source", "TF Prefix"),
        *("Description Topic", "Mass Properties", "Update Interval", "Visual Enabled"),
    },
    "TF": {
        *("Frame Timeout", "Frames", "Marker Scale", "Show Arrows", "Show Axes", "Show Names"),
        *("Tree", "Update Interval"),
    },
    "Pose": {
        *("Alpha", "Axes Length", "Axes Radius", "Color", "Head Length", "Head Radius"),
        *("Shaft Length", "Shaft Radius", "Shape", "Topic"),
    },
    "MarkerArray": {"Namespaces", "Topic"},
    "InteractiveMarkers": {
        *("Enable Transparency", "Interactive Markers Namespace", "Show Axes"),
        *("Show Descriptions", "Show Visual Aids"),
    },
}
TOOLS = {"Interact", "MoveCamera", "FocusCamera", "Measure"}


@pytest.mark.parametrize("name", FILES)
def test_rviz_files_set_only_known_properties(name):
    for display in FILES[name]["Displays"]:
        library, _, kind = display["Class"].rpartition("/")
        assert library == "rviz_default_plugins"
        assert set(display) - OF_ALL <= PROPERTIES[kind]
        for topic in ("Topic", "Description Topic"):
            assert set(display.get(topic, ())) <= QOS
    names = [display["Name"] for display in FILES[name]["Displays"]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", FILES)
def test_rviz_starts_with_the_interact_tool(name):
    tools = [tool["Class"].rpartition("/")[2] for tool in FILES[name]["Tools"]]
    assert tools[0] == "Interact"  # the first one is in use
    assert set(tools) <= TOOLS
    assert FILES[name]["Views"]["Current"]["Class"] == "rviz_default_plugins/Orbit"


def test_rviz_enables_every_display_except_pose():
    assert set(DISPLAYS) == set(PROPERTIES)
    assert {name for name, display in DISPLAYS.items() if not display["Enabled"]} == {"Pose"}


def test_rviz_for_the_wam_differs_in_frame_and_floor():
    wam = copy.deepcopy(FILES["wam"])
    assert wam["Global Options"]["Fixed Frame"] == RobotModel.wam().tree.root
    [grid] = [d for d in wam["Displays"] if d["Class"].endswith("Grid")]
    lowest = min(
        float(visual.find("origin").get("xyz").split()[2])  # type: ignore[union-attr]
        for visual in ET.parse(URDF / "wam7.urdf").getroot().iter("visual")
    )
    assert grid["Offset"]["Z"] == pytest.approx(lowest - 0.01)  # the plate is 2 cm thick
    grid["Offset"]["Z"] = 0
    wam["Global Options"]["Fixed Frame"] = RVIZ["Global Options"]["Fixed Frame"]
    assert wam == RVIZ


def test_rviz_listens_to_relative_topics_as_they_are_published():
    description = DISPLAYS["RobotModel"]["Description Topic"]
    assert description["Value"] == "robot_description"
    assert description["Durability Policy"] == "Transient Local"
    target = DISPLAYS["Pose"]["Topic"]
    assert target["Value"] == "target_pose"
    assert target["Reliability Policy"] == "Best Effort"
    assert DISPLAYS["MarkerArray"]["Topic"]["Value"] == "dls_ik/markers"
    assert DISPLAYS["InteractiveMarkers"]["Interactive Markers Namespace"] == "dls_ik/target"


def test_the_example_parameters_are_the_defaults_but_for_a_bent_wam():
    parameters = pytest.importorskip("dls_ik.ros.params", reason="needs the node")
    file = yaml.safe_load((CONFIG / "ik_params.yaml").read_text())
    example = parameters.Parameters().changed(file["/**"]["ros__parameters"])
    start = example.initial_positions
    assert replace(example, initial_positions=()) == parameters.Parameters()
    assert start
    assert RobotModel.wam().within_limits(start)


def test_rviz_opens_for_two_wams_and_shows_target_and_markers_of_each():
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
    servers = [d.get("Interactive Markers Namespace") for d in TWO["Displays"]]
    assert [server for server in servers if server] == ["left/dls_ik/target", "right/dls_ik/target"]
    assert {d["Class"] for d in TWO["Displays"]} == {d["Class"] for d in RVIZ["Displays"]}


def test_the_example_parameters_of_the_simulated_arm_start_as_those_of_the_node():
    sim_arm = pytest.importorskip("dls_ik.ros.sim_arm.arm", reason="needs the node")
    files = (yaml.safe_load((CONFIG / f"{name}_params.yaml").read_text()) for name in ("ik", "sim"))
    ik, sim = (file["/**"]["ros__parameters"] for file in files)
    assert sim_arm.SimArmParameters().changed(sim).initial_positions == tuple(
        ik["initial_positions"]
    )


# The layouts of PlotJuggler and Foxglove

JUGGLER = ET.parse(CONFIG / "plotjuggler" / "wam.xml").getroot()
FOXGLOVE = json.loads((CONFIG / "foxglove" / "ik.json").read_text())
MONITOR = (ROOT / "dls_ik" / "ros" / "servo" / "monitor.py").read_text()
PANELS = {"3D", "Plot", "StateTransitions", "DiagnosticSummary"}
POSES = ("target_pose", "dls_ik/tip_pose")


def test_layout_of_plotjuggler_has_areas_for_what_the_node_publishes():
    widget = JUGGLER.find("tabbed_widget")
    assert dict(widget.attrib) == {"name": "Main Window", "parent": "main_window"}
    assert int(widget.find("currentTabIndex").get("index")) < len(widget.findall("Tab"))
    for tab in widget.findall("Tab"):
        assert len(tab.findall("Container")) == int(tab.get("containers"))
    for splitter in JUGGLER.iter("DockSplitter"):
        areas = splitter.findall("DockArea")
        assert splitter.get("orientation") in "-|"
        assert len(areas) == int(splitter.get("count")) == len(splitter.get("sizes").split(";"))
        assert all(len(area.findall("plot")) == 1 for area in areas)
    named = [curve.get("name") for curve in JUGGLER.iter("curve")]
    robot = RobotModel.wam()
    known = {f"/{topic}/pose/position/{axis}" for topic in POSES for axis in "xyz"}
    known |= {f"/joint_states/{j}/{k}" for j in robot.joint_names for k in ("position", "velocity")}
    known |= {"/dls_ik/status/code"}
    diagnostics = f"/diagnostics/{robot.name}//dls_ik: stream/"
    assert len(named) == len(set(named))
    for name in set(named) - known:
        assert name.startswith(diagnostics), name
        assert f'"{name.removeprefix(diagnostics)}"' in MONITOR, name


def leaves(tree):
    return [tree] if isinstance(tree, str) else leaves(tree["first"]) + leaves(tree["second"])


def test_layout_of_foxglove_has_panels_for_what_the_node_publishes():
    panels = FOXGLOVE["configById"]
    assert set(FOXGLOVE) == {
        "configById",
        "globalVariables",
        "userNodes",
        "playbackConfig",
        "layout",
    }
    assert sorted(leaves(FOXGLOVE["layout"])) == sorted(panels)
    assert {name.partition("!")[0] for name in panels} == PANELS
    paths = [each["value"] for panel in panels.values() for each in panel.get("paths", ())]
    known = {f"/{topic}.pose.position.{axis}" for topic in POSES for axis in "xyz"}
    known |= {f"/joint_states.position[{k}]" for k in range(7)} | {"/dls_ik/status.message"}
    assert set(paths) == known
    assert panels["3D!arm"]["layers"]["arm"]["topic"] == "/robot_description"
    assert panels["3D!arm"]["publish"]["poseTopic"] == "/target_pose"
