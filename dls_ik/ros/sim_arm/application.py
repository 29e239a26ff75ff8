"""The wiring of the node: topics to commands, services to faults, readings to messages."""

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.outputs.messages import (
    JointStateOutput,
    JointTrajectoryOutput,
    OutputSpec,
    PositionArrayOutput,
)
from dls_ik.ros.params.live import LiveParameters
from dls_ik.ros.process import spin
from dls_ik.ros.robot_source import DescriptionTopic, robot_from_parameters
from dls_ik.ros.sim_arm.arm import Path
from dls_ik.ros.sim_arm.commands import path_from_array, path_from_joint_state, path_from_trajectory
from dls_ik.ros.sim_arm.parameters import SimArmParameters
from dls_ik.ros.sim_arm.simulation import Joints, Simulation, joints_of, named_joints
from dls_ik.ros.stream.joint_states import TOPIC as JOINT_STATES
from dls_ik.ros.subscriptions import TypeMonitor, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.text import escape, listing

NOTHING = "there is no robot yet"
COMMANDS = "joint_commands"
DEPTH = 10
QOS = QoSProfile(depth=DEPTH)
MAX_BYTES = 1024 * 1024  # of a command

Read = Callable[[Any, tuple[str, ...], float], Path]


class Loop:
    """Acts on absolute deadlines; those that a stall made it miss are left out."""

    def __init__(self, rate: float, act: Callable[[], None], log: Throttle) -> None:
        self._period = 1.0 / rate  # [s]
        self._act, self._log = act, log
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        deadline = time.monotonic()
        while not self._ended.wait(max(0.0, deadline - time.monotonic())):
            try:
                self._act()
            except Exception as error:  # noqa: BLE001  whatever it is, the next cycle may do
                self._log.failed("fault", "a cycle failed", error)
            deadline = max(deadline + self._period, time.monotonic())


class Services:
    """``~/reset``, ``~/freeze`` and ``~/silence``.

    Args:
        current: the simulation in use, if there is one.
    """

    def __init__(self, node: Node, current: Callable[[], Simulation | None]) -> None:
        self._current = current
        self._logger = node.get_logger()
        node.create_service(Trigger, "~/reset", self._reset)
        node.create_service(SetBool, "~/freeze", self._freeze)
        node.create_service(SetBool, "~/silence", self._silence)

    def _reset(self, request: Any, response: Any) -> Any:
        return self._answer(response, Simulation.reset, "at the initial positions")

    def _freeze(self, request: Any, response: Any) -> Any:
        words = "the drives are stuck" if request.data else "the drives are free"
        return self._answer(response, lambda arm: arm.freeze(request.data), words)

    def _silence(self, request: Any, response: Any) -> Any:
        words = "joint states cease" if request.data else "joint states come"
        return self._answer(response, lambda arm: arm.silence(request.data), words)

    def _answer(self, response: Any, act: Callable[[Simulation], None], words: str) -> Any:
        simulation = self._current()
        response.success = simulation is not None
        response.message = words if simulation is not None else NOTHING
        if simulation is not None:
            act(simulation)
            self._logger.info(words)
        return response


def serve_arm(node: Node, stop: Future) -> bool:
    """Stand in for an arm until it is time to stop."""
    application = Application(node, LiveParameters(node, SimArmParameters()))
    try:
        application.start()
        gc.freeze()  # else the collector stops the loop, to look at numba's objects
        spin(node, stop)
    finally:
        application.stop()
    return True


class Application:
    """The simulation in use, with the topics and services around it."""

    def __init__(self, node: Node, live: LiveParameters[SimArmParameters]) -> None:
        self._node, self._live = node, live
        self._log = Throttle(node)
        self._simulation: Simulation | None = None
        self._reason = ""  # why there is none
        self._shown: tuple[Simulation, JointStateOutput] | None = None  # by the loop
        self._publisher = node.create_publisher(JointState, JOINT_STATES, DEPTH)
        self._loop = Loop(live.current.rate, self._cycle, self._log)
        self._subscribe(
            JointTrajectory, JointTrajectoryOutput.default_topic, self._path_from_trajectory
        )
        self._subscribe(Float64MultiArray, PositionArrayOutput.default_topic, path_from_array)
        self._subscribe(JointState, COMMANDS, path_from_joint_state)
        Services(node, lambda: self._simulation)
        TypeMonitor(node)
        live.on_change(self._change)

    def start(self) -> None:
        """Begin to publish, with the joints of the parameters or of the first robot on the topic.

        Raises:
            DlsIkError: joints or parameters that are not usable.
        """
        parameters = self._live.current
        robot = None if parameters.joint_names else robot_from_parameters(parameters)
        if parameters.joint_names:
            self._use(named_joints(parameters.joint_names))
        elif robot is not None:
            self._use(joints_of(robot))
        else:
            self._wait_for_robot()
        self._loop.start()

    def stop(self) -> None:
        """Publish no more."""
        self._loop.stop()

    def _wait_for_robot(self) -> None:
        topic = DescriptionTopic(
            self._node,
            self._live.current,
            self._take,
            self._refuse,
            lambda: None if self._simulation else self._reason,
        )
        topic.remind()

    def _take(self, robot: RobotModel) -> None:
        """Use a robot that came late."""
        try:
            self._use(joints_of(robot))
        except DlsIkError as error:
            self._refuse(error)

    def _refuse(self, error: DlsIkError) -> None:
        self._reason = str(error)
        self._node.get_logger().error(f"robot refused: {escape(str(error))}")

    def _use(self, joints: Joints) -> None:
        parameters = self._live.current
        self._simulation = Simulation(joints, parameters, time.monotonic())
        output = JointStateOutput(OutputSpec(joints.names, 1.0 / parameters.rate, 1))
        self._shown = (self._simulation, output)
        self._node.get_logger().info(
            f"ready: joints {listing(joints.names)} at {parameters.rate:g} Hz "
            f"on {self._publisher.topic_name}"
        )

    def _change(self, parameters: SimArmParameters) -> None:
        if self._simulation is not None:
            self._simulation.change(parameters, time.monotonic())

    def _subscribe(self, message_type: Any, topic: str, read: Read) -> None:
        name = self._node.resolve_topic_name(topic)

        def store(message: Any, _: int) -> None:
            self._command(message, name, read)

        subscribe_bounded(self._node, message_type, topic, store, QOS, self._log, MAX_BYTES)

    def _command(self, message: Any, topic: str, read: Read) -> None:
        """Follow a command, or hold to the one before and say why."""
        if self._simulation is None:
            self._log.warn(topic, f"a command on {topic} is not followed: there is no robot yet")
            return
        now = time.monotonic()
        try:
            self._simulation.command(read(message, self._simulation.joints.names, now), now)
        except DlsIkError as error:
            self._log.warn(topic, f"a command on {topic} is not followed: {error}")

    def _path_from_trajectory(self, message: Any, names: tuple[str, ...], now: float) -> Path:
        return path_from_trajectory(message, names, now, self._node.get_clock().now().nanoseconds)

    def _cycle(self) -> None:
        if self._shown is None:
            return
        simulation, output = self._shown
        reading = simulation.cycle(time.monotonic())
        if reading is not None:
            stamp = self._node.get_clock().now().nanoseconds
            self._publisher.publish(output.fill(reading.q, reading.velocity, stamp))
