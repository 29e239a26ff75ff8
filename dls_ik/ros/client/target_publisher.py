# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Client of the topics of ``ik_node``: publishes targets, and monitors the state of the arm."""

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple, Protocol

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.ros.client.connection import (
    NoAnswerError,
    OwnNode,
    ServiceMissingError,
    wait_until,
)
from dls_ik.ros.frames import fill_pose, matrix_from_pose, pose_errors
from dls_ik.ros.subscriptions import merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.servo.state import ServoState
from dls_ik.text import listing

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # moveit_msgs older than 2.3
    ServoStatus = None

PUBLISHER_NODE_NAME = "dls_ik_target_publisher"  # name of the client's node
QUEUE = QoSProfile(depth=10)
UNKNOWN_STATE = "UNKNOWN"  # name of the state before the first status, or after an unknown status
RECENT = 4  # number of last cycles whose messages may still arrive, in any order
POSE_TOPIC = "target_pose"
TWIST_TOPIC = "target_twist"
STANDSTILL = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
STOP_PERIOD = 0.02  # [s] period of the messages that stop the arm
RESPONSE_TIME = 0.3  # [s] time after the start of a stream until the node's state refers to it
HOPELESS_TIME = 2.0  # [s] time in states without progress after which a stream is stopped
TIP_TIMEOUT = 5.0  # [s] time without a tip pose after which the node counts as lost
MAX_REACHED_ERROR = 1e-4  # [m, rad] maximum error of a reached pose if no state is received
REFUSALS = ("REFUSED", "FAULT", "PAUSED", "NO_ROBOT")
HOPELESS = ("UNREACHABLE", "STALLED")

Update = Callable[[], None]


class CycleRow(NamedTuple):
    """Messages of the node that belong to one control cycle."""

    time: float  # arrival time of the tip pose on the steady clock [s]
    state: str  # name of the ServoState, or UNKNOWN_STATE
    message: str  # message of the last status
    frame: str  # frame of the tip pose: the root of the robot
    tip: Array  # (4, 4) T_root_tip
    target: Array | None  # (4, 4) T_root_target last sent; None: no pose, or in another frame
    q: dict[str, float]  # joint positions [rad or m]: those with the stamp of the tip pose, or last
    stamp: tuple[int, int] = (0, 0)  # stamp of the tip pose, [s] and [ns]

    def errors(self) -> tuple[float, float]:
        """Return the position error [m] and the rotation error [rad] of the tip from the target.

        Both are NaN if `target` is None.
        """
        if self.target is None:
            return np.nan, np.nan
        return pose_errors(self.tip, self.target)


class NodeMonitor:
    """Monitor of ``ik_node``, which records a row for each received tip pose.

    Args:
        node: ROS node of the client.
        name: Name of the monitored node.
        topics: Names of the topics of status, tip pose and joint states; None: the names without
            remapping.
        max_rows: Minimum number of newest rows that are kept; None: all rows are kept.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        topics: tuple[str, str, str] | None = None,
        max_rows: int | None = None,
    ) -> None:
        self._max_rows = max_rows
        self.rows: list[CycleRow] = []
        self.target: tuple[str, Array] | None = None  # frame and pose of the last sent target
        self.state, self.message, self.state_time = UNKNOWN_STATE, "", -np.inf
        self.q: dict[str, float] = {}
        self._recent: deque[tuple[tuple[int, int], dict[str, float]]] = deque(maxlen=RECENT)
        subscribe = partial(subscribe_bounded, node, log=Throttle(node))
        status, tip, joints = topics or (f"{name}/status", f"{name}/tip_pose", "joint_states")
        if ServoStatus is not None:
            subscribe(ServoStatus, status, self._take_status, QUEUE)
        subscribe(PoseStamped, tip, self._take_tip, QUEUE)
        subscribe(JointState, joints, self._take_joints, qos_profile_sensor_data)

    def refusal(self, begin: float) -> str:
        """Return the reason why the node refuses the targets of a stream.

        The text is empty if the node does not refuse the targets, or has not answered yet.

        Args:
            begin: Start of the stream on the steady clock [s].
        """
        if self.state not in REFUSALS or self.state_time < begin + RESPONSE_TIME:
            return ""
        return self.message or self.state

    def has_reached(self, since: float) -> bool:
        """Return whether the arm has reached the last target.

        Args:
            since: Time at which this target was first sent, on the steady clock [s].
        """
        row = self.rows[-1]
        if row.time < since + RESPONSE_TIME:
            return False
        if self.state == UNKNOWN_STATE:
            return max(row.errors()) < MAX_REACHED_ERROR
        return self.state == "REACHED"

    def is_hopeless(self, since: float) -> bool:
        """Return whether the arm has made no progress to the last target during HOPELESS_TIME.

        Args:
            since: Time at which this target was first sent, on the steady clock [s].
        """
        now = time.monotonic()
        if now < since + HOPELESS_TIME:
            return False
        recent = list(takewhile(lambda row: row.time > now - HOPELESS_TIME, reversed(self.rows)))
        return bool(recent) and all(row.state in HOPELESS for row in recent)

    def _take_status(self, message: Any, _: int = 0) -> None:
        state = ServoState.from_message(message.code, message.message)
        self.state, self.message = UNKNOWN_STATE if state is None else state.name, message.message
        self.state_time = time.monotonic()

    def _take_joints(self, message: Any, _: int = 0) -> None:
        self.q = merge_bounded(self.q, dict(zip(message.name, message.position, strict=False)))
        stamp = _stamp(message)
        self._recent.append((stamp, self.q))
        for i in range(len(self.rows) - 1, max(len(self.rows) - RECENT, 0) - 1, -1):
            if self.rows[i].stamp == stamp:  # the tip pose of this cycle arrived before
                self.rows[i] = self.rows[i]._replace(q=self.q)

    def _take_tip(self, message: Any, _: int = 0) -> None:
        frame, tip = message.header.frame_id, matrix_from_pose(message.pose)
        target = None
        if self.target is not None and self.target[0] in ("", frame):
            target = self.target[1]
        stamp = _stamp(message)
        q = next((q for known, q in self._recent if known == stamp), self.q)
        now = time.monotonic()
        self.rows.append(CycleRow(now, self.state, self.message, frame, tip, target, q, stamp))
        if self._max_rows is not None and len(self.rows) > 2 * self._max_rows:
            del self.rows[: -self._max_rows]


def _stamp(message: Any) -> tuple[int, int]:
    return message.header.stamp.sec, message.header.stamp.nanosec


class TargetPublisher:
    """Publisher of targets for ``ik_node``, with a monitor of the state, tip and joints of the arm.

    The publisher creates its own ROS node and thread; use it as a context manager.

    Args:
        namespace: Namespace of ``ik_node``.
        node: Name of ``ik_node`` in the namespace.
        patience: Maximum time until ``ik_node`` is found [s].
        own_name: Name of the publisher's own node.
        max_rows: Minimum number of newest rows that the monitor keeps; None: it keeps all rows.
    """

    def __init__(
        self,
        namespace: str = "",
        node: str = "dls_ik",
        patience: float = 5.0,
        own_name: str = PUBLISHER_NODE_NAME,
        max_rows: int | None = None,
    ) -> None:
        self._own = OwnNode(namespace, own_name)
        self.node, self.name, self.patience = self._own.node, node, patience
        self.monitor = NodeMonitor(self.node, node, max_rows=max_rows)
        self._pose = self.node.create_publisher(PoseStamped, POSE_TOPIC, QoSProfile(depth=1))
        self._twist = self.node.create_publisher(TwistStamped, TWIST_TOPIC, QoSProfile(depth=1))
        self.sent = 0

    def __enter__(self) -> "TargetPublisher":
        """Return the publisher."""
        return self

    def __exit__(self, *_: object) -> None:
        """Destroy the node of the publisher."""
        self._own.close()

    def wait(self) -> CycleRow:
        """Wait until ``ik_node`` accepts targets and publishes tip poses; return the last row.

        Raises:
            ServiceMissingError: If no node subscribes to targets within `patience`.
            NoAnswerError: If a node subscribes to targets but publishes no tip poses in this time.
        """
        deadline = time.monotonic() + self.patience
        for publisher in (self._pose, self._twist):
            if not wait_until(publisher.get_subscription_count, deadline):
                raise ServiceMissingError(self._missing(publisher))
        if not wait_until(lambda: self.monitor.rows, deadline):
            raise NoAnswerError(self._silent())
        return self.monitor.rows[-1]

    def send_pose(self, T: Array, frame: str = "") -> None:
        """Publish a target pose ``T_frame_tip`` (4, 4).

        Args:
            T: (4, 4) pose of the tip.
            frame: Frame of the pose; empty: the root of the robot.
        """
        message = PoseStamped()
        message.header.frame_id = frame
        fill_pose(message.pose, T)
        self.monitor.target = (frame, T)
        self._pose.publish(message)
        self.sent += 1

    def send_twist(self, V: Sequence[float], frame: str = "") -> None:
        """Publish a target twist of the tip.

        Args:
            V: (6,) linear velocity [m/s] and angular velocity [rad/s] along the axes of `frame`.
            frame: Frame of the twist; empty: the root of the robot.
        """
        message = TwistStamped()
        message.header.frame_id = frame
        linear, angular = message.twist.linear, message.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, V)
        self.monitor.target = None
        self._twist.publish(message)
        self.sent += 1

    def stop(self) -> None:
        """Stop the arm by a twist of 0, sent several times because a message may be lost."""
        sent, target = self.sent, self.monitor.target
        for _ in range(3):
            self.send_twist(STANDSTILL)
            time.sleep(STOP_PERIOD)
        self.sent, self.monitor.target = sent, target

    def _missing(self, publisher: Any) -> str:
        asked = self.node.resolve_topic_name(publisher.topic_name)
        kind = {POSE_TOPIC: "PoseStamped", TWIST_TOPIC: "TwistStamped"}[asked.rpartition("/")[2]]
        own = self.node.resolve_topic_name(f"{self.name}/tip_pose")
        others = [
            name
            for name, kinds in self.node.get_topic_names_and_types()
            if f"geometry_msgs/msg/{kind}" in kinds
            and name not in (asked, own)
            and self.node.count_subscribers(name)
        ]
        known = f"subscribed topics of this type: {listing(others)}"
        return f"no node subscribes to {asked} (geometry_msgs/msg/{kind}); {known}"

    def _silent(self) -> str:
        if self.monitor.state == "NO_ROBOT":
            return "the node has no robot yet; it is waiting for a robot description"
        topic = self.node.resolve_topic_name(f"{self.name}/tip_pose")
        return (
            f"a node subscribes to targets, but no message arrived on {topic} within "
            f"{self.patience:g} s; the name of the node may differ from {self.name!r}"
        )


class StreamPublisher(Protocol):
    """Publisher of the targets of a stream."""

    monitor: NodeMonitor
    sent: int  # number of sent targets

    def stop(self) -> None:
        """Stop the arm."""


class StreamOutcome(NamedTuple):
    """Result of a stream of targets."""

    reached: bool | None  # whether the arm reached the last pose; None for a twist
    refused: str  # reason why the node refused the targets; empty if it did not refuse them
    lost: bool  # whether the node stopped publishing tip poses
    interrupted: bool  # whether Ctrl-C stopped the stream
    begin: float  # start of the stream on the steady clock [s]
    end: float  # end of the stream on the steady clock [s]
    sent: int  # number of sent targets
    rows: list[CycleRow]  # rows received during the stream


def stream_poses(
    publisher: TargetPublisher,
    times: Array,
    poses: Array,
    frame: str,
    rate: float,
    patience: float,
    update: Update,
) -> StreamOutcome:
    """Publish target poses at given times, then repeat the last pose until the arm reaches it.

    If the arm does not reach the last pose within `patience`, stop the arm.

    Args:
        publisher: Publisher of the targets.
        times: (k,) times of the poses since the start of the stream [s].
        poses: (k, 4, 4) poses ``T_frame_tip``.
        frame: Frame of the poses; empty: the root of the robot.
        rate: Rate at which the last pose is repeated [Hz].
        patience: Maximum time after the last pose until the arm has reached it [s].
        update: Function that is called after each message.
    """
    last = float(times[-1])

    def messages() -> Iterator[float]:
        for t, T in zip(times.tolist(), poses, strict=True):
            yield t
            publisher.send_pose(T, frame)
        k = 0
        while True:
            k += 1
            yield last + k / rate
            publisher.send_pose(poses[-1], frame)

    return run_stream(publisher, messages(), last, last + patience, update, has_goal=True)


def stream_twist(
    publisher: TargetPublisher,
    V: Sequence[float],
    frame: str,
    rate: float,
    duration: float,
    update: Update,
) -> StreamOutcome:
    """Publish a target twist repeatedly for a duration, then stop the arm.

    Args:
        publisher: Publisher of the targets.
        V: (6,) linear velocity [m/s] and angular velocity [rad/s] along the axes of `frame`.
        frame: Frame of the twist; empty: the root of the robot.
        rate: Rate of the messages [Hz].
        duration: Duration of the stream [s].
        update: Function that is called after each message.
    """

    def messages() -> Iterator[float]:
        for k in range(max(1, round(duration * rate))):
            yield k / rate
            publisher.send_twist(V, frame)
        yield duration

    return run_stream(publisher, messages(), duration, np.inf, update, has_goal=False)


def run_stream(
    publisher: StreamPublisher,
    messages: Iterator[float],
    last: float,
    latest: float,
    update: Update,
    has_goal: bool,
) -> StreamOutcome:
    """Send the messages of a stream; stop the arm at the end, unless it has reached a last pose.

    The stream ends early if the last pose is reached, the node refuses targets or is lost, the arm
    makes no progress, or `latest` has passed.

    Args:
        publisher: Publisher of the targets.
        messages: Generator that yields the time of the next message since the start of the stream
            [s], and sends this message when the generator is resumed.
        last: Time of the last different target since the start of the stream [s].
        latest: Time since the start of the stream at which the stream ends [s].
        update: Function that is called after each message.
        has_goal: Whether the last target is a pose that the arm should reach.
    """
    monitor = publisher.monitor
    first, publisher.sent = len(monitor.rows), 0
    begin = time.monotonic()
    reached, refused, lost, interrupted = False, "", False, False
    try:
        for t in messages:
            time.sleep(max(begin + t - time.monotonic(), 0.0))
            update()
            refused = monitor.refusal(begin)
            lost = time.monotonic() > max(begin, monitor.rows[-1].time) + TIP_TIMEOUT
            reached = has_goal and monitor.has_reached(begin + last)
            hopeless = has_goal and monitor.is_hopeless(begin + last)
            if refused or lost or reached or hopeless or t > latest:
                break
    except KeyboardInterrupt:
        interrupted = True
    end = time.monotonic()
    rows = monitor.rows[first:]
    if not reached:
        with ignore_sigint():  # a second Ctrl-C must not keep the arm from being stopped
            publisher.stop()
    has_reached = reached if has_goal else None
    sent = publisher.sent
    return StreamOutcome(has_reached, refused, lost, interrupted, begin, end, sent, rows)


@contextmanager
def ignore_sigint() -> Iterator[None]:
    """Ignore SIGINT (Ctrl-C) in the context; no effect in threads other than the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
