"""Late cycles: the command is where the arm came to, within all limits; old messages are left."""

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
from dls_ik.ros.servo import targets
from dls_ik.ros.servo.cycle import MAY_BE_OLD
from dls_ik.ros.servo.outputs import JointTrajectoryOutput, OutputSpec
from dls_ik.ros.servo.state_monitor import DRAIN, FRESH
from dls_ik.ros.servo.targets import Arrival
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.knots import EARLIEST

STOOD = 2.0  # [s]


@pytest.fixture
def world(monkeypatch):
    return controlled(monkeypatch, feedback_mode="none", acceleration=[4.0])


def moving(world):
    """Let the arm be on its way to a single pose."""
    return world.run(20, target=None) if world.stream.moves else _begun(world)


def _begun(world):
    world.run(target=world.target([1.5, 1.0]))
    outcome = world.run(20)
    assert np.abs(outcome.output.velocity).max() > 0.3
    return outcome


def arrives(world, target, sent, lag=math.inf):
    """A cycle with a target, `sent` [s] ago by the clock of its publisher."""
    world.now += DT
    delay = targets._delay(time.time_ns() - round(1e9 * sent), lag)
    arrival = Arrival(target, world.now, 1, delay)
    return world.cycle(arrival, 0)


def test_after_a_long_gap_nothing_goes_out_for_a_moment_and_then_it_begins_at_rest(world):
    before = moving(world).output.q
    world.now += STOOD
    outcome = world.run()
    assert (outcome.output, outcome.state, outcome.is_command) == (None, ServoState.STALE, False)
    assert any("stood still for 2" in line for line in world.node.lines)
    assert not world.run(int(0.9 * DRAIN / DT) - 1).is_command
    after = world.run(3).output
    assert after.q == near(before, 2.0 * 3 * DT)
    assert np.abs(after.velocity).max() <= 4.0 * 3 * DT + 1e-9
    assert world.run(400).output.q == near([1.5, 1.0], 1e-4), "the single pose stays in force"


OTHER_CLOCK = 5000.0  # [s] by which the clock of a publisher may be behind


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
def test_a_target_that_waited_meanwhile_is_passed_over(world, sent, lag, is_followed):
    moving(world)
    world.now += STOOD
    arrives(world, world.target([0.2, 0.9]), sent, lag)
    goal = [0.2, 0.9] if is_followed else [1.5, 1.0]
    assert (MAY_BE_OLD in world.run().message) is not is_followed, "its sender sees that"
    assert world.run(500).output.q == near(goal, 1e-4)


def test_a_target_that_waited_does_not_count_however_late_it_is_handed_over(world):
    moving(world)
    world.now += STOOD
    world.run(int(5.0 * DRAIN / DT))
    arrives(world, world.target([0.2, 0.9]), sent=STOOD)
    assert world.run(500).output.q == near([1.5, 1.0], 1e-4)
    arrives(world, world.target([0.2, 0.9]), sent=STOOD)
    assert world.run(500).output.q == near([0.2, 0.9], 1e-4), "when all is as before, it does"


@pytest.mark.parametrize("is_stamped", [False, True])
@pytest.mark.parametrize(("ago", "is_followed"), [(STOOD, False), (0.05, True)])
def test_a_target_that_arrived_and_was_not_taken_is_as_old(world, is_stamped, ago, is_followed):
    moving(world)
    target = world.target([0.2, 0.9])
    sent, world.now = time.time_ns() - round(1e9 * ago), world.now + STOOD + DT
    if is_stamped:
        target.header.stamp.sec, target.header.stamp.nanosec = divmod(sent, 10**9)
    world.epoch = sent + round(1e9 * (ago - world.now))
    arrival = Arrival(target, world.now - ago, 1, 0.0)
    world.cycle(arrival)
    goal = [0.2, 0.9] if is_followed else [1.5, 1.0]
    assert world.run(500).output.q == near(goal, 1e-4)


@pytest.fixture
def driven(monkeypatch):
    """An arm under way, whose driver says that it is at the command."""
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


def test_what_the_driver_said_meanwhile_does_not_count_however_late_it_is_heard(driven):
    driven.now += STOOD
    driven.run()
    for k in range(int(5.0 * DRAIN / DT)):
        outcome = driven.run(driver=True, lag=STOOD - k * DT)
        assert (outcome.state, outcome.is_command) == (ServoState.STALE, False)
    driven.driver.position = [0.4, 0.3]
    after = driven.run(3, driver=True).output
    assert after.q == near([0.4, 0.3], 2.0 * 3 * DT)


def test_a_driver_whose_clock_was_set_back_meanwhile_counts_after_a_second(driven):
    driven.now += STOOD
    driven.run()
    driven.driver.position = [0.4, 0.3]
    waited = driven.run(int(0.9 * FRESH / DT), driver=True, lag=3600.0)
    assert waited.state is ServoState.STALE
    after = driven.run(int((0.1 * FRESH + DRAIN) / DT) + 3, driver=True, lag=3600.0).output
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
        assert world.now < stalled + DRAIN + FRESH + timeout + DT
    assert world.now > stalled + timeout


@pytest.mark.parametrize("cycles", [1.5, 6.0])
def test_a_shorter_gap_is_made_up_for_by_the_stop_that_was_sent(monkeypatch, cycles):
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
    assert world.stream.is_old(outcome, 3 * DT)
    assert not world.stream.is_old(outcome, DT)


@pytest.mark.parametrize("jerk", [[], [20.0]])
@pytest.mark.parametrize(("cycles", "is_at_rest"), [(2.0, False), (6.0, True)])
def test_a_single_command_after_a_pause_is_a_step_of_one_period(
    monkeypatch, jerk, cycles, is_at_rest
):
    """An arm without a stop to follow stands at its command after two periods."""
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
def test_a_command_that_did_not_go_out_leaves_the_arm_on_the_stop_before_it(
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
        world.stream.withdraw(stop)
        world.last = sent
        world.now += 0.05
    elapsed = world.now - sent  # a command is due a cycle after it is sent
    after = world.run().output
    q, v, _ = stop.at(np.array([elapsed]))
    np.testing.assert_allclose(after.q, q[0] + after.velocity * DT, atol=1e-9)
    assert np.abs(after.velocity - v[0]).max() <= 4.0 * DT + 1e-9
    world.stream.withdraw(stop)
    world.last = sent
    world.now += STOOD
    world.run(int(DRAIN / DT) + 2)
    assert world.arm.controller.command == near(stop.end, 2.0 * 3 * DT)


def test_a_command_that_did_not_go_out_and_has_no_stop_is_forgotten(world):
    before = moving(world).output.q
    sent = world.last
    world.run()
    world.stream.withdraw(None)
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
    world.stream.withdraw(None)
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
    world.stream.withdraw(None)
    world.last = sent
    assert world.run(2, driver=True).output.q == near(elsewhere, 1e-6), "it starts there"


A = 8.0  # [rad/s^2]


class Sent:
    """Commands of a world with the times that they are due, and the trajectories behind them."""

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
        if self.stop is not None and gap > (1.0 + EARLIEST) * self.period:  # on its last stop
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
    """Times between cycles: most as they should be, some late, a few very late."""
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
def test_late_cycles_lead_no_command_and_no_stop_beyond_a_limit(monkeypatch, jerk, rate, points):
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    parameters = {"feedback_mode": "none", "acceleration": [A], "jerk": jerk, "rate": rate}
    world = controlled(monkeypatch, has_stop_trajectory=True, **parameters)
    rng = np.random.default_rng(int(rate) + points)
    limits = Limits.of(world.robot, A, *jerk)
    sent = Sent(world, rate, points)
    goal = world.robot.random(rng)
    for gap in gaps(rng, 1.0 / rate, 1500):
        if rng.random() < 0.02:  # far away, so that the arm is fast, and now and then at a limit
            goal = np.where(rng.random(2) < 0.5, world.robot.random(rng), world.robot.upper)
        sent.cycle(gap, world.target(goal), limits)
    assert len(sent.q) > 1000
    assert np.ptp(sent.q, axis=0).min() > 1.0
    assert not violations(sent.times, sent.q, limits)
    assert not sent.found, sent.found[:3]


@pytest.mark.parametrize("jerk", [[], [80.0]])
@pytest.mark.parametrize("what", ["velocity", "position"])
def test_a_description_with_narrower_limits_is_obeyed_within_the_others(monkeypatch, jerk, what):
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
