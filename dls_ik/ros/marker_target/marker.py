"""The marker between RViz and the stream: where it is, and what comes of moving it."""

import math
import time
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseArray
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile

from dls_ik.ros.conversions import pose_from_matrix
from dls_ik.ros.marker_target.handles import handles
from dls_ik.ros.marker_target.menu import PAUSE, RESET, TO_TIP, Menu
from dls_ik.ros.watch.seen import Seen
from dls_ik.ros.watch.tip import Tip
from dls_ik.servo import Controller, ServoOutput, ServoState

SERVER, MARKER = "~/target", "target"
PERIOD = 0.1  # [s]
LET_BE = 0.5  # [s] after it was touched the marker is not moved from here
SAME = 1e-5  # [m and 1] RViz gives poses back in single precision
FEEDBACK = QoSProfile(depth=10)  # RViz sends a pose and the release of the mouse at once


class MarkerTarget:
    """A marker that stands at the target, or else at the tip, and makes targets when it is moved.

    Each of them stands: RViz says nothing while the mouse is held still, which for a stream of
    poses would be its end.

    Args:
        library: the module ``interactive_markers``.
        seen: the last cycle.
        store: takes targets, as from a topic.
        order: has something done with the controller.
    """

    def __init__(
        self,
        node: Node,
        library: Any,
        seen: Callable[[], Seen],
        store: Callable[[Any], None],
        order: Callable[[Callable[[Controller], None]], None],
    ) -> None:
        self._node, self._seen, self._store, self._order = node, seen, store, order
        self._server = library.InteractiveMarkerServer(node, SERVER, feedback_sub_qos=FEEDBACK)
        self._updates = node.resolve_topic_name(f"{SERVER}/update")
        do = {PAUSE: self._pause, RESET: self._reset, TO_TIP: self._to_tip}
        self._menu = Menu(library, self._server, MARKER, do)
        self._tip: Tip | None = None  # that the marker is for
        self._shown: Any = None  # the pose of the marker
        self._touched = -math.inf  # when
        namespace = self._updates.removesuffix("/update")
        node.get_logger().info(f"handles for RViz: display InteractiveMarkers of {namespace}")
        node.create_timer(PERIOD, self._update, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """Take the marker away, while there is still a node."""
        self._server.shutdown()

    def _update(self) -> None:
        """Bring the marker to where it belongs, if anybody looks at it."""
        seen = self._seen()
        if seen.trail is None or seen.output is None:
            return
        tip = seen.trail.tip
        if tip is not self._tip:
            self._insert(tip, _place(tip, seen.output))
        elif self._node.count_subscribers(self._updates) > 0:
            if time.monotonic() - self._touched > LET_BE:
                self._move(_place(tip, seen.output))
            self._menu.show(seen.state is ServoState.PAUSED)
        self._server.applyChanges()

    def _insert(self, tip: Tip, pose: Any) -> None:
        """Show handles for another tip."""
        self._tip, self._shown = tip, pose
        marker = handles(MARKER, tip, pose)
        self._server.insert(marker, feedback_callback=self._feel)
        self._menu.apply()

    def _move(self, pose: Any) -> None:
        if not _is_same(pose, self._shown):
            self._shown = pose
            self._server.setPose(MARKER, pose)

    def _feel(self, feedback: Any) -> None:
        """Follow the marker; a click that moves nothing asks for nothing."""
        self._touched = time.monotonic()
        if feedback.event_type not in (feedback.POSE_UPDATE, feedback.MOUSE_UP):
            return
        if not _is_same(feedback.pose, self._shown):
            self._shown = feedback.pose
            self._aim(feedback.header.frame_id, feedback.pose)

    def _aim(self, frame: str, pose: Any) -> None:
        """Ask for a pose that stands; without a stamp, as that of RViz may be old."""
        target = PoseArray(poses=[pose])
        target.header.frame_id = frame
        self._store(target)

    def _pause(self) -> None:
        is_paused = self._seen().state is ServoState.PAUSED
        self._order(Controller.resume if is_paused else Controller.pause)

    def _reset(self) -> None:
        self._order(Controller.reset)

    def _to_tip(self) -> None:
        seen = self._seen()
        if seen.trail is not None and seen.output is not None:
            tip = seen.trail.tip
            self._aim(tip.frame, pose_from_matrix(tip.poses(seen.output.q)))


def _place(tip: Tip, output: ServoOutput) -> Any:
    """The pose of the target in the root frame, or else of the tip."""
    T_d = output.T_d
    return pose_from_matrix(tip.poses(output.q) if T_d is None else tip.in_root(T_d))


def _is_same(a: Any, b: Any) -> bool:
    pairs = zip(_numbers(a), _numbers(b), strict=True)
    return all(abs(x - y) <= SAME for x, y in pairs)


def _numbers(pose: Any) -> tuple[float, ...]:
    p, o = pose.position, pose.orientation
    return p.x, p.y, p.z, o.x, o.y, o.z, o.w
