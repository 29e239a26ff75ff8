"""Markers for RViz: target, tip and trail in the colours of the state; one that drags the target.

The latter is interactive: it has handles, a menu and feedback.
"""

import math
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PoseArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerControl,
    Marker,
    MarkerArray,
)

from dls_ik.core.types import Array
from dls_ik.model.rotations import quaternion_from_rotation, rotation_from_z, transform
from dls_ik.ros.arm import Surroundings
from dls_ik.ros.frames import fill_pose, pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.monitor import CycleReport
from dls_ik.ros.servo.tip import Tip, Trail
from dls_ik.ros.subscriptions import CHECK_PERIOD, call_every, steady_timer
from dls_ik.servo import Controller, ServoOutput, ServoState
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.workspace import Bound, BoxBound, HalfSpace

GREEN, YELLOW, ORANGE = (0.2, 0.8, 0.3), (0.95, 0.85, 0.2), (1.0, 0.55, 0.1)
RED, BLUE, GREY = (0.9, 0.15, 0.15), (0.25, 0.5, 1.0), (0.6, 0.6, 0.6)

_OF_CODE = {0: GREEN, 6: YELLOW, 5: RED, -1: RED}  # of singularities and near collisions: orange
_OF_STATE = {
    ServoState.WAITING: GREY,
    ServoState.PAUSED: GREY,
    ServoState.TIMED_OUT: GREY,
    ServoState.STALE: GREY,
    ServoState.JOINT_MOTION: BLUE,
}
AXES, BALL, LINE = 0.15, 0.04, 0.008  # sizes, as shares of the arm's length
TEXT, END = 0.05, 0.02  # the same, of the nearest pair
GLASS_WALL, WALL = 0.15, 1e-3  # opacity of bounds of the workspace, and thickness of half-spaces
SECONDS_SHOWN = 1  # of markers that are not sent again
TOPIC = "~/markers"
PERIOD = 0.1  # [s]


def colour_of(state: ServoState, opacity: float = 1.0) -> ColorRGBA:
    """Return green: fine, blue: joint motion, grey: idle, yellow or orange: hindered, red: not."""
    red, green, blue = _OF_STATE.get(state) or _OF_CODE.get(state.code, ORANGE)
    return ColorRGBA(r=red, g=green, b=blue, a=opacity)


class MarkerMessage:
    """Message that is filled again: target, tip, its trail, the nearest pair, the workspace.

    Args:
        frame: that all poses are in.
        length: about how far the arm reaches [m].
        workspace: bounds, which stand still.
    """

    def __init__(self, frame: str, length: float, workspace: Iterable[Bound] = ()) -> None:
        self._target = _marker(frame, "target", Marker.LINE_LIST, LINE * length)
        self._tip = _marker(frame, "tip", Marker.SPHERE, BALL * length)
        self._trail = _marker(frame, "trail", Marker.LINE_STRIP, LINE * length)
        self._target.points, self._target.colors = _axes(AXES * length)
        self._between = _marker(frame, "nearest", Marker.LINE_LIST, LINE * length)
        self._ends = _marker(frame, "nearest points", Marker.SPHERE_LIST, END * length)
        self._text = _marker(frame, "nearest distance", Marker.TEXT_VIEW_FACING, TEXT * length)
        self._nearest = (self._between, self._ends, self._text)
        walls = [_wall(frame, bound, length) for bound in workspace]
        self._message = MarkerArray(
            markers=[self._target, self._tip, self._trail, *self._nearest, *walls]
        )

    def fill(
        self,
        state: ServoState,
        T_tip: Array,
        T_target: Array | None,
        trail: Array,
        nearest: NearPair | None = None,
    ) -> Any:
        """Return the message of a state, poses (4, 4) and past positions of the tip (m, 3) [m]."""
        _show(self._target, T_target is not None)
        if T_target is not None:
            fill_pose(self._target.pose, T_target)
        fill_pose(self._tip.pose, T_tip)
        self._tip.color, self._trail.color = colour_of(state), colour_of(state, 0.6)
        _show(self._trail, len(trail) > 1)  # RViz warns of a line without two points
        self._trail.points = _points(trail)
        for marker in self._nearest:
            _show(marker, nearest is not None)
        if nearest is not None:
            self._show_nearest(nearest, colour_of(state))
        return self._message

    def _show_nearest(self, nearest: NearPair, colour: ColorRGBA) -> None:
        ends = _points(nearest.points)
        for marker in self._nearest:
            marker.color = colour
        self._between.points = self._ends.points = ends
        middle = self._text.pose.position
        middle.x, middle.y, middle.z = nearest.points.mean(0).tolist()
        a, b = nearest.names
        self._text.text = f"{a} - {b}: {1e3 * nearest.distance:.0f} mm"


def _points(positions: Array) -> list[Point]:
    """Return positions (m, 3) [m] as points."""
    return [Point(x=x, y=y, z=z) for x, y, z in positions.tolist()]


def _wall(frame: str, bound: Bound, length: float) -> Any:
    """Return the marker of a bound: of a half-space a plate where it ends."""
    T = np.eye(4) if isinstance(bound, HalfSpace) else np.asarray(bound.T)
    kind, size = Marker.CUBE, np.full(3, 2.0 * length)
    if isinstance(bound, HalfSpace):
        normal = np.asarray(bound.normal)
        T, size[2] = transform(rotation_from_z(normal), bound.offset * normal), WALL
    elif isinstance(bound, BoxBound):
        size = np.asarray(bound.size)
    else:
        kind, size = Marker.SPHERE, np.full(3, 2.0 * bound.radius)
    wall = _marker(frame, f"bound {bound.name}", kind, 0.0)
    wall.scale.x, wall.scale.y, wall.scale.z = size.tolist()
    fill_pose(wall.pose, T)
    wall.color = ColorRGBA(r=BLUE[0], g=BLUE[1], b=BLUE[2], a=GLASS_WALL)
    return wall


def _marker(frame: str, namespace: str, kind: int, size: float) -> Any:
    """Return a marker without a stamp, so that the latest transform to its frame is used."""
    marker = Marker(ns=namespace, type=kind, action=Marker.ADD)
    marker.header.frame_id = frame
    marker.pose.orientation.w = 1.0
    marker.scale.x = marker.scale.y = marker.scale.z = size
    marker.color.a = 1.0
    marker.lifetime.sec = SECONDS_SHOWN
    return marker


def _axes(length: float) -> tuple[list[Point], list[ColorRGBA]]:
    """Return lines from the origin along x, y, z in red, green, blue, two ends each."""
    points, colours = [], []
    for x, y, z in np.eye(3).tolist():
        points += [Point(), Point(x=length * x, y=length * y, z=length * z)]
        colours += [ColorRGBA(r=x, g=y, b=z, a=1.0)] * 2
    return points, colours


def _show(marker: Any, shown: bool) -> None:
    marker.action = Marker.ADD if shown else Marker.DELETE


class Markers:
    """Publishes ``visualization_msgs/MarkerArray`` of the last report, outside the loop.

    Args:
        report: returns the report of the last cycle.
    """

    def __init__(self, node: Node, report: Callable[[], CycleReport]) -> None:
        self._report = report
        self._publisher = node.create_publisher(MarkerArray, TOPIC, 1)
        self._message: MarkerMessage | None = None
        self._trail: Trail | None = None  # that the message is for
        self._around: Surroundings | None = None
        self._timer = steady_timer(node, PERIOD, self._publish)
        self._timer.cancel()
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        """Begin to publish once somebody listens: a timer costs more than the loop at rest."""
        if self._timer.is_canceled() and self._publisher.get_subscription_count() > 0:
            self._timer.reset()

    def _publish(self) -> None:
        if self._publisher.get_subscription_count() == 0:
            self._timer.cancel()
            return
        report = self._report()
        trail, output, arm = report.trail, report.output, report.arm
        if trail is None or output is None or arm is None:
            return
        tip, around = trail.tip, arm.surroundings
        if self._message is None or self._trail is not trail or self._around is not around:
            self._message = MarkerMessage(tip.frame, tip.length(), around.workspace)
            self._trail, self._around = trail, around
        T_target = None if output.T_d is None else tip.in_root(output.T_d)
        points = trail.points(time.monotonic())
        T_tip = tip.poses(output.q)
        message = self._message.fill(report.state, T_tip, T_target, points, output.nearest)
        self._publisher.publish(message)


# The marker that drags the target

HANDLES, HANDLE_BALL = 0.25, 0.06  # of the arm's length
GLASS = ColorRGBA(r=0.9, g=0.9, b=0.9, a=0.4)  # translucent
PAUSE, RESET, TO_TIP = "Pause", "Reset", "Bring the target to the tip"
SERVER, MARKER = "~/target", "target"
TOUCH_HOLD = 0.5  # [s] after a touch in which the node does not move the marker
SAME = 1e-5  # [m and 1] RViz returns poses in single precision
FEEDBACK = QoSProfile(depth=10)  # RViz sends a pose and the release of the mouse together
LIBRARY = "interactive_markers"


def handles(name: str, tip: Tip, pose: Any) -> Any:
    """Return an ``InteractiveMarker`` for a tip, at a pose in the root frame.

    Without a stamp RViz uses the latest transform to its frame.
    """
    length = tip.length()
    marker = InteractiveMarker(name=name, pose=pose, scale=HANDLES * length)
    marker.header.frame_id = tip.frame
    marker.description = f"target of {tip.robot.tip}"
    marker.controls = [_ball(HANDLE_BALL * length)]
    for k, axis in enumerate("xyz"):
        marker.controls.append(_along(k, f"move {axis}", InteractiveMarkerControl.MOVE_AXIS))
        marker.controls.append(_along(k, f"turn {axis}", InteractiveMarkerControl.ROTATE_AXIS))
    return marker


def _along(k: int, name: str, mode: int) -> Any:
    """Return the handle for one axis of the marker; RViz draws it along the control's x axis."""
    control = InteractiveMarkerControl(name=name, interaction_mode=mode)
    R_marker_control = np.eye(3)[:, [k, (k + 1) % 3, (k + 2) % 3]]
    o = control.orientation
    o.x, o.y, o.z, o.w = quaternion_from_rotation(R_marker_control)
    return control


def _ball(size: float) -> Any:
    """Return a ball that follows the mouse and turns with Ctrl."""
    ball = Marker(type=Marker.SPHERE, color=GLASS)
    ball.scale.x = ball.scale.y = ball.scale.z = size
    ball.pose.orientation.w = 1.0
    control = InteractiveMarkerControl(name="move", always_visible=True, markers=[ball])
    control.orientation.w = 1.0
    control.interaction_mode = InteractiveMarkerControl.MOVE_ROTATE_3D
    return control


class MarkerTarget:
    """A marker that stands at the target, or at the tip without one; moving it sets targets.

    Each target stays in force: RViz sends nothing while the mouse is held still, which would be the
    end of a stream of poses.

    Args:
        library: the module ``interactive_markers``.
        report: returns the report of the last cycle.
        store: takes targets, as from a topic.
        control: runs a function of the controller in the loop.
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
        self._server = library.InteractiveMarkerServer(node, SERVER, feedback_sub_qos=FEEDBACK)
        self._updates = node.resolve_topic_name(f"{SERVER}/update")
        self._menu = menu = library.MenuHandler()
        self._pause_entry = menu.insert(PAUSE, callback=lambda _: self._toggle_pause())
        menu.insert(RESET, callback=lambda _: control(Controller.reset))
        menu.insert(TO_TIP, callback=lambda _: self._move_to_tip())
        self._pause_checked = False
        menu.setCheckState(self._pause_entry, menu.UNCHECKED)
        self._tip: Tip | None = None  # that the marker is for
        self._pose: Any = None  # of the marker
        self._touched = -math.inf  # [s]
        namespace = self._updates.removesuffix("/update")
        node.get_logger().info(f"handles for RViz: display InteractiveMarkers of {namespace}")
        call_every(node, PERIOD, self._update)

    def close(self) -> None:
        """Remove the marker, while there is still a node."""
        self._server.shutdown()

    def _update(self) -> None:
        """Move the marker to the target or tip, if somebody displays it."""
        report = self._report()
        if report.trail is None or report.output is None:
            return
        tip = report.trail.tip
        if tip is not self._tip:
            self._insert(tip, _place(tip, report.output))
        elif self._node.count_subscribers(self._updates) > 0:
            pose = _place(tip, report.output)
            if time.monotonic() - self._touched > TOUCH_HOLD and not _is_same(pose, self._pose):
                self._pose = pose
                self._server.setPose(MARKER, pose)
            self._check_pause(report.state is ServoState.PAUSED)
        self._server.applyChanges()

    def _insert(self, tip: Tip, pose: Any) -> None:
        """Insert the marker, or replace it by that of another tip."""
        self._tip, self._pose = tip, pose
        self._server.insert(handles(MARKER, tip, pose), feedback_callback=self._receive)
        self._menu.apply(self._server, MARKER)

    def _receive(self, feedback: Any) -> None:
        """Set a target if the marker was moved; a click alone sets none."""
        self._touched = time.monotonic()
        if feedback.event_type not in (feedback.POSE_UPDATE, feedback.MOUSE_UP):
            return
        if not _is_same(feedback.pose, self._pose):
            self._pose = feedback.pose
            self._set_target(feedback.header.frame_id, feedback.pose)

    def _set_target(self, frame: str, pose: Any) -> None:
        """Set a target that stays in force; without a stamp, since RViz's may be old."""
        target = PoseArray(poses=[pose])
        target.header.frame_id = frame
        self._store(target)

    def _check_pause(self, paused: bool) -> None:
        """Check or uncheck Pause in the menu, if it has changed."""
        if paused is not self._pause_checked:
            menu, self._pause_checked = self._menu, paused
            menu.setCheckState(self._pause_entry, menu.CHECKED if paused else menu.UNCHECKED)
            menu.apply(self._server, MARKER)

    def _toggle_pause(self) -> None:
        is_paused = self._report().state is ServoState.PAUSED
        self._control(Controller.resume if is_paused else Controller.pause)

    def _move_to_tip(self) -> None:
        report = self._report()
        if report.trail is not None and report.output is not None:
            tip = report.trail.tip
            self._set_target(tip.frame, pose_from_matrix(tip.poses(report.output.q)))


def _place(tip: Tip, output: ServoOutput) -> Any:
    """Return the pose of the target in the root frame, or that of the tip without a target."""
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
    report: Callable[[], CycleReport],
    store: Callable[[Any], None],
    control: Callable[[Callable[[Controller], None]], None],
) -> MarkerTarget | None:
    """Make the marker of a node, see :class:`MarkerTarget`.

    Returns:
        None if no parameter asks for it, or the library is missing, which is logged.
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
    return MarkerTarget(node, library, report, store, control)
