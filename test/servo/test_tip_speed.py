"""Speeds of the tip and the scale of all limits: hard for every command, and without a jump."""

import numpy as np
import pytest
from drive import BENT, WAM, Drive, assert_limits

from dls_ik.errors import OptionError
from dls_ik.servo import Controller, ServoState


def tip_speeds(q, dt):
    """Linear and angular speed of each step between commands (m, n), by logarithms of rotations."""
    T = WAM.fk(q)
    linear = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1) / dt
    R = np.swapaxes(T[:-1, :3, :3], 1, 2) @ T[1:, :3, :3]
    skew = 0.5 * (R - np.swapaxes(R, 1, 2))
    sine = np.linalg.norm(skew, axis=(1, 2)) / np.sqrt(2)
    cosine = 0.5 * (np.trace(R, axis1=1, axis2=2) - 1)
    return linear, np.arctan2(sine, cosine) / dt


def kinds(drive, rng):
    """A pose, a twist or a trajectory at random; some poses are far away and need joint motion."""
    kind = rng.integers(4)
    if kind == 0:
        drive.pose(WAM.fk(WAM.random(rng)))
        drive.run(2.0)
    elif kind == 1:
        V = rng.normal(size=6) * 2.0
        drive.run(0.6, lambda drive: drive.twist(V))
    elif kind == 2:
        Ts = WAM.fk(drive.last.q + np.cumsum(rng.normal(0, 0.2, (4, WAM.n)), axis=0))
        drive.trajectory(Ts, 0.2)
        drive.run(1.5)
    else:
        drive.pose(WAM.fk(drive.last.q + rng.normal(0, 0.4, WAM.n)))
        drive.run(0.3)
        drive.controller.pause()
        drive.run(0.1)
        drive.controller.resume()


@pytest.mark.parametrize(
    "limits", [{"acceleration": 5.0}, {"acceleration": 5.0, "jerk": 50.0}, {}], ids=["a", "j", "v"]
)
def test_no_command_is_faster_than_the_speeds_of_the_tip(limits):
    rng = np.random.default_rng(3)
    drive = Drive(BENT, max_linear_speed=0.25, max_angular_speed=0.8, **limits)
    drive.run(0.01)
    for _ in range(12):
        kinds(drive, rng)
    linear, angular = tip_speeds(drive.q, drive.dt)
    assert linear.max() <= 0.25 * (1 + 1e-9)
    assert angular.max() <= 0.8 * (1 + 1e-9)
    assert linear.max() > 0.24
    drive.assert_limits(**limits)


def test_a_twist_that_asks_for_more_keeps_its_direction_and_has_the_speed():
    drive = Drive(BENT, acceleration=20.0, max_linear_speed=0.1)
    drive.run(0.5, lambda drive: drive.twist([0.3, 0, 0.4, 0, 0, 0], R=np.eye(3)))
    way = WAM.fk(drive.last.q)[:3, 3] - WAM.fk(BENT)[:3, 3]
    speed = np.linalg.norm(np.diff(WAM.fk(drive.q[-10:])[:, :3, 3], axis=0), axis=1) / drive.dt
    np.testing.assert_allclose(way / np.linalg.norm(way), [0.6, 0.0, 0.8], atol=0.02)
    np.testing.assert_allclose(speed, 0.1, rtol=5e-3)


def test_the_speed_is_used_on_a_long_way():
    drive = Drive(BENT, acceleration=10.0, max_linear_speed=0.2)
    goal = WAM.fk(BENT + np.array([0.8, 0, 0, 0, 0, 0, 0]))
    drive.pose(goal)
    assert drive.run_until(ServoState.REACHED, 20.0)
    away = np.linalg.norm(goal[:3, 3] - WAM.fk(BENT)[:3, 3])
    assert drive.now <= 1.25 * away / 0.2 + 0.5


@pytest.mark.parametrize("jerk", [np.inf, 100.0])
def test_a_scale_holds_for_velocities_and_for_accelerations_from_rest(jerk):
    drive = Drive(BENT, acceleration=8.0, jerk=jerk, scale=0.25)
    drive.pose(WAM.fk(BENT + 0.5))
    assert drive.run_until(ServoState.REACHED, 30.0)
    v = np.diff(drive.q, axis=0) / drive.dt
    assert (np.abs(v) <= 0.25 * WAM.velocity * (1 + 1e-9)).all()
    assert (np.abs(np.diff(v, axis=0)) / drive.dt <= 2.0 * (1 + 1e-6)).all()


@pytest.mark.parametrize("jerk", [np.inf, 200.0])
def test_a_change_of_the_scale_makes_no_jump_and_a_stop_stays_hard(jerk):
    """Changed in full motion, down to 0 and up again: limits hold in between, and it arrives."""
    limits = {"acceleration": 8.0, "jerk": jerk}
    goal = WAM.fk(BENT + np.array([1.2, 0.3, 0.4, -0.5, 0.2, 0.1, 0.3]))
    first = Drive(BENT, **limits).pose(goal)
    first.run(0.4)
    q, controller, now = [*first.q], first.controller, first.now
    fastest = np.abs(first.last.velocity / WAM.velocity).max()
    assert fastest > 0.3
    for scale in (0.1, 0.0, 1.0):
        after = Controller(WAM, scale=scale, **limits)
        after.take_over(controller)
        controller = after
        for k in range(60 if scale < 1.0 else 500):
            now += first.dt
            out = controller.cycle(now, first.dt)
            q.append(out.q)
            if scale < 1.0 and k * first.dt > 2.0 * fastest * WAM.velocity.max() / 8.0:
                assert (np.abs(out.velocity) <= scale * WAM.velocity + 1e-9).all()
        if scale == 0.0:
            assert "scale is 0" in out.message
    assert out.state is ServoState.REACHED
    assert_limits(WAM, np.array(q), first.dt, **limits)


@pytest.mark.parametrize(
    "wrong", [{"scale": 1.1}, {"scale": -0.1}, {"max_linear_speed": 0.0}, {"max_angular_speed": -1}]
)
def test_wrong_speeds_are_refused(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        Controller(WAM, **wrong)
