# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Limits of position, velocity and acceleration for any reference."""

import numpy as np
import pytest
from arms import random_arm
from commands import Limits, assert_within
from drive import WAM, assert_limits, wild_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import joint, urdf

from dls_ik import RobotModel
from dls_ik.core.limiter import advance
from dls_ik.servo.limiter import FAST, AccelerationLimiter, JerkLimiter, boxed_limits

KINDS = st.lists(
    st.sampled_from(["revolute", "bent", "continuous", "prismatic", "mimic"]), max_size=6
)
SEEDS = st.integers(0, 2**32 - 1)
some = settings(max_examples=50)
few = settings(max_examples=12)


def drawn(kinds, seed):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    acceleration = rng.choice([0.01, 0.5, 5.0, 100.0, np.inf], robot.n)
    return rng, robot, acceleration


def stoppable_start(robot, acceleration, rng):
    """Return a start and a velocity from which each joint can stop within its limits."""
    q = robot.random(rng=rng)
    room = np.minimum(robot.upper - q, q - robot.lower)
    most = np.minimum(robot.velocity, np.sqrt(2 * acceleration * room))
    most = np.where(np.isfinite(most), most, 1.0)
    return q, most * rng.uniform(-0.999, 0.999, robot.n)


@some
@given(KINDS, SEEDS, st.booleans(), st.booleans())
def test_any_reference_keeps_limits(kinds, seed, varying, moving):
    rng, robot, acceleration = drawn(kinds, seed)
    limiter = AccelerationLimiter(robot, acceleration)
    q, v = stoppable_start(robot, acceleration, rng)
    v *= moving
    limiter.reset(q, v)
    dt = 10.0 ** rng.uniform(-4, -1)
    times, commands, rates = [], [q], [v]
    for _ in range(60):
        dt = 10.0 ** rng.uniform(-4, -1) if varying else dt
        if rng.random() < 0.8:
            v_r = rng.choice([0.0, 1.0, 1e6]) * rng.normal(size=robot.n)
            limiter.advance(wild_reference(rng, robot, limiter.q), v_r, dt)
        else:
            limiter.brake(dt)
        times.append(dt)
        commands.append(limiter.q.copy())
        rates.append(limiter.rate.copy())
        np.testing.assert_allclose(commands[-1] - commands[-2], limiter.v * dt, atol=1e-14)
    rates, steps = np.array(rates), np.array(times)[:, None]
    assert (np.abs(rates) <= robot.velocity * (1 + 1e-9)).all()
    assert (np.abs(np.diff(rates, axis=0)) <= acceleration * steps * (1 + 1e-9) + 1e-14).all()
    if not varying:
        assert_limits(robot, np.array(commands), times, acceleration, v=v)
    else:
        assert_within(np.cumsum([0.0, *times]), commands, Limits.of(robot, acceleration))


@few
@given(KINDS, SEEDS, st.floats(5e-3, 0.05))
def test_start_outside_limits_moves_back_within_limits(kinds, seed, dt):
    rng, robot, _ = drawn(kinds, seed)
    acceleration = rng.choice([0.5, 5.0, np.inf], robot.n)
    limiter = AccelerationLimiter(robot, acceleration)
    q = robot.random(rng=rng) + rng.uniform(-5.0, 5.0, robot.n)
    limiter.reset(q)
    goal, commands = robot.random(rng=rng), [q]
    for _ in range(round(40.0 / dt)):
        limiter.advance(goal, np.zeros(robot.n), dt)
        commands.append(limiter.q.copy())
    assert_limits(robot, np.array(commands), dt, acceleration)
    np.testing.assert_allclose(limiter.q, goal, rtol=0.0, atol=1e-15)


@few
@given(KINDS, SEEDS, st.floats(5e-3, 0.05))
def test_path_to_static_reference_is_straight(kinds, seed, dt):
    rng, robot, _ = drawn(kinds, seed)
    acceleration = rng.choice([0.5, 5.0, np.inf], robot.n)
    limiter = AccelerationLimiter(robot, acceleration)
    start, goal = robot.random(rng=rng), robot.random(rng=rng)
    limiter.reset(start)
    commands = [start]
    for _ in range(round(30.0 / dt)):
        limiter.advance(goal, np.zeros(robot.n), dt)
        commands.append(limiter.q.copy())
    share = (np.array(commands) - start) / (goal - start)
    assert np.ptp(share, axis=1).max() <= 1e-9, "all joints have moved by the same share"
    assert (np.diff(share, axis=0) >= -1e-12).all()
    assert share.max() <= 1 + 1e-9
    np.testing.assert_allclose(limiter.q, goal, rtol=0.0, atol=1e-15)
    assert not limiter.v.any()


@few
@given(KINDS, SEEDS)
def test_uneven_cycles_reach_the_reference(kinds, seed):
    rng, robot, _ = drawn(kinds, seed)
    acceleration = rng.choice([0.5, 5.0, np.inf], robot.n)
    limiter = AccelerationLimiter(robot, acceleration)
    limiter.reset(robot.random(rng=rng))
    goal, now, left = robot.random(rng=rng), 0.0, []
    while now < 30.0:
        dt = 0.01 * 2.0 ** rng.uniform(-2, 2)
        limiter.advance(goal, np.zeros(robot.n), dt)
        left.append(np.abs(goal - limiter.q))
        now += dt
    assert left[-1].max() <= 1e-15
    close = int(np.argmax(np.max(left, axis=1) < 1e-3))
    past = np.max(left[close:], axis=0)
    assert (past <= acceleration * 0.04**2 + 1e-3).all(), (
        "bounded by the motion of the longest cycle"
    )


@some
@given(KINDS, SEEDS, st.floats(5e-3, 0.05))
def test_brake_is_straight_and_fastest(kinds, seed, dt):
    rng, robot, _ = drawn(kinds, seed)
    acceleration = rng.choice([0.5, 5.0, 50.0], robot.n)
    limiter = AccelerationLimiter(robot, acceleration)
    q, v = stoppable_start(robot, acceleration, rng)
    room = np.minimum(robot.upper - q, q - robot.lower)
    longest = np.max(np.abs(v) / acceleration)
    v *= min(1.0, np.min(np.sqrt(room / (np.abs(v) * longest))))  # all joints can stop together
    limiter.reset(q, v)
    velocities = []
    for _ in range(int(np.max(np.abs(v) / acceleration) / dt) + 1):
        limiter.brake(dt)
        velocities.append(limiter.rate / v)
    assert not limiter.rate.any()
    assert np.ptp(velocities, axis=1).max() <= 1e-9, "all joints keep the same share"


def test_stopping_point_is_the_end_of_braking():
    robot = RobotModel.wam()
    acceleration = np.full(robot.n, 4.0)
    limiter = AccelerationLimiter(robot, acceleration)
    v = np.array([1.0, -0.5, 0.2, 0.0, 1.5, -0.1, 0.3])
    limiter.reset(robot.clip(np.full(robot.n, 0.3)), v)
    expected = limiter.stopping_point()
    np.testing.assert_allclose(expected - limiter.q, v * np.abs(v) / 8.0)
    dt = 1e-5
    for j in range(robot.n):  # a single moving joint brakes at its limit
        alone = AccelerationLimiter(robot, acceleration)
        alone.reset(limiter.q, np.where(np.arange(robot.n) == j, v, 0.0))
        while alone.rate.any():
            alone.brake(dt)
        assert alone.q[j] == pytest.approx(expected[j], abs=1e-4)


def naive_advance(robot, A, q_r, v_r, dt, q, v):
    """Return q and v (n,) after one cycle, in plain NumPy, from the specification."""
    lag = 0.5 * dt if np.isfinite(A).any() else 0.0
    with np.errstate(all="ignore"):
        away = q_r + lag * v_r - (q + lag * v) - v_r * dt
        d = np.abs(away)
        closing = np.maximum(stopping_speed(d, A, dt), np.minimum(d / dt, A * dt))
        share = min(1.0, np.nanmin(np.append(closing * dt / d, 1.0)))
        wanted = v_r + share * away / dt
        wanted = wanted * min(1.0, np.min(robot.velocity / np.maximum(np.abs(wanted), 1e-300)))
        change = wanted - v
        change = change * min(1.0, np.nanmin(np.append(A * dt / np.abs(change), 1.0)))
        high = np.minimum(fastest(robot.upper - q, v, A, dt, lag), robot.velocity)
        low = -np.minimum(fastest(q - robot.lower, -v, A, dt, lag), robot.velocity)
        speed = np.clip(np.clip(v + change, low, high), v - A * dt, v + A * dt)
        after = q + lag * v + (dt - lag) * speed
        stops = (high < low) & (np.abs(v) <= A * dt)
        after, speed = np.where(stops, [q + 0.5 * v * np.abs(v) / A, 0.0 * v], [after, speed])
    within = np.clip(after, np.minimum(robot.lower, q), np.maximum(robot.upper, q))
    at_limit = np.zeros(len(q)) if lag else (within - q) / dt
    return within, np.where(within == after, speed, at_limit)


def fastest(d, v, A, dt, lag):
    """Return the largest velocity after a cycle that keeps a position limit at a distance d."""
    if not lag:
        return np.where(np.isinf(A), np.maximum(d, 0.0) / dt, stopping_speed(d, A, dt))
    left = d - lag * v
    turned = np.where(d > 0.0, v - v * v * lag / d, 0.0)
    return np.where(left >= 0.0, stopping_speed(left, A, lag), turned)


def stopping_speed(d, A, dt):
    """Return the positive root v of v dt + v^2 / (2 A) = d."""
    d = np.maximum(d, 0.0)
    finite = np.where(np.isinf(A), 1.0, A)
    with np.errstate(invalid="ignore"):
        root = finite * (np.sqrt(dt**2 + 2.0 * d / finite) - dt)
    return np.where(np.isinf(d), np.inf, np.where(np.isinf(A), d / dt, root))


@some
@given(KINDS, SEEDS, st.floats(1e-3, 0.1))
def test_kernel_equals_naive_limiter(kinds, seed, dt):
    rng, robot, acceleration = drawn(kinds, seed)
    if not np.isinf(acceleration).all():
        acceleration = np.minimum(acceleration, FAST)
    q, v = stoppable_start(robot, acceleration, rng)
    limits = boxed_limits(robot, robot.velocity, acceleration)
    for _ in range(10):
        q_r, v_r = wild_reference(rng, robot, q), rng.normal(size=robot.n)
        expected = naive_advance(robot, acceleration, q_r, v_r, dt, q, v)
        advance(limits, q_r, v_r, dt, q, v)
        np.testing.assert_allclose(q, expected[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(v, expected[1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["continuous", "revolute"])
def test_reference_is_reached_at_once_without_limits(kind):
    detail = '<limit lower="-1" upper="1" effort="1" velocity="1"/>' if kind == "revolute" else ""
    robot = RobotModel.from_urdf(urdf("a b", joint("j", kind, detail=detail)))
    limiter = AccelerationLimiter(robot, np.array([np.inf]))
    limiter.advance(np.array([0.5]), np.zeros(1), 0.5)
    assert limiter.q[0] == 0.5


@pytest.mark.parametrize("jerk", [np.inf, 65.0])
@pytest.mark.parametrize("demand", [0.5, 0.8, 1.3, 2.0, 4.0])
def test_fast_turning_reference_is_not_overshot(demand, jerk):
    """Above the acceleration limit the command cuts corners instead of overshooting.

    Args:
        demand: Acceleration of the reference, as a share of the limit.
        jerk: Jerk limit.
    """
    dt, amplitude, A = 0.01, 0.4, 1.3
    robot, limits = RobotModel.wam(), np.full(7, A)
    limiter = AccelerationLimiter(robot, limits)
    if np.isfinite(jerk):
        pytest.importorskip("ruckig")
        limiter = JerkLimiter(robot, limits, np.full(7, jerk))
    start = np.array([0.0, 0.6, 0.0, 1.6, -1.0, 0.0, 0.0])
    limiter.reset(start)
    t = dt * np.arange(1, 1500)
    grown = np.clip(t / 5.0, 0.0, 1.0)  # slow start
    phase = np.sqrt(demand * A / amplitude) * t
    moves = amplitude * np.outer(grown * np.sin(phase), [1.0, 0.5, 0.0, 1.0, 0.0, 0.7, 0.0])
    last = start
    errors, distances = [], []
    for reference in start + moves:
        limiter.advance(reference, (reference - last) / dt, dt)
        last = reference
        errors.append(np.abs(limiter.q - reference).max())
        distances.append(np.abs(limiter.q - start).max())
    assert max(distances) < 1.15 * amplitude
    if demand < 1.0:
        assert max(errors) < 0.1 * amplitude


@pytest.mark.parametrize("amount", [1e-3, np.radians(5.0), 0.5])
def test_joint_outside_returns_at_once_whatever_other_joints_do(amount):
    A, dt = 5.0, 0.01
    limiter = AccelerationLimiter(WAM, np.full(WAM.n, A))
    start = np.zeros(WAM.n)
    start[3] = WAM.upper[3] + amount
    limiter.reset(start)
    far = np.where(np.arange(WAM.n) == 3, WAM.upper, 1.5)  # the other joints need over a second
    rates, positions = [limiter.rate], []
    while limiter.q[3] > WAM.upper[3] + 1e-6:
        limiter.advance(far, np.zeros(WAM.n), dt)
        rates.append(limiter.rate)
        positions.append(limiter.q[3])
        assert len(positions) < 1000
    assert len(positions) * dt <= undisturbed_return(amount, A, WAM.velocity[3]) + 3 * dt
    assert np.abs(np.diff(rates, axis=0)).max() <= A * dt * (1 + 1e-9)
    assert (np.abs(rates) <= WAM.velocity * (1 + 1e-9)).all()
    assert (np.diff(positions) <= 1e-12).all()


def undisturbed_return(distance, A, speed):
    """Return the shortest time to a rest at a distance, within acceleration A and a speed [s]."""
    if distance <= speed * speed / A:
        return 2.0 * np.sqrt(distance / A)
    return distance / speed + speed / A
