"""A node that drives a simulated arm, and a client that never stops."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import ServoStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from benchmarks.processes import Process, ros_node
from dls_ik import DlsIkError, RobotModel
from dls_ik.ros.client.ik_client import stamped_pose

RATE, ACCELERATION, POINTS = 100, 8.0, 60  # [Hz], [rad/s^2], of a trajectory
START = [0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0]  # [rad] of the WAM
SWING, PULSE = 0.12, 2.5  # [m], [rad/s] of the motion to and fro
PATIENCE = 60.0  # [s]
STILL = 1e-4  # [rad/s] from joint states


class FaultRig:
    """The processes, and a client in this one; a context."""

    def __init__(self, name: str, driver: str) -> None:
        self.robot = RobotModel.wam()
        self._name, self._T = name, self.robot.fk(np.array(START))
        self.command = ros_node(
            "dls_ik.ros.node",
            name,
            robot="wam",
            rate=RATE,
            acceleration=[ACCELERATION],
            feedback_mode=driver,
            measurement_timeout=0.2,
            output_type="joint_trajectory,joint_state",
            output_topic="joint_trajectory_controller/joint_trajectory,commands",
            trajectory_points=POINTS,
        )
        arm = {"robot": "wam", "limit_velocity": "false", "initial_positions": START}
        self._arm_command = ros_node("dls_ik.ros.sim_arm.node", name, **arm)
        self.states: list[tuple[float, Any, Any]] = []  # when [s], positions, velocities
        self.commands: list[tuple[float, Any, Any]] = []  # by their stamps [s]
        self.words = ""
        self.is_streaming = True

    def __enter__(self) -> "FaultRig":
        self._stack = ExitStack()
        self.arm = self._stack.enter_context(Process(self._arm_command))
        self.node = self._stack.enter_context(Process(self.command))
        self.arm.wait_ready()
        self.node.wait_ready()
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start_again(self) -> None:
        """Start another node, after the one before ended."""
        self.node = self._stack.enter_context(Process(self.command))
        self.node.wait_ready()

    def until(self, is_so: Callable[[], bool], what: str) -> float:
        """Wait, and return how long [s]; raise a DlsIkError after a minute."""
        begin = time.perf_counter()
        while not is_so():
            if time.perf_counter() - begin > PATIENCE:
                raise DlsIkError(f"{what}: not within {PATIENCE:g} s; status: {self.words}")
            self._executor.spin_once(timeout_sec=0.002)
        return time.perf_counter() - begin

    def spin(self, duration: float) -> None:
        """Spin for a time [s]."""
        end = time.perf_counter() + duration
        self.until(lambda: time.perf_counter() >= end, "a while")

    def moves(self) -> bool:
        """Test if the arm moves."""
        return bool(self.states) and bool(np.abs(self.states[-1][2]).max() > 0.05)

    def stands(self) -> bool:
        """Test if the arm has been at rest for ten readings."""
        recent = np.array([v for _, _, v in self.states[-10:]])
        return len(recent) == 10 and bool(np.abs(recent).max() < STILL)

    def trigger(self, name: str) -> None:
        """Call a service without arguments."""
        self._call(Trigger, name, Trigger.Request())

    def silence(self, data: bool) -> None:
        """Stop or resume the joint states of the arm."""
        self._call(SetBool, "sim_arm/silence", SetBool.Request(data=data))

    def clear(self) -> None:
        """Delete the recorded states and commands."""
        self.states.clear()
        self.commands.clear()

    def _call(self, kind: Any, name: str, request: Any) -> None:
        client = self._node.create_client(kind, name)
        self.until(client.service_is_ready, name)
        future = client.call_async(request)
        self.until(future.done, name)

    def _connect(self) -> None:
        context = rclpy.Context()
        rclpy.init(args=[], context=context)
        self._stack.callback(context.try_shutdown)
        node = rclpy.create_node("benchmark", context=context, namespace=f"/{self._name}")
        self._node, self._executor = node, SingleThreadedExecutor(context=context)
        self._executor.add_node(node)
        self._targets = node.create_publisher(PoseStamped, "target_pose", 1)
        quick = qos_profile_sensor_data
        node.create_subscription(JointState, "joint_states", self._hear_state, quick)
        node.create_subscription(JointState, "commands", self._hear_command, 100)
        node.create_subscription(ServoStatus, "dls_ik/status", self._hear_status, 10)
        node.create_timer(0.02, self._publish)

    def _publish(self) -> None:
        if self.is_streaming:
            T = self._T.copy()
            T[1, 3] += SWING * np.sin(PULSE * time.monotonic())
            message = stamped_pose(T, "")
            message.header.stamp = self._node.get_clock().now().to_msg()
            self._targets.publish(message)

    def _hear_state(self, message: Any) -> None:
        read = np.array(message.position), np.array(message.velocity)
        self.states.append((time.perf_counter(), *read))

    def _hear_command(self, message: Any) -> None:
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        self.commands.append((stamp, np.array(message.position), np.array(message.velocity)))

    def _hear_status(self, message: Any) -> None:
        self.words = message.message
