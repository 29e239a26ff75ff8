"""Diagnostics of the stream, once a second."""

import time
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from dls_ik.ros.watch.diagnosis import lag_values, loop_values, motion_values, verdict
from dls_ik.ros.watch.meter import LoopMeter
from dls_ik.ros.watch.seen import NOTHING

TOPIC = "/diagnostics"  # of all nodes of a machine, whatever their namespace
PERIOD = 1.0  # [s]


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
