# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of every damping policy: comparison with its formula, and its guarantees."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from structs import memory, method, parameters

from dls_ik.core import damping_policies
from dls_ik.core.damping import JD, least_damping
from dls_ik.core.damping_policies import (
    accuracy_damping,
    accuracy_weight,
    bound_on_condition,
    law_damping,
    weight_columns,
    weight_matrix,
    weight_vector,
)

SHAPES = ((2, 3), (6, 6), (6, 7), (6, 4), (1, 5), (3, 1))
METHOD = method(lambda_=0.2, error_gain=0.7)
SET = {
    "lambda0": 0.3, "w_t": 0.8, "rate_t": 0.9, "velocity_bound": 2.0, "tracking_bound": 0.05,
    "condition_bound": 20.0, "lambda_max": 0.4, "epsilon": 0.9, "w_min": 0.1,
}  # fmt: skip
SEARCHED = damping_policies.POLICY_IDS["optimal"]
KNOWN = [
    name for name in damping_policies.POLICY_NAMES if damping_policies.POLICY_IDS[name] != SEARCHED
]


def chosen(name, J, error_norm=0.5, before=None, **given):
    """Return lambda^2 for J (r, n), after a step with the Jacobian `before` if given."""
    r, n = J.shape
    o = parameters(r, n, policy=damping_policies.POLICY_IDS[name], **{**SET, **given})
    past = memory(r, n, steps=before is not None)
    if before is not None:
        damping_policies.remember(o, before, values(before), past)
    return damping_policies.policy_damping(METHOD, o, J, values(J), error_norm, past)


def values(J):
    """Return the singular values (r,), padded with zeros after min(r, n) values."""
    s = np.zeros(J.shape[0])
    s[: min(J.shape)] = np.linalg.svd(J, compute_uv=False)
    return s


def gram(J):
    return J @ J.T if J.shape[0] <= J.shape[1] else J.T @ J


def w(J):
    return np.sqrt(np.linalg.det(gram(J)))


def least(J):
    return np.linalg.svd(J, compute_uv=False)[-1]


def guggenheimer(J):
    A = gram(J)
    k = len(A)
    return 2.0 / abs(np.linalg.det(A)) * (np.linalg.norm(A) / np.sqrt(k)) ** k


def mayorga(ratio, J):
    raw = SET["lambda0"] * (1.0 - ratio) ** 2 if ratio > 1.0 else 0.0
    return min(raw, 1e12 * np.linalg.norm(J) ** 2)


def condition(J):
    s, k = np.linalg.svd(J, compute_uv=False), SET["condition_bound"]
    s_n = s[-1] if J.shape[0] >= J.shape[1] else 0.0
    return max(0.0, (s[0] ** 2 - k * s_n**2) / (k - 1.0))


def near(J):
    return max(0.0, 1.0 - (least(J) / SET["epsilon"]) ** 2)


FORMULAS = {
    "constant": lambda J, _: 0.2**2,
    "error": lambda J, _: 0.7 * 0.5**2,
    "manipulability": lambda J, _: 0.3 * (1.0 - w(J) / 0.8) ** 2 * (w(J) < 0.8),
    "rate": lambda J, last: 0.3 * (1.0 - w(J) / w(last)) * (w(J) / w(last) < 0.9),
    "velocity": lambda J, _: (least(J) / 2.0 - least(J) ** 2) * (least(J) <= 0.5),
    "tracking": lambda J, _: least(J) ** 2 * 0.05 / 0.95,
    "condition": lambda J, _: condition(J),
    "accuracy": lambda J, _: near(J) * 0.4**2,
    "mayorga-condition": lambda J, _: mayorga(guggenheimer(J) / 20.0, J),
    "mayorga-rank": lambda J, last: mayorga(np.linalg.norm(J - last) / least(last), J),
}


def test_every_policy_has_an_id_of_its_own():
    assert tuple(FORMULAS) == damping_policies.POLICY_NAMES[:-1]
    assert sorted(damping_policies.POLICY_IDS.values()) == list(range(11))
    assert (
        damping_policies.POLICY_IDS["mayorga-condition"]
        == damping_policies.POLICY_MAYORGA_CONDITION
    )
    assert damping_policies.POLICY_IDS["accuracy"] == damping_policies.POLICY_ACCURACY


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("shape", SHAPES)
def test_policy_damping_matches_its_formula(name, shape):
    damped = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        J = rng.choice([0.15, 1.0]) * rng.normal(size=shape)
        last = J + rng.choice([0.03, 1.0]) * rng.normal(size=shape)
        lambda2 = chosen(name, J, before=last)
        assert lambda2 == pytest.approx(FORMULAS[name](J, last), rel=1e-6, abs=1e-12)
        damped += lambda2 > 0.0
    of_one_value = min(shape) == 1 and "condition" in name  # the condition number is always 1
    assert damped > 0 or of_one_value


@pytest.mark.parametrize("name", KNOWN)
def test_policy_damping_is_finite_at_a_singularity(name):
    for shape, scale in product(SHAPES, (0.0, 1e-200, 1e-30, 1e30)):
        J = np.zeros(shape)
        J[0, 0] = scale
        for before in (None, J, np.zeros(shape), np.eye(*shape)):
            lambda2 = chosen(name, J, before=before)
            assert np.isfinite(lambda2)
            assert lambda2 >= 0.0


@pytest.mark.parametrize("name", ["rate", "mayorga-rank"])
def test_rate_policies_use_only_the_last_step_of_the_same_attempt(name):
    J = 0.01 * np.eye(2)
    o = parameters(2, 2, policy=damping_policies.POLICY_IDS[name], **SET)
    past = memory(2, 2, steps=0)

    def damping():
        return damping_policies.policy_damping(METHOD, o, J, values(J), 0.5, past)

    damping_policies.remember(o, np.eye(2), values(np.eye(2)), past)
    assert damping() == 0.0
    past.steps[0] = 1
    assert damping() > 0.0
    damping_policies.remember(o, J, values(J), past)
    assert damping() == 0.0


@pytest.mark.parametrize("name", KNOWN)
def test_needs_singular_values_is_true_only_for_policies_using_them(name):
    J, last = np.diag([1.0, 0.1]), np.diag([1.0, 0.5])
    o = parameters(2, 2, policy=damping_policies.POLICY_IDS[name], **SET)
    past = memory(2, 2, steps=1)
    damping_policies.remember(o, last, values(last), past)
    blind = damping_policies.policy_damping(METHOD, o, J, np.full(2, np.nan), 0.5, past)
    if not damping_policies.needs_singular_values(o.policy):
        assert blind == chosen(name, J, before=last)
    else:
        assert blind != chosen(name, J, before=last)


SIGMA = st.floats(-9.0, 2.0).map(lambda x: 10.0**x) | st.just(0.0)
VALUES = st.lists(SIGMA, min_size=1, max_size=6).map(lambda s: np.sort(s)[::-1].copy())
PROPERTY = settings(max_examples=100)


def of_values(s, n):
    """Return a Jacobian (r, n) with these singular values."""
    J = np.zeros((len(s), n))
    np.fill_diagonal(J, s)
    return J


def damped_gains(s, lambda2):
    return np.divide(s, s**2 + lambda2, where=s > 0.0, out=np.zeros_like(s))


@PROPERTY
@given(VALUES, st.floats(0.01, 100.0))
def test_velocity_policy_bounds_the_gain_of_the_weakest_direction(s, bound):
    lambda2 = chosen("velocity", of_values(s, len(s)), velocity_bound=bound)
    gains = damped_gains(s, lambda2)
    assert gains[-1] <= bound * (1.0 + 1e-9)
    between = (s > s[-1] * (1.0 + 1e-9)) & (s < (1.0 / bound - s[-1]) * (1.0 - 1e-9))
    assert gains[~between].max() <= bound * (1.0 + 1e-6)
    assert (gains[between] >= bound * (1.0 - 1e-6)).all()  # not bounded by (6)


@PROPERTY
@given(st.floats(1e-9, 10.0), st.floats(0.01, 100.0))
def test_least_damping_is_the_minimum_that_keeps_the_velocity_bound(s, bound):
    lambda2 = least_damping(s, bound)
    assert lambda2 >= 0.0
    if lambda2 > 1e-6 * s**2:
        assert s / (s**2 + lambda2) == pytest.approx(bound, rel=1e-9)


@PROPERTY
@given(VALUES, st.floats(0.001, 0.99))
def test_tracking_error_is_bounded_wherever_the_tip_can_move(s, bound):
    lambda2 = chosen("tracking", of_values(s, 7), tracking_bound=bound)
    moving = s[s > 1e-10 * s[0]]
    assert (lambda2 <= bound * (moving**2 + lambda2) * (1.0 + 1e-9)).all()
    if len(moving):
        assert lambda2 / (moving[-1] ** 2 + lambda2) == pytest.approx(bound)


@PROPERTY
@given(VALUES, st.integers(0, 2), st.floats(1.01, 1e8))
def test_condition_number_is_bounded(s, more, bound):
    J = of_values(s, len(s) + more)
    lambda2 = chosen("condition", J, condition_bound=bound)
    eigenvalues = np.append(s, [0.0] * more) ** 2 + lambda2
    assert eigenvalues.max() <= bound * eigenvalues.min() * (1.0 + 1e-9)
    if lambda2 > 0.0:
        assert eigenvalues.max() >= bound * eigenvalues.min() * (1.0 - 1e-6)


@PROPERTY
@given(VALUES, st.sampled_from([1, 3, 7]))
def test_mayorga_bound_is_above_the_condition_number(s, n):
    k = min(len(s), n)
    assume(s[k - 1] > 0.0)
    kappa = (s[0] / s[k - 1]) ** 2
    bound = bound_on_condition(np.append(s[:k], [0.0] * (len(s) - k)), n)
    assert bound >= min(kappa, 1e150) * (1.0 - 1e-9)


@PROPERTY
@given(st.integers(0, 10_000), st.sampled_from(SHAPES), st.floats(1e-3, 1.0))
def test_undamped_steps_of_mayorga_rank_keep_the_rank(seed, shape, change):
    rng = np.random.default_rng(seed)
    last, by = rng.normal(size=(2, *shape))
    by *= change * least(last) / np.linalg.norm(by)
    assert chosen("mayorga-rank", last + 0.99 * by, before=last) == 0.0
    assert least(last + 0.99 * by) > 0.0
    assert chosen("mayorga-rank", last + 1.1 / change * by, before=last) > 0.0


@PROPERTY
@given(st.floats(0.01, 2.0))
def test_accuracy_is_continuous_where_it_begins(epsilon):
    o = parameters(2, 2, **{**SET, "epsilon": epsilon})
    for share, damping, w in ((1.0, 0.0, 1.0), (2.0, 0.0, 1.0), (0.0, 0.16, 0.1)):
        s = np.array([3.0, share * epsilon])
        assert accuracy_damping(o, s, 2) == pytest.approx(damping, abs=1e-12)
        assert accuracy_weight(o, s, 2) == pytest.approx(w, abs=1e-7)
    just_below = np.array([3.0, (1.0 - 1e-9) * epsilon])
    assert 0.0 < accuracy_damping(o, just_below, 2) < 1e-8
    assert 1.0 - 1e-4 < accuracy_weight(o, just_below, 2) < 1.0


def test_accuracy_weighs_as_published():
    o = parameters(3, 4, **SET)
    s = np.array([2.0, 1.0, 0.5])
    w = accuracy_weight(o, s, 4)
    assert (w - 1.0) ** 2 == pytest.approx((1.0 - (0.5 / 0.9) ** 2) * (0.1 - 1.0) ** 2)
    assert 0.0 < w < 1.0


def test_accuracy_weight_ignores_padded_singular_values():
    tall = parameters(3, 2, **SET)
    assert accuracy_weight(tall, np.array([2.0, 1.0, 0.0]), 2) == 1.0


@pytest.mark.parametrize("rows", [3, 4])
def test_weight_functions_multiply_by_the_weight_matrix(rows):
    rng = np.random.default_rng(rows)
    J, left, d = rng.normal(size=(rows, 5)), rng.normal(size=rows), rng.normal(size=3)
    d /= np.linalg.norm(d)
    W = np.eye(rows)
    W[:3, :3] += (0.3 - 1.0) * np.outer(d, d)
    weighted, also = J.copy(), left.copy()
    weight_columns(weighted, d, 0.3)
    weight_vector(also, d, 0.3)
    np.testing.assert_allclose(weighted, W @ J, atol=1e-14)
    np.testing.assert_allclose(also, W @ left, atol=1e-14)
    written = np.empty((rows, rows))
    weight_matrix(d, 0.3, written)
    np.testing.assert_allclose(written, W, atol=1e-14)


@pytest.mark.parametrize("name", KNOWN)
def test_following_adds_error_damping_to_the_policy(name):
    J, e = np.diag([1.0, 0.1]), np.array([0.2, -0.1])
    o = parameters(2, 2, policy=damping_policies.POLICY_IDS[name], **SET)
    still, follows = (
        law_damping(METHOD._replace(damping=JD, following=way), o, J, e, memory(2, 2))
        for way in (False, True)
    )
    assert follows - still == pytest.approx(METHOD.error_gain * (e @ e), abs=1e-15)
