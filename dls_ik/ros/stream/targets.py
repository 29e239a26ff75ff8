"""Targets of all kinds as they arrive: the callback stores, the loop waits and takes."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseArray, PoseStamped, Twist, TwistStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from std_msgs.msg import Header

from dls_ik.ros.stream.transit import Transit
from dls_ik.ros.subscriptions import subscribe_bounded, type_name, with_time
from dls_ik.ros.util import Throttle

TOPICS = {"target_pose": PoseStamped, "target_twist": TwistStamped, "target_trajectory": PoseArray}
TWIST = "target_twist"
LOOK_OUT = 1.0  # [s] between looks for publishers
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)  # hears reliable ones too
WHOLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)  # there is no next one to come
MOST_POSES = 10_000  # to read ten times as many would hold all threads up for 0.6 s
POSE_BYTES, HEADER_BYTES = 56, 1024  # of a serialized PoseArray; header: with a name of any length


class TooLong(NamedTuple):
    """In the place of a trajectory that was not read."""

    header: Header
    poses: int  # about


class Arrival(NamedTuple):
    """The newest target since the last one was taken."""

    message: Any  # of one of the types of TOPICS, or TooLong
    time: float  # [s] steady
    number: int  # how many arrived since then
    sent: int = 0  # [ns] by the system clock of the publisher; 0: not known
    lag: float = math.inf  # [s] as of :meth:`Transit.lag`

    def waited(self, longest: float, fastest: float) -> bool:
        """Whether it was sent long before it arrived [s], as far as that is known.

        Messages that wait in the middleware while the process is stopped arrive when it goes on.

        Args:
            fastest: by how much the publisher's clock may be ahead [s], so that it is believed.
        """
        age = 1e-9 * (time.time_ns() - self.sent)
        return bool(self.sent) and self.lag > longest and not -fastest <= age <= longest


class Targets:
    """The newest target, and a way for the loop to wait for one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._transit = Transit()
        self._newest: Arrival | None = None
        self._awaited = False
        self._closed = False

    def subscribe(self, node: Node, log: Throttle, twist_frame: str = "") -> None:
        """Store what arrives on the topics; the newest counts, whatever it is.

        Args:
            twist_frame: of a ``geometry_msgs/Twist``.
        """
        for topic, kind in TOPICS.items():
            if kind is PoseArray:
                whole = with_time(self._store_whole)
                node.create_subscription(kind, topic, whole, WHOLE, raw=True)
            elif kind is PoseStamped:
                subscribe_bounded(node, kind, topic, self.store, NEWEST, log)
        twists = TwistSubscription(node, log, twist_frame, self.store)
        steady = Clock(clock_type=ClockType.STEADY_TIME)

        def look_out() -> None:
            twists.look_out()
            _look_out(node, log)

        node.create_timer(LOOK_OUT, look_out, clock=steady)

    def store(self, message: Any, sent: int = 0) -> None:
        """Keep a target that was sent at a time [ns]; wake the loop if it waits for one."""
        with self._changed:
            number = self._newest.number + 1 if self._newest else 1
            now = time.monotonic()
            self._newest = Arrival(message, now, number, sent, self._transit.lag(sent, now))
            if self._awaited:
                self._changed.notify()

    def _store_whole(self, data: bytes, sent: int = 0) -> None:
        """Keep a serialized trajectory, which is read only if it is not too long."""
        if len(data) > MOST_POSES * POSE_BYTES + HEADER_BYTES:
            self.store(TooLong(Header(), len(data) // POSE_BYTES), sent)
        else:
            self.store(deserialize_message(data, PoseArray), sent)

    def take(self) -> Arrival | None:
        """The newest target, once."""
        with self._changed:
            newest, self._newest = self._newest, None
            return newest

    def wait(self, earliest: float, latest: float) -> bool:
        """Sleep until a target is there, but not before `earliest` nor after `latest` [s].

        Returns:
            False once it is closed, without further waiting.
        """
        with self._changed:
            if latest > earliest:
                self._awaited = True
                self._changed.wait_for(self._is_over, max(0.0, latest - time.monotonic()))
                self._awaited = False
            self._changed.wait_for(self._is_closed, max(0.0, earliest - time.monotonic()))
            return not self._closed

    def close(self) -> None:
        """Wake the loop for the last time."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_closed(self) -> bool:
        return self._closed

    def _is_over(self) -> bool:
        return self._closed or self._newest is not None


class TwistSubscription:
    """Reads twists with a header, or without one where that is what is sent, as by joysticks.

    A process has one type for a topic, so it is the one that publishers have, with a header where
    they differ.
    """

    def __init__(self, node: Node, log: Throttle, frame: str, store: Callable[..., None]) -> None:
        self._node, self._log, self._frame, self._store = node, log, frame, store
        self._topic = node.resolve_topic_name(TWIST)
        self._kind: Any = TwistStamped
        self._subscription: Any = None
        self._subscribe()

    def look_out(self) -> None:
        """Read what is sent."""
        sent = {info.topic_type for info in self._node.get_publishers_info_by_topic(self._topic)}
        kind = next((k for k in (TwistStamped, Twist) if type_name(k) in sent), self._kind)
        if self._subscription is None:
            self._kind = kind
            self._subscribe()
            frame = f", along the axes of {self._frame or 'the root'} (twist_frame)"
            words = f"{type_name(kind)} is read on {self._topic}{frame if kind is Twist else ''}"
            self._log.info(words, words)
        elif kind is not self._kind:  # the next look subscribes, when this one is gone
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _subscribe(self) -> None:
        store = self._store if self._kind is TwistStamped else self._store_bare
        given = self._node, self._kind, TWIST, store, NEWEST, self._log
        self._subscription = subscribe_bounded(*given)

    def _store_bare(self, message: Any, sent: int = 0) -> None:
        stamped = TwistStamped(twist=message)
        stamped.header.frame_id = self._frame
        self._store(stamped, sent)


class Rhythm:
    """How regularly targets arrive: a running mean of the time between them."""

    GAIN = 0.2

    def __init__(self) -> None:
        self._last = -math.inf
        self._interval = math.inf

    def heard(self, arrival: Arrival) -> None:
        """Take an arrival into account."""
        interval = (arrival.time - self._last) / arrival.number
        self._last = arrival.time
        if math.isfinite(self._interval):
            interval = self._interval + self.GAIN * (interval - self._interval)
        self._interval = interval

    def interval(self, now: float) -> float:
        """The mean time between targets [s]; infinite while none arrive."""
        if now - self._last > 3.0 * self._interval:
            self._interval = math.inf
        return self._interval


def _look_out(node: Node, log: Throttle) -> None:
    """Say where several publishers send targets: the arm goes to and fro between them."""
    for topic in map(node.resolve_topic_name, TOPICS):
        count = node.count_publishers(topic)
        if count > 1:
            words = f"{count} publishers on {topic}: the newest target counts"
            log.once(words, words)
