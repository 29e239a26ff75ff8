"""Steps in a row beside the oracle's: what methods remember, and that a reset forgets it."""

import numpy as np
import pytest
from cases import ARMS, CASES, NAMES, SAMPLE, VARIANTS, is_regular, label, slack, suits
from oracle_ik import Oracle, parts_of
from ours import options_of, our_moves, stepper

REMEMBERS = [
    ("jw", {}),
    ("jw+dls+max", {}),
    ("jw+ed", {"margin": 0.1}),
    ("jd", {"policy": "rate"}),
    ("jd", {"policy": "rate", "rate_t": 1.0, "lambda0": 0.1}),
    ("jc+jd", {"policy": "mayorga-rank", "lambda0": 0.1}),
    ("jw+jd", {"policy": "rate", "rate_t": 1.0}),
    ("ta+jd", {"policy": "mayorga-rank", "objective": "centring"}),
    ("dls+clamp", {"adaptive": True, "D_max": 0.1}),
    ("sdls+clamp", {"adaptive": True, "D_max": 0.1, "bug_compatible": True}),
    ("odls", {"Delta": 0.05}),
    ("odls", {"Delta": 0.05, "search": 17}),
]


def path(arm, seed):
    """A start inside the limits, and targets that stay, jump away and come back."""
    robot, rng = ARMS[arm], np.random.default_rng(seed)
    lower, upper = robot.finite_limits()
    while True:
        q = rng.uniform(lower + 0.2 * (upper - lower), upper - 0.2 * (upper - lower))
        goals = [q + reach * (robot.random(rng) - q) for reach in (0.05, 0.6, 0.3)]
        if all(is_regular(robot.jacobian(x), []) for x in [q, *goals]):
            return q, [robot.fk(goals[k]) for k in (0, 0, 1, 1, 2)]


def assert_same_path(name, options, robot, q, Ts):
    """From each of our own configurations, so that differences do not grow from step to step."""
    oracle = Oracle(name, robot, options_of(name, **options))
    clips = parts_of(name).strategy in ("jc", "active")
    for move, T in zip(our_moves(name, robot, q, Ts, **options), Ts, strict=True):
        e, J = oracle.error_and_jacobian(move.before, T)
        dq = oracle.step(move.before, J, e, T_d=T)
        expected = move.before + dq
        expected = robot.clip(expected) if clips else expected
        atol = slack(name, options, oracle, dq)
        np.testing.assert_allclose(move.after, expected, rtol=1e-15, atol=atol)
        np.testing.assert_allclose(move.before + move.dq, move.after, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("case", [*((name, {}) for name in NAMES), *REMEMBERS], ids=label)
def test_steps_in_a_row_are_the_papers(case):
    name, options = case
    for arm in ("wam", "6 and a follower", "9"):
        if suits(name, options, ARMS[arm]):
            assert_same_path(name, options, ARMS[arm], *path(arm, 1))


@pytest.mark.parametrize("case", [*((name, {}) for name in SAMPLE), *VARIANTS], ids=label)
def test_three_steps_of_other_combinations_are_the_papers(case):
    name, options = case
    q, Ts = path("wam", 2)
    assert_same_path(name, options, ARMS["wam"], q, Ts[:3])


@pytest.mark.parametrize("case", REMEMBERS, ids=label)
def test_a_reset_forgets(case):
    name, options = case
    q, Ts = path("wam", 3)
    ours = stepper(name, ARMS["wam"], q, **options)
    first = [np.array(ours.step(T)) for T in Ts]
    ours.reset(q)
    again = [np.array(ours.step(T)) for T in Ts]
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_many_steps_at_once_are_single_steps(case):
    name, options = case
    q, Ts = path("wam", 4)
    one, other = (stepper(name, ARMS["wam"], q, **options) for _ in range(2))
    trace = other.run(np.array(Ts), len(Ts))
    for i, T in enumerate(Ts):
        np.testing.assert_array_equal(trace.q[i], one.q)
        np.testing.assert_array_equal(trace.error[i], one.error(T))
        one.step(T)
    np.testing.assert_array_equal(trace.q[-1], one.q)
    np.testing.assert_array_equal(other.q, one.q)
