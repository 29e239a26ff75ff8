# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The path of joint_trajectory_controller through the published points keeps all limits."""

import numpy as np
import pytest
from jtc import TrajectoryController
from ros_world import controlled

from dls_ik.ros.servo.outputs import JointTrajectoryOutput, OutputSpec
from dls_ik.ros.servo.target_buffer import Arrival

A = 8.0  # [rad/s^2]
TOLERANCE = 0.01  # share of velocity and acceleration


class Path:
    """A world whose messages a joint_trajectory_controller follows."""

    def __init__(self, world, rate, count):
        self.world, self.period, self.count = world, 1.0 / rate, count
        self.output = JointTrajectoryOutput(OutputSpec(world.robot.joint_names, self.period))
        self.arm, self.sizes, self.stop = TrajectoryController(world.arm.start), [], None

    def cycle(self, gap, target, is_withdrawn=False):
        """Run a cycle `gap` [s] after the last one, and send its command or withdraw it."""
        world, sent = self.world, self.world.last
        world.now += gap
        outcome = world.cycle(target and Arrival(target, world.now, 1), 0)
        if not outcome.is_command:
            self.stop = None
            return outcome
        if is_withdrawn:
            world.stream.roll_back(self.stop)
            world.last = sent
            return outcome
        controller = world.stream._arm.controller
        self.stop = controller.stop_path(self.period)
        knots = controller.trajectory(self.period, self.count)
        message = self.output.fill(outcome.output.q, outcome.output.velocity, 0, knots)
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
        q, v = (np.array([list(x) for x in rows]) for rows in zip(
            *((p.positions, p.velocities) for p in message.points), strict=True))  # fmt: skip
        self.arm.receive(world.now, times, q, v if v.size else None)
        self.sizes.append(len(times))
        return outcome

    def excess(self):
        """Largest velocity and acceleration as shares of the limits."""
        velocity = (self.arm.velocity / self.world.robot.velocity).max()
        return velocity, self.arm.acceleration.max() / A


def gaps(rng, period, count):
    """Times between cycles: most with a jitter of a quarter of a period, some late, a few more."""
    even = period * np.where(rng.random(count) < 0.5, 1.0, rng.uniform(0.75, 1.25, count))
    late = period * rng.uniform(1.0, 3.0, count)
    gap = np.where(rng.random(count) < 0.05, late, even)
    return np.where(rng.random(count) < 0.01, rng.uniform(0.05, 0.15, count), gap)


@pytest.mark.parametrize("count", [0, 30])
@pytest.mark.parametrize("is_late", [False, True], ids=["even", "late"])
@pytest.mark.parametrize(
    ("jerk", "rate", "cycles"),
    [
        ([], 100.0, 600), ([], 500.0, 600), ([80.0], 100.0, 600), ([1000.0], 100.0, 600),
        ([20.0], 250.0, 1000),
    ],
)  # fmt: skip
def test_cubic_interpolation_of_points_keeps_all_limits(
    monkeypatch, jerk, rate, cycles, is_late, count
):
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    parameters = {"feedback_mode": "none", "acceleration": [A], "jerk": jerk, "rate": rate}
    world = controlled(monkeypatch, has_stop_trajectory=True, **parameters)
    rng = np.random.default_rng(int(rate) + count)
    path, goal = Path(world, rate, count), world.robot.random(rng=rng)
    for gap in gaps(rng, path.period, cycles):
        if rng.random() < 0.03:  # far away, and now and then at a limit
            goal = np.where(rng.random(2) < 0.5, world.robot.random(rng=rng), world.robot.upper)
        path.cycle(gap if is_late else path.period, world.target(goal))
    velocity, acceleration = path.excess()
    assert velocity <= 1.0 + TOLERANCE
    assert acceleration <= 1.0 + TOLERANCE
    assert acceleration > 0.9, "the arm used its limits"


def gaps_with_withdrawn_commands(rng, period, count):
    """Times between cycles, and whether the command of each is withdrawn.

    Some cycles are early by a small or a large share of a period; withdrawn ones come sooner.
    """
    early = period * (1.0 - 10.0 ** rng.uniform(-2.0, -0.3, count))
    gap = np.where(rng.random(count) < 0.4, early, gaps(rng, period, count))
    is_withdrawn = rng.random(count) < 0.1
    is_withdrawn[0] = False
    return np.where(is_withdrawn, period * rng.uniform(0.05, 1.5, count), gap), is_withdrawn


@pytest.mark.parametrize("jerk", [[], [80.0], [1000.0]])
def test_cubic_interpolation_keeps_limits_after_withdrawn_commands(monkeypatch, jerk):
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    rate = 100.0
    parameters = {"feedback_mode": "none", "acceleration": [A], "jerk": jerk, "rate": rate}
    world = controlled(monkeypatch, has_stop_trajectory=True, **parameters)
    rng = np.random.default_rng(7)
    path, goal = Path(world, rate, 0), world.robot.random(rng=rng)
    for gap, is_withdrawn in zip(
        *gaps_with_withdrawn_commands(rng, path.period, 1500), strict=True
    ):
        if rng.random() < 0.03:
            goal = np.where(rng.random(2) < 0.5, world.robot.random(rng=rng), world.robot.upper)
        path.cycle(gap, world.target(goal), is_withdrawn)
    velocity, acceleration = path.excess()
    assert velocity <= 1.0 + TOLERANCE
    assert acceleration <= 1.0 + TOLERANCE
    assert acceleration > 0.9, "the arm used its limits"
