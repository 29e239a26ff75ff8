"""How the node starts and ends, and where its robot comes from."""

import os
import signal
import subprocess
import sys

import pytest
import yaml

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from moveit_msgs.srv import GetPositionFK
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.parameter import parameter_value_to_python
from robots import URDF, joint, urdf
from ros_arms import ARGUMENTS
from ros_client import READY, Client, NodeProcess, SimArmProcess
from std_msgs.msg import String

from dls_ik import RobotModel
from dls_ik.model.analysis import ready_configuration
from dls_ik.ros.robot_source import QOS

pytestmark = pytest.mark.ros
PLANAR = (URDF / "planar_2r.urdf").read_text()


def fk(client, link="tip", service="compute_fk"):
    return client.call(GetPositionFK, service, GetPositionFK.Request(fk_link_names=[link]))


def fk_position(client, link="tip", service="compute_fk"):
    response = fk(client, link, service)
    assert response.error_code.val == 1, response.error_code.message
    p = response.pose_stamped[0].pose.position
    return [p.x, p.y, p.z]


def assert_no_traceback(node):
    assert "Traceback" not in node.output, node.output
    assert "terminate called" not in node.output, node.output


BAD_DESCRIPTIONS = {
    "not XML": ("not xml at all", "XML"),
    "broken XML": ('<robot name="r"><link', "line 1"),
    "cycle": (urdf("a b", joint("j"), joint("k", parent="b", child="a")), "cycle, j, k"),
    "axis": (urdf("a b", joint("lame", axis="0 0 0")), "'lame'"),
    "limits": (urdf("a b", joint("odd", detail='<limit lower="2" upper="1"/>')), "'odd'"),
    "type": (urdf("a b", joint("weird", kind="elastic")), "'weird'"),
    "no joints": (urdf("a"), "links: a"),
    "two tips": (urdf("a b c", joint("j"), joint("k", child="c")), "b, c"),
    "entities": ('<!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>', "line 1"),
    "file name": (str(URDF / "planar_2r.urdf"), "XML"),
}


def test_robot_comes_late_and_bad_ones_before_it():
    with NodeProcess("-r", "__ns:=/late") as node, Client("late") as client:
        node.wait_for_line("waiting for a robot", "/late/robot_description")
        answer = fk(client)
        assert answer.error_code.val == 99999
        assert "no robot yet" in answer.error_code.message
        topic = client.node.create_publisher(String, "robot_description", QOS)
        for name, (text, words) in BAD_DESCRIPTIONS.items():
            refused = node.count("ERROR", "robot refused")
            topic.publish(String(data=text))
            client.spin_until(lambda n=refused: node.count("ERROR", "robot refused") > n, what=name)
            for _ in range(2):
                reason = fk(client).error_code.message
                assert reason.startswith("there is no robot: "), reason
                assert words in reason
            assert node.count("ERROR", "robot refused") == refused + 1
        topic.publish(String(data=PLANAR))
        node.wait_for_line("ready", "planar_2r", "base to tip")
        assert fk_position(client) == pytest.approx([2.0, 0.0, 0.0])
        topic.publish(String(data="<robot/>"))
        node.wait_for_line("ERROR", "robot refused", "link")
        assert fk_position(client) == pytest.approx([2.0, 0.0, 0.0])
        topic.publish(String(data=PLANAR.replace('"1 0 0"', '"3 0 0"')))
        client.spin_until(lambda: node.count("ready") == 2)
        assert fk_position(client) == pytest.approx([6.0, 0.0, 0.0])
        assert_no_traceback(node)
        assert node.end(signal.SIGTERM) == 0
        assert_no_traceback(node)


@pytest.mark.installed
def test_latched_robot_is_found_by_a_node_that_comes_later():
    with Client("latched") as client:
        topic = client.node.create_publisher(String, "robot_description", QOS)
        topic.publish(String(data=PLANAR))
        with NodeProcess("-r", "__ns:=/latched", "-p", "tip:=link2") as node:
            node.wait_for_line("ready", "base to link2")
            assert fk_position(client, "link2") == pytest.approx([1.0, 0.0, 0.0])
            node.process.send_signal(signal.SIGINT)
            assert node.end(signal.SIGINT) == 0
            assert_no_traceback(node)


def test_unusable_robot_of_a_parameter_leaves_the_node_up():
    arguments = ("-r", "__ns:=/missing", "-p", "robot:=/no/such/file.urdf")
    with NodeProcess(*arguments) as node, Client("missing") as client:
        node.wait_for_line("ERROR", "/no/such/file.urdf")
        assert "/no/such/file.urdf" in fk(client).error_code.message
        topic = client.node.create_publisher(String, "robot_description", QOS)
        topic.publish(String(data=PLANAR))
        node.wait_for_line("ready")
        assert fk_position(client) == pytest.approx([2.0, 0.0, 0.0])
        assert node.end() == 0


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("robot:=nope", ["'nope'", "wam", "puma560"]),
        ("robot:=~nobody_of_that_name/x.urdf", ["~nobody_of_that_name/x.urdf"]),
        ("base:=nowhere", ["'nowhere'", "wam_tip"]),
        ("tip:=wam_base", ["wam_base"]),
    ],
)
def test_robot_that_is_not_there_is_explained(parameter, words):
    arguments = ("-r", "__ns:=/unknown", "-p", "robot:=wam", "-p", parameter)
    with NodeProcess(*arguments) as node:
        node.wait_for_line("ERROR", "there is no robot", *words, "publish another robot on")
        assert node.count("waiting for a robot") == 0
        assert node.end() == 0
        assert_no_traceback(node)


@pytest.mark.installed
def test_robot_of_a_file_namespace_and_remapping():
    file = URDF / "puma560.urdf"
    arguments = ("-r", "__ns:=/left", "-r", "compute_fk:=forward", "-r", "__node:=solver")
    with NodeProcess(*arguments, "-p", f"robot:={file}") as node, Client("left") as client:
        line = node.wait_for_line("ready", "/left/forward", "/left/compute_ik", "/left/target_pose")
        robot = RobotModel.from_name("puma560")
        assert ", ".join(robot.joint_names) in line
        expected = robot.fk(ready_configuration(robot))[:3, 3]
        assert fk_position(client, robot.tip, "/left/forward") == pytest.approx(expected.tolist())
        assert fk(client, robot.tip, "/left/forward").error_code.source == "solver"
        assert node.end(signal.SIGTERM) == 0
        assert_no_traceback(node)


@pytest.mark.installed
@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("method:=nope", ["'nope'", "ctp+sd+svf", "auto"]),
        ("rate:=0", ["rate", "1 to 1000 [Hz]"]),
        ("timeout:=-1.0", ["timeout"]),
        ("initial_positions:=[1.0, 2.0]", ["7 joint values"]),
        ("robot_description:=<robot/>", ["give one"]),
        ("random_seed:=abc", ["random_seed"]),
        ("output_topic:=bad/", ["topic"]),
    ],
)
def test_bad_parameter_ends_the_start_with_one_line(parameter, words):
    with NodeProcess("-p", "robot:=wam", "-p", parameter) as node:
        assert node.wait_for_end(READY) == 1
        line = node.wait_for_line("FATAL", "cannot start", *words)
        assert node.lines.index(line) >= 0
        assert_no_traceback(node)


def test_a_topic_of_two_types_ends_the_start_with_one_line():
    with SimArmProcess("-r", "forward_position_controller/commands:=joint_states") as arm:
        assert arm.wait_for_end(READY) == 1
        arm.wait_for_line("FATAL", "cannot start", "joint_states", "incompatible type")
        assert_no_traceback(arm)


def test_signal_while_kernels_are_compiled(tmp_path):
    arguments = ("-r", "__ns:=/cold", "-p", "robot:=wam")
    with NodeProcess(*arguments, NUMBA_CACHE_DIR=str(tmp_path)) as node:
        node.wait_for_line("compiling kernels")
        assert node.end(signal.SIGINT) == 0
        assert node.count("ready") == 0
        assert_no_traceback(node)


@pytest.mark.parametrize("folder", ["/proc/none", "/etc/passwd"])
def test_a_log_folder_that_cannot_be_made_is_one_line(folder):
    with NodeProcess("-p", "robot:=wam", ROS_LOG_DIR=folder) as node:
        assert node.wait_for_end(READY) == 1
        assert len(node.lines) == 1
        assert "cannot start" in node.lines[0]
        assert folder in node.lines[0]
        assert "set ROS_LOG_DIR to a folder that can be written" in node.lines[0]


def test_a_damaged_kernel_cache_is_no_obstacle(kernel_cache):
    for damaged in kernel_cache.rglob("table.fill-*"):
        damaged.write_bytes(b"")
    arguments = ("-r", "__ns:=/damaged", "-p", "robot:=planar_2r")
    with NodeProcess(*arguments, NUMBA_CACHE_DIR=str(kernel_cache)) as node:
        node.wait_for_line("ready")
        assert node.count("INFO", "compiling kernels again", str(kernel_cache)) == 1
        assert node.count("compiling") == 1
        assert node.end() == 0
        assert_no_traceback(node)


@pytest.mark.installed
@pytest.mark.parametrize("module", ["dls_ik.ros.node", "dls_ik.ros.sim_arm.node"])
def test_help_is_printed_and_a_foreign_argument_is_refused(module):
    """Instead of a node that is started, and passes over what it was told."""

    def run(*arguments):
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=READY, check=False)

    for flag in ("--help", "-h"):
        done = run(flag)
        assert (done.returncode, done.stderr) == (0, "")
        for words in ("usage:", "--ros-args", "initial_positions", "FILE.xacro NAME:=VALUE"):
            assert words in done.stdout
    refused = run("robot:=wam", "--ros-args", "-r", "__ns:=/foreign")
    assert refused.returncode == 2
    assert "takes no argument 'robot:=wam'" in refused.stderr
    assert "-p NAME:=VALUE" in refused.stderr


def test_a_robot_with_several_tips_is_refused_with_the_option_that_mends_it(tmp_path):
    file = tmp_path / "two.urdf"
    file.write_text(urdf("a b c", joint("j"), joint("k", child="c")))
    with NodeProcess("-r", "__ns:=/tips", "-p", f"robot:={file}") as node, Client("tips") as client:
        said = ("several links could be the tip", "add -p tip:=b, or tip:=c")
        node.wait_for_line(
            "ERROR", "there is no robot", *said, "or publish another robot on /tips/"
        )
        node.wait_for_line("ERROR", "there is no robot", *said)
        assert "add -p tip:=b" in fk(client).error_code.message
        assert node.count("waiting for a robot") == 0
        assert node.end() == 0
    with SimArmProcess("-p", f"robot:={file}") as arm:
        assert arm.wait_for_end(READY) == 1
        arm.wait_for_line("FATAL", *said)


def test_a_robot_of_a_xacro_file_with_arguments_and_bad_mimics_elsewhere(tmp_path):
    pytest.importorskip("xacro", reason="needs xacro")
    follower = '<limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="nobody"/>'
    text = urdf("a b f", joint("j", "continuous"), joint("g", child="f", detail=follower))
    argument = '<xacro:arg name="tip" default="b"/>'
    head, _, rest = text.replace('"b"', '"$(arg tip)"').partition(">")
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(f'{head} xmlns:xacro="http://www.ros.org/wiki/xacro">{argument}{rest}')
    with NodeProcess("-p", f"robot:={file} tip:=hand", "-r", "__ns:=/args") as node:
        node.wait_for_line("WARN", "g cannot be used", "mimics the unknown joint 'nobody'")
        node.wait_for_line("ready", "a to hand, joints j;")
        assert node.end() == 0
        assert_no_traceback(node)


@pytest.mark.parametrize("module", ["dls_ik.ros.node", "dls_ik.ros.sim_arm.node"])
def test_what_numba_does_not_take_of_the_environment_is_one_line(module):
    environment = {**os.environ, "NUMBA_NUM_THREADS": "0"}
    command = [sys.executable, "-m", module]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=READY)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("cannot start: numba")
    assert "NUMBA_NUM_THREADS=0" in line


def test_misspelt_parameter_is_pointed_out():
    with NodeProcess("-r", "__ns:=/typo", "-p", "robt:=wam") as node:
        node.wait_for_line("WARN", "'robt'", "robot_description")
        node.wait_for_line("waiting")
        assert node.end() == 0


@pytest.mark.installed
@pytest.mark.parametrize(
    ("process", "name", "arguments"),
    [
        (NodeProcess, "/dump/dls_ik", ARGUMENTS),
        (NodeProcess, "/dump/dls_ik", ("-p", "robot:=wam", "-p", "jerk:=[]", "-p", "nu:=1")),
        (SimArmProcess, "/dump/sim_arm", ("-p", "robot:=wam", "-p", "delay:=0.1")),
    ],
)
def test_a_dump_of_the_parameters_starts_the_same_node_again(process, name, arguments, tmp_path):
    file = tmp_path / "dump.yaml"
    place = ("-r", "__ns:=/dump")
    with Client() as client:
        with process(*place, *arguments) as node:
            node.wait_for_line("ready")
            before = parameter_values(client, name)
            assert node.end() == 0
        assert [] in before.values()
        file.write_text(yaml.dump({name: {"ros__parameters": nested(before)}}))
        with process(*place, "--params-file", str(file)) as again, Client() as newer:
            again.wait_for_line("ready")
            assert parameter_values(newer, name) == before
            assert again.end() == 0


def parameter_values(client, name):
    """The parameters of a node by their names, as ``ros2 param dump`` asks for them."""
    request = ListParameters.Request()
    names = client.call(ListParameters, f"{name}/list_parameters", request).result.names
    request = GetParameters.Request(names=names)
    values = client.call(GetParameters, f"{name}/get_parameters", request).values
    given = zip(names, map(parameter_value_to_python, values), strict=True)
    return {name: list(v) if hasattr(v, "typecode") else v for name, v in given}


def nested(values):
    """Parameters as ``ros2 param dump`` writes them: dots in a name are levels."""
    tree = {}
    for name, value in values.items():
        *levels, last = name.split(".")
        place = tree
        for level in levels:
            place = place.setdefault(level, {})
        place[last] = value
    return tree
