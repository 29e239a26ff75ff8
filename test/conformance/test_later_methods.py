# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Methods of later papers, compared with the formulas that their papers print."""

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel, Stepper
from dls_ik.errors import DlsIkError

WAM = RobotModel.wam()
BIAS = (1e-3, 2e-3, 5e-4, 0.0125, 3e-3, 1e-3, 0.1)


def far(seed):
    rng = np.random.default_rng(seed)
    q = WAM.random(rng=rng)
    return q, WAM.fk(WAM.random(rng=rng))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gain", [0.0, 0.5])
def test_step_of_lm_is_that_of_sugihara_with_a_diagonal_bias(seed, gain):
    q, T = far(seed)
    stepper = Stepper(WAM, "lm", q, bias=BIAS, error_gain=gain)
    J, e = stepper.jacobian(T), stepper.error(T)
    expected = np.linalg.solve(J.T @ J + gain * (e @ e) * np.eye(7) + np.diag(BIAS), J.T @ e)
    np.testing.assert_allclose(stepper.step(T), expected, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("bound", ["sd", "sdls"])
def test_bounds_of_directions_are_those_of_the_weighted_inverse(bound):
    """Without an active bound, the sum of all directions is the step of the law alone."""
    q, T = far(1)
    options = {"bias": BIAS, "gamma_max": 1e6}
    alone, bounded = (Stepper(WAM, name, q, **options) for name in ("lm", f"lm+{bound}"))
    np.testing.assert_allclose(bounded.step(T), alone.step(T), rtol=0.0, atol=1e-10)


def test_bias_by_joint_name_and_its_refusals():
    named = dict(zip(WAM.joint_names, BIAS, strict=True))
    q, T = far(2)
    by_name, by_order = (Stepper(WAM, "lm", q, bias=each).step(T) for each in (named, BIAS))
    np.testing.assert_array_equal(by_name, by_order)
    for name, bias, said in (
        ("lm", 0.0, "positive, finite bias"),
        ("lm", (1.0, 2.0), "7"),
        ("sns+lm", BIAS, "same bias of all joints"),
        ("lm", "x", "number"),
    ):
        with pytest.raises(DlsIkError, match=said):
            IkSolver(WAM, name, bias=bias)


@pytest.mark.parametrize("seed", range(3))
def test_gaussian_damping_is_full_at_a_singularity_and_none_far_from_it(seed):
    q, T = far(seed)
    q[3] = 0.231  # stretched elbow
    options = {"lambda_max": 0.05, "gauss_width": 0.02}
    stepper = Stepper(WAM, "gdls", q, **options)
    J, e = stepper.jacobian(T), stepper.error(T)
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    g = s / (s**2 + 0.05**2 * np.exp(-((s / 0.02) ** 2)))
    assert g[-1] < 0.02 / s[-1]
    assert g[0] == pytest.approx(1.0 / s[0], rel=1e-12)
    np.testing.assert_allclose(stepper.step(T), Vt.T @ (g * (U.T @ e)), rtol=0.0, atol=1e-10)


def test_sdls_replaces_the_law_near_the_target():
    q, T = far(3)
    error = np.linalg.norm(Stepper(WAM, "dls", q).error(T))
    steps = {
        name: Stepper(WAM, name, q, gamma_max=0.1, **options).step(T)
        for name, options in (
            ("dls", {}),
            ("sdls", {}),
            ("dls+sdls_near", {"switch_distance": 0.99 * error}),
        )
    }
    np.testing.assert_array_equal(steps["dls+sdls_near"], steps["dls"])
    near = Stepper(WAM, "dls+sdls_near", q, gamma_max=0.1, switch_distance=1.01 * error).step(T)
    np.testing.assert_array_equal(near, steps["sdls"])


def test_dls_and_then_sdls_reaches_goals_with_fewer_steps_than_dls():
    rng = np.random.default_rng(0)
    goals, starts = WAM.fk(WAM.random(40, rng)), WAM.random(40, rng)
    found = {
        name: IkSolver(WAM, name).solve_batch(goals, starts)
        for name in ("dls+clamp", "dls+sdls_near+clamp")
    }
    both = found["dls+clamp"].success & found["dls+sdls_near+clamp"].success
    assert both.any()
    steps = {name: each.iterations[both].mean() for name, each in found.items()}
    assert steps["dls+sdls_near+clamp"] < steps["dls+clamp"]


def test_adaptive_clamp_is_released_for_a_step_after_a_jump_of_the_target():
    """Buss & Kim 2004, section 3: a small step, then a target that jumps."""
    q = WAM.clip(np.zeros(7) + 0.3)
    near, jumped = WAM.fk(q).copy(), WAM.fk(q).copy()
    near[0, 3] += 0.01
    jumped[1, 3] += 0.6
    options = {"D_max": 0.05, "adaptive": True, "lambda_": 0.1}
    stepper = Stepper(WAM, "dls+clamp", q, **options)
    stepper.step(near)
    before = stepper.q.copy()
    plain = Stepper(WAM, "dls", before, lambda_=0.1)
    np.testing.assert_allclose(stepper.step(jumped), plain.step(jumped), rtol=0.0, atol=1e-12)
    clamped = stepper.step(jumped)  # the same target again: no jump
    plain = Stepper(WAM, "dls", stepper.q - clamped, lambda_=0.1)
    assert np.linalg.norm(clamped) < np.linalg.norm(plain.step(jumped))
