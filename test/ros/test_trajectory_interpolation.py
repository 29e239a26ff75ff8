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
        self.arm, self.sizes = TrajectoryController(world.arm.start), []

    def cycle(self, gap, target):
        """Run a cycle `gap` [s] after the last one, and send its command."""
        world = self.world
        world.now += gap
        outcome = world.cycle(target and Arrival(target, world.now, 1), 0)
        if not outcome.is_command:
            return outcome
        controller = world.stream._arm.controller
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
    ("jerk", "rate"),
    [([], 100.0), ([], 500.0), ([80.0], 100.0), ([1000.0], 100.0), ([20.0], 250.0)],
)
def test_no_cubic_needs_more_than_the_limits(monkeypatch, jerk, rate, is_late, count):
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    parameters = {"feedback_mode": "none", "acceleration": [A], "jerk": jerk, "rate": rate}
    world = controlled(monkeypatch, has_stop_trajectory=True, **parameters)
    rng = np.random.default_rng(int(rate) + count)
    path, goal = Path(world, rate, count), world.robot.random(rng)
    for gap in gaps(rng, path.period, 1000):
        if rng.random() < 0.03:  # far away, and now and then at a limit
            goal = np.where(rng.random(2) < 0.5, world.robot.random(rng), world.robot.upper)
        path.cycle(gap if is_late else path.period, world.target(goal))
    velocity, acceleration = path.excess()
    assert velocity <= 1.0 + TOLERANCE
    assert acceleration <= 1.0 + TOLERANCE
    assert acceleration > 0.9, "the arm used its limits"
