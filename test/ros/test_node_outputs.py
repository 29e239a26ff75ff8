# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the running node with several outputs, and with a driver."""

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK
from ros_client import Client, NodeProcess
from ros_streamer import HOME, Driver, positions, stamped
from ros_wam import WAM
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Int32MultiArray
from trajectory_msgs.msg import JointTrajectory

pytestmark = [pytest.mark.ros, pytest.mark.slow]

RATE = 50
REVERSED = WAM.joint_names[::-1]
DRIVER = [f"arm_j{k}" for k in range(7, 0, -1)]
RENAMED = (
    "-p", "robot:=wam", "-p", f"rate:={RATE}", "-p", f"output_joints:={','.join(REVERSED)}",
    "-p", f"output_names:={','.join(DRIVER)}",
)  # fmt: skip


def at(q, T):
    """Whether positions in the order of the outputs reach a pose."""
    return np.abs(WAM.fk(np.array(q)[::-1]) - T).max() < 1e-4


def test_all_output_types_use_the_joint_order_and_names_of_the_driver():
    types = "output_type:=joint_state, joint_trajectory, position_array, joint_state"
    topics = "output_topic:=joint_states, jtc/joint_trajectory, forward/commands, shown"
    arguments = (
        "-r",
        "__ns:=/many",
        *RENAMED,
        "-p",
        types,
        "-p",
        topics,
        "-p",
        "feedback_mode:=none",
    )
    with NodeProcess(*arguments, "-p", "trajectory_points:=5") as node, Client("many") as client:
        line = node.wait_for_line("ready")
        for topic in ("joint_states", "jtc/joint_trajectory", "forward/commands", "shown"):
            assert f"/many/{topic}" in line
        states = client.listen(JointState, "shown", 1000)
        shared = client.listen(JointState, "joint_states", 1000)
        trajectories = client.listen(JointTrajectory, "jtc/joint_trajectory", 1000)
        arrays = client.listen(Float64MultiArray, "forward/commands", 1000)
        targets = client.publisher(PoseStamped, "target_pose", 1)
        client.spin_for(0.5)
        assert not states + shared + trajectories + arrays, "controllers are to wait for a target"

        T = WAM.fk(HOME + 0.05)
        client.send_until(
            lambda: targets.publish(stamped(T)),
            lambda: arrays and at(arrays[-1].data, T),
            "the target",
        )
        client.spin_until(lambda: states and at(states[-1].position, T))
        client.spin_until(lambda: shared and at(shared[-1].position, T))
        client.spin_until(lambda: trajectories and at(trajectories[-1].points[0].positions, T))
        assert states[-1].name == shared[-1].name == trajectories[-1].joint_names == DRIVER
        assert_ends_at_rest(trajectories)
        assert node.end() == 0


def assert_ends_at_rest(trajectories):
    """Each slows down from the command to its last point, with 5 points if the stop is long enough.

    The command is due a period after it was sent; points before it may still speed up.
    """
    for trajectory in trajectories:
        velocities = np.array([point.velocities for point in trajectory.points])
        times = np.array([seconds(point.time_from_start) for point in trajectory.points])
        assert len(times) >= min(5, 1 + int((times[-1] - times[0]) * RATE - 1e-6))
        stop = np.abs(velocities[times > 1.0 / RATE - 1e-6])
        assert (np.diff(stop, axis=0) <= 0.0).all()
        assert not velocities[-1].any()
    assert any(any(t.points[0].velocities) for t in trajectories)
    assert any(len(t.points) >= 5 for t in trajectories)


def seconds(duration):
    return duration.sec + 1e-9 * duration.nanosec


TICK = 0.1  # [rad] coarse, so that rounding at a limit shows


def test_servo_ticks_are_sent_within_the_joint_limits():
    offsets = [100.0 * k for k in range(7)]
    directions = [1.0, -1.0] * 3 + [1.0]
    arguments = (
        "-r", "__ns:=/ticks", *RENAMED, "-p", "output_type:=servo_ticks",
        "-p", f"servo_resolution:=[{TICK}]", "-p", f"servo_offset:={offsets}",
        "-p", f"servo_direction:={directions}", "-p", "feedback_mode:=none",
    )  # fmt: skip
    with NodeProcess(*arguments) as node, Client("ticks") as client:
        node.wait_for_line("ready", "/ticks/servo_goal_positions")
        goals = client.listen(Int32MultiArray, "servo_goal_positions")
        targets = client.publisher(JointState, "target_joint", 1)

        def sent():
            ticks = np.array([list(goal.data) for goal in goals])
            return (np.array(directions) * (ticks - offsets) * TICK)[:, ::-1]

        for limits in (WAM.upper, WAM.lower):
            limit = np.array(HOME)
            limit[[0, 6]] = limits[[0, 6]]  # collision-free with all others at home
            goal = JointState(name=list(WAM.joint_names), position=limit.tolist())
            client.send_until(
                lambda g=goal: targets.publish(g),
                lambda q=limit: goals and np.abs(sent()[-1] - q).max() < TICK,
                "the limits",
            )
        assert (sent() >= WAM.lower - 1e-9).all()
        assert (sent() <= WAM.upper + 1e-9).all()
        assert node.end() == 0


def test_driver_joint_names_are_translated_in_states_and_commands():
    arguments = ("-r", "__ns:=/named", *RENAMED)
    with NodeProcess(*arguments) as node, Client("named") as client:
        node.wait_for_line("ready", "/named/joint_states")
        driver = Driver(client, DRIVER, HOME[::-1])
        states = client.listen(JointState, "joint_states", 1000)  # the first one counts
        request = GetPositionFK.Request(fk_link_names=[WAM.tip])

        def tip():
            pose = client.call(GetPositionFK, "compute_fk", request).pose_stamped[0].pose
            return [pose.position.x, pose.position.y, pose.position.z]

        expected = pytest.approx(WAM.fk(HOME)[:3, 3], abs=1e-6)
        client.spin_until(lambda: tip() == expected, what="the state of the driver")
        targets = client.publisher(PoseStamped, "target_pose", 1)
        states.clear()
        own = lambda: [s for s in states if s.header.frame_id != "driver"]  # noqa: E731
        client.send_until(
            lambda: targets.publish(stamped(WAM.fk(HOME + 0.1))),
            lambda: len(own()) > 5,
            "commands",
        )
        first = positions(own()[0])[::-1]
        np.testing.assert_allclose(first, HOME, atol=0.05 * WAM.velocity.max())
        assert own()[0].name == DRIVER
        driver.stop()
        assert node.end() == 0
