# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Latency and cost of the stream, target_pose to joint_states, compared with two echo nodes.

Latency is the time between the publication of a target and the arrival of the first joint_states
computed from this target. The targets move along a circle, and each joint state belongs to the
target that is closest to its tip position (for an echo: to its values), as the neighbouring
targets are much farther away. Targets that a later target overtook have no latency. The nodes take
turns: while one is measured, the others are stopped by SIGSTOP.

One echo node is written with rclpy, the other in C on rcl, which is the practical limit. The node
in C needs a C compiler and the headers of ROS 2, and is otherwise left out. ``scripts/setup``
removes the headers of the wheels; CPATH may name a folder that has them.

All threads of the client have real-time priority, if permitted, because the latency is that of the
nodes.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped
from moveit_msgs.msg import CollisionObject
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive

from benchmarks.client import client_node
from benchmarks.common import Table, columns, finish, guarded, parser, positive, spread
from benchmarks.native_echo import NotBuiltError, build
from benchmarks.processes import Process, ProcFigures, proc_figures, ros_node, wait_until
from dls_ik import RobotModel
from dls_ik.ros.client.ik_client import stamped_pose
from dls_ik.ros.util import ChildProcess

START = [0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0]  # [rad] joint positions of the WAM
RADIUS, PERIOD = 0.05, 1.0  # [m], [s] of the circle
SETTLING = 1.0  # [s] ignored start of a turn, whole circles
SERVERS = {"limit": "echo in C", "echo": "echo", "node": "ik_node"}
MAX_RECONNECT_CIRCLES = 8
CLIENT_PRIORITY = 60  # real-time priority
# Program that keeps a core busy as long as its parent runs.
BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(1000000))"
COLUMNS = columns(
    "rate [Hz] :d; node; targets answered [%] :.1f; median [ms] :.3f; 99 % [ms] :.3f; "
    "99.9 % [ms] :.3f; largest [ms] :.3f; share of a core [%] :.1f; median, as a multiple of the "
    "echo's; share, as a multiple of the echo's"
)


MEMORY = columns(
    "rate [Hz] :d; node; RSS [MiB] :.0f; PSS [MiB] :.0f; RSS beyond the echo's [MiB] :.0f"
)


class Client:
    """Client of one node that publishes targets and receives joint states in one thread."""

    def __init__(self, node: Any, executor: Any, name: str, T: np.ndarray, frame: str) -> None:
        self._executor, self._clock = executor, node.get_clock()
        self.received: list[tuple[float, Any]] = []  # time [s], positions
        self._start, self._message = T[:3, 3], stamped_pose(T, frame)
        topic = f"/{name}/joint_states"
        node.create_subscription(JointState, topic, self._receive, qos_profile_sensor_data)
        self._targets = node.create_publisher(PoseStamped, f"/{name}/target_pose", 1)
        wait_until(self._targets.get_subscription_count, f"{name} takes targets")

    def follow(self, rate: int, duration: float) -> np.ndarray:
        """Stream targets, and return the publication times [s] and positions [m] (k, 4)."""
        self.received.clear()
        begin, sent = time.perf_counter(), []
        for i in range(round(rate * duration)):
            self._spin_until(begin + i / rate)
            sent.append(self._publish(i / rate))
        self._spin_until(begin + duration + 0.05)
        return np.array(sent)

    def _spin_until(self, end: float) -> None:
        while (left := end - time.perf_counter()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def _publish(self, elapsed: float) -> tuple[float, float, float, float]:
        angle = 2.0 * np.pi * elapsed / PERIOD
        offset = (0.0, RADIUS * np.sin(angle), RADIUS * (np.cos(angle) - 1.0))
        p = self._message.pose.position
        p.x, p.y, p.z = (self._start + offset).tolist()
        self._message.header.stamp = self._clock.now().to_msg()
        begin = time.perf_counter()
        self._targets.publish(self._message)
        return begin, p.x, p.y, p.z

    def _receive(self, message: Any) -> None:
        self.received.append((time.perf_counter(), message.position))


def latencies(sent: np.ndarray, times: np.ndarray, tips: np.ndarray, rate: int) -> np.ndarray:
    """Return the latency (k,) of each target [s]; NaN for targets without an answer.

    Args:
        sent: (k, 4) publication times [s] and positions [m] of the targets.
        times: (m,) arrival times of the joint states [s].
        tips: (m, 3) tip positions of the joint states [m].
    """
    found = np.full(len(sent), np.nan)
    spacing = 2.0 * np.pi * RADIUS / PERIOD / rate
    for time_, tip in zip(times, tips, strict=True):
        last = int(np.searchsorted(sent[:, 0], time_))
        first = max(0, last - int(0.5 * PERIOD * rate))  # half a circle: no place comes twice
        if last == first:
            continue
        distances = np.linalg.norm(sent[first:last, 1:] - tip, axis=1)
        k = int(np.argmin(distances))
        if distances[k] < 0.25 * spacing and np.isnan(found[first + k]):
            found[first + k] = time_ - sent[first + k, 0]
    return found


class Turn(NamedTuple):
    """Measurement of one node in one turn."""

    latencies: np.ndarray  # [s]
    answered: float  # share of the targets
    share: float  # processor time, share of a core


def _latencies_of(client: Client, sent: np.ndarray, tip: Callable, rate: int) -> np.ndarray:
    """Return the latency (k,) of each target sent (k, 4); the arguments are those of `turn`."""
    if not client.received:
        return np.full(len(sent), np.nan)
    times = np.array([time_ for time_, _ in client.received])
    tips = tip(np.array([positions for _, positions in client.received]))
    return latencies(sent, times, tips, rate)


def _reconnect(client: Client, tip: Callable, rate: int) -> None:
    """Send targets until they are answered: a process that was stopped misses messages at first."""
    for _ in range(MAX_RECONNECT_CIRCLES):
        found = _latencies_of(client, client.follow(rate, PERIOD), tip, rate)
        if np.isfinite(found[-len(found) // 4 :]).any():
            return


def turn(process: Process, client: Client, tip: Callable, rate: int, duration: float) -> Turn:
    """Measure one node while the other node is stopped."""
    process.wake()
    _reconnect(client, tip, rate)
    used, begin = process.processor_time(), time.perf_counter()
    sent = client.follow(rate, SETTLING + duration)
    share = (process.processor_time() - used) / (time.perf_counter() - begin)
    process.sleep()
    found = _latencies_of(client, sent, tip, rate)[round(SETTLING * rate) :]
    answered = found[~np.isnan(found)]
    return Turn(answered, len(answered) / len(found), share)


def add_objects(node: Any, executor: Any, count: int) -> None:
    """Add boxes around the circle of the tip, outside the path of the arm."""
    publisher = node.create_publisher(CollisionObject, "/node/collision_object", count)
    wait_until(publisher.get_subscription_count, "the node takes objects")
    for k in range(count):
        angle = 2.0 * np.pi * k / count
        shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.05, 0.05, 0.05])
        added = CollisionObject(id=f"box {k}", primitives=[shape], primitive_poses=[Pose()])
        added.header.frame_id = RobotModel.wam().base
        p = added.pose.position
        p.x, p.y, p.z = 0.55, 0.45 * np.cos(angle), 0.3 + 0.45 * np.sin(angle)
        publisher.publish(added)
    end = time.perf_counter() + SETTLING
    while time.perf_counter() < end:
        executor.spin_once(timeout_sec=0.1)


def prioritise(pid: int, priority: int, all_threads: bool) -> None:
    """Give the main thread of a process, or all its threads, a real-time priority.

    Threads that a real-time thread starts later have ordinary priority.
    """
    threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")] if all_threads else [pid]
    for thread in threads:
        with suppress(ProcessLookupError):  # it has just ended
            policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(thread, policy, os.sched_param(priority))


def measured(
    rate: int, library: Path | None, given: argparse.Namespace
) -> tuple[dict[str, list[Turn]], dict[str, ProcFigures]]:
    """Start all nodes and measure them in turns; return the turns and the final memory.

    Args:
        rate: Rate of the targets [Hz].
        library: The echo node in C; None leaves it out.
        given: Options of :func:`main`.

    Raises:
        DlsIkError: If a node does not start.
    """
    robot = RobotModel.wam()
    T = robot.fk(START)
    start = {"robot": "wam", "rate": rate, "initial_positions": START, "acceleration": "[.inf]"}
    start["stream_avoid_collisions"] = "required" if given.objects else "none"
    start["thread_priority"] = given.priority
    commands = {
        "echo": ros_node("benchmarks.trivial_nodes echo", "echo"),
        "node": ros_node("dls_ik.ros.node", "node", **start),
    }
    if library is not None:
        commands = {"limit": ros_node(f"benchmarks.native_echo {library}", "limit"), **commands}
    found: dict[str, list[Turn]] = {name: [] for name in commands}
    with ExitStack() as stack:
        processes = {n: stack.enter_context(Process(c)) for n, c in commands.items()}
        for process in processes.values():
            process.wait_ready()
        node, executor = stack.enter_context(client_node())
        clients = {name: Client(node, executor, name, T, robot.base) for name in commands}
        if given.objects:
            add_objects(node, executor, given.objects)
        if given.priority:
            for name, process in processes.items():
                if name != "node" or given.all_threads:  # the node's loop has it by a parameter
                    prioritise(process.process.pid, given.priority, given.all_threads)
        if given.has_real_time:
            prioritise(os.getpid(), CLIENT_PRIORITY, all_threads=True)
        for process in processes.values():
            process.sleep()
        for _ in range(os.cpu_count() or 1 if given.loaded else 0):
            stack.enter_context(ChildProcess([sys.executable, "-c", BUSY], lambda _: None))
        # No other order: the middleware forgets nodes that are stopped for longer.
        for _ in range(given.repeats):
            for name in commands:
                tip = (lambda q: robot.fk(q)[:, :3, 3]) if name == "node" else _first_values
                done = turn(processes[name], clients[name], tip, rate, given.duration)
                found[name].append(done)
        memory = {name: proc_figures(p.process.pid) for name, p in processes.items()}
    return found, memory


def _first_values(q: np.ndarray) -> np.ndarray:
    """Return the tip positions (m, 3) that an echo node answers as values of joints (m, 7)."""
    return q[:, :3]


def rows(rate: int, found: dict[str, list[Turn]]) -> list[list[Any]]:
    """Return the results at one rate, with ratios of successive turns."""
    result = []
    medians = {n: np.array([np.median(t.latencies) for t in ts]) for n, ts in found.items()}
    shares = {n: np.array([t.share for t in ts]) for n, ts in found.items()}
    for name, turns in found.items():
        times = 1e3 * np.concatenate([t.latencies for t in turns])
        answered = 100.0 * float(np.mean([t.answered for t in turns]))
        share = 100.0 * float(shares[name].mean())
        ratios = [spread(x[name] / x["echo"]) for x in (medians, shares)]
        figures = np.percentile(times, (50, 99, 99.9, 100)).tolist()
        result.append([rate, SERVERS[name], answered, *figures, share, *ratios])
    return result


def main() -> None:
    """Read the options, build the echo node in C, and measure at every rate."""
    options = parser(__doc__, repeats=7)
    options.add_argument("--rates", type=positive, nargs="+", default=[100, 500, 1000], help="[Hz]")
    options.add_argument(
        "--objects", type=int, default=0, help="of a scene that the stream keeps away from"
    )
    options.add_argument("--duration", type=positive, default=3, help="of a turn [s]")
    options.add_argument(
        "--loaded", action="store_true", help="keep every core busy by a loop in another process"
    )
    options.add_argument(
        "--priority",
        type=int,
        default=50,
        help="real-time priority of the main thread of echo nodes and of the loop of ik_node; 0: "
        "ordinary",
    )
    options.add_argument(
        "--all-threads", action="store_true", help="the priority is that of all threads of a node"
    )
    given = options.parse_args()
    notes: list[str] = []
    given.has_real_time = True
    try:
        prioritise(os.getpid(), CLIENT_PRIORITY, all_threads=False)
    except PermissionError as error:
        given.has_real_time, given.priority = False, 0
        notes.append(f"all priorities are ordinary, also that of the client: {error.strerror}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            library = build(Path(folder))
        except NotBuiltError as error:
            library = None
            notes.append(f"no echo node in C: {error}")
        show(given, library, notes)


def show(given: argparse.Namespace, library: Path | None, notes: list[str]) -> None:
    """Measure, and print the tables."""
    title = f"{given.repeats} turns of {given.duration} s of each node"
    title += ", every core busy" if given.loaded else ""
    title += f", real-time priority {given.priority}" if given.priority else ", ordinary priority"
    title += " of all threads" if given.priority and given.all_threads else ""
    table = Table(title, COLUMNS)
    sizes = Table("memory at the end, with messages and the robot loaded", MEMORY)
    for rate in given.rates:
        found, memory = measured(rate, library, given)
        table.rows += rows(rate, found)
        for name, size in memory.items():
            more = size.rss - memory["echo"].rss
            sizes.rows.append([rate, SERVERS[name], size.rss, size.pss, more])
    finish(given, [table, sizes], notes)


if __name__ == "__main__":
    guarded(main)
