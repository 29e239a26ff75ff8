"""CTP: how far a joint is held, from the start of its margin to its limit and beyond."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_ik import activation as slow_activation

from dls_ik.core.limits import LEAST_ACTIVATION, activation

LOWER, UPPER = -0.9, 3.1  # joint 4 of the WAM
quick = settings(deadline=None, max_examples=300, derandomize=True)


def along(margin, start, end, count=2001):
    """Activation at depths from `start` to `end`, as shares of the upper margin."""
    width = margin * (UPPER - LOWER)
    q = UPPER - width + width * np.linspace(start, end, count)
    return np.array([activation(x, LOWER, UPPER, margin) for x in q])


@pytest.mark.parametrize("margin", [1e-6, 0.05, 0.2, 0.5])
def test_free_outside_the_margins_and_held_from_the_limit_on(margin):
    width = margin * (UPPER - LOWER)
    for q in np.linspace(LOWER + width, UPPER - width, 50):
        assert activation(q, LOWER, UPPER, margin) == 0.0
    for q in (LOWER, UPPER, LOWER - 1e-9, UPPER + 1e-9, -1e9, 1e9):
        assert activation(q, LOWER, UPPER, margin) == 1.0


@pytest.mark.parametrize("margin", [0.05, 0.2, 0.5])
def test_rises_without_a_jump(margin):
    h = along(margin, 0.0, 1.1)
    assert (np.diff(h) >= 0.0).all()
    assert np.diff(h).max() < 4.1 * 1.1 / 2000  # steepest half way in, at a slope of 4


def test_half_way_in_it_is_half_held():
    assert activation(UPPER - 0.1 * 4.0, LOWER, UPPER, 0.2) == pytest.approx(0.5, rel=1e-12)


def test_what_is_next_to_nothing_is_nothing():
    h = along(0.2, 0.0, 0.3, 20001)
    assert h[h > 0.0].min() >= LEAST_ACTIVATION
    assert h[h > 0.0].min() < 1.01 * LEAST_ACTIVATION


@quick
@given(st.floats(-5.0, 5.0), st.floats(-3.0, 0.0), st.floats(0.01, 4.0), st.floats(0.001, 0.5))
def test_formula(q, lower, size, margin):
    ours = activation(q, lower, lower + size, margin)
    slow = slow_activation(*(np.array([x]) for x in (q, lower, lower + size)), margin)
    assert ours == pytest.approx(slow[0], abs=1e-9)


@quick
@given(st.floats(0.0, 3.0), st.floats(0.001, 0.5))
def test_both_limits_alike(q, margin):
    assert activation(q, -2.0, 2.0, margin) == activation(-q, -2.0, 2.0, margin)


@pytest.mark.parametrize(
    ("lower", "upper"), [(-np.inf, np.inf), (-np.inf, 1.0), (-1.0, np.inf), (-1e308, 1e308)]
)
def test_without_a_range_there_is_no_margin(lower, upper):
    for q in (-1e9, -1.0, 0.0, 1.0, 1e9):
        assert activation(q, lower, upper, 0.05) == 0.0


@pytest.mark.parametrize("room", [0.0, 5e-324])
def test_a_joint_without_room_is_held(room):
    for q in (0.0, -0.0, room, 1.0, -1e-300):
        assert activation(q, 0.0, room, 0.05) == 1.0
