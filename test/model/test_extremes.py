"""Rigorous extremes of forms: never crossed, and reached where few joints matter."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import dh_pose
from structs import random_chain

from dls_ik.model import DhRow, RobotModel
from dls_ik.model.reach import forms
from dls_ik.model.reach.elements import elements_of, poses
from dls_ik.model.reach.extremes import Budget, farthest, largest, nearest
from dls_ik.model.reach.forms import reduced

quick = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
ORIGIN = np.zeros(3)


def drawn(seed, m, prismatic=0.3):
    """Elements of random ranges in units of their length, some narrow, some without end."""
    rng = np.random.default_rng(seed)
    elements = elements_of(random_chain(rng, (m,), m, prismatic), 0)
    centre, width = rng.uniform(-3, 3, m), rng.choice([0.0, 0.3, 2.0, 5.0, np.inf], m)
    width = np.where(elements.prismatic, rng.uniform(0, 0.4, m), width)
    elements = elements._replace(lower=centre - 0.5 * width, upper=centre + 0.5 * width)
    return elements.scaled(1.0 / elements.length), rng


def drawn_form(kind, rng):
    base, tip = rng.normal(scale=0.5, size=(2, 2, 3))
    base[0], tip[0] = base[0] / np.linalg.norm(base[0]), tip[0] / np.linalg.norm(tip[0])
    return {
        "distance": lambda: forms.squared_distance(base[1], tip[1]),
        "height": lambda: forms.height(base, tip[1]),
        "lean": lambda: forms.lean(base[0], tip[0]),
        "moment": lambda: forms.moment(base, tip),
    }[kind]()


def sampled(elements, form, rng, count=20_000):
    shares = rng.uniform(size=(count, len(elements.prismatic)))
    at_end = rng.uniform(size=shares.shape) < 0.3
    return forms.value(form, poses(elements, np.where(at_end, np.round(shares), shares))[1])


@quick
@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.sampled_from(["distance", "height", "lean", "moment"]),
)
def test_no_configuration_is_beyond(seed, m, kind):
    elements, rng = drawn(seed, m)
    form = drawn_form(kind, rng)
    numbers = sampled(elements, form, rng)
    assert -largest(elements, forms.negative(form), Budget()) <= numbers.min()
    assert numbers.max() <= largest(elements, form, Budget())


@pytest.mark.parametrize("kind", ["distance", "height", "lean", "moment"])
@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_is_reached(kind, m, seed):
    elements, rng = drawn(seed, m)
    form = drawn_form(kind, rng)
    numbers = sampled(elements, form, rng, 200_000)
    gap = 2e-3 * (numbers.max() - numbers.min()) + 1e-8 * form.scale
    assert numbers.max() == pytest.approx(largest(elements, form, Budget()), abs=gap)
    assert numbers.min() == pytest.approx(
        -largest(elements, forms.negative(form), Budget()), abs=gap
    )


@quick
@given(st.integers(0, 10**6), st.sampled_from(["distance", "height", "lean", "moment"]))
def test_matrices_multiply_as_transforms(seed, kind):
    rng = np.random.default_rng(seed)
    form = drawn_form(kind, rng)
    (A, B), _ = poses(drawn(seed, 3)[0], rng.uniform(size=(2, 3)))
    np.testing.assert_allclose(form.matrix(A @ B), form.matrix(A) @ form.matrix(B), atol=1e-12)


def test_forms_are_what_they_say():
    rng = np.random.default_rng(0)
    T = poses(drawn(0, 3)[0], rng.uniform(size=(1, 3)))[1, 0]
    (n, b), (a, p) = base, tip = rng.normal(size=(2, 2, 3))
    q, v = T[:3, :3] @ p + T[:3, 3], T[:3, :3] @ a
    assert forms.value(forms.squared_distance(b, p), T) == pytest.approx((q - b) @ (q - b))
    assert forms.value(forms.height(base, p), T) == pytest.approx(n @ (q - b))
    assert forms.value(forms.lean(n, a), T) == pytest.approx(n @ v)
    assert forms.value(forms.moment(base, tip), T) == pytest.approx(n @ np.cross(q - b, v))


def test_joints_through_a_point_do_not_matter():
    """A spherical shoulder and a spherical wrist: the elbow alone."""
    half = np.pi / 2
    rows = [(0, -half, 0), (0, half, 0), (0.1, -half, 0.5), (-0.1, half, 0)]
    rows += [(0, -half, 0.4), (0, half, 0), (0, 0, 0.2)]
    arm = [DhRow(a, alpha, d, lower=-2.0, upper=2.0) for a, alpha, d in rows]
    elements = elements_of(RobotModel.from_dh(arm).chain, 0)
    wrist = np.array([0.0, 0.0, -0.2])
    scale = 1.0 / elements.length
    elements = elements.scaled(scale)
    assert len(reduced(elements, forms.squared_distance(ORIGIN, scale * wrist)).lower) == 1
    arms = [[*row, 0.0, False] for row in rows]
    near, far = np.inf, 0.0
    for q4 in np.linspace(-2.0, 2.0, 4001):
        T = dh_pose(arms, [0, 0, 0, q4, 0, 0, 0])
        d = np.linalg.norm(T[:3, :3] @ wrist + T[:3, 3]) * scale
        near, far = min(near, d), max(far, d)
    assert nearest(elements, ORIGIN, scale * wrist, Budget()) == pytest.approx(near, abs=1e-6)
    assert farthest(elements, ORIGIN, scale * wrist, Budget()) == pytest.approx(far, abs=1e-6)


@quick
@given(st.integers(0, 10**6), st.integers(6, 16))
def test_long_chains(seed, m):
    elements, rng = drawn(seed, m)
    base, tip = rng.normal(scale=0.1, size=(2, 3))
    numbers = np.sqrt(sampled(elements, forms.squared_distance(base, tip), rng, 2000))
    assert nearest(elements, base, tip, Budget()) <= numbers.min()
    assert numbers.max() <= farthest(elements, base, tip, Budget()) < np.inf


def test_a_slide_without_end():
    elements = elements_of(random_chain(np.random.default_rng(1), (3,), 3, 1.0), 0)
    elements = elements.scaled(1.0 / elements.length)
    endless = elements._replace(upper=np.full(3, np.inf))
    assert farthest(endless, ORIGIN, ORIGIN, Budget()) == np.inf
    assert nearest(endless, ORIGIN, ORIGIN, Budget()) == 0.0


@quick
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0, 1, 5_000, 50_000, 500_000]))
def test_with_little_work_bounds_are_less_sharp_not_wrong(seed, m, work):
    elements, rng = drawn(seed, m)
    base, tip = rng.normal(scale=0.5, size=(2, 3))
    form = forms.squared_distance(base, tip)
    seen = np.sqrt(np.maximum(sampled(elements, form, rng, 2000), 0.0))
    low, high = (bound(elements, base, tip, Budget(work)) for bound in (nearest, farthest))
    assert low <= seen.min() + 1e-9
    assert seen.max() - 1e-9 <= high
    assert high < np.inf
    height = drawn_form("height", rng)
    assert forms.value(height, elements_pose(elements)) <= largest(elements, height, Budget(work))


def elements_pose(elements):
    return poses(elements, np.full((1, len(elements.prismatic)), 0.5))[1]


def test_the_work_for_very_many_joints_is_bounded():
    rng = np.random.default_rng(3)
    elements = elements_of(random_chain(rng, (200,), 200, 0.0), 0)
    budget = Budget(2_000_000)
    length = farthest(elements, ORIGIN, ORIGIN, budget)
    assert length <= elements.length + 1e-9
    assert nearest(elements, ORIGIN, ORIGIN, budget) == 0.0
    assert budget.is_spent
    assert budget.left > -200_000  # but for the round at which it was noticed
