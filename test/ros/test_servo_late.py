# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Late cycles: commands continue from the position of the arm, and old messages are ignored."""

import math
import time

import numpy as np
import pytest
from commands import Limits, tail_violations, violations
from robots import URDF
from ros_streamer import points
from ros_world import DT, controlled, near

from dls_ik import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.servo.cycle import MAY_BE_OLD
from dls_ik.ros.servo.freshness import DRAIN_TIME, READING_TIMEOUT, transit_time
from dls_ik.ros.servo.outputs import JointTrajectoryOutput, OutputSpec
from dls_ik.ros.servo.target_buffer import Arrival
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.knots import EARLIEST

STALL = 2.0  # [s]


@pytest.fixture
def world(monkeypatch):
    return controlled(monkeypatch, feedback_mode="none", acceleration=[4.0])


def moving(world):
    """Return the outcome of a cycle during the motion to a single pose."""
    return world.run(20, target=None) if world.stream.moves else _begun(world)


def _begun(world):
    world.run(target=world.target([1.5, 1.0]))
    outcome = world.run(20)
    assert np.abs(outcome.output.velocity).max() > 0.3
    return outcome


def arrives(world, target, sent, lag=math.inf):
    """Run a cycle with a target that was sent `sent` [s] ago by the clock of its publisher."""
    world.now += DT
    clock = time.time_ns()
    delay = transit_time(clock - round(1e9 * sent), clock, lag)
    arrival = Arrival(target, world.now, 1, delay)
    return world.cycle(arrival, 0)


def test_after_a_stall_no_command_is_sent_at_first_and_the_arm_starts_at_rest(world):
    before = moving(world).output.q
    world.now += STALL
    outcome = world.run()
    assert (outcome.output, outcome.state, outcome.is_command) == (None, ServoState.STALE, False)
    assert any("stalled for 2" in line for line in world.node.lines)
    assert not world.run(int(0.9 * DRAIN_TIME / DT) - 1).is_command
    after = world.run(3).output
    assert after.q == near(before, 2.0 * 3 * DT)
    assert np.abs(after.velocity).max() <= 4.0 * 3 * DT + 1e-9
    assert world.run(400).output.q == near([1.5, 1.0], 1e-4), "the single pose does not time out"


OTHER_CLOCK = 5000.0  # [s] difference of the clock of a publisher


@pytest.mark.parametrize(
    ("sent", "lag", "is_followed"),
    [
        (1.5, math.inf, False),
        (0.05, math.inf, True),
        (-5.0, math.inf, False),
        (OTHER_CLOCK + 1.5, 1.5, False),
        (OTHER_CLOCK + 0.05, 0.05, True),
    ],
)
def test_a_target_that_was_queued_during_a_stall_is_ignored(world, sent, lag, is_followed):
    moving(world)
    world.now += STALL
    arrives(world, world.target([0.2, 0.9]), sent, lag)
    goal = [0.2, 0.9] if is_followed else [1.5, 1.0]
    assert (MAY_BE_OLD in world.run().message) is not is_followed, "the status tells the sender"
    assert world.run(500).output.q == near(goal, 1e-4)


def test_a_target_queued_during_a_stall_is_ignored_until_the_loop_has_settled(world):
    moving(world)
    world.now += STALL
    world.run(int(5.0 * DRAIN_TIME / DT))
    arrives(world, world.target([0.2, 0.9]), sent=STALL)
    assert world.run(500).output.q == near([1.5, 1.0], 1e-4)
    arrives(world, world.target([0.2, 0.9]), sent=STALL)
    assert world.run(500).output.q == near([0.2, 0.9], 1e-4), "the loop has settled"


@pytest.mark.parametrize("is_stamped", [False, True])
@pytest.mark.parametrize(("ago", "is_followed"), [(STALL, False), (0.05, True)])
def test_time_in_the_buffer_during_a_stall_counts_as_delay(world, is_stamped, ago, is_followed):
    moving(world)
    target = world.target([0.2, 0.9])
    sent, world.now = time.time_ns() - round(1e9 * ago), world.now + STALL + DT
    if is_stamped:
        target.header.stamp.sec, target.header.stamp.nanosec = divmod(sent, 10**9)
    world.epoch = sent + round(1e9 * (ago - world.now))
    arrival = Arrival(target, world.now - ago, 1, 0.0)
    world.cycle(arrival)
    goal = [0.2, 0.9] if is_followed else [1.5, 1.0]
    assert world.run(500).output.q == near(goal, 1e-4)


@pytest.fixture
def driven(monkeypatch):
    """Return a world in motion, whose driver reports the command as its position."""
    world = controlled(monkeypatch, feedback_mode="auto", acceleration=[4.0])
    world.add_driver([0.0, 0.0])
    target = world.target([1.5, 1.0])
    for _ in range(100):
        outcome = world.run(target=target, driver=True)
        if outcome.output is not None:
            world.driver.position = outcome.output.q.tolist()
    assert outcome.is_command
    assert np.abs(outcome.output.velocity).max() > 0.3
    world.run()
    return world


def test_joint_states_sent_during_a_stall_are_ignored_however_late_they_arrive(driven):
    driven.now += STALL
    driven.run()
    for k in range(int(5.0 * DRAIN_TIME / DT)):
        outcome = driven.run(driver=True, lag=STALL - k * DT)
        assert (outcome.state, outcome.is_command) == (ServoState.STALE, False)
    driven.driver.position = [0.4, 0.3]
    after = driven.run(3, driver=True).output
    assert after.q == near([0.4, 0.3], 2.0 * 3 * DT)


def test_a_driver_whose_clock_was_set_back_is_accepted_after_settle_time(driven):
    driven.now += STALL
    driven.run()
    driven.driver.position = [0.4, 0.3]
    waited = driven.run(int(0.9 * READING_TIMEOUT / DT), driver=True, lag=3600.0)
    assert waited.state is ServoState.STALE
    after = driven.run(
        int((0.1 * READING_TIMEOUT + DRAIN_TIME) / DT) + 3, driver=True, lag=3600.0
    ).output
    assert after.q == near([0.4, 0.3], 2.0 * 4 * DT)


def required(monkeypatch, speed, **parameters):
    """An arm on its way to a pose at some speed, whose driver is required, and what it sent."""
    given = {"feedback_mode": "required", "acceleration": [1.0], **parameters}
    world = controlled(monkeypatch, has_stop_trajectory=True, **given)
    world.add_driver([0.0, 0.0])
    world.run(10, driver=True)
    outcome, target = None, world.target([2.5, 1.5])
    while outcome is None or np.abs(outcome.output.velocity).max() < speed:
        outcome, target = follow(world, target), None
        assert world.now < 1010.0, "it does not become fast enough"
    return world


def follow(world, target=None):
    """A cycle of which the driver hears the command."""
    outcome = world.run(target=target, driver=True)
    if outcome.output is not None:
        world.driver.position = outcome.output.q.tolist()
    return outcome


STALLS = [(0.4, {}), (0.4, {"measurement_timeout": 0.05}), (0.2, {"measurement_timeout": 0.1})]


@pytest.mark.parametrize("jerk", [[], [20.0]])
@pytest.mark.parametrize(("gap", "parameters"), STALLS)
def test_after_a_stall_an_arm_in_motion_stops_until_a_required_driver_is_heard(
    monkeypatch, jerk, gap, parameters
):
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    world = required(monkeypatch, 0.8, jerk=jerk, **parameters)
    world.now += gap - DT
    silent = [world.run() for _ in range(4)]
    assert {each.state for each in silent} == {ServoState.STALE}
    assert all(each.is_command for each in silent), "the arm is on its stop"
    speeds = [np.abs(each.output.velocity).max() for each in silent]
    assert (np.diff(speeds) < 0.0).all()
    assert speeds[-1] > 0.1
    states = {follow(world).state for _ in range(900)}
    assert ServoState.FAULT not in states
    assert follow(world).output.q == near([2.5, 1.5], 1e-4), "the target stays in force"


@pytest.mark.parametrize(("gap", "parameters"), STALLS)
def test_a_required_driver_that_stays_silent_after_a_stall_is_a_fault(monkeypatch, gap, parameters):
    world = required(monkeypatch, 0.8, **parameters)
    timeout = parameters.get("measurement_timeout", 0.5)
    world.now += gap - DT
    stalled = world.now + DT
    while world.run().state is not ServoState.FAULT:
        assert world.now < stalled + DRAIN_TIME + READING_TIMEOUT + timeout + DT
    assert world.now > stalled + timeout


@pytest.mark.parametrize("is_target_kept", [True, False])
def test_a_required_driver_that_stays_silent_after_a_stall_of_a_resting_arm_is_a_fault(
    monkeypatch, is_target_kept
):
    """The arm has come to rest at its target, or waits for one after a reset."""
    world = required(monkeypatch, 0.8)
    for _ in range(900):
        follow(world)
    if not is_target_kept:
        world.arm.controller.reset()
        follow(world)
    world.now += 0.4 - DT
    stalled = world.now + DT
    while world.run().state is not ServoState.FAULT and world.now < stalled + 3.0:
        pass
    assert (world.run().state is ServoState.FAULT) is is_target_kept
    world.arm.controller.reset()
    world.run(target=world.target([2.5, 1.5]))
    assert world.run(100).state is ServoState.WAITING, "after a reset the arm waits"


@pytest.mark.parametrize("cycles", [1.5, 6.0])
def test_after_a_short_gap_the_command_continues_on_the_stop_trajectory(monkeypatch, cycles):
    world = controlled(
        monkeypatch,
        has_stop_trajectory=True,
        feedback_mode="none",
        acceleration=[4.0],
    )
    moving(world)
    stop = world.arm.controller.stop_path(DT)
    world.now += (cycles - 1.0) * DT
    after = world.run().output
    q, v, _ = stop.at(np.array([(cycles - 1.0) * DT]))  # a command is due a cycle after it is sent
    np.testing.assert_allclose(after.q, q[0] + after.velocity * DT, atol=1e-12)
    assert np.abs(after.velocity - v[0]).max() <= 4.0 * DT + 1e-9
    outcome = world.run()
    assert world.stream.is_too_late(outcome, 3 * DT)
    assert not world.stream.is_too_late(outcome, DT)


@pytest.mark.parametrize("jerk", [[], [20.0]])
@pytest.mark.parametrize(("cycles", "is_at_rest"), [(2.0, False), (6.0, True)])
def test_a_single_command_after_a_gap_is_a_step_of_one_period(
    monkeypatch, jerk, cycles, is_at_rest
):
    """An arm without a stop trajectory stands at its command after two periods."""
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    world = controlled(monkeypatch, feedback_mode="none", acceleration=[4.0], jerk=jerk)
    before = moving(world).output
    rate = np.zeros(2) if is_at_rest else world.arm.controller._tracker.limiter.rate.copy()
    world.now += (cycles - 1.0) * DT
    step = world.run().output.q - before.q
    assert (np.abs(step - rate * DT) <= 0.5 * 4.0 * DT**2 + 1e-12).all()


@pytest.mark.parametrize("jerk", [[], [20.0]])
@pytest.mark.parametrize("times", [1, 3])
def test_after_an_unpublished_command_the_arm_continues_on_the_previous_stop(
    monkeypatch, jerk, times
):
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    given = {"feedback_mode": "none", "acceleration": [4.0], "jerk": jerk}
    world = controlled(monkeypatch, has_stop_trajectory=True, **given)
    moving(world)
    stop, sent = world.arm.controller.stop_path(DT), world.last
    for _ in range(times):
        world.run()
        world.stream.roll_back(stop)
        world.last = sent
        world.now += 0.05
    elapsed = world.now - sent  # a command is due a cycle after it is sent
    after = world.run().output
    q, v, _ = stop.at(np.array([elapsed]))
    np.testing.assert_allclose(after.q, q[0] + after.velocity * DT, atol=1e-9)
    assert np.abs(after.velocity - v[0]).max() <= 4.0 * DT + 1e-9
    world.stream.roll_back(stop)
    world.last = sent
    world.now += STALL
    world.run(int(DRAIN_TIME / DT) + 2)
    assert world.arm.controller.command == near(stop.end, 2.0 * 3 * DT)


def test_an_unpublished_command_without_a_stop_is_rolled_back(world):
    before = moving(world).output.q
    sent = world.last
    world.run()
    world.stream.roll_back(None)
    np.testing.assert_array_equal(world.arm.controller.command, before)
    assert not world.arm.controller.velocity.any()
    world.last = sent
    assert world.run().output.q == near(before, 2.0 * 2.0 * DT)


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_withdrawn_command_does_not_move_a_held_arm_to_its_measurement(monkeypatch, mode):
    world = controlled(monkeypatch, feedback_mode=mode, acceleration=[4.0])
    world.add_driver([0.0, 0.0])
    world.run(100, driver=True)
    target = world.target([0.3, 0.2])
    for _ in range(300):
        outcome, target = follow(world, target), None
    held = outcome.output.q
    world.driver.position = (held - 0.005).tolist()
    sent = world.last
    world.run(driver=True)
    world.stream.roll_back(None)
    world.last = sent
    commands = [world.run(driver=True).output.q for _ in range(100)]
    np.testing.assert_allclose(commands, np.tile(held, (100, 1)), atol=1e-6)
    elsewhere = [0.5, 0.5]  # moved by others, while its commands do not go out
    world.stream.submit(Controller.pause)
    world.run(5, driver=True)
    world.driver.position = elsewhere
    world.run(100, driver=True)
    world.stream.submit(Controller.resume)
    world.run(100, driver=True)
    sent, target = world.last, world.target(elsewhere)
    world.run(driver=True, target=target)
    world.stream.roll_back(None)
    world.last = sent
    assert world.run(2, driver=True).output.q == near(elsewhere, 1e-6), "it starts there"


A = 8.0  # [rad/s^2]


class Sent:
    """Commands of a world with their due times, and the stop trajectories that follow them."""

    def __init__(self, world, rate, points):
        self.world, self.period = world, 1.0 / rate
        self.count = points
        self.output = JointTrajectoryOutput(OutputSpec(world.robot.joint_names, self.period))
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
        if self.stop is not None and gap > (1.0 + EARLIEST) * self.period:  # moved on its last stop
            self.times.append(world.now)
            self.q.append(self.stop.at(np.array([gap - self.period]))[0][0])
        controller = world.stream._arm.controller
        self.stop = controller.stop_path(self.period)
        knots = controller.trajectory(self.period, self.count)
        times, *rows = points(self.output.fill(out.q, out.velocity, 0, knots))
        first = int(np.argmin(np.abs(times - self.period)))  # the command
        times, rows = times[first:], [row[first:] for row in rows]
        before = (np.array(self.times[-3:]), np.reshape(self.q[-3:], (-1, len(out.q))))
        self.found += tail_violations(before, (world.now + times, *rows), limits)
        np.testing.assert_allclose(rows[0][0], out.q, atol=1e-10)
        assert world.robot.within_limits(rows[0]).all()
        self.times.append(world.now + self.period)
        self.q.append(out.q)


def gaps(rng, period, count):
    """Return times between cycles [s]: most regular, some late, a few very late."""
    even = period * rng.uniform(0.9, 1.25, count)
    late = period * rng.choice([1.3, 2.0, 5.0, 20.0], count) * rng.uniform(0.9, 1.1, count)
    gap = np.where(rng.random(count) < 0.1, late, even)
    return np.where(rng.random(count) < 0.003, 0.5, gap)


def campaign(*given):
    return pytest.param(*given, marks=pytest.mark.campaign)


@pytest.mark.parametrize(("jerk", "rate", "points"), [
    ([], 100.0, 30), campaign([], 500.0, 8), ([20.0], 500.0, 100), campaign([20.0], 100.0, 60),
    campaign([80.0], 500.0, 100), ([200.0], 250.0, 20), campaign([1000.0], 100.0, 25),
])  # fmt: skip
def test_commands_and_stops_of_late_cycles_keep_all_limits(monkeypatch, jerk, rate, points):
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    parameters = {"feedback_mode": "none", "acceleration": [A], "jerk": jerk, "rate": rate}
    world = controlled(monkeypatch, has_stop_trajectory=True, **parameters)
    rng = np.random.default_rng(int(rate) + points)
    limits = Limits.of(world.robot, A, *jerk)
    sent = Sent(world, rate, points)
    goal = world.robot.random(rng=rng)
    for gap in gaps(rng, 1.0 / rate, 1500):
        if rng.random() < 0.02:  # distant goals make the arm fast, and move joints to their limits
            goal = np.where(rng.random(2) < 0.5, world.robot.random(rng=rng), world.robot.upper)
        sent.cycle(gap, world.target(goal), limits)
    assert len(sent.q) > 1000
    assert np.ptp(sent.q, axis=0).min() > 1.0
    assert not violations(sent.times, sent.q, limits)
    assert not sent.found, sent.found[:3]


@pytest.mark.parametrize("jerk", [[], [80.0]])
@pytest.mark.parametrize("what", ["velocity", "position"])
def test_narrower_limits_of_a_new_robot_are_reached_within_limits(monkeypatch, jerk, what):
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
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
        assert len(commands) < 300, "the arm does not reach the speed"
        run(1)
    if what == "velocity":
        text = (URDF / "planar_2r.urdf").read_text()
        robot = RobotModel.from_urdf(text.replace('velocity="2.0"', 'velocity="0.3"'))
    else:  # distance to stop, also while the arm accelerates
        robot = world.robot.narrowed(-np.pi, commands[-1] + 0.8)
    world.stream.use(Arm(robot, world.arm.parameters))
    run(300)
    assert not violations(times, commands, Limits.of(world.robot, A, *jerk))
    assert robot.within_limits(np.array(commands[-1]))
    if what == "velocity":
        assert np.abs(np.diff(commands[-100:], axis=0)).max() <= 0.3 * 0.01 * (1.0 + 1e-6)
