# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint velocities and joint positions as targets: limits, ends, obstacles, bad input."""

import numpy as np
import pytest
from drive import BENT, DT, WAM, Drive

from dls_ik import PlanningScene
from dls_ik.errors import HeldError, JointValueError, StaleTargetError
from dls_ik.servo import ServoState

ACCELERATION, JERK = 6.0, 60.0
NAMES = WAM.joint_names
LIMITS = [
    pytest.param({}, id="velocity"),
    pytest.param({"acceleration": ACCELERATION}, id="acceleration"),
    pytest.param({"acceleration": ACCELERATION, "jerk": JERK}, id="jerk"),
]


def jog(drive, velocity, seconds):
    """Send velocities in every cycle."""
    return drive.run(seconds, lambda d: d.controller.follow_joint_velocity(velocity, d.now))


@pytest.mark.parametrize("limits", LIMITS)
def test_velocities_are_reached_and_the_arm_stops_after_the_timeout(limits):
    drive = Drive(BENT, **limits)
    jog(drive, {NAMES[0]: 0.4, NAMES[3]: -0.2}, 1.0)
    wanted = [0.4, 0.0, 0.0, -0.2, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(drive.last.velocity, wanted, atol=1e-9)
    assert drive.last.state is ServoState.FOLLOWING
    assert "joint velocities" in drive.last.message
    assert drive.last.T_d is None
    assert (np.abs(drive.q[:, 0] - drive.q[0, 0]) <= 0.4 * 1.01 + 1e-9).all(), "no overshoot"
    assert np.max(np.diff(drive.q[:, 0]) / DT) <= 0.4 + 1e-9
    drive.run(1.0)
    assert drive.last.state is ServoState.TIMED_OUT
    assert not drive.last.velocity.any()
    drive.assert_limits(**limits)


@pytest.mark.parametrize("limits", LIMITS)
def test_joint_stops_at_its_limit_while_the_others_move_on(limits):
    drive = Drive(BENT, **limits)
    velocity = {NAMES[3]: 1.5, NAMES[0]: 0.2}
    jog(drive, velocity, 2.5)
    assert drive.last.q[3] == pytest.approx(WAM.upper[3], abs=2e-4)
    assert drive.last.state is ServoState.JOINT_BOUND
    assert drive.last.velocity[0] == pytest.approx(0.2, abs=1e-6)
    assert np.argmax(drive.last.limit_activation) == 3
    jog(drive, {NAMES[3]: -0.5}, 0.5)
    assert drive.last.q[3] < WAM.upper[3] - 0.05, "and leaves the limit freely"
    assert drive.last.state is ServoState.FOLLOWING
    drive.assert_limits(**limits)


@pytest.mark.parametrize("limits", LIMITS)
def test_velocities_above_the_limits_are_reduced_together(limits):
    drive = Drive(BENT, **limits)
    jog(drive, [9.0, 0.0, 4.5, 0.0, 0.0, 0.0, 0.0], 0.6)
    v = drive.last.velocity
    assert v[0] == pytest.approx(2.0 * v[2], rel=1e-6)
    assert np.max(np.abs(v) / WAM.velocity) == pytest.approx(1.0, rel=1e-6)
    drive.assert_limits(**limits)


@pytest.mark.parametrize("limits", LIMITS)
def test_random_velocities_keep_all_limits(limits):
    rng, drive = np.random.default_rng(3), Drive(WAM.random(rng=np.random.default_rng(5)), **limits)
    for _ in range(40):
        velocity = rng.normal(size=7) * rng.choice([0.0, 0.3, 3.0, 1e5], size=7)
        jog(drive, velocity, rng.uniform(0.02, 0.4))
    drive.assert_limits(**limits)


@pytest.mark.parametrize("limits", LIMITS[1:])
def test_jog_stops_before_an_obstacle_and_leaves_it(limits):
    scene = PlanningScene(WAM)
    beyond = BENT.copy()
    beyond[0] = 0.8
    drive = Drive(BENT, scene=scene, **limits)
    scene.add_box("post", [0.1, 0.1, 0.1], WAM.fk(beyond)[:3, 3])
    jog(drive, {NAMES[0]: 0.8}, 3.0)
    assert drive.last.state is ServoState.BLOCKED
    assert "post" in drive.last.message
    assert 0.0095 < scene.distance(drive.last.q).distance < 0.03
    stopped = drive.last.q[0]
    jog(drive, {NAMES[0]: -0.8}, 0.6)
    assert drive.last.q[0] < stopped - 0.2
    assert drive.last.state is ServoState.FOLLOWING
    assert all(scene.distance(out.q).distance > 0.0095 for out in drive.outputs[::10])
    drive.assert_limits(**limits)


def test_scaled_controller_moves_slower_and_scale_zero_holds():
    drive = Drive(BENT, acceleration=ACCELERATION, scale=0.1)
    jog(drive, {NAMES[0]: 9.0}, 1.0)
    assert drive.last.velocity[0] == pytest.approx(0.1 * WAM.velocity[0])
    held = Drive(BENT, scale=0.0)
    jog(held, {NAMES[0]: 1.0}, 0.1)
    assert held.last.state is ServoState.STALLED
    assert not held.last.velocity.any()


def test_tip_speed_limit_holds_for_joint_velocities():
    drive = Drive(BENT, acceleration=ACCELERATION, max_linear_speed=0.1)
    jog(drive, {NAMES[1]: 2.0}, 1.0)
    tips = WAM.fk(drive.q)[:, :3, 3]
    assert np.linalg.norm(np.diff(tips, axis=0), axis=1).max() / DT <= 0.1 + 1e-6
    assert drive.last.velocity[1] > 0.05


@pytest.mark.parametrize("limits", LIMITS)
def test_single_positions_are_reached_and_unnamed_joints_stay(limits):
    drive = Drive(BENT, **limits)
    drive.controller.follow_joint_position({NAMES[2]: 0.5}, 0.0)
    drive.run(3.0)
    goal = BENT.copy()
    goal[2] = 0.5
    np.testing.assert_allclose(drive.last.q, goal, atol=1e-6)
    assert drive.last.state is ServoState.REACHED
    drive.controller.follow_joint_position({NAMES[0]: 0.2}, drive.now)
    drive.run(3.0)
    goal[0] = 0.2
    np.testing.assert_allclose(drive.last.q, goal, atol=1e-6)
    drive.assert_limits(**limits)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("rate", [25.0, 60.0])
def test_stream_of_positions_is_followed_smoothly(limits, rate):
    drive, sent = Drive(BENT, **limits), -1

    def wave(time):
        return BENT + 0.2 * (1.0 - np.cos(1.5 * time)) * np.array([1, 0, 1, -1, 0, 0, 1])

    for _ in range(300):
        if int(drive.now * rate) > sent:
            sent = int(drive.now * rate)
            drive.controller.follow_joint_position(wave(drive.now), drive.now)
        drive.run(DT)
        lag = 2.5 / rate + 2.0 * DT + (0.1 if "jerk" in limits else 0.0)
        near = [wave(drive.now - s) for s in np.linspace(0.0, min(lag, drive.now), 20)]
        away = np.abs(np.array(near) - drive.last.q).max(axis=1).min()
        assert away < 0.02
    drive.assert_limits(**limits)
    if "acceleration" in limits:
        a = np.diff(drive.q[:, 0], 2)[30:] / DT**2
        assert np.abs(a).max() < 4.0, "no start and stop between two messages"
    drive.run(2.0)
    np.testing.assert_allclose(drive.last.q, wave(sent / rate), atol=0.02)


def test_positions_beyond_a_limit_end_at_the_limit():
    drive = Drive(BENT, acceleration=ACCELERATION)
    drive.controller.follow_joint_position({NAMES[3]: WAM.upper[3] + 0.4}, 0.0)
    drive.run(3.0)
    assert drive.last.q[3] == pytest.approx(WAM.upper[3])
    assert drive.last.limit_activation.tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_arm_that_was_moved_elsewhere_keeps_the_joints_that_are_not_named():
    drive = Drive(BENT, acceleration=ACCELERATION)
    elsewhere = BENT + 0.3
    drive.run(0.1, measured=elsewhere)
    drive.controller.follow_joint_position({NAMES[0]: 0.3}, drive.now)
    drive.run(0.5, measured=elsewhere)
    np.testing.assert_allclose(drive.last.q[1:], elsewhere[1:], atol=1e-9)


@pytest.mark.parametrize("name", ["follow_joint_velocity", "follow_joint_position"])
def test_invalid_values_are_refused_with_the_reason(name):
    drive = Drive(BENT, acceleration=ACCELERATION, frozen_joints=[NAMES[1]])
    follow = getattr(drive.controller, name)
    for given, words in [
        ([0.1] * 6, "expected 7 joint values"),
        ({"elbow": 0.1}, "unknown joint 'elbow'"),
        ({NAMES[0]: np.nan}, f"joint '{NAMES[0]}' has the value nan"),
        ({NAMES[0]: np.inf}, "not finite"),
        ({NAMES[0]: 1e12}, "at most"),
        ({NAMES[0]: "fast"}, "numbers"),
    ]:
        with pytest.raises(JointValueError, match=words):
            follow(given, 0.0)
    with pytest.raises(StaleTargetError, match="target_timeout"):
        follow({NAMES[0]: 0.1}, 0.0, age=1.0)
    drive.run(0.1)
    assert not drive.last.velocity.any()
    drive.controller.pause()
    with pytest.raises(HeldError, match="paused"):
        follow({NAMES[0]: 0.1}, 0.0)


def test_frozen_joints_do_not_move():
    drive = Drive(BENT, acceleration=ACCELERATION, frozen_joints=[NAMES[1]])
    with pytest.raises(JointValueError, match="frozen_joints"):
        drive.controller.follow_joint_velocity({NAMES[1]: 0.1}, 0.0)
    drive.controller.follow_joint_velocity([0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.0)
    drive.controller.follow_joint_position(BENT + 0.1, 0.0)
    drive.run(2.0)
    assert (drive.q[:, 1] == BENT[1]).all()
    assert drive.last.q[0] == pytest.approx(BENT[0] + 0.1)


def test_kinds_of_targets_replace_each_other_without_a_jump():
    drive = Drive(BENT, acceleration=ACCELERATION)
    follow = drive.controller
    for _ in range(3):
        jog(drive, {NAMES[0]: 0.8}, 0.3)
        follow.follow_joint_position(BENT, drive.now)
        drive.run(0.2)
        follow.follow_twist([0.1, 0.0, 0.1, 0.0, 0.0, 0.0], drive.now)
        drive.run(0.2)
        follow.follow_pose(WAM.fk(BENT), drive.now)
        drive.run(0.2)
    drive.assert_limits(ACCELERATION)
    drive.run(2.0)
    assert drive.last.state is ServoState.REACHED


def test_deviation_of_a_lagging_arm_is_its_drift():
    drive, lag, drift, offset = Drive(BENT, acceleration=ACCELERATION), 5, 0.05, None
    assert drive.controller.deviation(0.0) is None

    def measured(d):
        at = max(len(d.outputs) - lag, 0)
        return d.q[at] + (0.0 if offset is None else offset)

    for k in range(6):
        drive.pose(WAM.fk(BENT + (0.2 if k % 2 else -0.2)))
        drive.run(0.7, measured=measured)
    assert drive.controller.lag() == pytest.approx((lag + 1) * DT, abs=0.5 * DT)
    drive.pose(WAM.fk(BENT + 0.3))
    drive.run(0.3, measured=measured)
    assert drive.last.velocity.any()
    assert np.abs(drive.controller.deviation(drive.now)).max() < 0.01, "a lag is no deviation"
    offset = drift
    drive.run(1.0, measured=measured)
    np.testing.assert_allclose(drive.controller.deviation(drive.now), -drift, atol=1e-3)
    assert drive.controller.deviation(drive.now + 1.0) is None
