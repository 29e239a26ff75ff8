# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Publishers of targets and of joint states."""

import math

import numpy as np
from geometry_msgs.msg import PoseStamped
from ros_wam import WAM
from sensor_msgs.msg import JointState

from dls_ik.ros.frames import pose_from_matrix
from dls_ik.servo import ControllerOptions

HOME = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
PERIOD = 0.01
TARGET_TIMEOUT = ControllerOptions().target_timeout
ALONE = 2.0 * TARGET_TIMEOUT  # [s] time since the last message, half of it for late ones


def stamped(T):
    return PoseStamped(pose=pose_from_matrix(T))


def positions(message):
    return np.array(message.position)


def seconds(message):
    """Return the stamp [s]."""
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


def motion(states):
    """Return times (m,) [s], positions (m, n) and velocities (m, n) of joint states."""
    fields = ([getattr(s, name) for s in states] for name in ("position", "velocity"))
    return np.array([seconds(s) for s in states]), *map(np.array, fields)


def points(trajectory):
    """Return times since sending (k,) [s], positions (k, n) and velocities (k, n) of the points."""
    starts = [point.time_from_start for point in trajectory.points]
    fields = ("positions", "velocities")
    rows = (np.array([getattr(p, name) for p in trajectory.points]) for name in fields)
    return np.array([s.sec + 1e-9 * s.nanosec for s in starts]), *rows


class Streamer:
    """Publisher of targets that keeps the received joint states."""

    def __init__(self, client, topic="joint_states"):
        self.client = client
        self.states = client.listen(JointState, topic)
        self.targets = client.publisher(PoseStamped, "target_pose", 1)

    def go(self, T, tolerance=1e-4):
        """Publish a single target, not as part of a stream, and wait until the arm reaches it."""
        self.client.spin_for(ALONE)
        self.send_until(T, lambda: self.error(T) < tolerance, "the arm at its target")

    def send_until(self, T, condition, what):
        """Publish a single target, wait for a condition; publish again only if a status asks."""
        self.client.send_until(lambda: self.targets.publish(stamped(T)), condition, what)

    def stream(self, pose_at, duration):
        """Publish a target each period, and return the errors at the latest states.

        On a busy machine the stream is slower, but no target is skipped.
        """
        errors = []
        for k in range(int(duration / PERIOD)):
            T = pose_at(k * PERIOD)
            self.targets.publish(stamped(T))
            self.client.spin_for(PERIOD)
            errors.append(self.error(T))
        return np.array(errors)

    def stream_until(self, T, condition, what):
        """Publish the same target, as part of a stream, until a condition holds."""

        def is_done():
            self.targets.publish(stamped(T))
            return condition()

        self.client.spin_until(is_done, what=what)

    def is_still(self):
        """Return whether no target arrived for a while, so the next one starts a new stream."""
        self.client.spin_for(2 * TARGET_TIMEOUT)
        return not any(self.states[-1].velocity)

    def error(self, T):
        return np.abs(WAM.fk(positions(self.states[-1])) - T).max() if self.states else math.inf


class Driver:
    """Publisher of joint states that behaves like a driver."""

    def __init__(self, client, names, values):
        self.message = JointState(name=list(names), position=list(map(float, values)))
        self.message.header.frame_id = "driver"
        self._client = client
        self._publisher = client.node.create_publisher(JointState, "joint_states", 10)
        self._timer = client.node.create_timer(0.02, self._publish)

    def _publish(self):
        self.message.header.stamp = self._measured_at()
        self._publisher.publish(self.message)

    def _measured_at(self):
        """Return the time of the measurement."""
        return self._client.node.get_clock().now().to_msg()

    def stop(self):
        self._client.node.destroy_timer(self._timer)
        self._client.node.destroy_publisher(self._publisher)
