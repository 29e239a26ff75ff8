"""Report of a cycle, and its publication: status and tip each cycle, diagnostics by a timer.

Levels of the diagnostics, once a second; the first row that applies counts:

======================================================  =====
state                                                   level
======================================================  =====
a loop at a halt, NO_ROBOT, STALE, joint states wanted  STALE
codes below 0: REFUSED, FAULT                           ERROR
codes 1 to 6: singularity, collision, joint             WARN
targets wait, such as for a scene                       WARN
code 0, with every tenth cycle late or more             WARN
code 0: idle, following, reached, timed out, paused     OK
======================================================  =====
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
from dls_ik.ros.servo.tip import Tip, Trail
from dls_ik.ros.subscriptions import call_every
from dls_ik.ros.util import Throttle
from dls_ik.servo import ServoOutput, ServoState
from dls_ik.servo.supervision import suggested_deviation

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

STATUS_TOPIC, TIP_TOPIC = "~/status", "~/tip_pose"
DIAGNOSTICS_TOPIC = "/diagnostics"  # of all nodes of a machine, whatever their namespace
DIAGNOSTICS_PERIOD = 1.0  # [s]
HELD = 0.5  # activation from which a joint is listed as held
OLD_DATA = (ServoState.NO_ROBOT, ServoState.STALE)  # the data to move by is old, or missing
LATE_SHARE = 0.1  # of late cycles from which the rate is not kept


class CycleReport(NamedTuple):
    """Outcome of a cycle; replaced as a whole, so that other threads may read it."""

    state: ServoState = ServoState.WAITING
    message: str = ""  # a sentence; empty: that of the state
    arm: Arm | None = None  # None: there is no robot yet
    output: ServoOutput | None = None  # None: there is no command
    is_command: bool = False  # the command is to be published
    trail: Trail | None = None  # of the tip; None: there is no robot
    awaits_states: bool = False  # joint states are required, and there are no current ones
    are_targets_held: bool = False  # targets wait, such as for a scene


class LoopFigures(NamedTuple):
    """Counts and times of cycles, in total and since the figures were read before."""

    cycles: int  # in total
    overruns: int  # in total: cycles that began later than a period after their deadline
    recent_cycles: int
    recent_overruns: int
    rate: float  # [Hz] recent
    mean: float  # [s] duration of recent cycles; NaN without any
    worst: float  # [s]


class LoopMeter:
    """Counters that the loop adds to, and another thread reads."""

    def __init__(self, period: float, now: float) -> None:
        self._period = period  # [s]
        self._lock = threading.Lock()
        self._cycles = self._overruns = 0  # up to the last reading
        self._recent = self._late = 0
        self._busy = self._worst = 0.0  # [s]
        self._since = now

    def cycle(self, deadline: float, began: float, ended: float) -> None:
        """Count a cycle by its deadline, begin and end [s]."""
        busy = ended - began
        with self._lock:
            self._recent += 1
            self._busy += busy
            self._worst = max(self._worst, busy)
            self._late += began - deadline > self._period

    def read(self, now: float) -> LoopFigures:
        """Return the figures; those that are recent begin anew."""
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
    """Return the level of the diagnostics, and a sentence for a person.

    Args:
        report: Report of the last cycle.
        loop: Figures of the recent cycles.
    """
    state, message = report.state, report.message or report.state.explanation
    if not loop.recent_cycles:
        return DiagnosticStatus.STALE, "the loop is at a halt"
    if state in OLD_DATA or report.awaits_states:
        return DiagnosticStatus.STALE, message
    if state.code != 0:
        return DiagnosticStatus.ERROR if state.code < 0 else DiagnosticStatus.WARN, message
    if report.are_targets_held:
        return DiagnosticStatus.WARN, message
    if loop.recent_overruns >= LATE_SHARE * loop.recent_cycles:
        late = f"{loop.recent_overruns} of {loop.recent_cycles} cycles began late"
        return DiagnosticStatus.WARN, f"{message}; {late}"
    return DiagnosticStatus.OK, message


def loop_values(loop: LoopFigures, rate: float) -> dict[str, str]:
    """Return figures of the pace of the loop, beside the rate that is asked for [Hz]."""
    return {
        "rate asked [Hz]": f"{rate:g}",
        "rate measured [Hz]": f"{loop.rate:.1f}",
        "cycles": str(loop.cycles),
        "overruns": str(loop.overruns),
        "mean cycle time [ms]": f"{1e3 * loop.mean:.3f}",
        "worst cycle time [ms]": f"{1e3 * loop.worst:.3f}",
    }


def motion_values(robot: RobotModel, output: ServoOutput) -> dict[str, str]:
    """Return figures of following; nan where they are not known."""
    distances = np.minimum(output.q - robot.lower, robot.upper - output.q)
    nearest = int(np.argmin(distances))
    names = robot.joint_names
    activations = zip(names, output.limit_activation, strict=True)
    held = [name for name, activation in activations if activation > HELD]
    each = zip(names, distances, strict=True)
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
    }


def surroundings_values(arm: Arm, output: ServoOutput | None) -> dict[str, str]:
    """Return what the stream keeps away from, and the nearest pair within influence_distance."""
    around, options = arm.surroundings, arm.controller.options
    if around.scene is not None:
        now = around.scene.snapshot
        count = len(now.objects) + len(now.attached)
        kept = f"{options.min_distance:g} m from {len(now.links)} links and {count} objects"
    else:
        kept = f"not avoided: {around.hold_reason or around.reason}".removesuffix(": ")
    nearest = None if output is None else output.nearest
    return {
        "collisions": kept,
        "bounds of the workspace": ", ".join(bound.name for bound in around.workspace) or "none",
        "nearest pair": "none" if nearest is None else " and ".join(nearest.names),
        "nearest distance [m]": "nan" if nearest is None else f"{nearest.distance:.4f}",
    }


def lag_values(robot: RobotModel, lag: float) -> dict[str, str]:
    """Return the lag of the arm [s], and the `max_deviation` that it needs."""
    if math.isnan(lag):
        return {"lag of the arm [s]": "not known: no joint states, or no motion yet"}
    values = {"lag of the arm [s]": f"{lag:.3f}"}
    speeds = robot.velocity[np.isfinite(robot.velocity)]
    if len(speeds):
        deviation = suggested_deviation(speeds.max(), lag)
        values["max_deviation for that lag [rad or m]"] = f"{deviation:.2f}"
    return values


class StatusPublisher:
    """Publishes ``moveit_msgs/msg/ServoStatus`` each cycle, and logs changes of the state.

    States with code 0 change with every target and are not logged, except for a stream that ended
    with the arm short of its last pose.
    """

    def __init__(self, node: Node) -> None:
        self._log = Throttle(node)
        self._last = ServoState.WAITING
        self._publisher: Any = None
        if ServoStatus is not None:
            self._publisher = node.create_publisher(ServoStatus, STATUS_TOPIC, 1)
            self._message = ServoStatus()

    def publish(self, state: ServoState, message: str) -> None:
        """Publish a state and a message; an empty message is the explanation of the state."""
        message = message or state.explanation
        stops_short = state is ServoState.TIMED_OUT and message != state.explanation
        if state is not self._last and (state.code or self._last.code or stops_short):
            self._log.info(state.name, f"stream: {message}")
        self._last = state
        if self._publisher is not None and self._publisher.get_subscription_count() > 0:
            self._message.code, self._message.message = state.code, message
            self._publisher.publish(self._message)


class Monitor:
    """Publishes status and tip each cycle, diagnostics by a timer of the node.

    Args:
        node: Node of the publishers.
        parameters: Parameters of the node.
        states: Joint states, as drivers publish them.
        lag: Returns the lag of the arm behind its commands [s], NaN while it is unknown.

    Attributes:
        report: of the last cycle, for other threads.
        meter: of the loop.
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
        self._measured = MeasuredTip(node, states.readings)
        self._name = f"{node.get_fully_qualified_name()}: stream"
        self._publisher = node.create_publisher(DiagnosticArray, DIAGNOSTICS_TOPIC, 10)
        call_every(node, DIAGNOSTICS_PERIOD, self._publish_diagnostics)

    def publish(self, report: CycleReport, now: float, stamp: int) -> None:
        """Publish the report of a cycle.

        Args:
            now: on the steady clock [s].
            stamp: the time of the command [ns].
        """
        self._status.publish(report.state, report.message)
        trail = self._trail_of(report.arm)
        if trail is not None and report.output is not None:
            trail.sample(now, report.output.q)
            if self._tip_publisher.get_subscription_count() > 0:
                self._publish_tip(trail.tip, report.output, stamp)
        if trail is not None:
            self._measured.publish(trail.tip, now, stamp)
        self.report = report._replace(trail=trail)

    def _trail_of(self, arm: Arm | None) -> Trail | None:
        if arm is None:
            self._trail = None
        elif self._trail is None or self._trail.tip.robot is not arm.robot:
            self._trail = Trail(Tip(arm.robot, self._joint_values), self._duration)
        return self._trail

    def _publish_tip(self, tip: Tip, output: ServoOutput, stamp: int) -> None:
        """Publish the pose of the tip in the root frame."""
        self._tip_message.header.frame_id = tip.frame
        set_time(self._tip_message.header.stamp, stamp)
        fill_pose(self._tip_message.pose, tip.poses(output.q))
        self._tip_publisher.publish(self._tip_message)

    def _publish_diagnostics(self) -> None:
        """Publish ``diagnostic_msgs/DiagnosticArray`` of the last report."""
        report, loop = self.report, self.meter.read(time.monotonic())
        level, sentence = diagnostic_level(report, loop)
        values = {"state": report.state.name.lower(), **loop_values(loop, self._rate)}
        robot = None if report.arm is None else report.arm.robot
        if robot is not None and report.output is not None:
            values |= motion_values(robot, report.output) | lag_values(robot, self._lag())
        if report.arm is not None:
            values |= surroundings_values(report.arm, report.output)
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
