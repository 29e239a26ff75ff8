# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the steps of every method against the oracle and against other methods."""

import numpy as np
import pytest
from cases import (
    ARMS,
    CASES,
    NAMES,
    PLACES,
    WAM,
    draws,
    generic,
    is_regular,
    jacobian_with,
    label,
    slack,
    suits,
)
from oracle_ik import CLIPPING, Oracle, parts_of
from ours import options_of, our_moves, our_quick_step, our_step, stepper


def assert_same(name, options, robot, draw, following=False):
    q, J, e, T_d = draw
    oracle = Oracle(name, robot, options_of(name, **options))
    expected = oracle.step(q, J, e, following, T_d)
    if following:
        ours = our_quick_step(name, robot, q, J, e, following=True, **options)
    else:
        ours = our_step(name, robot, q, J, e, **options)
    atol = slack(name, options, oracle, expected)
    np.testing.assert_allclose(ours, expected, rtol=0.0, atol=atol)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_step_of_every_method_matches_the_oracle(case):
    """Check listed methods for each arm and place, combinations for each arm and for each place."""
    name, options = case
    weight = options.get("rotation_weight", 0.5)
    is_listed = name in NAMES and not options
    for i, (arm, robot) in enumerate(ARMS.items()):
        if not suits(name, options, robot):
            continue
        for k, place in enumerate(PLACES):
            if is_listed or k == (i + CASES.index(case)) % len(PLACES):
                assert_same(name, options, robot, draws(arm, place, weight=weight)[(i + k) % 3])


@pytest.mark.parametrize(
    "name", [n for n in NAMES if parts_of(n).strategy in ("none", "ctp", "idv", "cns", *CLIPPING)]
)
def test_following_step_matches_the_oracle(name):
    for arm in ("wam", "6 and a follower", "9"):
        for k, place in enumerate(PLACES):
            draw = draws(arm, place, seed=6)[k % 3]
            assert_same(name, {}, ARMS[arm], draw, following=True)


FAR = 1e6
SAME = {
    "tpinv of all singular values is jp": (("tpinv", {"truncation": 0.0}), ("jp", {})),
    "jf without damping is jp": (("jf", {"lambda_max": 0.0}), ("jp", {})),
    "nf without a bound is jp": (("nf", {"velocity_bound": 1e9}), ("jp", {})),
    "jd without damping is jp": (("jd", {"lambda_": 0.0}), ("jp", {})),
    "ied without omega is ed": (("ied", {"omega": 0.0}), ("ed", {})),
    "policy error is ed": (("jd", {"policy": "error"}), ("ed", {})),
    "svf+ed without error damping is svf": (("svf+ed", {"error_gain": 0.0}), ("svf", {})),
    "dls is jd": (("dls", {}), ("jd", {"lambda_": 0.1})),
    "odls is jd": (("odls", {}), ("jd", {"policy": "optimal"})),
    "odls with room is jp": (("odls", {"Delta": FAR}), ("jp", {})),
    "clamp of nothing": (("dls+clamp", {"D_max": FAR}), ("dls", {})),
    "adaptive clamp at first": (("dls+clamp", {"adaptive": True, "D_max": 0.01}), ("dls", {})),
    "halve within reach": (("dls+halve", {}), ("dls", {})),
    "max of nothing": (("dls+max", {"largest_change": FAR}), ("dls", {})),
    "norm of nothing": (("dls+norm", {"Delta": FAR}), ("dls", {})),
    "gp without a gain": (("gp+dls", {"mu": 0.0}), ("dls", {})),
    "jc away from limits": (("jc+dls", {}), ("dls", {})),
    "accuracy away from singularities": (
        ("jd", {"policy": "accuracy", "epsilon": 1e-9}),
        ("jp", {}),
    ),
    "manipulability away from singularities": (
        ("jd", {"policy": "manipulability", "w_t": 1e-12}),
        ("jp", {}),
    ),
    "rate at first": (("jd", {"policy": "rate"}), ("jp", {})),
    "mayorga-rank at first": (("jd", {"policy": "mayorga-rank"}), ("jp", {})),
    "(23) with alpha1 = lambda is (24)": (
        ("gp+jd", {"form": 23, "alpha1": 0.2, "lambda_": 0.2}),
        ("gp+jd", {"form": 24, "lambda_": 0.2}),
    ),
    "(22) with A = I is (23)": (
        ("gp+jd", {"form": 22, "alpha1": 0.3, "alpha2": 0.4}),
        ("gp+jd", {"form": 23, "alpha1": 0.3, "lambda_": 0.5}),
    ),
}
QUICK = ["jp", "jd", "ed", "jc", "jc+jd", "jc+ed", "auto"]


@pytest.mark.parametrize("what", SAME)
def test_method_in_limiting_case_equals_the_simpler_method(what):
    one, other = SAME[what]
    rng = np.random.default_rng(1)
    for robot in (WAM, ARMS["9"]):
        for _ in range(4):
            q, J, e, _ = generic(robot, rng)
            steps = [our_step(name, robot, q, J, e, **options) for name, options in (one, other)]
            scale = np.abs(steps[1]).max()
            np.testing.assert_allclose(steps[0], steps[1], rtol=0.0, atol=1e-11 * scale)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("arm", ARMS)
def test_the_quick_step_and_the_general_one_agree(name, arm):
    robot, rng = ARMS[arm], np.random.default_rng(2)
    for _ in range(4):
        q, J, e, _ = generic(robot, rng)
        quick = our_quick_step(name, robot, q, J, e)
        general = our_step(name, robot, q, J, e)
        np.testing.assert_allclose(general, quick, rtol=0.0, atol=1e-11 * np.abs(quick).max())


@pytest.mark.parametrize("lambda_", [1e-3, 0.1, 1.0])
def test_cholesky_and_singular_values_give_the_same_damped_inverse(lambda_):
    rng = np.random.default_rng(3)
    q = np.zeros(7)
    for least in (0.0, 1e-9, 1e-3, 0.5):
        J, U, V = jacobian_with([2.0, 1.0, 0.7, 0.5, 0.3, least], 7, rng)
        e = rng.normal(size=6)
        s = np.array([2.0, 1.0, 0.7, 0.5, 0.3, least])
        by_values = V @ (s / (s**2 + lambda_**2) * (U.T @ e))
        L = np.linalg.cholesky(J @ J.T + lambda_**2 * np.eye(6))
        by_factor = J.T @ np.linalg.solve(L.T, np.linalg.solve(L, e))
        close = {"rtol": 0.0, "atol": 1e-9 * np.abs(by_values).max()}
        np.testing.assert_allclose(by_factor, by_values, **close)
        for name in ("jd", "jd+norm", "jd+max"):
            bounds = {"Delta": FAR, "largest_change": FAR}
            ours = our_step(name, WAM, q, J, e, lambda_=lambda_, **bounds)
            np.testing.assert_allclose(ours, by_values, **close)


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
    ("dls+clamp", {"adaptive": True, "D_max": 0.1, "adaptive_by": "approach"}),
    ("odls", {"Delta": 0.05}),
    ("odls", {"Delta": 0.05, "search": 17}),
]


def path(arm, seed):
    """Return a start inside the limits, and targets that rest, jump away and return."""
    robot, rng = ARMS[arm], np.random.default_rng(seed)
    lower, upper = robot.finite_limits()
    while True:
        q = rng.uniform(lower + 0.2 * (upper - lower), upper - 0.2 * (upper - lower))
        goals = [q + reach * (robot.random(rng=rng) - q) for reach in (0.05, 0.6, 0.3)]
        if all(is_regular(robot.jacobian(x), []) for x in [q, *goals]):
            return q, [robot.fk(goals[k]) for k in (0, 0, 1, 1, 2)]


def assert_same_path(name, options, robot, q, Ts):
    """Compare steps from each configuration of the package, so that differences do not grow."""
    oracle = Oracle(name, robot, options_of(name, **options))
    clips = parts_of(name).strategy in CLIPPING
    moves = our_moves(name, robot, q, Ts, **options)
    for move, T in zip(moves, Ts, strict=True):
        e, J = oracle.error_and_jacobian(move.before, T)
        dq = oracle.step(move.before, J, e, T_d=T)
        expected = move.before + dq
        expected = robot.clip(expected) if clips else expected
        atol = slack(name, options, oracle, dq)
        np.testing.assert_allclose(move.after, expected, rtol=1e-15, atol=atol)
        np.testing.assert_allclose(move.before + move.dq, move.after, rtol=1e-15, atol=1e-15)
    return np.array([q, *(move.after for move in moves)])


@pytest.mark.parametrize("case", [*CASES, *(c for c in REMEMBERS if c not in CASES)], ids=label)
def test_consecutive_steps_match_the_oracle_also_after_a_reset(case):
    name, options = case
    is_whole = case in REMEMBERS or (name in NAMES and not options)
    for arm in ("wam", "6 and a follower", "9") if is_whole else ("wam",):
        robot = ARMS[arm]
        if not suits(name, options, robot):
            continue
        q, Ts = path(arm, 1)
        Ts = Ts if is_whole else Ts[:3]
        path_q = assert_same_path(name, options, robot, q, Ts)
        at_once = stepper(name, robot, q, **options)
        for _ in range(1 + (case in REMEMBERS)):
            trace = at_once.run(np.array(Ts), len(Ts))
            np.testing.assert_array_equal(trace.q, path_q)
            np.testing.assert_array_equal(at_once.q, path_q[-1])
            at_once.reset(q)
        np.testing.assert_array_equal(trace.error[0], at_once.error(Ts[0]))
