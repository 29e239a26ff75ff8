# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The node moves the elbow, the posture and chosen joints while the tip stands still."""

import numpy as np
import pytest
from ros_streamer import HOME
from ros_wam import WAM
from ros_watched import Watched
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from dls_ik import IkSolver, PostureTask, SwivelTask, Task, TaskStack

pytestmark = [pytest.mark.ros, pytest.mark.slow]
T = WAM.fk(HOME)


@pytest.fixture(scope="module")
def arm():
    with Watched("redundancy", feedback_mode="none") as watched:
        watched.goes(T)
        yield watched


@pytest.fixture(autouse=True)
def plain(arm):
    """Start each test without lower levels, at the target."""
    result = arm.client.set_parameters(
        swivel=[], posture=[], frozen_joints=[""], free_axes=[""], stream_objective=""
    )
    assert result.successful, result.reason
    arm.goes(T)
    arm.stands()


def tip_moves(arm, start):
    """Largest distance [m] of the tip from its target in all commands from an index on."""
    commands = [np.array(message.position) for message in arm.commands[start:]]
    return np.linalg.norm(WAM.fk(np.array(commands))[:, :3, 3] - T[:3, 3], axis=1).max()


def swivel_error(q, angle):
    """Error of the swivel angle of a configuration [rad]."""
    stack = TaskStack(Task(), SwivelTask(angle))
    return IkSolver(WAM, task=stack, max_iterations=1).solve(WAM.fk(q), q).level_errors[1]


def test_swivel_topic_moves_the_elbow_and_not_the_tip(arm):
    swivel, start = arm.client.publisher(Float64, "dls_ik/swivel"), len(arm.commands)
    goals = []
    for angle in (0.4, -0.2):
        stack = TaskStack(Task(), SwivelTask(angle))
        goals.append(IkSolver(WAM, task=stack).solve(T, arm.q, timeout=60.0).q)
        swivel.publish(Float64(data=angle))
        arm.client.spin_until(
            lambda goal=goals[-1]: np.abs(arm.q - goal).max() < 0.01, what="the elbow at its angle"
        )
    assert np.abs(goals[0] - goals[1]).max() > 0.1
    assert tip_moves(arm, start) < 1e-5
    arm.assert_calm()


def test_posture_topic_moves_named_joints_and_refuses_strange_ones(arm):
    posture, start = arm.client.publisher(JointState, "dls_ik/posture"), len(arm.commands)
    names = list(WAM.joint_names)
    posture.publish(JointState(name=names[:2], position=[0.0, 0.0]))
    arm.node.wait_for_line("the first one must have a position of each joint")
    posture.publish(JointState(name=["elbow"], position=[0.0]))
    arm.node.wait_for_line("ignored a posture for joint 'elbow'; joints are wam_j1")
    posture.publish(JointState(name=names, position=[0.0] * 7))
    goal = IkSolver(WAM, task=TaskStack(Task(), PostureTask(np.zeros(7)))).solve(T, arm.q).q
    arm.client.spin_until(lambda: np.abs(arm.q - goal).max() < 0.02, what="the posture")
    posture.publish(JointState(name=["wam_j1"], position=[0.5]))
    arm.client.spin_until(lambda: np.abs(arm.q - goal).max() > 0.02, what="another posture")
    assert tip_moves(arm, start) < 1e-5
    arm.assert_calm()


def test_frozen_joint_stands_while_the_tip_moves(arm):
    assert arm.client.set_parameters(frozen_joints=["wam_j3"]).successful
    still, start = arm.q[2], len(arm.commands)
    shifted = T.copy()
    shifted[:3, 3] += (0.0, 0.03, -0.03)
    arm.goes(shifted)
    moved = [message.position[2] for message in arm.commands[start + 5 :]]
    assert np.ptp([still, *moved]) < 1e-9


def test_values_that_do_not_fit_the_arm_are_refused_and_nothing_changes(arm):
    for values, words in (
        ({"frozen_joints": ["wam_j9"]}, "unknown joint 'wam_j9' in frozen_joints"),
        ({"posture": [0.0, 1.0]}, "a posture must have 7 positions"),
        ({"swivel": [0.0, 1.0]}, "swivel must be empty or one angle"),
        ({"joint_weights": [0.0] * 7}, "joint_weights"),
        ({"free_axes": ["w"]}, "free_axes"),
        ({"free_axes": ["x", "y", "z", "rx", "ry", "rz"]}, "at least one axis"),
        ({"stream_objective": "speed"}, "stream_objective"),
    ):
        result = arm.client.set_parameters(**values)
        assert not result.successful
        assert words in result.reason
    arm.goes(T)
