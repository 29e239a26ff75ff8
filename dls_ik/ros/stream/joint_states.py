"""What drivers say about the joints, told apart from what this node says itself."""

import math
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.ros.frames import MAX_NAME
from dls_ik.ros.stream.echo import Echo
from dls_ik.ros.stream.transit import Transit
from dls_ik.ros.subscriptions import merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.text import listing

TOPIC = "joint_states"
FRESH = 1.0  # [s] a driver is there if it was heard this long ago
SETTLING = 0.5  # [s] to find publishers, and to hear which joints they publish
FARTHEST = 1e6  # [rad or m] that a joint can be
LOOK_OUT = 0.1  # [s] between looks for publishers
# Best effort hears reliable publishers too. Several may share the topic (arm, gripper), so the
# depth is not 1, which would keep the last message of all of them.
QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


class Measurement(NamedTuple):
    """Where joints are."""

    q: Array  # (n,) [rad or m]
    times: Array  # (n,) when each came [s] steady


class Heard(NamedTuple):
    """What was said of a joint."""

    position: float  # [rad or m]
    time: float  # [s] steady
    said: float  # [s] the same, less what the message was late


class JointStates:
    """Keeps the latest position of every joint of the robot that somebody else publishes.

    Until the joints of the robot are known it keeps those of any, as far as names are bounded.

    Listens only while there is a publisher besides this node: to receive one's own messages costs
    more than to publish them (22 % of a core at 1000 Hz). While both publish on the same topic,
    ours are recognised by an :class:`Echo`.

    Args:
        echo: what this node publishes on the topic, if it does.
    """

    def __init__(self, node: Node, echo: Echo | None) -> None:
        self.topic = node.resolve_topic_name(TOPIC)
        self._node = node
        self._echo = echo
        self._log = Throttle(node, period=10.0)
        self._heard: dict[str, tuple[Heard, ...]] = {}  # the last three by joint, newest last
        self._transit = Transit()
        self._lock = threading.Lock()
        self._robot_names: Mapping[str, str] = {}
        self._joints: Collection[str] | None = None  # of the robot in use; None: any
        self._kept: Collection[str] | None = None  # these, and those of the robot before
        self._subscription: Any = None
        self._changed = time.monotonic()  # when it began to listen anew, or ceased to
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(LOOK_OUT, self._look_out, clock=steady)

    def rename(self, robot_names: Mapping[str, str]) -> None:
        """Take joints that drivers call otherwise by these names from now on.

        What was heard under other names may be of other joints, and must be heard again.
        """
        if robot_names == self._robot_names:
            return
        self._robot_names = dict(robot_names)
        with self._lock:
            self._heard.clear()
        self._changed = time.monotonic()

    def keep_only(self, joints: Collection[str]) -> None:
        """Keep only the joints of a robot from now on, and those of the robot it replaces.

        Joints that were not kept before must be heard first, as if listening began now.
        """
        before, self._joints = self._joints, frozenset(joints)
        if self._joints == before:
            return
        with self._lock:
            if self._kept is not None and not self._joints <= frozenset(self._kept):
                self._changed = time.monotonic()
            self._kept = self._joints | frozenset(before or ())
            self._heard = {name: h for name, h in self._heard.items() if name in self._kept}

    def has_driver(self) -> bool:
        """Whether anybody else publishes on the topic, heard or not."""
        own = self._echo is not None
        return bool(self._node.count_publishers(self.topic) > own)

    def settled(self, now: float) -> bool:
        """Whether all drivers that there are had time to be found and heard."""
        listens = self._subscription is not None
        return now - self._changed > SETTLING and listens == self.has_driver()

    def measured(
        self, names: Iterable[str], now: float, fresh: float = FRESH, since: float = -math.inf
    ) -> Array | None:
        """The positions of joints (n,), as :meth:`measurement` has them."""
        found = self.measurement(names, now, fresh, since)
        return None if found is None else found.q

    def measurement(
        self, names: Iterable[str], now: float, fresh: float = FRESH, since: float = -math.inf
    ) -> Measurement | None:
        """The positions of joints, if all of them came less than `fresh` [s] ago.

        What drivers said before `since` [s] does not count, though it may have come after it.

        Of three that are fresh it is the median, so that a single one that is off neither moves nor
        stops the arm, at the price of one message of lag.
        """
        with self._lock:
            heard = [self._heard.get(name, ()) for name in names]
        news = [
            [item for item in items if now - item.time < fresh and item.said >= since]
            for items in heard
        ]
        if not all(news):
            return None
        chosen = [_middle(items) for items in news]
        q, times = np.array([(item.position, item.time) for item in chosen]).reshape(-1, 2).T
        return Measurement(np.ascontiguousarray(q), times)

    def values(self) -> dict[str, float]:
        """The last position of every joint that was ever heard of."""
        with self._lock:
            return {name: items[-1].position for name, items in self._heard.items()}

    def _look_out(self) -> None:
        if self.has_driver() == (self._subscription is not None):
            return
        if self._subscription is None:
            self._subscription = subscribe_bounded(
                self._node, JointState, TOPIC, self.store, QOS, self._log
            )
        else:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
        self._changed = time.monotonic()

    def store(self, message: Any, sent: int = 0) -> None:
        """Keep the finite positions of a ``sensor_msgs/JointState`` that is not ours.

        Args:
            sent: when it was sent, by the clock of its publisher [ns]; 0: not known.
        """
        if self._echo is not None and self._echo.is_own(message):
            return
        names, positions = message.name, message.position
        if len(names) != len(positions):
            counts = f"{len(names)} names and {len(positions)} positions"
            self._log.warn("lengths", f"a message on {self.topic} has {counts}: not used")
            return
        kept, called = self._kept, self._robot_names
        given_pairs = zip((called.get(name, name) for name in names), positions, strict=True)
        pairs = [pair for pair in given_pairs if _is_kept(pair[0], kept)]
        given = Counter(name for name, _ in pairs)
        if len(given) < len(pairs):
            twice = listing(sorted(name for name, count in given.items() if count > 1))
            self._log.warn(
                "twice", f"a message on {self.topic} has joints twice: {twice}: not used"
            )
            return
        now = time.monotonic()
        said = now - self._transit.lag(sent, now)
        news = {name: position for name, position in pairs if abs(position) <= FARTHEST}
        if len(news) < len(pairs):
            lost = listing(name for name in given if name not in news)
            what = f"not finite, or beyond {FARTHEST:g}"
            self._log.warn("finite", f"positions on {self.topic} are {what}: {lost}: not used")
        with self._lock:
            last = {name: self._heard.get(name, ())[-2:] for name in news}
            heard = {n: (*last[n], Heard(position, now, said)) for n, position in news.items()}
            self._heard = merge_bounded(self._heard, heard)


def _is_kept(name: str, kept: Collection[str] | None) -> bool:
    """Whether a joint is one of those to keep; None: of any robot."""
    return len(name) <= MAX_NAME if kept is None else name in kept


def _middle(items: list[Heard]) -> Heard:
    """The median of three; of less the newest."""
    return sorted(items)[1] if len(items) == 3 else items[-1]
