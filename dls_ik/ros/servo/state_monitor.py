# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Current joint positions, from the joint states that drivers publish.

Joint states that this node itself publishes are recognised and ignored.
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
from dls_ik.ros.servo.freshness import (
    READING_TIMEOUT,
    DelayEstimator,
    Freshness,
    accepted_readings,
    positions_freshness,
    start_freshness,
)
from dls_ik.ros.subscriptions import merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.text import listing

JOINT_STATES_TOPIC = "joint_states"
DISCOVERY_TIME = 0.5  # [s] time to discover publishers, and to receive their first messages
MAX_POSITION = 1e6  # [rad or m] a larger position is an error of the driver
DISCOVERY_PERIOD = 0.1  # [s] time between checks for publishers
MAX_OWN_MESSAGES = 2000  # remembered; two seconds of messages at the highest rate
# Best effort also receives from reliable publishers. Several drivers may share the topic (arm,
# gripper): with a depth of 1 the message of one would replace the message of another.
JOINT_STATES_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)

Identity = tuple[int, int, bytes, tuple[str, ...]]


class Echo:
    """Recogniser of this node's own messages on a topic that a driver may use too.

    rclpy does not name the sender of a message before ROS 2 Kilted. The stamp in nanoseconds, the
    names and the positions identify a message instead: a driver that publishes the same values
    with the same stamp only relays this node's message.
    """

    def __init__(self) -> None:
        self._published: OrderedDict[Identity, None] = OrderedDict()

    def remember(self, message: Any) -> None:
        """Remember a ``sensor_msgs/JointState`` that is about to be published."""
        self._published[_identity(message)] = None
        if len(self._published) > MAX_OWN_MESSAGES:
            self._published.popitem(last=False)

    def is_own(self, message: Any) -> bool:
        """Return whether a received message was published by this node."""
        return _identity(message) in self._published


def _identity(message: Any) -> Identity:
    stamp = message.header.stamp  # simulated time: several messages may have the same
    return stamp.sec, stamp.nanosec, message.position.tobytes(), tuple(message.name)


class Measurement(NamedTuple):
    """Measured joint positions."""

    q: Array  # (n,) [rad or m]
    times: Array  # (n,) times of arrival [s] steady


class JointPositions(NamedTuple):
    """Joint positions of the arm in use, and their treatment in a cycle."""

    freshness: Freshness
    measurement: Measurement | None  # None if a joint has no fresh reading
    is_lost: bool  # the driver of a started arm timed out since the last cycle


class JointReading(NamedTuple):
    """Content of one message about one joint."""

    position: float  # [rad or m]
    time: float  # [s] steady, arrival of the message
    sent: float  # [s] steady, estimated time of sending
    velocity: float = math.nan  # [rad/s or m/s]; NaN: not sent
    stamp: int = 0  # [ns] stamp of the message; 0: none


class JointFilter(NamedTuple):
    """Joints whose readings are stored, and their names."""

    robot_names: Mapping[str, str] = {}  # name in the robot by name in the messages, if different
    joints: frozenset[str] | None = None  # joints of the robot in use; None: any joint
    kept: frozenset[str] | None = None  # `joints`, and joints of earlier robots that may still move

    def keeps(self, name: str) -> bool:
        """Return whether readings of a joint are stored."""
        return len(name) <= MAX_NAME if self.kept is None else name in self.kept


class CurrentStateMonitor:
    """Latest joint positions that other nodes publish, and their treatment in each cycle.

    Until the joints of the robot are known, the monitor stores every joint with a name of valid
    length.

    The monitor subscribes only while another node publishes on the topic: to receive this node's
    own messages costs more than to publish them (22 % of a core at 1000 Hz). If both publish,
    own messages are recognised by an :class:`Echo`.

    Args:
        node: Node of the subscription.
        echo: Recogniser of this node's messages; None if it publishes on other topics.
        display_only: The commands are for display and move no arm.
    """

    def __init__(self, node: Node, echo: Echo | None, display_only: bool) -> None:
        self.topic = node.resolve_topic_name(JOINT_STATES_TOPIC)
        self.shares_topic = echo is not None
        self._node, self._echo, self._display_only = node, echo, display_only
        self._log = Throttle(node, period=10.0)
        self._delays = DelayEstimator()
        self._lock = threading.Lock()
        self._readings: dict[str, tuple[JointReading, ...]] = {}  # at most three, newest last
        self._filter = JointFilter()
        self._subscription: Any = None
        self._changed = time.monotonic()  # last change of the subscription or of joint names
        self._stall_end = -math.inf  # [s] steady, end of the last stall of the loop
        self._was_accepted = False  # joint positions were, and the driver has not timed out since
        self._next_check = -math.inf  # [s]
        self._driver_changed = node.create_guard_condition(self._update_subscription)

    def rename(self, robot_names: Mapping[str, str]) -> None:
        """Set the names of joints that have other names in the messages of drivers.

        Stored readings are deleted, as their names may now belong to other joints.

        Args:
            robot_names: Name in the robot by name in the messages.
        """
        if robot_names == self._filter.robot_names:
            return
        with self._lock:
            self._changed = time.monotonic()  # set first, as the loop reads both without a lock
            self._filter = self._filter._replace(robot_names=dict(robot_names))
            self._readings.clear()

    def keep_only(self, joints: Iterable[str], moving: Iterable[str] = ()) -> None:
        """Store only readings of the joints of a robot, and of the robot that it replaces.

        If there are new joints, `DISCOVERY_TIME` starts again.

        Args:
            joints: Names of all joints of the robot.
            moving: Names of all joints of the robot that still moves, maybe an earlier one.
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
        """Return the last position of every joint with a stored reading, however old."""
        with self._lock:
            return {name: readings[-1].position for name, readings in self._readings.items()}

    def readings(self, names: Iterable[str], now: float) -> list[tuple[JointReading, ...]] | None:
        """Return the last readings of joints, up to three each, newest last.

        Args:
            names: Names of the joints.
            now: Time on the steady clock [s].

        Returns:
            None if a joint has no reading from the last `READING_TIMEOUT` seconds.
        """
        with self._lock:
            found = [self._readings.get(name, ()) for name in names]
        is_current = all(each and now - each[-1].time < READING_TIMEOUT for each in found)
        return found if is_current else None

    def note_stall(self, now: float) -> None:
        """Record that a stall of the loop has ended now [s]."""
        self._stall_end = now

    def since_stall(self, now: float) -> float:
        """Return the time since the last stall of the loop ended [s]; infinite without a stall."""
        return now - self._stall_end

    def joint_positions(self, arm: Arm, now: float) -> JointPositions:
        """Return the joint positions of the arm in use, and their treatment; once per cycle."""
        measurement, was_accepted = self.measurement(arm, now), self._was_accepted
        freshness = positions_freshness(
            self.since_stall(now),
            measurement is not None,
            was_accepted,
            _reading_timeout(arm),
            arm.controller.moves,
        )
        if measurement is not None:
            self._was_accepted = True
        is_lost = False
        if freshness is Freshness.IGNORE and was_accepted:
            self._was_accepted = False
            # A supervised controller reports the loss as a fault.
            is_supervised = arm.parameters.feedback_mode == REQUIRED
            is_lost = arm.controller.started and not self._display_only and not is_supervised
        return JointPositions(freshness, measurement, is_lost)

    def measurement(self, arm: Arm, now: float) -> Measurement | None:
        """Return the measured joint positions of an arm; None if a joint has no fresh reading."""
        if arm.parameters.feedback_mode == NONE:
            return None
        return self.latest(arm.robot.joint_names, now, _reading_timeout(arm))

    def latest(
        self, names: Iterable[str], now: float, timeout: float = READING_TIMEOUT
    ) -> Measurement | None:
        """Return the positions of joints; None if a joint has no fresh reading.

        A position is the median of three readings, so that a single outlier neither moves nor
        stops the arm, at the price of one message of lag.

        Args:
            names: Names of the joints.
            now: Time on the steady clock [s].
            timeout: Maximum age of a reading [s].
        """
        if not self._readings:
            return None
        with self._lock:
            found = [self._readings.get(name, ()) for name in names]
        since_stall = self.since_stall(now)
        fresh = [accepted_readings(readings, now, since_stall, timeout) for readings in found]
        if not all(fresh):
            return None
        chosen = [_median(readings) for readings in fresh]
        q, times = np.array([(r.position, r.time) for r in chosen]).reshape(-1, 2).T
        return Measurement(np.ascontiguousarray(q), times)

    def may_start(self, arm: Arm, now: float, is_measured: bool) -> bool:
        """Return whether the arm may start: at its measurement, or without one if not needed."""
        mode = arm.parameters.feedback_mode
        is_required = mode != NONE and not arm.controller.started
        is_optional = self._display_only and mode == AUTO and not is_measured
        is_unpublished = is_required and is_optional and self._has_discovered_all(now)
        return start_freshness(is_measured, is_required, is_unpublished) is not Freshness.WAIT

    def store(self, message: Any, sent: int = 0) -> None:
        """Store the valid positions of a message, unless this node published it.

        Args:
            message: ``sensor_msgs/JointState``.
            sent: Time of sending by the clock of the publisher [ns]; 0 if unknown.
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
                return  # the names were translated for another robot
            last = {name: self._readings.get(name, ())[-2:] for name in new}
            readings = {name: (*last[name], reading) for name, reading in new.items()}
            self._readings = merge_bounded(self._readings, readings)

    def _positions(self, message: Any, given: JointFilter) -> dict[str, float]:
        """Return the valid positions of a message by the robot's joint names; log invalid ones."""
        names, positions, topic = message.name, message.position, self.topic
        if len(names) != len(positions):
            counts = f"{len(names)} names and {len(positions)} positions"
            self._log.warn("lengths", f"a message on {topic} has {counts}: ignored")
            return {}
        keeps, robot_names = given.keeps, given.robot_names
        named = zip((robot_names.get(name, name) for name in names), positions, strict=True)
        pairs = [pair for pair in named if keeps(pair[0])]
        counts_of = Counter(name for name, _ in pairs)
        if len(counts_of) < len(pairs):
            twice = listing(sorted(name for name, count in counts_of.items() if count > 1))
            self._log.warn("twice", f"a message on {topic} has joints twice: {twice}: ignored")
            return {}
        valid = {name: position for name, position in pairs if abs(position) <= MAX_POSITION}
        if len(valid) < len(pairs):
            invalid = listing(name for name in counts_of if name not in valid)
            reason = f"not finite, or larger than {MAX_POSITION:g}"
            self._log.warn("finite", f"positions on {topic} are {reason}: {invalid}: ignored")
        return valid

    def _has_driver(self) -> bool:
        """Return whether another node publishes on the topic, subscribed to or not."""
        return bool(self._node.count_publishers(self.topic) > self.shares_topic)

    def _has_discovered_all(self, now: float) -> bool:
        """Return whether there was time to discover all drivers and to receive their messages."""
        is_subscribed = self._subscription is not None
        return now - self._changed > DISCOVERY_TIME and is_subscribed == self._has_driver()

    def discover(self, now: float) -> None:
        """Check for publishers every `DISCOVERY_PERIOD`; called in each cycle.

        The executor subscribes. It wakes up only if the subscription must change.
        """
        if now < self._next_check:
            return
        self._next_check = now + DISCOVERY_PERIOD
        if self._has_driver() != (self._subscription is not None):
            self._driver_changed.trigger()

    def _update_subscription(self) -> None:
        """Subscribe when there is a driver, and unsubscribe when there is none."""
        if self._has_driver() == (self._subscription is not None):
            return
        before, new = self._subscription, None
        if before is None:
            new = subscribe_bounded(
                self._node, JointState, JOINT_STATES_TOPIC, self.store, JOINT_STATES_QOS, self._log
            )
        else:
            self._node.destroy_subscription(before)
        self._changed = time.monotonic()  # set first, as the loop reads both without a lock
        self._subscription = new


def _reading_timeout(arm: Arm) -> float:
    """Return the maximum age of a reading [s]."""
    is_required = arm.parameters.feedback_mode == REQUIRED
    return arm.parameters.measurement_timeout if is_required else READING_TIMEOUT


def _velocities(message: Any, given: JointFilter) -> dict[str, float]:
    """Return the velocities of a message by the robot's joint names; {} if any are missing."""
    names, velocities = message.name, message.velocity
    if not velocities or len(names) != len(velocities):
        return {}
    return dict(zip((given.robot_names.get(name, name) for name in names), velocities, strict=True))


def _median(readings: list[JointReading]) -> JointReading:
    """Return the median of three readings, or the newest of fewer."""
    by_position = sorted(readings, key=lambda reading: reading.position)
    return by_position[1] if len(readings) == 3 else readings[-1]
