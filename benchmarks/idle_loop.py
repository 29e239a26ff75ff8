# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A loop at a rate that does nothing, and the lateness of a loop."""

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
    """Reconstructs the deadlines of the node's loop from the begins of its cycles.

    Deadlines are a period apart; a cycle that begins more than a period after its own sets the next
    one a period after itself. A cycle never begins before its deadline; if one seems to, the
    deadlines were assumed too late.

    Args:
        period: of the loop [s].
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._deadline: float | None = None

    def of(self, times: Iterable[float]) -> list[float]:
        """Return the lateness of the next cycles [s], for the times of their begins [s]."""
        found = []
        for begin in times:
            if self._deadline is None or begin < self._deadline:
                self._deadline = begin
            late = begin - self._deadline
            found.append(late)
            self._deadline = self._period + (begin if late > self._period else self._deadline)
        return found


def late_figures(late: np.ndarray) -> list[float]:
    """Return percentiles 50, 99, 99.9 and largest [ms] of the lateness [s]."""
    if not len(late):
        return [np.nan] * 4
    return (1e3 * np.percentile(late, (50, 99, 99.9, 100))).tolist()


def missed(late: np.ndarray, period: float) -> int:
    """Return the number of missed deadlines: whole periods of lateness [s]."""
    return int(np.floor(late / period).sum())


def run(rate: float, targets: TargetBuffer, starts: list[float]) -> None:
    """Cycle until the targets are closed; note when each cycle began [s]."""
    pacer = Pacer(rate, time.monotonic())
    while targets.wait(*pacer.window()):
        now = time.monotonic()
        pacer.start_cycle(now, targets.take())
        starts.append(now)


def main() -> None:
    """Cycle, and print the lateness of each cycle [us] once a second, until a signal."""
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
