"""What goes out of a stream whose cycles are late: every command, and the stop behind each."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
pytest.importorskip("ruckig", reason="needs ruckig")

from commands import Limits, tail_violations, violations
from robots import URDF
from ros_world import controlled

from dls_ik import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.servo.outputs import JointTrajectoryOutput, OutputSpec
from dls_ik.ros.servo.pacing import LATE
from dls_ik.ros.servo.targets import Arrival

A = 8.0  # [rad/s^2]


def due(message):
    """Times from its sending (k,), positions and velocities (k, n) of the points of a message."""
    starts = [p.time_from_start for p in message.points]
    times = np.array([s.sec + 1e-9 * s.nanosec for s in starts])
    return times, *(
        np.array([getattr(p, f) for p in message.points]) for f in ("positions", "velocities")
    )


class Sent:
    """Commands of a world with the times that they are due, and the trajectories behind them."""

    def __init__(self, world, rate, points):
        self.world, self.period = world, 1.0 / rate
        self.output = JointTrajectoryOutput(
            OutputSpec(world.robot.joint_names, self.period, points)
        )
        self.times, self.q, self.found = [], [], []
        self.stop = None

    def cycle(self, gap, arrival, limits):
        world = self.world
        world.now += gap
        outcome = world.cycle(arrival and Arrival(arrival, world.now, 1), 0)
        if not outcome.is_command:
            self.stop = None
            return
        out = outcome.output
        if self.stop is not None and gap > LATE * self.period:  # the arm is on its last stop
            self.times.append(world.now)
            self.q.append(self.stop.at(np.array([gap - self.period]))[0][0])
        self.stop = stop = world.stream._arm.controller.stop_path(self.period)
        times, *rows = due(self.output.fill(out.q, out.velocity, 0, stop))
        before = (np.array(self.times[-3:]), np.reshape(self.q[-3:], (-1, len(out.q))))
        self.found += tail_violations(before, (world.now + times, *rows), limits)
        np.testing.assert_allclose(rows[0][0], out.q, atol=1e-10)
        assert world.robot.within_limits(rows[0]).all()
        self.times.append(world.now + self.period)
        self.q.append(out.q)


def gaps(rng, period, count):
    """Times between cycles: most as they should be, some late, a few very late."""
    even = period * rng.uniform(0.9, 1.25, count)
    late = period * rng.choice([1.3, 2.0, 5.0, 20.0], count) * rng.uniform(0.9, 1.1, count)
    gap = np.where(rng.random(count) < 0.1, late, even)
    return np.where(rng.random(count) < 0.003, 0.5, gap)


@pytest.mark.parametrize(("jerk", "rate", "points"), [
    ([], 100.0, 30), ([], 500.0, 8), ([20.0], 500.0, 100), ([20.0], 100.0, 60),
    ([80.0], 500.0, 100), ([200.0], 250.0, 20), ([1000.0], 100.0, 25),
])  # fmt: skip
def test_late_cycles_lead_no_command_and_no_stop_beyond_a_limit(monkeypatch, jerk, rate, points):
    parameters = {"feedback_mode": "none", "acceleration": [A], "jerk": jerk, "rate": rate}
    world = controlled(monkeypatch, has_stop_trajectory=True, **parameters)
    rng = np.random.default_rng(int(rate) + points)
    limits = Limits.of(world.robot, A, *jerk)
    sent = Sent(world, rate, points)
    goal = world.robot.random(rng)
    for gap in gaps(rng, 1.0 / rate, 3000):
        if rng.random() < 0.02:  # far away, so that the arm is fast, and now and then at a limit
            goal = np.where(rng.random(2) < 0.5, world.robot.random(rng), world.robot.upper)
        sent.cycle(gap, world.target(goal), limits)
    assert len(sent.q) > 2000
    assert np.ptp(sent.q, axis=0).min() > 1.0
    assert not violations(sent.times, sent.q, limits)
    assert not sent.found, sent.found[:3]


@pytest.mark.parametrize("jerk", [[], [80.0]])
@pytest.mark.parametrize("what", ["velocity", "position"])
def test_a_description_with_narrower_limits_is_obeyed_within_the_others(monkeypatch, jerk, what):
    parameters = {"feedback_mode": "none", "acceleration": [A], "jerk": jerk, "rate": 100.0}
    world = controlled(monkeypatch, **parameters)
    times, commands = [], []

    def run(cycles, target=None):
        for _ in range(cycles):
            outcome = world.run(target=target)
            times.append(world.now)
            commands.append(outcome.output.q)

    run(100, world.target([0.2, 0.3]))
    run(1, world.target([2.5, 1.5]))
    while np.abs(world.arm.controller.velocity).max() < 1.5:
        assert len(commands) < 300, "it is not fast enough"
        run(1)
    if what == "velocity":
        text = (URDF / "planar_2r.urdf").read_text()
        robot = RobotModel.from_urdf(text.replace('velocity="2.0"', 'velocity="0.3"'))
    else:  # room to stop in, also from where it speeds up
        robot = world.robot.narrowed(-np.pi, commands[-1] + 0.8)
    world.stream.use(Arm(robot, world.arm.parameters))
    run(300)
    assert not violations(times, commands, Limits.of(world.robot, A, *jerk))
    assert robot.within_limits(np.array(commands[-1]))
    if what == "velocity":
        assert np.abs(np.diff(commands[-100:], axis=0)).max() <= 0.3 * 0.01 * (1.0 + 1e-6)
