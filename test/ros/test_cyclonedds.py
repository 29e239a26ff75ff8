# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A client of another DDS implementation, CycloneDDS, drives the node and its scene."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from programs import environment
from ros_client import SOON, Client, NodeProcess
from ros_scene import objects_of
from ros_wam import WAM, Q

from dls_ik.model.rotations import quaternion_from_rotation
from dls_ik.servo.state import ServoState

pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("cyclonedds") is None, reason="needs cyclonedds"),
]
PROGRAM = Path(__file__).with_name("cyclone_client.py")
COMMANDS = ("-p", "output_type:=joint_state,joint_trajectory", "-p", "acceleration:=[10.0]")


@pytest.fixture(scope="module")
def node(private_domain):
    """A node as it starts by itself."""
    with NodeProcess("-p", "robot:=wam", "-p", "feedback_mode:=none", *COMMANDS) as node:
        node.wait_for_line("the stream keeps")
        yield node


def ask(order, until=lambda heard: None):
    """Run the client; return what it heard once `until` has returned."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, json.dumps({**order, "limit": SOON})], env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        assert line, process.communicate(timeout=SOON)[1]
        until(json.loads(line))
        process.communicate(timeout=SOON)
        return json.loads(line)
    finally:
        process.kill()


def row(T):
    return [*map(float, T[:3, 3]), *map(float, quaternion_from_rotation(T[:3, :3]))]


def test_poses_are_followed_and_commands_and_status_received(node):
    T = WAM.fk(Q)
    heard = ask({
        "send": "pose", "rows": [row(T)],
        "near": [T[:3, 3].tolist(), 1e-4], "status": ServoState.REACHED.explanation,
    })  # fmt: skip
    state, plan = heard["joint_states"], heard["joint_trajectory_controller/joint_trajectory"]
    assert state["name"] == plan["joint_names"] == list(WAM.joint_names)
    for positions in (state["position"], plan["points"][0]["positions"]):
        np.testing.assert_allclose(WAM.fk(positions), T, atol=1e-3)
    assert heard["dls_ik/status"]["code"] == ServoState.REACHED.code


def test_a_trajectory_is_followed(node):
    there, back = WAM.fk(Q), WAM.fk(Q + 0.1)
    heard = ask({
        "send": "poses", "rows": [row(there), row(back)],
        "near": [back[:3, 3].tolist(), 1e-4], "status": ServoState.REACHED.explanation,
    })  # fmt: skip
    np.testing.assert_allclose(WAM.fk(heard["joint_states"]["position"]), back, atol=1e-3)


def test_a_twist_moves_the_tip(node):
    T = WAM.fk(Q)
    at_home = {"near": [T[:3, 3].tolist(), 1e-4], "status": ServoState.REACHED.explanation}
    ask({"send": "pose", "rows": [row(T)], **at_home})
    heard = ask({
        "send": "twist", "rows": [[0.0, 0.0, -0.05, 0.0, 0.0, 0.0]],
        "away": [T[:3, 3].tolist(), 0.02], "status": ServoState.FOLLOWING.explanation,
    })  # fmt: skip
    place = heard["dls_ik/tip_pose"]["pose"]["position"]
    x, y, z = (place[axis] - T[k, 3] for k, axis in enumerate("xyz"))
    assert z < -0.015
    assert max(abs(x), abs(y)) < 0.005


def test_an_object_enters_the_scene(node):
    box = [[1.0, 1.0, 0.5, 0.0, 0.0, 0.0, 1.0], [0.1, 0.2, 0.3]]
    with Client() as client:
        ask(
            {"send": "box", "rows": box},
            lambda _: client.spin_until(lambda: "cyclone_box" in objects_of(client)),
        )
