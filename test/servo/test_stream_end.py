# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""End of a pose stream: the arm settles, stops or finishes, and reports which."""

import numpy as np
import pytest
from drive import BENT, DT, WAM, Drive
from oracle import rigid, rotation

from dls_ik.errors import OptionError
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.options import ControllerOptions
from dls_ik.servo.stream_end import stop_reason

FAR = WAM.fk(BENT + 0.8)
AWAY = WAM.fk(BENT - 0.8)
SLOW = 1.0  # [rad/s^2] the arm lags behind the stream
TIMEOUT = ControllerOptions().target_timeout


def path(k, count, reach=0.3):
    """Return pose k of a stream of `count` poses along a joint path."""
    return WAM.fk(BENT + reach * k / (count - 1))


def stream(drive, count=100, interval=DT, reach=0.3, jitter=None):
    """Send a stream of poses and return its last pose."""
    for k in range(count):
        drive.pose(path(k, count, reach))
        drive.run(interval if jitter is None else jitter())
    return path(count - 1, count, reach)


def error(drive, T):
    return np.abs(WAM.fk(drive.last.q) - T).max()


def test_stream_settles_at_its_last_pose():
    drive = Drive(BENT, acceleration=SLOW)
    T = stream(drive)
    drive.run(TIMEOUT - DT)
    assert error(drive, T) > 5e-3, "the arm still moves when the stream ends"
    drive.run(4.0)
    assert drive.last.state is ServoState.REACHED
    assert drive.last.state.code == 0
    assert "the stream has ended" in drive.last.message
    assert error(drive, T) < 1e-5
    drive.assert_limits(SLOW)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_repeated_single_pose_is_reached(count):
    drive = Drive(BENT, acceleration=SLOW)
    for _ in range(count):
        drive.pose(FAR).run(0.05)
    assert drive.run_until(ServoState.REACHED, 30.0), drive.last
    assert "ended" not in drive.last.message
    assert error(drive, FAR) < 1e-5


def test_corrected_single_pose_is_reached():
    drive = Drive(BENT, acceleration=SLOW).pose(FAR)
    drive.run(0.05)
    other = WAM.fk(BENT - 0.3)
    drive.pose(other)
    assert drive.run_until(ServoState.REACHED, 30.0)
    assert error(drive, other) < 1e-5


@pytest.mark.parametrize(
    ("choice", "far", "ends"),
    [
        ("settle", False, True),
        ("settle", True, False),
        ("stop", False, False),
        ("stop", True, False),
        ("finish", False, True),
        ("finish", True, True),
    ],
)
def test_when_stream_ends_selects_whether_the_last_pose_is_reached(choice, far, ends):
    drive = Drive(BENT, acceleration=SLOW, when_stream_ends=choice)
    T = stream(drive)
    if far:  # the stream ends with a jump
        T = AWAY
        drive.pose(T)
    drive.run(TIMEOUT + 2 * DT)
    at_end = drive.last
    drive.run(12.0)
    assert not drive.last.velocity.any()
    drive.assert_limits(SLOW)
    if ends:
        assert "the stream has ended" in at_end.message
        assert drive.last.state is ServoState.REACHED
        assert error(drive, T) < 1e-5
        return
    assert at_end.state is ServoState.TIMED_OUT
    assert at_end.message.startswith(ServoState.TIMED_OUT.explanation)
    assert ("settle_distance" if choice == "settle" else "when_stream_ends is 'stop'") in (
        at_end.message
    )
    assert drive.last.state is ServoState.TIMED_OUT
    assert error(drive, T) > 1e-4


def test_end_of_twists_always_stops():
    drive = Drive(BENT, acceleration=SLOW, when_stream_ends="finish")
    for _ in range(50):
        drive.twist(np.array([0.0, 0.1, 0.0, 0.0, 0.0, 0.0])).run(DT)
    drive.run(2.0)
    assert drive.last.state is ServoState.TIMED_OUT
    assert drive.last.message == ServoState.TIMED_OUT.explanation
    assert not drive.last.velocity.any()


@pytest.mark.parametrize("seed", range(5))
def test_stream_with_gaps_reaches_its_last_pose(seed):
    rng = np.random.default_rng(seed)
    gaps = []

    def jitter():
        gaps.append(DT * rng.integers(1, 5) if rng.random() < 0.97 else TIMEOUT + 0.1)
        return gaps[-1]

    drive = Drive(BENT, acceleration=SLOW)
    T = stream(drive, jitter=jitter)
    drive.run(4.0)
    assert drive.last.state is ServoState.REACHED
    assert error(drive, T) < 1e-5
    assert max(gaps) > TIMEOUT, "the stream has a gap"
    drive.assert_limits(SLOW)


def test_pose_after_the_end_is_followed_and_clears_the_note():
    drive = Drive(BENT, acceleration=SLOW)
    stream(drive)
    drive.run(1.0)
    assert "ended" in drive.last.message
    drive.pose(FAR).run(DT)
    assert "ended" not in drive.last.message
    assert drive.run_until(ServoState.REACHED, 30.0), "a single pose is reached"
    assert error(drive, FAR) < 1e-5


def test_pause_after_the_end_stops_the_arm():
    drive = Drive(BENT, acceleration=SLOW)
    T = stream(drive)
    drive.run(TIMEOUT + 2 * DT)
    drive.controller.pause("test")
    drive.run(1.0)
    assert drive.last.state is ServoState.PAUSED
    assert drive.last.message == "paused: test"
    assert error(drive, T) > 1e-3
    drive.controller.resume()
    drive.run(2.0)
    assert drive.last.state is ServoState.WAITING
    assert not drive.last.velocity.any()


@pytest.mark.parametrize("choice", ["settle", "stop", "finish"])
def test_take_over_applies_when_stream_ends_only_before_the_timeout(choice):
    """A parameter changed during the timeout takes effect; a later change does not."""
    drive = Drive(BENT, acceleration=SLOW, when_stream_ends="settle")
    T = stream(drive)
    before = drive.controller
    drive.controller = Controller(WAM, acceleration=SLOW, when_stream_ends=choice)
    drive.controller.take_over(before)
    drive.run(TIMEOUT + 2 * DT)
    after = drive.controller
    drive.controller = Controller(WAM, acceleration=SLOW, when_stream_ends="stop")
    drive.controller.take_over(after)
    drive.run(4.0)
    ends = choice != "stop"
    assert drive.last.state is (ServoState.REACHED if ends else ServoState.TIMED_OUT)
    assert (error(drive, T) < 1e-5) == ends


@pytest.mark.parametrize(("choice", "ends"), [("settle", False), ("finish", True)])
def test_last_pose_is_stale_after_a_loop_stall(choice, ends):
    """The arm is close enough to the last pose to settle, had the loop continued."""
    drive = Drive(BENT, acceleration=SLOW, when_stream_ends=choice)
    T = stream(drive)
    drive.now += 2.0 * TIMEOUT + DT
    held = drive.last.q + 0.01
    drive.controller.resume_after_gap(held)
    drive.run(4.0)
    assert drive.last.state is (ServoState.REACHED if ends else ServoState.TIMED_OUT)
    if ends:
        assert error(drive, T) < 1e-5
    else:
        assert "the loop stalled" in drive.last.message
        np.testing.assert_array_equal(drive.last.q, held)


T_0 = rigid(rotation([0.2, 0.5, -0.3], 1.0), [0.4, 0.1, 0.7])


def moved(distance, angle):
    """Return T_0, displaced by a distance and rotated by an angle."""
    return rigid(T_0[:3, :3] @ rotation([0.0, 0.0, 1.0], angle), T_0[:3, 3] + [0.0, distance, 0.0])


@pytest.mark.parametrize("unit", [1.0, 1000.0])
@pytest.mark.parametrize(
    ("distance", "angle", "settles"),
    [(0.0, 0.0, True), (0.049, 0.19, True), (0.051, 0.0, False), (0.0, 0.21, False)],
)
def test_stream_settles_only_within_settle_distance_and_angle(distance, angle, settles, unit):
    T, T_last = T_0.copy(), moved(distance, angle)
    T[:3, 3] *= unit
    T_last[:3, 3] *= unit
    assert (stop_reason(ControllerOptions(), T, T_last, TIMEOUT, unit) == "") == settles
    assert stop_reason(ControllerOptions(when_stream_ends="finish"), T, T_last, TIMEOUT, unit) == ""
    assert stop_reason(ControllerOptions(when_stream_ends="stop"), T, T_last, TIMEOUT, unit) != ""


def test_zero_distance_never_settles_and_invalid_choice_raises():
    drive = Drive(BENT, acceleration=SLOW, settle_distance=0.0)
    stream(drive)
    drive.run(2.0)
    assert drive.last.state is ServoState.TIMED_OUT
    with pytest.raises(OptionError, match="settle, stop, finish"):
        Drive(BENT, when_stream_ends="wait")
