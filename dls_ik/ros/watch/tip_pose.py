"""Where the command takes the tip, for plots."""

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node

from dls_ik.core.types import Array
from dls_ik.ros.conversions import fill_pose
from dls_ik.ros.outputs.fields import set_time
from dls_ik.ros.watch.tip import Tip

TOPIC = "~/tip_pose"


class TipPose:
    """Publishes the pose of the tip in the root frame, while somebody listens."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(PoseStamped, TOPIC, 1)
        self._message = PoseStamped()

    def report(self, tip: Tip, q: Array, stamp: int) -> None:
        """Say where the tip is at a command (n,), at a time [ns]."""
        if self._publisher.get_subscription_count() == 0:
            return
        self._message.header.frame_id = tip.frame
        set_time(self._message.header.stamp, stamp)
        fill_pose(self._message.pose, tip.poses(q))
        self._publisher.publish(self._message)
