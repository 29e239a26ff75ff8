"""Many clients at once: compute_ik under load, and the stream meanwhile.

Clients are processes of their own that call one request after the other, as fast as they can:
random reachable poses of the WAM from random joint values, and a share whose rotation is of another
pose, which often cannot be reached and then uses up its timeout of 0.05 s. A call is lost that has
no answer in 20 s. With more clients than cores their shares are how the system runs them. The
stream follows a circle whose targets come at 20 Hz, at its own rate.

The stream is measured alone, while the same clients call a trivial server in another process, which
takes the processors but nothing of the node, and while they call the node. Jitter is how far the
time from one command to the next, by their stamps, is from the period; overruns are cycles that
began later than a period after their deadline, as the node's diagnostics count them.
"""

import json
import sys
from collections import Counter
from contextlib import ExitStack
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

from benchmarks.common import Table, columns, finish, guarded, parser, positive
from benchmarks.processes import Process, ros_node
from benchmarks.stream_client import Client, follow
from dls_ik import RobotModel
from dls_ik.ros.util import stay_alone

START = [0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0]  # [rad] of the WAM
CLIENT = [sys.executable, "-m", "benchmarks.load_client"]
PATIENCE = 60.0  # [s] for a client to tell, after the last call
TARGETS, ALONE = 20, 10  # [Hz] of targets, [s] of the stream without load
CALLS = columns(
    "client; answered :d; lost :d; calls a second :.0f; share, of an equal one :.2f; median "
    "[ms] :.2f; 99 % [ms] :.2f; largest [ms] :.1f"
)
STREAM = columns(
    "stream; cycles :d; overruns :d; jitter, median [ms] :.3f; 99 % [ms] :.3f; largest [ms] :.2f"
)


class Watcher:
    """Records the stamps of the commands and the count of overruns."""

    def __init__(self, node: Any, name: str) -> None:
        self.stamps: list[float] = []
        self.counts: list[tuple[int, int]] = []  # cycles, overruns
        topic = f"/{name}/joint_states"
        node.create_subscription(JointState, topic, self._command, qos_profile_sensor_data)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._diagnostics, 10)

    def row(self, what: str, rate: int) -> list[Any]:
        """Return the figures since the last row."""
        off = 1e3 * np.abs(np.diff(self.stamps) - 1.0 / rate)
        (first, late), (last, later) = self.counts[0], self.counts[-1]
        self.stamps, self.counts = [], []
        return [what, last - first, later - late, *np.percentile(off, (50, 99, 100)).tolist()]

    def _command(self, message: Any) -> None:
        stamp = message.header.stamp
        self.stamps.append(stamp.sec + 1e-9 * stamp.nanosec)

    def _diagnostics(self, message: Any) -> None:
        values = {each.key: each.value for each in message.status[0].values}
        self.counts.append((int(values["cycles"]), int(values["overruns"])))


def measured(rate: int, given: Any) -> tuple[list[list[list[Any]]], list[list[Any]]]:
    """Return the calls of the clients, and the rows of the stream alone and under load."""
    robot, name = RobotModel.wam(), f"load{rate}"
    with ExitStack() as stack:
        command = ros_node("dls_ik.ros.node", name, robot="wam", rate=rate, initial_positions=START)
        stack.enter_context(Process(command)).wait_ready()
        trivial = ros_node("benchmarks.trivial_nodes serve", f"trivial{rate}")
        stack.enter_context(Process(trivial)).wait_ready()
        clients = []
        services = f"/trivial{rate}/compute_ik", f"/{name}/compute_ik"
        for i in range(given.clients):
            words = str(given.seconds), str(i), str(given.hard / 100.0), *services
            clients.append(stack.enter_context(Process([*CLIENT, *words])))
        for process in clients:
            process.wait_ready()
        context = rclpy.Context()
        rclpy.init(args=[], context=context)
        stack.callback(context.try_shutdown)
        node = rclpy.create_node("benchmark", context=context)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        stream = Client(node, name, robot.fk(np.array(START)), robot.base)
        watcher = Watcher(node, name)
        stream.connect(name)
        follow(stream, executor, TARGETS, 2.0)
        watcher.row("", rate)
        follow(stream, executor, TARGETS, ALONE)
        streamed = [watcher.row(f"{rate} Hz, alone", rate)]
        for what in ("a trivial server", "the node"):
            for process in clients:
                process.wake()
            follow(stream, executor, TARGETS, given.seconds)
            streamed.append(watcher.row(f"{rate} Hz, {given.clients} clients of {what}", rate))
            found = [told(process) for process in clients]
            watcher.stamps, watcher.counts = [], []
    return found, streamed


def told(process: Process) -> list[list[Any]]:
    """Return the calls of a client; other lines of its output are skipped."""
    while not (line := process.line(PATIENCE)).startswith("[["):
        pass
    return json.loads(line)


def rows(found: list[list[list[Any]]], seconds: int) -> list[list[Any]]:
    """Return the figures of each client, and of all."""
    equal = sum(map(len, found)) / len(found)
    parts = [(f"{i + 1}", calls, len(calls) / equal) for i, calls in enumerate(found)]
    parts.append(("all", [call for calls in found for call in calls], 1.0))
    result = []
    for name, calls, share in parts:
        times = 1e3 * np.array([time for time, code in calls if code is not None])
        figures = np.percentile(times, (50, 99, 100)).tolist()
        lost = len(calls) - len(times)
        result.append([name, len(times), lost, len(times) / seconds, share, *figures])
    return result


def main() -> None:
    """Measure at every rate, and show."""
    options = parser(__doc__)
    options.add_argument("--seconds", type=positive, default=60, help="of calls, at each rate")
    options.add_argument("--clients", type=positive, default=8, help="processes that call")
    options.add_argument(
        "--hard", type=float, default=5.0, help="of the poses, rotation of another [%%]"
    )
    options.add_argument("--rates", type=positive, nargs="+", default=[100, 500], help="[Hz]")
    given = options.parse_args()
    stay_alone()
    tables, streamed, notes = [], [], []
    for rate in given.rates:
        found, stream_rows = measured(rate, given)
        title = f"{given.clients} clients for {given.seconds} s, stream at {rate} Hz"
        tables.append(Table(title, CALLS, rows(found, given.seconds)))
        streamed += stream_rows
        codes = Counter(code for calls in found for _, code in calls)
        told = ", ".join(f"{code}: {count}" for code, count in codes.most_common())
        notes.append(f"codes, stream at {rate} Hz: {told}")
    finish(given, [*tables, Table("The stream", STREAM, streamed)], notes)


if __name__ == "__main__":
    guarded(main)
