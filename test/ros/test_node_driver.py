"""The running node beside a driver, and with controllers that listen."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from geometry_msgs.msg import PoseStamped
from ros_client import Client, NodeProcess
from ros_streamer import HOME, PERIOD, Driver, Streamer, positions, stamped
from ros_wam import WAM
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

pytestmark = [pytest.mark.ros, pytest.mark.installed]


def from_node(states):
    return [state for state in states if state.header.frame_id != "driver"]


def test_start_is_taken_from_a_driver_and_not_from_itself():
    start = [0.1, 0.5, 0.1, 1.2, 0.1, 0.2, 0.1]
    initial = "initial_positions:=[0.1, 0.5, 0.1, 1.2, 0.1, 0.2, 0.1]"
    arguments = ("-r", "__ns:=/driven", "-p", "robot:=wam", "-p", initial)
    with NodeProcess(*arguments) as node, Client("driven") as client:
        node.wait_for_line("ready")
        streamer = Streamer(client)

        gripper = Driver(client, ["finger"], [0.3])
        client.spin_for(0.5)
        streamer.states.clear()
        client.spin_until(lambda: len(from_node(streamer.states)) > 50)
        shown = from_node(streamer.states)
        assert all(positions(state) == pytest.approx(start) for state in shown)
        gripper.stop()

        driver = Driver(client, WAM.joint_names, HOME)
        client.spin_until(lambda: falls_silent(client, streamer.states), what="silence")
        streamer.states.clear()
        streamer.targets.publish(stamped(WAM.fk(HOME + 0.1)))
        client.spin_until(lambda: len(from_node(streamer.states)) > 5)
        first = positions(from_node(streamer.states)[0])
        np.testing.assert_allclose(first, HOME, atol=2.5 * PERIOD * WAM.velocity.max())
        node.wait_for_line("WARN", "output_topic")
        client.spin_for(0.5)
        assert node.count("WARN", "output_topic") == 1
        driver.stop()
        assert node.end() == 0


def falls_silent(client, states):
    states.clear()
    client.spin_for(0.3)
    return len(states) > 5 and not from_node(states)


@pytest.mark.parametrize(
    ("kind", "topic", "message_type"),
    [
        ("joint_trajectory", "joint_trajectory_controller/joint_trajectory", JointTrajectory),
        ("position_array", "elsewhere", Float64MultiArray),
    ],
)
def test_output_to_controllers(kind, topic, message_type):
    arguments = ["-r", f"__ns:=/{kind}", "-p", "robot:=wam", "-p", f"output_type:={kind}"]
    arguments += ["-p", "output_topic:=elsewhere"] if topic == "elsewhere" else []
    with NodeProcess(*arguments, "-p", "rate:=50") as node, Client(kind) as client:
        node.wait_for_line("ready")
        driver = Driver(client, WAM.joint_names, HOME)
        commands = client.listen(message_type, topic)
        targets = client.publisher(PoseStamped, "target_pose", 1)
        client.spin_for(0.5)
        assert commands == []
        T = WAM.fk(HOME + 0.05)

        def is_there():
            targets.publish(stamped(T))  # again: a driver that was not heard for long ends a target
            return commands and reached(commands[-1], T)

        client.spin_until(is_there, what="the target")
        assert node.count("WARN", "driver") == 0
        driver.stop()
        assert node.end() == 0


def reached(command, T):
    q = command.data if isinstance(command, Float64MultiArray) else command.points[0].positions
    return np.abs(WAM.fk(np.array(q)) - T).max() < 1e-4
