# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the running node with a required driver, without which no command is published."""

import numpy as np
import pytest
from ros_streamer import HOME, Driver
from ros_wam import WAM
from ros_watched import Watched, pose, shifted, twist

pytestmark = [pytest.mark.ros, pytest.mark.slow]

START = HOME + 0.05
TIMEOUT = 10.0  # [s] longer than the processes of this test are suspended on a busy machine
REPEATS = 10  # publications after which no further command is on its way to the driver
FAR = 1.5 * np.eye(WAM.n)[0]  # [rad] turned about the base


class Arm(Driver):
    """A driver that is at each command at the time of this command, unless it is stuck.

    A position with a later time would be that of an arm that lags, by as much as this process does.
    A node that publishes no commands hears that the arm is still at the last one.
    """

    def __init__(self, arm, values):
        super().__init__(arm.client, WAM.joint_names, values)
        self._arm, self.stuck = arm, False
        self._last, self._repeated = None, 0  # last command, and how often it was published

    def _publish(self):
        last = next(iter(self._arm.commands[-1:]), None)
        self._repeated = self._repeated + 1 if last is self._last else 0
        self._last = last
        if last is not None and not self.stuck:
            self.message.position = last.position
        super()._publish()

    def _measured_at(self):
        if self.stuck or self._last is None or self._repeated >= REPEATS:
            return super()._measured_at()
        return self._last.header.stamp


def test_node_waits_for_a_required_driver_and_recovers_from_its_faults():
    limits = {"measurement_timeout": TIMEOUT, "max_deviation": 0.5}
    with Watched("required", feedback_mode="required", **limits) as arm:
        waits_faults_and_recovers(arm)
        assert "Traceback" not in arm.node.output, arm.node.output
        assert arm.node.end() == 0


def waits_faults_and_recovers(arm):
    arm.says("waiting for joint states", "/required/joint_states")
    arm.stream(lambda _: twist((0.0, 0.2, 0.0)), 0.2)
    arm.client.spin_for(0.5)
    assert arm.pause().success
    arm.says("paused")
    arm.answers(lambda: arm.send(pose(shifted(0.0, 0.1, 0.0))), "paused", "target ignored")
    assert arm.pause(False).success
    arm.says("waiting for joint states")
    assert not arm.commands

    driver = Arm(arm, START)
    arm.says("no target yet")
    arm.client.spin_for(0.5)
    assert not arm.commands, "neither a twist of long ago nor a target of a pause moves it"
    T = WAM.fk(START).copy()
    T[:3, 3] += 0.0, 0.2, 0.0
    arm.goes(T)
    arm.assert_calm(start=START)

    driver.stop()
    arm.says("fault", "no joint states", f"{TIMEOUT:g} s")
    arm.node.wait_for_line("no joint states")
    arm.stands()
    held = arm.q
    arm.answers(lambda: arm.send(pose(T)), "fault", "target ignored")
    driver = Arm(arm, START)
    arm.client.spin_for(0.3)
    np.testing.assert_array_equal(arm.q, held)
    arm.assert_calm()

    assert arm.reset().success
    arm.says("no target yet")
    driver.message.position = START.tolist()
    del arm.heard[:]
    arm.client.spin_for(0.5)
    arm.goes(T)
    arm.assert_calm()

    driver.stuck = True
    arm.answers(
        lambda: arm.send_alone(pose(WAM.fk(HOME + FAR))), "fault", "max_deviation", "commanded "
    )
    arm.stands()
    arm.assert_calm()
    driver.stuck = False
    arm.client.spin_for(0.3)
    assert arm.reset().success
    arm.says("no target yet")
    arm.goes(WAM.fk(HOME))
    arm.assert_calm()
