"""Clients of compute_ik for a soak: ``python -m benchmarks.soak_clients COUNT SEED SERVICE``.

Each has a client of its own and asks a few times a second, never before it has the answer to the
call before. All are in one process and one thread, so that they cost the machine little. Every
answer is checked. Prints what came of the last second as JSON until SIGINT, then waits for what is
still on its way and prints the rest.
"""

import json
import signal
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
import rclpy
from moveit_msgs.srv import GetPositionIK
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions

from dls_ik import RobotModel
from dls_ik.ros.client.ik_client import DEPTH, ik_request
from dls_ik.solver.options import SolverOptions

MEAN_PAUSE = 0.3  # [s] between an answer and the next call
PATIENCE = 30.0  # [s] after which a call counts as lost
HARD = 0.05  # share of poses with the rotation of another, which often cannot be reached
SUCCESS = 1
TIGHT = 1e-9  # [rad] beyond a limit


class Clients:
    """Clients that call, each at its own times, and their counts."""

    def __init__(self, node: Node, service: str, count: int, seed: int) -> None:
        self._robot, self._rng = RobotModel.wam(), np.random.default_rng(seed)
        self._options = SolverOptions()
        ways = QoSProfile(depth=DEPTH)
        self._clients = [
            node.create_client(GetPositionIK, service, qos_profile=ways) for _ in range(count)
        ]
        self._due = [time.monotonic() + self._pause() for _ in range(count)]
        self._on_its_way: dict[int, tuple[Any, np.ndarray, float]] = {}
        self.found: Counter[str] = Counter()
        self._times: list[float] = []  # [s] of the calls

    def wait(self) -> None:
        """Wait for the service, in each client."""
        for client in self._clients:
            client.wait_for_service()

    def next_due(self) -> float:
        """Return the time of the next action."""
        idle = (due for i, due in enumerate(self._due) if i not in self._on_its_way)
        return min(idle, default=time.monotonic() + 1.0)

    def is_waiting(self) -> bool:
        """Test if an answer is pending."""
        return bool(self._on_its_way)

    def take(self) -> None:
        """Check the answers, and give up those that are overdue."""
        now = time.monotonic()
        for i, (future, T, begin) in list(self._on_its_way.items()):
            if future.done():
                self._times.append(now - begin)
                self._judge(future.result(), T)
            elif now - begin > PATIENCE:
                self._clients[i].remove_pending_request(future)
                self.found["lost"] += 1
            else:
                continue
            del self._on_its_way[i]
            self._due[i] = now + self._pause()

    def ask(self) -> None:
        """Send the requests that are due."""
        for i, client in enumerate(self._clients):
            if i in self._on_its_way or self._due[i] > time.monotonic():
                continue
            T, other = (self._robot.fk(self._robot.random(self._rng)) for _ in range(2))
            if self._rng.random() < HARD:
                T[:3, :3] = other[:3, :3]
            names, q = self._robot.joint_names, self._robot.random(self._rng)
            future = client.call_async(ik_request(T, q, joint_names=names))
            self._on_its_way[i] = future, T, time.monotonic()
            self.found["sent"] += 1

    def tell(self) -> str:
        """Return the counts since the last call, as JSON."""
        told = {**self.found, "worst": max(self._times, default=0.0)}
        self.found, self._times = Counter(), []
        return json.dumps(told)

    def _judge(self, response: Any, T: np.ndarray) -> None:
        self.found["answered"] += 1
        self.found[f"code {response.error_code.val}"] += 1
        if response.error_code.val == SUCCESS and not self._is_right(response, T):
            self.found["wrong"] += 1

    def _is_right(self, response: Any, T: np.ndarray) -> bool:
        state = response.solution.joint_state
        if tuple(state.name) != self._robot.joint_names:
            return False
        q = np.array(state.position)
        at, options = self._robot.fk(q), self._options
        near = np.linalg.norm(at[:3, 3] - T[:3, 3]) <= 1.01 * options.position_tolerance
        turned = np.linalg.norm(at[:3, :3] - T[:3, :3]) <= 1.5 * options.rotation_tolerance
        return bool(near and turned and self._robot.within_limits(q, TIGHT))

    def _pause(self) -> float:
        return float(self._rng.exponential(MEAN_PAUSE))


def main() -> None:
    """Call and report until a signal."""
    over: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: over.append(got))
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = Node("soak_clients")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    clients = Clients(node, sys.argv[3], int(sys.argv[1]), int(sys.argv[2]))
    clients.wait()
    print("ready", flush=True)
    tell = time.monotonic() + 1.0
    while not over or clients.is_waiting():
        if not over:
            clients.ask()
        left = min(clients.next_due(), tell) - time.monotonic()
        executor.spin_once(timeout_sec=min(max(left, 1e-3), 1.0))
        clients.take()
        if time.monotonic() >= tell:
            print(clients.tell(), flush=True)
            tell += 1.0
    print(clients.tell(), flush=True)
    print("end", flush=True)
    rclpy.shutdown()


if __name__ == "__main__":
    main()
