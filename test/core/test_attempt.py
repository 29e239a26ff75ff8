# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of one attempt: comparison with the oracle, joint limits, termination."""

import numpy as np
import pytest
from kernels import STEPPED, WAM, WHOLE, options_of, serves
from oracle_ik import CLIPPING, parts_of, pose_error
from oracle_ik import attempt as slow_attempt

from dls_ik import IkSolver, RobotModel, Status

NAMES = [name for name in STEPPED if name not in WHOLE]
EXACT = [name for name in NAMES if "odls" not in name]  # the search of odls stops within 1e-3
PUMA = RobotModel.from_name("puma560")
CLIPPED = [name for name in NAMES if parts_of(name).strategy in CLIPPING]


def one_attempt(name, robot, T_d, seed, **options):
    solver = IkSolver(robot, name, **{"max_restarts": 0, "stall_count": 0, **options})
    return solver.solve(T_d, seed, timeout=3600.0)


def task(robot, rng, reach=1.0, spread=1.0):
    """Return a reachable pose, and a seed in a part of the range around mid-range."""
    middle = 0.5 * (robot.lower + robot.upper)
    seed = middle + spread * (robot.random(rng=rng) - middle)
    return robot.fk(seed + reach * (robot.random(rng=rng) - seed)), seed


@pytest.mark.parametrize("name", EXACT)
def test_first_steps_of_an_attempt_match_the_oracle(name):
    rng = np.random.default_rng(11)
    for robot, most in ((WAM, 1), (WAM, 4), (PUMA, 2), (PUMA, 4)):
        if serves(name, robot):
            T_d, seed = task(robot, rng, reach=0.1, spread=0.6)
            ours = one_attempt(name, robot, T_d, seed, max_iterations=most)
            options = options_of(name, max_iterations=most)
            q, made = slow_attempt(name, options, robot, T_d, seed)
            assert ours.iterations == made
            np.testing.assert_allclose(ours.q, q, atol=1e-7)


@pytest.mark.parametrize("name", [name for name in NAMES if "ed" in parts_of(name)])
def test_whole_attempt_matches_the_oracle(name):
    rng = np.random.default_rng(12)
    for _ in range(2):
        T_d, seed = task(WAM, rng, reach=0.3)
        ours = one_attempt(name, WAM, T_d, seed, max_iterations=40)
        q, made = slow_attempt(name, options_of(name, max_iterations=40), WAM, T_d, seed)
        assert ours.iterations == made
        np.testing.assert_allclose(ours.q, q, atol=1e-6)


@pytest.mark.parametrize("name", CLIPPED)
@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma560"])
def test_limits_are_kept_at_every_step(name, robot):
    rng = np.random.default_rng(13)
    size = robot.upper - robot.lower
    for _ in range(3):
        T_d, seed = task(robot, rng)
        T_d[:3, 3] *= 1.5  # mostly out of reach
        seed = seed + rng.choice([-1, 0, 1], robot.n) * size
        for most in (1, 2, 3, 5, 8, 13, 39):
            q = one_attempt(name, robot, T_d, seed, max_iterations=most).q
            assert (q >= robot.lower).all()
            assert (q <= robot.upper).all()


@pytest.mark.parametrize("name", NAMES)
def test_errors_belong_to_the_result_and_a_solved_seed_is_returned(name):
    rng = np.random.default_rng(14)
    for _ in range(3):
        T_d, q = task(WAM, rng)
        result = one_attempt(name, WAM, T_d, q, max_iterations=6)
        e = pose_error(T_d, WAM.fk(result.q))
        assert result.position_error == pytest.approx(np.linalg.norm(e[:3]), abs=1e-13)
        assert result.rotation_error == pytest.approx(np.linalg.norm(e[3:]), abs=1e-12)
        result = one_attempt(name, WAM, WAM.fk(q), q)
        assert (result.status, result.iterations, result.restarts) == (Status.SUCCESS, 0, 0)
        np.testing.assert_array_equal(result.q, q)


@pytest.mark.parametrize("position", [1e-2, 1e-9])
@pytest.mark.parametrize("rotation", [1e-2, 1e-9])
def test_each_error_has_a_tolerance_of_its_own(position, rotation):
    rng = np.random.default_rng(16)
    loosest = np.zeros(2)
    for _ in range(20):
        T_d, seed = task(WAM, rng)
        options = {"position_tolerance": position, "rotation_tolerance": rotation}
        result = one_attempt("ed", WAM, T_d, seed, **options)
        errors = np.array([result.position_error, result.rotation_error])
        assert (errors <= [position, rotation]).all()
        loosest = np.maximum(loosest, errors)
    if position == rotation == 1e-2:
        assert (loosest > 1e-4).all()


def test_slow_steps_end_an_attempt():
    T_d = np.eye(4)
    T_d[:3, 3] = 3.0
    seed = np.full(7, 0.3)
    patient = one_attempt("ed", WAM, T_d, seed, max_iterations=100)
    assert patient.iterations == 100
    made = [one_attempt("ed", WAM, T_d, seed, max_iterations=100, stall_count=k).iterations
            for k in (1, 2, 5)]  # fmt: skip
    assert made == sorted(made)
    assert made[-1] < 20
    never = one_attempt("ed", WAM, T_d, seed, max_iterations=100, stall_count=1, stall_ratio=1e9)
    assert never.iterations == 100


@pytest.mark.parametrize("weight", [0.1, 0.5, 2.0])
def test_rotation_weight_is_part_of_the_step(weight):
    rng = np.random.default_rng(17)
    T_d, seed = task(WAM, rng)
    options = {"rotation_weight": weight, "max_iterations": 1}
    q, _ = slow_attempt("ed", options_of("ed", **options), WAM, T_d, seed)
    np.testing.assert_allclose(one_attempt("ed", WAM, T_d, seed, **options).q, q, atol=1e-12)
