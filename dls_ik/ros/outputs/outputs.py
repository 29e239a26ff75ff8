"""Outputs of the node: each a topic, its message, and the joints as drivers order and name them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.ros.outputs.messages import (
    JointStateOutput,
    JointTrajectoryOutput,
    Output,
    OutputSpec,
    PositionArrayOutput,
)
from dls_ik.ros.params import Parameters
from dls_ik.ros.params.ik_node import JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY
from dls_ik.ros.stream.echo import Echo
from dls_ik.ros.stream.joint_states import TOPIC as JOINT_STATES
from dls_ik.ros.stream.targets import TOPICS as TARGETS
from dls_ik.servo.limiter import StopPath
from dls_ik.text import listing

OUTPUTS: dict[str, Any] = {
    JOINT_STATE: JointStateOutput,
    JOINT_TRAJECTORY: JointTrajectoryOutput,
    POSITION_ARRAY: PositionArrayOutput,
}

DELIVERY = 0.2  # [s] at most, for a listener that is gone


class OutputJoints(NamedTuple):
    """Which joint of a chain stands where in the outputs."""

    order: NDArray[np.intp]  # (n,) index in the chain of each joint of the outputs
    names: tuple[str, ...]  # (n,) in the outputs, as drivers call them
    robot_names: dict[str, str]  # by the name that drivers use, where it is another one


def arrange(
    chain: Sequence[str], joints: Sequence[str] = (), names: Sequence[str] = ()
) -> OutputJoints:
    """Order and name the joints of a chain.

    Controllers refuse a message that lacks a joint of theirs, and a tip that is reached without
    one of the chain's joints is not reached; so the outputs have all of them and no others.

    Args:
        chain: (n,) names of the joints from base to tip.
        joints: the same names in the order of the outputs; empty: as they are.
        names: (n,) what drivers call them, in that order; empty: the same.

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


class Channel:
    """Publishes commands as messages of a kind.

    Args:
        kind: one of the classes of messages of this package.
        echo: remembers what goes out, where it may come back.
    """

    def __init__(self, node: Node, kind: Any, topic: str, echo: Echo | None) -> None:
        self._kind = kind
        self._publisher = node.create_publisher(kind.message_type, topic, 1)
        self._echo = echo
        self._output: Output | None = None

    def use(self, spec: OutputSpec) -> None:
        """Publish for other joints from now on."""
        self._output = self._kind(spec)

    def publish(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None) -> None:
        """Send a command (n,), (n,) in the order of the outputs, at a time [ns]."""
        if self._output is None:
            return
        message = self._output.fill(q, velocity, stamp, stop)
        if self._echo is not None:
            self._echo.remember(message)
        self._publisher.publish(message)

    def deliver(self, timeout: float) -> None:
        """Wait [s] for all who listen reliably: what a publisher has sent may end with it."""
        with suppress(RuntimeError):  # a middleware may not know
            self._publisher.wait_for_all_acked(Duration(seconds=timeout))


class Outputs:
    """Publishes each command as all the messages that are wanted.

    Attributes:
        topics: where commands go out, after remapping.
        shows: the commands are for display only, and no controller takes them.
        echo: remembers what goes out on the topic that drivers publish on; None if nothing does.

    Raises:
        OptionError: two outputs on one topic, or one on a topic that the node hears, of a type that
            is not the one of the topic.
        rclpy.exceptions.NameValidationException: a topic with a name that is none.
    """

    def __init__(self, node: Node, parameters: Parameters) -> None:
        self._parameters = parameters
        kinds = [OUTPUTS[name] for name in parameters.output_type]
        names = parameters.output_topic or [kind.default_topic for kind in kinds]
        self.topics = _distinct([_resolved(node, name) for name in names])
        self.shows = set(kinds) == {JointStateOutput}
        driven = (JointStateOutput, node.resolve_topic_name(JOINT_STATES))
        pairs = list(zip(kinds, self.topics, strict=True))
        _check_types(node, dict(zip(parameters.output_type, pairs, strict=True)))
        self.echo = Echo() if driven in pairs else None
        self._channels = [
            Channel(node, kind, name, self.echo if pair == driven else None)
            for kind, name, pair in zip(kinds, names, pairs, strict=True)
        ]
        self._order = np.arange(0)

    @property
    def goes_on(self) -> bool:
        """Whether an arm goes on to a stop by itself when no command comes."""
        kinds = self._parameters.output_type
        return JOINT_TRAJECTORY in kinds and self._parameters.trajectory_points > 1

    def joints(self, chain: Sequence[str]) -> OutputJoints:
        """The joints of a chain as they stand in the outputs.

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
        for channel in self._channels:
            channel.use(OutputSpec(joints.names, period, points))

    def publish(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> None:
        """Send a command (n,), (n,) [rad or m, s], in the order of the chain, at a time [ns].

        Args:
            stop: from the command on, where the arm goes on to one by itself.
        """
        q, velocity = q[self._order], velocity[self._order]
        stop = None if stop is None else stop.reordered(self._order)
        for channel in self._channels:
            channel.publish(q, velocity, stamp, stop)

    def deliver(self) -> None:
        """Wait until the last command has arrived, before the node ends."""
        for channel in self._channels:
            channel.deliver(DELIVERY)


def _resolved(node: Node, topic: str) -> str:
    validate_topic_name(topic)  # with more to say about it than what comes next
    return str(node.resolve_topic_name(topic))


def _check_types(node: Node, outputs: Mapping[str, tuple[Any, str]]) -> None:
    """Refuse an output on a topic that the node hears as another type: a topic has one."""
    for heard, message_type in {JOINT_STATES: JointState, **TARGETS}.items():
        for name, (kind, topic) in outputs.items():
            if topic == node.resolve_topic_name(heard) and kind.message_type is not message_type:
                raise OptionError(
                    f"output_type {name} cannot go out on {topic}, where the node hears "
                    f"{message_type.__name__}: a topic has one type; give output_topic another "
                    f"name, such as {kind.default_topic}"
                )


def _distinct(topics: list[str]) -> tuple[str, ...]:
    twice = sorted({topic for topic in topics if topics.count(topic) > 1})
    if twice:
        raise OptionError(
            f"two outputs would share the topic {', '.join(twice)}; give each of output_type a "
            "topic of its own in output_topic"
        )
    return tuple(topics)
