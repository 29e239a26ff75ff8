# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Outputs of the node: topics and messages of the commands, with the joint names of the drivers.

The messages are reused: each cycle fills the same message objects in place.
"""

from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Int32MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.params import (
    JOINT_STATE,
    JOINT_TRAJECTORY,
    POSITION_ARRAY,
    SERVO_TICKS,
    VELOCITY_ARRAY,
    Parameters,
)
from dls_ik.ros.servo.state_monitor import JOINT_STATES_TOPIC, Echo
from dls_ik.ros.servo.target_buffer import target_topics
from dls_ik.servo.knots import Knots
from dls_ik.servo.ticks import TickScale, tick_scale
from dls_ik.solver.trajectory import NANOSECONDS_PER_SECOND
from dls_ik.text import listing

DELIVERY_TIMEOUT = 0.2  # [s] a subscriber that has exited never acknowledges a message


class OutputSpec(NamedTuple):
    """Joint names and period, from which an output builds its message."""

    names: tuple[str, ...]  # (n,) joint names of the drivers
    period: float  # [s] period of the loop
    has_accelerations: bool = False  # whether points of trajectories have accelerations
    ticks: TickScale | None = None  # conversion to goal positions of servos, for SERVO_TICKS


def writable(message: Any, name: str, n: int) -> Array:
    """Return a writable view (n,) of a field of a message.

    Filling the view takes 0.15 us; assigning a list to the field takes approximately 10 us.

    Args:
        message: ROS message.
        name: Name of a field that is a sequence of doubles; its length is set to n.
        n: Length.
    """
    setattr(message, name, array("d", bytes(8 * n)))
    return np.frombuffer(getattr(message, name))  # the message may have copied the array


def set_time(time: Any, nanoseconds: int) -> None:
    """Set a ``builtin_interfaces`` Time or Duration message to a number of nanoseconds."""
    time.sec, time.nanosec = divmod(nanoseconds, NANOSECONDS_PER_SECOND)


class CommandOutput(Protocol):
    """Output of one message type. Each cycle fills the same message."""

    message_type: Any
    default_topic: str

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Write a command to the message, and return the message.

        Args:
            q: (n,) joint positions of the command [rad or m].
            velocity: (n,) joint velocities of the command [rad/s or m/s].
            stamp: Time of the command [ns].
            knots: Points of the trajectory, from the command to a stop. None: the command is the
                only point of the trajectory.
        """


class JointStateOutput:
    """Message type JointState: positions and velocities, for robot_state_publisher and RViz.

    Args:
        spec: Joint names and period.
    """

    message_type = JointState
    default_topic = "joint_states"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = JointState(name=list(spec.names))
        self._position = writable(self._message, "position", len(spec.names))
        self._velocity = writable(self._message, "velocity", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Write positions, velocities and the stamp of a command, see :class:`CommandOutput`."""
        self._position[:] = q
        self._velocity[:] = velocity
        set_time(self._message.header.stamp, stamp)
        return self._message


class JointTrajectoryOutput:
    """Message type JointTrajectory: a command and a stop, for a joint_trajectory_controller.

    A trajectory has no stamp, so that the controller starts it on arrival. The first points lead to
    the command, which the arm reaches one period later. The next points are on the stop trajectory,
    where the acceleration or the jerk changes. The controller interpolates points with velocities
    by cubics, which are exact between these points. If the controller receives no other trajectory,
    it follows the points until the arm is at rest. If the next cycle is late, the loop continues on
    the same stop trajectory.

    The points have no velocities if there is only one point, or if the arm has no acceleration
    limits. Between points without velocities the controller interpolates linearly. With the
    parameter `trajectory_accelerations`, points with velocities also have accelerations, with which
    the controller interpolates by quintics.

    Args:
        spec: Joint names and period.
    """

    message_type = JointTrajectory
    default_topic = "joint_trajectory_controller/joint_trajectory"

    def __init__(self, spec: OutputSpec) -> None:
        self._n, self._period = len(spec.names), spec.period
        self._has_accelerations = spec.has_accelerations
        # Points with velocities, and points without velocities; all messages reuse these points.
        self._pools: tuple[list[_Point], list[_Point]] = ([], [])
        self._message = JointTrajectory(joint_names=list(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Write a command and its stop trajectory; ignore `stamp`; see :class:`CommandOutput`."""
        if knots is None:
            knots = Knots(np.array([self._period]), q[None], velocity[None], True)
        pool = self._pools[knots.is_linear]
        for _ in range(len(knots.times) - len(pool)):
            pool.append(_Point(self._n, not knots.is_linear, self._has_accelerations))
        points = pool[: len(knots.times)]
        for point, time, row, rate in zip(
            points, knots.times.tolist(), knots.q, knots.v, strict=True
        ):
            point.fill(time, row, rate)
        if self._has_accelerations and not knots.is_linear:
            for point, a in zip(points, knots.knot_accelerations(), strict=True):
                point.set_accelerations(a)
        self._message.points = [point.message for point in points]
        return self._message


class _Point:
    """Point of a trajectory message, with a message object that is reused in each cycle.

    Args:
        n: Number of joints.
        has_velocities: Whether the point has velocities.
        has_accelerations: Whether the point has accelerations, if it has velocities.
    """

    def __init__(self, n: int, has_velocities: bool, has_accelerations: bool = False) -> None:
        self.message = JointTrajectoryPoint()
        self._positions = writable(self.message, "positions", n)
        self._velocities = writable(self.message, "velocities", n) if has_velocities else None
        has_accelerations = has_accelerations and has_velocities
        self._accelerations = (
            writable(self.message, "accelerations", n) if has_accelerations else None
        )

    def set_accelerations(self, a: Array) -> None:
        """Set the accelerations a (n,)."""
        if self._accelerations is not None:
            self._accelerations[:] = a

    def fill(self, time: float, q: Array, v: Array) -> None:
        """Set the time from the start [s], the positions q (n,) and the velocities v (n,)."""
        set_time(self.message.time_from_start, round(time * NANOSECONDS_PER_SECOND))
        self._positions[:] = q
        if self._velocities is not None:
            self._velocities[:] = v


class PositionArrayOutput:
    """Message type Float64MultiArray: joint positions, in the order of the receiving controller.

    Args:
        spec: Joint names and period.
    """

    message_type = Float64MultiArray
    default_topic = "forward_position_controller/commands"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = Float64MultiArray()
        self._data = writable(self._message, "data", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Write the positions of a command, see :class:`CommandOutput`."""
        self._data[:] = q
        return self._message


class VelocityArrayOutput(PositionArrayOutput):
    """Message type Float64MultiArray: joint velocities, in the order of the receiving controller.

    Each velocity is the mean velocity of the command in the cycle plus a correction of drift
    (:class:`.DriveVelocity`). An arm that moves at the mean velocities for one period reaches the
    commanded positions.

    Args:
        spec: Joint names and period.
    """

    default_topic = "forward_velocity_controller/commands"

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Write the velocities of a command, see :class:`CommandOutput`."""
        self._data[:] = velocity
        return self._message


class ServoTicksOutput:
    """Message type Int32MultiArray: goal positions of servos in whole ticks.

    A goal position is the tick closest to the commanded joint position, and within the joint limits
    if the commanded position is, see :meth:`dls_ik.servo.ticks.TickScale.ticks`.

    Args:
        spec: Joint names, period, and the conversion to ticks.
    """

    message_type = Int32MultiArray
    default_topic = "servo_goal_positions"

    def __init__(self, spec: OutputSpec) -> None:
        if spec.ticks is None:
            raise OptionError("the output type servo_ticks needs servo_resolution [rad or m/tick]")
        self._scale = spec.ticks
        self._message = Int32MultiArray()
        self._message.data = array("i", [0] * len(spec.names))
        self._goals = np.frombuffer(self._message.data, np.int32)

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Write the goal positions of a command, see :class:`CommandOutput`."""
        self._goals[:] = self._scale.ticks(q)
        return self._message


OUTPUT_CLASSES: dict[str, Any] = {
    JOINT_STATE: JointStateOutput,
    JOINT_TRAJECTORY: JointTrajectoryOutput,
    POSITION_ARRAY: PositionArrayOutput,
    VELOCITY_ARRAY: VelocityArrayOutput,
    SERVO_TICKS: ServoTicksOutput,
}


class OutputJoints(NamedTuple):
    """Order and names of the joints of a chain in the outputs."""

    order: NDArray[np.intp]  # (n,) index in the chain of each joint, in the order of the outputs
    names: tuple[str, ...]  # (n,) names in the outputs, in the order of the outputs
    # Name of a joint in the robot by its name in the outputs, for each joint with two names.
    robot_names: dict[str, str]


def arrange_joints(
    chain: Sequence[str], joints: Sequence[str] = (), names: Sequence[str] = ()
) -> OutputJoints:
    """Return the order and the names of the joints of a chain in the outputs.

    The outputs must have exactly the joints of the chain: controllers reject a message that lacks
    one of their joints, and the tip does not reach its target if a joint of the chain gets no
    command.

    Args:
        chain: (n,) joint names from base to tip.
        joints: (n,) the same names in the order of the outputs; empty: the order of `chain`.
        names: (n,) joint names of the drivers, in the order of the outputs; empty: the drivers use
            the names of the chain.

    Raises:
        OptionError: If `joints` are not the joints of the chain, or the number of names is wrong.
    """
    joints = joints or chain
    if sorted(joints) != sorted(chain):
        raise OptionError(
            f"output_joints is {', '.join(joints)}; it must have each of the chain's joints once; "
            f"the chain has the joints: {listing(chain)}"
        )
    if names and len(names) != len(joints):
        raise OptionError(
            f"output_names has {len(names)} names ({', '.join(names)}) for {len(joints)} joints "
            f"({', '.join(joints)}); give one name for each joint"
        )
    output_names = tuple(names or joints)
    renamed = {new: old for new, old in zip(output_names, joints, strict=True) if new != old}
    order = np.array([list(chain).index(joint) for joint in joints], dtype=np.intp)
    return OutputJoints(order, output_names, renamed)


class Outputs:
    """Publishes each command with all message types of the parameter `output_type`.

    Args:
        node: Node of the publishers.
        parameters: Parameters of the node.

    Attributes:
        topics: Topics of the commands, after remapping.
        display_only: Whether the commands are for display only, without a controller.
        has_trajectory: Whether one of the outputs is a trajectory.
        has_velocity_array: Whether one of the outputs is an array of velocities.
        points: Requested number of points of a trajectory; 0: as many as the path needs.
        has_stop_trajectory: Whether each command includes a stop trajectory.
        echo: Recognises this node's own messages among the joint states of drivers; None if this
            node publishes no joint states on the topic of the drivers.

    Raises:
        OptionError: If two outputs have the same topic, or the node subscribes to the topic of an
            output with another message type.
        rclpy.exceptions.NameValidationException: If a topic has an invalid name.
    """

    def __init__(self, node: Node, parameters: Parameters) -> None:
        self._parameters = parameters
        self._kinds = kinds = [OUTPUT_CLASSES[name] for name in parameters.output_type]
        names = parameters.output_topic or [kind.default_topic for kind in kinds]
        self.topics = tuple(_resolved(node, name) for name in names)
        self.display_only = set(kinds) == {JointStateOutput}
        self.has_trajectory = JOINT_TRAJECTORY in parameters.output_type
        self.has_velocity_array = VELOCITY_ARRAY in parameters.output_type
        self.points = parameters.trajectory_points
        self.has_stop_trajectory = self.has_trajectory and self.points != 1
        read = {JOINT_STATES_TOPIC: JointState}
        read |= target_topics(parameters.stream_tips(), parameters.compatibility)
        _check_topics(node, parameters.output_type, self.topics, read)
        driven = (JointStateOutput, node.resolve_topic_name(JOINT_STATES_TOPIC))
        self._is_echoed = [pair == driven for pair in zip(kinds, self.topics, strict=True)]
        self.echo = Echo() if any(self._is_echoed) else None
        self._publishers = [
            node.create_publisher(kind.message_type, name, 1)
            for kind, name in zip(kinds, names, strict=True)
        ]
        self._order = np.arange(0)
        self._outputs: list[CommandOutput] = []  # output of each publisher, for the joints in use

    def joints(self, robot: RobotModel) -> OutputJoints:
        """Return the order and the names in the outputs of the joints of a chain.

        Raises:
            OptionError: If `output_joints`, `output_names` or the parameters of servos do not fit
                the chain.
        """
        given = self._parameters
        joints = arrange_joints(robot.joint_names, given.output_joints, given.output_names)
        self._tick_scale(robot, joints)
        return joints

    def _tick_scale(self, robot: RobotModel, joints: OutputJoints) -> TickScale | None:
        """Return the conversion to goal positions of servos; None without such an output.

        Raises:
            OptionError: If the parameters of servos do not fit the joints.
        """
        given = self._parameters
        if SERVO_TICKS not in given.output_type:
            return None
        limits = robot.lower[joints.order], robot.upper[joints.order]
        servos = given.servo_resolution, given.servo_offset, given.servo_direction
        return tick_scale(joints.names, limits, *servos)

    def use(self, robot: RobotModel) -> None:
        """Create the messages for the joints of a chain.

        Raises:
            OptionError: If `output_joints`, `output_names` or the parameters of servos do not fit
                the chain.
        """
        joints = self.joints(robot)
        period, has_accelerations = (
            1.0 / self._parameters.rate, self._parameters.trajectory_accelerations
        )  # fmt: skip
        ticks = self._tick_scale(robot, joints)
        spec = OutputSpec(joints.names, period, has_accelerations, ticks)
        self._order = joints.order
        self._outputs = [kind(spec) for kind in self._kinds]

    def publish(
        self,
        q: Array,
        velocity: Array,
        stamp: int,
        knots: Knots | None = None,
        drive: Array | None = None,
    ) -> None:
        """Publish a command on all topics.

        Args:
            q: (n,) joint positions in the order of the chain [rad or m].
            velocity: (n,) joint velocities in the order of the chain [rad/s or m/s].
            stamp: Time of the command [ns].
            knots: Points of a trajectory message; None: one point, the command.
            drive: (n,) velocities for outputs of type velocity_array [rad/s or m/s]; None:
                `velocity`.
        """
        q, velocity = q[self._order], velocity[self._order]
        drive = velocity if drive is None else drive[self._order]
        knots = None if knots is None else knots.reordered(self._order)
        rows = zip(self._publishers, self._outputs, self._is_echoed, strict=True)
        for publisher, output, is_echoed in rows:
            is_drive = isinstance(output, VelocityArrayOutput)
            message = output.fill(q, drive if is_drive else velocity, stamp, knots)
            if is_echoed and self.echo is not None:
                self.echo.remember(message)
            publisher.publish(message)

    def publish_drive(self, drive: Array) -> None:
        """Publish velocities (n,) [rad/s or m/s] as arrays of velocities only."""
        drive = drive[self._order]
        for publisher, output in zip(self._publishers, self._outputs, strict=True):
            if isinstance(output, VelocityArrayOutput):
                publisher.publish(output.fill(drive, drive, 0))

    def deliver(self) -> None:
        """Wait until reliable subscribers have received all messages, at most 0.2 s per topic."""
        for publisher in self._publishers:
            with suppress(RuntimeError):  # raised if the middleware does not support this wait
                publisher.wait_for_all_acked(Duration(seconds=DELIVERY_TIMEOUT))


def _resolved(node: Node, topic: str) -> str:
    """Return the full name of a topic after remapping.

    Raises:
        rclpy.exceptions.NameValidationException: If the name is invalid.
    """
    validate_topic_name(topic)  # raises a clearer message than the next call
    return str(node.resolve_topic_name(topic))


def _check_topics(
    node: Node, types: Sequence[str], topics: Sequence[str], read: Mapping[str, Any]
) -> None:
    """Check that the topics of the outputs conflict neither with each other nor with subscriptions.

    Args:
        node: Node that publishes the outputs.
        types: Values of the parameter `output_type`.
        topics: Topic of each output, after remapping.
        read: Message types by topic to which the node subscribes.

    Raises:
        OptionError: If two outputs have the same topic, or if the node subscribes to the topic of
            an output with another message type.
    """
    twice = sorted({topic for topic in topics if topics.count(topic) > 1})
    if twice:
        raise OptionError(
            f"two outputs have the same topic {', '.join(twice)}; give each output_type its own "
            "topic in output_topic"
        )
    for name, message_type in read.items():
        subscribed = node.resolve_topic_name(name)
        for output_type, topic in zip(types, topics, strict=True):
            kind = OUTPUT_CLASSES[output_type]
            if topic == subscribed and kind.message_type is not message_type:
                raise OptionError(
                    f"output_type {output_type} cannot be published on {topic}, where the node "
                    f"subscribes to {message_type.__name__}: a topic has one type; give "
                    f"output_topic another name, such as {kind.default_topic}"
                )
