# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Controller that runs cycle by cycle, and the limits of its commands."""

import numpy as np

from dls_ik import RobotModel
from dls_ik.servo import Controller

DT = 0.01
WAM = RobotModel.wam()
BENT = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])


class Drive:
    """Controller with its own clock and the outputs of all cycles."""

    def __init__(self, q, robot=WAM, method=None, dt=DT, now=0.0, executor=None, **options):
        self.controller = Controller(robot, method, executor, **options)
        self.controller.seed(q)
        self.dt, self.now = dt, now
        self.start = self.controller.command
        self.outputs = []

    @property
    def last(self):
        return self.outputs[-1]

    @property
    def q(self):
        """Start and all later commands (cycles + 1, n)."""
        return np.array([self.start, *(out.q for out in self.outputs)])

    @property
    def states(self):
        return [out.state for out in self.outputs]

    def pose(self, T, **given):
        self.controller.follow_pose(T, self.now, **given)
        return self

    def twist(self, V, **given):
        self.controller.follow_twist(V, self.now, **given)
        return self

    def trajectory(self, Ts, period, **given):
        self.controller.follow_trajectory(Ts, period, self.now, **given)
        return self

    def run(self, seconds, each=None, measured=None):
        """Run cycles, with `each` called before every cycle, and return their outputs."""
        first = len(self.outputs)
        for _ in range(max(round(seconds / self.dt), 1)):
            self.now += self.dt
            if each is not None:
                each(self)
            seen = measured(self) if callable(measured) else measured
            self.outputs.append(self.controller.cycle(self.now, self.dt, seen))
        return self.outputs[first:]

    def run_until(self, state, seconds):
        """Run cycles until a state with the arm at rest, and return whether it was reached."""
        for _ in range(round(seconds / self.dt)):
            self.run(self.dt)
            if self.last.state is state and not self.last.velocity.any():
                return True
        return False

    def assert_limits(self, acceleration=np.inf, jerk=np.inf):
        assert_limits(self.controller.robot, self.q, self.dt, acceleration, jerk)
        v = np.diff(self.q, axis=0) / self.dt
        np.testing.assert_allclose([out.velocity for out in self.outputs], v, atol=1e-9 / self.dt)


def assert_limits(robot, q, dt, acceleration=np.inf, jerk=np.inf, v=0.0):
    """Check that no command (m, n) exceeds a limit, or moves farther beyond one.

    Args:
        dt: [s], one for all cycles or one for each of the m - 1.
        v: (n,) velocity with which the first one is passed.
    """
    assert np.isfinite(q).all()
    low, high = np.minimum(q[:-1], robot.lower), np.maximum(q[:-1], robot.upper)
    assert ((q[1:] >= low) & (q[1:] <= high)).all()
    dt = np.broadcast_to(dt, len(q) - 1)[:, None]
    rounding = 4e-16 * (1.0 + np.abs(q[1:])) / dt
    velocity = np.diff(q, axis=0) / dt
    assert (np.abs(velocity) <= robot.velocity * (1 + 1e-9) + rounding).all()
    a = np.diff(np.vstack([np.broadcast_to(v, robot.n), velocity]), axis=0) / dt
    rounding = 4 * rounding.max() / dt
    assert (np.abs(a) <= np.multiply(acceleration, 1 + 1e-9) + rounding).all()
    if np.isfinite(jerk).all():
        third = np.diff(a, axis=0, prepend=0.0 * a[:1]) / dt
        assert (np.abs(third) <= np.multiply(jerk, 1 + 1e-6) + 4 * rounding / dt).all()


def reversals(q, dt=DT, slowest=0.2):
    """Return the maximum number of reversals of a joint, between noticeable speeds."""
    v = np.diff(q, axis=0) / dt
    most = 0
    for j in range(v.shape[1]):
        signs = np.sign(v[np.abs(v[:, j]) > slowest, j])
        most = max(most, int((signs[1:] * signs[:-1] < 0).sum()))
    return most


def tip_speeds(robot, q, dt=DT):
    """Return the speeds of the tip between cycles [m/s]."""
    return np.linalg.norm(np.diff(robot.fk(q)[:, :3, 3], axis=0), axis=1) / dt


def wild_reference(rng, robot, q):
    """Return a random reference: inside the limits, near, at a limit, or absurd."""
    kind = rng.integers(5)
    if kind == 0:
        return robot.random(rng=rng)
    if kind == 1:
        return q + rng.normal(size=robot.n) * 1e-3
    if kind == 2:
        return np.where(np.isfinite(robot.upper), robot.upper, 1.0)
    if kind == 3:
        return rng.choice([-1e6, 1e6], robot.n)
    return robot.clip(np.zeros(robot.n))
