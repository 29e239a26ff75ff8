# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""What the launch files start under which arguments: every executable only records its call."""

import shutil

import pytest
import yaml

pytest.importorskip("launch_ros", reason="needs launch and launch_ros, which come with ROS 2")

from ament_prefix import RECORDER, Call, Prefix, path_with, write_command
from launch.launch_description_sources import get_launch_description_from_python_launch_file
from robots import CONFIG, ROOT, URDF

pytestmark = pytest.mark.installed

FILES = ("ik.launch.py", "wam.launch.py")
WAM = (URDF / "wam7.urdf").read_text()
SIM = yaml.safe_load((CONFIG / "sim_params.yaml").read_text())["/**"]["ros__parameters"]
EXAMPLE = yaml.safe_load((CONFIG / "ik_params.yaml").read_text())["/**"]["ros__parameters"]
PUMA = f"urdf:={URDF / 'puma560.urdf'}"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    made = Prefix(tmp_path_factory.mktemp("prefix"))
    made.add("dls_ik", "ik_node", RECORDER)
    made.add("dls_ik", "ik_sim_arm", RECORDER)
    made.add("robot_state_publisher", "robot_state_publisher", RECORDER)
    made.add("rviz2", "rviz2", RECORDER)
    return made


@pytest.fixture
def xacro_file(tmp_path):
    folder = tmp_path / "with a space"
    folder.mkdir()
    file = folder / "arm.urdf.xacro"
    file.write_text('<robot name="from xacro"><link name="stand"/></robot>')
    return file


@pytest.mark.parametrize("file", FILES)
def test_every_argument_is_described(file, prefix, monkeypatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", prefix.environment()["AMENT_PREFIX_PATH"])
    description = get_launch_description_from_python_launch_file(str(ROOT / "launch" / file))
    arguments = {argument.name: argument for argument in description.get_launch_arguments()}
    assert set(arguments) >= {"urdf", "base", "tip", "namespace", "params_file", "rate", "rviz"}
    assert all(argument.default_value is not None for argument in arguments.values())
    assert all(". " in f"{argument.description} " for argument in arguments.values())


def test_wam_starts_the_node_and_the_state_publisher_with_the_same_robot(prefix):
    calls = prefix.calls("wam.launch.py")
    robot = {"robot_description": WAM, "use_sim_time": False}
    assert calls == {
        "ik_node": Call([], "/", EXAMPLE | robot),
        "robot_state_publisher": Call([], "/", robot),
    }


def test_rviz_gets_our_config_and_the_root_link(prefix):
    ours = prefix.share / "config"
    config = str(ours / "ik.rviz")
    call = prefix.calls("wam.launch.py", "rviz:=true")["rviz2"]
    assert call.arguments == ["-d", str(ours / "wam.rviz"), "-f", "wam_base"]
    call = prefix.calls("ik.launch.py", PUMA, "rviz:=True", "base:=here")["rviz2"]
    assert call.arguments == ["-d", config, "-f", "here"]
    calls = prefix.calls("ik.launch.py", "rviz:=true")
    assert calls["rviz2"].arguments == ["-d", config]
    assert calls["ik_node"].parameters["interactive_marker"] is True
    own = str(URDF / "wam7.urdf")  # any file
    call = prefix.calls("wam.launch.py", "rviz:=true", f"rviz_config:={own}")["rviz2"]
    assert call.arguments[:2] == ["-d", own]


@pytest.mark.parametrize(
    ("arguments", "dragged"),
    [
        ([], None),
        (["rviz:=true", "interactive_marker:=false"], False),
        (["interactive_marker:=true"], True),
    ],
)
def test_interactive_marker_is_on_with_rviz_or_on_request(arguments, dragged, prefix):
    call = prefix.calls("ik.launch.py", *arguments)["ik_node"]
    assert call.parameters.get("interactive_marker") is dragged


@pytest.mark.parametrize("file", FILES)
def test_the_namespace_and_the_clock_are_those_of_all_nodes(file, prefix):
    calls = prefix.calls(file, PUMA, "namespace:=cell/left", "rviz:=true", "use_sim_time:=true")
    assert len(calls) == 3
    assert {call.namespace for call in calls.values()} == {"/cell/left"}
    assert all(call.parameters["use_sim_time"] is True for call in calls.values())


def test_arguments_become_parameters_of_their_types(prefix):
    arguments = ("base:=1", "tip:=true", "rate:=250", "output_type:=no", "output_topic:=1e3")
    calls = prefix.calls("ik.launch.py", *arguments)
    assert set(calls) == {"ik_node"}, "without a robot only the node starts"
    call = calls["ik_node"]
    assert call.parameters == {
        "base": "1",
        "tip": "true",
        "rate": 250.0,
        "output_type": "no",
        "output_topic": "1e3",
        "use_sim_time": False,
    }
    assert isinstance(call.parameters["rate"], float)


@pytest.mark.parametrize("file", FILES)
def test_compatibility_is_a_parameter_of_the_node_and_renames_topics_of_rviz(file, prefix):
    arguments = (PUMA, "sim:=true", "rviz:=true", "compatibility:=moveit_servo")
    calls = prefix.calls(file, *arguments)
    takers = {name for name, call in calls.items() if "compatibility" in call.parameters}
    assert takers == {"ik_node"}
    assert calls["ik_node"].parameters["compatibility"] == "moveit_servo"
    assert "dls_ik/target/update:=servo_node/target/update" in calls["rviz2"].remappings
    assert not prefix.calls(file, PUMA, "rviz:=true")["rviz2"].remappings


def test_an_srdf_is_a_parameter_of_the_node_alone(prefix, tmp_path):
    file = tmp_path / "arm.srdf"
    file.write_text('<robot name="1"/>')
    calls = prefix.calls("wam.launch.py", f"srdf:={file}", "sim:=true")
    takers = {
        name for name, each in calls.items() if "robot_description_semantic" in each.parameters
    }
    assert takers == {"ik_node"}
    assert calls["ik_node"].parameters["robot_description_semantic"] == file.read_text()


def test_a_scene_is_a_parameter_of_the_node_and_of_physics(prefix, tmp_path):
    file = tmp_path / "table.scene"
    file.write_text("(noname)+\n.\n")
    for given, takers in (("true", {"ik_node", "ik_sim_arm"}), ("false", {"ik_node"})):
        calls = prefix.calls("wam.launch.py", f"scene:={file}", "sim:=true", f"physics:={given}")
        scenes = {name: each.parameters.get("scene") for name, each in calls.items()}
        assert {name for name, scene in scenes.items() if scene == str(file)} == takers


def test_physics_is_a_parameter_of_the_simulated_arm_alone(prefix):
    for given, expected in (("true", {"ik_sim_arm"}), ("false", set())):
        calls = prefix.calls("wam.launch.py", "sim:=true", f"physics:={given}")
        assert {name for name, each in calls.items() if each.parameters.get("physics")} == expected


def test_arguments_override_the_parameters_file(prefix, tmp_path):
    file = tmp_path / "some.yaml"
    file.write_text("/**: {ros__parameters: {rate: 50.0, tip: hand, timeout: 0.01}}")
    call = prefix.calls("ik.launch.py", f"params_file:={file}", "rate:=20")["ik_node"]
    assert call.parameters == {"rate": 20.0, "tip": "hand", "timeout": 0.01, "use_sim_time": False}


def test_xacro_files_go_through_xacro(prefix, xacro_file, tmp_path):
    path = path_with(write_command(tmp_path, "xacro", 'cat "$1"', 'echo "<!-- $2 | $3 -->"'))
    arguments = (f"urdf:={xacro_file}", "xacro_args:=name:=ur 'hand:=of Ada'")
    calls = prefix.calls("ik.launch.py", *arguments, PATH=path)
    for call in calls.values():
        made = call.parameters["robot_description"]
        assert made == xacro_file.read_text() + "<!-- name:=ur | hand:=of Ada -->\n"
    assert set(calls) == {"ik_node", "robot_state_publisher"}


def test_a_missing_xacro_is_named(prefix, xacro_file, tmp_path):
    code, output = prefix.output("ik.launch.py", f"urdf:={xacro_file}", PATH=str(tmp_path))
    assert code == 1
    assert f"urdf:={xacro_file} needs the command xacro, which is not installed" in output


def test_error_message_of_xacro_is_shown(prefix, xacro_file, tmp_path):
    path = path_with(write_command(tmp_path, "xacro", "echo undefined name >&2", "exit 2"))
    code, output = prefix.output("ik.launch.py", f"urdf:={xacro_file}", PATH=path)
    assert code == 1
    assert "undefined name" in output
    assert "arm.urdf.xacro' failed" in output


@pytest.mark.skipif(shutil.which("xacro") is None, reason="needs xacro, which comes with ROS 2")
def test_installed_xacro_expands_files_with_arguments(prefix, tmp_path):
    file = tmp_path / "arm.xacro"
    file.write_text(
        '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:arg name="stand" default="floor"/><link name="$(arg stand)"/></robot>'
    )
    calls = prefix.calls("ik.launch.py", f"urdf:={file}", "xacro_args:=stand:=table", "rviz:=true")
    assert '<link name="table"/>' in calls["ik_node"].parameters["robot_description"]
    assert calls["rviz2"].arguments[-2:] == ["-f", "table"]


def test_rviz_starts_with_an_invalid_robot_description(prefix):
    arguments = (f"urdf:={CONFIG / 'wam7_dh.yaml'}", "rviz:=true")
    assert len(prefix.calls("ik.launch.py", *arguments)) == 3


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("urdf:=none.urdf", "urdf:=none.urdf is not a file"),
        ("params_file:=none.yaml", "params_file:=none.yaml is not a file"),
        ("srdf:=none.srdf", "srdf:=none.srdf is not a file"),
        ("scene:=none.scene", "scene:=none.scene is not a file"),
        ("rate:=fast", "rate:=fast is not a number"),
        ("rviz:=perhaps", "perhaps"),
        ("interactive_marker:=perhaps", "perhaps"),
        ("rviz_config:=none.rviz", "rviz_config:=none.rviz is not a file"),
        ("namespace:=a b", "Invalid namespace"),
    ],
)
def test_bad_arguments_are_refused(argument, message, prefix):
    code, output = prefix.output("wam.launch.py", argument)
    assert code == 1
    assert message in output
    assert "process started" not in output


@pytest.mark.parametrize("file", [*FILES, "two_wams.launch.py"])
def test_nothing_starts_where_an_executable_is_missing(file, tmp_path):
    bare = Prefix(tmp_path)
    bare.add("dls_ik", "ik_node", RECORDER)
    bare.add("robot_state_publisher", "elsewhere", RECORDER)
    arguments = (file, PUMA, "rviz:=true", "sim:=true")
    code, output = bare.output(*arguments, AMENT_PREFIX_PATH=str(tmp_path))
    assert code == 1
    listed = "ik_sim_arm of dls_ik and robot_state_publisher and rviz2"
    assert f"nothing was started, as {listed} cannot be found" in output
    assert "ros-$ROS_DISTRO-robot-state-publisher ros-$ROS_DISTRO-rviz2" in output
    assert "process started" not in output


def test_a_simulated_arm_has_the_same_robot_and_takes_the_commands(prefix):
    calls = prefix.calls("wam.launch.py", "sim:=true", "namespace:=cell")
    robot = {"robot_description": WAM, "use_sim_time": False}
    assert calls["ik_sim_arm"] == Call([], "/cell", SIM | robot)
    driven = {
        "output_type": "joint_trajectory",
        "output_topic": "joint_trajectory_controller/joint_trajectory",
    }
    assert calls["ik_node"] == Call([], "/cell", EXAMPLE | robot | driven)
    call = prefix.calls("ik.launch.py", PUMA, "sim:=true", "base:=here", "tip:=there")["ik_sim_arm"]
    assert (call.parameters["base"], call.parameters["tip"]) == ("here", "there")
    assert "initial_positions" not in call.parameters


@pytest.mark.parametrize(
    ("arguments", "kind", "topic"),
    [
        (["output_type:=position_array"], "position_array", "forward_position_controller/commands"),
        (["output_type:=joint_state"], "joint_state", "joint_commands"),
        (["output_topic:=elsewhere"], "joint_trajectory", "elsewhere"),
    ],
)
def test_simulated_arm_accepts_other_output_types_and_topics(arguments, kind, topic, prefix):
    parameters = prefix.calls("ik.launch.py", "sim:=true", *arguments)["ik_node"].parameters
    assert parameters["output_type"] == kind
    assert parameters["output_topic"] == topic


@pytest.mark.parametrize("sim", ["false", "true"])
def test_two_wams_have_a_node_each_and_one_state_publisher(sim, prefix):
    records = prefix.records("two_wams.launch.py", f"sim:={sim}", "rviz:=true", "rate:=50")
    text = (URDF / "two_wams.urdf").read_text()
    for side in ("left", "right"):
        calls = {name: call for name, call in records if call.namespace == f"/{side}"}
        assert set(calls) == {"ik_node"} | ({"ik_sim_arm"} if sim == "true" else set())
        for call in calls.values():
            assert call.remappings == ("joint_states:=/joint_states",)
            assert call.parameters["robot_description"] == text
            assert call.parameters["base"] == f"{side}_wam_base"
            assert call.parameters["tip"] == f"{side}_wam_tip"
            assert list(call.parameters["initial_positions"]) == EXAMPLE["initial_positions"]
        assert calls["ik_node"].parameters["rate"] == 50.0
        assert calls["ik_node"].parameters["interactive_marker"] is True
        output = calls["ik_node"].parameters.get("output_type")
        assert output == ("joint_trajectory" if sim == "true" else None)
    shared = {name: call for name, call in records if call.namespace == "/"}
    assert set(shared) == {"robot_state_publisher", "rviz2"}
    assert shared["robot_state_publisher"].parameters["robot_description"] == text
    assert shared["rviz2"].arguments == ["-d", str(prefix.share / "config" / "two_wams.rviz")]
