# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Interactive marker for RViz, which shows the target of the arm, and sets a target if dragged."""

import math
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, Marker

from dls_ik.model.rotations import quaternion_from_rotation
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.monitor import CycleReport
from dls_ik.ros.servo.tip import Tip
from dls_ik.ros.subscriptions import call_every
from dls_ik.servo import Controller, ServoOutput, ServoState

MARKER_HANDLE_LENGTH, BALL_DIAMETER = 0.25, 0.06  # fractions of the reach of the arm
BALL_COLOUR = ColorRGBA(r=0.9, g=0.9, b=0.9, a=0.4)  # translucent
PAUSE_ENTRY, RESET_ENTRY, TO_TIP_ENTRY = "Pause", "Reset", "Bring the target to the tip"
SERVER, MARKER = "~/target", "target"
UPDATE_PERIOD = 0.1  # [s]
TOUCH_HOLD = 0.5  # [s] the node does not move the marker for this time after the user dragged it
MARKER_TOLERANCE = 1e-5  # [m, 1] tolerance of equal poses, because RViz uses single precision
FEEDBACK_QOS = QoSProfile(depth=10)  # RViz sends two messages when the mouse is released
MARKER_LIBRARY = "interactive_markers"


def build_handles(name: str, tip: Tip, pose: Any) -> Any:
    """Return an ``InteractiveMarker`` with handles to move and to turn a tip.

    The marker has no stamp, so that RViz uses the latest transform to its frame.

    Args:
        name: Name of the marker.
        tip: Tip of the arm; its root frame is the frame of the marker.
        pose: ``geometry_msgs/Pose`` of the marker in the root frame.
    """
    length = tip.length()
    marker = InteractiveMarker(name=name, pose=pose, scale=MARKER_HANDLE_LENGTH * length)
    marker.header.frame_id = tip.frame
    marker.description = f"target of {tip.robot.tip}"
    marker.controls = [_ball(BALL_DIAMETER * length)]
    for k, axis in enumerate("xyz"):
        moves, turns = InteractiveMarkerControl.MOVE_AXIS, InteractiveMarkerControl.ROTATE_AXIS
        marker.controls.append(_axis_handle(k, f"move {axis}", moves))
        marker.controls.append(_axis_handle(k, f"turn {axis}", turns))
    return marker


def _axis_handle(k: int, name: str, mode: int) -> Any:
    """Return a control that moves the marker along one of its axes, or turns it about this axis.

    RViz draws a control along its own x axis, so the control is rotated.

    Args:
        k: Axis of the marker, 0 to 2.
        name: Name of the control.
        mode: MOVE_AXIS or ROTATE_AXIS of ``InteractiveMarkerControl``.
    """
    control = InteractiveMarkerControl(name=name, interaction_mode=mode)
    R_marker_control = np.eye(3)[:, [k, (k + 1) % 3, (k + 2) % 3]]
    o = control.orientation
    o.x, o.y, o.z, o.w = quaternion_from_rotation(R_marker_control)
    return control


def _ball(size: float) -> Any:
    """Return a control with a ball of diameter `size` [m].

    Dragging the ball moves the marker; dragging with the Ctrl key pressed rotates the marker.
    """
    ball = Marker(type=Marker.SPHERE, color=BALL_COLOUR)
    ball.scale.x = ball.scale.y = ball.scale.z = size
    ball.pose.orientation.w = 1.0
    control = InteractiveMarkerControl(name="move", always_visible=True, markers=[ball])
    control.orientation.w = 1.0
    control.interaction_mode = InteractiveMarkerControl.MOVE_ROTATE_3D
    return control


class MarkerTarget:
    """Interactive marker at the target, or at the tip if there is no target.

    Dragging the marker sets targets. Each target is a trajectory of one pose, because such a target
    does not time out. A stream of poses would time out when the user stops dragging without
    releasing the mouse button, because RViz then sends no messages.

    Args:
        node: Node of the marker server.
        library: Module ``interactive_markers``.
        report: Function that returns the report of the last cycle.
        store: Function that stores a target message in the buffer of the servo loop.
        control: Function that lets the next cycle of the servo loop call its argument, a function
            of the controller.
    """

    def __init__(
        self,
        node: Node,
        library: Any,
        report: Callable[[], CycleReport],
        store: Callable[[Any], None],
        control: Callable[[Callable[[Controller], None]], None],
    ) -> None:
        self._node, self._report, self._store, self._control = node, report, store, control
        self._server = library.InteractiveMarkerServer(node, SERVER, feedback_sub_qos=FEEDBACK_QOS)
        self._updates = node.resolve_topic_name(f"{SERVER}/update")
        self._menu = menu = library.MenuHandler()
        self._pause_entry = menu.insert(PAUSE_ENTRY, callback=lambda _: self._toggle_pause())
        menu.insert(RESET_ENTRY, callback=lambda _: control(Controller.reset))
        menu.insert(TO_TIP_ENTRY, callback=lambda _: self._move_to_tip())
        self._pause_checked = False
        menu.setCheckState(self._pause_entry, menu.UNCHECKED)
        self._tip: Tip | None = None  # tip for which the marker was built
        self._pose: Any = None  # last pose of the marker
        self._last_feedback = -math.inf  # [s] time of the last feedback, steady clock
        namespace = self._updates.removesuffix("/update")
        node.get_logger().info(
            "interactive marker for RViz: add a display of type InteractiveMarkers with namespace "
            f"{namespace}"
        )
        call_every(node, UPDATE_PERIOD, self._update)

    def close(self) -> None:
        """Remove the marker; call this before the node is destroyed."""
        self._server.shutdown()

    def _update(self) -> None:
        """Move the marker to the target, or to the tip if there is no target.

        The marker does not move if no viewer is subscribed, or within 0.5 s after the user dragged
        it. For another robot, the marker is built again.
        """
        report = self._report()
        if report.trail is None or report.output is None:
            return
        tip = report.trail.tip
        if tip is not self._tip:
            self._insert(tip, _marker_pose(tip, report.output))
        elif self._node.count_subscribers(self._updates) > 0:
            pose = _marker_pose(tip, report.output)
            is_held = time.monotonic() - self._last_feedback <= TOUCH_HOLD
            if not is_held and not _is_same(pose, self._pose):
                self._pose = pose
                self._server.setPose(MARKER, pose)
            self._show_pause(report.state is ServoState.PAUSED)
        self._server.applyChanges()

    def _insert(self, tip: Tip, pose: Any) -> None:
        """Show the marker of a tip at a pose in the root frame; replace an earlier marker."""
        self._tip, self._pose = tip, pose
        self._server.insert(build_handles(MARKER, tip, pose), feedback_callback=self._receive)
        self._menu.apply(self._server, MARKER)

    def _receive(self, feedback: Any) -> None:
        """Handle ``InteractiveMarkerFeedback``; set a target if the user has moved the marker."""
        self._last_feedback = time.monotonic()
        if feedback.event_type not in (feedback.POSE_UPDATE, feedback.MOUSE_UP):
            return
        if not _is_same(feedback.pose, self._pose):
            self._pose = feedback.pose
            self._set_target(feedback.header.frame_id, feedback.pose)

    def _set_target(self, frame: str, pose: Any) -> None:
        """Set a target that does not time out.

        The target has no stamp, because the stamp of RViz may be too old.

        Args:
            frame: Frame of the pose.
            pose: ``geometry_msgs/Pose`` of the target.
        """
        target = PoseArray(poses=[pose])
        target.header.frame_id = frame
        self._store(target)

    def _show_pause(self, is_paused: bool) -> None:
        """Set the check mark of the marker's menu entry Pause, if the state has changed."""
        if is_paused is not self._pause_checked:
            menu, self._pause_checked = self._menu, is_paused
            menu.setCheckState(self._pause_entry, menu.CHECKED if is_paused else menu.UNCHECKED)
            menu.apply(self._server, MARKER)

    def _toggle_pause(self) -> None:
        is_paused = self._report().state is ServoState.PAUSED
        self._control(Controller.resume if is_paused else Controller.pause)

    def _move_to_tip(self) -> None:
        report = self._report()
        if report.trail is not None and report.output is not None:
            tip = report.trail.tip
            self._set_target(tip.frame, pose_from_matrix(tip.poses(report.output.q)))


def _marker_pose(tip: Tip, output: ServoOutput) -> Any:
    """Return the ``geometry_msgs/Pose`` for the marker, in the root frame.

    This is the pose of the target or, if there is no target, of the tip.
    """
    T_d = tip.target(output)
    return pose_from_matrix(tip.poses(output.q) if T_d is None else T_d)


def _is_same(a: Any, b: Any) -> bool:
    pairs = zip(_numbers(a), _numbers(b), strict=True)
    return all(abs(x - y) <= MARKER_TOLERANCE for x, y in pairs)


def _numbers(pose: Any) -> tuple[float, ...]:
    p, o = pose.position, pose.orientation
    return p.x, p.y, p.z, o.x, o.y, o.z, o.w


def build_marker(
    node: Node,
    parameters: Parameters,
    report: Callable[[], CycleReport],
    store: Callable[[Any], None],
    control: Callable[[Callable[[Controller], None]], None],
) -> MarkerTarget | None:
    """Build the interactive marker of a node.

    The arguments are those of :class:`MarkerTarget`, and the parameters of the node.

    Returns:
        None if the parameter `interactive_marker` is false, or if the package
        ``interactive_markers`` is not installed, which is logged.
    """
    if not parameters.interactive_marker:
        return None
    try:
        library = import_module(MARKER_LIBRARY)
    except ImportError:
        node.get_logger().warning(
            "interactive_marker is true, but RViz shows no marker, because the package "
            f"{MARKER_LIBRARY} is not installed; install it: sudo apt-get install "
            "ros-$ROS_DISTRO-interactive-markers"
        )
        return None
    return MarkerTarget(node, library, report, store, control)
