# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Markers for RViz: target, tip, trail, nearest pair and workspace, in the colour of the state."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from dls_ik.core.types import Array
from dls_ik.model.rotations import rotation_from_z, transform
from dls_ik.ros.arm import Surroundings
from dls_ik.ros.frames import fill_pose
from dls_ik.ros.servo.monitor import CycleReport
from dls_ik.ros.servo.tip import Trail
from dls_ik.ros.subscriptions import CHECK_PERIOD, call_every, steady_timer
from dls_ik.servo import ServoState
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.workspace import Bound, BoxBound, HalfSpace

MARKER_GREEN, MARKER_YELLOW, MARKER_ORANGE = (0.2, 0.8, 0.3), (0.95, 0.85, 0.2), (1.0, 0.55, 0.1)
MARKER_RED, MARKER_BLUE, MARKER_GREY = (0.9, 0.15, 0.15), (0.25, 0.5, 1.0), (0.6, 0.6, 0.6)

_COLOUR_OF_CODE = {
    0: MARKER_GREEN,
    6: MARKER_YELLOW,
    5: MARKER_RED,
    -1: MARKER_RED,
}  # all other codes are orange
_COLOUR_OF_STATE = {  # These states take precedence over their codes.
    ServoState.WAITING: MARKER_GREY,
    ServoState.PAUSED: MARKER_GREY,
    ServoState.TIMED_OUT: MARKER_GREY,
    ServoState.STALE: MARKER_GREY,
    ServoState.JOINT_MOTION: MARKER_BLUE,
}
# Sizes as fractions of the length of the arm
AXIS_LENGTH, TIP_DIAMETER, LINE_WIDTH = 0.15, 0.04, 0.008
TEXT_HEIGHT, PAIR_POINT_DIAMETER = 0.05, 0.02
TRAIL_OPACITY, WALL_OPACITY = 0.6, 0.15
WALL_THICKNESS = 1e-3  # [m] thickness of the plate that shows a half-space
MARKER_LIFETIME = 1  # [s] RViz removes a marker that is not sent again
MARKERS_TOPIC = "~/markers"
MARKERS_PERIOD = 0.1  # [s]


def colour_of(state: ServoState, opacity: float = 1.0) -> ColorRGBA:
    """Return the colour in which RViz shows a state.

    Green: the arm follows its target; blue: joint-space motion; grey: no target, or no data;
    yellow: a joint is at its limit; orange: near a singularity or a collision, or stalled; red:
    blocked, target refused, or a fault.

    Args:
        state: State of the controller.
        opacity: Opacity of the colour, 0 to 1.
    """
    red, green, blue = _COLOUR_OF_STATE.get(state) or _COLOUR_OF_CODE.get(state.code, MARKER_ORANGE)
    return ColorRGBA(r=red, g=green, b=blue, a=opacity)


class MarkerMessage:
    """Marker message with target, tip, trail, nearest pair of bodies and workspace.

    The same message object is filled again for each publication.

    Args:
        frame: Frame of all poses.
        length: Approximate reach of the arm [m], which scales the markers.
        workspace: Bounds of the workspace, which do not move.
    """

    def __init__(self, frame: str, length: float, workspace: Iterable[Bound] = ()) -> None:
        self._target = _marker(frame, "target", Marker.LINE_LIST, LINE_WIDTH * length)
        self._tip = _marker(frame, "tip", Marker.SPHERE, TIP_DIAMETER * length)
        self._trail = _marker(frame, "trail", Marker.LINE_STRIP, LINE_WIDTH * length)
        self._target.points, self._target.colors = _axes(AXIS_LENGTH * length)
        self._between = _marker(frame, "nearest", Marker.LINE_LIST, LINE_WIDTH * length)
        point_diameter, text_height = PAIR_POINT_DIAMETER * length, TEXT_HEIGHT * length
        self._ends = _marker(frame, "nearest points", Marker.SPHERE_LIST, point_diameter)
        self._text = _marker(frame, "nearest distance", Marker.TEXT_VIEW_FACING, text_height)
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
        """Fill and return the message.

        Args:
            state: State of the controller, which determines the colour.
            T_tip: (4, 4) T_root_tip.
            T_target: (4, 4) T_root_target; None if there is no target.
            trail: (m, 3) past positions of the tip in the root frame [m].
            nearest: Nearest pair of bodies; None: no pair is shown.
        """
        _show(self._target, T_target is not None)
        if T_target is not None:
            fill_pose(self._target.pose, T_target)
        fill_pose(self._tip.pose, T_tip)
        self._tip.color, self._trail.color = colour_of(state), colour_of(state, TRAIL_OPACITY)
        _show(self._trail, len(trail) > 1)  # RViz warns of a line with fewer than two points
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
    """Convert positions (m, 3) [m] to ``geometry_msgs/Point`` messages."""
    return [Point(x=x, y=y, z=z) for x, y, z in positions.tolist()]


def _wall(frame: str, bound: Bound, length: float) -> Any:
    """Return the marker of a workspace bound; a half-space is shown as a plate on its boundary.

    Args:
        frame: Frame of the bound.
        bound: Bound of the workspace.
        length: Approximate reach of the arm [m]; half the edge length of the plate.
    """
    T = np.eye(4) if isinstance(bound, HalfSpace) else np.asarray(bound.T)
    kind, size = Marker.CUBE, np.full(3, 2.0 * length)
    if isinstance(bound, HalfSpace):
        normal = np.asarray(bound.normal)
        T, size[2] = transform(rotation_from_z(normal), bound.offset * normal), WALL_THICKNESS
    elif isinstance(bound, BoxBound):
        size = np.asarray(bound.size)
    else:
        kind, size = Marker.SPHERE, np.full(3, 2.0 * bound.radius)
    wall = _marker(frame, f"bound {bound.name}", kind, 0.0)
    wall.scale.x, wall.scale.y, wall.scale.z = size.tolist()
    fill_pose(wall.pose, T)
    wall.color = ColorRGBA(r=MARKER_BLUE[0], g=MARKER_BLUE[1], b=MARKER_BLUE[2], a=WALL_OPACITY)
    return wall


def _marker(frame: str, namespace: str, kind: int, size: float) -> Any:
    """Return a marker without a stamp, so that RViz uses the latest transform to its frame.

    Args:
        frame: Frame of the marker.
        namespace: Namespace of the marker, by which RViz identifies it.
        kind: Type of the marker, a constant of ``visualization_msgs/Marker``.
        size: Scale of the marker in all directions [m].
    """
    marker = Marker(ns=namespace, type=kind, action=Marker.ADD)
    marker.header.frame_id = frame
    marker.pose.orientation.w = 1.0
    marker.scale.x = marker.scale.y = marker.scale.z = size
    marker.color.a = 1.0
    marker.lifetime.sec = MARKER_LIFETIME
    return marker


def _axes(length: float) -> tuple[list[Point], list[ColorRGBA]]:
    """Return the end points and colours of three lines that show the axes of a frame.

    The x axis is red, the y axis green and the z axis blue; each line has the given length [m].
    """
    points, colours = [], []
    for x, y, z in np.eye(3).tolist():
        points += [Point(), Point(x=length * x, y=length * y, z=length * z)]
        colours += [ColorRGBA(r=x, g=y, b=z, a=1.0)] * 2
    return points, colours


def _show(marker: Any, shown: bool) -> None:
    marker.action = Marker.ADD if shown else Marker.DELETE


class Markers:
    """Publishes the report of the last cycle as ``visualization_msgs/MarkerArray``, by a timer.

    Args:
        node: Node of the publisher and of the timer.
        report: Function that returns the report of the last cycle.
    """

    def __init__(self, node: Node, report: Callable[[], CycleReport]) -> None:
        self._report = report
        self._publisher = node.create_publisher(MarkerArray, MARKERS_TOPIC, 1)
        self._message: MarkerMessage | None = None
        # The trail and the surroundings of the arm for which the message was built.
        self._trail: Trail | None = None
        self._surroundings: Surroundings | None = None
        self._timer = steady_timer(node, MARKERS_PERIOD, self._publish)
        self._timer.cancel()
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        """Start the timer if there is a subscriber; the timer stops itself if there is none.

        A timer that runs takes more processor time than an idle servo loop.
        """
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
        if self._message is None or self._trail is not trail or self._surroundings is not around:
            self._message = MarkerMessage(tip.frame, tip.length(), around.workspace)
            self._trail, self._surroundings = trail, around
        T_target = tip.target(output)
        points = trail.points(time.monotonic())
        T_tip = tip.poses(output.q)
        message = self._message.fill(report.state, T_tip, T_target, points, output.nearest)
        self._publisher.publish(message)
