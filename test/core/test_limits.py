# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of CTP: activation of a limit, and the one-sided form, which depends on the error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_ik import activation as slow_activation
from structs import method, random_chain

from dls_ik.core.limits import FULL_PUSH, LEAST_ACTIVATION, activation, ctp_activate

LOWER, UPPER = -0.9, 3.1  # joint 4 of the WAM
quick = settings(max_examples=100)


def along(margin, start, end, count=2001):
    """Return the activation at depths from `start` to `end`, as shares of the upper margin."""
    width = margin * (UPPER - LOWER)
    q = UPPER - width + width * np.linspace(start, end, count)
    return np.array([activation(x, LOWER, UPPER, margin) for x in q])


@pytest.mark.parametrize("margin", [1e-6, 0.05, 0.2, 0.5])
def test_activation_is_0_outside_the_margins_and_1_from_the_limit(margin):
    width = margin * (UPPER - LOWER)
    for q in np.linspace(LOWER + width, UPPER - width, 50):
        assert activation(q, LOWER, UPPER, margin) == 0.0
    for q in (LOWER, UPPER, LOWER - 1e-9, UPPER + 1e-9, -1e9, 1e9):
        assert activation(q, LOWER, UPPER, margin) == 1.0


@pytest.mark.parametrize("margin", [0.05, 0.2, 0.5])
def test_activation_rises_continuously_in_the_margin(margin):
    h = along(margin, 0.0, 1.1)
    assert (np.diff(h) >= 0.0).all()
    assert np.diff(h).max() < 4.1 * 1.1 / 2000  # the maximum slope is 4, in the middle


def test_activation_below_the_minimum_is_zero():
    h = along(0.2, 0.0, 0.3, 20001)
    assert h[h > 0.0].min() >= LEAST_ACTIVATION
    assert h[h > 0.0].min() < 1.01 * LEAST_ACTIVATION


@quick
@given(st.floats(-5.0, 5.0), st.floats(-3.0, 0.0), st.floats(0.01, 4.0), st.floats(0.001, 0.5))
def test_activation_matches_its_formula(q, lower, size, margin):
    ours = activation(q, lower, lower + size, margin)
    slow = slow_activation(*(np.array([x]) for x in (q, lower, lower + size)), margin)
    assert ours == pytest.approx(slow[0], abs=1e-9)


@pytest.mark.parametrize(
    ("lower", "upper"), [(-np.inf, np.inf), (-np.inf, 1.0), (-1.0, np.inf), (-1e308, 1e308)]
)
def test_activation_is_zero_without_a_finite_range(lower, upper):
    for q in (-1e9, -1.0, 0.0, 1.0, 1e9):
        assert activation(q, lower, upper, 0.05) == 0.0


@pytest.mark.parametrize("room", [0.0, 5e-324])
def test_activation_is_one_for_a_range_of_zero_width(room):
    for q in (0.0, -0.0, room, 1.0, -1e-300):
        assert activation(q, 0.0, room, 0.05) == 1.0


N, MARGIN = 4, 0.2
CHAIN = random_chain(np.random.default_rng(1), (4,), N)
DEEP = 0.5 * MARGIN * (CHAIN.upper - CHAIN.lower)  # the middle of the margin
PLACES = {"lower": CHAIN.lower + DEEP, "upper": CHAIN.upper - DEEP}


def held(q, J, e):
    """Return the share (n,) of the activation of each joint that the error leaves."""
    h, z = np.full(N, np.nan), np.zeros(N)
    ctp_activate(method(following=True, margin=MARGIN, mu=1.0), False, CHAIN, q, J, e, h, z)
    whole = [activation(*joint, MARGIN) for joint in zip(q, CHAIN.lower, CHAIN.upper, strict=True)]
    assert not z.any(), "no joint is pushed back"
    return h / whole


def pushes(cosine):
    """Return a Jacobian (6, n) and an error (6,) with this cosine to every column."""
    J = np.zeros((6, N))
    J[0], J[3] = 2.0 * cosine, 2.0 * np.sqrt(1.0 - cosine**2)
    return J, np.array([0.7, 0.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("place", PLACES)
def test_ctp_holds_no_joint_for_zero_error_or_zero_jacobian(place):
    J, e = pushes(0.5)
    np.testing.assert_array_equal(held(PLACES[place], J, 0.0 * e), 0.0)
    np.testing.assert_array_equal(held(PLACES[place], 0.0 * J, e), 0.0)


@pytest.mark.parametrize(
    ("outward", "share"), [(0.0, 0.0), (0.5, 0.5), (0.9, 0.9), (1.0, 1.0), (8.0, 1.0), (-0.5, 0.0)]
)
@pytest.mark.parametrize("place", PLACES)
def test_ctp_activation_is_proportional_to_the_outward_push(place, outward, share):
    cosine = outward * FULL_PUSH * (1.0 if place == "upper" else -1.0)
    np.testing.assert_allclose(held(PLACES[place], *pushes(cosine)), share, atol=1e-12)
