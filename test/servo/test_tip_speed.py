# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Speed limits of the tip and the scale of all limits: kept by every command, without jumps."""

import numpy as np
import pytest
from drive import BENT, WAM, Drive, assert_limits
from jtc import TrajectoryController

from dls_ik.errors import OptionError
from dls_ik.servo import Controller, ServoState


def tip_speeds(q, dt):
    """Return linear and angular speeds of steps between commands (m, n), by rotation logarithms."""
    T = WAM.fk(q)
    linear = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1) / dt
    R = np.swapaxes(T[:-1, :3, :3], 1, 2) @ T[1:, :3, :3]
    skew = 0.5 * (R - np.swapaxes(R, 1, 2))
    sine = np.linalg.norm(skew, axis=(1, 2)) / np.sqrt(2)
    cosine = 0.5 * (np.trace(R, axis1=1, axis2=2) - 1)
    return linear, np.arctan2(sine, cosine) / dt


def forward(q):
    """Return tip poses (m, 4, 4) from the URDF's frames by successive rotations about z."""
    fixed = [np.vstack([F, [0, 0, 0, 1]]) for F in WAM.chain.fixed]
    T = np.repeat(fixed[0][None], len(q), axis=0)
    for j, F in enumerate(fixed[1:]):
        R = np.repeat(np.eye(4)[None], len(q), axis=0)
        c, s = np.cos(q[:, j]), np.sin(q[:, j])
        R[:, 0, 0], R[:, 0, 1], R[:, 1, 0], R[:, 1, 1] = c, -s, s, c
        T = T @ R @ F
    return T


def fine_speeds(q, dt):
    """Return linear and angular speeds (m - 1, 2) by finite differences of poses."""
    T = forward(q)
    linear = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1)
    R = np.swapaxes(T[:-1, :3, :3], 1, 2) @ T[1:, :3, :3]
    skew = 0.5 * (R - np.swapaxes(R, 1, 2))
    angle = np.arcsin(np.minimum(np.linalg.norm(skew, axis=(1, 2)) / np.sqrt(2), 1.0))
    return np.stack([linear, angle], axis=1) / dt


class Followed:
    """A controller followed by a joint_trajectory_controller, with late cycles."""

    def __init__(self, dt, **options):
        self.dt, self.now = dt, 0.0
        self.controller = Controller(WAM, **options)
        self.controller.seed(BENT)
        self.arm = TrajectoryController(BENT)
        self.worst = np.zeros(2)
        self.rates = []

    def cycle(self, late, limits):
        """Run a cycle that is late by `late` [s]; record the speeds up to it and of its stop."""
        before = self.controller.command
        if late > 0.0:
            self.controller.resume_at(late, self.dt)
        start, self.now = self.now, self.now + late + self.dt
        self._record_speeds(self.arm.path(np.arange(start, self.now, 0.1 * self.dt)), limits)
        out = self.controller.cycle(self.now, self.dt)
        knots = self.controller.trajectory(self.dt)
        self.arm.receive(self.now, *knots[:3])
        end = self.now + float(knots.times[-1])
        self._record_speeds(self.arm.path(np.arange(self.now, end, 0.1 * self.dt)), limits)
        if late == 0.0:  # a controller that interpolates commands linearly
            share = np.linspace(0.0, 1.0, 11)[:, None]
            self._record_speeds(before + share * (out.q - before), limits)
        self.rates.append(self.controller._tracker.limiter.rate)

    def _record_speeds(self, path, limits):
        if len(path) > 1:
            speeds = fine_speeds(np.array(path), 0.1 * self.dt) / limits
            self.worst = np.maximum(self.worst, speeds.max(axis=0))


@pytest.mark.parametrize("limits", [
    {"acceleration": 5.0}, {"acceleration": 5.0, "jerk": 50.0}, {"acceleration": 8.0, "jerk": 500},
])  # fmt: skip
@pytest.mark.parametrize("share_late", [0.0, 0.05])
def test_paths_and_stops_keep_tip_speed_limits(limits, share_late):
    """Checks steps of a tenth of a period; cycles are late by up to two periods."""
    rng, speeds = np.random.default_rng(7), np.array([0.25, 0.8])
    followed = Followed(0.01, max_linear_speed=speeds[0], max_angular_speed=speeds[1], **limits)
    controller = followed.controller
    for k in range(400):
        now = followed.now
        if k % 40 == 0:
            kind = k // 40 % 3
            V, goal = rng.normal(size=6) * 2.0, WAM.fk(WAM.random(rng=rng))
            near = WAM.fk(controller.command + np.cumsum(rng.normal(0, 0.2, (4, WAM.n)), axis=0))
        if kind == 0:
            controller.follow_twist(V, now)
        elif k % 40 == 0 and kind == 1:
            controller.follow_pose(goal, now)
        elif k % 40 == 0:
            controller.follow_trajectory(near, 0.2, now)
        is_late = rng.random() < share_late
        followed.cycle(followed.dt * rng.uniform(0.0, 2.0) if is_late else 0.0, speeds)
    assert (followed.worst <= 1.0 + 1e-6).all()
    assert followed.worst.max() > 0.98, "the speed limits are used"


def test_motion_at_the_tip_speed_limit_is_smooth():
    """The command does not alternate between the speed limit and the stop."""
    for jerk in (np.inf, 50.0):
        followed = Followed(0.01, max_linear_speed=0.25, acceleration=5.0, jerk=jerk)
        followed.controller.follow_pose(WAM.fk(BENT + np.array([0.9, 0.3, 0, -0.4, 0, 0, 0])), 0.0)
        for _ in range(120):
            followed.cycle(0.0, np.array([0.25, np.inf]))
        a = np.diff(followed.rates[40:110], axis=0) / followed.dt
        jumps = np.abs(np.diff(a, axis=0)).max(axis=1)
        assert followed.worst[0] > 0.98
        assert (jumps > 1.0).mean() < 0.1


def send_random_target(drive, rng):
    """Send a random pose, twist or trajectory; distant poses need joint motion."""
    kind = rng.integers(4)
    if kind == 0:
        drive.pose(WAM.fk(WAM.random(rng=rng)))
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
def test_commands_keep_tip_speed_limits(limits):
    rng = np.random.default_rng(3)
    drive = Drive(BENT, max_linear_speed=0.25, max_angular_speed=0.8, **limits)
    drive.run(0.01)
    for _ in range(12):
        send_random_target(drive, rng)
    linear, angular = tip_speeds(drive.q, drive.dt)
    assert linear.max() <= 0.25 * (1 + 1e-9)
    assert angular.max() <= 0.8 * (1 + 1e-9)
    assert linear.max() > 0.24
    drive.assert_limits(**limits)


@pytest.mark.parametrize("jerk", [np.inf, 100.0])
def test_lower_tip_speed_is_exceeded_only_along_the_stop_in_flight(jerk):
    rng, dt, limits = np.random.default_rng(8), 0.01, {"acceleration": 5.0, "jerk": jerk}
    controller, now = Controller(WAM, **limits), 0.0
    controller.seed(BENT)
    braking = 0  # number of cycles in which the stop exceeds the new limits
    for linear, angular in [(np.inf, np.inf), (0.1, 0.3)] * 15:
        stop = controller.stop_path(dt)
        changed = Controller(WAM, max_linear_speed=linear, max_angular_speed=angular, **limits)
        changed.take_over(controller)
        controller, q, V, follows = changed, stop.q, rng.normal(size=6), True
        for k in range(1, 41):
            now += dt
            controller.follow_twist(V, now)
            before, q = q, controller.cycle(now, dt).q
            follows = follows and np.abs(stop.at(np.array([k * dt]))[0][0] - q).max() < 1e-9
            speeds = tip_speeds(np.array([before, q]), dt)
            share = max(speeds[0][0] / linear, speeds[1][0] / angular)
            assert follows or share <= 1.0 + 1e-9
            braking += follows and share > 1.0
    assert braking > 20


def test_fast_twist_keeps_direction_at_the_speed_limit():
    drive = Drive(BENT, acceleration=20.0, max_linear_speed=0.1)
    drive.run(0.5, lambda drive: drive.twist([0.3, 0, 0.4, 0, 0, 0], R=np.eye(3)))
    moved = WAM.fk(drive.last.q)[:3, 3] - WAM.fk(BENT)[:3, 3]
    speed = np.linalg.norm(np.diff(WAM.fk(drive.q[-10:])[:, :3, 3], axis=0), axis=1) / drive.dt
    np.testing.assert_allclose(moved / np.linalg.norm(moved), [0.6, 0.0, 0.8], atol=0.02)
    np.testing.assert_allclose(speed, 0.1, rtol=5e-3)


def test_long_motion_uses_the_speed_limit():
    drive = Drive(BENT, acceleration=10.0, max_linear_speed=0.2)
    goal = WAM.fk(BENT + np.array([0.8, 0, 0, 0, 0, 0, 0]))
    drive.pose(goal)
    assert drive.run_until(ServoState.REACHED, 20.0)
    distance = np.linalg.norm(goal[:3, 3] - WAM.fk(BENT)[:3, 3])
    assert drive.now <= 1.25 * distance / 0.2 + 0.5


@pytest.mark.parametrize("jerk", [np.inf, 100.0])
def test_scale_applies_to_velocity_and_acceleration(jerk):
    drive = Drive(BENT, acceleration=8.0, jerk=jerk, scale=0.25)
    drive.pose(WAM.fk(BENT + 0.5))
    assert drive.run_until(ServoState.REACHED, 30.0)
    v = np.diff(drive.q, axis=0) / drive.dt
    assert (np.abs(v) <= 0.25 * WAM.velocity * (1 + 1e-9)).all()
    assert (np.abs(np.diff(v, axis=0)) / drive.dt <= 2.0 * (1 + 1e-6)).all()


@pytest.mark.parametrize("jerk", [np.inf, 200.0])
def test_scale_change_causes_no_jump(jerk):
    """Scale changes to 0 and back during a motion keep all limits; the target is reached."""
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
def test_invalid_speeds_and_scales_raise(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        Controller(WAM, **wrong)
