"""The stream by executor, and the loop as a thread or a timer; its pace under load.

The first table is of the stream at each rate, as in `stream_latency`: latency from a target to what
was computed from it, jitter of the cycles, processor time. The second one is of the loop alone, in
its thread at absolute deadlines with no stream of targets to be in step with, while another process
asks for joint values at 200 Hz or floods target_pose at 5 kHz: by the interval in which Python's
threads take turns (sys.setswitchinterval), and by what is done about garbage. Rounds go
through all nodes in turns; all but one are stopped by SIGSTOP.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor

from benchmarks.common import Column, Table, finish, guarded, parser, positive
from benchmarks.machine import machine
from benchmarks.processes import Process, ros_node
from benchmarks.stream_client import Client, follow, latencies
from benchmarks.stream_jitter import Overruns, intervals, jitter
from benchmarks.stream_latency import SETTLING, START
from dls_ik import RobotModel
from dls_ik.ros.child import stay_alone

EXECUTORS, LOOPS = ("single", "multi", "events"), ("thread", "timer")
LOADS = ("none", "requests", "flood")
JITTER = [
    Column("jitter, deviation [ms]", ".3f"),
    Column("jitter, 99 % [ms]", ".3f"),
    Column("jitter, largest [ms]", ".3f"),
    Column("late cycles [%]", ".2f"),
    Column("share of a core [%]", ".1f"),
]
STREAM = [
    Column("rate [Hz]", "d"),
    Column("executor"),
    Column("loop"),
    Column("targets answered [%]", ".1f"),
    Column("median [ms]", ".3f"),
    Column("99 % [ms]", ".3f"),
    Column("largest [ms]", ".3f"),
    *JITTER,
]
LOAD = [Column("load"), Column("turns of threads [ms]"), Column("garbage"), *JITTER]
SWITCHES = [(s, "freeze") for s in ("5", "0.5", "0.1")] + [("5", "disable"), ("5", "collect")]


class Nodes:
    """Nodes that are there for one rate, all asleep but the one that is measured.

    Args:
        choices: arguments of :mod:`benchmarks.executor_node`, one a node.
    """

    def __init__(self, stack: ExitStack, choices: Sequence[str], rate: int) -> None:
        given = {"robot": "wam", "rate": float(rate), "initial_positions": START}
        self.names = {choice: f"n{rate}_{k}" for k, choice in enumerate(choices)}
        self.processes = {
            choice: stack.enter_context(
                Process(ros_node(f"benchmarks.executor_node {choice}", name, **given))
            )
            for choice, name in self.names.items()
        }
        self.node, self.executor = rclpy.create_node(f"client_{rate}"), SingleThreadedExecutor()
        stack.callback(self.node.destroy_node)
        self.executor.add_node(self.node)
        self.overruns = Overruns(self.node)
        self.robot, self.rate = RobotModel.wam(), rate
        T = self.robot.fk(START)
        for process in self.processes.values():
            process.wait_ready()
        self.clients = {c: Client(self.node, n, T, "") for c, n in self.names.items()}
        for choice, client in self.clients.items():
            client.connect(self.names[choice])
        for process in self.processes.values():
            process.sleep()

    @contextmanager
    def awake(self, choice: str) -> Iterator[tuple[Client, Callable[[], list[float]]]]:
        """Let one of them run; give its client, and a reading of its shares since then."""
        process, client = self.processes[choice], self.clients[choice]
        process.wake()
        self.spin(SETTLING)
        client.stamps.clear()
        self.overruns.clear()
        used, begin = process.processor_time(), time.perf_counter()

        def shares() -> list[float]:
            elapsed = time.perf_counter() - begin
            return [self.overruns.share() or 0.0, (process.processor_time() - used) / elapsed]

        yield client, shares
        process.sleep()

    def spin(self, duration: float) -> None:
        """Receive for a time [s]."""
        end = time.perf_counter() + duration
        while (left := end - time.perf_counter()) > 0.0:
            self.executor.spin_once(timeout_sec=left)

    def streamed(self, choice: str, duration: float) -> list[Any]:
        """Stream once; return latencies [ms], intervals [s], and shares."""
        with self.awake(choice) as (client, shares):
            sent = follow(client, self.executor, self.rate, SETTLING + duration)
            both = shares()
        times = np.array([t for t, _ in client.received])
        q = np.array([q for _, q in client.received]).reshape(-1, self.robot.n)
        tips = self.robot.fk(q)[:, :3, 3]
        found = latencies(sent, times, tips, self.rate)[round(SETTLING * self.rate) :]
        return [1e3 * found, intervals(client.stamps, SETTLING), *both]

    def loaded(self, load: str, choice: str, duration: float) -> list[Any]:
        """Let the loop run under a load; return intervals [s], and shares."""
        command = ros_node(f"benchmarks.stream_load {load}", self.names[choice])
        with ExitStack() as stack, self.awake(choice) as (client, shares):
            if load != "none":
                stack.enter_context(Process(command)).wait_ready()
                self.spin(SETTLING)
                self.overruns.clear()
                client.stamps.clear()
            self.spin(duration)
            return [intervals(client.stamps), *shares()]


def stream_row(found: list[list[Any]], rate: int, choice: str) -> list[Any]:
    """One row from all rounds."""
    all_latencies = np.concatenate([turn[0] for turn in found])
    answered = all_latencies[~np.isnan(all_latencies)]
    figures = np.percentile(answered, (50, 99, 100)).tolist() if len(answered) else [None] * 3
    share = 100.0 * len(answered) / len(all_latencies)
    return [rate, *choice.split()[:2], share, *figures, *pace([turn[1:] for turn in found], rate)]


def pace(found: list[list[Any]], rate: int) -> list[float]:
    """Jitter and shares from all rounds."""
    late, share = (100.0 * float(np.mean([turn[i] for turn in found])) for i in (1, 2))
    return [*jitter(np.concatenate([turn[0] for turn in found]), rate), late, share]


def measured(
    choices: Sequence[str], rate: int, repeats: int, duration: float, loads: Sequence[str]
) -> dict[tuple[str, str], list[list[Any]]]:
    """Go round all nodes and loads in turns; no load at all is a stream."""
    found: dict[tuple[str, str], list[list[Any]]] = {(c, w): [] for w in loads for c in choices}
    with ExitStack() as stack:
        nodes = Nodes(stack, choices, rate)
        for _ in range(repeats):
            for (c, w), turns in found.items():
                turns.append(nodes.loaded(w, c, duration) if w else nodes.streamed(c, duration))
    return found


def main() -> None:
    """Measure both, and show."""
    options = parser(__doc__)
    options.add_argument("--rates", type=positive, nargs="+", default=[500, 1000], help="[Hz]")
    options.add_argument("--repeats", type=positive, default=3, help="rounds")
    options.add_argument("--duration", type=positive, default=3, help="of a turn [s]")
    given, before = options.parse_args(), machine()
    stay_alone()
    rclpy.init(args=[])
    tables = [Table(f"{given.repeats} turns of {given.duration} s of each", STREAM)]
    for rate in given.rates:
        choices = [f"{e} {loop} 5 freeze" for e in EXECUTORS for loop in LOOPS]
        for c, found in measured(choices, rate, given.repeats, given.duration, [""]).items():
            tables[0].rows.append(stream_row(found, rate, c[0]))
    tables += [Table(f"the loop alone at {rate} Hz", LOAD)]
    choices = [f"single thread {s} {g}" for s, g in SWITCHES]
    for c, found in measured(choices, rate, given.repeats, given.duration, LOADS).items():
        tables[1].rows.append([c[1], *c[0].split()[2:], *pace(found, rate)])
    rclpy.try_shutdown()
    finish(given.json, before, tables)


if __name__ == "__main__":
    guarded(main)
