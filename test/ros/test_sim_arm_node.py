# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the node of the simulated arm: commands of ik_node, and invalid messages."""

import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from ros_client import Client, NodeProcess, SimArmProcess
from ros_streamer import HOME, Streamer, positions, stamped
from ros_wam import WAM
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik.model.files import shipped_urdf
from dls_ik.ros.robot_source import DESCRIPTION_QOS

pytestmark = [pytest.mark.ros, pytest.mark.slow]

TRAJECTORIES = "joint_trajectory_controller/joint_trajectory"
ARRAYS = "forward_position_controller/commands"
INITIAL = f"initial_positions:={HOME.tolist()}"


@pytest.fixture(scope="module")
def sim():
    """A WAM in a namespace of its own, and a client beside it."""
    arguments = ("-r", "__ns:=/sim", "-p", "robot:=wam", "-p", INITIAL)
    with SimArmProcess(*arguments) as arm, Client("sim") as client:
        arm.wait_for_line("ready", "wam_j7", "/sim/joint_states")
        yield arm, client


def test_ik_node_drives_the_arm_to_its_targets():
    """By joint states; the launch files do so by trajectories, tests of faults by arrays."""
    where = ("-r", "__ns:=/driven", "-p", "robot:=wam", "-p", INITIAL)
    output = ("-p", "output_type:=joint_state", "-p", "output_topic:=joint_commands")
    dynamics = ("-p", "delay:=0.02", "-p", "time_constant:=0.03")
    with (
        SimArmProcess(*where, *dynamics) as arm,
        NodeProcess(*where, *output) as node,
        Client("driven") as client,
    ):
        arm.wait_for_line("ready")
        node.wait_for_line("ready")
        streamer = Streamer(client)
        diagnostics = client.listen(DiagnosticArray, "/diagnostics")
        for offset in (0.2, -0.1):
            drive(streamer, WAM.fk(HOME + offset))
        assert client.node.count_publishers("joint_states") == 1
        client.spin_until(lambda: lag_of(diagnostics) > 0.02, what="the lag of the arm")
        speeds = np.array([list(state.velocity) for state in streamer.states])
        assert (np.abs(speeds) <= WAM.velocity * (1.0 + 1e-9)).all()
        assert arm.count("WARN") == 0
        assert node.end() == 0
        assert arm.end() == 0


def test_velocities_of_the_node_drive_the_arm_to_its_targets_without_drift():
    where = ("-r", "__ns:=/rated", "-p", "robot:=wam", "-p", INITIAL)
    output = ("-p", "output_type:=velocity_array", "-p", "acceleration:=[6.0]")
    topic = "forward_velocity_controller/commands"
    with SimArmProcess(*where) as arm, NodeProcess(*where, *output) as node:
        arm.wait_for_line("ready")
        node.wait_for_line("the stream keeps")
        with Client("rated") as client:
            streamer, sent = Streamer(client), client.listen(Float64MultiArray, topic, 100)
            for offset in (0.2, -0.1):
                drive(streamer, WAM.fk(HOME + offset))
            assert (np.abs([m.data for m in sent]) <= WAM.velocity * (1.0 + 1e-9)).all()
            goal = stamped(WAM.fk(HOME + 0.2))
            client.spin_until(
                lambda: streamer.targets.publish(goal) or np.abs(sent[-1].data).max() > 0.1,
                what="a motion",
            )
            assert node.end() == 0
            client.spin_until(lambda: not any(sent[-1].data), what="zeros before the end")


def lag_of(diagnostics):
    """The lag [s] in the last of the diagnostics; 0 where it is not known."""
    values = {v.key: v.value for m in diagnostics for s in m.status for v in s.values}
    lag = values.get("lag of the arm [s]", "unknown")
    return 0.0 if lag.startswith("unknown") else float(lag)


def drive(streamer, T):
    """Publish a target until the arm is there, as the first ones may come before the node hears."""

    def there():
        streamer.targets.publish(stamped(T))
        return streamer.error(T) < 1e-4

    streamer.client.spin_until(there, what="the arm at its target")


def command(client, message, topic):
    """Publish a command that is not lost: publisher and subscription are both reliable."""
    client.publisher(type(message), topic).publish(message)


def reaches(client, states, goal):
    def there():
        return states and np.abs(positions(states[-1]) - goal).max() < 1e-9

    client.spin_until(there, what=f"{goal}")


def test_bad_commands_are_logged_once_and_the_arm_holds(sim):
    arm, client = sim
    states = client.listen(JointState, "joint_states")
    names = list(WAM.joint_names)
    reaches(client, states, HOME)
    bad = {
        "joint_commands": JointState(name=names, position=[np.nan] * WAM.n),
        ARRAYS: Float64MultiArray(data=[0.0]),
        TRAJECTORIES: JointTrajectory(joint_names=names),
    }
    publishers = {topic: client.publisher(type(m), topic) for topic, m in bad.items()}
    begin = time.monotonic()
    for _ in range(20):
        for topic, message in bad.items():
            publishers[topic].publish(message)
    for topic, words in zip(bad, ("not finite", "7 joint values", "no points"), strict=True):
        arm.wait_for_line("WARN", f"/sim/{topic}", words)
        said = arm.count("WARN", f"/sim/{topic}")
        assert said <= 1 + (time.monotonic() - begin) / 2.0, "a warning in two seconds"
    client.spin_for(0.1)
    assert all((positions(state) == HOME).all() for state in states)

    points = [
        JointTrajectoryPoint(positions=(HOME + offset).tolist()) for offset in (0.1, 0.05, 0.2)
    ]
    for k, point in enumerate(points, start=1):
        point.time_from_start.nanosec = k * 100_000_000
    command(client, JointTrajectory(joint_names=names, points=points), TRAJECTORIES)
    reaches(client, states, HOME + 0.2)


def test_velocities_move_the_arm_until_zeros_stop_it(sim):
    _, client = sim
    client.call(Trigger, "sim_arm/reset", Trigger.Request())
    states = client.listen(JointState, "joint_states")
    velocity = [0.5, *[0.0] * 6]
    command(client, Float64MultiArray(data=velocity), "forward_velocity_controller/commands")
    client.spin_until(lambda: states and positions(states[-1])[0] > 0.1, what="a motion")
    assert states[-1].velocity[0] == pytest.approx(0.5)
    command(client, Float64MultiArray(data=[0.0] * 7), "forward_velocity_controller/commands")
    client.spin_until(lambda: not any(states[-1].velocity), what="the end of the motion")
    np.testing.assert_allclose(positions(states[-1])[1:], HOME[1:], atol=1e-9)


def test_freeze_silence_and_reset_services_control_the_arm(sim):
    _, client = sim
    states = client.listen(JointState, "joint_states")

    def switch(name, value):
        answer = client.call(SetBool, f"sim_arm/{name}", SetBool.Request(data=value))
        assert answer.success

    assert client.call(Trigger, "sim_arm/reset", Trigger.Request()).success
    reaches(client, states, HOME)
    switch("freeze", True)
    command(client, Float64MultiArray(data=(HOME + 0.1).tolist()), ARRAYS)
    states.clear()
    client.spin_until(lambda: len(states) > 50)
    assert all((positions(state) == HOME).all() for state in states)
    switch("freeze", False)
    reaches(client, states, HOME + 0.1)

    switch("silence", True)
    client.spin_until(lambda: is_silent(client, states), what="silence")
    assert client.call(Trigger, "sim_arm/reset", Trigger.Request()).success
    reaches(client, states, HOME)


def is_silent(client, states):
    states.clear()
    client.spin_for(0.3)
    return not states


def test_robot_of_the_topic_or_bare_joint_names_are_simulated():
    with SimArmProcess("-r", "__ns:=/late") as arm, Client("late") as client:
        arm.wait_for_line("waiting for a robot")
        answer = client.call(Trigger, "sim_arm/reset", Trigger.Request())
        assert not answer.success
        assert "no robot" in answer.message
        publisher = client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
        publisher.publish(String(data=shipped_urdf("wam").read_text()))
        arm.wait_for_line("ready", "wam_j1")
        assert arm.end() == 0

    arguments = ("-r", "__ns:=/named", "-p", "joint_names:=[b, a]", "-p", "rate:=1000")
    with SimArmProcess(*arguments) as arm, Client("named") as client:
        arm.wait_for_line("ready", "joints b, a")
        states = client.listen(JointState, "joint_states")
        command(client, JointState(name=["a", "b"], position=[1.0, 50.0]), "joint_commands")
        reaches(client, states, np.array([50.0, 1.0]))
        assert states[-1].name == ["b", "a"]
        assert arm.end() == 0
