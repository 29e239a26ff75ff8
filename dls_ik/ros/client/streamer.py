"""Targets sent to a node at a steady rate, and what it makes of them."""

import time
from collections.abc import Sequence
from typing import Any

from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.qos import QoSProfile

from dls_ik.core.types import Array
from dls_ik.model.names import listing
from dls_ik.ros.client.errors import NoAnswerError, ServiceMissingError
from dls_ik.ros.client.heard import Heard, Row
from dls_ik.ros.client.host import OwnHost
from dls_ik.ros.conversions import fill_pose

POSE, TWIST = "target_pose", "target_twist"
STANDSTILL = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
POLL, GRACE = 0.01, 0.02  # [s] between looks, and between the messages that stop the arm


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
