# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The limiter with jerk limits, which uses Ruckig."""

import numpy as np
import pytest
from arms import published, random_arm
from commands import Limits, assert_within
from drive import WAM, Drive, assert_limits, wild_reference
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("ruckig")
from dls_ik import RobotModel
from dls_ik.servo import ServoState
from dls_ik.servo.limiter import JerkLimiter, stop_within

KINDS = st.lists(
    st.sampled_from(["revolute", "bent", "continuous", "prismatic", "mimic"]), max_size=4
)
SEEDS = st.integers(0, 2**32 - 1)
some = settings(max_examples=25)


def drawn(kinds, seed):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    return rng, robot, rng.choice([0.5, 5.0], robot.n), rng.choice([5.0, 100.0, np.inf], robot.n)


@some
@given(KINDS, SEEDS, st.floats(1e-3, 0.05), st.booleans(), st.integers(1, 40))
def test_any_reference_keeps_limits(kinds, seed, dt, at_limits, each):
    rng, robot, acceleration, jerk = drawn(kinds, seed)
    jerk = np.minimum(jerk, 1e3)
    limiter = JerkLimiter(robot, acceleration, jerk)
    start = robot.random(rng=rng)
    if at_limits:
        start = np.where(np.isfinite(robot.lower), robot.lower, start)
    limiter.reset(start)
    commands = [start]
    for k in range(80):
        if k % each == 0:
            reference = wild_reference(rng, robot, limiter.q)
            v_r = rng.choice([0.0, 1.0, 1e6]) * rng.normal(size=robot.n)
        if rng.random() < 0.9:
            limiter.advance(reference, v_r, dt)
        else:
            limiter.brake(dt)
        commands.append(limiter.q.copy())
        np.testing.assert_allclose(limiter.v * dt, commands[-1] - commands[-2], atol=1e-14)
    assert_limits(robot, np.array(commands), dt, acceleration, jerk)


@some
@given(KINDS, SEEDS, st.booleans())
def test_uneven_and_late_cycles_keep_limits(kinds, seed, outside):
    """In late cycles the arm moves along its stop by itself."""
    rng, robot, acceleration, jerk = drawn(kinds, seed)
    jerk = np.minimum(jerk, 1e3)
    limiter = JerkLimiter(robot, acceleration, jerk)
    start = robot.random(rng=rng) + outside * rng.choice([-3.0, 0.0, 3.0], robot.n)
    limiter.reset(start)
    commands, times = [start], [0.0]

    def record(dt):
        commands.append(limiter.q.copy())
        times.append(times[-1] + dt)

    for k in range(80):
        if k % 10 == 0:
            reference = wild_reference(rng, robot, limiter.q)
        dt = 10.0 ** rng.uniform(-3, -1)
        if rng.random() < 0.2:
            limiter.resume_at(5.0 * dt, dt)
            record(5.0 * dt)
        limiter.advance(reference, np.zeros(robot.n), dt)
        record(dt)
    assert_within(times, commands, Limits.of(robot, acceleration, jerk))


@some
@given(SEEDS)
def test_stop_is_fastest_and_its_overshoot_exact(seed):
    rng = np.random.default_rng(seed)
    n = 6
    q, v, a = rng.normal(size=(3, n)) * rng.choice([0.0, 0.1, 1.0, 3.0], (3, n))
    A, J = rng.choice([0.5, 5.0, 50.0], n), rng.choice([5.0, 100.0, 1e4], n)
    lower = rng.normal(size=n) - 1.0
    upper = lower + rng.uniform(0.1, 4.0, n)
    stop, overshoot = stop_within(q, v, a, (lower, upper, A, J))
    stop = stop._replace(lower=np.full(n, -np.inf), upper=np.full(n, np.inf))
    share = np.linspace(0.0, 1.0, 2001) * stop.duration
    positions, velocities, accelerations = stop.at(share)
    least, most = np.minimum.accumulate(positions), np.maximum.accumulate(positions)
    over = np.maximum(positions - np.maximum(upper, least), np.minimum(lower, most) - positions)
    rounding = 1e-9 + 1e-6 * (np.abs(v) + np.abs(a)) * max(1.0, stop.duration) ** 2
    np.testing.assert_allclose(
        np.maximum(overshoot, 0.0), np.maximum(over.max(axis=0), 0.0), rtol=0, atol=rounding.max()
    )
    assert (np.abs(accelerations) <= np.maximum(A, np.abs(a)) * (1.0 + 1e-9)).all()
    np.testing.assert_allclose(velocities[-1], 0.0, atol=1e-9)
    end, still, _ = stop.at(np.array([np.inf]))
    assert not still.any()
    moment = 0.4 * stop.duration
    rest = stop.after(moment).at(np.array([0.1, np.inf]))[0]
    np.testing.assert_allclose(rest[0], stop.at(np.array([moment + 0.1]))[0][0], atol=1e-9)
    np.testing.assert_allclose(rest[1], end[0], atol=1e-9)
    for j in range(n):
        given = q[j], v[j], np.clip(a[j], -A[j], A[j]), A[j], J[j]
        duration, position = ruckig_stop(*given)
        one = [np.array([x]) for x in given]
        ours, _ = stop_within(*one[:3], (np.full(1, -np.inf), np.full(1, np.inf), *one[3:]))
        assert ours.duration == pytest.approx(duration, abs=1e-7)
        assert ours.at(np.array([np.inf]))[0][0, 0] == pytest.approx(position, abs=1e-7)


def ruckig_stop(q, v, a, A, J):
    """Return the duration and the end of Ruckig's trajectory of one joint to rest."""
    import ruckig

    given, trajectory = ruckig.InputParameter(1), ruckig.Trajectory(1)
    given.control_interface = ruckig.ControlInterface.Velocity
    given.current_position, given.current_velocity, given.current_acceleration = [q], [v], [a]
    given.max_velocity, given.max_acceleration, given.max_jerk = [1e3], [A], [J]
    given.target_velocity = [0.0]
    ruckig.Ruckig(1).calculate(given, trajectory)
    return trajectory.duration, trajectory.at_time(trajectory.duration)[0][0]


FR3 = published("fr3")
PANDA = FR3.narrowed(  # the same arm with the ranges of its predecessor
    [-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973],
    [2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973],
)
LIFT = RobotModel.from_dh(
    [
        {"kind": "prismatic", "lower": 0.4, "upper": 1.2, "velocity": 0.5},
        {"a": 0.4, "lower": -2.5, "upper": -0.2, "velocity": 2.0},
        {"a": 0.3, "lower": 0.3, "upper": 2.6, "velocity": 2.0},
    ]
)


@pytest.mark.parametrize("robot", [FR3, PANDA, LIFT], ids=["fr3", "panda", "lift"])
def test_arms_with_ranges_without_zero_reach_targets(robot):
    rng = np.random.default_rng(5)
    assert ((robot.lower > 0.0) | (robot.upper < 0.0)).any()
    for _ in range(3):
        q = robot.lower + rng.uniform(0.3, 0.7, robot.n) * (robot.upper - robot.lower)
        drive = Drive(q, robot, acceleration=5.0, jerk=50.0).pose(robot.fk(q + 0.1))
        assert drive.run_until(ServoState.REACHED, 10.0), drive.last
        drive.assert_limits(5.0, 50.0)


def pendulum(velocity=2.0, lower=-3.0):
    """Return an arm with one joint."""
    row = {"a": 0.5, "lower": lower, "upper": 3.0, "velocity": velocity}
    return RobotModel.from_dh([row])


def limiter_in_motion(robot):
    """Return a limiter in motion at -2 rad/s, and its commands so far."""
    limiter = JerkLimiter(robot, np.array([8.0]), np.array([80.0]))
    limiter.reset(np.array([1.5]))
    commands = [limiter.q]
    while limiter.v[0] > -1.999:
        limiter.advance(np.array([-2.5]), np.zeros(1), 0.01)
        commands.append(limiter.q.copy())
    return limiter, commands


@pytest.mark.parametrize("distance", [1.0, 0.6, 0.2, 0.02, 0.0, -0.1])
def test_new_position_limit_is_kept_by_the_softest_stop(distance):
    old, commands = limiter_in_motion(pendulum())
    new = JerkLimiter(pendulum(lower=old.q[0] - distance), np.array([8.0]), np.array([80.0]))
    new.take_over(old.hand_over())
    for _ in range(150):
        new.advance(np.array([-2.9]), np.zeros(1), 0.01)
        commands.append(new.q.copy())
    q = np.array(commands)[:, 0]
    limit = min(old.q[0] - distance, old.q[0])
    assert q.min() >= limit
    a = np.abs(np.diff(q, 2)).max() / 0.01**2
    needed = 0.5 * 2.0 * (2.0 / 8.0 + 8.0 / 80.0)  # distance to stop within the limits
    if distance >= needed:
        assert a <= 8.0 * (1.0 + 1e-6)
    elif distance > 0.0:
        assert a <= 2.5 * 2.0**2 / distance


def test_new_velocity_limit_is_approached_within_other_limits():
    old, commands = limiter_in_motion(pendulum())
    new = JerkLimiter(pendulum(velocity=0.3), np.array([8.0]), np.array([80.0]))
    new.take_over(old.hand_over())
    for _ in range(300):
        new.advance(np.array([-2.9]), np.zeros(1), 0.01)
        commands.append(new.q.copy())
    times = 0.01 * np.arange(len(commands))
    assert_within(times, commands, Limits.of(pendulum(), 8.0, 80.0))
    v = np.diff(np.array(commands)[:, 0]) / 0.01
    assert np.abs(v[-250:-100]).max() <= 0.3 * (1.0 + 1e-9)
    assert new.q[0] == pytest.approx(-2.9, abs=1e-6) or np.abs(v[-1]) > 0.2


@pytest.mark.parametrize("dt", [0.002, 0.03])
def test_static_reference_is_reached(dt):
    rng = np.random.default_rng(31)
    limiter = JerkLimiter(WAM, np.full(WAM.n, 5.0), np.full(WAM.n, 50.0))
    limiter.reset(WAM.random(rng=rng))
    for goal in (WAM.random(rng=rng), WAM.lower, WAM.upper):
        for _ in range(round(7.0 / dt)):
            limiter.advance(goal, np.zeros(WAM.n), dt)
        np.testing.assert_allclose(limiter.q, goal, atol=1e-9)
        assert np.abs(limiter.v).max() < 1e-9


def test_brake_ends_at_rest_at_the_stopping_point():
    limiter = JerkLimiter(WAM, np.full(WAM.n, 5.0), np.full(WAM.n, 50.0))
    for v in (0.0, 0.5, -1.0):
        limiter.reset(WAM.clip(np.full(WAM.n, 0.5)), np.full(WAM.n, v))
        where = limiter.stopping_point()
        for _ in range(200):
            limiter.brake(0.01)
        np.testing.assert_allclose(limiter.q, where, atol=1e-12)
        assert not limiter.v.any()


def test_start_outside_limits_moves_back_within_limits():
    limiter = JerkLimiter(WAM, np.full(WAM.n, 5.0), np.full(WAM.n, 50.0))
    outside = np.where(np.arange(WAM.n) % 2, WAM.upper + 0.3, WAM.lower - 0.2)
    limiter.reset(outside)
    commands = [outside]
    for _ in range(600):
        limiter.advance(WAM.clip(outside), np.zeros(WAM.n), 0.01)
        commands.append(limiter.q.copy())
    assert_limits(WAM, np.array(commands), 0.01, 5.0, 50.0)
    np.testing.assert_allclose(limiter.q, WAM.clip(outside), atol=1e-9)


@pytest.mark.parametrize("jerk", [30.0, 100.0, 1000.0])
def test_moving_reference_causes_no_backward_motion(jerk):
    """Ruckig's trajectory to a nearby position with a velocity would move back first."""
    limiter = JerkLimiter(WAM, np.full(WAM.n, 5.0), np.full(WAM.n, jerk))
    v = np.array([0.5, -0.3, 0.2, 0.4, -0.5, 0.1, 0.3])
    start = WAM.clip(np.full(WAM.n, 0.5))
    limiter.reset(start)
    velocities = []
    for k in range(1, 101):
        limiter.advance(start + v * k * 0.01, v, 0.01)
        velocities.append(limiter.v / v)
    assert np.min(velocities) >= -0.02
    assert np.max(velocities) <= 2.0, "the arm catches up"
    np.testing.assert_allclose(velocities[-1], 1.0, atol=0.1)
