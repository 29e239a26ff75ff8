"""The client of the stream: targets along a circle, and which answer belongs to which target."""

import time
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState

from benchmarks.processes import wait_until
from dls_ik.ros.client.ik_client import stamped_pose

RADIUS, PERIOD = 0.05, 1.0  # [m], [s] of the circle
INBOX_DEPTH = 10_000  # messages kept between two looks


class Client:
    """Publishes targets to one node and receives its joint states, in one thread."""

    def __init__(self, node: Any, name: str, T: np.ndarray, frame: str) -> None:
        self.received: list[tuple[float, Any]] = []  # time [s], positions
        self.stamps: list[int] = []  # [ns] of the messages received
        self._start = T[:3, 3]
        self._message = stamped_pose(T, frame)
        self._clock = node.get_clock()
        self._message.header.stamp = self._clock.now().to_msg()
        topic = f"/{name}/joint_states"
        self._states = node.create_subscription(
            JointState, topic, self._receive, qos_profile_sensor_data
        )
        self._targets = node.create_publisher(PoseStamped, f"/{name}/target_pose", 1)

    def connect(self, name: str) -> None:
        """Wait for the node."""
        wait_until(self._targets.get_subscription_count, f"{name} takes targets")

    def publish(self, elapsed: float) -> tuple[float, float, float, float]:
        """Send the target of a time [s]; return when that began, and its position [m]."""
        angle = 2.0 * np.pi * elapsed / PERIOD
        offset = (0.0, RADIUS * np.sin(angle), RADIUS * (np.cos(angle) - 1.0))
        p = self._message.pose.position
        p.x, p.y, p.z = (self._start + offset).tolist()
        self._message.header.stamp = self._clock.now().to_msg()
        begin = time.perf_counter()
        self._targets.publish(self._message)
        return begin, p.x, p.y, p.z

    def _receive(self, message: Any) -> None:
        self.received.append((time.perf_counter(), message.position))
        stamp = message.header.stamp
        self.stamps.append(10**9 * stamp.sec + stamp.nanosec)


def follow(client: Client, executor: Any, rate: int, duration: float) -> np.ndarray:
    """Stream targets; return (k, 4) when each was published [s], and where it was [m]."""
    client.received.clear()
    client.stamps.clear()
    begin, sent = time.perf_counter(), []
    for i in range(round(rate * duration)):
        while (left := begin + i / rate - time.perf_counter()) > 0.0:
            executor.spin_once(timeout_sec=left)
        sent.append(client.publish(i / rate))
    while (left := begin + duration + 0.05 - time.perf_counter()) > 0.0:
        executor.spin_once(timeout_sec=left)
    return np.array(sent)


def latencies(sent: np.ndarray, times: np.ndarray, tips: np.ndarray, rate: int) -> np.ndarray:
    """(k,) of each target sent [s], NaN for those without an answer.

    Args:
        sent: (k, 4), times: (m,) of receipt [s], tips: (m, 3) [m].
    """
    found = np.full(len(sent), np.nan)
    spacing = 2.0 * np.pi * RADIUS / PERIOD / rate
    for time_, tip in zip(times, tips, strict=True):
        last = int(np.searchsorted(sent[:, 0], time_))
        first = max(0, last - int(0.5 * PERIOD * rate))  # half a circle: no place comes twice
        if last == first:
            continue
        distances = np.linalg.norm(sent[first:last, 1:] - tip, axis=1)
        k = int(np.argmin(distances))
        if distances[k] < 0.25 * spacing and np.isnan(found[first + k]):
            found[first + k] = time_ - sent[first + k, 0]
    return found


class Inbox:
    """A subscription whose messages are fetched; its node belongs to no executor."""

    def __init__(self, node: Node, kind: Any, topic: str) -> None:
        self._subscription: Any = node.create_subscription(
            kind, topic, lambda _: None, QoSProfile(depth=INBOX_DEPTH)
        )

    def take(self) -> list[Any]:
        """All messages that wait."""
        found, handle, kind = [], self._subscription.handle, self._subscription.msg_type
        with handle:
            while (pair := handle.take_message(kind, False)) is not None:
                found.append(pair[0])
        return found
