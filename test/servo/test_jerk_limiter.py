"""The limits with those of jerk, by Ruckig."""

import numpy as np
import pytest
from arms import random_arm
from drive import WAM, assert_limits, wild_reference
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("ruckig")
from dls_ik.servo.jerk import JerkLimiter

KINDS = st.lists(st.sampled_from(["revolute", "continuous", "prismatic", "mimic"]), max_size=4)
SEEDS = st.integers(0, 2**32 - 1)
some = settings(max_examples=60, deadline=None)


def drawn(kinds, seed):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    return rng, robot, rng.choice([0.5, 5.0], robot.n), rng.choice([5.0, 100.0, np.inf], robot.n)


@some
@given(KINDS, SEEDS, st.floats(1e-3, 0.05), st.booleans(), st.integers(1, 40))
def test_no_limit_is_passed_whatever_comes(kinds, seed, dt, at_limits, each):
    rng, robot, acceleration, jerk = drawn(kinds, seed)
    jerk = np.minimum(jerk, 1e3)
    limiter = JerkLimiter(robot, acceleration, jerk)
    start = robot.random(rng)
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
@given(KINDS, SEEDS)
def test_uneven_cycles_keep_position_and_velocity(kinds, seed):
    rng, robot, acceleration, jerk = drawn(kinds, seed)
    limiter = JerkLimiter(robot, acceleration, jerk)
    limiter.reset(robot.random(rng))
    commands, times = [limiter.q.copy()], []
    for _ in range(60):
        times.append(10.0 ** rng.uniform(-4, -1))
        limiter.advance(wild_reference(rng, robot, limiter.q), np.zeros(robot.n), times[-1])
        commands.append(limiter.q.copy())
    assert_limits(robot, np.array(commands), times)


@pytest.mark.parametrize("dt", [0.002, 0.01, 0.03])
def test_a_standing_reference_is_reached_and_the_arm_is_still(dt):
    rng = np.random.default_rng(31)
    limiter = JerkLimiter(WAM, np.full(WAM.n, 5.0), np.full(WAM.n, 50.0))
    for _ in range(5):
        limiter.reset(WAM.random(rng))
        goal = WAM.random(rng)
        for _ in range(round(6.0 / dt)):
            limiter.advance(goal, np.zeros(WAM.n), dt)
        np.testing.assert_allclose(limiter.q, goal, atol=1e-9)
        assert np.abs(limiter.v).max() < 1e-9


def test_a_reference_at_the_limits_is_reached():
    limiter = JerkLimiter(WAM, np.full(WAM.n, 5.0), np.full(WAM.n, 50.0))
    for goal in (WAM.lower, WAM.upper):
        for _ in range(1000):
            limiter.advance(goal, np.zeros(WAM.n), 0.01)
        np.testing.assert_allclose(limiter.q, goal, atol=1e-9)


@pytest.mark.parametrize("v", [0.0, 0.5, -1.0])
def test_brake_ends_at_the_stopping_point_exactly_still(v):
    limiter = JerkLimiter(WAM, np.full(WAM.n, 5.0), np.full(WAM.n, 50.0))
    limiter.reset(WAM.clip(np.full(WAM.n, 0.5)), np.full(WAM.n, v))
    where = limiter.stopping_point()
    for _ in range(200):
        limiter.brake(0.01)
    np.testing.assert_allclose(limiter.q, where, atol=1e-12)
    assert not limiter.v.any()


def test_comes_back_from_outside():
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
def test_takes_no_run_up_for_a_reference_that_moves_on(jerk):
    """Which Ruckig would: to be at a place near by with a speed, it goes back first."""
    limiter = JerkLimiter(WAM, np.full(WAM.n, 5.0), np.full(WAM.n, jerk))
    v = np.array([0.5, -0.3, 0.2, 0.4, -0.5, 0.1, 0.3])
    start = WAM.clip(np.full(WAM.n, 0.5))
    limiter.reset(start)
    velocities = []
    for k in range(1, 101):
        limiter.advance(start + v * k * 0.01, v, 0.01)
        velocities.append(limiter.v / v)
    assert np.min(velocities) >= -0.02
    assert np.max(velocities) <= 2.0, "it makes up for the way it was behind"
    np.testing.assert_allclose(velocities[-1], 1.0, atol=0.1)
