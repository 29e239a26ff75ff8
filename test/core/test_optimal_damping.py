# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the optimal damping factor: steps that would be too long have the allowed length."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structs import parameters

from dls_ik.core import optimal_damping as optimal

NEWTON, RECIPROCAL = 17, 18
SHIFT = 1e-4
LENGTHS = (1.0, 0.5, 0.5)  # [m] the planar arm of Deo & Walker 1993, section 5

SCALES = st.floats(-12.0, 3.0).map(lambda x: 10.0**x)
SIGMA = st.just(0.0) | SCALES
SIGNED = SIGMA | SCALES.map(lambda x: -x)
TRIPLES = st.lists(st.tuples(SIGMA, SIGNED, SIGNED), min_size=1, max_size=6)
DELTAS = st.floats(-6.0, 3.0).map(lambda x: 10.0**x)
STARTS = st.just(0.0) | st.floats(-20.0, 9.0).map(lambda x: 10.0**x)
PROPERTY = settings(max_examples=100)


def arrays(triples):
    """Return s (r,) in descending order, gamma (r,) and beta (r,)."""
    return np.array(sorted(triples, key=lambda t: -t[0])).T.copy()


def plain_norm(s, gamma, lambda2):
    """Return |J* e| by the singular values above zero."""
    keep = s > 0.0
    return np.linalg.norm(s[keep] * gamma[keep] / (s[keep] ** 2 + lambda2))


def total_step(s, gamma, beta, rest, lambda2):
    """Return J* e + (I - J* J) v / lambda along each v_i and beyond; lambda 0 means J+."""
    keep = s > 0.0
    gain = np.divide(s, s**2 + lambda2, where=keep, out=np.zeros_like(s))
    along = gamma * gain + (1.0 - gain * s) * beta / (lambda2 or 1.0)
    if lambda2 == 0.0:
        along = np.where(keep, gamma * gain, beta)
    return np.append(along, rest / (lambda2 or 1.0))


@PROPERTY
@given(TRIPLES, DELTAS, STARTS, st.sampled_from([NEWTON, RECIPROCAL]))
@example([(1e-12, 1e3, 0.0)], 1e-6, 0.0, NEWTON)
@example([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)], 1e-6, 1.0, RECIPROCAL)
def test_search_plain_limits_the_step_to_delta(triples, Delta, start, search):
    s, gamma, _ = arrays(triples)
    lambda2, iterations = optimal.search_plain(
        parameters(len(s), 7, Delta=Delta, search=search), s, gamma, start
    )
    if plain_norm(s, gamma, 0.0) <= Delta:
        assert (lambda2, iterations) == (0.0, 0)
    elif plain_norm(s, gamma, 0.0) > Delta * (1.0 + 1e-9):
        assert lambda2 > 0.0
        assert plain_norm(s, gamma, lambda2) == pytest.approx(Delta, rel=1.001e-3)
    assert iterations <= 100


@PROPERTY
@given(TRIPLES, SIGMA, DELTAS, STARTS, st.sampled_from([NEWTON, RECIPROCAL]))
@example([(0.0, 1.0, 3.0)], 0.0, 0.5, 0.0, RECIPROCAL)
@example([(1e-3, 1.0, 0.0)], 0.0, 50.0, 0.0, NEWTON)
def test_search_total_limits_the_total_step_to_delta(triples, rest, Delta, start, search):
    s, gamma, beta = arrays(triples)
    lambda2, iterations = optimal.search_total(
        parameters(len(s), 7, Delta=Delta, search=search), s, gamma, beta, rest**2, start
    )
    undamped = np.linalg.norm(total_step(s, gamma, beta, rest, 0.0))
    damped = np.linalg.norm(total_step(s, gamma, beta, rest, lambda2))
    assert optimal.total_norm(s, gamma, beta, rest**2) == pytest.approx(undamped)
    if undamped <= Delta * (1.0 - 1e-9):
        assert (lambda2, iterations) == (0.0, 0)
    elif undamped > Delta * (1.0 + 1e-9):
        at_least = np.linalg.norm(total_step(s, gamma, beta, rest, SHIFT))
        assert lambda2 >= SHIFT
        assert damped <= Delta * (1.0 + 2e-3)
        if at_least > Delta * (1.0 + 1e-9):
            assert damped == pytest.approx(Delta, rel=2e-3)
        else:
            assert lambda2 == pytest.approx(SHIFT, rel=1e-6)
    assert iterations <= 100


@pytest.mark.parametrize("search", [NEWTON, RECIPROCAL])
def test_without_motion_of_the_null_space_the_factor_is_the_plain_one(search):
    s, gamma = np.array([1.0, 0.5]), np.array([3.0, -2.0])
    o = parameters(2, 7, Delta=0.5, search=search)
    plain, _ = optimal.search_plain(o, s, gamma, 0.0)
    total, _ = optimal.search_total(o, s, gamma, np.zeros(2), 0.0, 0.0)
    assert total == pytest.approx(plain, rel=1e-2)


def test_one_singular_value_has_a_closed_form():
    lambda2, _ = optimal.search_plain(
        parameters(1, 7, Delta=0.5, search=RECIPROCAL), np.array([0.1]), np.array([2.0]), 0.0
    )
    assert lambda2 == pytest.approx(0.1 * 2.0 / 0.5 - 0.1**2, rel=2e-3)


def test_arm_that_cannot_move_its_tip_needs_no_damping():
    o = parameters(3, 7, Delta=1e-6, search=RECIPROCAL)
    assert optimal.search_plain(o, np.zeros(3), np.ones(3), 1.0) == (0.0, 0)


@pytest.mark.parametrize("search", [NEWTON, RECIPROCAL])
def test_search_terminates_for_nan_and_inf(search):
    o = parameters(2, 7, Delta=0.5, search=search)
    for bad in (np.nan, np.inf):
        optimal.search_plain(o, np.array([1.0, 0.5]), np.array([bad, 1.0]), 0.0)
        optimal.search_plain(o, np.array([1.0, 0.5]), np.array([9.0, 1.0]), bad)


def planar(q):
    """Return the tip (2,) and the Jacobian (2, 3) of the planar arm."""
    angles = np.cumsum(q)
    links = LENGTHS * np.array([np.cos(angles), np.sin(angles)])  # (2, 3)
    reach = np.cumsum(links[:, ::-1], axis=1)[:, ::-1]  # vectors from joint j to the tip
    return reach[:, 0], np.array([-reach[1], reach[0]])


def along_the_rectangle(search, push=0.0, speed=2.0, dt=0.005, Delta=5.0):
    """Return the iterations of damped steps and the lengths of all steps, as in section 5."""
    q, o = np.radians([5.0, -175.0, 175.0]), parameters(2, 3, Delta=Delta, search=search)
    sides = np.array([[0.9, 0.0], [0.0, 0.7], [-0.9, 0.0], [0.0, -0.7]])
    lambda2, counts, norms = 0.0, [], []
    for side in sides:
        length = np.linalg.norm(side)
        for _ in range(round(length / (speed * dt))):
            _, J = planar(q)
            U, s, Vt = np.linalg.svd(J, full_matrices=False)
            v = -push * (q - np.radians([-30.0, 0.0, 0.0]))
            gamma, beta = U.T @ (speed * side / length), Vt @ v
            rest2 = max(v @ v - beta @ beta, 0.0)
            if push:
                lambda2, count = optimal.search_total(o, s, gamma, beta, rest2, lambda2)
            else:
                lambda2, count = optimal.search_plain(o, s, gamma, lambda2)
            counts += [count] if lambda2 > 0.0 else []
            part = total_step(s, gamma, beta, 0.0, lambda2)[:-1]
            dq = Vt.T @ part + (v - Vt.T @ beta) / (lambda2 or 1.0)
            norms.append(np.linalg.norm(dq))
            q = q + dt * dq
    return np.array(counts), np.array(norms)


@pytest.mark.parametrize("push", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("search", "most"), [(NEWTON, 3.0), (RECIPROCAL, 2.0)])
def test_warm_starts_need_two_or_three_iterations_along_a_path(search, most, push):
    counts, norms = along_the_rectangle(search, push)
    assert len(counts) > 20
    assert counts.mean() <= most
    assert norms.max() <= 5.0 * 1.001


def test_reciprocal_iteration_is_the_quicker_one_near_a_singularity():
    s, gamma, counts = np.array([1.0, 1e-6]), np.array([0.5, 1.0]), {}
    for search in (NEWTON, RECIPROCAL):
        o = parameters(2, 3, Delta=0.8, search=search)
        counts[search] = optimal.search_plain(o, s, gamma, 0.0)[1]
    assert counts[RECIPROCAL] <= counts[NEWTON]
