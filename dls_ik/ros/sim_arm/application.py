# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Topics and services of node ``ik_sim_arm``: commands, joint states, and simulated faults."""

import gc
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.joint import checked_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.ros.frames import nanoseconds
from dls_ik.ros.process import LiveParameters, spin
from dls_ik.ros.robot_source import DescriptionTopic, robot_from_parameters
from dls_ik.ros.servo.outputs import (
    JointStateOutput,
    JointTrajectoryOutput,
    OutputSpec,
    PositionArrayOutput,
    VelocityArrayOutput,
    writable,
)
from dls_ik.ros.servo.state_monitor import JOINT_STATES_TOPIC
from dls_ik.ros.sim_arm.arm import (
    ArmReading,
    Path,
    SimArmParameters,
    SimulatedJoints,
    Simulation,
    VelocityCommand,
    joints_of,
    named_joints,
    standstill,
)
from dls_ik.ros.sim_arm.world import PhysicalWorld
from dls_ik.ros.subscriptions import TypeMonitor, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.text import listing

NO_ROBOT = "there is no robot yet"
COMMANDS_TOPIC = "joint_commands"
QOS = QoSProfile(depth=10)
MAX_COMMAND_BYTES = 1024 * 1024

# Commands, with the checks of a joint_trajectory_controller of ros2_control

MAX_VALUE = 1e6  # [rad, m, rad/s or m/s] maximum magnitude of a value in a command
MAX_TRAJECTORY_POINTS = 10_000


class CommandError(DlsIkError):
    """Error that is raised for a command that the arm rejects."""


def path_from_joint_state(message: Any, names: tuple[str, ...], now: float) -> Path:
    """Return a path that rests at the positions of a ``sensor_msgs/JointState`` command.

    Args:
        message: Command, with values in the order of its joint names.
        names: (n,) joints of the arm, in the order of the path.
        now: Time of the only knot of the path [s].

    Raises:
        CommandError: If the joints of the command are not exactly `names` (in any order), or the
            magnitude of a value exceeds MAX_VALUE.
        JointValueError: If the number of values is wrong, or a value is not finite.
    """
    order = _order(message.name, names)
    given = checked_configuration(message.position, tuple(message.name))
    return standstill(_bounded(given[order]), now)


def path_from_array(message: Any, names: tuple[str, ...], now: float) -> Path:
    """Return a path that rests at the positions of a ``std_msgs/Float64MultiArray`` command.

    Args:
        message: Command, with values in the order of `names`.
        names: (n,) joints of the arm.
        now: Time of the only knot of the path [s].

    Raises:
        CommandError: If the magnitude of a value exceeds MAX_VALUE.
        JointValueError: If the number of values is wrong, or a value is not finite.
    """
    return standstill(_bounded(checked_configuration(message.data, names)), now)


def velocities_from_array(message: Any, names: tuple[str, ...], now: float) -> VelocityCommand:
    """Return the velocities of a ``std_msgs/Float64MultiArray`` command.

    Args:
        message: Command, with values in the order of `names`.
        names: (n,) joints of the arm.
        now: Not used.

    Raises:
        CommandError: If the magnitude of a value exceeds MAX_VALUE.
        JointValueError: If the number of values is wrong, or a value is not finite.
    """
    return VelocityCommand(_bounded(checked_configuration(message.data, names)))


def path_from_trajectory(message: Any, names: tuple[str, ...], now: float, stamp: int) -> Path:
    """Return the path through the points of a ``trajectory_msgs/JointTrajectory`` command.

    Args:
        message: Command.
        names: (n,) joints of the arm, in the order of the path.
        now: Current time on the clock of the simulation, which the path uses [s].
        stamp: Current time on the ROS clock, which header stamps use [ns]; 0 if the ROS clock is
            not known yet (``use_sim_time`` without a message on ``/clock``).

    Raises:
        CommandError: If the joints of the command are not exactly `names` (in any order), if the
            magnitude of a value exceeds MAX_VALUE, if there are no points or more than
            MAX_TRAJECTORY_POINTS, if the times of the points do not increase or are all in the
            past, if the last point has a nonzero velocity, or if the command has a stamp and
            `stamp` is 0.
        JointValueError: If the number of values is wrong, or a value is not finite.
    """
    order = _order(message.joint_names, names)
    if not message.points:
        raise CommandError("the trajectory has no points")
    if len(message.points) > MAX_TRAJECTORY_POINTS:
        raise CommandError(
            f"a trajectory may have at most {MAX_TRAJECTORY_POINTS} points; "
            f"got {len(message.points)}"
        )
    times = _begin(message, now, stamp) + _times(message.points)
    if times[-1] < now:
        raise CommandError(f"the trajectory ended {now - times[-1]:.3g} s ago")
    given = tuple(message.joint_names)
    positions = np.array([checked_configuration(p.positions, given) for p in message.points])
    velocities = np.array([_velocities(point, given) for point in message.points])
    if np.nan_to_num(velocities[-1]).any():
        raise CommandError("the velocity of the last point of a trajectory must be 0 or empty")
    return Path(times, _bounded(positions[:, order]), _bounded(velocities[:, order]))


def _order(given: Sequence[str], names: tuple[str, ...]) -> list[int]:
    """Return the index in `given` of each joint of `names`, as a list (n,).

    Raises:
        CommandError: If `given` is not a permutation of `names`.
    """
    if sorted(given) != sorted(names):
        raise CommandError(f"joints must be {listing(names)} in any order; got {listing(given)}")
    index = {name: i for i, name in enumerate(given)}
    return [index[name] for name in names]


def _begin(message: Any, now: float, stamp: int) -> float:
    """Return the start time of a trajectory on the clock of the simulation [s].

    This is the header stamp of the trajectory, converted to the clock of the simulation, or `now`
    if the header stamp is 0. The arguments are those of :func:`path_from_trajectory`.

    Raises:
        CommandError: If the trajectory has a header stamp and the ROS clock is not known yet.
    """
    begin = nanoseconds(message.header.stamp)
    if begin and not stamp:
        raise CommandError(
            "the header stamp cannot be used, because use_sim_time is set and no message on /clock "
            "was received; publish /clock, or send a stamp of 0"
        )
    return now + 1e-9 * (begin - stamp) if begin else now


def _times(points: Sequence[Any]) -> Array:
    """Return ``time_from_start`` of k trajectory points, shape (k,) [s].

    Raises:
        CommandError: If the first time is negative, or the times do not increase.
    """
    durations = [point.time_from_start for point in points]
    times = np.array([d.sec + 1e-9 * d.nanosec for d in durations])
    if times[0] < 0.0 or (np.diff(times) <= 0.0).any():
        raise CommandError(
            "time_from_start must be at least 0 and increase from point to point; got "
            f"{listing([f'{t:g}' for t in times])} s"
        )
    return times


def _velocities(point: Any, names: tuple[str, ...]) -> Array:
    """Return the velocities of a trajectory point, shape (n,) [rad/s or m/s].

    All velocities are NaN if the field `velocities` of the point is empty.
    """
    if len(point.velocities) == 0:
        return np.full(len(names), np.nan)
    return checked_configuration(point.velocities, names)


def _bounded(values: Array) -> Array:
    if (largest := np.abs(np.nan_to_num(values)).max()) > MAX_VALUE:
        raise CommandError(f"magnitudes of values must be at most {MAX_VALUE:g}; got {largest:g}")
    return values


class MeasuredJoints:
    """Message ``sensor_msgs/JointState`` of the simulated arm, which is reused in each cycle.

    Args:
        names: (m,) names of the published joints.
        has_effort: Whether the message contains efforts (only an arm with masses has efforts).
    """

    def __init__(self, names: tuple[str, ...], has_effort: bool) -> None:
        self._output = JointStateOutput(OutputSpec(names, 0.0))
        message = self._output.fill(np.zeros(len(names)), np.zeros(len(names)), 0)
        self._effort = writable(message, "effort", len(names)) if has_effort else None

    def fill(self, reading: ArmReading, stamp: int) -> Any:
        """Fill the message and return it; every call returns the same message object.

        Args:
            reading: State of the published joints.
            stamp: Header stamp of the message [ns].
        """
        if self._effort is not None:
            self._effort[:] = reading.effort
        return self._output.fill(reading.positions, reading.velocities, stamp)


# Node


def serve_arm(node: Node, stop: Future) -> bool:
    """Simulate an arm until the future `stop` is done; return True: no thread compiles kernels."""
    application = SimArmApplication(node, LiveParameters(node, SimArmParameters()))
    try:
        application.start()
        gc.freeze()  # collecting Numba's many objects would pause the simulation loop
        spin(node, stop)
    finally:
        application.stop()
    return True


class SimArmApplication:
    """Simulated arm of node ``ik_sim_arm``, with the topics and services of the node."""

    def __init__(self, node: Node, live: LiveParameters[SimArmParameters]) -> None:
        self._node, self._live = node, live
        self._log = Throttle(node)
        self._simulation: Simulation | None = None
        self._published: tuple[Simulation, MeasuredJoints] | None = None
        self._world: PhysicalWorld | None = None
        if live.current.physics:
            self._world = PhysicalWorld(node, live.current, self._log)
        self._publisher = node.create_publisher(JointState, JOINT_STATES_TOPIC, QOS)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)
        subscribe, trajectory = self._subscribe, self._path_from_trajectory
        subscribe(JointTrajectory, JointTrajectoryOutput.default_topic, trajectory)
        subscribe(Float64MultiArray, PositionArrayOutput.default_topic, path_from_array)
        subscribe(Float64MultiArray, VelocityArrayOutput.default_topic, velocities_from_array)
        subscribe(JointState, COMMANDS_TOPIC, path_from_joint_state)
        node.create_service(Trigger, "~/reset", self._reset)
        node.create_service(SetBool, "~/freeze", self._freeze)
        node.create_service(SetBool, "~/silence", self._silence)
        TypeMonitor(node)
        live.on_change(self._change)

    def start(self) -> None:
        """Start the thread that simulates the arm.

        If no parameter gives a robot or joint names, the simulation starts with the first message
        on the topic ``robot_description``.

        Raises:
            DlsIkError: If the parameters give a robot or joints that cannot be simulated.
        """
        parameters = self._live.current
        if parameters.joint_names:
            self._use(named_joints(parameters.joint_names))
        elif robot := robot_from_parameters(parameters):
            self._use_robot(robot)
        else:
            DescriptionTopic(
                self._node,
                parameters,
                self._use_robot,
                lambda: self._simulation is not None,
            ).remind()
        self._thread.start()

    def stop(self) -> None:
        """Stop simulating and publishing, and stop accepting objects around the arm."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._world is not None:
            self._world.close()

    def _use_robot(self, robot: RobotModel) -> None:
        self._use(joints_of(robot), robot)

    def _use(self, joints: SimulatedJoints, robot: RobotModel | None = None) -> None:
        parameters = self._live.current
        if self._world is not None and robot is not None:
            self._simulation = self._world.simulate(robot, joints)
        else:
            self._simulation = Simulation(joints, parameters, time.monotonic())
        shown = self._simulation.joints
        output = MeasuredJoints((*shown.names, *shown.others), self._world is not None)
        self._published = (self._simulation, output)
        self._node.get_logger().info(
            f"ready: joints {listing(joints.names)} at {parameters.rate:g} Hz "
            f"on {self._publisher.topic_name}"
        )

    def _change(self, parameters: SimArmParameters) -> None:
        if self._simulation is not None:
            self._simulation.change(parameters, time.monotonic())

    def _subscribe(
        self,
        message_type: Any,
        topic: str,
        read: Callable[[Any, tuple[str, ...], float], Path | VelocityCommand],
    ) -> None:
        """Subscribe to a topic whose messages are commands that the arm follows.

        If a command is rejected, log the reason; the arm continues with the previous command.

        Args:
            message_type: Type of the messages.
            topic: Name of the topic.
            read: Function that converts a message, the joint names (n,) of the arm and the current
                time [s] to a path or velocities; it raises a DlsIkError to reject the message.
        """
        name = self._node.resolve_topic_name(topic)

        def store(message: Any, _: int) -> None:
            simulation, now = self._simulation, time.monotonic()
            try:
                if simulation is None:
                    raise CommandError(NO_ROBOT)
                simulation.command(read(message, simulation.joints.names, now), now)
            except DlsIkError as error:
                self._log.warn(name, f"ignored a command on {name}: {error}")

        subscribe_bounded(self._node, message_type, topic, store, QOS, self._log, MAX_COMMAND_BYTES)

    def _path_from_trajectory(self, message: Any, names: tuple[str, ...], now: float) -> Path:
        return path_from_trajectory(message, names, now, self._node.get_clock().now().nanoseconds)

    def _reset(self, request: Any, response: Any) -> Any:
        return self._act(response, Simulation.reset, "arm set to its initial positions")

    def _freeze(self, request: Any, response: Any) -> Any:
        message = "drives frozen" if request.data else "drives released"
        return self._act(response, lambda arm: arm.freeze(request.data), message)

    def _silence(self, request: Any, response: Any) -> Any:
        message = "joint states stopped" if request.data else "joint states resumed"
        return self._act(response, lambda arm: arm.silence(request.data), message)

    def _act(self, response: Any, act: Callable[[Simulation], None], message: str) -> Any:
        simulation = self._simulation
        response.success, response.message = simulation is not None, NO_ROBOT
        if simulation is not None:
            act(simulation)
            response.message = message
            self._node.get_logger().info(message)
        return response

    def _run(self) -> None:
        """Run a cycle of the simulation in each period of the parameter `rate`, until stopped.

        Deadlines are absolute, so that delays do not add up. Cycles whose deadlines passed while
        this thread was not running are skipped.
        """
        deadline = time.monotonic()
        while not self._ended.wait(max(0.0, deadline - time.monotonic())):
            try:
                self._cycle()
            except Exception as error:  # noqa: BLE001  the next cycle may succeed
                self._log.failed("fault", "a cycle failed", error)
            deadline = max(deadline + 1.0 / self._live.current.rate, time.monotonic())

    def _cycle(self) -> None:
        if self._published is None:
            return
        simulation, output = self._published
        reading = simulation.cycle(time.monotonic())
        if reading is not None:
            stamp = self._node.get_clock().now().nanoseconds
            self._publisher.publish(output.fill(reading, stamp))
        if self._world is not None:
            self._world.report_contacts()
