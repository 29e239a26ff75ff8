"""From one kind of target to another, and to none and back: no jump, and no limit passed."""

import numpy as np
import pytest
from drive import BENT, DT, WAM, Drive

from dls_ik.errors import HeldError
from dls_ik.servo import Controller, ServoState

A, JERK = 6.0, 120.0
FAR = WAM.fk(BENT + 0.9)
V = np.array([0.3, -0.2, 0.2, 0.5, 0.0, 0.4])


def line():
    Ts = np.repeat(WAM.fk(BENT - 0.2)[None], 3, axis=0)
    Ts[:, 1, 3] += 0.0, 0.1, 0.2
    return Ts


ORDERS = [
    lambda drive: drive.pose(FAR),
    lambda drive: drive.twist(V),
    lambda drive: drive.twist(V, R=np.eye(3)),
    lambda drive: drive.trajectory(line(), 0.2),
    lambda drive: drive.pose(WAM.fk(BENT - 0.3)),
    lambda drive: drive.controller.refuse("not a pose"),
    lambda drive: drive.controller.pause(),
    lambda drive: drive.controller.resume(),
    lambda drive: drive.controller.reset(),
]


@pytest.mark.parametrize("limits", [{"acceleration": A}, {"acceleration": A, "jerk": JERK}])
def test_any_order_at_any_time_keeps_the_limits(limits):
    if "jerk" in limits:
        pytest.importorskip("ruckig")
    rng = np.random.default_rng(71)
    drive = Drive(BENT, **limits)
    for _ in range(60):
        held = drive.controller.hold_reason
        try:
            ORDERS[rng.integers(len(ORDERS))](drive)
        except HeldError:
            assert held
        drive.run(rng.uniform(DT, 0.5))
    drive.assert_limits(**limits)
    assert np.ptp(drive.q, axis=0).max() > 0.5, "it moved at all"


def test_a_measurement_is_not_jumped_to_while_a_target_stands():
    drive = Drive(BENT).pose(WAM.fk(BENT + 0.3))
    drive.run(DT)
    drive.run(3.0, measured=lambda drive: drive.outputs[max(len(drive.outputs) - 10, 0)].q)
    drive.assert_limits()
    assert drive.last.state is ServoState.REACHED


@pytest.mark.parametrize("moment", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("method", ["svf", "auto", "odls"])
def test_another_method_goes_on_from_there(moment, method):
    drive = Drive(BENT, acceleration=A).pose(FAR)
    drive.run(moment)
    other = Controller(WAM, method, acceleration=A)
    other.take_over(drive.controller)
    np.testing.assert_array_equal(other.command, drive.last.q)
    drive.controller = other
    assert drive.run_until(ServoState.REACHED, 10.0)
    drive.assert_limits(A)


def test_another_method_goes_on_within_the_limit_of_jerk():
    pytest.importorskip("ruckig")
    for moment in (0.06, 0.15, 0.3):
        drive = Drive(BENT, acceleration=A, jerk=JERK).pose(FAR)
        drive.run(moment)
        other = Controller(WAM, "svf", acceleration=A, jerk=JERK)
        other.take_over(drive.controller)
        drive.controller = other
        drive.run(2.0)
        drive.assert_limits(A, JERK)


def test_another_controller_is_paused_if_the_first_was():
    drive = Drive(BENT, acceleration=A).pose(FAR)
    drive.run(0.2)
    drive.controller.pause()
    other = Controller(WAM, "svf", acceleration=A)
    other.take_over(drive.controller)
    drive.controller = other
    with pytest.raises(HeldError):
        drive.pose(FAR)
    drive.run(1.0)
    assert drive.last.state is ServoState.PAUSED
    drive.assert_limits(A)


def test_paused_takes_nothing_until_it_is_resumed():
    drive = Drive(BENT, acceleration=A).pose(FAR)
    drive.run(0.2)
    drive.controller.pause()
    for order in ORDERS[:5]:
        with pytest.raises(HeldError, match="paused"):
            order(drive)
    drive.controller.refuse("no reason")
    drive.run(1.0)
    assert drive.last.state is ServoState.PAUSED
    assert not drive.last.velocity.any()
    drive.controller.resume()
    drive.run(0.5)
    assert drive.last.state is ServoState.WAITING
    drive.pose(FAR)
    assert drive.run_until(ServoState.REACHED, 10.0)
    drive.assert_limits(A)


def test_reset_forgets_the_target_and_the_pause():
    drive = Drive(BENT, acceleration=A).pose(FAR)
    drive.run(0.2)
    drive.controller.reset()
    drive.run(1.0)
    assert drive.last.state is ServoState.WAITING
    assert not drive.last.velocity.any()
    drive.controller.pause()
    drive.controller.reset()
    assert not drive.controller.hold_reason
    drive.pose(FAR)


def test_a_refused_target_stops_the_arm_and_says_why_until_a_good_one_comes():
    drive = Drive(BENT, acceleration=A).pose(FAR)
    drive.run(0.2)
    drive.controller.refuse("quaternion of zeros")
    drive.run(1.0)
    assert drive.last.state is ServoState.REFUSED
    assert "quaternion of zeros" in drive.last.message
    assert not drive.last.velocity.any()
    drive.pose(FAR)
    assert drive.run_until(ServoState.REACHED, 10.0)
    drive.assert_limits(A)
