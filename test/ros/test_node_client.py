# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""IkClient and ``dls-ik call`` against the running node."""

import asyncio
import json
import time

import numpy as np
import pytest
from cli_runner import NO_SOLUTION, run
from ros_client import ENOUGH, SOON
from ros_wam import WAM, Q, stamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Empty

from dls_ik import Task
from dls_ik.errors import JointValueError, OptionError, PoseError
from dls_ik.ros.client import IkClient, NotSpunError, ServiceMissingError

pytestmark = [pytest.mark.ros, pytest.mark.installed]


NAMES = WAM.joint_names
IK = "moveit_msgs/srv/GetPositionIK"


@pytest.fixture(scope="module")
def asker(wam_node):
    with IkClient(joint_names=NAMES, patience=SOON) as asker:
        asker.wait()
        yield asker


@pytest.mark.parametrize(
    ("pose", "seed"),
    [
        (WAM.fk(Q), Q + 0.01),
        (stamped(), dict(zip(NAMES, Q + 0.01, strict=True))),
        (WAM.fk(Q), JointState(name=list(NAMES), position=(Q + 0.01).tolist())),
    ],
    ids=["array", "by name", "message"],
)
def test_solution_brings_the_tip_to_the_pose(asker, pose, seed):
    answer = asker.solve(pose, seed, timeout=ENOUGH)
    assert answer.success is bool(answer) is True, answer.message
    assert answer.code == 1
    q = answer.array(NAMES)
    np.testing.assert_allclose(WAM.fk(q), WAM.fk(Q), atol=2e-6)
    np.testing.assert_allclose(q, Q, atol=0.05)
    at = asker.fk(answer.q, ["wam_tip", "wam_base"], frame="wam_base")
    poses = at.poses
    assert at.frame == "wam_base"
    np.testing.assert_allclose(poses["wam_tip"], WAM.fk(q), atol=1e-9)
    np.testing.assert_allclose(poses["wam_base"], np.eye(4), atol=1e-12)


def test_refused_requests_return_a_code_and_a_message(asker):
    far = np.eye(4)
    far[0, 3] = 50.0
    for answer, code in [
        (asker.solve(far, timeout=ENOUGH), -31),
        (asker.solve(WAM.fk(Q), link="nowhere"), -18),
        (asker.solve(WAM.fk(Q), group="nobody"), -15),
        (asker.fk(Q, ["nowhere"]), -18),
    ]:
        assert answer.success is bool(answer) is False
        assert answer.code == code
        assert answer.message
    with pytest.raises(JointValueError, match="in the answer: none"):
        asker.solve(far, timeout=ENOUGH).array(NAMES)


def test_invalid_arguments_raise_before_a_request_is_sent(asker):
    with pytest.raises(PoseError, match="\\(3, 3\\)"):
        asker.solve(np.eye(3))
    with pytest.raises(PoseError, match="rotation"):
        asker.solve(2.0 * np.eye(4))
    with pytest.raises(JointValueError, match="joint_names"):
        asker.solve(np.eye(4), [0.1])
    with pytest.raises(OptionError, match="timeout"):
        asker.solve(np.eye(4), timeout=-1.0)
    with pytest.raises(OptionError, match="elsewhere"):
        asker.solve(stamped(frame="wam_base"), frame="elsewhere")


def test_free_axes_frozen_joints_and_bounds_are_part_of_a_request(asker):
    seed = dict(zip(NAMES, Q + 0.01, strict=True))
    answer = asker.solve(
        WAM.fk(Q), seed, link="wam_tip", timeout=ENOUGH, task=Task.pointing("z"),
        frozen_joints=["wam_j3"], joint_bounds={"wam_j7": (Q[6] + 0.3, Q[6] + 0.5)},
    )  # fmt: skip
    assert answer.success, answer.message
    q = answer.array(NAMES)
    np.testing.assert_allclose(WAM.fk(q)[:3, 2:], WAM.fk(Q)[:3, 2:], atol=1e-5)
    assert q[2] == seed["wam_j3"]
    assert Q[6] + 0.3 - 1e-9 <= q[6] <= Q[6] + 0.5 + 1e-9


def test_concurrent_asyncio_requests_are_all_solved(asker):
    targets = [WAM.fk(q) for q in WAM.random(20, np.random.default_rng(1))]

    async def ask():
        return await asyncio.gather(*(asker.solve_async(T, timeout=ENOUGH) for T in targets))

    for T, answer in zip(targets, asyncio.run(ask()), strict=True):
        assert answer.success, answer.message
        np.testing.assert_allclose(WAM.fk(answer.array(NAMES)), T, atol=2e-6)


def test_requests_can_be_awaited_in_a_callback_of_the_same_node(client):
    found = []
    with IkClient(client.node, joint_names=NAMES) as asker:
        client.reach(asker)

        async def callback(_):
            first = await asker.solve_async(WAM.fk(Q), Q, timeout=ENOUGH)
            found.append(await asker.fk_async(first.q))

        subscription = client.node.create_subscription(Empty, "ask", callback, 1)
        client.publisher(Empty, "ask").publish(Empty())
        client.spin_until(lambda: found)
        client.node.destroy_subscription(subscription)
    np.testing.assert_allclose(found[0].poses["wam_tip"], WAM.fk(Q), atol=2e-6)


def test_blocking_call_in_a_callback_of_another_node_succeeds(client, asker):
    found = []
    client.node.create_subscription(
        Empty, "ask_and_wait", lambda _: found.append(asker.solve(WAM.fk(Q), Q, timeout=ENOUGH)), 1
    )
    client.publisher(Empty, "ask_and_wait").publish(Empty())
    client.spin_until(lambda: found)
    assert found[0].success


def test_missing_service_error_lists_available_services(wam_node):
    with IkClient(ik="nowhere/compute_ik", patience=1.0) as asker:
        deadline = time.monotonic() + SOON
        while ("/compute_ik", [IK]) not in asker._node.get_service_names_and_types():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        words = r"/nowhere/compute_ik .*of this type: (/\S+, )*/compute_ik;"
        with pytest.raises(ServiceMissingError, match=words):
            asker.solve(np.eye(4))
        with pytest.raises(ServiceMissingError, match="GetPositionIK"):
            asker.solve_async(np.eye(4)).result(SOON)


def test_node_that_is_not_spun_raises_not_spun_error(client):
    import rclpy

    node = rclpy.create_node("idle", context=client.context)
    with IkClient(node) as asker, pytest.raises(NotSpunError, match="'idle'"):
        asker.solve(np.eye(4))
    node.destroy_node()


SEED = ",".join(f"{name}={value}" for name, value in zip(WAM.joint_names, Q, strict=True))


def call(*words, code=0):
    """The result of ``dls-ik call``, which must end with that code."""
    return run("call", "--patience", 30, *words, code=code)


def test_call_command_fk_then_ik_returns_the_pose(wam_node):
    T = np.array(json.loads(call("--fk", SEED, "--json").stdout)["poses"]["wam_tip"])
    np.testing.assert_allclose(T, WAM.fk(Q), atol=1e-9)
    xyz = [f"{value:.9f}" for value in T[:3, 3]]
    found = json.loads(call("--xyz", *xyz, "--seed", SEED, "--timeout", ENOUGH, "--json").stdout)
    assert found["success"]
    q = np.array([found["joints"][name] for name in WAM.joint_names])
    np.testing.assert_allclose(WAM.fk(q)[:3, :3], np.eye(3), atol=1e-5)
    np.testing.assert_allclose(WAM.fk(q)[:3, 3], T[:3, 3], atol=1e-5)


def test_call_command_without_a_solution_exits_with_the_reason(wam_node):
    for words, said in (
        (("--xyz", 9, 0, 0), "dls-ik: code -31: "),
        (("--xyz", 0.4, 0, 0.5, "--link", "nowhere"), "'nowhere'"),
    ):
        result = call(*words, code=NO_SOLUTION)
        assert result.stdout == ""
        assert said in result.stderr
