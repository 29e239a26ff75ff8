# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Round trip of compute_ik: the node compared with a trivial server of the same type.

Both run in separate processes and are called in turns with the same requests: random reachable
poses of the WAM from random joint positions. Both stay in the same ROS graph; the node's stream is
at rest, but publishes joint states at its usual 100 Hz. The third row is the solver in this process
for the same poses.
"""

import time
from contextlib import ExitStack
from typing import Any

import numpy as np
from moveit_msgs.srv import GetPositionIK

from benchmarks.client import client_node
from benchmarks.common import Table, columns, finish, guarded, parser, positive, quartiles, spread
from benchmarks.processes import Process, ros_node, wait_until
from dls_ik import DlsIkError, IkSolver, RobotModel
from dls_ik.ros.client.ik_client import ik_request

TIMEOUT = 0.05  # [s] solver timeout, the node's default
ANSWER = 5.0  # [s] maximum time until an answer
WARM_UP = 50  # calls that are not counted
BLOCK = 100  # calls whose medians make one ratio
SUCCESS = 1
SERVERS = {"trivial": "trivial server", "node": "ik_node"}
SOLVER = "solver alone, in this process"
COLUMNS = columns(
    "call; answered with success [%] :.2f; median [ms] :.3f; 99 % [ms] :.3f; largest [ms] "
    ":.3f; median, as a multiple of the trivial server's"
)


def timed_call(client: Any, executor: Any, request: Any) -> tuple[float, bool]:
    """Return the time until the answer [s], and whether it succeeded."""
    begin = time.perf_counter()
    future = client.call_async(request)
    executor.spin_until_future_complete(future, ANSWER)
    duration = time.perf_counter() - begin
    if not future.done():
        raise DlsIkError(f"{client.srv_name} did not answer within {ANSWER:g} s")
    return duration, future.result().error_code.val == SUCCESS


def measured(
    node: Any, executor: Any, calls: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the calls (calls, 2) of each callee: time [s], success."""
    clients = {n: node.create_client(GetPositionIK, f"/{n}/compute_ik") for n in SERVERS}
    for name, client in clients.items():
        wait_until(client.service_is_ready, f"compute_ik of {SERVERS[name]}")
    robot = RobotModel.wam()
    solver = IkSolver(robot, timeout=TIMEOUT)
    found: dict[str, list[tuple[float, bool]]] = {name: [] for name in (*SERVERS, SOLVER)}
    for i in range(WARM_UP + calls):
        T = robot.fk(rng.uniform(robot.lower, robot.upper))
        seed = rng.uniform(robot.lower, robot.upper)
        names = robot.joint_names
        request = ik_request(T, seed, frame=robot.base, timeout=TIMEOUT, joint_names=names)
        for name in SERVERS if i % 2 else reversed(SERVERS):
            found[name].append(timed_call(clients[name], executor, request))
        begin = time.perf_counter()
        success = solver.solve(T, seed).success
        found[SOLVER].append((time.perf_counter() - begin, success))
    return {name: np.array(values[WARM_UP:], float) for name, values in found.items()}


def rows(found: dict[str, np.ndarray]) -> list[list[Any]]:
    """Return the results of each callee, with ratios of block medians."""
    blocks = {
        name: [np.median(part) for part in np.array_split(values[:, 0], -(-len(values) // BLOCK))]
        for name, values in found.items()
    }
    result = []
    for name, values in found.items():
        times, success = 1e3 * values[:, 0], 100.0 * values[:, 1].mean()
        ratio = spread(np.array(blocks[name]) / np.array(blocks["trivial"]))
        tail = float(np.percentile(times, 99)), times.max()
        result.append([SERVERS.get(name, name), success, quartiles(times)[0], *tail, ratio])
    return result


def main() -> None:
    """Start the servers, call them, and print the table."""
    options = parser(__doc__, seed=0)
    options.add_argument("--calls", type=positive, default=2000, help="of each server")
    given = options.parse_args()
    with ExitStack() as stack:
        for command in (
            ros_node("benchmarks.trivial_nodes serve", "trivial"),
            ros_node("dls_ik.ros.node", "node", robot="wam"),
        ):
            stack.enter_context(Process(command)).wait_ready()
        client = stack.enter_context(client_node())
        found = measured(*client, given.calls, np.random.default_rng(given.seed))
    table = Table(f"{given.calls} calls of each, WAM", COLUMNS, rows(found))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
