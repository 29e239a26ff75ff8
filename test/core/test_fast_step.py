# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the step of the fast path: normal equations, limits, motion along the solutions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import WAM, options_of, step
from oracle_ik import pose_error

from dls_ik import RobotModel
from dls_ik.core.fast import step as fast
from dls_ik.core.fast.kinematics import aim, observe_arm
from dls_ik.core.fast.step import apply_transposed, slide, solve_few
from dls_ik.core.fast.table import LEAF_ROWS
from dls_ik.core.jit import kernel
from dls_ik.core.workspace import fast_workspace
from dls_ik.model.chain import build_arm
from dls_ik.solver.problem import random_starts


@kernel
def write_normal(J, h, e, lambda2, y):
    return fast.solve_normal(J, h, e, lambda2, y)


@kernel
def write_transposed(J, h, y, dq):
    apply_transposed(J, h, y, dq)


def solve_normal(J, h, e, lambda2):
    """Return whether the kernel found a solution, and y (6,)."""
    y = np.full(6, np.nan)
    return write_normal(np.ascontiguousarray(J.T), h, e, lambda2, y), y


def step_of_few(J, h, e, lambda2):
    """Return dq (n,), NaN for held joints."""
    dq = np.full(J.shape[1], np.nan)
    solve_few(
        np.ascontiguousarray(J.T), h, e.copy(), lambda2, dq, np.full(13 * J.shape[1] + 48, np.nan)
    )
    return dq


def drawn(seed, n, held=0):
    """Return a Jacobian (6, n), the activations of its columns, and an error (6,)."""
    rng = np.random.default_rng(seed)
    h = np.zeros(n)
    h[rng.permutation(n)[:held]] = 1.0
    return rng.normal(size=(6, n)), h, rng.normal(size=6)


def damped(J, lambda2, e):
    """Return J^T (J J^T + lambda^2 I)^-1 e by the singular values above zero."""
    if J.shape[1] == 0:
        return np.empty(0)
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    kept = s > 1e-9 * s[0]
    filtered = np.zeros_like(s)
    filtered[kept] = s[kept] / (s[kept] ** 2 + lambda2)
    return Vt.T @ (filtered * (U.T @ e))


SIZES, SEEDS = st.integers(6, 14), st.integers(0, 10**6)
DAMPING = st.sampled_from([0.0, 1e-12, 1e-6, 1e-2, 1.0, 1e3])
easy = settings(max_examples=100)


@easy
@given(SEEDS, SIZES, DAMPING)
def test_solve_normal_matches_numpy(seed, n, lambda2):
    J, h, e = drawn(seed, n)
    A = J @ J.T + lambda2 * np.eye(6)
    solved, y = solve_normal(J, h, e, lambda2)
    if solved:
        bound = 1e-13 * np.linalg.cond(A) * np.linalg.norm(y)
        np.testing.assert_allclose(y, np.linalg.solve(A, e), rtol=0, atol=bound)
    else:
        assert np.linalg.cond(A) > 1e4


@easy
@given(SEEDS, SIZES, st.integers(0, 4))
def test_held_columns_are_left_out(seed, n, held):
    J, h, e = drawn(seed, n, held)
    J[:, h != 0.0] = np.nan  # must not be read
    solved, y = solve_normal(J, h, e, 1e-2)
    assert solved
    free = J[:, h == 0.0]
    expected = np.linalg.solve(free @ free.T + 1e-2 * np.eye(6), e)
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("size", [0.0, 1e-12, np.nan])
def test_solve_normal_reports_a_vanishing_pivot(row, size):
    for seed in range(20):
        J, h, e = drawn(seed, 7)
        J[row] = size * J[row]
        assert not solve_normal(J, h, e, 0.0)[0]


@pytest.mark.parametrize("free", range(6))
def test_fewer_columns_than_rows_have_no_solution_without_damping(free):
    for seed in range(20):
        J, h, e = drawn(seed, 7, held=7 - free)
        assert not solve_normal(J, h, e, 0.0)[0]


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e6, 1e100])
def test_units_make_no_difference(scale):
    for seed in range(20):
        J, h, e = drawn(seed, 7)
        plain = solve_normal(J, h, e, 1e-2)
        scaled = solve_normal(scale * J, h, e, 1e-2 * scale**2)
        assert plain[0]
        assert scaled[0]
        np.testing.assert_allclose(scaled[1] * scale**2, plain[1], rtol=1e-9)


def test_given_arrays_stay_as_they_are():
    J, h, e = drawn(0, 7, held=1)
    kept = J.copy(), h.copy(), e.copy()
    solve_normal(J, h, e, 1e-2)
    step_of_few(J, h, e, 1e-2)
    for array, before in zip((J, h, e), kept, strict=True):
        np.testing.assert_array_equal(array, before)


@easy
@given(SEEDS, st.integers(1, 12), st.integers(0, 12), DAMPING)
def test_solve_few_matches_svd_for_few_free_columns(seed, n, held, lambda2):
    J, h, e = drawn(seed, n, min(held, n))
    free = h == 0.0
    dq = step_of_few(J, h, e, lambda2)
    assert np.isnan(dq[~free]).all()
    expected = damped(J[:, free], lambda2, e)
    np.testing.assert_allclose(dq[free], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lambda2", [0.0, 1e-4])
def test_solve_few_matches_svd_for_singular_jacobians(lambda2):
    for seed in range(30):
        J, h, e = drawn(seed, 7)
        J[:, 3:] = J[:, :3] @ np.random.default_rng(seed).normal(size=(3, 4))
        dq = step_of_few(J, h, e, lambda2)
        np.testing.assert_allclose(dq, damped(J, lambda2, e), rtol=1e-6, atol=1e-6)


def test_solve_normal_and_solve_few_give_the_same_step():
    for seed in range(30):
        J, h, e = drawn(seed, 8, held=1)
        solved, y = solve_normal(J, h, e, 1e-3)
        assert solved
        dq = np.full(8, np.nan)
        write_transposed(np.ascontiguousarray(J.T), h, y, dq)
        np.testing.assert_allclose(dq, step_of_few(J, h, e, 1e-3), rtol=1e-8, atol=1e-10)


PUMA = RobotModel.from_name("puma560")


@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma560"])
def test_fast_step_holds_joints_that_would_pass_their_limits(robot):
    rng, held = np.random.default_rng(3), 0
    for _ in range(20):
        at_end = rng.random(robot.n) < 0.4
        ends = np.where(rng.random(robot.n) < 0.5, robot.lower + 0.01, robot.upper - 0.01)
        q = np.where(at_end, ends, robot.random(rng=rng))
        J, e = np.diag([1, 1, 1, 0.5, 0.5, 0.5]) @ robot.jacobian(q), 0.1 * rng.normal(size=6)
        quick, general = (step("auto", robot, q, J, e, general=way) for way in (False, True))
        np.testing.assert_allclose(quick, general, rtol=0.0, atol=1e-9)
        assert robot.within_limits(robot.clip(q + quick))
        limits = np.concatenate([robot.lower, robot.upper])
        held += np.isin(np.round(np.tile(q + quick, 2) - limits, 12), 0.0).any()
    assert held > 5


GOAL = options_of("auto").goal()
WEIGHT = GOAL.rotation_weight
ROOTS = np.linspace(0.7, 1.4, 7)  # square roots of the joint weights
SCALE = np.repeat([1.0, WEIGHT], 3)
STEPS, CORRECTIONS, LONGEST, ENOUGH, FAR = 30, 6, 0.5, 0.01, 0.2 * WEIGHT


@kernel
def slid(arm, goal, starts, T_d, seed, q, work):
    """Call the inlined function from a separate kernel."""
    aim(arm.base, arm.tip, T_d, work.target)
    observe_arm(arm, goal.rotation_weight, q, work)
    return slide(arm, goal, starts, seed, q, work)


def kernel_slide(robot, T_d, seed, q):
    """Return the end of the slide (n,), and the number of steps."""
    arm, q = build_arm(robot.chain), q.copy()
    starts = random_starts(robot, ROOTS[: robot.n] ** 2, True)
    return q, slid(arm, GOAL, starts, T_d, seed, q, fast_workspace(arm, LEAF_ROWS))


def numpy_step(q, J, e, z):
    """Return z + P (e - J z) (n,), with joints that would pass a limit at the limit."""
    dq, free = z.copy(), np.ones(len(q), bool)
    while True:
        part = np.linalg.pinv(J[:, free] / ROOTS[free]) @ (e - J @ dq)
        tried = dq.copy()
        tried[free] += part / ROOTS[free]
        there = q + tried
        beyond = free & (WAM.clip(there) != there)
        if not beyond.any():
            return tried
        dq[beyond] = (WAM.clip(there) - q)[beyond]
        free &= ~beyond


def numpy_slide(T_d, seed, q):
    """Slide as the docstrings specify."""
    arrived, error = False, 0.0
    for k in range(STEPS):
        arrived = arrived or k >= STEPS - CORRECTIONS
        goes = not arrived and error <= FAR
        z = (seed - q) * goes
        z *= LONGEST / max(LONGEST, np.abs(z * ROOTS).max())
        e = SCALE * pose_error(T_d, WAM.fk(q))
        dq = numpy_step(q, SCALE[:, None] * WAM.jacobian(q), e, z)
        largest = np.abs(dq * ROOTS).max()
        q = WAM.clip(q + dq * min(1.0, LONGEST / largest))
        off = pose_error(T_d, WAM.fk(q))
        position, rotation = np.linalg.norm(off[:3]), np.linalg.norm(off[3:])
        error = position + WEIGHT * rotation
        if arrived and position <= GOAL.position_tolerance and rotation <= GOAL.rotation_tolerance:
            break
        arrived = arrived or (goes and largest < ENOUGH)
    return q, k + 1


def away(rng):
    """Return a pose, a distant seed, and a solution of the pose."""
    q = WAM.lower + (WAM.upper - WAM.lower) * rng.uniform(0.05, 0.95, 7)
    return WAM.fk(q), WAM.random(rng=rng), q


@pytest.mark.parametrize("number", range(12))
def test_slide_matches_a_numpy_implementation(number):
    T_d, seed, q = away(np.random.default_rng(number))
    ours, steps = kernel_slide(WAM, T_d, seed, q)
    theirs, count = numpy_slide(T_d, seed, q)
    assert steps == count
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-6)


def test_slide_moves_most_solutions_closer_to_the_seed_within_limits():
    rng, nearer, solved = np.random.default_rng(4), 0, 0
    for _ in range(40):
        T_d, seed, q = away(rng)
        ours, _ = kernel_slide(WAM, T_d, seed, q)
        assert WAM.within_limits(ours)
        off = pose_error(T_d, WAM.fk(ours))
        solved += np.linalg.norm(off[:3]) <= GOAL.position_tolerance
        nearer += np.linalg.norm((ours - seed) * ROOTS) < np.linalg.norm((q - seed) * ROOTS)
    assert solved >= 30
    assert nearer >= 36


def test_without_redundancy_there_is_nothing_to_slide_along():
    robot = RobotModel.from_name("puma560")
    q = 0.3 * robot.upper
    ours, steps = kernel_slide(robot, robot.fk(q), robot.clip(q + 0.5), q)
    assert steps == 0
    np.testing.assert_array_equal(ours, q)
