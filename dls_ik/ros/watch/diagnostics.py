"""Diagnostics of the stream, once a second: a level, and names with values.

==============================================  =====
state                                           level
==============================================  =====
NO_ROBOT, WAITING, STALE, a loop at a halt      STALE
REFUSED, FAULT                                  ERROR
codes 1 to 6: singularity, joint bound          WARN
code 0, with every tenth cycle late or more     WARN
code 0: following, reached, paused              OK
==============================================  =====
"""

import math
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from dls_ik.model.robot import RobotModel
from dls_ik.ros.watch.tip import NOTHING
from dls_ik.servo.state import ServoOutput, ServoState
from dls_ik.servo.supervision import suggested_deviation

HELD = 0.5  # from which a joint counts as held
SILENT = (ServoState.NO_ROBOT, ServoState.WAITING, ServoState.STALE)
LATE = 0.1  # share of late cycles from which the rate is not kept
TOPIC = "/diagnostics"  # of all nodes of a machine, whatever their namespace
PERIOD = 1.0  # [s]


class LoopFigures(NamedTuple):
    """What the loop did, in all and since the figures were read before."""

    cycles: int  # in all
    overruns: int  # in all: cycles that began later than a period after their deadline
    recent_cycles: int
    recent_overruns: int
    rate: float  # [Hz] recent
    mean: float  # [s] that recent cycles took; NaN if there was none
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
        """Count a cycle by when it was to begin, when it did, and when it was over [s]."""
        busy = ended - began
        with self._lock:
            self._recent += 1
            self._busy += busy
            self._worst = max(self._worst, busy)
            self._late += began - deadline > self._period

    def read(self, now: float) -> LoopFigures:
        """The figures; those that are recent begin anew."""
        with self._lock:
            recent, late, busy, worst = self._recent, self._late, self._busy, self._worst
            elapsed = now - self._since
            self._cycles += recent
            self._overruns += late
            self._recent = self._late = 0
            self._busy = self._worst = 0.0
            self._since = now
        rate = recent / elapsed if elapsed > 0.0 else math.nan
        mean, worst = (busy / recent, worst) if recent else (math.nan, math.nan)
        return LoopFigures(self._cycles, self._overruns, recent, late, rate, mean, worst)


def verdict(state: ServoState, words: str, loop: LoopFigures) -> tuple[Any, str]:
    """The level, and a sentence about it."""
    words = words or state.explanation
    if not loop.recent_cycles:
        return DiagnosticStatus.STALE, "the loop is at a halt"
    if state in SILENT:
        return DiagnosticStatus.STALE, words
    if state.code < 0:
        return DiagnosticStatus.ERROR, words
    if state.code > 0:
        return DiagnosticStatus.WARN, words
    if loop.recent_overruns >= LATE * loop.recent_cycles:
        late = f"{loop.recent_overruns} of {loop.recent_cycles} cycles began late"
        return DiagnosticStatus.WARN, f"{words}; {late}"
    return DiagnosticStatus.OK, words


def loop_values(loop: LoopFigures, rate: float) -> dict[str, str]:
    """How the loop keeps its rate [Hz]."""
    return {
        "rate asked [Hz]": f"{rate:g}",
        "rate measured [Hz]": f"{loop.rate:.1f}",
        "cycles": str(loop.cycles),
        "overruns": str(loop.overruns),
        "mean cycle time [ms]": f"{1e3 * loop.mean:.3f}",
        "worst cycle time [ms]": f"{1e3 * loop.worst:.3f}",
    }


def motion_values(robot: RobotModel, output: ServoOutput) -> dict[str, str]:
    """How the arm follows; what is not known is nan."""
    distances = np.minimum(output.q - robot.lower, robot.upper - output.q)
    nearest = int(np.argmin(distances))
    names = robot.joint_names
    held = [name for name, held in zip(names, output.limit_activation, strict=True) if held > HELD]
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


def lag_values(robot: RobotModel, lag: float) -> dict[str, str]:
    """How late the arm follows its commands [s], and what that means for its supervision."""
    if math.isnan(lag):
        return {"lag of the arm [s]": "not known: no joint states, or no motion yet"}
    speeds = robot.velocity[np.isfinite(robot.velocity)]
    if not len(speeds):
        return {"lag of the arm [s]": f"{lag:.3f}"}
    return {
        "lag of the arm [s]": f"{lag:.3f}",
        "max_deviation for that lag [rad or m]": f"{suggested_deviation(speeds.max(), lag):.2f}",
    }


class Diagnostics:
    """Publishes ``diagnostic_msgs/DiagnosticArray`` from what was seen last, outside the loop."""

    def __init__(self, node: Node, rate: float, lag: Callable[[], float]) -> None:
        self.seen = NOTHING  # written by the loop
        self.meter = LoopMeter(1.0 / rate, time.monotonic())
        self._rate = rate  # [Hz] that is asked for
        self._lag = lag
        self._node = node
        self._name = f"{node.get_fully_qualified_name()}: stream"
        self._publisher = node.create_publisher(DiagnosticArray, TOPIC, 10)
        node.create_timer(PERIOD, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _publish(self) -> None:
        message = DiagnosticArray(status=[self._status()])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _status(self) -> Any:
        state, words, output, trail = self.seen
        loop = self.meter.read(time.monotonic())
        level, words = verdict(state, words, loop)
        values = {"state": state.name.lower(), **loop_values(loop, self._rate)}
        if trail is not None and output is not None:
            values |= motion_values(trail.tip.robot, output)
            values |= lag_values(trail.tip.robot, self._lag())
        return DiagnosticStatus(
            level=level,
            name=self._name,
            message=words,
            hardware_id=trail.tip.robot.name if trail is not None else "",
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
