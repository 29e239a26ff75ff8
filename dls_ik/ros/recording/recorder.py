# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Recorder of the topics of a running node."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from dls_ik.ros.client.connection import ServiceClient
from dls_ik.ros.recording.definitions import message_class
from dls_ik.ros.recording.files import MessageWriter
from dls_ik.ros.recording.running_node import RunningNode
from dls_ik.ros.recording.topics import (
    DESCRIPTION_ROLE,
    INFO_TOPIC,
    SCENE_ROLE,
    SCENES_KIND,
    TEXT_KIND,
    RecordingInfo,
)
from dls_ik.ros.robot_source import DESCRIPTION_QOS, DESCRIPTION_TOPIC
from dls_ik.ros.subscriptions import call_every, with_time

SCAN_PERIOD = 1.0  # [s] period of the search for new topics, and of writing to the disk
QUEUE_DEPTH = 1000  # messages of a topic that wait for the recorder
SCENE_SERVICE_KIND = "moveit_msgs/srv/GetPlanningScene"
WHOLE_SCENE = 1023  # all components of moveit_msgs/PlanningSceneComponents


class Recorder:
    """Recorder of all topics of a node that have a role; topics that appear later are added.

    The time of a message is its time of arrival: the system time at the start of the recording,
    continued by the steady clock, so that it never jumps.

    Args:
        source: Connection to the node.
        make_writer: Function that opens the file. It is called in the thread that writes the file,
            because an sqlite connection can be used only in the thread that opened it. With
            this thread, a slow disk does not delay callbacks.

    Raises:
        RecordingError, OSError: If the file cannot be opened.

    Attributes:
        counts: Number of messages by topic.
        skipped: Type of each topic that is not recorded because its type is not installed.
        error: Error that ended the recording, for example a full disk; None: no error.
        last: Time of the last message that was written, since the start [s].
    """

    def __init__(self, source: RunningNode, make_writer: Callable[[], MessageWriter]) -> None:
        self.counts: dict[str, int] = {}
        self.skipped: dict[str, str] = {}
        self.error: OSError | None = None
        self.last = 0.0
        self._source, self._disk = source, ThreadPoolExecutor(1, "recorder")
        try:
            self._writer = self._disk.submit(make_writer).result()
        except BaseException:
            self._disk.shutdown()
            raise
        self._started, self._begin = time.time_ns(), time.monotonic_ns()
        self._known: set[tuple[str, str]] = set()
        self._subscribed: set[str] = set()  # a second type of a topic is not recorded
        self._info = RecordingInfo()

    def start(self) -> str:
        """Start the recording; return why the robot is not recorded, or an empty text.

        The file begins with the information about the node, the URDF and the whole scene.
        """
        self._info, missing = self._source.info()
        self._write_info()
        if not missing:
            self._write_robot()
        self._scan()
        self._write_scene()
        call_every(self._source.node, SCAN_PERIOD, self._scan)
        return missing

    def close(self) -> None:
        """Stop the recording, and close the file; call it once, after the last callback.

        Raises:
            OSError: If the file cannot be completed.
        """
        self._source.close()
        try:
            self._disk.submit(self._writer.close).result()
        finally:
            self._disk.shutdown()

    def _scan(self) -> None:
        """Flush the file, and subscribe to new topics."""
        self._submit(self._writer.flush)
        if self.error is not None:
            return
        new = {each: role for each, role in self._source.find_roles().items()
               if each not in self._known}  # fmt: skip
        for (topic, kind), role in new.items():
            self._known.add((topic, kind))
            try:
                message_type = message_class(kind)
            except ImportError:
                self.skipped[topic] = kind
                continue
            if topic in self._subscribed:
                continue
            self._subscribed.add(topic)
            self._add_topic(topic, kind, role)
            store = with_time(lambda data, sent=0, topic=topic: self._take(topic, data, sent))
            self._source.node.create_subscription(message_type, topic, store, _qos(role), raw=True)
        roles = {**self._info.roles, **{topic: role for (topic, _), role in new.items()}}
        if roles != self._info.roles:
            self._info = self._info._replace(roles=roles)
            self._write_info()

    def _take(self, topic: str, data: bytes, sent: int) -> None:
        """Write a serialized message of a topic."""
        now = time.monotonic_ns() - self._begin

        def write() -> None:
            self._writer.write(topic, self._started + now, sent, data)
            self.counts[topic] += 1
            self.last = 1e-9 * now

        self._submit(write)

    def _submit(self, write: Callable[[], None]) -> None:
        """Call a function in the thread that writes the file; skip the call after an error."""

        def run() -> None:
            if self.error is None:
                try:
                    write()
                except OSError as error:
                    self.error = error

        self._disk.submit(run)

    def _add_topic(self, topic: str, kind: str, role: str) -> None:
        if topic not in self.counts:
            self.counts[topic] = 0
            self._submit(lambda: self._writer.add_topic(topic, kind, role))

    def _write_message(self, topic: str, message: Any, kind: str, role: str) -> None:
        """Write a message that this process made."""
        self._add_topic(topic, kind, role)
        self._take(topic, serialize_message(message), 0)

    def _write_info(self) -> None:
        topic = f"{self._source.full_name}/{INFO_TOPIC}"
        self._write_message(topic, String(data=self._info.to_text()), TEXT_KIND, DESCRIPTION_ROLE)

    def _write_robot(self) -> None:
        """Write the URDF of the robot, in case no node publishes it."""
        urdf = self._source.described.urdf
        text = urdf.read_text(encoding="utf-8") if isinstance(urdf, Path) else urdf
        topic = self._source.node.resolve_topic_name(DESCRIPTION_TOPIC)
        if text:
            self._write_message(topic, String(data=text), TEXT_KIND, DESCRIPTION_ROLE)

    def _write_scene(self) -> None:
        """Write the whole scene, as changes before the recording are not published again."""
        source = self._source
        services = source.node.get_service_names_and_types_by_node(
            source.name, "/" + source.namespace.strip("/")
        )
        names = [name for name, kinds in services if SCENE_SERVICE_KIND in kinds]
        topics = source.topics(SCENE_ROLE, SCENES_KIND)
        if not names or not topics:
            return
        from moveit_msgs.srv import GetPlanningScene

        client = ServiceClient(source.node, GetPlanningScene, names[0])
        try:
            request = GetPlanningScene.Request()
            request.components.components = WHOLE_SCENE
            answer = client.call(source.patience, components=request.components)
            self._write_message(topics[0][0], answer.scene, SCENES_KIND, SCENE_ROLE)
        finally:
            client.close()


def _qos(role: str) -> QoSProfile:
    """Return the settings of a subscription; best effort also matches reliable publishers."""
    if role == DESCRIPTION_ROLE:
        return DESCRIPTION_QOS
    reliability = (
        ReliabilityPolicy.RELIABLE if role == SCENE_ROLE else ReliabilityPolicy.BEST_EFFORT
    )
    return QoSProfile(
        depth=QUEUE_DEPTH, reliability=reliability, durability=DurabilityPolicy.VOLATILE
    )
