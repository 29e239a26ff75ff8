"""Markers of target, tip and trail for RViz, in the colours of the state."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from dls_ik.core.types import Array
from dls_ik.ros.frames import fill_pose
from dls_ik.ros.servo.report import CycleReport, Trail
from dls_ik.servo import ServoState

GREEN, YELLOW, ORANGE = (0.2, 0.8, 0.3), (0.95, 0.85, 0.2), (1.0, 0.55, 0.1)
RED, BLUE, GREY = (0.9, 0.15, 0.15), (0.25, 0.5, 1.0), (0.6, 0.6, 0.6)

_OF_CODE = {0: GREEN, 6: YELLOW, -1: RED}  # all others have to do with singularities
_OF_STATE = {
    ServoState.WAITING: GREY,
    ServoState.PAUSED: GREY,
    ServoState.STALE: GREY,
    ServoState.JOINT_MOTION: BLUE,
}
AXES, BALL, LINE = 0.15, 0.04, 0.008  # sizes, as shares of the arm's length
SECONDS_SHOWN = 1  # of markers that are not sent again
TOPIC = "~/markers"
PERIOD = 0.1  # [s]


def colour_of(state: ServoState, opacity: float = 1.0) -> ColorRGBA:
    """Return green: fine, blue: joint motion, grey: idle, yellow or orange: hindered, red: not."""
    red, green, blue = _OF_STATE.get(state) or _OF_CODE.get(state.code, ORANGE)
    return ColorRGBA(r=red, g=green, b=blue, a=opacity)


class MarkerMessage:
    """Message that is filled again: axes of the target, a ball at the tip, its trail.

    Args:
        frame: that all poses are in.
        length: about how far the arm reaches [m].
    """

    def __init__(self, frame: str, length: float) -> None:
        self._target = _marker(frame, "target", Marker.LINE_LIST, LINE * length)
        self._tip = _marker(frame, "tip", Marker.SPHERE, BALL * length)
        self._trail = _marker(frame, "trail", Marker.LINE_STRIP, LINE * length)
        self._target.points, self._target.colors = _axes(AXES * length)
        self._message = MarkerArray(markers=[self._target, self._tip, self._trail])

    def fill(self, state: ServoState, T_tip: Array, T_target: Array | None, trail: Array) -> Any:
        """Return the message of a state, poses (4, 4) and past positions of the tip (m, 3) [m]."""
        _show(self._target, T_target is not None)
        if T_target is not None:
            fill_pose(self._target.pose, T_target)
        fill_pose(self._tip.pose, T_tip)
        self._tip.color, self._trail.color = colour_of(state), colour_of(state, 0.6)
        _show(self._trail, len(trail) > 1)  # RViz warns of a line without two points
        self._trail.points = [Point(x=x, y=y, z=z) for x, y, z in trail.tolist()]
        return self._message


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
        node.create_timer(PERIOD, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _publish(self) -> None:
        report = self._report()
        trail, output = report.trail, report.output
        if trail is None or output is None or self._publisher.get_subscription_count() == 0:
            return
        tip = trail.tip
        if self._message is None or self._trail is not trail:
            self._message, self._trail = MarkerMessage(tip.frame, tip.length()), trail
        T_target = None if output.T_d is None else tip.in_root(output.T_d)
        points = trail.points(time.monotonic())
        message = self._message.fill(report.state, tip.poses(output.q), T_target, points)
        self._publisher.publish(message)
