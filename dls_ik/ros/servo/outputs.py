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
from dls_ik.ros.servo.state_monitor import TOPIC as JOINT_STATES
from dls_ik.ros.servo.state_monitor import Echo
from dls_ik.ros.servo.targets import TOPICS as TARGETS
from dls_ik.servo.limiter import StopPath
from dls_ik.text import listing

SECOND = 10**9  # [ns]
PAST = 1e-4  # [rad or m] that a cubic may lead a joint past a point
DELIVERY = 0.2  # [s] at most, for a listener that is gone


class OutputSpec(NamedTuple):
    """The joints of the outputs, and the pace of the loop."""

    names: tuple[str, ...]  # (n,) as drivers call them
    period: float  # [s] of the loop
    points: int  # of a trajectory


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

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """Return the message of a command (n,), (n,) at a time [ns]; the same object each time."""
        self._position[:] = q
        self._velocity[:] = velocity
        set_time(self._message.header.stamp, stamp)
        return self._message


class JointTrajectoryOutput:
    """The next points for a joint_trajectory_controller, without a stamp, which means now.

    One point is the command, a cycle ahead, without velocities, which must be zero at the last
    point. Several points are a cycle apart, and from the second on they slow down to a stop, the
    same one on which the loop continues if its next cycle is late; a controller that receives no
    other trajectory follows them to rest. A stop that takes longer is spread evenly over the
    points.
    """

    message_type = JointTrajectory
    default_topic = "joint_trajectory_controller/joint_trajectory"

    def __init__(self, spec: OutputSpec) -> None:
        self._period = spec.period
        n = len(spec.names)
        self._points = [JointTrajectoryPoint() for _ in range(spec.points)]
        self._positions = [writable(point, "positions", n) for point in self._points]
        self._velocities: list[Array] = []
        if spec.points > 1:
            self._velocities = [writable(point, "velocities", n) for point in self._points]
        self._cycles = np.arange(spec.points, dtype=float)
        self._interval = -1.0  # [s] between points, as it was filled last
        self._set_times(spec.period)
        self._message = JointTrajectory(joint_names=list(spec.names), points=self._points)

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """Return the message of a command, and of the stop that follows it."""
        self._positions[0][:] = q
        if self._velocities and stop is not None:
            self._fill_stop(stop)
        return self._message

    def _fill_stop(self, stop: StopPath) -> None:
        interval = max(self._period, stop.duration / (len(self._points) - 1))
        self._set_times(interval)
        times = interval * self._cycles
        times[-1] = np.inf  # where rounding would end just before
        q, v, _ = stop.at(times)
        if interval > self._period:
            _limit_slopes(q, v, interval)
        for fields, values in ((self._positions, q), (self._velocities, v)):
            for field, row in zip(fields, values, strict=True):
                field[:] = row

    def _set_times(self, interval: float) -> None:
        """Let the points be due at an interval [s], the first of them a cycle ahead."""
        if interval == self._interval:
            return
        self._interval = interval
        for k, point in enumerate(self._points):
            set_time(point.time_from_start, round((self._period + k * interval) * SECOND))


def _limit_slopes(q: Array, v: Array, interval: float) -> None:
    """Lower velocities (k, n) for which a cubic would lead a joint past the next point and back.

    Between points a controller interpolates by a cubic, and points that are far apart may have a
    joint stop between them, near its limit. A cubic with end slopes of at most three times the mean
    one is monotone (Fritsch & Carlson 1980).
    """
    most = 3.0 * np.abs(np.diff(q, axis=0)) / interval
    past = (v[1:] == 0.0) & (4.0 / 27.0 * interval * (np.abs(v[:-1]) - most) > PAST)
    v[:-1] = np.where(past, np.clip(v[:-1], -most, most), v[:-1])


class PositionArrayOutput:
    """Positions without names, for a forward or position controller, whose order must be given."""

    message_type = Float64MultiArray
    default_topic = "forward_position_controller/commands"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = Float64MultiArray()
        self._position = writable(self._message, "data", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
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
        has_trajectory = JOINT_TRAJECTORY in parameters.output_type
        self.has_stop_trajectory = has_trajectory and parameters.trajectory_points > 1
        _check_topics(node, parameters.output_type, self.topics)
        driven = (JointStateOutput, node.resolve_topic_name(JOINT_STATES))
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
        period, points = 1.0 / self._parameters.rate, self._parameters.trajectory_points
        self._order = joints.order
        self._outputs = [kind(OutputSpec(joints.names, period, points)) for kind in self._kinds]

    def publish(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> None:
        """Publish a command (n,), (n,) [rad or m, s], in the order of the chain, at a time [ns].

        Args:
            stop: from the command on, where the arm continues to one by itself.
        """
        q, velocity = q[self._order], velocity[self._order]
        stop = None if stop is None else stop.reordered(self._order)
        rows = zip(self._publishers, self._outputs, self._is_echoed, strict=True)
        for publisher, output, is_echoed in rows:
            message = output.fill(q, velocity, stamp, stop)
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
    for heard, message_type in {JOINT_STATES: JointState, **TARGETS}.items():
        for name, topic in zip(types, topics, strict=True):
            kind = OUTPUTS[name]
            if topic == node.resolve_topic_name(heard) and kind.message_type is not message_type:
                raise OptionError(
                    f"output_type {name} cannot go out on {topic}, where the node hears "
                    f"{message_type.__name__}: a topic has one type; give output_topic another "
                    f"name, such as {kind.default_topic}"
                )
