# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Measured pose and twist of the tip, computed from joint states if there are subscribers."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node

from dls_ik.core.types import Array
from dls_ik.ros.frames import fill_pose
from dls_ik.ros.servo.outputs import set_time
from dls_ik.ros.servo.state_monitor import JointReading
from dls_ik.ros.servo.tip import Tip
from dls_ik.solver.trajectory import NANOSECONDS_PER_SECOND

MEASURED_POSE_TOPIC, MEASURED_TWIST_TOPIC = "current_pose", "current_twist"

Readings = Sequence[Sequence[JointReading]]  # for each of n joints its readings, newest last
FindReadings = Callable[[Iterable[str], float], Readings | None]


class MeasuredTip:
    """Publishes the measured pose and twist of the tip in the root frame.

    Each measurement is published once. The twist is relative to the base of the chain, along the
    axes of the root frame.

    Args:
        node: Node of the publishers.
        find_readings: Function that returns the readings of joints, or None if a joint has no
            recent reading. Its arguments are the joint names, and the time on the steady clock [s].
    """

    def __init__(self, node: Node, find_readings: FindReadings) -> None:
        self._find_readings = find_readings
        self._pose_publisher = node.create_publisher(PoseStamped, MEASURED_POSE_TOPIC, 1)
        self._twist_publisher = node.create_publisher(TwistStamped, MEASURED_TWIST_TOPIC, 1)
        self._pose, self._twist = PoseStamped(), TwistStamped()
        self._last = -math.inf  # [s] arrival of the last published measurement, steady clock

    def publish(self, tip: Tip, now: float, stamp: int) -> None:
        """Publish the pose and twist of the newest measurement, unless they were published before.

        Args:
            tip: Tip of the arm in use.
            now: Current time on the steady clock [s].
            stamp: Current ROS time [ns], for measurements without a stamp.
        """
        wants_pose = self._pose_publisher.get_subscription_count() > 0
        wants_twist = self._twist_publisher.get_subscription_count() > 0
        if not (wants_pose or wants_twist):
            return
        readings = self._find_readings(tip.robot.joint_names, now)
        if readings is None:
            return
        newest = max((each[-1] for each in readings), key=lambda reading: reading.time)
        if newest.time <= self._last:
            return
        self._last = newest.time
        time, q = newest.stamp or stamp, np.array([each[-1].position for each in readings])
        if wants_pose:
            _fill_header(self._pose.header, tip.frame, time)
            fill_pose(self._pose.pose, tip.poses(q))
            self._pose_publisher.publish(self._pose)
        v = joint_velocities(readings, tip.robot.continuous) if wants_twist else None
        if v is not None:
            _fill_header(self._twist.header, tip.frame, time)
            _fill_twist(self._twist.twist, tip.twist(q, v))
            self._twist_publisher.publish(self._twist)


def joint_velocities(readings: Readings, continuous: Iterable[bool]) -> Array | None:
    """Return the joint velocities (n,) [rad/s or m/s]; None if a velocity is unknown.

    If the newest reading of a joint includes no velocity, the result is the mean velocity over all
    readings of the joint. The time of a reading is its stamp, or its time of arrival if stamps are
    missing.

    Args:
        readings: For each of n joints its readings, newest last.
        continuous: (n,) whether a joint rotates without limits. Differences between positions of
            such a joint are taken modulo 2 pi, because not every driver counts full turns.
    """
    pairs = zip(readings, continuous, strict=True)
    v = np.array([_velocity(each, bool(is_continuous)) for each, is_continuous in pairs])
    return None if np.isnan(v).any() else v


def _velocity(readings: Sequence[JointReading], is_continuous: bool) -> float:
    """Return the velocity of a joint [rad/s or m/s] as :func:`joint_velocities`; NaN if unknown.

    Args:
        readings: Readings of the joint, newest last.
        is_continuous: Whether the joint rotates without limits.
    """
    first, last = readings[0], readings[-1]
    if math.isfinite(last.velocity):
        return last.velocity
    is_stamped = 0 < first.stamp < last.stamp
    elapsed = (
        (last.stamp - first.stamp) / NANOSECONDS_PER_SECOND
        if is_stamped
        else last.time - first.time
    )
    moved = last.position - first.position
    if is_continuous:
        moved = math.remainder(moved, 2.0 * math.pi)
    return moved / elapsed if elapsed > 0.0 else math.nan


def _fill_header(header: Any, frame: str, stamp: int) -> None:
    header.frame_id = frame
    set_time(header.stamp, stamp)


def _fill_twist(twist: Any, V: Array) -> None:
    v, w = twist.linear, twist.angular
    v.x, v.y, v.z, w.x, w.y, w.z = V.tolist()
