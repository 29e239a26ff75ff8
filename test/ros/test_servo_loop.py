# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cycles that fail or whose command is not published; robots that are replaced in motion."""

import time

import numpy as np
import pytest
from robots import URDF, joint, urdf
from sensor_msgs.msg import JointState

from dls_ik import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.loop import ServoLoop

pytestmark = pytest.mark.ros

DT, RATE, ACCELERATION = 0.01, 100.0, 4.0
PLANAR = RobotModel.from_urdf(URDF / "planar_2r.urdf")
GIVEN = {
    "rate": RATE,
    "acceleration": [ACCELERATION],
    "output_type": ["joint_trajectory"],
    "trajectory_points": 50,
    "feedback_mode": "none",
}


class Cycles:
    """Loop of a node, whose cycles the test runs, with its published commands."""

    def __init__(self, node, **given):
        self.parameters = Parameters().changed({**GIVEN, **given})
        self.loop = ServoLoop(node, self.parameters, Frames())
        self.sent, self.is_failing = [], ""
        self._publish = self.loop._outputs.publish
        self.loop._outputs.publish = self._take
        self.now = time.monotonic()
        self.gap = 0.0

    def _take(self, q, velocity, stamp, knots=None, *rest):
        if self.is_failing == "output":
            raise RuntimeError("no room")
        self._publish(q, velocity, stamp, knots, *rest)
        stop = self.loop.cycle._arm.controller.stop_path(DT)
        self.sent.append((self.now, q.copy(), velocity.copy(), stop))

    def run(self, cycles=1):
        """Run cycles, each as if it started in time."""
        for _ in range(cycles):
            self.now += DT
            self.gap += DT
            begin = time.monotonic()  # the loop measures the lateness of a cycle by this clock
            self.loop.cycle.is_too_late = lambda report, age: self.is_failing == "late"
            if self.loop._run_cycle(self.now, round(1e9 * begin), self.gap, None):
                self.gap = 0.0

    def follow(self, q):
        """Move to the pose of joint positions q."""
        arm = self.loop.cycle._next
        self.loop.cycle.submit(lambda made: made.follow_pose(arm.robot.fk(np.array(q)), self.now))


@pytest.fixture
def cycles(node):
    made = Cycles(node)
    made.loop.use(Arm(PLANAR, made.parameters))
    made.run()
    made.follow([1.5, 1.0])
    made.run(20)
    assert np.abs(made.sent[-1][2]).max() > 0.3
    return made


def assert_continues(cycles, count):
    """Assert that the command after `count` cycles without one continues on the last stop."""
    sent_at, _, _, stop = cycles.sent[-1]
    cycles.run()
    now, q, velocity, _ = cycles.sent[-1]
    assert now - sent_at == pytest.approx((count + 1) * DT)
    before, v, _ = stop.at(np.array([now - sent_at]) - DT)
    np.testing.assert_allclose(q, before[0] + velocity * DT, atol=2.0 * ACCELERATION * DT**2)
    assert np.abs(velocity - v[0]).max() <= 2.0 * ACCELERATION * DT + 1e-9


@pytest.mark.parametrize("where", ["output", "late", "cycle", "controller"])
@pytest.mark.parametrize("count", [1, 12])
def test_after_failed_cycles_the_arm_continues_from_its_position(cycles, monkeypatch, where, count):
    """Failures occur before or after the command is computed, in one or several cycles."""
    cycles.is_failing = where
    controller = cycles.loop.cycle._arm.controller
    with monkeypatch.context() as patch:
        if where == "cycle":
            patch.setattr(cycles.loop.cycle, "_report", failing)
        if where == "controller":
            patch.setattr(controller, "_held_output", failing)
            patch.setattr(controller, "_tracking_output", failing)
        before = len(cycles.sent)
        cycles.run(count)
        assert len(cycles.sent) == before
    cycles.is_failing = ""
    assert_continues(cycles, count)


def failing(*_):
    raise RuntimeError("a cycle fails")


def test_a_failure_after_the_command_is_published_does_not_roll_it_back(cycles, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(cycles.loop.monitor, "publish", failing)
        cycles.run(3)
    (then, before, _, _), (now, after, w, _) = cycles.sent[-2:]
    assert now - then == pytest.approx(DT)
    np.testing.assert_allclose(after, before + w * DT, atol=1e-9)


def test_a_late_command_of_a_new_arm_with_the_same_joints_is_rolled_back(cycles):
    """Switching arms takes time, so that the first cycle of the new arm may be late."""
    arm = cycles.loop.cycle._arm
    faster = cycles.parameters.changed({"max_linear_speed": 5.0})
    cycles.loop.use(arm.changed(faster))
    cycles.is_failing = "late"
    cycles.run(2)
    assert cycles.loop.cycle._arm.controller is not arm.controller
    cycles.is_failing = ""
    assert_continues(cycles, 2)


def test_a_target_that_cannot_be_applied_fails_once(cycles, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("dls_ik.ros.servo.cycle.apply_target", failing)
        cycles.loop.targets.store(JointState())
        arrival = cycles.loop.targets.take()
        cycles.now += DT
        assert not cycles.loop._run_cycle(cycles.now, 0, DT, arrival)
        cycles.gap = DT
        cycles.run(2)
    assert "internal error" in cycles.loop.monitor.report.message
    cycles.run(100)
    assert not cycles.sent[-1][2].any()


def other(name):
    """Return a robot with a joint of this name."""
    return RobotModel.from_urdf(
        urdf(f"{name}0 {name}1", joint(name, "revolute", f"{name}0", f"{name}1"))
    )


def test_joint_states_of_a_stopping_arm_are_stored_however_many_robots_follow(node):
    made = Cycles(node, feedback_mode="required")
    made.loop.use(Arm(PLANAR, made.parameters))
    made.run()
    for name in ("a", "b", "c"):
        made.loop.use(Arm(other(name), made.parameters))
    message = JointState(name=[*PLANAR.joint_names], position=[0.1, 0.2])
    made.loop._states.store(message)
    assert made.loop._states.values() == {"joint1": 0.1, "joint2": 0.2}


def test_drives_of_an_arm_stop_before_an_arm_with_other_joints_starts(node, monkeypatch):
    """The command rests, but the drives still correct a drift when the robot changes."""
    cycles = Cycles(node, output_type=["velocity_array"])
    cycles.loop.use(Arm(PLANAR, cycles.parameters))
    cycles.run()
    cycles.follow([0.1, 0.1])
    cycles.run(100)
    outputs, sent = cycles.loop._outputs, []
    publish, publish_drive = outputs.publish, outputs.publish_drive

    def take(q, velocity, stamp, knots=None, drive=None):
        sent.append(drive.copy())
        publish(q, velocity, stamp, knots, drive)

    def take_drive(drive):
        sent.append(drive.copy())
        publish_drive(drive)

    monkeypatch.setattr(outputs, "publish", take)
    monkeypatch.setattr(outputs, "publish_drive", take_drive)
    controller = cycles.loop.cycle._arm.controller
    monkeypatch.setattr(controller, "deviation", lambda now: np.array([0.1, -0.1]))
    cycles.run(20)
    assert not controller.moves
    assert np.abs(sent[-1]).min() == pytest.approx(0.2), "the correction of the drift"
    wam = Arm(RobotModel.wam(), cycles.parameters)
    cycles.loop.use(wam)
    for _ in range(20):
        if cycles.loop.cycle._arm is wam:
            cycles.follow(wam.controller.command + 0.1)
        cycles.run()
    sizes = [len(each) for each in sent]
    assert set(sizes) == {2, 7}
    old = np.array(sent[: sizes.index(7)])
    assert not old[-1].any(), "the drives of the previous arm stand still"
    assert np.abs(np.diff(old, axis=0)).max() <= ACCELERATION * DT * (1 + 1e-9)
