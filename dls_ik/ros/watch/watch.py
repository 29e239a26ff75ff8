"""All that is published for those who watch: status and tip each cycle, the rest by timers."""

from collections.abc import Callable, Mapping
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.ros.frames import fill_pose
from dls_ik.ros.outputs.messages import set_time
from dls_ik.ros.params import Parameters
from dls_ik.ros.util import Throttle
from dls_ik.ros.watch.diagnostics import Diagnostics
from dls_ik.ros.watch.markers import Markers
from dls_ik.ros.watch.tip import NOTHING, Seen, Tip, Trail
from dls_ik.servo.state import ServoOutput, ServoState

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

STATUS_TOPIC = "~/status"
TIP_TOPIC = "~/tip_pose"


class StatusReport:
    """Publishes ``moveit_msgs/msg/ServoStatus`` each cycle, and logs when things go wrong or well.

    States of the same code 0 come and go with every target, and are not logged.
    """

    def __init__(self, node: Node) -> None:
        self._log = Throttle(node)
        self._last = ServoState.WAITING
        self._publisher: Any = None
        if ServoStatus is not None:
            self._publisher = node.create_publisher(ServoStatus, STATUS_TOPIC, 1)
            self._message = ServoStatus()

    def report(self, state: ServoState, words: str = "") -> None:
        """Say the state, in other words than its own where they are given."""
        words = words or state.explanation
        if state is not self._last and (state.code, self._last.code) != (0, 0):
            self._log.info(state.name, f"stream: {words}")
        self._last = state
        if self._publisher is not None and self._publisher.get_subscription_count() > 0:
            self._message.code, self._message.message = state.code, words
            self._publisher.publish(self._message)


class TipPose:
    """Publishes the pose of the tip in the root frame, while somebody listens."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(PoseStamped, TIP_TOPIC, 1)
        self._message = PoseStamped()

    def report(self, tip: Tip, q: Array, stamp: int) -> None:
        """Say where the tip is at a command (n,), at a time [ns]."""
        if self._publisher.get_subscription_count() == 0:
            return
        self._message.header.frame_id = tip.frame
        set_time(self._message.header.stamp, stamp)
        fill_pose(self._message.pose, tip.poses(q))
        self._publisher.publish(self._message)


class Watch:
    """Publishes status and tip each cycle; diagnostics and markers by timers of the node.

    Args:
        heard: the values of joints by name, as drivers publish them.
        lag: how late the arm follows its commands [s], NaN where that is not known.
    """

    def __init__(
        self,
        node: Node,
        parameters: Parameters,
        heard: Callable[[], Mapping[str, float]],
        lag: Callable[[], float],
    ) -> None:
        self._heard = heard
        self._duration = parameters.trail
        self._status = StatusReport(node)
        self._tip_pose = TipPose(node)
        self._markers = Markers(node)
        self._diagnostics = Diagnostics(node, parameters.rate, lag)
        self.meter = self._diagnostics.meter
        self._trail: Trail | None = None
        self.seen = NOTHING  # the last cycle, for other threads

    def cycle(
        self,
        robot: RobotModel | None,
        output: ServoOutput | None,
        state: ServoState,
        words: str,
        now: float,
        stamp: int,
    ) -> None:
        """Tell of a cycle.

        Args:
            robot: the arm that the output is for; None: there is none yet.
            output: the command, where there is one; its arrays are not changed any more.
            state, words: what the arm does; empty words: those of the state.
            now: on the steady clock [s].
            stamp: the time of the command [ns].
        """
        self._status.report(state, words)
        trail = self._trail_of(robot)
        if trail is not None and output is not None:
            trail.sample(now, output.q)
            self._tip_pose.report(trail.tip, output.q, stamp)
        self.seen = Seen(state, words, output, trail)
        self._markers.seen = self._diagnostics.seen = self.seen

    def _trail_of(self, robot: RobotModel | None) -> Trail | None:
        if robot is None:
            self._trail = None
        elif self._trail is None or self._trail.tip.robot is not robot:
            self._trail = Trail(Tip(robot, self._heard), self._duration)
        return self._trail
