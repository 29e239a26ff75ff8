"""Sines and cosines of many angles: NumPy's, to the last digits, wherever the results go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dls_ik.core.fast import kinematics as fast
from dls_ik.core.jit import kernel

ULPS = 3.0  # two of ours, and NumPy's own


@kernel
def write_sines(angles, s, c):
    """A kernel of its own, as the sines are a part of the loop that needs them."""
    fast.sines(angles, s, c)


def sines(angles):
    angles = np.asarray(angles, float)
    s, c = np.full(angles.shape, np.nan), np.full(angles.shape, np.nan)
    write_sines(angles, s, c)
    return s, c


def assert_sines(angles):
    s, c = sines(angles)
    for ours, exact in ((s, np.sin(angles)), (c, np.cos(angles))):
        assert (np.abs(ours - exact) <= ULPS * np.spacing(np.abs(exact))).all()


@pytest.mark.parametrize("largest", [1e-300, 1e-9, 1e-3, 0.8, 4.0, 100.0, 1e5, 2e5, 1e12, 1e300])
def test_are_numpys(largest):
    rng = np.random.default_rng(1)
    assert_sines(rng.uniform(-largest, largest, 20000))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, 31])
def test_any_number_of_angles(size):
    assert_sines(np.random.default_rng(2).uniform(-9.0, 9.0, size))


def test_near_multiples_of_a_quarter_turn():
    quarters = np.arange(-63000, 63000, 37) * (np.pi / 2)
    for off in (0.0, 1e-16, -1e-12, 1e-6, np.pi / 4, -np.pi / 4):
        assert_sines(quarters + off)


def test_around_the_farthest_angle():
    near = fast.FARTHEST * (1.0 + np.array([-1e-15, 0.0, 1e-15, 1e-3]))
    for angle in [*near, *-near]:
        assert_sines([0.3, angle, -2.0])


@settings(deadline=None, max_examples=200)
@given(arrays(float, st.integers(1, 12), elements=st.floats(-1e7, 1e7)))
def test_of_any_angles(angles):
    assert_sines(angles)
    s, c = sines(angles)
    np.testing.assert_allclose(s * s + c * c, 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("largest", [3.0, 1e6])
@pytest.mark.parametrize("over", ["s", "c"])
def test_results_may_go_where_the_angles_are(largest, over):
    angles = np.random.default_rng(3).uniform(-largest, largest, 9)
    expected, other = sines(angles), np.empty(9)
    out = (angles, other) if over == "s" else (other, angles)
    write_sines(angles, *out)
    np.testing.assert_array_equal(out, expected)


# math.sin(inf) is an error in Python, and no number where it is compiled.
@pytest.mark.parametrize(
    "bad", [np.nan, *(pytest.param(x, marks=pytest.mark.compiled) for x in (np.inf, -np.inf))]
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_no_number_gives_none_and_leaves_the_others(bad, at):
    for others in ([0.5, -1.0], [2e5, 0.3]):
        angles = np.insert(others, at, bad)
        s, c = sines(angles)
        assert np.isnan(s[at])
        assert np.isnan(c[at])
        np.testing.assert_allclose(np.delete(s, at), np.sin(others), rtol=1e-15)
        np.testing.assert_allclose(np.delete(c, at), np.cos(others), rtol=1e-15)
