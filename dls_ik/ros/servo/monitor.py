# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Report of a cycle, and its publication: status and tip in each cycle, diagnostics by a timer.

The first row of this table that applies determines the level of the diagnostics:

=========================================================  =====
state                                                      level
=========================================================  =====
no cycle since the last diagnostics                        STALE
NO_ROBOT, STALE, or waiting for joint states               STALE
codes below 0: REFUSED, FAULT                              ERROR
codes 1 to 6: singularity, collision, joint limit          WARN
targets wait, for example for a scene                      WARN
code 0, and at least every tenth cycle is late             WARN
code 0: idle, following, reached, timed out, paused        OK
=========================================================  =====
"""

import math
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node

from dls_ik.model.robot import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import fill_pose
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.measured_tip import MeasuredTip
from dls_ik.ros.servo.outputs import set_time
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor
from dls_ik.ros.servo.target_buffer import topic_of
from dls_ik.ros.servo.tip import Tip, Trail
from dls_ik.ros.subscriptions import call_every
from dls_ik.ros.util import Throttle
from dls_ik.servo import ServoOutput, ServoState
from dls_ik.servo.supervision import suggested_deviation

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # moveit_msgs before 2.3
    ServoStatus = None

STATUS_TOPIC, TIP_TOPIC = "~/status", "~/tip_pose"
DIAGNOSTICS_TOPIC = "/diagnostics"  # absolute, because nodes in all namespaces share the topic
DIAGNOSTICS_PERIOD = 1.0  # [s]
MIN_LISTED_ACTIVATION = 0.5  # limit activation above which a joint is listed as held at its limit
NO_DATA_STATES = (ServoState.NO_ROBOT, ServoState.STALE)
MAX_LATE_SHARE = 0.1  # the level is WARN if this fraction of the cycles, or more, is late


class CycleReport(NamedTuple):
    """Result of a cycle; immutable, so that other threads may read it."""

    state: ServoState = ServoState.WAITING
    message: str = ""  # empty: the explanation of the state is the message
    arm: Arm | None = None  # None: no robot yet
    output: ServoOutput | None = None  # None: no command
    is_command: bool = False  # whether the command must be published
    trail: Trail | None = None  # None: no robot yet
    awaits_states: bool = False  # whether the arm must not start before joint states arrive
    are_targets_held: bool = False  # whether targets must wait, for example for a scene


class LoopFigures(NamedTuple):
    """Numbers and durations of cycles.

    Recent cycles are the cycles after the previous call of :meth:`LoopMeter.read`. An overrun is a
    cycle that started more than a period after its deadline.
    """

    cycles: int  # number of all cycles
    overruns: int  # number of all overruns
    recent_cycles: int
    recent_overruns: int
    rate: float  # [Hz] rate of recent cycles
    mean: float  # [s] mean duration of recent cycles; NaN if there are none
    worst: float  # [s] maximum duration of recent cycles; NaN if there are none


class LoopMeter:
    """Counts and measures cycles; the loop updates the figures, another thread reads them.

    Args:
        period: Period of the loop [s].
        now: Current time on the steady clock [s].
    """

    def __init__(self, period: float, now: float) -> None:
        self._period = period
        self._lock = threading.Lock()
        self._cycles = self._overruns = 0  # totals at the last call of `read`
        self._recent = self._late = 0
        self._busy = self._worst = 0.0  # [s]
        self._since = now

    def cycle(self, deadline: float, start: float, end: float) -> None:
        """Count a cycle with its deadline, start and end on the steady clock [s]."""
        busy = end - start
        with self._lock:
            self._recent += 1
            self._busy += busy
            self._worst = max(self._worst, busy)
            self._late += start - deadline > self._period

    def read(self, now: float) -> LoopFigures:
        """Return the figures, and reset the figures of recent cycles.

        Args:
            now: Current time on the steady clock [s].
        """
        with self._lock:
            recent, late, busy, worst = self._recent, self._late, self._busy, self._worst
            elapsed, self._since = now - self._since, now
            self._cycles += recent
            self._overruns += late
            self._recent = self._late = 0
            self._busy = self._worst = 0.0
        rate = recent / elapsed if elapsed > 0.0 else math.nan
        mean, worst = (busy / recent, worst) if recent else (math.nan, math.nan)
        return LoopFigures(self._cycles, self._overruns, recent, late, rate, mean, worst)


def diagnostic_level(report: CycleReport, loop: LoopFigures) -> tuple[Any, str]:
    """Return the level and the message of the diagnostics.

    Args:
        report: Report of the last cycle.
        loop: Figures of the recent cycles.
    """
    state, message = report.state, report.message or report.state.explanation
    if not loop.recent_cycles:
        return DiagnosticStatus.STALE, "the loop has run no cycle since the last diagnostics"
    if state in NO_DATA_STATES or report.awaits_states:
        return DiagnosticStatus.STALE, message
    if state.code != 0:
        return DiagnosticStatus.ERROR if state.code < 0 else DiagnosticStatus.WARN, message
    if report.are_targets_held:
        return DiagnosticStatus.WARN, message
    if loop.recent_overruns >= MAX_LATE_SHARE * loop.recent_cycles:
        late = f"{loop.recent_overruns} of {loop.recent_cycles} cycles started late"
        return DiagnosticStatus.WARN, f"{message}; {late}"
    return DiagnosticStatus.OK, message


def loop_diagnostics(loop: LoopFigures, rate: float) -> dict[str, str]:
    """Return the diagnostics of the loop: names and values as texts.

    Args:
        loop: Figures of the loop.
        rate: Requested rate of the loop [Hz].
    """
    return {
        "rate asked [Hz]": f"{rate:g}",
        "rate measured [Hz]": f"{loop.rate:.1f}",
        "cycles": str(loop.cycles),
        "overruns": str(loop.overruns),
        "mean cycle time [ms]": f"{1e3 * loop.mean:.3f}",
        "worst cycle time [ms]": f"{1e3 * loop.worst:.3f}",
    }


def motion_diagnostics(robot: RobotModel, output: ServoOutput) -> dict[str, str]:
    """Return the diagnostics of the motion: names and values as texts; unknown values are "nan"."""
    distances = np.minimum(output.q - robot.lower, robot.upper - output.q)
    nearest = int(np.argmin(distances))
    names = robot.joint_names
    activations = zip(names, output.limit_activation, strict=True)
    held = [name for name, activation in activations if activation > MIN_LISTED_ACTIVATION]
    each = zip(names, distances, strict=True)
    tips = {
        f"{what}, {tip.name}{unit}": value
        for tip in output.tips
        for what, unit, value in (
            ("state", "", tip.state.name.lower()),
            ("position error", " [m]", f"{tip.position_error:.3g}"),
            ("rotation error", " [rad]", f"{tip.rotation_error:.3g}"),
        )
    }
    return {
        "target age [s]": f"{output.target_age:.3f}",
        "position error [m]": f"{output.position_error:.3g}",
        "rotation error [rad]": f"{output.rotation_error:.3g}",
        "least singular value": f"{output.least_singular_value:.4g}",
        "condition": f"{output.condition:.4g}",
        "held joints": ", ".join(held) or "none",
        "least distance to a limit [rad or m]": f"{distances[nearest]:.4f}",
        "joint nearest to a limit": names[nearest],
        **{f"distance to a limit, {name} [rad or m]": f"{d:.4f}" for name, d in each},
        **tips,
    }


def avoidance_diagnostics(arm: Arm, output: ServoOutput | None) -> dict[str, str]:
    """Return the diagnostics of collision avoidance: names and values as texts.

    The nearest pair of bodies is included if its distance is below `influence_distance`.
    """
    around, options = arm.surroundings, arm.controller.options
    if around.scene is not None:
        now = around.scene.snapshot
        count = len(now.objects) + len(now.attached)
        avoidance = f"{options.min_distance:g} m from {len(now.links)} links and {count} objects"
    else:
        reason = around.hold_reason or around.reason
        avoidance = f"not avoided: {reason}".removesuffix(": ")
    nearest = None if output is None else output.nearest
    return {
        "collisions": avoidance,
        "bounds of the workspace": ", ".join(bound.name for bound in around.workspace) or "none",
        "nearest pair": "none" if nearest is None else " and ".join(nearest.names),
        "nearest distance [m]": "nan" if nearest is None else f"{nearest.distance:.4f}",
    }


def lag_diagnostics(robot: RobotModel, lag: float) -> dict[str, str]:
    """Return the diagnostics of the lag of the arm: names and values as texts.

    If the lag is known, a value of `max_deviation` that allows for the lag is included.

    Args:
        robot: Robot of the arm.
        lag: Lag of the arm behind its commands [s]; NaN if unknown.
    """
    if math.isnan(lag):
        return {"lag of the arm [s]": "unknown: no joint states, or no motion yet"}
    values = {"lag of the arm [s]": f"{lag:.3f}"}
    speeds = robot.velocity[np.isfinite(robot.velocity)]
    if len(speeds):
        deviation = suggested_deviation(speeds.max(), lag)
        values["max_deviation for that lag [rad or m]"] = f"{deviation:.2f}"
    return values


class StatusPublisher:
    """Publishes a ``moveit_msgs/msg/ServoStatus`` in each cycle, and logs changes of the state.

    Changes between states with code 0 are not logged, because they occur with every target. An
    exception is a stream that times out before the arm has reached its last pose.
    """

    def __init__(self, node: Node) -> None:
        self._log = Throttle(node)
        self._last = ServoState.WAITING
        self._publisher: Any = None
        if ServoStatus is not None:
            self._publisher = node.create_publisher(ServoStatus, STATUS_TOPIC, 1)
            self._message = ServoStatus()

    def publish(self, state: ServoState, message: str) -> None:
        """Publish a state and a message; replace an empty message by the state's explanation."""
        message = message or state.explanation
        stops_short = state is ServoState.TIMED_OUT and message != state.explanation
        if state is not self._last and (state.code or self._last.code or stops_short):
            self._log.info(state.name, f"stream: {message}")
        self._last = state
        if self._publisher is not None and self._publisher.get_subscription_count() > 0:
            self._message.code, self._message.message = state.code, message
            self._publisher.publish(self._message)


class Monitor:
    """Publishes status and tip in each cycle, and diagnostics by a timer.

    Args:
        node: Node of the publishers.
        parameters: Parameters of the node.
        states: Monitor of the joint states that drivers publish.
        lag: Function that returns the lag of the arm behind its commands [s]; NaN if unknown.

    Attributes:
        report: Report of the last cycle, for other threads.
        meter: Numbers and durations of the cycles.
    """

    def __init__(
        self,
        node: Node,
        parameters: Parameters,
        states: CurrentStateMonitor,
        lag: Callable[[], float],
    ) -> None:
        self.report = CycleReport()
        self.meter = LoopMeter(1.0 / parameters.rate, time.monotonic())
        self._node, self._joint_values, self._lag = node, states.values, lag
        self._rate, self._duration = parameters.rate, parameters.trail
        self._trail: Trail | None = None
        self._status = StatusPublisher(node)
        self._tip_publisher = node.create_publisher(PoseStamped, TIP_TOPIC, 1)
        self._tip_message = PoseStamped()
        self._tips = parameters.stream_tips()
        self._tip_publishers = [
            node.create_publisher(PoseStamped, topic_of(TIP_TOPIC, name), 1) for name in self._tips
        ]
        self._measured = MeasuredTip(node, states.readings)
        self._name = f"{node.get_fully_qualified_name()}: stream"
        self._publisher = node.create_publisher(DiagnosticArray, DIAGNOSTICS_TOPIC, 10)
        call_every(node, DIAGNOSTICS_PERIOD, self._publish_diagnostics)

    def publish(self, report: CycleReport, now: float, stamp: int) -> None:
        """Publish the report of a cycle.

        Args:
            report: Report of the cycle.
            now: Current time on the steady clock [s].
            stamp: Current ROS time [ns].
        """
        self._status.publish(report.state, report.message)
        trail = self._trail_of(report.arm)
        if trail is not None and report.output is not None:
            trail.sample(now, report.output.q)
            if self._tip_publisher.get_subscription_count() > 0:
                self._publish_tip(trail.tip, report.output, stamp, self._tip_publisher)
            for k, publisher in enumerate(self._tip_publishers):
                if publisher.get_subscription_count() > 0:
                    tip = Tip(trail.tip.robot, self._joint_values, k)
                    self._publish_tip(tip, report.output, stamp, publisher)
        if trail is not None:
            self._measured.publish(trail.tip, now, stamp)
        self.report = report._replace(trail=trail)

    def _trail_of(self, arm: Arm | None) -> Trail | None:
        """Return the trail of the arm's tip; start a new trail if the arm has another robot."""
        if arm is None:
            self._trail = None
        elif self._trail is None or self._trail.tip.robot is not arm.robot:
            self._trail = Trail(Tip(arm.robot, self._joint_values), self._duration)
        return self._trail

    def _publish_tip(self, tip: Tip, output: ServoOutput, stamp: int, publisher: Any) -> None:
        """Publish the commanded pose of a tip in the root frame, with a stamp [ns]."""
        self._tip_message.header.frame_id = tip.frame
        set_time(self._tip_message.header.stamp, stamp)
        fill_pose(self._tip_message.pose, tip.poses(output.q))
        publisher.publish(self._tip_message)

    def _publish_diagnostics(self) -> None:
        """Publish a ``diagnostic_msgs/DiagnosticArray`` about the last report."""
        report, loop = self.report, self.meter.read(time.monotonic())
        level, sentence = diagnostic_level(report, loop)
        values = {"state": report.state.name.lower(), **loop_diagnostics(loop, self._rate)}
        robot = None if report.arm is None else report.arm.robot
        if robot is not None and report.output is not None:
            values |= motion_diagnostics(robot, report.output) | lag_diagnostics(robot, self._lag())
        if report.arm is not None:
            values |= avoidance_diagnostics(report.arm, report.output)
        status = DiagnosticStatus(
            level=level,
            name=self._name,
            message=sentence,
            hardware_id="" if robot is None else robot.name,
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
