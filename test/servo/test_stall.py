"""When slow motion counts as a stall, and a command that may not move."""

import numpy as np
import pytest
from drive import BENT, WAM, Drive

from dls_ik.servo import ServoState
from dls_ik.servo.limiter import AccelerationLimiter
from dls_ik.servo.tracker import StallMonitor


def first_stall(errors, positions, dt=0.01, speed=0.0):
    """When it stalls [s], with a target that moves at a speed [m/s]."""
    watch, T = StallMonitor(np.ones(1), 0.5), np.eye(4)
    for k, (error, q) in enumerate(zip(errors, positions, strict=True)):
        T[0, 3] = speed * k * dt
        if watch.update(k * dt, error, np.array([q]), T):
            return k * dt
    return None


def test_no_progress_and_no_motion_is_a_stall_after_a_quarter_of_a_second():
    assert first_stall(np.ones(100), np.zeros(100)) == pytest.approx(0.25)


def test_fast_motion_is_none_whatever_the_error():
    assert first_stall(np.ones(1000), 0.11 * 0.01 * np.arange(1000)) is None


@pytest.mark.parametrize("rate", [2.0, 50.0])
def test_an_error_that_falls_or_rises_is_none(rate):
    times = np.arange(300) * 0.01
    assert first_stall(np.exp(-rate * times), np.zeros(300)) is None
    assert first_stall(np.exp(rate * times), np.zeros(300)) is None


def test_keeping_up_with_a_slow_target_is_none_and_falling_short_of_it_is():
    slow = 0.05 * 0.01 * np.arange(100)
    assert first_stall(np.full(100, 0.01), slow, speed=0.1) is None
    assert first_stall(np.full(100, 0.1), slow, speed=0.1) == pytest.approx(0.25)


def test_long_cycles_are_counted():
    assert first_stall(np.ones(20), np.zeros(20), dt=1.0) == pytest.approx(5.0)


def test_it_has_lasted_after_two_seconds_until_it_begins_anew():
    watch = StallMonitor(np.ones(1), 0.5)
    lasted = []
    for k in range(250):
        watch.update(k * 0.01, 1.0, np.zeros(1), np.eye(4))
        lasted.append(watch.has_lasted(k * 0.01))
    assert lasted.index(True) == 200
    watch.reset()
    watch.update(2.51, 1.0, np.zeros(1), np.eye(4))
    assert not watch.has_lasted(2.51)


def test_going_to_and_fro_is_a_stall_however_fast():
    assert first_stall(np.ones(100), 0.01 * (np.arange(100) % 2)) == pytest.approx(0.25)


class Refusing(AccelerationLimiter):
    """Lets the command slow down, and nothing else, while it refuses."""

    refuses = True

    def advance(self, q_r, v_r, dt):
        if self.refuses:
            self.brake(dt)
        else:
            super().advance(q_r, v_r, dt)


@pytest.mark.parametrize("way", [0.0, 0.2], ids=["stands", "moves"])
def test_a_command_that_its_limits_refuse_is_said_to_be_stalled(way):
    drive = Drive(BENT)
    tracker = drive.controller._tracker
    tracker.limiter = limiter = Refusing(WAM, np.full(WAM.n, 10.0))
    drive.controller.seed(BENT)

    def each(drive):
        T = WAM.fk(BENT + np.array([0.3, 0, 0, 0, 0, 0, 0]))
        T[2, 3] += way * np.sin(drive.now)
        drive.pose(T)

    drive.run(1.0, each)
    assert drive.last.state is ServoState.STALLED
    assert drive.last.message.startswith("stalled: limits keep joint 'wam_j")
    limiter.refuses = False
    drive.run(0.1, each)
    assert drive.last.state is ServoState.FOLLOWING
    drive.assert_limits(10.0)


def test_slow_limits_are_no_refusal():
    drive = Drive(BENT, acceleration=0.05).pose(WAM.fk(BENT + 0.3))
    drive.run(3.0)
    assert ServoState.STALLED not in drive.states
