# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Deadman switch, clutch, axes, filters and limits of teleoperation, through to joint commands."""

import math

import numpy as np
import pytest
from teleop_arm import DT, HOME, WAM, Arm, pose

from dls_ik.core.se3 import difference
from dls_ik.teleop import DeviceState

HOLD = (4,)
FORWARD = {1: -1.0}
GRIP = (0,)


@pytest.fixture
def pad():
    return Arm("gamepad")


@pytest.fixture
def tracker():
    return Arm("tracker")


def motion(arm):
    """Motion of the tip since the start, [m] and [rad]."""
    return difference(WAM.fk(HOME), arm.tip)


# Deadman switch


def test_the_arm_moves_only_while_the_button_is_held(pad):
    pad.jog({}, ())
    pad.jog(FORWARD, (), 20)
    assert (pad.commands[-1] == HOME).all()
    pad.jog({}, HOLD)
    pad.jog(FORWARD, HOLD, 100)
    assert motion(pad)[0] == pytest.approx(0.2, abs=0.02)
    result = pad.jog(FORWARD, ())
    assert not result.is_active
    assert (result.twist == 0.0).all()
    pad.rest()
    assert pad.results[-1].twist is None, "other senders of targets may take over"
    pad.assert_calm()


def test_a_button_that_is_held_at_the_start_moves_nothing(pad):
    pad.jog({}, HOLD, 5)
    assert "press it again" in pad.jog(FORWARD, HOLD, 20).note
    assert (pad.commands[-1] == HOME).all()


def test_an_unplugged_device_stops_the_arm_until_the_button_is_pressed_again(pad):
    pad.jog({}, ())
    pad.jog({}, HOLD)
    pad.jog(FORWARD, HOLD, 50)
    assert pad.controller.moves
    assert "unplugged" in pad.step(DeviceState(pad.now + DT, problem="it is unplugged")).note
    for _ in range(60):
        pad.step(DeviceState(pad.now + DT, problem="it is unplugged"))
    assert not pad.controller.moves
    pad.jog({}, HOLD, 3)
    assert not pad.jog(FORWARD, HOLD, 3).is_active
    pad.jog({}, ())
    pad.jog({}, HOLD)
    assert pad.jog(FORWARD, HOLD, 3).is_active
    pad.assert_calm()


def test_silence_counts_as_lost_and_so_do_values_that_are_not_finite(pad):
    pad.jog({}, ())
    old = DeviceState(pad.now, {}, frozenset(HOLD))
    pad.jog(FORWARD, HOLD, 20)
    assert "no data" in [pad.step(old) for _ in range(20)][-1].note
    assert "not finite" in pad.jog({0: math.nan}, HOLD).note
    pad.rest()
    pad.assert_calm()


def test_an_arm_that_cannot_be_moved_needs_a_new_press(pad):
    pad.jog({}, ())
    pad.jog({}, HOLD)
    assert pad.jog(FORWARD, HOLD).is_active
    assert pad.jog(FORWARD, HOLD, problem="paused").note == "paused"
    assert not pad.jog(FORWARD, HOLD).is_active
    assert "tip" in pad.teleop.step(DeviceState(pad.now), None, pad.now).note


# Axes


def test_an_axis_that_does_not_return_to_zero_is_ignored_after_the_next_press(pad):
    pad.jog({}, ())
    pad.jog({}, HOLD)
    pad.jog({0: -1.0}, HOLD, 30)
    pad.jog({0: -1.0}, (), 60)
    before = pad.tip
    result = pad.jog({0: -1.0, 1: 0.0}, HOLD)
    assert "y ignored" in result.note
    pad.jog({0: -1.0, **FORWARD}, HOLD, 50)
    moved = difference(before, pad.tip)
    assert moved[0] > 0.05
    assert abs(moved[1]) < 1e-3
    pad.jog({0: 0.05}, HOLD)
    assert pad.jog({0: -1.0}, HOLD).twist[1] == pytest.approx(0.1)


def test_an_axis_that_stands_still_too_long_counts_as_stuck():
    mouse = Arm("spacemouse")
    mouse.jog({}, ())
    steps = round(mouse.config.stuck_after / DT)
    mouse.jog({1: -0.7}, (), steps - 1)
    assert mouse.results[-1].is_active
    mouse.jog({1: -0.7}, (), 3)
    assert not mouse.results[-1].is_active
    assert "x ignored" in mouse.results[-1].note
    mouse.jog({}, (), 2)
    assert mouse.jog({1: -0.7}, ()).is_active
    mouse.assert_calm()


def test_a_device_without_a_button_is_silent_at_rest_and_ignores_a_deflection_at_the_start():
    mouse = Arm("spacemouse")
    assert mouse.jog({1: -1.0}, (), 5).twist is None
    mouse.jog({}, ())
    assert mouse.jog({1: -1.0}, ()).twist is not None
    assert all((mouse.jog({}, ()).twist == 0.0).all() for _ in range(3))
    assert mouse.jog({}, ()).twist is None


def test_deadzone_diagonal_and_frames(pad):
    pad.jog({}, ())
    pad.jog({}, HOLD)
    assert (pad.jog({1: -0.1}, HOLD).twist == 0.0).all()
    half = pad.jog({1: -0.55}, HOLD).twist
    np.testing.assert_allclose(half, [0.05, 0, 0, 0, 0, 0], atol=1e-12)
    diagonal = pad.jog({0: -1.0, 1: -1.0, 3: -1.0}, HOLD).twist
    assert np.linalg.norm(diagonal[:3]) == pytest.approx(0.1)
    assert diagonal[5] == pytest.approx(0.4)
    before = pad.tip
    tool = pad.jog(FORWARD, (*HOLD, 3)).twist
    np.testing.assert_allclose(tool[:3], 0.1 * before[:3, 0], atol=1e-12)
    pad.jog(FORWARD, HOLD)
    slow = pad.jog(FORWARD, (*HOLD, 6)).twist
    assert np.linalg.norm(slow) == pytest.approx(0.08)


def test_axes_of_a_camera():
    named = Arm("gamepad", frame="camera_link", rpy=(0.0, 0.0, math.pi / 2))
    named.jog({}, ())
    named.jog({}, HOLD)
    result = named.teleop.step(
        DeviceState(named.now, FORWARD, frozenset(HOLD)), named.tip, named.now
    )
    assert result.frame == "camera_link"
    np.testing.assert_allclose(result.twist, [0, 0.1, 0, 0, 0, 0], atol=1e-12)


def test_keys_move_stop_and_grip():
    keys = Arm("keyboard")
    keys.jog({}, ())
    assert keys.jog({}, {"w"}).twist[0] == pytest.approx(0.05)
    assert (keys.jog({}, {"w", "space"}).twist == 0.0).all()
    assert (keys.jog({}, {"w"}).twist == 0.0).all(), "until the key is released"
    keys.jog({}, ())
    assert keys.jog({}, {"w"}).is_active
    assert keys.jog({}, {"g"}).gripper == keys.config.gripper_open
    assert keys.jog({}, {"g"}).gripper is None, "once for each press"
    assert keys.jog({}, {"h"}).gripper == keys.config.gripper_closed


def test_the_gripper_needs_the_button_to_hold(pad):
    pad.jog({}, ())
    assert pad.jog({}, {0}).gripper is None
    pad.jog({}, HOLD)
    assert pad.jog({}, {*HOLD, 0}).gripper == 0.0


# Clutch


def test_closing_the_clutch_again_moves_no_joint(tracker):
    tracker.move(pose(), ())
    for k in range(60):
        tracker.move(pose(y=0.002 * k, rpy=(0.003 * k, 0.0, 0.0)), GRIP)
    assert motion(tracker)[1] == pytest.approx(0.12, abs=0.02)
    tracker.move(pose(y=0.12), (), 80)
    rest = tracker.commands[-1]
    assert not tracker.controller.moves
    elsewhere = pose(0.3, -0.4, 0.2, (0.5, 0.2, -1.0))
    tracker.move(elsewhere, (), 5)
    result = tracker.move(elsewhere, GRIP, 100)
    assert result.is_active
    largest = np.abs(np.array(tracker.commands[-100:]) - rest).max()
    assert largest < 1e-6
    for y in np.linspace(-0.4, -0.35, 100):
        tracker.move(pose(0.3, y, 0.2, (0.5, 0.2, -1.0)), GRIP)
    assert difference(WAM.fk(rest), tracker.tip)[1] == pytest.approx(0.05, abs=5e-3)
    tracker.assert_calm()


def test_scales_and_frames_of_a_pose():
    turned = pose(rpy=(0.0, 0.0, math.pi / 2))
    arm = Arm("tracker", scale=0.5, rotation_scale=0.0, rpy=(0.0, 0.0, math.pi / 2))
    arm.move(turned, ())
    arm.move(turned, GRIP, 2)
    arm.move(pose(x=0.1, rpy=(0.3, 0.0, math.pi / 2)), GRIP, 150)
    np.testing.assert_allclose(motion(arm), [0, 0.05, 0, 0, 0, 0], atol=2e-3)
    tool = Arm("tracker", frame="tool")
    tool.move(turned, ())
    tool.move(turned, GRIP, 2)
    before = tool.tip
    tool.move(turned @ pose(x=0.05), GRIP, 150)
    np.testing.assert_allclose(difference(before, tool.tip)[:3], 0.05 * before[:3, 0], atol=2e-3)


def test_speed_limits_of_the_target(tracker):
    tracker.move(pose(), ())
    tracker.move(pose(), GRIP, 3)
    heights = (-0.02 * min(k, 15) for k in range(50))  # 1 m/s
    targets = [tracker.move(pose(z=z), GRIP).pose[2, 3] for z in heights]
    steps = np.abs(np.diff(targets)) / DT
    assert steps.max() <= 0.25 + 1e-9
    tracker.assert_calm()


# Faults of a tracker


def test_a_single_glitch_moves_nothing_and_a_relocated_tracker_neither(tracker):
    tracker.move(pose(), ())
    tracker.move(pose(), GRIP, 10)
    tracker.move(pose(x=1.0), GRIP)
    tracker.move(pose(), GRIP, 10)
    assert np.abs(np.array(tracker.commands) - HOME).max() < 1e-6
    assert "jumped" in tracker.move(pose(x=1.0, rpy=(0, 0, 2.0)), GRIP, 3).note
    for k in range(50):
        tracker.move(pose(x=1.0 + 1e-3 * k, rpy=(0, 0, 2.0)), GRIP)
    tracker.move(pose(x=1.05, rpy=(0, 0, 2.0)), GRIP, 50)
    np.testing.assert_allclose(motion(tracker), [0.05, 0, 0, 0, 0, 0], atol=2e-3)
    tracker.assert_calm()


def test_a_tracker_that_freezes_and_goes_on_elsewhere_moves_nothing(tracker):
    tracker.move(pose(), ())
    tracker.move(pose(), GRIP, 3)
    assert "do not change" in tracker.move(pose(y=0.05), GRIP, 150).note
    before = tracker.commands[-1]
    tracker.move(pose(y=0.15), GRIP, 100)
    assert np.abs(tracker.commands[-1] - before).max() < 1e-4
    tracker.assert_calm()


def test_a_tracker_that_falls_silent_stops_the_arm(tracker):
    tracker.move(pose(), ())
    for k in range(50):
        tracker.move(pose(y=0.004 * k), GRIP)
    lost = DeviceState(tracker.now, {}, frozenset(GRIP), pose(y=0.2), tracker.poses)
    results = [tracker.step(lost) for _ in range(80)]
    assert (results[13].twist == 0.0).all()
    assert not tracker.controller.moves
    assert not tracker.move(pose(y=0.25), GRIP, 5).is_active
    tracker.assert_calm()


def test_jitter_of_the_hand_is_filtered(tracker):
    rng = np.random.default_rng(1)
    noise = rng.normal(scale=1e-3, size=(300, 3))
    tracker.move(pose(), ())
    targets = np.array([tracker.move(pose(*each), GRIP).pose[:3, 3] for each in noise])
    assert np.diff(targets, axis=0).std() < 0.4 * np.diff(noise, axis=0).std()
    tracker.assert_calm()


def test_the_clutch_slips_where_the_arm_cannot_follow(tracker):
    tracker.move(pose(), ())
    tracker.move(pose(), GRIP, 3)
    for k in range(400):  # 1.6 m up, beyond the reach
        result = tracker.move(pose(z=0.004 * k), GRIP)
    assert "slips" in result.note
    for k in range(100):
        result = tracker.move(pose(z=1.6 - 0.004 * k), GRIP)
    top = max(WAM.fk(q)[2, 3] for q in tracker.commands)
    assert tracker.tip[2, 3] < top - 0.15, "it comes back at once"
    tracker.assert_calm()


# Clocks


@pytest.mark.parametrize("jump", [-1000.0, 1000.0])
def test_a_clock_that_jumps_does_not_make_the_target_jump(jump):
    arm = Arm("tracker", freeze_time=0.0)
    arm.move(pose(), ())
    arm.move(pose(), GRIP, 3)
    arm.move(pose(y=0.1), GRIP, 4)
    arm.now += jump
    before = arm.results[-1].pose
    state = DeviceState(arm.now, {}, frozenset(GRIP), pose(y=0.1), 10**6)
    after = arm.teleop.step(state, arm.tip, arm.now).pose
    assert np.linalg.norm(difference(before, after)) <= 0.1 * 0.25 + 1e-9
