# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Endurance: memory, deadlines and calls of a node that streams and serves eight clients for hours.

docs/lab/benchmarks.md, section Endurance, describes the measurements and verdicts. Lateness is
computed from the stamps of the commands, taken at the start of a cycle. Ctrl-C, SIGTERM and a
closed terminal stop the run, with a report of the results so far; a run that was started with nohup
continues after the terminal is closed.
"""

import json
import os
import signal
import sys
import time
from array import array
from collections import Counter
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from benchmarks.client import Inbox, client_node
from benchmarks.common import add_plot, guarded, parser, positive
from benchmarks.idle_loop import Lateness, missed
from benchmarks.processes import Process, proc_figures, ros_node, wait_until
from benchmarks.soak_report import Measured, report
from dls_ik import RobotModel
from dls_ik.ros.frames import fill_pose

NAME, TARGETS = "soak", 100.0  # namespace, [Hz]
ACCELERATION = 10.0  # [rad/s^2]
SETTLING = 3.0  # [s] time before the first sample
FAULTS = ("Traceback", "ERROR", "FATAL", "internal error")
START = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])  # [rad] joint positions of the WAM
SWING = np.array([0.5, 0.3, 0.3, 0.5, 0.4, 0.4, 0.6])  # [rad] to either side
PERIODS = np.array([7.0, 5.0, 11.0, 6.0, 9.0, 4.0, 3.0])  # [s] of each joint's swing
TIGHT = 1e-9  # [rad] allowed excess over a limit


class Commands:
    """Client that sends the current target and reads the commands.

    Args:
        name: Namespace of the node.
        rate: Rate of the node [Hz].
    """

    def __init__(self, node: Node, name: str, rate: float) -> None:
        self._robot = RobotModel.wam()
        self._lateness = Lateness(1.0 / rate)
        self._message = PoseStamped()
        self._targets = node.create_publisher(PoseStamped, f"/{name}/target_pose", 1)
        self._commands = Inbox(node, JointState, f"/{name}/joint_states")
        self._begin = time.monotonic()
        self.q = START

    @property
    def is_connected(self) -> bool:
        """Whether the node has subscribed to targets."""
        return bool(self._targets.get_subscription_count())

    def send(self) -> None:
        """Send the current target, which the arm can reach and follow."""
        phase = 2.0 * np.pi * (time.monotonic() - self._begin) / PERIODS
        self._T = self._robot.fk(START + SWING * np.sin(phase))
        fill_pose(self._message.pose, self._T)
        self._targets.publish(self._message)

    def look(self) -> dict[str, Any]:
        """Check the messages since the last call.

        Returns:
            Lateness of the cycles [s], number of commands, number of commands out of bounds, and
            distance of the latest command to the target [m].
        """
        heard = self._commands.take()
        late = self._lateness.of(m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in heard)
        broken = 0
        if heard:
            q, v = (np.array([getattr(m, f) for m in heard]) for f in ("position", "velocity"))
            inside = self._robot.within_limits(q, TIGHT)
            slow = (np.abs(v) <= self._robot.velocity * (1.0 + 1e-9)).all(axis=1)
            broken, self.q = int((~(inside & slow)).sum()), q[-1]
        away = float(np.linalg.norm(self._robot.fk(self.q)[:3, 3] - self._T[:3, 3]))
        return {"late": late, "commands": len(heard), "broken": broken, "away": away}


class Soak:
    """Processes of a run, with one sample per second."""

    def __init__(self, stack: ExitStack, given: Any) -> None:
        self.rate, self.samples = given.rate, []  # type: float, list[dict[str, Any]]
        self.late = {name: array("d") for name in ("node", "idle")}  # [s]
        self.found: Counter[str] = Counter()
        self.worst_call = 0.0  # [s]
        command = ros_node(
            "dls_ik.ros.node", NAME, robot="wam", rate=float(given.rate), feedback_mode="none",
            acceleration=[ACCELERATION], initial_positions=START.tolist(),
            thread_priority=given.priority,
        )  # fmt: skip
        self.node = stack.enter_context(Process(command))
        self.node.wait_ready()
        python = [sys.executable, "-m"]
        words = [str(given.clients), str(given.seed), f"/{NAME}/compute_ik"]
        commands = ["benchmarks.idle_loop", str(given.rate)], ["benchmarks.soak_clients", *words]
        self._idle, self._clients = (
            stack.enter_context(Process([*python, *command])) for command in commands
        )
        for process in (self._idle, self._clients):
            process.wait_ready()
        node, _ = stack.enter_context(client_node("soak"))
        self._stream = Commands(node, NAME, given.rate)
        wait_until(lambda: self._stream.is_connected, "the node takes targets")

    def run(self, duration: float) -> None:
        """Stream and record a sample each second; stop if the node exits."""
        self._follow(SETTLING)
        self._look(0.0)
        self.late, self.samples = {name: array("d") for name in self.late}, []
        begin, said = time.monotonic(), 0
        while (now := time.monotonic() - begin) < duration and self.node.is_running:
            self._follow(1.0)
            self._look(time.monotonic() - begin)
            if int(now / 60.0) > said:
                said = int(now / 60.0)
                self._say(said)

    def end(self) -> None:
        """Stop the clients after their pending answers, and read their counts."""
        self._clients.signal(signal.SIGINT)
        with suppress(Exception):
            while (line := self._clients.line(60.0)) != "end":
                self._count(line)

    def counts(self) -> dict[str, int]:
        """Return the counts of the whole run."""
        if not self.samples:
            return {}
        codes = {k.replace("code", "answers with code"): n for k, n in sorted(self.found.items())
                 if k.startswith("code")}  # fmt: skip
        return {
            "calls sent": self.found["sent"],
            "calls answered": self.found["answered"],
            "calls given up after 30 s": self.found["lost"],
            "wrong answers": self.found["wrong"],
            **codes,
            "commands heard": sum(sample["commands"] for sample in self.samples),
            "commands out of bounds": sum(sample["broken"] for sample in self.samples),
            "faults in the log": self.found["faults"],
        }

    def _follow(self, duration: float) -> None:
        begin = time.monotonic()
        for k in range(round(TARGETS * duration)):
            time.sleep(max(0.0, begin + k / TARGETS - time.monotonic()))
            self._stream.send()

    def _look(self, now: float) -> None:
        seen = self._stream.look()
        node_late = seen.pop("late")
        idle_late = [1e-6 * late for line in self._idle.lines() for late in json.loads(line)]
        before = self.found["sent"]
        for line in self._clients.lines():
            self._count(line)
        self.found["faults"] += sum(any(f in line for f in FAULTS) for line in self.node.lines())
        with suppress(OSError):
            self.samples.append({
                "time": now, **seen, **proc_figures(self.node.process.pid)._asdict(),
                "processor": self.node.processor_time(),
                "sent": self.found["sent"] - before,
                "waiting": self.found["sent"] - self.found["answered"],
                "node_worst": max(node_late, default=np.nan),
                "idle_worst": max(idle_late, default=np.nan), "load": os.getloadavg()[0],
            })  # fmt: skip
        self.late["node"].extend(node_late)
        self.late["idle"].extend(idle_late)

    def _count(self, line: str) -> None:
        if line.startswith("{"):
            told = json.loads(line)
            worst = told.pop("worst")
            self.found.update(told)
            self.worst_call = max(self.worst_call, worst)

    def _say(self, minutes: int) -> None:
        gone = {name: missed(np.array(late), 1.0 / self.rate) for name, late in self.late.items()}
        calls = f"{self.found['answered']} of {self.found['sent']} calls answered"
        words = f"{minutes} min: {self.samples[-1]['rss']:.1f} MiB, {calls}, missed {gone}"
        print(words, file=sys.stderr, flush=True)


def main() -> None:
    """Run and print the report, also after Ctrl-C."""
    options = parser(__doc__, seed=0)
    options.add_argument("--minutes", type=float, default=10.0, help="of the run")
    options.add_argument("--rate", type=positive, default=500, help="of the node [Hz]")
    options.add_argument("--priority", type=int, default=50, help="of the loop; 0: ordinary")
    options.add_argument("--clients", type=positive, default=8, help="of compute_ik")
    add_plot(options, "the curves")
    given = options.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that is closed
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    interrupted = False
    with ExitStack() as stack:
        soak = Soak(stack, given)
        try:
            soak.run(60.0 * given.minutes)
        except KeyboardInterrupt:
            interrupted = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the measurements must be shown in any case
        soak.end()
    late = {name: np.array(values) for name, values in soak.late.items()}
    measured = Measured(soak.samples, late, soak.counts(), soak.worst_call, soak.node.exit_code)
    sys.exit(report(measured, given, interrupted))


if __name__ == "__main__":
    guarded(main)
