# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of every objective against its formula, and of its gradient by finite differences."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from structs import general, method, random_chain, task

from dls_ik.core import objectives
from dls_ik.core.kinematics import forward, jacobian
from dls_ik.core.workspace import new_memory, workspace

N = 4
PROPERTY = settings(max_examples=60)
SEEDS = st.integers(0, 100_000)
SIZES = st.sampled_from([(4,), (1,), (6,), (3, 2), (2, 4, 1)])
INSIDE = st.lists(st.floats(-1.95, 2.45), min_size=N, max_size=N).map(np.array)
STEP = 1e-6


def kinematics(chain, q):
    """Return a workspace with the kinematics at q; the cache on disk requires this type."""
    o = general(6, len(q))
    work = workspace(chain, o, new_memory(chain, method(), o))
    forward(chain, q, work.axes, work.T)
    return work


def closed_form(name, chain, o, q):
    """Return H and its gradient by the kernels without scratch."""
    out = np.full(N, np.nan)
    if name == "limits":
        H = objectives.limits_gradient(chain, q, out)
    elif name == "centring":
        H = objectives.centring_gradient(chain, q, out)
    elif name == "posture":
        H = objectives.posture_gradient(o.reference, q, out)
    elif name == "obstacle":
        at = kinematics(chain, q)
        H = objectives.obstacle_gradient(chain, o.obstacle, o.params.influence, at.axes, at.T, out)
    else:
        H = objectives.manipulability_gradient(
            chain, o.task, np.zeros((len(chain.first) - 1, 4, 4)), q, out
        )
    return H, out


def by_differences(name, chain, o, q):
    slope = np.empty(N)
    for j in range(N):
        by = STEP * np.eye(N)[j]
        above, below = (closed_form(name, chain, o, q + sign * by)[0] for sign in (1.0, -1.0))
        slope[j] = (above - below) / (2.0 * STEP)
    return slope


def chain_of(seed=0, sizes=(4,)):
    return random_chain(np.random.default_rng(seed), sizes, N)


@PROPERTY
@given(st.sampled_from(["limits", "centring", "posture"]), INSIDE)
def test_gradients_of_joint_objectives_match_finite_differences(name, q):
    chain, o = chain_of(), general(6, N, reference=np.array([0.1, 0.2, -0.3, 2.0]))
    _, gradient = closed_form(name, chain, o, q)
    np.testing.assert_allclose(gradient, by_differences(name, chain, o, q), rtol=1e-5, atol=1e-6)


def test_limits_are_the_published_formula():
    chain, q = chain_of(), np.array([-1.5, 0.0, 1.0, 2.4])
    L, U = chain.lower, chain.upper
    H, gradient = closed_form("limits", chain, None, q)
    expected = (U - L) ** 2 * (2 * q - U - L) / ((U - q) ** 2 * (q - L) ** 2) / (2 * N)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    assert pytest.approx(np.sum((U - L) ** 2 / ((U - q) * (q - L)) - 4) / (2 * N)) == H


@pytest.mark.parametrize("beyond", [0.0, 1e-300, 1e-9, 1e-4, 0.1, 100.0])
def test_limits_lead_back_from_beyond_a_limit_and_stay_finite(beyond):
    for q, side in ((2.5 + beyond, 1.0), (-2.0 - beyond, -1.0)):
        slope = objectives.limits_slope(q, -2.0, 2.5, N)
        assert 0.0 < side * slope <= 1e6
        assert abs(objectives.limits_value(q, -2.0, 2.5, N)) <= 1e6
    assert abs(objectives.limits_slope(2.5 - 1e-12, -2.0, 2.5, N)) == 1e6


@PROPERTY
@given(st.floats(-3.0, 3.5), st.integers(1, 40))
def test_limits_are_steeper_the_nearer(q, n):
    chain_middle = 0.25
    slope = objectives.limits_slope(q, -2.0, 2.5, n)
    value = objectives.limits_value(q, -2.0, 2.5, n)
    assert abs(slope) <= 1e6
    assert abs(value) <= 1e6
    assert value >= -1e-12 or not -2.0 <= q <= 2.5
    assert slope * (q - chain_middle) >= 0.0
    outward = q + 0.01 * np.sign(q - chain_middle)
    if -2.0 < outward < 2.5:
        assert abs(objectives.limits_slope(outward, -2.0, 2.5, n)) >= abs(slope)
        assert objectives.limits_value(outward, -2.0, 2.5, n) >= value


@pytest.mark.parametrize(
    ("lower", "upper"), [(-np.inf, np.inf), (-np.inf, 1.0), (-1.0, np.inf), (0.5, 0.5)]
)
@pytest.mark.parametrize("name", ["limits", "centring"])
def test_joints_without_a_range_count_nothing(name, lower, upper):
    chain = chain_of()._replace(lower=np.full(N, lower), upper=np.full(N, upper))
    H, gradient = closed_form(name, chain, None, np.full(N, 0.7))
    assert H == 0.0
    assert not gradient.any()


def test_centring_is_a_half_with_every_joint_at_a_limit():
    chain = chain_of()
    assert closed_form("centring", chain, None, chain.upper)[0] == pytest.approx(0.5)
    assert closed_form("centring", chain, None, 0.5 * (chain.lower + chain.upper))[0] == 0.0


@pytest.mark.parametrize("room", [1e-300, 1e-160, 1e-9])
@pytest.mark.parametrize("name", ["limits", "centring"])
def test_gradients_are_bounded_for_tiny_joint_ranges(name, room):
    chain = chain_of()._replace(lower=np.zeros(N), upper=np.full(N, room))
    for q in (0.0, room, 1e15, -1e18):
        H, gradient = closed_form(name, chain, None, np.full(N, q))
        assert np.isfinite(H)
        assert np.abs(gradient).max() <= 1e6


def segments(chain, q):
    """Yield the two ends of every link."""
    at = kinematics(chain, q)
    for p, tip in enumerate(at.T):
        origins = list(at.axes[chain.first[p] : chain.first[p + 1], 1])
        yield from zip(origins, [*origins[1:], tip[:, 3]], strict=True)


def distance(point, a, b):
    """Return the distance from a fine grid of points, independent of the formula."""
    return np.linalg.norm(a + np.linspace(0.0, 1.0, 2001)[:, None] * (b - a) - point, axis=1).min()


@PROPERTY
@given(SEEDS, SIZES, INSIDE)
def test_obstacle_objective_uses_the_closest_point_of_each_link(seed, sizes, q):
    chain = chain_of(seed, sizes)
    point = np.random.default_rng(seed).normal(scale=0.5, size=3)
    H, _ = closed_form("obstacle", chain, general(6, N, obstacle=point, influence=0.8), q)
    depths = [max(0.0, 1.0 - distance(point, a, b) / 0.8) for a, b in segments(chain, q)]
    assert pytest.approx(0.5 * np.square(depths).sum(), rel=1e-4, abs=1e-6) == H


@PROPERTY
@given(SEEDS, SIZES, INSIDE)
def test_obstacle_gradient_matches_finite_differences(seed, sizes, q):
    chain = chain_of(seed, sizes)
    o = general(6, N, influence=0.8)._replace(
        obstacle=np.random.default_rng(seed).normal(scale=0.5, size=3)
    )
    assume(all(distance(o.obstacle, a, b) > 0.01 for a, b in segments(chain, q)))
    _, gradient = closed_form("obstacle", chain, o, q)
    np.testing.assert_allclose(gradient, by_differences("obstacle", chain, o, q), atol=1e-4)


def test_obstacle_out_of_reach_or_in_a_link_pushes_nothing():
    chain, q = chain_of(), np.zeros(N)
    far = general(6, N, obstacle=np.full(3, 100.0), influence=0.3)
    assert closed_form("obstacle", chain, far, q)[0] == 0.0
    assert not closed_form("obstacle", chain, far, q)[1].any()
    on = kinematics(chain, q).axes[0, 1].copy()
    H, gradient = closed_form("obstacle", chain, general(6, N, obstacle=on, influence=1e-3), q)
    assert pytest.approx(0.5) == H
    assert not gradient.any()


@PROPERTY
@given(SEEDS, INSIDE, st.integers(1, 6))
def test_manipulability_gradient_matches_finite_differences(seed, q, r):
    chain = chain_of(seed)
    weights = np.linspace(1.0, 0.5, r)
    o = general(r, N, task=task(r, weights))
    H, gradient = closed_form("manipulability", chain, o, q)
    J = np.empty((6, N))
    at = kinematics(chain, q)
    jacobian(chain, at.axes, at.T, J)
    s = np.linalg.svd(weights[:, None] * J[:r], compute_uv=False)
    assert pytest.approx(-s.prod(), abs=1e-12) == H
    assert np.isfinite(gradient).all()
    if s[-1] > 0.05:  # |w| has a kink at a singularity
        np.testing.assert_allclose(
            gradient, by_differences("manipulability", chain, o, q), rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("name", ["limits", "centring", "manipulability", "posture", "obstacle"])
def test_gradient_calls_the_objective_of_each_id(name):
    chain, q = chain_of(3), np.array([0.3, -0.4, 0.5, 0.6])
    o = general(
        6, N, objective=objectives.OBJECTIVE_IDS[name], reference=np.full(N, 0.2), influence=0.9
    )
    expected = closed_form(name, chain, o, q)
    out = np.full(N, np.nan)
    H = objectives.gradient(chain, o, np.zeros((1, 4, 4)), q, kinematics(chain, q), out)
    assert expected[0] == H
    np.testing.assert_array_equal(out, expected[1])


def test_a_link_of_no_length_is_as_far_as_its_end():
    """Check intersecting axes, as in a shoulder: the link between them is a point."""
    chain, q = chain_of(), np.array([0.3, -0.4, 0.5, 0.6])
    chain.prismatic[:] = False
    chain.fixed[2, :, 3] = 0.0
    ends = list(segments(chain, q))
    assert min(np.linalg.norm(b - a) for a, b in ends) < 1e-12
    point = ends[1][0] + np.array([0.1, 0.2, 0.0])
    H, gradient = closed_form("obstacle", chain, general(6, N, obstacle=point, influence=0.8), q)
    depths = [max(0.0, 1.0 - distance(point, a, b) / 0.8) for a, b in ends]
    assert pytest.approx(0.5 * np.square(depths).sum(), rel=1e-4) == H
    assert np.isfinite(gradient).all()
