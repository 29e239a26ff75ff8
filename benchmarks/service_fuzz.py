"""Requests with anything in them, over DDS: how long the node takes to answer the worst of them.

Drawn as in test/ros/message_fuzz.py, which it needs on its path: PYTHONPATH=test:test/ros. Times
are less what the answer says that the solver took, but no more of it than the timeout. Over DDS:
what passes from the call to the answer, with what rclpy takes to write and read a request, for
large ones nearly all of it. That alone, in this process, is in the last column but one; in the last
one the function that answers, alone.
"""

import re
import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np
import rclpy
from hypothesis import HealthCheck, Phase, given, seed, settings
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rclpy.executors import SingleThreadedExecutor
from rclpy.serialization import deserialize_message, serialize_message

from benchmarks.common import Column, Table, finish, guarded, parser, positive
from benchmarks.machine import machine
from benchmarks.processes import Process, wait_until
from dls_ik import DlsIkError
from dls_ik.ros.arm import Arm
from dls_ik.ros.child import stay_alone
from dls_ik.ros.frames import Frames
from dls_ik.ros.services.ik import answer_fk, answer_ik

ANSWER = 30.0  # [s] after which a request counts as lost
DEFAULT = 0.05  # [s] timeout of the node
COLUMNS = [
    Column("code", "d"),
    Column("requests", "d"),
    Column("largest [kB]", ".0f"),
    Column("median [ms]", ".2f"),
    Column("largest [ms]", ".1f"),
    Column("largest of rclpy [ms]", ".1f"),
    Column("largest to answer [ms]", ".1f"),
]


class Caller:
    """The client's side; keeps the figures of each answer by its code."""

    def __init__(self, node: Any, arm: Arm) -> None:
        self._arm = arm
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._clients = {
            GetPositionIK.Request: node.create_client(GetPositionIK, "/fuzz/compute_ik"),
            GetPositionFK.Request: node.create_client(GetPositionFK, "/fuzz/compute_fk"),
        }
        self.figures: dict[int, list[tuple[float, ...]]] = defaultdict(list)

    def connect(self) -> None:
        """Wait for the node."""
        for client in self._clients.values():
            wait_until(client.service_is_ready, client.srv_name)

    def call(self, request: Any) -> None:
        """Measure one request."""
        begin = time.perf_counter()
        future = self._clients[type(request)].call_async(request)
        self._executor.spin_until_future_complete(future, ANSWER)
        spent = time.perf_counter() - begin
        if not future.done():
            raise DlsIkError(f"no answer within {ANSWER:g} s to {str(request)[:2000]}")
        error = future.result().error_code
        words = getattr(error, "message", "words")
        if not words:
            raise DlsIkError(f"no words in the answer to {str(request)[:2000]}")
        size, alone = rclpy_alone(request)
        times = spent - solving(request, words), alone, self._answering(request)
        self.figures[error.val].append((size, *(1e3 * time for time in times)))

    def _answering(self, request: Any) -> float:
        """How long the function takes that answers [s]."""
        begin = time.perf_counter()
        try:
            if isinstance(request, GetPositionFK.Request):
                words = answer_fk(request, self._arm, {}, Frames()).message
            else:
                words = answer_ik(request.ik_request, self._arm, {}, Frames()).message
        except DlsIkError as error:
            words = str(error)
        return time.perf_counter() - begin - solving(request, words)


def rclpy_alone(request: Any) -> tuple[float, float]:
    """The size of a request [kB], and the time it takes to be written and read [s]."""
    begin = time.perf_counter()
    data = serialize_message(request)
    deserialize_message(data, type(request))
    return len(data) / 1024, time.perf_counter() - begin


def solving(request: Any, words: str) -> float:
    """The time [s] that the solver took by the words of an answer, its timeout at most."""
    said = re.search(r"(?:rad in|tried for) ([-+.e\d]+) ms", words)
    if said is None:
        return 0.0
    given = request.ik_request.timeout
    return min(1e-3 * float(said[1]), given.sec + 1e-9 * given.nanosec or DEFAULT)


def table(figures: dict[int, list[tuple[float, ...]]]) -> Table:
    """The figures of each code."""
    total = sum(map(len, figures.values()))
    result = Table(f"{total} requests", COLUMNS)
    for code, found in sorted(figures.items()):
        sizes, times, alone, answering = np.transpose(found)
        most = (float(each.max()) for each in (times, alone, answering))
        row = [code, len(found), float(sizes.max()), float(np.median(times)), *most]
        result.rows.append(row)
    return result


def main() -> None:
    """Measure, and show."""
    from message_fuzz import requests
    from ros_arms import ARGUMENTS, robot_and_parameters

    arm = Arm(*robot_and_parameters())
    options = parser(__doc__)
    options.add_argument("--requests", type=positive, default=2000)
    options.add_argument("--seed", type=int, default=0, help="of the requests")
    chosen, before = options.parse_args(), machine()
    stay_alone()
    command = ["-m", "dls_ik.ros.node", "--ros-args", "-r", "__ns:=/fuzz", *ARGUMENTS]
    with Process([sys.executable, *command]) as process:
        process.wait_ready()
        rclpy.init()
        caller = Caller(rclpy.create_node("fuzz"), arm)
        caller.connect()
        run = settings(
            max_examples=chosen.requests,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(seed(chosen.seed)(given(requests())(caller.call)))
        run()
        rclpy.shutdown()
    finish(chosen.json, before, [table(caller.figures)])


if __name__ == "__main__":
    guarded(main)
