# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A client of the topics of a node: publishes targets, and keeps what the node tells of its arm."""

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

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
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

NAME = "dls_ik_target_publisher"  # of its node
QUEUE = QoSProfile(depth=10)
UNKNOWN = "UNKNOWN"  # a state that no message names
RECENT = 4  # cycles whose messages may come in another order
POSE, TWIST = "target_pose", "target_twist"
STANDSTILL = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
STOP_PERIOD = 0.02  # [s] between the messages that stop the arm
RESPONSE_TIME = 0.3  # [s] after which the state of the node is about the targets of this stream
HOPELESS_TIME = 2.0  # [s] of a hopeless state after which a pose is given up
SILENCE = 5.0  # [s] after which the node counts as lost
REACHED_ERROR = 1e-4  # [m, rad] that counts as reached if no state says so
REFUSALS = ("REFUSED", "FAULT", "PAUSED", "NO_ROBOT")
HOPELESS = ("UNREACHABLE", "STALLED")

Update = Callable[[], None]


class CycleRow(NamedTuple):
    """One cycle of the node, as its messages tell it."""

    time: float  # steady [s]
    state: str  # a name of ServoState, or UNKNOWN
    message: str
    frame: str  # in which the tip is given: the root of the robot
    tip: Array  # (4, 4) T_root_tip
    target: Array | None  # (4, 4) last one sent, in the root frame; None: no pose in that frame
    q: dict[str, float]  # [rad or m] by joint, of the same cycle where the node says so
    stamp: tuple[int, int] = (0, 0)  # of the tip, which joint_states of that cycle have too

    def errors(self) -> tuple[float, float]:
        """Return the errors from tip to target, [m] and [rad]; nan without a target."""
        if self.target is None:
            return np.nan, np.nan
        return pose_errors(self.tip, self.target)


class NodeMonitor:
    """Keeps a row for each pose of the tip, with the state and joints of the same cycle."""

    def __init__(self, node: Node, name: str) -> None:
        self.rows: list[CycleRow] = []
        self.target: tuple[str, Array] | None = None  # last one sent, with its frame
        self.state, self.message, self.state_time = UNKNOWN, "", -np.inf
        self.q: dict[str, float] = {}
        self._recent: deque[tuple[tuple[int, int], dict[str, float]]] = deque(maxlen=RECENT)
        subscribe = partial(subscribe_bounded, node, log=Throttle(node))
        if ServoStatus is not None:
            subscribe(ServoStatus, f"{name}/status", self._take_status, QUEUE)
        subscribe(PoseStamped, f"{name}/tip_pose", self._take_tip, QUEUE)
        subscribe(JointState, "joint_states", self._take_joints, qos_profile_sensor_data)

    def refusal(self, begin: float) -> str:
        """Return why the node does not follow targets sent since a time [s]; empty if it does."""
        if self.state not in REFUSALS or self.state_time < begin + RESPONSE_TIME:
            return ""
        return self.message or self.state

    def has_reached(self, since: float) -> bool:
        """Return whether the arm is at the target that was sent at a time [s]."""
        row = self.rows[-1]
        if row.time < since + RESPONSE_TIME:
            return False
        if self.state == UNKNOWN:
            return max(row.errors()) < REACHED_ERROR
        return self.state == "REACHED"

    def is_hopeless(self, since: float) -> bool:
        """Return whether the node comes no nearer to the target since HOPELESS_TIME."""
        now = time.monotonic()
        if now < since + HOPELESS_TIME:
            return False
        recent = list(takewhile(lambda row: row.time > now - HOPELESS_TIME, reversed(self.rows)))
        return bool(recent) and all(row.state in HOPELESS for row in recent)

    def _take_status(self, message: Any, _: int = 0) -> None:
        self.state, self.message = state_name(message.code, message.message), message.message
        self.state_time = time.monotonic()

    def _take_joints(self, message: Any, _: int = 0) -> None:
        self.q = merge_bounded(self.q, dict(zip(message.name, message.position, strict=False)))
        stamp = _stamp(message)
        self._recent.append((stamp, self.q))
        for i in range(len(self.rows) - 1, max(len(self.rows) - RECENT, 0) - 1, -1):
            if self.rows[i].stamp == stamp:  # they came after the tip of their cycle
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


def _stamp(message: Any) -> tuple[int, int]:
    return message.header.stamp.sec, message.header.stamp.nanosec


def state_name(code: int, message: str) -> str:
    """Return the name of the state that a status is about, by its number and its sentence."""
    for state in ServoState:
        if state.code == code and message.startswith(state.explanation):
            return state.name
    same_code = [state.name for state in ServoState if state.code == code]
    return same_code[0] if len(same_code) == 1 else UNKNOWN


class TargetPublisher:
    """Publishes targets for a node, and monitors its state, tip and joints.

    It has a node of its own and a thread; use it as a context manager.

    Args:
        namespace: namespace of the node.
        node: its name there.
        patience: longest time for the node to be found [s].
    """

    def __init__(self, namespace: str = "", node: str = "dls_ik", patience: float = 5.0) -> None:
        self._own = OwnNode(namespace, NAME)
        self.node, self.name, self.patience = self._own.node, node, patience
        self.monitor = NodeMonitor(self.node, node)
        self._pose = self.node.create_publisher(PoseStamped, POSE, QoSProfile(depth=1))
        self._twist = self.node.create_publisher(TwistStamped, TWIST, QoSProfile(depth=1))
        self.sent = 0

    def __enter__(self) -> "TargetPublisher":
        """Return the publisher."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the ROS graph."""
        self._own.close()

    def wait(self) -> CycleRow:
        """Wait for the node; return the first row.

        Raises:
            ServiceMissingError: If no node subscribes to targets.
            NoAnswerError: If a node subscribes to targets but publishes nothing.
        """
        deadline = time.monotonic() + self.patience
        for publisher in (self._pose, self._twist):
            if not wait_until(publisher.get_subscription_count, deadline):
                raise ServiceMissingError(self._missing(publisher))
        if not wait_until(lambda: self.monitor.rows, deadline):
            raise NoAnswerError(self._silent())
        return self.monitor.rows[-1]

    def send_pose(self, T: Array, frame: str = "") -> None:
        """Send a pose (4, 4) in a frame; an empty frame is the root of the robot."""
        message = PoseStamped()
        message.header.frame_id = frame
        fill_pose(message.pose, T)
        self.monitor.target = (frame, T)
        self._pose.publish(message)
        self.sent += 1

    def send_twist(self, V: Sequence[float], frame: str = "") -> None:
        """Send a twist (6,) [m/s, rad/s], linear first."""
        message = TwistStamped()
        message.header.frame_id = frame
        linear, angular = message.twist.linear, message.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, V)
        self.monitor.target = None
        self._twist.publish(message)
        self.sent += 1

    def stop(self) -> None:
        """Stop the arm, with several messages, as one may be lost."""
        sent, target = self.sent, self.monitor.target
        for _ in range(3):
            self.send_twist(STANDSTILL)
            time.sleep(STOP_PERIOD)
        self.sent, self.monitor.target = sent, target

    def _missing(self, publisher: Any) -> str:
        asked = self.node.resolve_topic_name(publisher.topic_name)
        kind = {POSE: "PoseStamped", TWIST: "TwistStamped"}[asked.rpartition("/")[2]]
        own = self.node.resolve_topic_name(f"{self.name}/tip_pose")
        others = [
            name
            for name, kinds in self.node.get_topic_names_and_types()
            if f"geometry_msgs/msg/{kind}" in kinds
            and name not in (asked, own)
            and self.node.count_subscribers(name)
        ]
        found = f"there is {listing(others)}" if others else "nobody here takes such targets"
        return f"nobody listens on {asked} (geometry_msgs/msg/{kind}); {found}"

    def _silent(self) -> str:
        if self.monitor.state == "NO_ROBOT":
            return "the node has no robot yet: it waits for a description"
        topic = self.node.resolve_topic_name(f"{self.name}/tip_pose")
        return (
            f"somebody takes targets, but nothing comes on {topic} within {self.patience:g} s; is "
            f"the node's name another one than {self.name}?"
        )


class StreamOutcome(NamedTuple):
    """The end of a stream; times on the steady clock [s], but for `started`."""

    reached: bool | None  # the last pose; None of a twist
    refused: str  # why the node does not follow; empty if it does
    lost: bool  # the node has gone
    interrupted: bool
    begin: float
    end: float
    sent: int
    rows: list[CycleRow]  # received meanwhile
    started: float  # `begin` on the system's clock [s since 1970]


def stream_poses(
    publisher: TargetPublisher,
    times: Array,
    poses: Array,
    frame: str,
    rate: float,
    patience: float,
    update: Update,
) -> StreamOutcome:
    """Send poses (k, 4, 4) at times [s], then the last one until the arm is there.

    Args:
        rate: rate of sending the last one [Hz].
        patience: for the arm to reach it [s].
        update: called after each message.
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

    return _stream(publisher, messages(), last, last + patience, update, has_goal=True)


def stream_twist(
    publisher: TargetPublisher,
    V: Sequence[float],
    frame: str,
    rate: float,
    duration: float,
    update: Update,
) -> StreamOutcome:
    """Send a twist (6,) [m/s, rad/s] for a time [s], then stop the arm."""

    def messages() -> Iterator[float]:
        for k in range(max(1, round(duration * rate))):
            yield k / rate
            publisher.send_twist(V, frame)
        yield duration

    return _stream(publisher, messages(), duration, np.inf, update, has_goal=False)


def _stream(
    publisher: TargetPublisher,
    messages: Iterator[float],
    last: float,
    latest: float,
    update: Update,
    has_goal: bool,
) -> StreamOutcome:
    """Send messages at their times; from `last` on the arm may be at its goal, until `latest`."""
    monitor = publisher.monitor
    first, publisher.sent = len(monitor.rows), 0
    begin, started = time.monotonic(), time.time()
    reached, refused, lost, interrupted = False, "", False, False
    try:
        for t in messages:
            time.sleep(max(begin + t - time.monotonic(), 0.0))
            update()
            refused = monitor.refusal(begin)
            lost = time.monotonic() > max(begin, monitor.rows[-1].time) + SILENCE
            reached = has_goal and monitor.has_reached(begin + last)
            hopeless = has_goal and monitor.is_hopeless(begin + last)
            if refused or lost or reached or hopeless or t > latest:
                break
    except KeyboardInterrupt:
        interrupted = True
    end = time.monotonic()
    rows = monitor.rows[first:]
    if not reached:
        with ignore_sigint():  # another Ctrl-C must not keep the arm from stopping
            publisher.stop()
    return StreamOutcome(
        reached if has_goal else None,
        refused,
        lost,
        interrupted,
        begin,
        end,
        publisher.sent,
        rows,
        started,
    )


@contextmanager
def ignore_sigint() -> Iterator[None]:
    """Ignore Ctrl-C, which reaches the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
