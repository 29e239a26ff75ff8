# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Anybody in the domain sends floods and megabytes: others are served, no log line is forged."""

from copy import deepcopy

import numpy as np
import pytest
from geometry_msgs.msg import PoseArray, PoseStamped
from moveit_msgs.msg import JointConstraint
from moveit_msgs.srv import GetPositionIK
from out_of_grasp import out_of_grasp
from ros_client import READY, ExecutedNode
from ros_streamer import HOME
from ros_wam import WAM, Q, stamped
from ros_watched import Watched, shifted, trajectory, twist
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dls_ik.model.files import shipped_urdf
from dls_ik.ros.client import IkClient
from dls_ik.ros.robot_source import DESCRIPTION_QOS
from dls_ik.ros.servo.target_buffer import MAX_POSES

pytestmark = [pytest.mark.ros, pytest.mark.slow]
TIMED_OUT = -6
HARD = out_of_grasp(WAM, np.random.default_rng(3))
FORGED = "x\n[FATAL] [1.0] [dls_ik]: forged\x1b]0;title\x07\x9b2J\u202e"
QUEUE, LONGEST = 4, 8.0
MUCH, MOST_MEMORY = 150.0, 200.0  # [MiB] more than before, with messages to forget and to read
INVALID_GOAL_CONSTRAINTS = -16


class Flooded(Watched):
    process = ExecutedNode
    topic = "commands"  # separate topic, as joint_states is flooded


@pytest.fixture(scope="module")
def arm():
    limits = {"service_threads": 1, "service_queue": QUEUE, "max_timeout": LONGEST}
    with Flooded("flood", feedback_mode="none", output_topic="commands", **limits) as arm:
        yield arm
        arm.assert_alive()
        assert arm.node.end() == 0


@pytest.fixture
def node(arm):
    return arm.node


@pytest.fixture
def client(arm):
    return arm.client


@pytest.fixture
def asker(client):
    with IkClient(client.node) as asker:
        client.reach(asker)
        yield asker


def served(client, asker):
    """Wait for an answer to another client: where the tip is, and how to bring it to a place."""
    fk = asker.fk_async(dict(zip(WAM.joint_names, Q, strict=True)))
    client.spin_until(fk.done, timeout=60.0)
    np.testing.assert_allclose(fk.result().poses[WAM.tip], WAM.fk(Q), atol=1e-9)


def publish_until(client, node, publisher, message, *words):
    """Publish until the node says so: a message of best effort may be lost."""

    def is_said():
        publisher.publish(message)
        client.spin_for(0.1)
        return node.count(*words)

    client.spin_until(is_said, timeout=60.0, what=f"a line with {words}")


def test_request_queue_is_bounded_by_service_queue(client, asker):
    asked = [asker.solve_async(HARD, timeout=2.0) for _ in range(300)]
    served(client, asker)  # compute_fk does not wait behind them
    client.spin_until(lambda: all(each.done() for each in asked), timeout=120.0)
    crowded = f"{QUEUE} requests are already queued, and the parameter service_queue is {QUEUE}"
    refused = [each.result() for each in asked if crowded in each.result().message]
    assert len(refused) > 150
    assert {answer.code for answer in refused} == {TIMED_OUT}
    again = asker.solve_async(WAM.fk(Q), timeout=20.0)
    client.spin_until(again.done, timeout=60.0)
    assert again.result().success


def test_long_requests_yield_to_others_and_end_at_max_timeout(client, asker):
    long = [asker.solve_async(HARD, timeout=3600.0) for _ in range(3)]
    for link in ("wam_link4", "wam_link6", "wam_link7"):  # each takes a solver of its own
        other = asker.solve_async(WAM.tree.pose(link), link=link, timeout=LONGEST)
        client.spin_until(other.done)
        assert other.result().success, other.result().message
        assert not any(each.done() for each in long), "it waited for the long ones"
    client.spin_until(lambda: all(each.done() for each in long))
    words = f"3600 s was shortened to the parameter max_timeout, {LONGEST:g} s"
    assert all(words in each.result().message for each in long)


def test_oversized_messages_do_not_fill_the_memory(node, client, asker):
    states = client.publisher(JointState, "joint_states", 1)
    served(client, asker)
    before = node.figures.rss
    for k in range(200):
        states.publish(JointState(name=[f"{k}" + "x" * 400_000], position=[0.0]))
    many = JointState(name=["x"] * 1_000_000, position=[0.0] * 1_000_000)
    publish_until(client, node, states, many, "ignored a message on /flood/joint_states: it has")
    asked = [asker.solve_async(WAM.fk(Q), group=f"{k}" + "x" * 4_000_000) for k in range(20)]
    client.spin_until(lambda: all(each.done() for each in asked))
    assert all("at most" in each.result().message for each in asked)
    served(client, asker)
    assert node.figures.rss < before + MUCH


def test_log_lines_escape_control_characters_of_messages(node, client, asker):
    pose = PoseStamped()
    pose.header.frame_id = FORGED
    pose.pose.orientation.w = 1.0
    targets = client.publisher(PoseStamped, "target_pose", 1)
    publish_until(client, node, targets, pose, "target refused", "forged")
    refused = asker.solve_async(WAM.fk(Q), frame=FORGED, link=FORGED)
    client.spin_until(refused.done)
    assert refused.result().message.isprintable()
    for line in node.lines:
        assert line.isprintable(), line
        assert not line.startswith("[FATAL]"), line


def test_a_robot_given_by_parameter_is_not_replaced(client, asker):
    planar = (shipped_urdf("wam").parent / "planar_2r.urdf").read_text()
    topic = client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
    topic.publish(String(data=planar))
    assert topic.get_subscription_count() == 0
    served(client, asker)


def test_too_long_trajectory_is_refused_and_the_longest_is_followed(arm):
    before = arm.node.figures.rss
    poses = trajectory([shifted()]).poses * (10 * MAX_POSES)
    arm.send(twist((0.0, 0.05, 0.0)))
    words = ("invalid target", f"more than {MAX_POSES}", f"approximately {10 * MAX_POSES}")
    arm.answers(lambda: arm.send(PoseArray(poses=poses)), *words)
    arm.stands()
    assert arm.node.figures.rss < before + MOST_MEMORY
    poses = trajectory([shifted(0.0, 0.05, 0.0)]).poses * MAX_POSES
    arm.client.send_until(
        lambda: arm.send_alone(PoseArray(poses=poses)),
        lambda: arm.error(shifted(0.0, 0.05, 0.0)) < 1e-4,
        "its first pose",
    )
    arm.goes(WAM.fk(HOME))
    arm.assert_calm()


def test_a_request_with_ten_thousand_constraints_is_refused_and_others_are_served(arm):
    many = GetPositionIK.Request()
    many.ik_request.pose_stamped = stamped()
    many.ik_request.timeout.sec = 60
    one = deepcopy(many)
    constraint = JointConstraint(joint_name="wam_j1", tolerance_above=1.0, tolerance_below=1.0)
    many.ik_request.constraints.joint_constraints = [constraint] * 10_000
    before = arm.node.figures.rss
    asker = arm.client.answered_client(GetPositionIK, "compute_ik", one)
    refused, served = [], []
    for _ in range(3):
        refused.append(asker.call_async(many))
        served.append(asker.call_async(one))
    arm.client.spin_until(lambda: all(f.done() for f in refused + served), READY, "all answers")
    for answer in refused:
        assert answer.result().error_code.val == INVALID_GOAL_CONSTRAINTS
        assert "got 0 and 10000" in answer.result().error_code.message
    assert all(answer.result().error_code.val == 1 for answer in served)
    assert arm.node.figures.rss < before + MOST_MEMORY
    arm.assert_calm()
