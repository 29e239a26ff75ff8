"""The real ``ik_node`` as a process, and a ROS client of it with messages of its own making."""

import re
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import MoveItErrorCodes
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.child import ChildProcess
from dls_ik.ros.client import IkClient

SUCCESS = int(MoveItErrorCodes.SUCCESS)
NO_IK_SOLUTION = int(MoveItErrorCodes.NO_IK_SOLUTION)
Echo = Callable[[str], None]

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ANSWER_TIMEOUT = 10.0  # [s] for one answer, which takes some ms


def code_name(code: int) -> str:
    """The name of a MoveIt error code, such as ``NO_IK_SOLUTION``."""
    for name in dir(MoveItErrorCodes):
        if name.isupper() and getattr(MoveItErrorCodes, name) == code:
            return name
    return f"code {code}"


def pose_message(T: Array, frame: str, stamp: Time) -> PoseStamped:
    """A (4, 4) pose as a message."""
    message = PoseStamped()
    message.header.frame_id, message.header.stamp = frame, stamp
    position, orientation = message.pose.position, message.pose.orientation
    position.x, position.y, position.z = T[:3, 3].tolist()
    orientation.x, orientation.y, orientation.z, orientation.w = quaternion(T[:3, :3]).tolist()
    return message


def joint_values(robot: RobotModel, state: Any) -> Array | None:
    """The robot's joints (n,) in a JointState; None unless it holds them all."""
    values = dict(zip(state.name, state.position, strict=False))
    if any(name not in values for name in robot.joint_names):
        return None
    return np.array([values[name] for name in robot.joint_names])


def seconds(stamp: Time) -> float:
    """A time stamp as one number [s]."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def quaternion(R: Array) -> Array:
    """The unit quaternion (x, y, z, w) of a (3, 3) rotation: an eigenvector, see Bar-Itzhack."""
    K = np.zeros((4, 4))
    K[:3, :3] = R + R.T - np.trace(R) * np.eye(3)
    K[:3, 3] = K[3, :3] = (R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])
    K[3, 3] = np.trace(R)
    vectors: Array = np.linalg.eigh(K)[1]
    return vectors[:, -1]


def node_command(parameters: dict[str, Any]) -> list[str]:
    """How to run the node that belongs to this Python, with parameters."""
    script = Path(sys.executable).with_name("ik_node")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "dls_ik.ros.node"]
    settings = [f"{name}:={value}" for name, value in parameters.items()]
    return [*program, "--ros-args", *(word for setting in settings for word in ("-p", setting))]


class NodeProcess(ChildProcess):
    """A context in which a node runs.

    Args:
        command: the program and its arguments.
        log: a file for everything that the node prints.
        echo: called with each line until :meth:`hush`.
    """

    def __init__(self, command: Sequence[str], log: Path, echo: Echo) -> None:
        super().__init__(command, self._keep)
        self._log = log
        self._echo: Echo | None = echo
        self._tail: deque[str] = deque(maxlen=8)

    def __enter__(self) -> "NodeProcess":
        """Begin the log, and start."""
        self._file = self._log.open("w")
        super().__enter__()
        return self

    @property
    def tail(self) -> list[str]:
        """The last lines of its log."""
        return list(self._tail)

    def hush(self) -> None:
        """Show no more lines of the node; the log goes on."""
        self._echo = None

    def _keep(self, line: str) -> None:
        text = COLOURS.sub("", line)
        self._file.write(text + "\n")
        self._file.flush()
        self._tail.append(text)
        if self._echo is not None:
            self._echo(text)

    def _finish(self) -> None:
        self._file.close()


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
