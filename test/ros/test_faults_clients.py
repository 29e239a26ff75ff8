# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Clients that are killed while they wait, other nodes of the same name, several publishers."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from out_of_grasp import out_of_grasp
from ros_client import ENOUGH, Client, NodeProcess
from ros_streamer import HOME, Streamer
from ros_wam import WAM, Q
from std_msgs.msg import Float64MultiArray

from dls_ik.ros.client import IkClient

pytestmark = [pytest.mark.ros, pytest.mark.slow]

PATIENCE = 120.0  # [s] timeout on a busy machine
COUNT = 20  # requests of a client that is killed
THREADS = 2
HARD = out_of_grasp(WAM, np.random.default_rng(3))
GIVEN = (
    "-r", "__ns:=/left_alone", "-p", "robot:=wam", "-p", f"service_threads:={THREADS}",
    "-p", "feedback_mode:=none", "-p", "output_type:=joint_state,position_array",
    "-p", "output_topic:=joint_states,commands", "-p", f"initial_positions:={HOME.tolist()}",
)  # fmt: skip


@pytest.fixture(scope="module")
def node(private_domain):
    with NodeProcess(*GIVEN) as node:
        node.wait_for_line("ready")
        yield node
        assert "Traceback" not in node.output, node.output
        assert node.end() == 0


@pytest.fixture
def client(node):
    with Client("left_alone") as client:
        yield client


def answer(client, asker, T, timeout):
    pending = asker.solve_async(T, timeout=timeout)
    client.spin_until(pending.done, PATIENCE, "an answer")
    return pending.result()


@contextmanager
def leaving():
    """A process that waits for answers."""
    program = Path(__file__).with_name("ros_leaving.py")
    command = [sys.executable, str(program), "left_alone", str(COUNT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout.readline() == "asked\n"
            yield process
        finally:
            process.kill()


def test_killed_clients_block_no_requests_and_leak_no_threads(node, client):
    streamer = Streamer(client)
    with IkClient(client.node) as asker:
        client.reach(asker)
        slow = [asker.solve_async(HARD, timeout=0.5) for _ in range(THREADS)]
        client.spin_until(lambda: all(each.done() for each in slow), PATIENCE, "answers")
        before = node.figures.threads
        with leaving() as process:
            process.kill()
            process.wait()
        behind = answer(client, asker, WAM.fk(Q), timeout=PATIENCE)
        assert behind.success, f"asked after {COUNT - 1} requests of one who is gone: {behind}"
        streamer.go(WAM.fk(HOME + 0.05))
        client.spin_until(
            lambda: "no thread was free" not in answer(client, asker, HARD, timeout=0.3).message,
            PATIENCE,
            "the line being empty",
        )
        client.spin_until(
            lambda: node.figures.threads <= before, PATIENCE, "as many threads as before"
        )


def test_second_node_of_the_same_name_causes_warnings_and_does_no_harm(node, client):
    streamer = Streamer(client)
    with NodeProcess(*GIVEN) as twin, IkClient(client.node) as asker:
        twin.wait_for_line("ready")
        for each in (node, twin):
            each.wait_for_line("WARN", "2 nodes have the name /left_alone/dls_ik", timeout=PATIENCE)
        client.reach(asker)
        for k in range(10):
            assert answer(client, asker, WAM.fk(HOME + 0.01 * k), timeout=ENOUGH).success
        streamer.go(WAM.fk(HOME + 0.1))
        assert twin.end() == 0
    node.wait_for_line("no longer several nodes", timeout=PATIENCE)
    streamer.go(WAM.fk(HOME))


def test_additional_command_and_target_publishers_cause_warnings(node, client):
    other = client.node.create_publisher(Float64MultiArray, "commands", 1)
    words = ("WARN", "2 publishers send commands on /left_alone/commands")
    node.wait_for_line(*words, timeout=PATIENCE)
    client.node.destroy_publisher(other)
    node.wait_for_line("no longer several publishers", timeout=PATIENCE)
    targets = [client.node.create_publisher(PoseStamped, "target_pose", 1) for _ in range(2)]
    node.wait_for_line("WARN", "publishers on /left_alone/target_pose", "newest", timeout=PATIENCE)
    for each in targets:
        client.node.destroy_publisher(each)
