"""All outputs of the node: each a topic and a message that is filled again every cycle."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.exceptions import OptionError
from dls_ik.ros.outputs.channel import Channel
from dls_ik.ros.outputs.joint_state import JointStateOutput
from dls_ik.ros.outputs.joint_trajectory import JointTrajectoryOutput
from dls_ik.ros.outputs.joints import OutputJoints, arrange
from dls_ik.ros.outputs.position_array import PositionArrayOutput
from dls_ik.ros.outputs.spec import OutputSpec
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.parameters.outputs import JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY
from dls_ik.ros.stream.echo import Echo
from dls_ik.ros.stream.joint_states import TOPIC as JOINT_STATES
from dls_ik.ros.stream.targets import TOPICS as TARGETS
from dls_ik.servo.limiter import StopPath

OUTPUTS: dict[str, Any] = {
    JOINT_STATE: JointStateOutput,
    JOINT_TRAJECTORY: JointTrajectoryOutput,
    POSITION_ARRAY: PositionArrayOutput,
}

DELIVERY = 0.2  # [s] at most, for a listener that is gone


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
