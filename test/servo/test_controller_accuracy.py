"""How closely moving targets are followed, with and without feed-forward."""

import numpy as np
import pytest
from drive import BENT, WAM, Drive

from dls_ik.servo import ServoState

RATE, CYCLE = 30.0, 0.002  # [Hz] of targets, [s]
RADIUS, TURN = 0.1, 2.0  # [m], [s]


def circle(time):
    T = WAM.fk(BENT)
    angle = 2 * np.pi * time / TURN
    T[1, 3] += RADIUS * np.sin(angle)
    T[2, 3] += RADIUS * (1 - np.cos(angle))
    return T


def follow(path, seconds, **options):
    """Targets at RATE, and the tip's position error to the path itself after the first second."""
    drive, sent = Drive(BENT, dt=CYCLE, **options), -1
    errors = []
    while drive.now < seconds:
        if int(drive.now * RATE + 1e-9) > sent:
            sent = int(drive.now * RATE + 1e-9)
            drive.pose(path(drive.now))
        drive.run(CYCLE)
        if drive.now > 1.0:
            tip = WAM.fk(drive.last.q)[:3, 3]
            errors.append(np.linalg.norm(tip - path(drive.now)[:3, 3]))
    return drive, np.array(errors)


@pytest.mark.parametrize("limits", [{}, {"acceleration": 40.0}])
def test_feed_forward_takes_most_of_the_error_of_a_circle(limits):
    without = np.mean(follow(circle, 4.0, **limits)[1])
    drive, errors = follow(circle, 4.0, feed_forward=True, **limits)
    speed = 2 * np.pi * RADIUS / TURN
    assert without > 0.3 * speed / RATE, "half an interval behind"
    assert np.mean(errors) < without / 2.5
    drive.assert_limits(**limits)


def test_the_end_of_a_stream_is_no_jump():
    drive, _ = follow(circle, 2.0, feed_forward=True, acceleration=10.0)
    before = len(drive.outputs)
    drive.run(2.0)
    drive.assert_limits(10.0)
    assert drive.last.state is ServoState.STALE
    way = WAM.fk(drive.last.q)[:3, 3] - WAM.fk(drive.outputs[before - 1].q)[:3, 3]
    speed = 2 * np.pi * RADIUS / TURN
    assert np.linalg.norm(way) < speed * 2.5 / RATE, "the intervals that it went on for"


def test_with_feed_forward_a_stream_that_stands_is_reached():
    drive = Drive(BENT, dt=CYCLE, feed_forward=True)
    T = WAM.fk(BENT + 0.2)
    drive.run(2.0, lambda drive: drive.pose(T))
    assert drive.last.state is ServoState.REACHED
    assert np.ptp(drive.q[-100:], axis=0).max() == 0.0


def test_a_target_each_cycle_is_followed_to_a_millimetre():
    drive = Drive(BENT)
    errors = []
    for _ in range(500):
        drive.pose(circle(drive.now))
        errors.append(drive.run(0.01)[-1].position_error)
    assert np.max(errors) < 1e-3


def test_a_target_that_is_followed_closely_but_slowly_never_counts_as_stalled():
    T = WAM.fk(BENT)
    drive = Drive(BENT)

    def circle(drive):
        phase = 2.0 * np.pi * drive.now / 10.0
        T_d = T.copy()
        T_d[:3, 3] += 0.05 * np.array([0.0, np.cos(phase) - 1.0, np.sin(phase)])
        drive.pose(T_d)

    drive.run(10.0, each=circle)
    assert ServoState.STALLED not in drive.states
    assert np.max([out.position_error for out in drive.outputs]) < 5e-3
