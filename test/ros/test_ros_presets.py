# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Presets of known arms: each value against an arm of that shape, and what comes before it."""

import os
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import ServoStatus
from preset_arms import ARMS, urdf
from ros_client import MAX_SENDS, Client, NodeProcess, SimArmProcess
from ros_streamer import stamped
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from dls_ik import RobotModel
from dls_ik.errors import OptionError
from dls_ik.ros.params import Parameters
from dls_ik.ros.presets import preset_file, preset_names, preset_values, with_preset
from dls_ik.ros.robot_source import RefusedError, robot_from_parameters
from dls_ik.servo import gentle_acceleration
from dls_ik.servo.options import motion_limits, split_options

FOLDER = "DLS_IK_DESCRIPTIONS"  # folder of vendor files NAME.urdf; NAME is the preset
ROUNDED = 0.06  # relative tolerance of a limit


def check(name, robot, most, lag):
    """Compare a preset with a robot, the driver's limits of acceleration, and the driver's lag."""
    parameters = with_preset({"preset": name})
    assert robot.tip == parameters.tip
    options, _ = split_options(parameters.controller_options())
    limits, _ = motion_limits(options, robot)
    gentle = np.minimum(gentle_acceleration(robot), most)
    assert (limits < gentle * (1.0 + 0.5 * ROUNDED)).all(), (limits, gentle)
    assert (limits > gentle * (1.0 - ROUNDED)).all(), (limits, gentle)
    deviation = 1.5 * robot.velocity.max() * lag + 0.05
    assert parameters.max_deviation == pytest.approx(deviation, abs=0.01)


def test_each_preset_is_tested_with_an_arm():
    assert {*preset_names()} == {*ARMS, "wam"}


@pytest.mark.parametrize("name", ARMS)
def test_preset_fits_an_arm_of_that_shape(name):
    *_, most, lag = ARMS[name]
    check(name, RobotModel.from_urdf(urdf(name), tip=preset_values(name)["tip"]), most, lag)


def test_preset_of_the_wam_names_its_robot():
    assert with_preset({"preset": "wam"}).robot == "wam"
    check("wam", RobotModel.wam(), np.inf, 0.1)


@pytest.mark.campaign
@pytest.mark.parametrize("name", ARMS)
def test_preset_fits_the_description_of_the_vendor(name):
    folder = os.environ.get(FOLDER)
    file = Path(folder or ".", f"{name}.urdf")
    if folder is None or not file.is_file():
        pytest.skip(
            f"{FOLDER} is no folder with {file.name}: the vendors' files do not come with us"
        )
    joints, tip, *_, most, lag = ARMS[name]
    robot = RobotModel.from_urdf(file, tip=tip)
    assert list(robot.joint_names) == joints
    check(name, robot, most, lag)


def test_values_that_are_given_come_before_the_preset():
    assert Parameters() == with_preset({}) == with_preset({"preset": ""})
    known = with_preset({"preset": "UR5e"})
    assert known.output_topic == ("scaled_joint_trajectory_controller/joint_trajectory",)
    assert with_preset({"preset": "ur5e", "groups": ["arm"]}).tip == ""
    assert with_preset({"preset": "ur5e", "output_type": "position_array"}).output_topic == ()
    assert with_preset({"preset": "wam", "robot_description": "<robot/>"}).robot == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("ur5x", "did you mean ur5.*ur3, ur3e, ur5"),
        ("ur6", r"'ur6' \(did you mean ur5e or ur5 or ur3e\?\)"),
        ("ur15", r"\(did you mean ur16e or ur"),
        ("xarm8", r"\(did you mean xarm7 or xarm6 or xarm5\?\)"),
        ("pandas", r"\(did you mean panda\?\)"),
        ("robot9", "unknown preset 'robot9'; known"),
        (5, "one name"),
        ("a, b", "one name"),
    ],
)
def test_unknown_presets_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        with_preset({"preset": given})


def test_preset_of_another_arm_is_named():
    parameters = with_preset({"preset": "ur5e"}).changed({"robot": "wam"})
    with pytest.raises(RefusedError, match=r"'tool0'.*ur5e"):
        robot_from_parameters(parameters)


@pytest.mark.parametrize("none", [np.inf, 1e9])
def test_limits_of_1e9_or_infinity_mean_no_limit(none):
    options = Parameters().changed({"acceleration": [1.0, none]}).controller_options()
    assert options["acceleration"] == (1.0, np.inf)


@pytest.mark.ros
def test_arm_that_lags_as_the_preset_assumes_is_followed_without_a_fault(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(urdf("ur5e"))
    robot = RobotModel.from_urdf(file, tip="tool0")
    start = np.array([0.0, -1.2, 1.8, -2.2, -1.57, 0.0])
    common = ("-r", "__ns:=/lagging", "-p", f"robot:={file}")
    lag = ("-p", "delay:=0.06", "-p", "time_constant:=0.04")  # [s], 0.1 together
    topic = "joint_trajectory_controller/joint_trajectory"
    placed = ("-r", f"{topic}:=scaled_{topic}", "-p", f"initial_positions:={start.tolist()}")
    with (
        SimArmProcess(*common, "-p", "tip:=tool0", *lag, *placed) as arm,
        NodeProcess(*common, "-p", "preset:=ur5e") as node,
        Client("lagging") as client,
    ):
        arm.wait_for_line("ready")
        node.wait_for_line("ready")
        states = client.listen(JointState, "joint_states")
        client.spin_until(lambda: states, what="joint states")
        T = robot.fk(np.add(start, [1.0, -0.3, 0.3, 0.0, 0.0, 1.0]))
        targets = client.publisher(PoseStamped, "target_pose", 1)
        statuses = client.listen(ServoStatus, "dls_ik/status")

        def is_there():
            return states and np.abs(robot.fk(values_of(states[-1], robot)) - T).max() < 1e-3

        def faults():
            return [status.message for status in statuses if "fault;" in status.message]

        for _ in range(MAX_SENDS):
            client.send_until(
                lambda: targets.publish(stamped(T)),
                lambda: is_there() or faults(),
                "the arm at its target",
            )
            # On a busy machine the process of the arm may wait for a core longer than measurements
            # may be missing, which is a fault, too. Any other fault is one of the lag.
            assert all("no joint states received" in fault for fault in faults()), faults()
            if is_there():
                break
            states.clear()
            client.spin_until(lambda: states, what="new joint states")
            client.call(Trigger, "dls_ik/reset", Trigger.Request())
            statuses.clear()
        assert is_there(), node.output


def values_of(state, robot):
    """Joint values in the order of the robot."""
    q = dict(zip(state.name, state.position, strict=True))
    return [q[name] for name in robot.joint_names]


@pytest.mark.ros
@pytest.mark.parametrize(
    ("arguments", "origin"),
    [
        (("-p", "preset:=ur5e"), "from the preset ur5e"),
        (("-p", "preset:=ur5e", "-p", "acceleration:=[2.0]"), "from the parameter acceleration"),
        (("--params-file", str(preset_file("ur5e.yaml"))), "from the parameter acceleration"),
    ],
    ids=["preset", "given", "file"],
)
def test_node_takes_a_preset_and_names_the_origin_of_its_limits(tmp_path, arguments, origin):
    file = tmp_path / "arm.urdf"
    file.write_text(urdf("ur5e"))
    with NodeProcess("-r", "__ns:=/preset", "-p", f"robot:={file}", *arguments) as node:
        node.wait_for_line("ready", "to tool0", "125 Hz", "/preset/scaled_joint_trajectory")
        node.wait_for_line("acceleration up to", "rad/s^2", origin)
        assert not node.count("WARN", "unknown parameter")
        assert node.end() == 0
