"""A marker in RViz to drag the target with: its handles, its menu, and what comes of moving it."""

import math
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, Marker

from dls_ik.model.rotations import quaternion_from_rotation
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.report import CycleReport, Tip
from dls_ik.servo import Controller, ServoOutput, ServoState

SIZE, BALL = 0.25, 0.06  # shares of the arm's length
GLASS = ColorRGBA(r=0.9, g=0.9, b=0.9, a=0.4)  # what is inside can be seen
PAUSE, RESET, TO_TIP = "Pause", "Reset", "Bring the target to the tip"
SERVER, MARKER = "~/target", "target"
PERIOD = 0.1  # [s]
LET_BE = 0.5  # [s] after it was touched the marker is not moved from here
SAME = 1e-5  # [m and 1] RViz gives poses back in single precision
FEEDBACK = QoSProfile(depth=10)  # RViz sends a pose and the release of the mouse at once
LIBRARY = "interactive_markers"


def handles(name: str, tip: Tip, pose: Any) -> Any:
    """An ``InteractiveMarker`` for a tip, at a pose in the root frame.

    It has no stamp, so that the latest transform to its frame is used.
    """
    length = tip.length()
    marker = InteractiveMarker(name=name, pose=pose, scale=SIZE * length)
    marker.header.frame_id = tip.frame
    marker.description = f"target of {tip.robot.tip}"
    marker.controls = [_ball(BALL * length)]
    for k, axis in enumerate("xyz"):
        marker.controls.append(_along(k, f"move {axis}", InteractiveMarkerControl.MOVE_AXIS))
        marker.controls.append(_along(k, f"turn {axis}", InteractiveMarkerControl.ROTATE_AXIS))
    return marker


def _along(k: int, name: str, mode: int) -> Any:
    """The handle for one axis of the marker; RViz draws it, along its own x axis."""
    control = InteractiveMarkerControl(name=name, interaction_mode=mode)
    R_marker_control = np.eye(3)[:, [k, (k + 1) % 3, (k + 2) % 3]]
    o = control.orientation
    o.x, o.y, o.z, o.w = quaternion_from_rotation(R_marker_control)
    return control


def _ball(size: float) -> Any:
    """A ball that follows the mouse; with Ctrl it turns."""
    ball = Marker(type=Marker.SPHERE, color=GLASS)
    ball.scale.x = ball.scale.y = ball.scale.z = size
    ball.pose.orientation.w = 1.0
    control = InteractiveMarkerControl(name="move", always_visible=True, markers=[ball])
    control.orientation.w = 1.0
    control.interaction_mode = InteractiveMarkerControl.MOVE_ROTATE_3D
    return control


class Menu:
    """Pause, which is ticked while it lasts; reset; bring the target to the tip.

    Args:
        library: the module ``interactive_markers``.
        server, name: the marker's.
        do: what to do, by title.
    """

    def __init__(
        self, library: Any, server: Any, name: str, do: dict[str, Callable[[], None]]
    ) -> None:
        self._server, self._name = server, name
        self._handler = library.MenuHandler()
        self._entries = {
            title: self._handler.insert(title, callback=lambda _, act=act: act())
            for title, act in do.items()
        }
        self._ticked = False
        self._tick()

    def apply(self) -> None:
        """Give the menu to a marker that was inserted anew."""
        self._handler.apply(self._server, self._name)

    def show(self, paused: bool) -> None:
        """Tick or untick, if that is new."""
        if paused is not self._ticked:
            self._ticked = paused
            self._tick()
            self.apply()

    def _tick(self) -> None:
        state = self._handler.CHECKED if self._ticked else self._handler.UNCHECKED
        self._handler.setCheckState(self._entries[PAUSE], state)


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
        seen: Callable[[], CycleReport],
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


def build_marker(
    node: Node,
    parameters: Parameters,
    seen: Callable[[], CycleReport],
    store: Callable[[Any], None],
    order: Callable[[Callable[[Controller], None]], None],
) -> MarkerTarget | None:
    """The marker of a node; None where no parameter asks for it.

    Without the library there is none either, and the log says what to install. For all else see
    :class:`MarkerTarget`.
    """
    if not parameters.interactive_marker:
        return None
    try:
        library = import_module(LIBRARY)
    except ImportError:
        node.get_logger().warning(
            "there is no marker to drag in RViz: interactive_marker needs the package "
            f"{LIBRARY}: sudo apt-get install ros-$ROS_DISTRO-interactive-markers"
        )
        return None
    return MarkerTarget(node, library, seen, store, order)
