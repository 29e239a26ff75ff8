"""Outputs of the node: topics of the commands, their messages, and the joints as drivers name them.

Each message is filled again every cycle.
"""

from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.ros.params import JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY, Parameters
from dls_ik.ros.servo.state_monitor import JOINT_STATES_TOPIC, Echo
from dls_ik.ros.servo.target_buffer import TARGET_TOPICS
from dls_ik.servo.knots import Knots
from dls_ik.text import listing

SECOND = 10**9  # [ns]
DELIVERY = 0.2  # [s] at most, for a listener that is gone


class OutputSpec(NamedTuple):
    """The joints of the outputs, and the pace of the loop."""

    names: tuple[str, ...]  # (n,) as drivers call them
    period: float  # [s] of the loop


def writable(message: Any, name: str, n: int) -> Array:
    """Return a view (n,) of a field of doubles: a write costs 0.15 us, a new list some 10."""
    setattr(message, name, array("d", bytes(8 * n)))
    return np.frombuffer(getattr(message, name))  # the message may hold a copy of what it is given


def set_time(time: Any, nanoseconds: int) -> None:
    """Write into a ``builtin_interfaces`` Time or Duration."""
    time.sec, time.nanosec = divmod(nanoseconds, SECOND)


class JointStateOutput:
    """Positions and velocities by name, for robot_state_publisher and RViz."""

    message_type = JointState
    default_topic = "joint_states"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = JointState(name=list(spec.names))
        self._position = writable(self._message, "position", len(spec.names))
        self._velocity = writable(self._message, "velocity", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Return the message of a command (n,), (n,) at a time [ns]; the same object each time."""
        self._position[:] = q
        self._velocity[:] = velocity
        set_time(self._message.header.stamp, stamp)
        return self._message


class JointTrajectoryOutput:
    """The next points for a joint_trajectory_controller, without a stamp, which means now.

    A point stands at each knot of the motion: at the command, a period ahead, and behind it where
    the stop changes its acceleration or jerk. A controller interpolates points with velocities by
    cubics, which are exact there, and follows them to rest if it receives no other trajectory. The
    loop continues on the same stop if its next cycle is late. Without velocities, for a single
    point or without a limit of acceleration, it interpolates linearly.
    """

    message_type = JointTrajectory
    default_topic = "joint_trajectory_controller/joint_trajectory"

    def __init__(self, spec: OutputSpec) -> None:
        self._n, self._period = len(spec.names), spec.period
        self._pools: tuple[list[_Point], list[_Point]] = ([], [])  # with velocities, and without
        self._message = JointTrajectory(joint_names=list(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Return the message of a command, and of the stop that follows it."""
        if knots is None:
            knots = Knots(np.array([self._period]), q[None], velocity[None], True)
        pool = self._pools[knots.is_linear]
        for _ in range(len(knots.times) - len(pool)):
            pool.append(_Point(self._n, not knots.is_linear))
        points = pool[: len(knots.times)]
        for point, time, row, rate in zip(
            points, knots.times.tolist(), knots.q, knots.v, strict=True
        ):
            point.fill(time, row, rate)
        self._message.points = [point.message for point in points]
        return self._message


class _Point:
    """A point of a trajectory, to be filled again and again."""

    def __init__(self, n: int, has_velocities: bool) -> None:
        self.message = JointTrajectoryPoint()
        self._positions = writable(self.message, "positions", n)
        self._velocities = writable(self.message, "velocities", n) if has_velocities else None

    def fill(self, time: float, q: Array, v: Array) -> None:
        """Write the time since the start [s], positions and velocities (n,)."""
        set_time(self.message.time_from_start, round(time * SECOND))
        self._positions[:] = q
        if self._velocities is not None:
            self._velocities[:] = v


class PositionArrayOutput:
    """Positions without names, for a forward or position controller, whose order must be given."""

    message_type = Float64MultiArray
    default_topic = "forward_position_controller/commands"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = Float64MultiArray()
        self._position = writable(self._message, "data", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> Any:
        """Return the message of a command."""
        self._position[:] = q
        return self._message


OUTPUTS: dict[str, Any] = {
    JOINT_STATE: JointStateOutput,
    JOINT_TRAJECTORY: JointTrajectoryOutput,
    POSITION_ARRAY: PositionArrayOutput,
}


class OutputJoints(NamedTuple):
    """Order and names of the joints of a chain in the outputs."""

    order: NDArray[np.intp]  # (n,) index in the chain of each joint of the outputs
    names: tuple[str, ...]  # (n,) in the outputs, as drivers call them
    robot_names: dict[str, str]  # by the name that drivers use, where it is another one


def arrange(
    chain: Sequence[str], joints: Sequence[str] = (), names: Sequence[str] = ()
) -> OutputJoints:
    """Order and name the joints of a chain.

    The outputs have all joints of the chain and no others: controllers refuse a message that lacks
    a joint of theirs, and without a joint of the chain the tip is not reached.

    Args:
        chain: (n,) names of the joints from base to tip.
        joints: the same names in the order of the outputs; empty: as they are.
        names: (n,) by which drivers call them, in that order; empty: the same.

    Raises:
        OptionError: other names, or too few or too many of them; with those that are valid.
    """
    joints = joints or chain
    if sorted(joints) != sorted(chain):
        raise OptionError(
            f"output_joints is {', '.join(joints)}: not each joint of the chain once; joints: "
            f"{listing(chain)}"
        )
    if names and len(names) != len(joints):
        raise OptionError(
            f"output_names has {len(names)} names ({', '.join(names)}) for {len(joints)} joints "
            f"({', '.join(joints)})"
        )
    called = tuple(names or joints)
    renamed = {new: old for new, old in zip(called, joints, strict=True) if new != old}
    order = np.array([list(chain).index(joint) for joint in joints], dtype=np.intp)
    return OutputJoints(order, called, renamed)


class Outputs:
    """Publishes each command as all the messages of the parameters.

    Attributes:
        topics: of the commands, after remapping.
        display_only: the commands are for display, and no controller takes them.
        has_trajectory: one of the outputs is a trajectory.
        points: wanted in a trajectory; 0: as many as its path needs.
        has_stop_trajectory: an arm continues to a stop by itself when no command comes.
        echo: remembers the messages on the topic that drivers publish on; None if there are none.

    Raises:
        OptionError: two outputs on one topic, or one on a topic that the node hears, of a type that
            is not the one of the topic.
        rclpy.exceptions.NameValidationException: a topic with an invalid name.
    """

    def __init__(self, node: Node, parameters: Parameters) -> None:
        self._parameters = parameters
        self._kinds = kinds = [OUTPUTS[name] for name in parameters.output_type]
        names = parameters.output_topic or [kind.default_topic for kind in kinds]
        self.topics = tuple(_resolved(node, name) for name in names)
        self.display_only = set(kinds) == {JointStateOutput}
        self.has_trajectory = JOINT_TRAJECTORY in parameters.output_type
        self.points = parameters.trajectory_points
        self.has_stop_trajectory = self.has_trajectory and self.points != 1
        _check_topics(node, parameters.output_type, self.topics)
        driven = (JointStateOutput, node.resolve_topic_name(JOINT_STATES_TOPIC))
        self._is_echoed = [pair == driven for pair in zip(kinds, self.topics, strict=True)]
        self.echo = Echo() if any(self._is_echoed) else None
        self._publishers = [
            node.create_publisher(kind.message_type, name, 1)
            for kind, name in zip(kinds, names, strict=True)
        ]
        self._order = np.arange(0)
        self._outputs: list[Any] = []  # for each publisher, for the joints in use

    def joints(self, chain: Sequence[str]) -> OutputJoints:
        """Return the joints of a chain as they stand in the outputs.

        Raises:
            OptionError: the parameters do not fit this chain.
        """
        return arrange(chain, self._parameters.output_joints, self._parameters.output_names)

    def use(self, chain: Sequence[str]) -> None:
        """Publish for another arm from now on, with joints (n,) in the order of its commands.

        Raises:
            OptionError: as :meth:`joints`.
        """
        joints = self.joints(chain)
        spec = OutputSpec(joints.names, 1.0 / self._parameters.rate)
        self._order = joints.order
        self._outputs = [kind(spec) for kind in self._kinds]

    def publish(self, q: Array, velocity: Array, stamp: int, knots: Knots | None = None) -> None:
        """Publish a command (n,), (n,) [rad or m, s], in the order of the chain, at a time [ns].

        Args:
            knots: of the points of a trajectory.
        """
        q, velocity = q[self._order], velocity[self._order]
        knots = None if knots is None else knots.reordered(self._order)
        rows = zip(self._publishers, self._outputs, self._is_echoed, strict=True)
        for publisher, output, is_echoed in rows:
            message = output.fill(q, velocity, stamp, knots)
            if is_echoed and self.echo is not None:
                self.echo.remember(message)
            publisher.publish(message)

    def deliver(self) -> None:
        """Wait for all reliable listeners: messages may be lost when their publisher ends."""
        for publisher in self._publishers:
            with suppress(RuntimeError):  # a middleware may not know
                publisher.wait_for_all_acked(Duration(seconds=DELIVERY))


def _resolved(node: Node, topic: str) -> str:
    validate_topic_name(topic)  # its message is better than that of the next call
    return str(node.resolve_topic_name(topic))


def _check_topics(node: Node, types: Sequence[str], topics: Sequence[str]) -> None:
    """Refuse two outputs on one topic, and one on a topic that is heard as another type."""
    twice = sorted({topic for topic in topics if topics.count(topic) > 1})
    if twice:
        raise OptionError(
            f"two outputs would share the topic {', '.join(twice)}; give each of output_type a "
            "topic of its own in output_topic"
        )
    for heard, message_type in {JOINT_STATES_TOPIC: JointState, **TARGET_TOPICS}.items():
        for name, topic in zip(types, topics, strict=True):
            kind = OUTPUTS[name]
            if topic == node.resolve_topic_name(heard) and kind.message_type is not message_type:
                raise OptionError(
                    f"output_type {name} cannot go out on {topic}, where the node hears "
                    f"{message_type.__name__}: a topic has one type; give output_topic another "
                    f"name, such as {kind.default_topic}"
                )
