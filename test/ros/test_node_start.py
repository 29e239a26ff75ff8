# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of start and exit of the node, and of the sources of its robot."""

import os
import signal
import subprocess
import sys

import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseArray, PoseStamped, TwistStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.parameter import parameter_value_to_python
from robots import URDF, joint, urdf
from ros_arms import ARGUMENTS
from ros_client import READY, Client, ExecutedNode, NodeProcess, SimArmProcess
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from benchmarks.processes import real_time_priorities
from dls_ik import RobotModel, compat
from dls_ik.errors import DlsIkError, RequestError
from dls_ik.model.analysis import ready_configuration
from dls_ik.ros.application import Application
from dls_ik.ros.params import Parameters
from dls_ik.ros.presets import with_preset
from dls_ik.ros.process import LiveParameters, given_values, ros_node
from dls_ik.ros.robot_source import (
    DESCRIPTION_QOS,
    REMINDER_PERIOD,
    RefusedError,
    robot_from_parameters,
)
from dls_ik.solver.unreachable import reach_of

pytestmark = pytest.mark.ros
START_ERRORS = (DlsIkError, NameValidationException, ParameterException, compat.rcl_error())
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
    "other joints": ((URDF / "puma560.urdf").read_text(), "output_joints"),
}


def says_that_there_is_no_robot(node, client):
    """Ask by every way; nothing of that is kept for later."""
    diagnostics = client.listen(DiagnosticArray, "/diagnostics")
    for kind, service in ((GetPositionFK, "compute_fk"), (GetPositionIK, "compute_ik")):
        error = client.call(kind, service, kind.Request()).error_code
        assert error.val == 99999
        assert "no robot yet" in error.message
    for kind, service, request in (
        (SetBool, "dls_ik/pause", SetBool.Request(data=True)),
        (Trigger, "dls_ik/reset", Trigger.Request()),
    ):
        answer = client.call(kind, service, request)
        assert (answer.success, answer.message) == (False, "no robot yet")
    for kind, name in (
        (PoseStamped, "pose"),
        (TwistStamped, "twist"),
        (PoseArray, "trajectory"),
    ):
        client.publisher(kind, f"target_{name}", 1).publish(kind())
    node.wait_for_line("WARN", "a target arrived", "no robot")
    said = lambda: [s for d in diagnostics for s in d.status if s.message == "no robot yet"]  # noqa: E731
    client.spin_until(said, what="diagnostics")
    assert said()[-1].level == DiagnosticStatus.STALE
    assert said()[-1].name == "/late/dls_ik: stream"


def test_invalid_descriptions_are_refused_until_a_valid_robot_arrives():
    arguments = ("-r", "__ns:=/late", "-p", "output_joints:=joint2,joint1")
    with NodeProcess(*arguments) as node, Client("late") as client:
        states = client.listen(JointState, "joint_states")
        node.wait_for_line("waiting for a robot", "/late/robot_description")
        says_that_there_is_no_robot(node, client)
        topic = client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
        for name, (text, words) in BAD_DESCRIPTIONS.items():
            refused = node.count("ERROR", "robot refused")
            topic.publish(String(data=text))
            client.spin_until(lambda n=refused: node.count("ERROR", "robot refused") > n, what=name)
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
        client.spin_until(lambda: states)
        assert states[-1].name == ["joint2", "joint1"]
        assert_no_traceback(node)
        assert node.end(signal.SIGTERM) == 0
        assert_no_traceback(node)


@pytest.mark.installed
def test_latched_robot_is_found_by_a_node_that_comes_later():
    """Only the loop of the node has its priority; the middleware has the one below."""
    with Client("latched") as client:
        topic = client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
        topic.publish(String(data=PLANAR))
        given = ("-p", "tip:=link2", "-p", "thread_priority:=7")
        with ExecutedNode("-r", "__ns:=/latched", *given) as node:
            node.wait_for_line("ready", "base to link2")
            assert fk_position(client, "link2") == pytest.approx([1.0, 0.0, 0.0])
            permitted = "real-time priority 7" in node.wait_for_line("the loop has", "priority")
            priorities = real_time_priorities(node.process.pid)
            assert priorities.count(7) == permitted
            assert set(priorities) <= {6, 7}
            node.process.send_signal(signal.SIGINT)
            assert node.end(signal.SIGINT) == 0
            assert_no_traceback(node)


def test_unusable_robot_parameter_keeps_the_node_running_with_a_remedy(tmp_path):
    file = tmp_path / "two.urdf"
    file.write_text(urdf("a b c", joint("j"), joint("k", child="c")))
    with NodeProcess("-r", "__ns:=/tips", "-p", f"robot:={file}") as node, Client("tips") as client:
        said = ("several links could be the tip", "add -p tip:=b, or tip:=c")
        node.wait_for_line(
            "ERROR", "there is no robot", *said, "or publish another robot on /tips/"
        )
        assert "add -p tip:=b" in fk(client).error_code.message
        client.spin_for(2.2 * REMINDER_PERIOD)
        assert node.count("several links could be the tip") == 1, "it is said once"
        assert node.count("waiting for a robot") == 0
        topic = client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
        topic.publish(String(data=PLANAR))
        node.wait_for_line("ready")
        assert fk_position(client) == pytest.approx([2.0, 0.0, 0.0])
        assert node.end() == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"robot": "nope"}, "'nope'.*wam.*puma560|'nope'.*puma560.*wam"),
        ({"robot": "/no/such/file.urdf"}, "/no/such/file.urdf"),
        ({"robot": "~nobody_of_that_name/x.urdf"}, "~nobody_of_that_name/x.urdf"),
        ({"robot": "wam", "base": "nowhere"}, "'nowhere'.*wam_tip.*-p base:=LINK"),
        ({"robot": "wam", "tip": "wam_base"}, "wam_base"),
    ],
)
def test_unknown_robots_files_and_links_are_refused_by_name(given, words):
    with pytest.raises(RefusedError, match=words):
        robot_from_parameters(Parameters().changed(given))


@pytest.mark.installed
def test_robot_file_namespace_and_remapped_names_are_used():
    file = URDF / "puma560.urdf"
    arguments = ("-r", "__ns:=/left", "-r", "compute_fk:=forward", "-r", "__node:=solver")
    arguments += ("-p", "robt:=wam")
    with NodeProcess(*arguments, "-p", f"robot:={file}") as node, Client("left") as client:
        node.wait_for_line("WARN", "'robt' is ignored; did you mean robot?")
        line = node.wait_for_line("ready", "/left/forward", "/left/compute_ik", "/left/target_pose")
        robot = RobotModel.from_name("puma560")
        assert ", ".join(robot.joint_names) in line
        expected = robot.fk(ready_configuration(robot))[:3, 3]
        assert fk_position(client, robot.tip, "/left/forward") == pytest.approx(expected.tolist())
        assert fk(client, robot.tip, "/left/forward").error_code.source == "solver"
        assert node.end(signal.SIGTERM) == 0
        assert_no_traceback(node)


BAD_PARAMETERS = {
    "method:=nope": "'nope'.*ctp.sd.svf",
    "rate:=0": r"rate.*1 to 1000 \[Hz\]",
    "initial_positions:=[1.0, 2.0]": "7 joint values",
    "robot_description:=<robot/>": "give one",
    "random_seed:=abc": "random_seed",
    "feed_forward:=1": "feed_forward must be true or false; got 1",
    "avoid_collisions:=yes": "avoid_collisions.*must be one of.*got True",  # YAML boolean
    "acceleration:=[1.0, 2.0]": "acceleration.*7 numbers.*got 2",
    "preset:=ur5x": "ur5x.*ur5.*known: fr3",
    "acceleration:=fast": "acceleration.*list of numbers",
    "output_topic:=bad/": "topic",
    "output_topic:=joint_trajectory_controller/a,b": "output_topic.*one topic for each.*got",
    "output_joints:=wam_joint1": "output_joints.*wam_j1",
    "output_names:=a,b": "output_names.*2 names.*7 joints",
    "output_type:=joint_state,joint_state": "same topic /joint_states",
}


@pytest.mark.parametrize("parameter", BAD_PARAMETERS)
def test_bad_parameter_ends_the_start(private_domain, parameter):
    with pytest.raises(START_ERRORS, match=f"(?s){BAD_PARAMETERS[parameter]}"):
        start("-p", "robot:=wam", "-p", parameter)


def start(*arguments):
    """Start and stop the node in this process."""
    with ros_node(["--ros-args", *arguments], "dls_ik") as node:
        application = Application(node, LiveParameters(node, with_preset(given_values(node))))
        try:
            application.prepare()
            application.start()
        finally:
            application.stop()


def test_bounds_of_reach_are_known_before_the_node_is_ready(private_domain):
    reach_of.cache_clear()
    with ros_node(["--ros-args", "-p", "robot:=wam"], "dls_ik") as node:
        application = Application(node, LiveParameters(node, with_preset(given_values(node))))
        application.prepare()
        with pytest.raises(RequestError, match="there is no robot"):
            application.arm()
        known = reach_of.cache_info().currsize
        assert known
        try:
            application.start()
            application.arm().prepare()
            assert reach_of.cache_info().currsize == known
        finally:
            application.stop()


COLLECTED = """
import gc, os
def tell(phase, about):
    if phase == "start" and about["generation"] == 2:
        os.write(1, b"looks at %d objects\\n" % len(gc.get_objects()))
gc.callbacks.append(tell)
"""


def test_ready_node_runs_no_full_garbage_collection(tmp_path):
    """That stops all threads for tenths of a second, and so the stream."""
    (tmp_path / "sitecustomize.py").write_text(COLLECTED)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with NodeProcess("-r", "__ns:=/calm", "-p", "robot:=wam", PYTHONPATH=path) as node:
        node.wait_for_line("ready after")
        node.wait_for_line("planning scene built")
        lines = list(node.lines)
    ready = next(k for k, line in enumerate(lines) if "ready after" in line)
    assert max(looked_at(lines[:ready])) > 10 * max(looked_at(lines[ready:]), default=0)


def looked_at(lines):
    return [int(line.split()[2]) for line in lines if line.startswith("looks at ")]


@pytest.mark.installed
def test_a_start_that_fails_ends_with_one_line_and_code_1(tmp_path):
    """One process for each place where it may fail, all at once."""
    two_tips = tmp_path / "two.urdf"
    two_tips.write_text(urdf("a b c", joint("j"), joint("k", child="c")))
    words = ("cannot start", "set ROS_LOG_DIR to a folder that can be written")
    wam, topic = ("-p", "robot:=wam"), "forward_position_controller/commands:=joint_states"
    begun = [
        (ExecutedNode(*wam, "-p", "method:=nope"), ("FATAL", "cannot start", "'nope'")),
        (
            ExecutedNode(*wam, "-p", "alpha:=0.5"),
            ("FATAL", "cannot start: parameter 'alpha' is now 'method_options.alpha'"),
        ),
        (NodeProcess(*wam, ROS_LOG_DIR="/proc/none"), ("/proc/none", *words)),
        (NodeProcess(*wam, ROS_LOG_DIR="/etc/passwd"), ("/etc/passwd", *words)),
        (
            NodeProcess(*wam, NUMBA_NUM_THREADS="0"),
            ("cannot start: numba", "NUMBA_NUM_THREADS=0"),
        ),
        (
            SimArmProcess("-r", topic),
            ("FATAL", "cannot start", "joint_states", "incompatible type"),
        ),
        (SimArmProcess("-p", f"robot:={two_tips}"), ("FATAL", "tip", "add -p tip:=b")),
        (SimArmProcess("-p", "delay:=-1.0"), ("FATAL", "cannot start", "delay")),
    ]
    for process, words in begun:
        with process:
            assert process.wait_for_end(READY) == 1, process.output
            assert process.count(*words) == 1, process.output
            assert_no_traceback(process)
            assert len(process.lines) == 1, process.output


def test_sigint_during_kernel_compilation_exits_cleanly(tmp_path):
    with NodeProcess("-p", "robot:=wam", NUMBA_CACHE_DIR=str(tmp_path)) as node:
        node.wait_for_line("compiling kernels")
        assert node.end(signal.SIGINT) == 0
        assert node.count("ready") == 0
        assert_no_traceback(node)


def test_damaged_kernel_cache_is_recompiled(kernel_cache):
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

    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("usage:", "--ros-args", "initial_positions", "FILE.xacro NAME:=VALUE"):
        assert words in done.stdout
    refused = run("robot:=wam", "--ros-args", "-r", "__ns:=/foreign")
    assert refused.returncode == 2
    assert "unknown argument 'robot:=wam'" in refused.stderr
    assert "-p NAME:=VALUE" in refused.stderr


def test_xacro_file_with_arguments_and_an_invalid_mimic_joint_is_loaded(tmp_path):
    pytest.importorskip("xacro", reason="needs xacro")
    follower = '<limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="nobody"/>'
    text = urdf("a b f", joint("j", "continuous"), joint("g", child="f", detail=follower))
    argument = '<xacro:arg name="tip" default="b"/>'
    head, _, rest = text.replace('"b"', '"$(arg tip)"').partition(">")
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(f'{head} xmlns:xacro="http://www.ros.org/wiki/xacro">{argument}{rest}')
    with NodeProcess("-p", f"robot:={file} tip:=hand", "-r", "__ns:=/args") as node:
        node.wait_for_line("WARN", "joints g are not usable", "mimics the unknown joint 'nobody'")
        node.wait_for_line("ready", "a to hand, joints j;")
        assert node.end() == 0
        assert_no_traceback(node)


@pytest.mark.installed
@pytest.mark.parametrize(
    ("process", "name", "arguments"),
    [
        (NodeProcess, "/dump/dls_ik", (*ARGUMENTS, "-p", "jerk:=[]", "-p", "method_options.nu:=1")),
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
