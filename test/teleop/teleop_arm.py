# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""An arm that a Controller moves as Teleop says, with a clock that the test turns."""

from dataclasses import replace

import numpy as np

from dls_ik import RobotModel
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.servo import Controller
from dls_ik.teleop import DeviceState, Teleop, load_config

WAM = RobotModel.wam()
HOME = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
DT, ACCELERATION = 0.02, 8.0


def pose(x=0.0, y=0.0, z=0.0, rpy=(0.0, 0.0, 0.0)):
    return transform(rotation_from_rpy(*rpy), np.array([x, y, z]))


class Arm:
    """Controller, teleoperation and clock of one test."""

    def __init__(self, device, **changes):
        self.config = replace(load_config(device), **changes)
        self.teleop = Teleop(self.config)
        self.controller = Controller(WAM, acceleration=ACCELERATION)
        self.controller.seed(HOME)
        self.now, self.poses = 10.0, 0
        self.commands, self.results = [HOME], []

    @property
    def tip(self):
        return WAM.fk(self.commands[-1])

    def step(self, state=None, problem="", clock=DT):
        """Run one cycle, and return the result of the teleoperation."""
        self.now += clock
        state = DeviceState(self.now) if state is None else state
        result = self.teleop.step(state, self.tip, self.now, problem)
        if result.twist is not None:
            self.controller.follow_twist(result.twist, self.now, np.eye(3))
        if result.pose is not None:
            self.controller.follow_pose(result.pose, self.now)
        out = self.controller.cycle(self.now, DT)
        self.commands.append(out.q.copy())
        self.results.append(result)
        return result

    def jog(self, axes, pressed, steps=1, **more):
        for _ in range(steps):
            now = self.now + DT
            result = self.step(DeviceState(now, axes, frozenset(pressed)), **more)
        return result

    def move(self, T, pressed, steps=1, **more):
        for _ in range(steps):
            self.poses += 1
            now = self.now + DT
            state = DeviceState(now, {}, frozenset(pressed), np.array(T), self.poses)
            result = self.step(state, **more)
        return result

    def rest(self, steps=60):
        """Read an idle device until the arm rests."""
        for _ in range(steps):
            self.step()
        assert not self.controller.moves

    def speeds(self, since=0):
        return np.diff(np.array(self.commands[since:]), axis=0) / DT

    def assert_calm(self):
        """Check that velocity and acceleration limits of all joints hold."""
        v = self.speeds()
        assert (np.abs(v) <= WAM.velocity + 1e-9).all()
        assert np.abs(np.diff(v, axis=0, prepend=0.0)).max() <= ACCELERATION * DT + 1e-9
