# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Clients of compute_ik for a soak: ``python -m benchmarks.soak_clients COUNT SEED SERVICE``.

Each client sends a few requests per second, but only after the previous answer. All clients share
one process and one thread, to keep the load of the machine low. Every answer is checked. The
program prints the counts of the last second as JSON until SIGINT, then waits for pending answers
and prints the remaining counts.
"""

import json
import signal
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
from moveit_msgs.srv import GetPositionIK
from rclpy.qos import QoSProfile

from benchmarks.client import Steps, Task, client_node
from benchmarks.concurrency_checks import explains_ik
from dls_ik import RobotModel
from dls_ik.errors import Code
from dls_ik.ros.client.ik_client import IK_ANSWER_QUEUE_DEPTH, ik_request
from dls_ik.solver.options import SolverOptions

MEAN_PAUSE = 0.3  # [s] mean time between an answer and the next call
TURN = 0.02  # [s] at most, from one look at the clock to the next
PATIENCE = 30.0  # [s] a call without an answer for this time counts as lost
HARD = 0.05  # share of poses with the rotation of another, which often cannot be reached


class Asker:
    """Requests of all clients, and counts of their answers since the last report."""

    def __init__(self, seed: int) -> None:
        self._robot, self._rng = RobotModel.wam(), np.random.default_rng(seed)
        self._found: Counter[str] = Counter()
        self._worst = 0.0  # [s] maximum time of a call

    def ask(self, client: Any) -> Steps:
        """Call the service repeatedly."""
        robot, rng, tolerance = self._robot, self._rng, SolverOptions().position_tolerance
        while True:
            yield float(rng.exponential(MEAN_PAUSE))
            T, other = (robot.fk(robot.random(rng=rng)) for _ in range(2))
            if rng.random() < HARD:
                T[:3, :3] = other[:3, :3]
            request = ik_request(T, robot.random(rng=rng), joint_names=robot.joint_names)
            self._found["sent"] += 1
            begin = time.monotonic()
            try:
                response = yield client.call_async(request)
            except TimeoutError:
                self._found["lost"] += 1
                continue
            self._worst = max(self._worst, time.monotonic() - begin)
            code = response.error_code.val
            wrong = code == Code.SUCCESS and not explains_ik(robot, response, "", T, tolerance)
            self._found.update({"answered": 1, f"code {code}": 1, "wrong": int(wrong)})

    def report(self) -> None:
        """Print the counts since the last report."""
        print(json.dumps({**self._found, "worst": self._worst}), flush=True)
        self._found, self._worst = Counter(), 0.0


def main() -> None:
    """Call and report until a signal."""
    over: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: over.append(got))
    asker = Asker(int(sys.argv[2]))
    with client_node("soak_clients") as (node, executor):
        kept = QoSProfile(depth=IK_ANSWER_QUEUE_DEPTH)
        clients = [
            node.create_client(GetPositionIK, sys.argv[3], qos_profile=kept)
            for _ in range(int(sys.argv[1]))
        ]
        for client in clients:
            client.wait_for_service()
        print("ready", flush=True)
        tasks = [Task(asker.ask(client), PATIENCE) for client in clients]
        due = time.monotonic() + 1.0
        while not over or any(task.awaits_answer for task in tasks):
            for task in tasks:
                if task.awaits_answer or not over:
                    task.step()
            executor.spin_once(timeout_sec=TURN)
            if time.monotonic() >= due:
                asker.report()
                due += 1.0
    asker.report()
    print("end", flush=True)


if __name__ == "__main__":
    main()
