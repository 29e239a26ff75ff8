# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the condition numbers and gains of inverses against the claims of the papers.

Colome & Torras 2012, sections III and IV, and the appendix; Deo & Walker 1993, (6) to (8).
"""

import numpy as np
import pytest
from cases import WAM, jacobian_with
from oracle_laws import filtered
from ours import options_of, our_inverse, our_step

Q = np.zeros(7)
OTHERS = [2.0, 1.1, 0.7, 0.5, 0.3]


def inverse_gains(name, least, others=OTHERS, **options):
    """Return the gain (6,) of each singular value, the smallest last, and the inverse."""
    J, U, V = jacobian_with([*others, least], 7, np.random.default_rng(1))
    P = our_inverse(name, WAM, Q, J, **options)
    np.testing.assert_allclose(V.T @ P @ U, np.diag(np.diag(V.T @ P @ U)), atol=1e-9 * P.max())
    return np.diag(V.T @ P @ U), P


def condition(P):
    s = np.linalg.svd(P)[1]
    return s[0] / s[-1]


@pytest.mark.parametrize("sigma0", [0.005, 0.01, 0.1])
@pytest.mark.parametrize("nu", [2.0, 10.0, 15.0])
def test_svf_bounds_the_condition_number(sigma0, nu):
    """Check kappa <= A(s_1) / sigma0, with equality at the singularity."""
    o = options_of("svf", sigma0=sigma0, nu=nu)
    bound = filtered(np.array(2.0), o) / sigma0
    for least in (1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.3):
        P = inverse_gains("svf", least, sigma0=sigma0, nu=nu)[1]
        assert condition(P) <= bound * (1.0 + 1e-9)
        if least <= 1e-6:
            assert condition(P) == pytest.approx(bound, rel=1e-2)


def test_svf_leaves_a_regular_jacobian_almost_as_it_is():
    gains, _ = inverse_gains("svf", 0.3, [20.0, 15.0, 12.0, 10.0, 8.0])
    np.testing.assert_allclose(gains[:5] * [20.0, 15.0, 12.0, 10.0, 8.0], 1.0, rtol=2e-5)


@pytest.mark.parametrize("name", ["jp", "jt"])
@pytest.mark.parametrize("least", [1e-4, 1e-2, 0.2])
def test_condition_of_pseudoinverse_and_transpose_is_s1_over_sn(name, least):
    """Check s_1 / s_n. The step length of the transpose depends on e, so one e has both parts."""
    J, U, V = jacobian_with([*OTHERS, least], 7, np.random.default_rng(1))
    if name == "jp":
        assert condition(our_inverse("jp", WAM, Q, J)) == pytest.approx(2.0 / least, rel=1e-6)
        return
    dq = our_step("jt", WAM, Q, J, U[:, 0] + U[:, 5])
    assert (V[:, 0] @ dq) / (V[:, 5] @ dq) == pytest.approx(2.0 / least, rel=1e-6)


@pytest.mark.parametrize("lambda_", [1e-3, 0.01, 0.1])
def test_damped_gain_at_singular_value_lambda_is_half_its_inverse(lambda_):
    """Check the first case of the appendix: kappa -> (lambda^2 + s_1^2) / (2 s_1 lambda)."""
    gains, P = inverse_gains("jd", lambda_, lambda_=lambda_)
    assert gains[-1] == pytest.approx(0.5 / lambda_, rel=1e-6)
    assert condition(P) == pytest.approx((lambda_**2 + 4.0) / (4.0 * lambda_), rel=1e-6)


def test_damped_condition_is_constant_while_gain_of_sn_is_in_between():
    """Check the second case: lambda^2 / s_i < s_n < lambda^2 / s_j, kappa is independent of s_n."""
    conditions = [condition(inverse_gains("jd", least, lambda_=0.7)[1])
                  for least in (0.26, 0.27, 0.28, 0.29)]  # fmt: skip
    g = np.array(OTHERS) / (np.array(OTHERS) ** 2 + 0.49)
    np.testing.assert_allclose(conditions, g.max() / g.min(), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "share"),
    [("jd", {"lambda_": 0.01}, 1.0), ("ed", {}, 1.0), ("ied", {}, 1.0), ("dls", {}, 1.0),
     ("jf", {"epsilon": 0.1, "lambda_max": 0.02}, 1.0)],
)  # fmt: skip
def test_damping_grows_without_bound_at_the_singularity(name, options, share):
    """Check the third case, for laws that add to the squares: kappa ~ lambda^2 g_k / s_n."""
    conditions = [condition(inverse_gains(name, least, **options)[1])
                  for least in (1e-6, 1e-8)]  # fmt: skip
    assert conditions[0] > 1e2
    assert conditions[1] == pytest.approx(100.0 * conditions[0], rel=1e-2)


@pytest.mark.parametrize("name", ["jd", "dls", "ed", "ied", "svf", "svf+ed", "tpinv", "nf", "jf"])
def test_gains_stay_below_the_bound_of_each_law(name):
    """Check 1 / (2 lambda), 1 / sigma0, 1 / (t s_1) and the velocity bound, for |e| = 1."""
    bound = {
        "jd": 0.5 / 0.005, "dls": 0.5 / 0.1, "ed": 0.5 / np.sqrt(0.5), "ied": 0.5 / np.sqrt(0.5001),
        "svf": 1.0 / 0.01, "svf+ed": 0.5 / np.sqrt(0.5), "tpinv": 1.0 / (0.01 * 2.0), "nf": 20.0,
        "jf": 0.6 / 0.02,
    }[name]  # fmt: skip
    for least in np.geomspace(1e-9, 0.3, 30):
        gains, _ = inverse_gains(name, least)
        assert gains.max() <= bound * (1.0 + 1e-6)


def test_truncation_zeroes_gains_below_the_threshold():
    assert inverse_gains("tpinv", 0.0199)[0][-1] == pytest.approx(0.0, abs=1e-10)
    assert inverse_gains("tpinv", 0.0201)[0][-1] == pytest.approx(1.0 / 0.0201)
