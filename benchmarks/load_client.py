"""One client of compute_ik: ``python -m benchmarks.load_client SECONDS SEED HARD SERVICE ...``.

Says that it is ready. For each service it waits for SIGCONT, calls one request after the other for
a time, and prints what came of each call as JSON: seconds and code; null for one not answered.
"""

import json
import signal
import sys
import time
from concurrent.futures import TimeoutError as LateError
from contextlib import ExitStack

import numpy as np

from dls_ik import RobotModel
from dls_ik.ros.client import IkClient

TIMEOUT = 0.05  # [s] to solve in, the node's own default
PATIENCE = 20.0  # [s] after which a call counts as lost


def call(client: IkClient, T: np.ndarray, seed: np.ndarray) -> tuple[float, int | None]:
    """Ask once, and not anew as `solve` does; return the time that it took [s], and the code."""
    begin = time.perf_counter()
    pending = client.solve_async(T, seed, timeout=TIMEOUT)
    try:
        code: int | None = pending.result(TIMEOUT + PATIENCE).code
    except LateError:
        pending.cancel()
        code = None
    return time.perf_counter() - begin, code


def call_on(
    client: IkClient, robot: RobotModel, rng: np.random.Generator, seconds: float, hard: float
) -> list[tuple[float, int | None]]:
    """Call for a time; a share of the poses, `hard`, has the rotation of another one."""
    end, found = time.perf_counter() + seconds, []
    while time.perf_counter() < end:
        T, other = robot.fk(robot.random(rng)), robot.fk(robot.random(rng))
        if rng.random() < hard:
            T[:3, :3] = other[:3, :3]  # which a seven-joint arm often cannot do
        found.append(call(client, T, robot.random(rng)))
    return found


def main() -> None:
    """Wait, call, and tell."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
    seconds, seed, hard = map(float, sys.argv[1:4])
    robot, rng = RobotModel.wam(), np.random.default_rng(int(seed))
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                IkClient(ik=service, joint_names=robot.joint_names, patience=PATIENCE)
            )
            for service in sys.argv[4:]
        ]
        for client in clients:
            client.wait()
            client.solve(robot.fk(robot.random(rng)), robot.random(rng))  # connects
        print("ready", flush=True)
        for client in clients:
            signal.sigwait({signal.SIGCONT})
            print(json.dumps(call_on(client, robot, rng, seconds, hard)), flush=True)


if __name__ == "__main__":
    main()
