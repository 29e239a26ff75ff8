"""A client of the topics of a node: targets out at a steady rate, state, tip and joints in."""

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
from dls_ik.ros.client.connection import NoAnswerError, OwnHost, ServiceMissingError
from dls_ik.ros.frames import fill_pose, matrix_from_pose
from dls_ik.ros.subscriptions import merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.servo.state import ServoState
from dls_ik.text import listing

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

QUEUE = QoSProfile(depth=10)
UNKNOWN = "UNKNOWN"  # a state that no message names
RECENT = 4  # cycles whose messages may come in another order
POSE, TWIST = "target_pose", "target_twist"
STANDSTILL = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
POLL, GRACE = 0.01, 0.02  # [s] between looks, and between the messages that stop the arm
NEW = 0.3  # [s] after which what the node says is about the targets of this stream
LASTING = 2.0  # [s] that a state without hope lasts until it is given up
SILENCE = 5.0  # [s] after which the node counts as gone
SMALL = 1e-4  # [m, rad] error that counts as reached where no state says so
REFUSALS = ("REFUSED", "FAULT", "PAUSED", "NO_ROBOT")
HOPELESS = ("UNREACHABLE", "STALLED")

Tell = Callable[[], None]


class Row(NamedTuple):
    """One cycle of the node, as it was heard."""

    time: float  # steady [s]
    state: str  # a name of ServoState, or UNKNOWN
    words: str
    frame: str  # of the tip: the root of the robot
    tip: Array  # (4, 4) T_root_tip
    target: Array | None  # (4, 4) what was sent last, in the root frame; None: no pose there
    q: dict[str, float]  # [rad or m] by joint, of the same cycle where the node says so
    stamp: tuple[int, int] = (0, 0)  # of the tip, which joint_states of that cycle have too

    def errors(self) -> tuple[float, float]:
        """From tip to target, [m] and [rad]; nan where there is no target."""
        if self.target is None:
            return np.nan, np.nan
        return pose_errors(self.tip, self.target)


def pose_errors(T: Array, other: Array) -> tuple[float, float]:
    """Distance [m] and angle [rad], right up to half a turn, between two poses (4, 4)."""
    R = T[:3, :3].T @ other[:3, :3]
    sine = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    angle = np.arctan2(np.linalg.norm(sine), np.trace(R) - 1.0)
    return float(np.linalg.norm(other[:3, 3] - T[:3, 3])), float(angle)


class Heard:
    """Keeps a row for every pose of the tip that comes; other messages give what goes with it."""

    def __init__(self, node: Node, name: str) -> None:
        self.rows: list[Row] = []
        self.target: tuple[str, Array] | None = None  # what was sent last, with its frame
        self.state, self.words, self.state_time = UNKNOWN, "", -np.inf
        self.q: dict[str, float] = {}
        self._lately: deque[tuple[tuple[int, int], dict[str, float]]] = deque(maxlen=RECENT)
        subscribe = partial(subscribe_bounded, node, log=Throttle(node))
        if ServoStatus is not None:
            subscribe(ServoStatus, f"{name}/status", self._take_status, QUEUE)
        subscribe(PoseStamped, f"{name}/tip_pose", self._take_tip, QUEUE)
        subscribe(JointState, "joint_states", self._take_joints, qos_profile_sensor_data)

    def _take_status(self, message: Any, _: int = 0) -> None:
        self.state, self.words = state_name(message.code, message.message), message.message
        self.state_time = time.monotonic()

    def _take_joints(self, message: Any, _: int = 0) -> None:
        self.q = merge_bounded(self.q, dict(zip(message.name, message.position, strict=False)))
        stamp = _stamp(message)
        self._lately.append((stamp, self.q))
        for i in range(len(self.rows) - 1, max(len(self.rows) - RECENT, 0) - 1, -1):
            if self.rows[i].stamp == stamp:  # they came after the tip of their cycle
                self.rows[i] = self.rows[i]._replace(q=self.q)

    def _take_tip(self, message: Any, _: int = 0) -> None:
        frame, tip = message.header.frame_id, matrix_from_pose(message.pose)
        target = None
        if self.target is not None and self.target[0] in ("", frame):
            target = self.target[1]
        stamp = _stamp(message)
        q = next((q for known, q in self._lately if known == stamp), self.q)
        now = time.monotonic()
        self.rows.append(Row(now, self.state, self.words, frame, tip, target, q, stamp))


def _stamp(message: Any) -> tuple[int, int]:
    return message.header.stamp.sec, message.header.stamp.nanosec


def state_name(code: int, words: str) -> str:
    """The state that a status is about: the node sends a number and a sentence."""
    for state in ServoState:
        if state.code == code and words.startswith(state.explanation):
            return state.name
    alike = [state.name for state in ServoState if state.code == code]
    return alike[0] if len(alike) == 1 else UNKNOWN


class Streamer:
    """A client of the topics of a node: targets out, state, tip and joints in.

    It has a node of its own and a thread; use it as a context.

    Args:
        namespace: of the node.
        node: its name there.
        patience: how long it may take to be found [s].
    """

    def __init__(self, namespace: str = "", node: str = "dls_ik", patience: float = 5.0) -> None:
        self._host = OwnHost(namespace)
        self.node, self.name, self.patience = self._host.node, node, patience
        self.heard = Heard(self.node, node)
        ways = QoSProfile(depth=1)
        self._pose = self.node.create_publisher(PoseStamped, POSE, ways)
        self._twist = self.node.create_publisher(TwistStamped, TWIST, ways)
        self.sent = 0

    def __enter__(self) -> "Streamer":
        """Nothing to do: all is there."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the ROS graph."""
        self._host.close()

    def wait(self) -> Row:
        """Wait for the node; return the first that is heard of it.

        Raises:
            ServiceMissingError: nobody takes targets.
            NoAnswerError: somebody does, but says nothing.
        """
        deadline = time.monotonic() + self.patience
        for publisher in (self._pose, self._twist):
            while not publisher.get_subscription_count():
                if time.monotonic() > deadline:
                    raise ServiceMissingError(self._missing(publisher))
                time.sleep(POLL)
        while not self.heard.rows:
            if time.monotonic() > deadline:
                if self.heard.state == "NO_ROBOT":
                    raise NoAnswerError("the node has no robot yet: it waits for a description")
                topic = self.node.resolve_topic_name(f"{self.name}/tip_pose")
                raise NoAnswerError(
                    f"somebody takes targets, but nothing comes on {topic} within "
                    f"{self.patience:g} s; is the node's name another one than {self.name}?"
                )
            time.sleep(POLL)
        return self.heard.rows[-1]

    def send_pose(self, T: Array, frame: str = "") -> None:
        """Send a pose (4, 4) in a frame; without a name the root of the robot."""
        message = PoseStamped()
        message.header.frame_id = frame
        fill_pose(message.pose, T)
        self.heard.target = (frame, T)
        self._pose.publish(message)
        self.sent += 1

    def send_twist(self, V: Sequence[float], frame: str = "") -> None:
        """Send a twist (6,) [m/s, rad/s], linear first."""
        message = TwistStamped()
        message.header.frame_id = frame
        linear, angular = message.twist.linear, message.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, V)
        self.heard.target = None
        self._twist.publish(message)
        self.sent += 1

    def stop(self) -> None:
        """Stop the arm, whatever it was told; a message that is lost does not matter."""
        sent, target = self.sent, self.heard.target
        for _ in range(3):
            self.send_twist(STANDSTILL)
            time.sleep(GRACE)
        self.sent, self.heard.target = sent, target

    def _missing(self, publisher: Any) -> str:
        asked = self.node.resolve_topic_name(publisher.topic_name)
        kind = {POSE: "PoseStamped", TWIST: "TwistStamped"}[asked.rpartition("/")[2]]
        own = self.node.resolve_topic_name(f"{self.name}/tip_pose")
        there = self.node.get_topic_names_and_types()
        others = [
            name for name, kinds in there
            if f"geometry_msgs/msg/{kind}" in kinds and name not in (asked, own)
            and self.node.count_subscribers(name)
        ]  # fmt: skip
        found = f"there is {listing(others)}" if others else "nobody here takes such targets"
        return f"nobody listens on {asked} (geometry_msgs/msg/{kind}); {found}"


@contextmanager
def deaf() -> Iterator[None]:
    """Pass Ctrl-C over; only the main thread hears it anyway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Outcome(NamedTuple):
    """How a stream ended; times on the steady clock [s]."""

    reached: bool | None  # the last pose; None of a twist
    refused: str  # why the node does not follow; empty where it does
    lost: bool  # the node has gone
    interrupted: bool
    begin: float
    end: float
    sent: int
    rows: list[Row]  # that came meanwhile


def stream_poses(
    streamer: Streamer,
    times: Array,
    poses: Array,
    frame: str,
    rate: float,
    patience: float,
    tell: Tell,
) -> Outcome:
    """Send poses (k, 4, 4) at times [s], then the last one on until the arm is there.

    Args:
        rate: of sending the last one on [Hz].
        patience: for that [s].
        tell: called after each message.
    """
    last = float(times[-1])

    def messages() -> Iterator[float]:
        for t, T in zip(times.tolist(), poses, strict=True):
            yield t
            streamer.send_pose(T, frame)
        k = 0
        while True:
            k += 1
            yield last + k / rate
            streamer.send_pose(poses[-1], frame)

    return _stream(streamer, messages(), last, last + patience, tell, waits=True)


def stream_twist(
    streamer: Streamer, V: Sequence[float], frame: str, rate: float, duration: float, tell: Tell
) -> Outcome:
    """Send a twist (6,) [m/s, rad/s] for a time [s], then stop the arm."""

    def messages() -> Iterator[float]:
        for k in range(max(1, round(duration * rate))):
            yield k / rate
            streamer.send_twist(V, frame)
        yield duration

    return _stream(streamer, messages(), duration, np.inf, tell, waits=False)


def _stream(
    streamer: Streamer,
    messages: Iterator[float],
    last: float,
    latest: float,
    tell: Tell,
    waits: bool,
) -> Outcome:
    """Run through messages at their times; from `last` on the arm may be there, until `latest`."""
    heard = streamer.heard
    first, streamer.sent = len(heard.rows), 0
    begin = time.monotonic()
    reached, refused, lost, interrupted = False, "", False, False
    try:
        for t in messages:
            _sleep_until(begin + t)
            tell()
            refused = _refusal(heard, begin)
            lost = time.monotonic() > max(begin, heard.rows[-1].time) + SILENCE
            reached = waits and _is_reached(heard, begin + last)
            hopeless = waits and _is_hopeless(heard, begin + last)
            if refused or lost or reached or hopeless or t > latest:
                break
    except KeyboardInterrupt:
        interrupted = True
    end = time.monotonic()
    rows = heard.rows[first:]
    if not reached:
        _stop(streamer)
    end_of_path = reached if waits else None
    return Outcome(end_of_path, refused, lost, interrupted, begin, end, streamer.sent, rows)


def _stop(streamer: Streamer) -> None:
    """Stop the arm; another Ctrl-C meanwhile must not keep it from that."""
    with deaf():
        streamer.stop()


def _sleep_until(moment: float) -> None:
    left = moment - time.monotonic()
    if left > 0.0:
        time.sleep(left)


def _refusal(heard: Heard, begin: float) -> str:
    if heard.state not in REFUSALS or heard.state_time < begin + NEW:
        return ""
    return heard.words or heard.state


def _is_reached(heard: Heard, since: float) -> bool:
    row = heard.rows[-1]
    if row.time < since + NEW:
        return False
    if heard.state == UNKNOWN:
        return max(row.errors()) < SMALL
    return heard.state == "REACHED"


def _is_hopeless(heard: Heard, since: float) -> bool:
    """Whether the node has said for a while that it comes no nearer to the last pose."""
    now = time.monotonic()
    if now < since + LASTING:
        return False
    recent = list(takewhile(lambda row: row.time > now - LASTING, reversed(heard.rows)))
    return bool(recent) and all(row.state in HOPELESS for row in recent)
