# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Measurements: start of the command, and supervision of the arm."""

import math
import re

import numpy as np
import pytest
from arms import published
from drive import BENT, DT, WAM, Drive

from dls_ik.errors import HeldError, JointValueError
from dls_ik.servo import Controller, ControllerOptions, ServoState
from dls_ik.servo.supervision import INSTANT, REST_TIME, Supervision

NEAR = WAM.fk(BENT + 0.3)


def lagging(cycles):
    """Return a measurement that lags by a number of cycles."""
    return lambda drive: drive.q[max(len(drive.q) - cycles, 0)]


def supervised(q=BENT, **options):
    return Drive(q, supervised=True, **options)


def test_command_equals_measurement_before_first_target():
    drive = Drive(np.zeros(WAM.n))
    for q in (BENT, BENT + 0.1, list(BENT - 0.2)):
        drive.run(DT, measured=q)
        np.testing.assert_array_equal(drive.last.q, q)
        assert not drive.last.velocity.any()


def test_motion_waits_for_and_starts_at_first_measurement():
    drive = supervised(np.zeros(WAM.n)).pose(NEAR)
    drive.run(3.0)
    assert set(drive.states) == {ServoState.WAITING}
    assert "joint states" in drive.last.message
    np.testing.assert_array_equal(drive.last.q, drive.start)
    drive.run(DT, measured=BENT)
    assert np.abs(drive.last.q - BENT).max() <= 2.001 * DT
    drive.run(3.0, measured=lagging(1))
    assert drive.last.state is ServoState.REACHED


def test_missing_measurements_are_a_latched_fault():
    drive = supervised(acceleration=5.0).pose(NEAR)
    drive.run(0.2, measured=lagging(2))
    drive.run(1.0)
    assert drive.last.state is ServoState.FAULT
    assert "no joint states" in drive.last.message
    assert not drive.last.velocity.any()
    drive.assert_limits(5.0)
    drive.run(1.0, measured=drive.last.q)
    assert drive.last.state is ServoState.FAULT
    for give in (
        drive.pose,
        lambda T: drive.twist(np.zeros(6)),
        lambda T: drive.trajectory([T], 1),
    ):
        with pytest.raises(HeldError, match="no joint states"):
            give(NEAR)
    drive.controller.pause()
    drive.controller.resume()
    drive.controller.refuse("any reason")
    drive.run(0.1)
    assert drive.last.state is ServoState.FAULT
    drive.controller.reset()
    drive.pose(NEAR)
    drive.run(3.0, measured=lagging(2))
    assert drive.last.state is ServoState.REACHED


@pytest.mark.parametrize("joint", [0, 3, 6])
def test_deviation_is_a_fault_that_names_the_joint(joint):
    drive = supervised(max_deviation=0.2).pose(NEAR)
    drive.run(0.3, measured=lagging(9))  # a deviation below the bound
    off = 0.21 * (np.arange(WAM.n) == joint)
    drive.run(0.5, measured=lambda drive: drive.last.q - off)
    assert drive.last.state is ServoState.FAULT
    assert WAM.joint_names[joint] in drive.last.message
    assert "max_deviation" in drive.last.message


def test_target_after_rest_starts_at_arm_moved_by_hand():
    drive = supervised(target_timeout=0.1, max_deviation=0.1, when_stream_ends="stop")
    for _ in range(4):
        drive.pose(NEAR).run(0.02, measured=lagging(1))
    drive.pose(NEAR).run(2.0, measured=lagging(1))
    assert drive.last.state is ServoState.TIMED_OUT
    elsewhere = drive.last.q + 0.4
    drive.run(1.0, measured=elsewhere)
    assert drive.last.state is ServoState.TIMED_OUT
    drive.pose(NEAR).run(DT, measured=elsewhere)
    assert np.abs(drive.last.q - elsewhere).max() <= 2.001 * DT
    drive.run(4.0, measured=lagging(1))
    assert drive.last.state is ServoState.REACHED


@pytest.mark.parametrize("supervised", [False, True])
def test_targets_for_an_arm_that_is_held_do_not_move_its_command(supervised):
    """Neither by noise nor by the distance that drives leave: a held arm would sag at each one."""
    rng, start = np.random.default_rng(3), BENT + 0.1
    drive = Drive(BENT, supervised=supervised, scale=0.0, target_timeout=0.1)
    drive.run(0.6, measured=start)
    for k in range(6):
        drive.pose(NEAR if k % 2 else WAM.fk(BENT))
        drive.run(0.7, measured=lambda drive: drive.last.q - 0.005 + rng.normal(0.0, 1e-3, WAM.n))
        if k == 0:
            first = drive.last.q
            assert np.abs(first - start).max() < 0.02, "it starts where the arm is"
    np.testing.assert_array_equal(drive.last.q, first)
    drive.pose(NEAR).run(DT, measured=first + 0.02)
    np.testing.assert_array_equal(drive.last.q, first + 0.02, "the arm was moved")


@pytest.mark.parametrize("moved", [0.0, 0.02])
def test_command_after_a_gap_restarts_only_if_the_arm_has_moved(moved):
    """Measurement noise does not move the command of an arm that it holds."""
    rng, drive = np.random.default_rng(4), supervised(max_deviation=0.1).pose(NEAR)
    drive.run(1.1, measured=lagging(1))
    held = drive.last.q
    measured = held + moved + rng.normal(0.0, 1e-3, WAM.n)
    drive.controller.resume_after_gap(held)
    drive.pose(WAM.fk(held + moved)).run(DT, measured=measured)
    assert np.abs(drive.last.q - (measured if moved else held)).max() <= 2.001 * DT
    assert (drive.last.q == held).all() == (not moved)


def test_motion_after_pause_starts_at_measurement():
    drive = supervised(max_deviation=0.1).pose(NEAR)
    drive.run(0.1, measured=lagging(1))
    drive.controller.pause()
    drive.run(1.0, measured=lagging(1))
    elsewhere = drive.last.q - 0.3
    drive.controller.resume()
    drive.run(DT, measured=elsewhere)
    np.testing.assert_array_equal(drive.last.q, elsewhere)


def test_whole_turns_of_continuous_joints_are_no_deviation():
    gen3 = published("gen3")
    q = gen3.random(rng=np.random.default_rng(72))
    turns = 2 * np.pi * gen3.continuous
    assert turns.any()
    drive = Drive(q, gen3, supervised=True, max_deviation=0.05).pose(gen3.fk(gen3.clip(q + 0.2)))
    drive.run(DT, measured=q)
    drive.run(5.0, measured=lambda drive: drive.last.q - turns)
    assert drive.last.state is ServoState.REACHED


MEASURED = [np.zeros(6), np.full(7, np.nan), np.full((1, 7), 0.1), "here", [np.inf] * 7, 3.0]


@pytest.mark.parametrize("given", [True, False])
def test_invalid_measurement_raises_and_changes_nothing(given):
    drive, twin = Drive(BENT, supervised=given), Drive(BENT, supervised=given)
    for measured in MEASURED:
        for each in (drive, twin):
            each.pose(NEAR).run(3 * DT, measured=lagging(1))
        with pytest.raises(JointValueError):
            drive.controller.cycle(drive.now, DT, measured)
    for each in (drive, twin):
        each.run(0.1, measured=lagging(1))
    np.testing.assert_array_equal(drive.q, twin.q)


def sweep(drive, seconds=0.0, period=2.0):
    """Send a target that oscillates around BENT by 0.4 rad in some joints."""
    swing = 0.4 * math.sin(2.0 * math.pi * drive.now / period)
    drive.pose(WAM.fk(BENT + swing * np.array([1.0, 0.5, 0.0, 0.5, 0.0, 0.5, 0.0])))


@pytest.mark.parametrize("silence", [0.36, 0.45])
def test_driver_that_stops_publishing_is_no_deviation(silence):
    """The last measurement becomes old while the command moves on."""
    drive = supervised(max_deviation=0.1, measurement_timeout=0.5)
    drive.run(1.0, sweep, measured=lagging(2))
    last = drive.q[-2]
    for k in range(round(silence / DT)):
        cycle(drive, last, age=DT * (k + 2))
        assert drive.last.state is not ServoState.FAULT, drive.last.message
    assert np.abs(drive.last.q - last).max() > 0.1
    drive.run(DT, sweep)
    assert drive.last.state is ServoState.FAULT
    assert f"no joint states received for 0.5 s, the last {2 * DT + silence:.3g} s ago" in (
        drive.last.message
    )


def cycle(drive, measured, age):
    sweep(drive)
    drive.now += DT
    drive.outputs.append(drive.controller.cycle(drive.now, DT, measured, age))


def test_each_joint_is_compared_at_its_measurement_time():
    drive = supervised(max_deviation=0.02)
    ages = np.array([0.2, 0.1, 0.01, 0.1, 0.05, 0.2, 0.01])
    drive.run(1.0, sweep, measured=lambda drive: drive.last.q if drive.outputs else BENT)
    for _ in range(200):
        q = drive.q
        back = np.rint(ages / DT).astype(int)
        measured = q[len(q) - back, np.arange(WAM.n)]
        cycle(drive, measured, age=ages)
        assert drive.last.state is not ServoState.FAULT, drive.last.message


def test_arm_on_its_stop_in_late_cycles_is_no_deviation():
    """The measurement is taken during the gap; supervision must work if all cycles are late."""

    def run(follows):
        drive = supervised(max_deviation=0.05, acceleration=20.0).pose(NEAR)
        drive.run(0.1, measured=lagging(1))
        held = drive.last.q
        for _ in range(5):
            q, gap = drive.last.q, 0.08
            drive.now += gap
            drive.controller.resume_at(gap, DT)
            measured = 0.5 * (q + drive.controller.command) if follows else held
            drive.outputs.append(drive.controller.cycle(drive.now, DT, measured, 0.5 * gap))
        return drive.last

    assert run(follows=True).state is not ServoState.FAULT
    assert run(follows=False).state is ServoState.FAULT


def test_fault_of_lagging_arm_suggests_sufficient_max_deviation():
    lag = 20  # cycles

    def run(bound):
        drive = supervised(max_deviation=bound)
        while drive.now < 4.0 and (not drive.outputs or drive.last.state is not ServoState.FAULT):
            drive.run(DT, sweep, measured=lagging(lag))
        return drive

    drive = run(0.1)
    assert drive.last.state is ServoState.FAULT
    assert "measured 0.000 s ago" in drive.last.message
    suggested = float(re.search(r"set max_deviation to ([\d.]+)", drive.last.message)[1])
    assert run(suggested).last.state is not ServoState.FAULT
    assert suggested < 2.0 * WAM.velocity[0] * lag * DT + 0.1


@pytest.mark.parametrize("every", [1, 7, 40])
def test_deviation_without_known_lag_needs_a_resting_command(every):
    """The deviation is known if all commands of the last REST_TIME are equal.

    It is computed in every k-th cycle, for k = `every`, which makes no difference.
    """
    supervision, rng = Supervision(WAM, ControllerOptions()), np.random.default_rng(every)
    supervision.restart(BENT)
    q, commands, found = BENT, [(-INSTANT, BENT)], set()
    for k in range(1500):
        now = k * DT
        if rng.random() < 0.02:
            q = BENT + 0.01 * rng.integers(2)  # the previous command or another one
        commands.append((now, q))
        supervision.record_command(now, q)
        supervision.record_measurement(now, BENT, 0.0)
        if k % every == 0:
            recent = [c for t, c in commands if t >= now - REST_TIME]
            rests = len(recent) < len(commands) and all((c == q).all() for c in recent)
            assert (supervision.deviation(now, q) is not None) == rests
            found.add(rests)
    assert found == {True, False}


@pytest.mark.parametrize("cycles", [1, 30])
def test_lag_is_estimated_from_measurements(cycles):
    drive = supervised(max_deviation=3.0)
    assert math.isnan(drive.controller.lag())
    drive.run(4.0, sweep, measured=lagging(cycles))
    assert drive.controller.lag() == pytest.approx(cycles * DT, abs=0.2 * DT)
    drive.run(5.0, measured=lagging(cycles))  # the lag found is kept at rest
    assert drive.controller.lag() == pytest.approx(cycles * DT, abs=0.2 * DT)


def test_lag_of_short_motion_is_estimated_and_nan_if_arm_does_not_follow():
    drive = supervised(max_deviation=3.0)
    drive.pose(WAM.fk(BENT + 0.1)).run(0.8, measured=lagging(5))
    assert drive.controller.lag() == pytest.approx(5 * DT, abs=DT)
    still = Drive(BENT)
    still.run(3.0, sweep, measured=BENT)
    assert math.isnan(still.controller.lag())


def test_reset_clears_fault_of_missing_measurements():
    drive = supervised(acceleration=0.5)
    drive.run(1.0, sweep, measured=lagging(2))
    drive.run(DT)
    assert drive.last.state is ServoState.FAULT
    assert drive.last.velocity.any()
    drive.controller.reset()
    drive.run(2.0)
    assert {out.state for out in drive.outputs[-200:]} == {ServoState.WAITING}


@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.parametrize("off", [0.4, -0.05])
def test_steady_state_error_does_not_move_the_command(supervised, off):
    """A command restarted at the measurement would add the steady-state error of the drives."""
    drive = Drive(BENT, supervised=supervised, acceleration=8.0, max_deviation=1.0)
    offset = lambda drive: drive.q[-1] + off * (np.arange(WAM.n) == 3)  # noqa: E731
    drive.run(0.2, measured=BENT)
    drive.pose(NEAR).run(DT, measured=BENT)
    drive.run(3.0, measured=offset)
    for k in range(3):
        drive.pose(WAM.fk(BENT + 0.1 * k))
        drive.run(3.0, measured=offset)
        assert drive.last.state is ServoState.REACHED
    drive.controller.pause()
    drive.run(1.0, measured=offset)
    drive.controller.resume()
    drive.pose(NEAR)
    drive.run(3.0, measured=offset)
    assert drive.last.state is ServoState.REACHED
    drive.assert_limits(8.0)


def test_motion_continues_from_arm_moved_by_others():
    drive = Drive(BENT, supervised=True, acceleration=8.0)
    drive.pose(NEAR)
    drive.run(3.0, measured=lambda drive: drive.q[-1])
    moved = drive.last.q + 0.2
    drive.run(1.0, measured=moved)
    drive.pose(WAM.fk(BENT))
    drive.run(DT, measured=moved)
    assert np.abs(drive.last.q - moved).max() <= 2.0 * DT


def test_take_over_with_steady_state_error_keeps_the_command():
    drive = Drive(BENT, acceleration=8.0)
    offset = lambda drive: drive.q[-1] + 0.4 * (np.arange(WAM.n) == 3)  # noqa: E731
    drive.pose(NEAR).run(DT, measured=BENT)
    drive.run(3.0, measured=offset)
    other = Controller(WAM, "svf", acceleration=8.0)
    other.take_over(drive.controller)
    drive.controller = other
    drive.pose(WAM.fk(BENT)).run(3.0, measured=offset)
    assert drive.last.state is ServoState.REACHED
    drive.assert_limits(8.0)
