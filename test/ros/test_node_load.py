# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The services under load, while the robot is replaced, and with everything else at once."""

from functools import partial

import numpy as np
import pytest
from out_of_grasp import out_of_grasp
from robots import URDF
from ros_client import ENOUGH, READY, SOON, Client, NodeProcess
from ros_wam import WAM, Q
from std_msgs.msg import String

from benchmarks.concurrency import run
from dls_ik import RobotModel
from dls_ik.model.files import shipped_urdf
from dls_ik.ros.client import IkClient
from dls_ik.ros.robot_source import DESCRIPTION_QOS

pytestmark = [pytest.mark.ros, pytest.mark.slow]


TIMED_OUT, NO_IK_SOLUTION, FAILURE = -6, -31, 99999
CLIENTS, CALLS = 8, 50
HARD = out_of_grasp(WAM, np.random.default_rng(3))
PLANAR = (URDF / "planar_2r.urdf").read_text()


def test_pending_requests_are_answered_for_the_robot_they_were_sent_to():
    arguments = ("-r", "__ns:=/swap", "-p", "service_threads:=1", "-p", "max_timeout:=3600.0")
    with NodeProcess(*arguments) as node, Client("swap") as client, IkClient(client.node) as asker:
        topic = client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
        for duration in (2.0, 10.0, 50.0):  # [s] the robot must change in this time
            robots = node.count("ready", "planar_2r"), node.count("ready", "wam")
            topic.publish(String(data=wam_text()))
            client.spin_until(lambda n=robots[1]: node.count("ready", "wam") > n, READY)
            client.reach(asker)
            long = asker.solve_async(HARD, link="wam_tip", timeout=duration)
            behind = asker.solve_async(WAM.fk(Q), link="wam_tip", timeout=duration + SOON)
            topic.publish(String(data=wam_text().replace('"wam_tip"', '"passed_over"')))
            topic.publish(String(data=PLANAR))
            client.spin_until(lambda n=robots[0]: node.count("ready", "planar_2r") > n, READY)
            at = fk(client, asker)
            assert list(at.poses) == [RobotModel.from_urdf(PLANAR).tip]
            is_between = not long.done()
            client.spin_until(lambda: behind.done() and long.done())  # noqa: B023
            assert long.result().code == NO_IK_SOLUTION
            assert behind.result().success
            assert tuple(behind.result().q) == WAM.joint_names
            if is_between:
                break
        else:
            raise AssertionError("each time the services waited for the solver")
        after = asker.solve_async(at.poses["tip"], timeout=ENOUGH)
        client.spin_until(after.done)
        assert set(after.result().q) == set(RobotModel.from_urdf(PLANAR).joint_names)


def test_eight_clients_are_all_answered_at_similar_rates(wam_node, client):
    askers = [IkClient(client.node) for _ in range(CLIENTS)]
    for asker in askers:
        client.reach(asker)
    rng = np.random.default_rng(4)
    answers = [[] for _ in askers]

    def ask(i):
        q = WAM.random(rng=rng)
        pending = askers[i].solve_async(WAM.fk(q), timeout=ENOUGH)
        pending.add_done_callback(partial(take, i))

    def take(i, pending):
        answers[i].append(pending.result())
        if len(answers[i]) < CALLS:
            ask(i)
        elif not shares:
            shares.extend(map(len, answers))

    shares = []
    for i in range(CLIENTS):
        ask(i)
    client.spin_until(lambda: all(len(each) == CALLS for each in answers), timeout=120.0)
    assert all(answer.success for each in answers for answer in each)
    assert min(shares) >= CALLS // 2, f"answers when the first had all of its {CALLS}: {shares}"
    for asker in askers:
        asker.close()


def fk(client, asker):
    pending = asker.fk_async()
    client.spin_until(pending.done)
    return pending.result()


def wam_text():
    return shipped_urdf("wam").read_text()


DURATION, SEED = 10.0, 8  # [s]
DONE = ("calls of compute_ik", "calls of compute_fk", "good changes", "bad changes")
CHECKED = ("an answer of compute_ik is of one robot", "limits kept", "no jump")


def enough(ledger):
    """How often at least, however slow the machine is."""
    return (
        ledger.done["robots"] > 2
        and all(ledger.done[what] > 5 for what in DONE)
        and all(ledger.checked[what] > 5 for what in CHECKED)
    )


@pytest.mark.campaign
def test_concurrent_robots_parameters_requests_and_targets_cause_no_error(private_domain):
    found = run(DURATION, SEED, enough)
    assert found.ledger.words == []
    assert enough(found.ledger), (found.ledger.done, found.ledger.checked)
