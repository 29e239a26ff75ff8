"""The node with another executor, or its loop as a timer: ``python -m benchmarks.executor_node``.

Arguments before ``--ros-args``: the executor (single, multi, events), the loop (thread, timer), the
interval of sys.setswitchinterval [ms], and what is done about garbage (freeze, disable, collect).
"""

import gc
import os
import sys
import time
from typing import Any

import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from dls_ik.ros import application
from dls_ik.ros.params.live import LiveParameters
from dls_ik.ros.process import WarmUp
from dls_ik.ros.stream.loop import Streaming
from dls_ik.ros.stream.pacing import Pacer
from dls_ik.ros.util import hold_signals, on_signal


class TimerStreaming(Streaming):
    """The stream as a timer of the executor."""

    def start(self) -> None:
        """Begin to cycle."""
        self._pacer = Pacer(self._rate, time.monotonic())
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        group = MutuallyExclusiveCallbackGroup()
        period = 1.0 / self._rate
        self._node.create_timer(period, self._tick, callback_group=group, clock=steady)

    def _tick(self) -> None:
        now, stamp = time.monotonic(), self._node.get_clock().now().nanoseconds
        arrival, due = self._targets.take(), self._pacer.window().latest
        self._guarded_cycle(stamp, now, self._pacer.began(now, arrival), arrival)
        self._watch.meter.cycle(due, now, time.monotonic())


def executor_of(kind: str) -> Any:
    """An executor by its name."""
    if kind == "events":
        from rclpy.experimental import EventsExecutor

        return EventsExecutor()
    return MultiThreadedExecutor(2) if kind == "multi" else SingleThreadedExecutor()


def main() -> None:
    """Run until a signal."""
    hold_signals()
    on_signal(lambda: os._exit(0))
    kind, loop, switch, garbage = sys.argv[1:5]
    if loop == "timer":
        application.Streaming = TimerStreaming  # type: ignore[misc]
    sys.setswitchinterval(1e-3 * float(switch))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("dls_ik")
    live = LiveParameters(node)
    WarmUp().run(node.get_logger().info, lambda: True)
    app = application.Application(node, live)
    app.start()
    {"freeze": gc.freeze, "disable": gc.disable, "collect": gc.enable}[garbage]()
    executor = executor_of(kind)
    executor.add_node(node)
    while True:
        executor.spin_once(timeout_sec=0.1)  # EventsExecutor.spin() of rclpy 9.1 calls nothing


if __name__ == "__main__":
    main()
