# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Idle loop at a fixed rate, for comparison, and the lateness of a loop."""

import json
import signal
import sys
import threading
import time
from collections.abc import Iterable

import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from dls_ik.ros.servo.loop import Pacer
from dls_ik.ros.servo.target_buffer import TargetBuffer
from dls_ik.ros.util import Throttle


class Lateness:
    """Estimator of the lateness of the node's loop, from the start times of its cycles.

    Deadlines are one period apart. After a cycle that starts more than a period late, the next
    deadline is one period after that start. No cycle starts before its deadline; if one seems to,
    the assumed deadlines are moved earlier.

    Args:
        period: Period of the loop [s].
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._deadline: float | None = None

    def of(self, times: Iterable[float]) -> list[float]:
        """Return the lateness of the next cycles [s] from their start times [s]."""
        found = []
        for begin in times:
            if self._deadline is None or begin < self._deadline:
                self._deadline = begin
            late = begin - self._deadline
            found.append(late)
            self._deadline = self._period + (begin if late > self._period else self._deadline)
        return found


def late_figures(late: np.ndarray) -> list[float]:
    """Return the 50th, 99th and 99.9th percentile and the maximum [ms] of the lateness [s]."""
    if not len(late):
        return [np.nan] * 4
    return (1e3 * np.percentile(late, (50, 99, 99.9, 100))).tolist()


def missed(late: np.ndarray, period: float) -> int:
    """Return the number of missed deadlines: whole periods of lateness [s]."""
    return int(np.floor(late / period).sum())


def run(rate: float, targets: TargetBuffer, starts: list[float]) -> None:
    """Run cycles until the targets are closed, and record the start time of each cycle [s]."""
    pacer = Pacer(rate, time.monotonic())
    while targets.wait(*pacer.window()):
        now = time.monotonic()
        pacer.start_cycle(now, targets.take())
        starts.append(now)


def main() -> None:
    """Run cycles until a signal, and print their lateness [us] once a second."""
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("idle_loop")
    rate, targets = float(sys.argv[1]), TargetBuffer(node, Throttle(node))
    starts: list[float] = []
    lateness = Lateness(1.0 / rate)
    thread = threading.Thread(target=run, args=(rate, targets, starts))
    thread.start()
    print("ready", flush=True)
    while not over.wait(1.0):
        count = len(starts)
        print(json.dumps([round(1e6 * late) for late in lateness.of(starts[:count])]), flush=True)
        del starts[:count]
    targets.close()
    thread.join()
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
