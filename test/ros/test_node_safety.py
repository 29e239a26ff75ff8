# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The running node stops, pauses, resets and changes what it follows within its limits."""

import numpy as np
import pytest
from ros_client import SOON
from ros_streamer import HOME, motion, positions
from ros_wam import WAM
from ros_watched import Watched, pose, shifted, trajectory, twist

from dls_ik.model.rotations import quaternion_from_rotation

pytestmark = [pytest.mark.ros, pytest.mark.slow]

SPEED = 0.2  # [m/s]


@pytest.fixture(scope="module")
def arm():
    with Watched("safety", feedback_mode="none", trajectory_period=0.1) as arm:
        yield arm
        arm.assert_alive()
        assert arm.node.end() == 0


@pytest.fixture(autouse=True)
def _only_commands_of_the_test(arm):
    del arm.heard[:]


def sweep(t):
    """A pose that moves along y."""
    return pose(shifted(0.0, 0.1 * np.sin(2.0 * t), 0.0))


@pytest.mark.parametrize("make", [sweep, lambda _: twist((0.0, SPEED, 0.0))], ids=["pose", "twist"])
def test_stream_that_ceases_stops_within_the_acceleration(arm, make):
    arm.ceases(lambda: arm.stream_until(make, lambda: arm.is_moving(0.05)))
    arm.stands()
    arm.assert_calm()
    arm.stream_until(make, lambda: arm.is_moving(0.05))
    arm.assert_calm()


def test_single_pose_stays_in_force_also_in_the_frame_of_the_tool(arm):
    arm.goes(WAM.fk(HOME), 1e-6)
    step = np.eye(4)
    step[2, 3] = -0.05
    arm.send_alone(pose(step, "wam_tip"))
    arm.arrives(WAM.fk(HOME) @ step)
    T = shifted(0.0, 0.3, -0.1)
    arm.goes(T, 1e-6)
    arm.says("at the target")
    arm.client.spin_for(0.8)
    assert arm.error(T) < 1e-5
    arm.assert_calm()


def test_pause_while_moving_and_resume_and_reset(arm):
    assert arm.client.set_parameters(scale=0.2).successful  # a late pause still finds it moving
    arm.send_alone(pose(shifted(0.0, 0.4, 0.0)))
    arm.moves()
    answer = arm.pause()
    assert answer.success
    assert "paused" in answer.message
    arm.says("paused")
    arm.stands()
    held = arm.q
    assert arm.error(shifted(0.0, 0.4, 0.0)) > 0.05, "the arm stopped on its path"
    assert arm.client.set_parameters(scale=1.0).successful
    for message in (pose(shifted()), twist((0.0, 1.0, 0.0)), trajectory([shifted()])):
        arm.send(message)
        arm.says("paused", "target ignored")
    arm.node.wait_for_line("WARN", "target ignored", "paused")
    assert arm.pause(False).success
    arm.client.spin_for(0.5)
    np.testing.assert_array_equal(arm.q, held)
    arm.assert_calm()
    arm.goes(WAM.fk(HOME))
    arm.send_alone(pose(shifted(0.0, 0.4, 0.0)))
    arm.moves()
    assert arm.reset().success
    arm.says("no target yet")
    arm.stands()
    assert arm.error(shifted(0.0, 0.4, 0.0)) > 0.05
    arm.assert_calm()


@pytest.mark.parametrize(
    ("frame", "turned"),
    [("", np.eye(3)), ("wam_tip", None)],
    ids=["root", "tool"],
)
def test_twist_is_along_the_axes_of_its_frame(arm, frame, turned):
    arm.goes(WAM.fk(HOME), 1e-5)
    R = WAM.fk(HOME)[:3, :3] if turned is None else turned

    def way():
        return WAM.fk(arm.q)[:3, 3] - WAM.fk(HOME)[:3, 3]

    begin = len(arm.commands)
    arm.stream_until(
        lambda _: twist((0.0, 0.0, -0.05), frame=frame), lambda: np.linalg.norm(way()) > 0.02
    )
    np.testing.assert_allclose(way() / np.linalg.norm(way()), -R[:, 2], atol=0.15)
    speeds = [
        np.linalg.norm((WAM.jacobian(positions(c)) @ c.velocity)[:3]) for c in arm.commands[begin:]
    ]
    assert np.quantile(speeds, 0.9) == pytest.approx(0.05, rel=0.1)  # less where it had a gap
    arm.assert_calm()


def test_trajectory_takes_its_time(arm):
    Ts = [shifted(0.0, 0.02 * k, 0.0) for k in range(11)]
    arm.goes(Ts[0], 1e-6)
    arm.client.spin_for(0.3)
    arm.send(trajectory(Ts))
    arm.arrives(Ts[-1], 1e-3)
    arm.assert_calm()
    t, q, _ = motion(arm.commands)
    y = WAM.fk(q)[:, 1, 3] - Ts[0][1, 3]
    begun, most = (np.interp(share * 0.2, *rising(y, t)) for share in (0.1, 0.9))
    assert most - begun > 0.4  # 0.8 s by its period; a busy machine may be late


def rising(y, t):
    kept = np.flatnonzero(np.diff(np.maximum.accumulate(y), prepend=-np.inf) > 0.0)
    return y[kept], t[kept]


def test_what_is_followed_changes_without_a_jump(arm):
    arm.stream(sweep, 0.4)
    arm.stream(lambda _: twist((0.0, SPEED, 0.0), (0.0, 0.0, 0.3)), 0.4)
    arm.send(trajectory([shifted(), shifted(0.0, 0.1, 0.0), shifted()]))
    arm.client.spin_for(0.4)
    arm.stream(sweep, 0.4)
    arm.assert_calm()
    arm.goes(shifted(0.0, 0.0, 0.05))
    arm.assert_calm()


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


def test_parameters_change_while_the_arm_moves(arm):
    for change in CHANGES:
        arm.stream(turning, 0.3)
        result = arm.client.set_parameters(**change)
        assert result.successful, result.reason
        arm.stream(turning, 0.3)
        arm.assert_calm()


def test_parameters_are_refused_while_the_arm_moves_on(arm):
    T = shifted(0.0, 0.1, 0.0)
    arm.send_alone(pose(T))
    for name, value, words in (
        ("acceleration", [4.0], "read-only"),
        ("when_stuck", "panic", "joint_motion, hold"),
        ("twist_lookahead", float("inf"), "twist_lookahead"),
    ):
        result = arm.client.set_parameters(**{name: value})
        assert not result.successful
        assert words in result.reason
    arm.arrives(T)
    arm.assert_calm()


def test_joint_motion_where_local_motion_stalls(arm):
    q = WAM.random(rng=np.random.default_rng(13))
    arm.goes(WAM.fk(HOME), 1e-6)
    arm.send_alone(pose(WAM.fk(q)))
    arm.says("moving through joint space")
    arm.arrives(WAM.fk(q))
    arm.says("at the target")
    arm.assert_calm()
    arm.send_alone(pose(WAM.fk(HOME)))
    arm.client.spin_until(lambda: arm.error(WAM.fk(HOME)) < 1e-3, 2 * SOON)
    arm.assert_calm()
