"""A ROS client of the node, as any program could be: service, topic out, topic in."""

import time
from typing import Any, NamedTuple

import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.exceptions import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.client import IkClient
from dls_ik.ros.demo.messages import joint_values, pose_message, seconds

ANSWER_TIMEOUT = 10.0  # [s] for one answer, which takes some ms


class Reply(NamedTuple):
    """What came back for one request."""

    code: int  # of MoveItErrorCodes
    q: Array | None  # (n,)
    round_trip: float  # [s]


class State(NamedTuple):
    """One message on joint_states."""

    received: float  # [s] on the clock of :func:`now`
    stamp: float  # [s] on the same clock
    q: Array  # (n,)


def now() -> float:
    """Time [s] on a steady clock."""
    return time.perf_counter()


class Client:
    """The ends of service and topics in this process; use it as a context.

    One thread does everything: nothing is received while nothing spins.
    """

    def __init__(self, robot: RobotModel) -> None:
        self.robot = robot
        self.states: list[State] = []  # as they came

    def __enter__(self) -> "Client":
        """Join the ROS graph; Ctrl-C stays Python's own."""
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self._node: Any = rclpy.create_node("dls_ik_demo")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._node.create_subscription(
            JointState, "joint_states", self._receive, qos_profile_sensor_data
        )
        self._target = self._node.create_publisher(PoseStamped, "target_pose", 1)
        # After the subscription: the other way round, rclpy of the wheels prints a harmless error.
        self._ik = IkClient(self._node, joint_names=self.robot.joint_names)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the ROS graph."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown()

    @property
    def is_served(self) -> bool:
        """Whether somebody serves compute_ik."""
        return self._ik.is_served

    @property
    def is_heard(self) -> bool:
        """Whether somebody takes targets, and somebody sends joint states."""
        return bool(
            self._target.get_subscription_count() and self._node.count_publishers("joint_states")
        )

    def ask(self, T: Array, seed: Array, timeout: float) -> Reply:
        """Call compute_ik for the tip at a pose, and wait for the answer.

        Raises:
            DlsIkError: no answer came.
        """
        request = self._ik.ik_request(T, seed, frame=self.robot.base, timeout=timeout)
        begin = now()
        pending = self._ik.send(request)
        while not pending.done() and now() < begin + ANSWER_TIMEOUT:
            self._executor.spin_once(timeout_sec=ANSWER_TIMEOUT)
        round_trip = now() - begin
        if not pending.done():
            raise DlsIkError(f"/compute_ik did not answer within {ANSWER_TIMEOUT:g} s")
        answer = pending.result()
        q = joint_values(self.robot, answer.response.solution.joint_state)
        return Reply(answer.code, q, round_trip)

    def publish(self, T: Array) -> float:
        """Send a target; return when that began."""
        begin = now()
        self._target.publish(pose_message(T, self.robot.base, self._stamp()))
        return begin

    def spin_until(self, deadline: float) -> None:
        """Receive until a time on the clock of :func:`now`."""
        while (left := deadline - now()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def _stamp(self) -> Any:
        return self._node.get_clock().now().to_msg()

    def _receive(self, message: Any) -> None:
        received, wall = now(), time.time()
        q = joint_values(self.robot, message)
        if q is not None:
            age = wall - seconds(message.header.stamp)
            self.states.append(State(received, received - age, q))
