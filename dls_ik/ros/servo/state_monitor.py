# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Current joint positions, received as joint states from drivers.

If this node publishes on the same topic, its own joint states are recognised and ignored.
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
from dls_ik.ros.params import MODE_AUTO, MODE_NONE, MODE_REQUIRED
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
MAX_POSITION = 1e6  # [rad or m] larger positions are errors of a driver
DISCOVERY_PERIOD = 0.1  # [s] time between checks for publishers
MAX_OWN_MESSAGES = 2000  # number of remembered messages: those of 2 s at the highest rate
# A best-effort subscription also receives from reliable publishers. Several drivers, such as those
# of an arm and a gripper, may share the topic. With a queue of one message, the message of one
# driver would replace the message of another driver.
JOINT_STATES_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)

Identity = tuple[int, int, bytes, tuple[str, ...]]


class Echo:
    """Recognises this node's own messages on a topic on which drivers may publish too.

    Before ROS 2 Kilted, rclpy does not tell who sent a message. Therefore a message is identified
    by its stamp in nanoseconds, its joint names and its positions. If a message from another node
    has equal stamp, names and positions, it is a relayed message of this node.
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
    stamp = message.header.stamp  # several messages may have the same stamp in simulated time
    return stamp.sec, stamp.nanosec, message.position.tobytes(), tuple(message.name)


class Measurement(NamedTuple):
    """Measured joint positions."""

    q: Array  # (n,) [rad or m]
    times: Array  # (n,) times of arrival [s], steady clock


class JointPositions(NamedTuple):
    """Measured joint positions of the arm in use, and how a cycle must treat them."""

    freshness: Freshness
    measurement: Measurement | None  # None if a joint has no recent reading
    is_lost: bool  # whether the driver of a started arm timed out since the last cycle


class JointReading(NamedTuple):
    """Position and velocity of one joint in one message, and the times of the message."""

    position: float  # [rad or m]
    time: float  # [s] arrival of the message, steady clock
    sent: float  # [s] estimated time of sending, steady clock
    velocity: float = math.nan  # [rad/s or m/s]; NaN: not sent
    stamp: int = 0  # [ns] stamp of the message; 0: none


class JointFilter(NamedTuple):
    """Joints whose readings are stored, and names of joints in the robot and in messages."""

    # Name of a joint in the robot by its name in messages, for each joint with two names.
    robot_names: Mapping[str, str] = {}
    joints: frozenset[str] | None = None  # joints of the robot in use; None: all joints
    kept: frozenset[str] | None = None  # `joints`, and joints of earlier robots that may still move

    def keeps(self, name: str) -> bool:
        """Return whether readings of the joint with this name in the robot are stored."""
        return len(name) <= MAX_NAME if self.kept is None else name in self.kept


class CurrentStateMonitor:
    """Receives joint states from drivers, and provides the latest joint positions.

    Until the joints of the robot are known, the positions of all joints whose names are not too
    long are stored.

    The monitor subscribes to the topic only while another node publishes on it. If this node also
    publishes on the topic, receiving its own messages would take 22 % of a core at 1000 Hz. An
    :class:`Echo` recognises own messages that are received together with those of a driver.

    Args:
        node: Node of the subscription.
        echo: Recognises this node's messages; None if this node does not publish on the topic.
        display_only: Whether the commands are for display only and move no arm.
    """

    def __init__(self, node: Node, echo: Echo | None, display_only: bool) -> None:
        self.topic = node.resolve_topic_name(JOINT_STATES_TOPIC)
        self.shares_topic = echo is not None
        self._node, self._echo, self._display_only = node, echo, display_only
        self._log = Throttle(node, period=10.0)
        self._delays = DelayEstimator()
        self._lock = threading.Lock()
        self._readings: dict[str, tuple[JointReading, ...]] = {}  # at most 3 per joint, newest last
        self._filter = JointFilter()
        self._subscription: Any = None
        self._changed = time.monotonic()  # last change of the subscription or of joint names
        self._stall_end = -math.inf  # [s] end of the last stall of the loop, steady clock
        # True if joint positions were accepted, and the driver has not timed out since then.
        self._was_accepted = False
        self._next_check = -math.inf  # [s] time of the next check for publishers, steady clock
        self._driver_changed = node.create_guard_condition(self._update_subscription)

    def rename(self, robot_names: Mapping[str, str]) -> None:
        """Set which joints have other names in the messages of drivers than in the robot.

        Stored readings are deleted, because their names may now belong to other joints.

        Args:
            robot_names: For each of these joints, its name in the robot by its name in messages.
        """
        if robot_names == self._filter.robot_names:
            return
        with self._lock:
            # Set before the filter, because the loop reads both without a lock.
            self._changed = time.monotonic()
            self._filter = self._filter._replace(robot_names=dict(robot_names))
            self._readings.clear()

    def keep_only(self, joints: Iterable[str], moving: Iterable[str] = ()) -> None:
        """Store only readings of the joints of a new robot, and of the robots that it replaces.

        If readings of a joint of the new robot were not stored before, the time for the discovery
        of drivers starts again.

        Args:
            joints: Names of all joints of the new robot.
            moving: Names of all joints of an earlier robot that still moves.
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
        """Return the last stored position of each joint by name [rad or m]; it may be old."""
        with self._lock:
            return {name: readings[-1].position for name, readings in self._readings.items()}

    def readings(self, names: Iterable[str], now: float) -> list[tuple[JointReading, ...]] | None:
        """Return the last readings of joints: for each joint at most three, newest last.

        Args:
            names: Names of the joints in the robot.
            now: Current time on the steady clock [s].

        Returns:
            None if a joint has no reading from the last `READING_TIMEOUT` seconds.
        """
        with self._lock:
            found = [self._readings.get(name, ()) for name in names]
        is_current = all(each and now - each[-1].time < READING_TIMEOUT for each in found)
        return found if is_current else None

    def note_stall(self, now: float) -> None:
        """Record that a stall of the loop ended at the time `now` [s]."""
        self._stall_end = now

    def since_stall(self, now: float) -> float:
        """Return the time since the last stall of the loop ended [s]; infinite without a stall."""
        return now - self._stall_end

    def joint_positions(self, arm: Arm, now: float) -> JointPositions:
        """Return the measured joint positions of the arm in use, and how to treat them.

        Call this once per cycle, because `JointPositions.is_lost` is True in one cycle only.

        Args:
            arm: Arm in use.
            now: Current time on the steady clock [s].
        """
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
            # If joint states are required, the controller itself reports a fault.
            is_supervised = arm.parameters.feedback_mode == MODE_REQUIRED
            is_lost = arm.controller.started and not self._display_only and not is_supervised
        return JointPositions(freshness, measurement, is_lost)

    def measurement(self, arm: Arm, now: float) -> Measurement | None:
        """Return the measured joint positions of an arm; None if a joint has no recent reading."""
        if arm.parameters.feedback_mode == MODE_NONE:
            return None
        return self.latest(arm.robot.joint_names, now, _reading_timeout(arm))

    def latest(
        self, names: Iterable[str], now: float, timeout: float = READING_TIMEOUT
    ) -> Measurement | None:
        """Return the measured positions of joints; None if a joint has no recent reading.

        Each position is the median of the last three recent readings of the joint. Therefore a
        single outlier neither moves nor stops the arm; the median lags by one message.

        Args:
            names: Names of the joints in the robot.
            now: Current time on the steady clock [s].
            timeout: Maximum time since a reading was received [s].
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
        """Return whether the arm may start to move or already has started.

        An arm may start if its joint positions are measured, or if it needs no measurement.

        Args:
            arm: Arm in use.
            now: Time on the steady clock [s].
            is_measured: Whether the joint positions of the arm are measured.
        """
        mode = arm.parameters.feedback_mode
        is_required = mode != MODE_NONE and not arm.controller.started
        is_optional = self._display_only and mode == MODE_AUTO and not is_measured
        is_unpublished = is_required and is_optional and self._has_discovered_all(now)
        return start_freshness(is_measured, is_required, is_unpublished) is not Freshness.WAIT

    def store(self, message: Any, sent: int = 0) -> None:
        """Store the valid positions of a message, unless this node published the message.

        Args:
            message: ``sensor_msgs/JointState``.
            sent: Send time on the clock of the publisher [ns]; 0 if unknown.
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
                return  # names or robot have changed since the message was read
            last = {name: self._readings.get(name, ())[-2:] for name in new}
            readings = {name: (*last[name], reading) for name, reading in new.items()}
            self._readings = merge_bounded(self._readings, readings)

    def _positions(self, message: Any, given: JointFilter) -> dict[str, float]:
        """Return the valid positions of a message by the names of the joints in the robot.

        Invalid positions are logged.

        Args:
            message: ``sensor_msgs/JointState``.
            given: Joints that are stored, and their names; other joints are left out.
        """
        names, positions, topic = message.name, message.position, self.topic
        if len(names) != len(positions):
            counts = f"{len(names)} names and {len(positions)} positions"
            self._log.warn("lengths", f"ignored a message on {topic}: it has {counts}")
            return {}
        keeps, robot_names = given.keeps, given.robot_names
        named = zip((robot_names.get(name, name) for name in names), positions, strict=True)
        pairs = [pair for pair in named if keeps(pair[0])]
        counts_of = Counter(name for name, _ in pairs)
        if len(counts_of) < len(pairs):
            twice = listing(sorted(name for name, count in counts_of.items() if count > 1))
            self._log.warn("twice", f"ignored a message on {topic}: it has joints twice: {twice}")
            return {}
        valid = {name: position for name, position in pairs if abs(position) <= MAX_POSITION}
        if len(valid) < len(pairs):
            invalid = listing(name for name in counts_of if name not in valid)
            reason = f"not finite, or larger than {MAX_POSITION:g}"
            self._log.warn("finite", f"ignored positions on {topic}: {reason}: {invalid}")
        return valid

    def _has_driver(self) -> bool:
        """Return whether another node publishes on the topic of joint states."""
        return bool(self._node.count_publishers(self.topic) > self.shares_topic)

    def _has_discovered_all(self, now: float) -> bool:
        """Return whether there was enough time to discover all drivers and their messages."""
        is_subscribed = self._subscription is not None
        return now - self._changed > DISCOVERY_TIME and is_subscribed == self._has_driver()

    def discover(self, now: float) -> None:
        """Check whether drivers have appeared or disappeared, every 0.1 s; call in each cycle.

        If they have, wake the executor, which then creates or destroys the subscription.
        """
        if now < self._next_check:
            return
        self._next_check = now + DISCOVERY_PERIOD
        if self._has_driver() != (self._subscription is not None):
            self._driver_changed.trigger()

    def _update_subscription(self) -> None:
        """Subscribe if there is a driver, and destroy the subscription if there is none."""
        if self._has_driver() == (self._subscription is not None):
            return
        before, new = self._subscription, None
        if before is None:
            new = subscribe_bounded(
                self._node, JointState, JOINT_STATES_TOPIC, self.store, JOINT_STATES_QOS, self._log
            )
        else:
            self._node.destroy_subscription(before)
        # Set before the subscription, because the loop reads both without a lock.
        self._changed = time.monotonic()
        self._subscription = new


def _reading_timeout(arm: Arm) -> float:
    """Return the maximum time since a reading of a joint of the arm was received [s]."""
    is_required = arm.parameters.feedback_mode == MODE_REQUIRED
    return arm.parameters.measurement_timeout if is_required else READING_TIMEOUT


def _velocities(message: Any, given: JointFilter) -> dict[str, float]:
    """Return the velocities of a message by the names of the joints in the robot.

    Args:
        message: ``sensor_msgs/JointState``.
        given: Names of the joints in the robot.

    Returns:
        Empty if the message does not have a velocity for each joint.
    """
    names, velocities = message.name, message.velocity
    if not velocities or len(names) != len(velocities):
        return {}
    return dict(zip((given.robot_names.get(name, name) for name in names), velocities, strict=True))


def _median(readings: list[JointReading]) -> JointReading:
    """Return the reading with the median position; with fewer than three readings, the newest."""
    by_position = sorted(readings, key=lambda reading: reading.position)
    return by_position[1] if len(readings) == 3 else readings[-1]
