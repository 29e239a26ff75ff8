# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The running node: live parameters, joint motion, and floods of targets."""

import math
import time

import numpy as np
import pytest
from ros_streamer import HOME
from ros_wam import WAM
from ros_watched import Watched, pose, shifted

from dls_ik.model.rotations import quaternion_from_rotation

pytestmark = [pytest.mark.ros, pytest.mark.slow]


@pytest.fixture(scope="module")
def arm():
    with Watched("safety", feedback_mode="none") as arm:
        yield arm
        arm.assert_alive()
        assert arm.node.end() == 0


@pytest.fixture(autouse=True)
def _only_commands_of_the_test(arm):
    del arm.heard[:]


def sweep(t):
    """A pose that moves along y."""
    return pose(shifted(0.0, 0.1 * np.sin(2.0 * t), 0.0))


def turning(t):
    R = np.array([[np.cos(t), -np.sin(t), 0.0], [np.sin(t), np.cos(t), 0.0], [0.0, 0.0, 1.0]])
    message = sweep(t)
    T = WAM.fk(HOME)
    o = message.pose.orientation
    o.x, o.y, o.z, o.w = quaternion_from_rotation(R @ T[:3, :3])
    return message


CHANGES = [
    {"feed_forward": True},
    {"when_stuck": "hold"},
    {"stream_method": "svf+sd"},
    {"feed_forward": False, "when_stuck": "joint_motion"},
    {"target_timeout": 0.3},
    {"stream_method": "ctp+sd+svf", "target_timeout": 0.25},
]


def test_parameter_changes_during_motion_keep_all_limits(arm):
    for change in CHANGES:
        arm.stream(turning, 0.3)
        result = arm.client.set_parameters(**change)
        assert result.successful, result.reason
        arm.stream(turning, 0.3)
        arm.assert_calm()


def test_when_stream_ends_is_live(arm):
    assert arm.client.set_parameters(when_stream_ends="finish").successful
    far = shifted(0.0, 0.3, -0.1)
    for k in range(20):
        arm.send(pose(shifted(0.0, 0.002 * k, 0.0)))
        arm.client.spin_for(0.01)
    arm.client.send_until(
        lambda: arm.send(pose(far)), lambda: arm.error(far) < 1e-5, "the arm at its target"
    )
    assert arm.client.set_parameters(when_stream_ends="stop").successful
    arm.goes(WAM.fk(HOME), 1e-6)
    arm.ceases(lambda: arm.stream_until(sweep, lambda: arm.is_moving(0.05)))
    arm.assert_calm()
    assert arm.client.set_parameters(when_stream_ends="settle").successful


def test_stalled_local_motion_continues_as_joint_motion(arm):
    q = WAM.random(rng=np.random.default_rng(13))
    arm.goes(WAM.fk(HOME), 1e-6)
    arm.answers(lambda: arm.send_alone(pose(WAM.fk(q))), "moving through joint space")
    arm.arrives(WAM.fk(q))
    arm.says("at the target")
    arm.assert_calm()
    arm.goes(WAM.fk(HOME), 1e-3)
    arm.assert_calm()


def test_flood_at_5_khz_of_good_and_bad_and_no_more_lines_of_the_log(arm):
    good, bad = pose(shifted(0.0, 0.05, 0.0)), pose(shifted())
    bad.pose.position.x = math.nan
    lines = len(arm.node.lines)
    begin = time.monotonic()
    for k in range(5000):
        arm.send(bad if k % 2 else good)
        arm.client.executor.spin_once(timeout_sec=0.0)
        while time.monotonic() < begin + k / 5000.0:
            pass
    arm.assert_calm()
    logged, elapsed = len(arm.node.lines) - lines, time.monotonic() - begin
    assert logged <= 8 * (1 + elapsed / 2.0)


def test_the_end_of_the_node_is_not_taken_for_a_pause():
    with Watched("ending", feedback_mode="none") as arm:
        arm.answers(lambda: arm.send(pose(np.eye(4), "nowhere")), "invalid target")
        assert arm.node.end() == 0
        assert not [line for line in arm.node.lines if line.endswith("stream: paused")]
        assert arm.node.count("stream: paused: the node is shutting down") == 1
