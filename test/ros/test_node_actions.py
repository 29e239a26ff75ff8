# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Action ~/follow_joint_trajectory of a node: motions, tolerances, rejections and ends."""

import math

import numpy as np
import pytest
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from ros_actor import ABORTED, CANCELED, SUCCEEDED, Actor, follow, trajectory
from ros_client import Client, NodeProcess
from ros_scene import apply, box, world
from ros_streamer import HOME, Streamer, positions
from ros_wam import WAM
from std_srvs.srv import SetBool, Trigger

pytestmark = pytest.mark.ros

NAMESPACE = "/acting"
ARGUMENTS = {"robot": "wam", "acceleration": [6.0], "initial_positions": HOME.tolist()}
SLOW = 10.0  # [s] duration of motions that end early, longer than a busy machine pauses a process
INVALID_GOAL, INVALID_JOINTS, OLD_STAMP, PATH, GOAL = -1, -2, -3, -4, -5


def turned(joint, angle):
    """Return HOME with one joint turned."""
    q = HOME.copy()
    q[joint] += angle
    return q


class Acting:
    """Node and client, with the commands of the node."""

    def __init__(self):
        words = [word for name, value in ARGUMENTS.items() for word in ("-p", f"{name}:={value}")]
        self.client = Client(NAMESPACE)
        self.process = NodeProcess("-r", f"__ns:={NAMESPACE}", *words)
        self.process.wait_for_line("the stream keeps")
        self.streamer = Streamer(self.client)
        self.actor = Actor(self.client, FollowJointTrajectory, "dls_ik/follow_joint_trajectory")

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.client.__exit__()
        self.process.__exit__(*failure)

    @property
    def q(self):
        self.client.spin_until(lambda: self.streamer.states, what="a command")
        return positions(self.streamer.states[-1])

    def go(self, q):
        """Move to a configuration by a trajectory."""
        status, result = self.actor.run(follow([1.2], [q]))
        assert status == SUCCEEDED, result.error_string

    def rejected(self, goal):
        """Return the code and the reason of a goal that must not move the arm."""
        before = self.q
        status, result = self.actor.run(goal)
        assert status == ABORTED
        assert np.abs(self.q - before).max() < 2e-3, "old messages may be on their way"
        return result.error_code, result.error_string


@pytest.fixture(scope="module")
def acting():
    with Acting() as acting:
        acting.go(HOME + 0.05)
        yield acting


@pytest.fixture
def at_home(acting):
    apply(acting.client, world(is_diff=False))
    acting.client.call(Trigger, "dls_ik/reset", Trigger.Request())
    acting.go(HOME)
    acting.streamer.states.clear()
    return acting


def test_trajectory_is_followed_exactly_with_feedback_and_result(at_home):
    times, steps = [0.0, 0.5, 1.0, 1.5], np.array([0.0, 0.1, 0.3, 0.4])
    q = HOME + steps[:, None]
    v = np.repeat([[0.0], [0.4], [0.3], [0.0]], 7, axis=1)
    sent = at_home.actor.send(follow(times, q, v))
    status, result = sent.wait()
    assert (status, result.error_code, result.error_string) == (SUCCEEDED, 0, "")
    assert np.abs(at_home.q - q[-1]).max() < 1e-5
    path = np.array([positions(state) for state in at_home.streamer.states])
    assert np.abs(path - path[:, :1] - (HOME - HOME[0])).max() < 1e-4, "joints move alike"
    assert len(sent.feedback) > 5
    assert list(sent.feedback[0].joint_names) == list(WAM.joint_names)
    for message in sent.feedback:
        assert np.abs(message.error.positions).max() < 0.02
    assert sent.feedback[-1].desired.time_from_start.sec == 1
    assert {m.index for m in sent.feedback} >= {0, 1, 2}


def test_named_joints_move_and_the_others_hold(at_home):
    goal = FollowJointTrajectory.Goal(
        trajectory=trajectory([1.0], [[0.3]], names=[WAM.joint_names[2]])
    )
    assert at_home.actor.run(goal)[0] == SUCCEEDED
    assert np.abs(at_home.q - turned(2, 0.3)).max() < 1e-5


def test_invalid_trajectories_are_rejected_with_the_reason(at_home):
    names = [*WAM.joint_names[:-1], "elbow"]
    unknown = FollowJointTrajectory.Goal(trajectory=trajectory([1.0], [HOME], names=names))
    code, words = at_home.rejected(unknown)
    assert code == INVALID_JOINTS
    assert "'elbow'" in words
    assert WAM.joint_names[0] in words
    cases = (
        (FollowJointTrajectory.Goal(), INVALID_JOINTS, "no joint names"),
        (follow([], np.empty((0, 7))), INVALID_GOAL, "from 1 to 10000 points; got 0"),
        (follow([1.0, 1.0], [HOME, HOME]), INVALID_GOAL, "time_from_start must increase"),
        (follow([1.0], [HOME * math.nan]), INVALID_GOAL, "finite numbers"),
        (follow([1.0], [HOME[:5]]), INVALID_GOAL, "5 positions for 7 joints"),
        (follow([0.0], [HOME + 0.2]), INVALID_GOAL, "give the motion a duration"),
        (follow([0.0, 1.0], [HOME + 0.2, HOME]), INVALID_GOAL, "the arm is at"),
        (follow([9.0], [HOME + 4.0]), INVALID_GOAL, "outside its limits"),
        (follow([0.1], [HOME + 0.5]), INVALID_GOAL, "multiply all times by at least"),
        (follow([1.0], [HOME], [HOME * 0 + 0.5]), INVALID_GOAL, "must end at rest"),
    )
    for goal, wanted, reason in cases:
        code, words = at_home.rejected(goal)
        assert (code, reason in words) == (wanted, True), (reason, words)
    goal = follow([1.0], [HOME], path_tolerance=[JointTolerance(name="elbow", position=0.1)])
    assert at_home.rejected(goal)[0] == INVALID_JOINTS
    goal = follow([1.0], [HOME], goal_tolerance=[JointTolerance(name=names[0], position=-0.5)])
    assert at_home.rejected(goal)[0] == INVALID_GOAL
    goal = follow([1.0], [HOME])
    goal.trajectory.header.stamp.sec = 5
    code, words = at_home.rejected(goal)
    assert (code, "send it earlier" in words) == (OLD_STAMP, True), words


def test_colliding_trajectory_is_rejected_and_a_new_obstacle_stops_the_arm(at_home):
    goal = turned(0, 0.8)
    blocks = box("post", WAM.fk(turned(0, 0.5))[:3, 3])
    assert apply(at_home.client, world(blocks))
    code, words = at_home.rejected(follow([2.0], [goal]))
    assert (code, "'post'" in words) == (INVALID_GOAL, True), words
    assert apply(at_home.client, world(is_diff=False))
    sent = at_home.actor.send(follow([SLOW], [goal]))
    at_home.client.spin_until(lambda: at_home.q[0] > 0.02, what="a motion")
    assert apply(at_home.client, world(blocks))
    status, result = sent.wait()
    assert (status, result.error_code) == (ABORTED, PATH), result.error_string
    assert "'post'" in result.error_string
    assert at_home.q[0] < 0.5


def test_cancel_stops_the_arm_within_its_limits(at_home):
    sent = at_home.actor.send(follow([SLOW], [HOME + 0.6]))
    at_home.client.spin_until(lambda: at_home.q[0] > 0.05, what="a motion")
    sent.cancel()
    status, result = sent.wait()
    assert (status, result.error_string) == (CANCELED, "cancelled by the client")
    at_home.client.spin_for(0.2)
    q = np.array([positions(state) for state in at_home.streamer.states])
    assert q[-1, 0] < HOME[0] + 0.5
    at_home.go(HOME)


@pytest.mark.parametrize("by", ["goal", "target", "pause"])
def test_goal_is_aborted_if_another_target_or_a_pause_replaces_it(by, at_home):
    first = at_home.actor.send(follow([SLOW], [HOME + 0.6]))
    at_home.client.spin_until(lambda: at_home.q[0] > 0.02, what="a motion")
    if by == "goal":
        status, result = at_home.actor.run(follow([2.0], [HOME]))
        assert (status, result.error_string) == (SUCCEEDED, "")
    elif by == "target":
        at_home.streamer.send_until(WAM.fk(HOME), first.call.done, "the end of the goal")
    else:
        at_home.client.call(SetBool, "dls_ik/pause", SetBool.Request(data=True))
    status, result = first.wait()
    assert status == ABORTED
    assert ("paus" if by == "pause" else "replaced") in result.error_string
    if by == "pause":
        _, result = at_home.actor.run(follow([1.0], [HOME]))
        assert "paused" in result.error_string
        at_home.client.call(SetBool, "dls_ik/pause", SetBool.Request(data=False))
