"""Current state of the joints, as drivers publish it, and whether it is known well enough to move.

Messages of this node itself are recognised and left out.
"""

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import MAX_NAME, nanoseconds
from dls_ik.ros.params import AUTO, NONE, REQUIRED
from dls_ik.ros.servo.targets import DelayMonitor
from dls_ik.ros.subscriptions import merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.text import listing

TOPIC = "joint_states"
FRESH = 1.0  # [s] a driver is there if it was heard this long ago
SETTLING = 0.5  # [s] to find publishers, and to hear which joints they publish
DRAIN = 0.1  # [s] in which messages that waited while the loop stood still are worked off
FARTHEST = 1e6  # [rad or m] that a joint can be
CHECK_PERIOD = 0.1  # [s] between looks for publishers
MEMORY = 2000  # own messages; two seconds at the highest rate
# Best effort hears reliable publishers too. Several may share the topic (arm, gripper), so the
# depth is not 1, which would keep the last message of all of them.
QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)

Identity = tuple[int, int, bytes, tuple[str, ...]]


class Echo:
    """Recognises own messages on a topic that a driver may use too.

    rclpy does not tell who sent a message before Kilted. A stamp in nanoseconds from our clock
    together with the names and positions is as good: a driver that sends the same at the same
    nanosecond only relays us.
    """

    def __init__(self) -> None:
        self._published: OrderedDict[Identity, None] = OrderedDict()

    def remember(self, message: Any) -> None:
        """Keep the identity of a ``sensor_msgs/JointState`` that is about to be published."""
        self._published[_identity(message)] = None
        if len(self._published) > MEMORY:
            self._published.popitem(last=False)

    def is_own(self, message: Any) -> bool:
        """Return whether a message received is one that was published here."""
        return _identity(message) in self._published


def _identity(message: Any) -> Identity:
    stamp = message.header.stamp  # under simulated time the same for several messages
    return stamp.sec, stamp.nanosec, message.position.tobytes(), tuple(message.name)


class Measurement(NamedTuple):
    """Measured joint values."""

    q: Array  # (n,) [rad or m]
    times: Array  # (n,) when each came [s] steady


class JointReading(NamedTuple):
    """One message about a joint."""

    position: float  # [rad or m]
    time: float  # [s] steady, when it came
    sent: float  # [s] the same, less its delay on the way
    velocity: float = math.nan  # [rad/s or m/s]; NaN: not sent
    stamp: int = 0  # [ns] of its message; 0: none


class JointFilter(NamedTuple):
    """Joints that are kept, and their names."""

    robot_names: Mapping[str, str] = {}  # by the name that drivers use, where it is another one
    joints: frozenset[str] | None = None  # of the robot in use; None: any
    kept: frozenset[str] | None = None  # these, and those of robots before that may still move

    def keeps(self, name: str) -> bool:
        """Return whether a joint is kept."""
        return len(name) <= MAX_NAME if self.kept is None else name in self.kept


class CurrentStateMonitor:
    """Keeps the latest positions of the robot's joints that others publish, and judges them.

    Until the joints of the robot are known it keeps those of any, as far as names are bounded.

    Listens only while there is a publisher besides this node: to receive one's own messages costs
    more than to publish them (22 % of a core at 1000 Hz). While both publish on the same topic,
    own messages are recognised by an :class:`Echo`.

    Args:
        echo: messages of this node on the topic; None: it publishes elsewhere.
        display_only: commands are for display, and move no arm.
    """

    def __init__(self, node: Node, echo: Echo | None, display_only: bool) -> None:
        self.topic = node.resolve_topic_name(TOPIC)
        self.shares_topic = echo is not None
        self._node, self._echo, self._display_only = node, echo, display_only
        self._log = Throttle(node, period=10.0)
        self._delays = DelayMonitor()
        self._lock = threading.Lock()
        self._readings: dict[str, tuple[JointReading, ...]] = {}  # the last three, newest last
        self._filter = JointFilter()
        self._subscription: Any = None
        self._changed = time.monotonic()  # when it began to listen anew, or ceased to
        self._trusted = -math.inf  # [s] steady: earlier messages do not count
        self._located = False  # the arm was measured, and was not lost since
        self._next_check = -math.inf  # [s]
        self._driver_changed = node.create_guard_condition(self._check)

    def rename(self, robot_names: Mapping[str, str]) -> None:
        """Take joints that drivers call otherwise by these names from now on.

        Readings under other names may be of other joints, and are forgotten.
        """
        if robot_names == self._filter.robot_names:
            return
        with self._lock:
            self._changed = time.monotonic()  # first: the loop reads both
            self._filter = self._filter._replace(robot_names=dict(robot_names))
            self._readings.clear()

    def keep_only(self, joints: Iterable[str], moving: Iterable[str] = ()) -> None:
        """Keep only the joints of a robot from now on, and those of the robot it replaces.

        Joints that were not kept before must be heard first, as if listening began now.

        Args:
            moving: joints of the robot that still moves, which may be an earlier one.
        """
        new, (_, before, kept) = frozenset(joints), self._filter
        if new == before:
            return
        with self._lock:
            if kept is not None and not new <= kept:
                self._changed = time.monotonic()
            kept = new.union(before or (), moving)
            self._filter = self._filter._replace(joints=new, kept=kept)
            self._readings = {n: r for n, r in self._readings.items() if self._filter.keeps(n)}

    def values(self) -> dict[str, float]:
        """Return the last position of every joint that was ever heard of."""
        with self._lock:
            return {name: readings[-1].position for name, readings in self._readings.items()}

    def readings(self, names: Iterable[str], now: float) -> list[tuple[JointReading, ...]] | None:
        """Return the last readings of joints, up to three each, newest last.

        Returns:
            None if a joint has no reading from the last `FRESH` seconds.
        """
        with self._lock:
            found = [self._readings.get(name, ()) for name in names]
        is_current = all(each and now - each[-1].time < FRESH for each in found)
        return found if is_current else None

    def measurement(self, arm: Arm, now: float) -> Measurement | None:
        """Return the measured joint values of the arm; None where not all of them are known."""
        parameters = arm.parameters
        if parameters.feedback_mode == NONE:
            return None
        is_required = parameters.feedback_mode == REQUIRED
        max_age = parameters.measurement_timeout if is_required else FRESH
        max_age = min(max_age, now - self._trusted)
        since = -math.inf if self.is_settled(now) else self._trusted
        names = arm.robot.joint_names
        return self.latest(names, now, max_age, since) if max_age > 0.0 else None

    def latest(
        self, names: Iterable[str], now: float, max_age: float = FRESH, since: float = -math.inf
    ) -> Measurement | None:
        """Return the positions of joints, if all of them came less than `max_age` [s] ago.

        Readings sent before `since` [s] do not count, though they may have come after it.

        The median of three readings counts, so that a single one that is off neither moves nor
        stops the arm, at the price of one message of lag.
        """
        if not self._readings:
            return None
        with self._lock:
            found = [self._readings.get(name, ()) for name in names]
        fresh = [
            [r for r in readings if now - r.time < max_age and r.sent >= since]
            for readings in found
        ]
        if not all(fresh):
            return None
        chosen = [_median(readings) for readings in fresh]
        q, times = np.array([(r.position, r.time) for r in chosen]).reshape(-1, 2).T
        return Measurement(np.ascontiguousarray(q), times)

    def distrust(self, now: float) -> None:
        """Let messages before a time [s] not count, nor those that come at once."""
        self._trusted = now + DRAIN

    @property
    def trusted_since(self) -> float:
        """Time [s] from which messages count, after the last stall of the loop."""
        return self._trusted

    def is_trusted(self, now: float) -> bool:
        """Return whether a message that comes now counts, unless its publisher says otherwise."""
        return now >= self._trusted

    def is_settled(self, now: float) -> bool:
        """Return whether a message that comes now counts, whatever its publisher's clock shows."""
        return now - self._trusted > FRESH

    def may_start(self, arm: Arm, now: float, is_measured: bool) -> bool:
        """Return whether the state of the arm is known, or not published and not needed."""
        mode = arm.parameters.feedback_mode
        if arm.controller.started or is_measured or mode == NONE:
            return True
        return self._display_only and mode == AUTO and self._has_heard_all(now)

    def is_uncertain(self, now: float, is_measured: bool) -> bool:
        """Return whether to wait, after a time in which the loop stood still."""
        if not self.is_trusted(now):
            return True
        return self._located and not is_measured and not self.is_settled(now)

    def loses(self, arm: Arm, now: float, is_measured: bool) -> bool:
        """Return whether a driver that commands waited for is not heard any more; True once."""
        if is_measured:
            self._located = True
        if is_measured or not self._located or not self.is_settled(now):
            return False
        self._located = False
        supervised = arm.parameters.feedback_mode == REQUIRED  # the controller makes it a fault
        return arm.controller.started and not self._display_only and not supervised

    def store(self, message: Any, sent: int = 0) -> None:
        """Keep the finite positions of a ``sensor_msgs/JointState`` that is not ours.

        Args:
            sent: when it was sent, by the clock of its publisher [ns]; 0: not known.
        """
        if self._echo is not None and self._echo.is_own(message):
            return
        now, given = time.monotonic(), self._filter
        sent_at = now - self._delays.delay(sent, now)
        stamp, velocities = nanoseconds(message.header.stamp), _velocities(message, given)
        new = {
            name: JointReading(position, now, sent_at, velocities.get(name, math.nan), stamp)
            for name, position in self._positions(message, given).items()
        }
        with self._lock:
            if self._filter is not given:
                return  # read under names of another robot
            last = {name: self._readings.get(name, ())[-2:] for name in new}
            readings = {name: (*last[name], reading) for name, reading in new.items()}
            self._readings = merge_bounded(self._readings, readings)

    def _positions(self, message: Any, given: JointFilter) -> dict[str, float]:
        """Return the valid positions of a message by the robot's names; log the others."""
        names, positions, topic = message.name, message.position, self.topic
        if len(names) != len(positions):
            counts = f"{len(names)} names and {len(positions)} positions"
            self._log.warn("lengths", f"a message on {topic} has {counts}: not used")
            return {}
        keeps, robot_names = given.keeps, given.robot_names
        named = zip((robot_names.get(name, name) for name in names), positions, strict=True)
        pairs = [pair for pair in named if keeps(pair[0])]
        counts_of = Counter(name for name, _ in pairs)
        if len(counts_of) < len(pairs):
            twice = listing(sorted(name for name, count in counts_of.items() if count > 1))
            self._log.warn("twice", f"a message on {topic} has joints twice: {twice}: not used")
            return {}
        valid = {name: position for name, position in pairs if abs(position) <= FARTHEST}
        if len(valid) < len(pairs):
            lost = listing(name for name in counts_of if name not in valid)
            reason = f"not finite, or beyond {FARTHEST:g}"
            self._log.warn("finite", f"positions on {topic} are {reason}: {lost}: not used")
        return valid

    def _has_driver(self) -> bool:
        """Return whether another node publishes on the topic, heard or not."""
        return bool(self._node.count_publishers(self.topic) > self.shares_topic)

    def _has_heard_all(self, now: float) -> bool:
        """Return whether there was time to find and hear all drivers."""
        listens = self._subscription is not None
        return now - self._changed > SETTLING and listens == self._has_driver()

    def look_out(self, now: float) -> None:
        """Look for publishers if it is time to; called in each cycle.

        Subscribing is left to the executor, which need not wake to look in vain.
        """
        if now < self._next_check:
            return
        self._next_check = now + CHECK_PERIOD
        if self._has_driver() != (self._subscription is not None):
            self._driver_changed.trigger()

    def _check(self) -> None:
        """Subscribe once there is a driver, and unsubscribe when there is none any more."""
        if self._has_driver() == (self._subscription is not None):
            return
        before, new = self._subscription, None
        if before is None:
            new = subscribe_bounded(self._node, JointState, TOPIC, self.store, QOS, self._log)
        else:
            self._node.destroy_subscription(before)
        self._changed = time.monotonic()  # first: the loop reads both
        self._subscription = new


def _velocities(message: Any, given: JointFilter) -> dict[str, float]:
    """Return the velocities of a message by the robot's names; none where it has not all."""
    names, velocities = message.name, message.velocity
    if not velocities or len(names) != len(velocities):
        return {}
    return dict(zip((given.robot_names.get(name, name) for name in names), velocities, strict=True))


def _median(readings: list[JointReading]) -> JointReading:
    """Return the median of three readings; of fewer the newest."""
    by_position = sorted(readings, key=lambda reading: reading.position)
    return by_position[1] if len(readings) == 3 else readings[-1]
