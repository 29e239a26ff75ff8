# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Latency and cost of the stream, target_pose to joint_states, compared with an echo node.

Latency is the time between the publication of a target and the arrival of the first joint_states
computed from this target. The targets move along a circle, and each joint state belongs to the
target that is closest to its tip position (for the echo: to its values), as the neighbouring
targets are much farther away. Targets that a later target overtook have no latency. Node and echo
take turns: while one is measured, the other is stopped by SIGSTOP.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped
from moveit_msgs.msg import CollisionObject
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive

from benchmarks.client import client_node
from benchmarks.common import Table, columns, finish, guarded, parser, positive, spread
from benchmarks.processes import Process, ProcFigures, proc_figures, ros_node, wait_until
from dls_ik import RobotModel
from dls_ik.ros.client.ik_client import stamped_pose

START = [0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0]  # [rad] joint positions of the WAM
RADIUS, PERIOD = 0.05, 1.0  # [m], [s] of the circle
SETTLING = 1.0  # [s] ignored start of a turn, whole circles
SERVERS = {"echo": "echo", "node": "ik_node"}
COLUMNS = columns(
    "rate [Hz] :d; node; targets answered [%] :.1f; median [ms] :.3f; 99 % [ms] :.3f; largest "
    "[ms] :.3f; share of a core [%] :.1f; median, as a multiple of the echo's; share, as a "
    "multiple of the echo's"
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


def turn(process: Process, client: Client, tip: Callable, rate: int, duration: float) -> Turn:
    """Measure one node while the other node is stopped."""
    process.wake()
    used, begin = process.processor_time(), time.perf_counter()
    sent = client.follow(rate, SETTLING + duration)
    share = (process.processor_time() - used) / (time.perf_counter() - begin)
    process.sleep()
    times = np.array([time_ for time_, _ in client.received])
    tips = tip(np.array([positions for _, positions in client.received]))
    found = latencies(sent, times, tips, rate)[round(SETTLING * rate) :]
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


def measured(
    rate: int, repeats: int, duration: float, objects: int
) -> tuple[dict[str, list[Turn]], dict[str, ProcFigures]]:
    """Start both nodes and measure them in turns; return the turns and the final memory."""
    robot = RobotModel.wam()
    T = robot.fk(START)
    tips = {"echo": lambda q: q[:, :3], "node": lambda q: robot.fk(q)[:, :3, 3]}
    start = {"robot": "wam", "rate": rate, "initial_positions": START, "acceleration": "[.inf]"}
    start["stream_avoid_collisions"] = "required" if objects else "none"
    commands = {
        "echo": ros_node("benchmarks.trivial_nodes echo", "echo"),
        "node": ros_node("dls_ik.ros.node", "node", **start),
    }
    found: dict[str, list[Turn]] = {name: [] for name in SERVERS}
    with ExitStack() as stack:
        processes = {n: stack.enter_context(Process(c)) for n, c in commands.items()}
        for process in processes.values():
            process.wait_ready()
        node, executor = stack.enter_context(client_node())
        clients = {name: Client(node, executor, name, T, robot.base) for name in SERVERS}
        if objects:
            add_objects(node, executor, objects)
        for process in processes.values():
            process.sleep()
        for i in range(repeats):
            for name in SERVERS if i % 2 else reversed(SERVERS):
                done = turn(processes[name], clients[name], tips[name], rate, duration)
                found[name].append(done)
        memory = {name: proc_figures(p.process.pid) for name, p in processes.items()}
    return found, memory


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
        figures = np.percentile(times, (50, 99, 100)).tolist()
        result.append([rate, SERVERS[name], answered, *figures, share, *ratios])
    return result


def main() -> None:
    """Measure at every rate, and show."""
    options = parser(__doc__, repeats=7)
    options.add_argument("--rates", type=positive, nargs="+", default=[100, 500, 1000], help="[Hz]")
    options.add_argument(
        "--objects", type=int, default=0, help="of a scene that the stream keeps away from"
    )
    options.add_argument("--duration", type=positive, default=3, help="of a turn [s]")
    given = options.parse_args()
    table = Table(f"{given.repeats} turns of {given.duration} s of each node", COLUMNS)
    sizes = Table("memory at the end, with messages and the robot loaded", MEMORY)
    for rate in given.rates:
        found, memory = measured(rate, given.repeats, given.duration, given.objects)
        table.rows += rows(rate, found)
        for name, size in memory.items():
            more = size.rss - memory["echo"].rss
            sizes.rows.append([rate, SERVERS[name], size.rss, size.pss, more])
    finish(given, [table, sizes])


if __name__ == "__main__":
    guarded(main)
