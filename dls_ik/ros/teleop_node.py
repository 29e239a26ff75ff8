# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Teleoperation of ``ik_node``: devices on topics, and the loop that sends the targets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import Joy
from std_msgs.msg import Float64MultiArray

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, OptionError, PoseError
from dls_ik.ros.client.connection import OwnNode, wait_until
from dls_ik.ros.client.target_publisher import TargetPublisher, ignore_sigint
from dls_ik.ros.endpoints import publisher_words
from dls_ik.ros.frames import matrix_from_pose
from dls_ik.ros.subscriptions import subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.teleop import Device, DeviceState, Teleop, TeleopCommand, TeleopConfig
from dls_ik.teleop.device import Control

TELEOP_NODE_NAME = "dls_ik_teleop"
STARTING_NODE_NAME = "dls_ik_teleop_start"  # name until no other teleoperation is found
NAMES_TIME = 1.0  # [s] time from the discovery of one node to the discovery of all others
MIN_PATIENCE = 1.0  # [s] minimum time for the connection of a discovered node
MAX_ROWS = 100  # minimum number of tip poses that the monitor keeps
ARM_TIMEOUT = 0.5  # [s] time without a tip pose after which the arm counts as lost
GRAPH_PERIOD = 1.0  # [s] period of the search for other publishers and other teleop nodes
HELD_STATES = ("PAUSED", "FAULT", "NO_ROBOT")  # states in which the node ignores targets
NOT_FOLLOWING = ("REFUSED", "WAITING")  # states in which the node does not follow a new target

Update = Callable[[TeleopCommand, Teleop], None]


class SecondTeleopError(DlsIkError):
    """Another teleoperation that is already running in the namespace of the node."""


def open_publisher(namespace: str, node: str, patience: float) -> TargetPublisher:
    """Connect to ``ik_node``, and return the publisher of its targets.

    During the search for another teleoperation, this node has another name. Otherwise, a running
    teleoperation would find a second node of its own name, and stop the arm.

    Args:
        namespace: Namespace of ``ik_node``.
        node: Name of ``ik_node`` in the namespace.
        patience: Maximum time until ``ik_node`` is found [s].

    Raises:
        SecondTeleopError: If another teleoperation runs in this namespace.
        ServiceMissingError: If no node subscribes to targets.
        NoAnswerError: If the node publishes no tip poses.
    """
    begin = time.monotonic()
    _refuse_second(namespace, node, patience)
    left = max(begin + patience - time.monotonic(), min(patience, MIN_PATIENCE))
    publisher = TargetPublisher(namespace, node, left, TELEOP_NODE_NAME, MAX_ROWS)
    try:
        publisher.wait()
        if rival := _find_rival(publisher.node):
            raise SecondTeleopError(rival)
    except BaseException:
        publisher.__exit__()
        raise
    return publisher


def _refuse_second(namespace: str, node: str, patience: float) -> None:
    """Raise an error if another teleoperation runs; the arguments are those of `open_publisher`.

    Raises:
        SecondTeleopError: If another teleoperation runs in this namespace.
    """
    with closing(OwnNode(namespace, STARTING_NODE_NAME)) as own:
        space, names = own.node.get_namespace(), own.node.get_node_names_and_namespaces
        wait_until(lambda: (node, space) in names(), time.monotonic() + patience)
        sought = TELEOP_NODE_NAME, space
        if wait_until(lambda: sought in names(), time.monotonic() + NAMES_TIME):
            raise SecondTeleopError(_rival_words(*sought))


class TopicDevice:
    """Device whose axes, buttons or poses arrive as messages.

    Args:
        node: Node that receives the messages.
        config: Configuration with the topics.
    """

    def __init__(self, node: Node, config: TeleopConfig) -> None:
        self._node, self._log = node, Throttle(node)
        self._joy: tuple[float, Any] | None = None  # arrival [s] and the newest message
        # Arrival [s], the newest pose (4, 4), and the number of poses so far
        self._pose: tuple[float, Array, int] | None = None
        self._next_check, self._rivals = -np.inf, ""
        self._has_pose = config.has_pose
        self._needs_joy = not config.has_pose or bool(config.hold)
        buttons = config.buttons_topic if config.has_pose else config.source
        self._topics: list[str] = []
        if config.has_pose:
            self._subscribe(PoseStamped, config.source, self._take_pose)
        if self._needs_joy or config.buttons:
            self._subscribe(Joy, buttons, self._take_joy)
        self.name = " and ".join(self._topics)

    def read(self, now: float) -> DeviceState:
        """Return the newest state.

        If both a pose and buttons are needed, the state is as old as the older of the two messages.

        Args:
            now: Current time [s].
        """
        if now >= self._next_check:
            self._next_check, self._rivals = now + GRAPH_PERIOD, self._find_rivals()
        joy, pose = self._joy, self._pose
        if self._rivals:
            return DeviceState(now, problem=self._rivals)
        if (self._has_pose and pose is None) or (self._needs_joy and joy is None):
            return DeviceState(now, problem=f"waiting for messages on {self.name}")
        times = [pose[0]] if pose is not None else []
        times += [joy[0]] if joy is not None and self._needs_joy else []
        axes: dict[Control, float] = (
            {} if joy is None else {k: float(v) for k, v in enumerate(joy[1].axes)}
        )
        pressed = [] if joy is None else [k for k, held in enumerate(joy[1].buttons) if held]
        T, count = (None, 0) if pose is None else pose[1:]
        return DeviceState(min(times), axes, frozenset(pressed), T, count)

    def close(self) -> None:
        """Do nothing; the subscriptions end with the node."""

    def _subscribe(self, kind: Any, topic: str, store: Callable[[Any, int], None]) -> None:
        if not topic:
            raise OptionError("source and buttons_topic must name topics; got an empty text")
        try:
            subscribe_bounded(self._node, kind, topic, store, qos_profile_sensor_data, self._log)
        except InvalidTopicNameException as error:
            raise OptionError(
                f"{topic!r} is not the name of a topic; correct source or buttons_topic"
            ) from error
        self._topics.append(self._node.resolve_topic_name(topic))

    def _take_joy(self, message: Any, _: int = 0) -> None:
        self._joy = time.monotonic(), message

    def _take_pose(self, message: Any, _: int = 0) -> None:
        try:
            T = matrix_from_pose(message.pose)
        except PoseError as error:
            self._log.warn("pose", f"ignored a pose on {self._topics[0]}: {error}")
            return
        count = 1 if self._pose is None else self._pose[2] + 1
        self._pose = time.monotonic(), T, count

    def _find_rivals(self) -> str:
        """Return a text about a topic with several publishers, or an empty text."""
        for topic in self._topics:
            if self._node.count_publishers(topic) > 1:
                words = publisher_words(self._node, topic)
                return f"two devices at once: {topic} is {words}; stop all but one"
        return ""


def run(
    publisher: TargetPublisher,
    device: Device,
    config: TeleopConfig,
    ended: threading.Event,
    update: Update,
) -> None:
    """Send targets until `ended` is set; then stop the arm if the operator is moving it.

    Args:
        publisher: Publisher of the targets.
        device: Device of the operator.
        config: Configuration of the device.
        ended: Event that ends the loop.
        update: Function that is called in each cycle with the command and the `Teleop` object.
    """
    teleop, is_active = Teleop(config), False
    rival, next_check = "", -np.inf
    gripper = publisher.node.create_publisher(
        Float64MultiArray, config.gripper_topic, QoSProfile(depth=1)
    )
    deadline = time.monotonic()
    try:
        while not ended.wait(max(deadline - time.monotonic(), 0.0)):
            now = time.monotonic()
            deadline = max(deadline + 1.0 / config.rate, now)
            if now >= next_check:  # another teleoperation may have started at the same time
                next_check, rival = now + GRAPH_PERIOD, _find_rival(publisher.node)
            tip, problem = publisher.monitor.rows[-1].tip, rival or _arm_problem(publisher, now)
            command = teleop.step(device.read(now), tip, now, problem)
            is_active = command.is_active
            if is_active and publisher.monitor.state in NOT_FOLLOWING:
                command = command._replace(note=publisher.monitor.message)
            if command.twist is not None:
                publisher.send_twist(command.twist.tolist(), command.frame)
            if command.pose is not None:
                publisher.send_pose(command.pose)
            if command.gripper is not None:
                gripper.publish(Float64MultiArray(data=[command.gripper]))
            update(command, teleop)
    finally:
        if is_active:
            with ignore_sigint():  # a second Ctrl-C must not keep the arm from being stopped
                publisher.stop()


def _find_rival(node: Node) -> str:
    """Return a text about another teleoperation in this namespace, or an empty text."""
    own = node.get_name(), node.get_namespace()
    is_alone = node.get_node_names_and_namespaces().count(own) < 2
    return "" if is_alone else _rival_words(*own)


def _rival_words(name: str, namespace: str) -> str:
    """Return a text about another teleoperation in a namespace."""
    return (
        f"another {name} runs in the namespace {namespace}, or was killed less than 20 s ago; stop "
        "it first: two devices must not move the arm at once"
    )


def _arm_problem(publisher: TargetPublisher, now: float) -> str:
    """Return the reason why the arm cannot be moved; empty if it can."""
    monitor = publisher.monitor
    if now - monitor.rows[-1].time > ARM_TIMEOUT:
        return f"no tip pose from {publisher.name} for {ARM_TIMEOUT:g} s"
    return (monitor.message or monitor.state) if monitor.state in HELD_STATES else ""
