# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of damping laws: gains for singular values of zero, and properties of the filter (3)."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernels import options_of
from structs import general, method

from dls_ik.core import damping
from dls_ik.core.damping import svf_value
from dls_ik.solver.method import parse_method

S = np.array([0.9, 0.4, 0.0, 0.0])
LAWS = {name: law for name, law in damping.DAMPING_IDS.items() if not name.startswith("svf")}


def gains(law, count, strength):
    g = np.full(len(S), np.nan)
    damping.gains(method(damping=law), general().params, S, count, strength, g)
    return g


@pytest.mark.parametrize("name", LAWS)
def test_no_gain_where_there_is_no_singular_value(name):
    g = gains(LAWS[name], 3, 0.01)
    np.testing.assert_array_equal(g[2:], 0.0)
    assert (g[:2] >= 0.0).all()


@pytest.mark.parametrize("name", damping.DAMPING_IDS)
def test_no_gain_for_rows_beyond_the_joints(name):
    np.testing.assert_array_equal(gains(damping.DAMPING_IDS[name], 2, 0.01)[2:], 0.0)


PAIRS = [(10.0, 0.01), (10.0, 0.005), (10.0, 0.19), (1.0, 0.5), (0.02, 0.01), (100.0, 0.019)]
quick = settings(max_examples=100)


METHOD = options_of("svf").method(parse_method("svf"))


def filtered(s, nu, sigma0):
    method = METHOD._replace(nu=nu, sigma0=sigma0)
    return np.array([svf_value(method, float(x)) for x in np.atleast_1d(s)])


@pytest.mark.parametrize(("nu", "sigma0"), PAIRS)
def test_filter_is_the_formula_from_sigma0_up_and_leaves_large_values(nu, sigma0):
    s = np.concatenate([[0.0], np.geomspace(1e-12, 1e3, 200)])
    ours = filtered(s, nu, sigma0)
    expected = (s**3 + nu * s**2 + 2 * s + 2 * sigma0) / (s**2 + nu * s + 2)
    np.testing.assert_allclose(ours, expected, rtol=1e-14)
    assert ours[0] == sigma0
    assert (ours >= sigma0).all()
    large = s >= 10.0
    off = (ours - s)[large]
    assert (off > 0.0).all()
    assert (off <= 2.001 * sigma0 / s[large] ** 2).all()


@quick
@given(st.floats(0.01, 100.0), st.floats(1e-4, 1.0), st.floats(0.0, 1.0), st.floats(1e-6, 1.0))
def test_svf_is_increasing_under_its_two_conditions(nu, sigma0, s, more):
    assume(nu > sigma0 and 2.0 > nu * sigma0)
    low, high = filtered([s, s + more], nu, sigma0)
    assert high > low


@pytest.mark.parametrize(("nu", "sigma0"), [(10.0, 0.5), (100.0, 0.1)])
def test_svf_decreases_if_a_condition_is_violated(nu, sigma0):
    method = METHOD._replace(nu=nu, sigma0=sigma0)
    assert svf_value(method, 0.01) < svf_value(method, 0.0)
