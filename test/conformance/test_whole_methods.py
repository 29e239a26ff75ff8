# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Methods that are no combinations of parts: SQP, its alternation with Newton, Halley's method."""

import numpy as np
import pytest
from cases import PUMA, WAM
from oracle_ik import error_and_jacobian

from dls_ik import IkSolver, Stepper, Task
from dls_ik.errors import MethodError
from dls_ik.servo.local_ik import LocalIk


def problem(robot, seed, reach=1.0):
    rng = np.random.default_rng(seed)
    q = robot.random(rng=rng)
    return q, robot.fk(q + reach * (robot.random(rng=rng) - q))


# Halley -------------------------------------------------------------------------------------------


def halley_step(robot, q, T_d, D_max=np.inf, lambda2=0.0):
    """Return the step of the paper, with the derivative of the Jacobian by finite differences."""
    e, J = error_and_jacobian(robot, T_d, q)
    for rows in (slice(0, 3), slice(3, 6)):
        e[rows] *= min(1.0, D_max / np.linalg.norm(e[rows]))
    first, h = damped(J, lambda2) @ e, 1e-6
    ahead, behind = (error_and_jacobian(robot, T_d, q + s * h * first)[1] for s in (1.0, -1.0))
    return damped(J + 0.5 * (ahead - behind) / (2.0 * h), lambda2) @ e


def damped(J, lambda2):
    return J.T @ np.linalg.inv(J @ J.T + lambda2 * np.eye(len(J)))


@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma"])
@pytest.mark.parametrize("lambda_", [0.0, 0.1])
def test_quik_makes_the_step_of_halley(robot, lambda_):
    for seed in range(3):
        q, T_d = problem(robot, seed)
        dq = Stepper(robot, "quik", q, lambda_=lambda_).step(T_d)
        expected = halley_step(robot, q, T_d, 0.3, lambda_**2)
        np.testing.assert_allclose(dq, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("name", "order"), [("quik", 3), ("jp", 2)])
def test_quik_converges_cubically_and_the_pseudoinverse_quadratically(name, order):
    """At half the distance, the error after a step is an eighth (quik) or a quarter (jp)."""
    orders = []
    for seed in range(7):
        after = []
        for reach in (4e-3, 2e-3):
            q, T_d = problem(WAM, seed, reach)
            after.append(np.linalg.norm(Stepper(WAM, name, q).run(T_d, 1).error[1]))
        orders.append(np.log2(after[0] / after[1]))
    assert np.median(orders) == pytest.approx(order, abs=0.2)


def test_quik_solves_tasks_with_tolerances():
    q, T_d = problem(WAM, 4, reach=0.1)
    task = Task.position_only()
    result = IkSolver(WAM, "quik", task=task).solve(T_d, q)
    assert result.success
    assert np.linalg.norm(WAM.fk(result.q)[:3, 3] - T_d[:3, 3]) < 1e-6


# SQP ----------------------------------------------------------------------------------------------


def sqp_configurations(robot, q, T_d, count):
    """Return the start and the trial configurations (count + 1, n) of a naive SQP.

    It has BFGS updates with Powell's damping, and box constraints.
    """
    H, path = np.eye(robot.n), [q]

    def evaluate(x):
        e, J = error_and_jacobian(robot, T_d, x)
        return 0.5 * e @ e, -J.T @ e

    f, g = evaluate(q)
    while len(path) <= count:
        d, t = box_program(H, g, robot.lower - q, robot.upper - q), 1.0
        while len(path) <= count:
            path.append(robot.clip(q + t * d))
            f_new, g_new = evaluate(path[-1])
            if f_new <= f + 1e-4 * t * (g @ d):
                break
            bend = 2.0 * (f_new - f - t * (g @ d))
            t *= np.clip(-t * (g @ d) / bend, 0.1, 0.5)
        s, y = path[-1] - q, g_new - g
        Hs = H @ s
        if s @ y < 0.2 * s @ Hs:
            share = 0.8 * (s @ Hs) / (s @ Hs - s @ y)
            y = share * y + (1.0 - share) * Hs
        H = H + np.outer(y, y) / (s @ y) - np.outer(Hs, Hs) / (s @ Hs)
        q, f, g = path[-1], f_new, g_new
    return np.array(path)


def box_program(H, g, low, high):
    """Return d that minimises d^T H d / 2 + g^T d within low <= d <= high.

    The solution is found by projected coordinate descent.
    """
    d = np.zeros(len(g))
    for _ in range(20_000):
        before = d.copy()
        for j in range(len(d)):
            d[j] = np.clip(d[j] - (H[j] @ d + g[j]) / H[j, j], low[j], high[j])
        if np.abs(d - before).max() < 1e-15:
            break
    return d


@pytest.mark.parametrize("seed", range(3))
def test_sqp_makes_the_steps_of_a_naive_one(seed):
    q, T_d = problem(WAM, seed)
    expected = sqp_configurations(WAM, q, T_d, 8)
    found = Stepper(WAM, "sqp", q).run(T_d, 8).q
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-8)


def test_sqp_stays_within_limits_and_reaches_goals_at_limits():
    rng = np.random.default_rng(3)
    goals = WAM.random(30, rng)
    at_upper = rng.random(goals.shape) < 0.4
    goals = np.where(at_upper, WAM.upper, goals)
    starts = WAM.clip(goals + 0.15 * rng.normal(size=goals.shape))
    poses = WAM.fk(goals)
    found = {
        name: IkSolver(WAM, name, max_iterations=1000).solve_batch(poses, starts)
        for name in ("sqp", "jp")
    }
    assert (found["sqp"].q <= WAM.upper + 1e-12).all()
    assert (found["sqp"].q >= WAM.lower - 1e-12).all()
    assert found["sqp"].success.mean() > 0.6 > found["jp"].success.mean()


def test_sqp_steps_lower_the_error_after_each_search():
    q, T_d = problem(WAM, 11)
    errors = np.linalg.norm(Stepper(WAM, "sqp", q).run(T_d, 80).error, axis=1)
    lowest = np.minimum.accumulate(errors)
    assert lowest[-1] < 0.2 * errors[0]
    assert np.count_nonzero(np.diff(lowest) < 0.0) > 30


# Dual ---------------------------------------------------------------------------------------------


def test_dual_solves_what_neither_solver_solves_alone():
    """Newton's method, then SQP start at the seed; later attempts alternate, at random starts."""
    rng = np.random.default_rng(6)
    goals, starts = WAM.fk(WAM.random(40, rng)), WAM.random(40, rng)
    solver = IkSolver(WAM, "dual", max_restarts=200, timeout=30.0)
    assert solver.options.stall_count == 10
    dual = solver.solve_batch(goals, starts)
    assert dual.success.all()
    assert (WAM.clip(dual.q) == dual.q).all()
    by_threads = solver.solve_batch(goals, starts, threads=2)
    np.testing.assert_array_equal(by_threads.q, dual.q)
    one = IkSolver(WAM, "dual", max_restarts=0).solve_batch(goals, starts)
    two = IkSolver(WAM, "dual", max_restarts=1).solve_batch(goals, starts)
    sqp = IkSolver(WAM, "sqp", stall_count=10, stall_ratio=0.99).solve_batch(goals, starts)
    np.testing.assert_array_equal(two.success, one.success | sqp.success)
    np.testing.assert_array_equal(
        two.q[~one.success & sqp.success], sqp.q[~one.success & sqp.success]
    )
    assert one.success.mean() < 0.9


@pytest.mark.parametrize("name", ["sqp", "dual"])
def test_searches_follow_no_target(name):
    with pytest.raises(MethodError, match="solves single poses and follows no target"):
        LocalIk(WAM, name)


@pytest.mark.parametrize("name", ["sqp+jd", "dual+sd", "ctp+quik", "quik+ed"])
def test_whole_methods_do_not_combine(name):
    with pytest.raises(MethodError, match="cannot be combined with other parts"):
        IkSolver(WAM, name)
