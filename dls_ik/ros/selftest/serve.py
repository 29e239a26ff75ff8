"""The real node, started and asked once, in a namespace of its own."""

import os
import sys
import time

import numpy as np

from dls_ik.exceptions import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.child import ChildProcess
from dls_ik.ros.client import IkClient

PATIENCE, POLL = 120.0, 0.05  # [s]


def start_and_ask() -> str:
    """Start ``ik_node`` with the WAM, have it solve a pose, and end it; return how it went.

    Raises:
        DlsIkError: it does not start, or does not answer rightly.
    """
    namespace = f"dls_ik_selftest_{os.getpid()}"
    command = [sys.executable, "-m", "dls_ik.ros.node", "--ros-args"]
    command += ["-p", "robot:=wam", "-r", f"__ns:=/{namespace}"]
    robot = RobotModel.wam()
    T = robot.fk(np.full(robot.n, 0.3))
    said: list[str] = []
    begin = time.monotonic()
    with ChildProcess(command, said.append) as node, IkClient(namespace=namespace) as client:
        while not client.is_served and node.is_running and time.monotonic() < begin + PATIENCE:
            time.sleep(POLL)
        ready = time.monotonic() - begin
        if not client.is_served:
            reason = said[-1] if said else f"no compute_ik within {PATIENCE:g} s"
            raise DlsIkError(f"ik_node does not start: {reason}")
        answer = client.solve(T, timeout=1.0)
    if not answer.success or not np.allclose(
        robot.fk(answer.array(robot.joint_names)), T, atol=1e-4
    ):
        raise DlsIkError(f"ik_node gives a wrong answer, code {answer.code} {answer.message}")
    return f"ready after {ready:.1f} s, solves a pose"
