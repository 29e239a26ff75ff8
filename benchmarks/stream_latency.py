"""Latency and cost of the stream, target_pose to joint_states, beside an echo node.

Latency is the time from just before a client publishes a target to its receiving the first
joint_states that was computed from this very target: targets run along a circle, and the tip at the
joint values received (for the echo: the numbers themselves) lies at the target that they belong to,
far nearer than at its neighbours. A message sent before the target does not count. Targets that a
later one overtook have no latency; the table has the share of those that have one.

Node and echo are processes of their own, the client is a third one, which publishes and receives in
one thread. They take turns: while one is measured, the other is stopped by SIGSTOP. The node's rate
is that of the targets. A share of a core is user and system time in /proc/PID/stat. Jitter is how
far the times between the stamps of joint_states are from the period: a cycle begins when a target
arrives, so it has that of the client in it, as the echo's has. Late are cycles that began more than
a period after they were to, by /diagnostics.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor

from benchmarks.common import Table, columns, finish, guarded, parser, positive, spread
from benchmarks.processes import Process, ros_node
from benchmarks.stream_client import Client, follow, latencies
from dls_ik import RobotModel
from dls_ik.ros.util import stay_alone

START = [0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0]  # [rad] of the WAM
SETTLING = 1.0  # [s] at the begin of a turn that do not count; whole circles
SERVERS = {"echo": "echo", "node": "ik_node"}
COLUMNS = columns(
    "rate [Hz] :d; node; targets answered [%] :.1f; median [ms] :.3f; 99 % [ms] :.3f; largest "
    "[ms] :.3f; jitter, deviation [ms] :.3f; jitter, 99 % [ms] :.3f; jitter, largest [ms] "
    ":.3f; late cycles [%] :.2f; share of a core [%] :.1f; median, as a multiple of the "
    "echo's; share, as a multiple of the echo's"
)


def jitter(intervals: np.ndarray, rate: float) -> list[float]:
    """Return standard deviation, 99th percentile and largest of the deviations from a period [ms].

    Args:
        intervals: between messages [s].
        rate: that they are to have [Hz].
    """
    if not len(intervals):
        return [math.nan] * 3
    off = 1e3 * np.abs(intervals - 1.0 / rate)
    return [1e3 * float(np.std(intervals)), *np.percentile(off, (99, 100)).tolist()]


def intervals(stamps: Sequence[int], settling: float = 0.0) -> np.ndarray:
    """Return the times between stamps [ns] in seconds, without the settling time."""
    times = 1e-9 * np.array(stamps, float)
    return np.diff(times[times >= times[0] + settling]) if len(times) else times


class Overruns:
    """Reads the node's count of late cycles, once a second."""

    def __init__(self, node: Any) -> None:
        self._counts: list[tuple[int, int]] = []  # overruns and cycles so far
        node.create_subscription(DiagnosticArray, "/diagnostics", self._receive, 10)

    def clear(self) -> None:
        """Begin to count."""
        self._counts.clear()

    def share(self) -> float | None:
        """Return the share since it was cleared; None without diagnostics."""
        if len(self._counts) < 2:
            return None
        overruns, cycles = np.subtract(self._counts[-1], self._counts[0]).tolist()
        return overruns / max(1, cycles)

    def _receive(self, message: Any) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if "overruns" in values:
                self._counts.append((int(values["overruns"]), int(values["cycles"])))


class Turn(NamedTuple):
    """The measurement of one node in one turn."""

    latencies: np.ndarray  # [s]
    answered: float  # share of the targets
    share: float  # of a core
    intervals: np.ndarray  # [s] between the stamps of what was received
    late: float | None  # share of the cycles


def turn(
    process: Process,
    client: Client,
    executor: Any,
    overruns: Overruns,
    tip: Callable,
    rate: int,
    duration: float,
) -> Turn:
    """Measure one node, while the other one is stopped."""
    process.wake()
    overruns.clear()
    used, begin = process.processor_time(), time.perf_counter()
    sent = follow(client, executor, rate, SETTLING + duration)
    share = (process.processor_time() - used) / (time.perf_counter() - begin)
    process.sleep()
    times = np.array([time_ for time_, _ in client.received])
    tips = tip(np.array([positions for _, positions in client.received]))
    found = latencies(sent, times, tips, rate)[round(SETTLING * rate) :]
    answered = found[~np.isnan(found)]
    pauses = intervals(client.stamps, SETTLING)
    return Turn(answered, len(answered) / len(found), share, pauses, overruns.share())


def measured(rate: int, repeats: int, duration: float) -> dict[str, list[Turn]]:
    """Start both nodes, and let them take turns."""
    robot = RobotModel.wam()
    T = robot.fk(START)
    tips = {"echo": lambda q: q[:, :3], "node": lambda q: robot.fk(q)[:, :3, 3]}
    commands = {
        "echo": ros_node("benchmarks.trivial_nodes echo", "echo"),
        "node": ros_node(
            "dls_ik.ros.node", "node", robot="wam", rate=rate, initial_positions=START
        ),
    }
    found: dict[str, list[Turn]] = {name: [] for name in SERVERS}
    with ExitStack() as stack:
        processes = {n: stack.enter_context(Process(c)) for n, c in commands.items()}
        for process in processes.values():
            process.wait_ready()
        rclpy.init(args=[])
        stack.callback(rclpy.try_shutdown)
        node, executor = rclpy.create_node("benchmark"), SingleThreadedExecutor()
        executor.add_node(node)
        overruns = Overruns(node)
        clients = {name: Client(node, name, T, robot.base) for name in SERVERS}
        for name, client in clients.items():
            client.connect(SERVERS[name])
        for process in processes.values():
            process.sleep()
        for i in range(repeats):
            for name in SERVERS if i % 2 else reversed(SERVERS):
                args = processes[name], clients[name], executor, overruns, tips[name]
                found[name].append(turn(*args, rate, duration))
    return found


def rows(rate: int, found: dict[str, list[Turn]]) -> list[list[Any]]:
    """Return the figures at one rate; ratios are of successive turns."""
    result = []
    medians = {n: np.array([np.median(t.latencies) for t in ts]) for n, ts in found.items()}
    shares = {n: np.array([t.share for t in ts]) for n, ts in found.items()}
    for name, turns in found.items():
        times = 1e3 * np.concatenate([t.latencies for t in turns])
        figures = np.percentile(times, (50, 99, 100)).tolist()
        figures += jitter(np.concatenate([t.intervals for t in turns]), rate)
        late = [t.late for t in turns if t.late is not None]
        figures += [100.0 * float(np.mean(late)) if late and name != "echo" else None]
        figures += [100.0 * float(shares[name].mean())]
        answered = 100.0 * float(np.mean([t.answered for t in turns]))
        ratios = [spread(x[name] / x["echo"]) for x in (medians, shares)]
        result.append([rate, SERVERS[name], answered, *figures, *ratios])
    return result


def main() -> None:
    """Measure at every rate, and show."""
    options = parser(__doc__, repeats=7)
    options.add_argument("--rates", type=positive, nargs="+", default=[100, 500, 1000], help="[Hz]")
    options.add_argument("--duration", type=positive, default=3, help="of a turn [s]")
    given = options.parse_args()
    stay_alone()
    table = Table(f"{given.repeats} turns of {given.duration} s of each node", COLUMNS)
    for rate in given.rates:
        table.rows += rows(rate, measured(rate, given.repeats, given.duration))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
