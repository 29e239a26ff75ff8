# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the kernel that rejects poses beyond bounds, against the oracle."""

import numpy as np
import pytest
from oracle_reach import beyond, numbers, random_pose

from dls_ik.core.reach_bounds import (
    DISTANCE,
    HEIGHT,
    LEAN,
    MOMENT,
    ReachBounds,
    is_beyond_reach,
    rows_beyond_reach,
)


def random_reach(rng, kinds=(DISTANCE, HEIGHT, LEAN, MOMENT), spread=1.0, slides=None):
    k = len(kinds)
    base, tip = rng.normal(size=(2, k, 2, 3))
    for lines in (base, tip):
        lines[:, 0] /= np.linalg.norm(lines[:, 0], axis=1)[:, None]
    middle, width = rng.normal(size=(2, k))
    width = np.abs(width) * spread
    radius = np.linalg.norm(tip[:, 1], axis=1)
    slides = np.zeros((0, 5)) if slides is None else slides
    kinds, ends = np.array(kinds, np.int64), (middle - width, middle + width)
    return ReachBounds(kinds, base, tip, radius, *ends, slides)


@pytest.mark.parametrize("kind", [DISTANCE, HEIGHT, LEAN, MOMENT])
@pytest.mark.parametrize("tolerances", [(1e-6, 1e-6), (0.1, 0.2)])
def test_is_beyond_reach_matches_the_oracle(kind, tolerances):
    rng = np.random.default_rng(kind)
    found = []
    for _ in range(200):
        reach, T = random_reach(rng, [kind], spread=0.5), random_pose(rng)
        found.append(is_beyond_reach(reach, T, *tolerances))
        assert found[-1] == beyond(reach, T, *tolerances)
    assert 0 < sum(found) < len(found)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_distance_bound_uses_the_closest_position_of_a_sliding_base(count):
    rng, found = np.random.default_rng(count), []
    for _ in range(200):
        directions = np.linalg.qr(rng.normal(size=(3, 3)))[0][:count]
        ends = np.sort(rng.choice([-np.inf, -0.5, 0.0, 0.4, 0.8, np.inf], (count, 2)), axis=1)
        ends = np.where(ends[:, :1] == ends[:, 1:], [[-0.3, 0.2]], ends)
        reach = random_reach(rng, [DISTANCE], 0.5, np.hstack([directions, ends]))
        reach, T = reach._replace(least=np.array([-np.inf])), random_pose(rng, 2.0)
        found.append(is_beyond_reach(reach, T, 1e-6, 1e-6))
        p = T[:3, :3] @ reach.tip[0, 1] + T[:3, 3] - reach.base[0, 1]
        along = directions @ p
        shortest = np.linalg.norm(p - np.clip(along, *ends.T) @ directions)
        assert found[-1] == (shortest > reach.largest[0] + 1e-6 + 1e-6 * reach.radius[0])
    assert 0 < sum(found) < len(found)


def test_pose_beyond_any_of_several_bounds_is_beyond_reach():
    rng = np.random.default_rng(1)
    for _ in range(200):
        reach, T = random_reach(rng, spread=3.0), random_pose(rng)
        assert is_beyond_reach(reach, T, 1e-6, 1e-6) == beyond(reach, T, 1e-6, 1e-6)


def test_rows_beyond_reach_equal_single_pose_results():
    rng = np.random.default_rng(2)
    reach, Ts = random_reach(rng, spread=3.0), np.array([random_pose(rng) for _ in range(50)])
    out = np.zeros(len(Ts), np.bool_)
    rows_beyond_reach(reach, Ts, 1e-6, 1e-6, out)
    np.testing.assert_array_equal(out, [is_beyond_reach(reach, T, 1e-6, 1e-6) for T in Ts])


def test_bounds_are_widened_by_the_tolerances():
    """Check poses at a bound, just within and just beyond each tolerance."""
    rng = np.random.default_rng(3)
    reach, T = random_reach(rng, [HEIGHT]), random_pose(rng)
    exact = reach._replace(least=numbers(reach, T), largest=numbers(reach, T))
    n, at = reach.base[0, 0], T.copy()
    for length, expected in ((0.5e-3, False), (2e-3, True)):
        at[:3, 3] = T[:3, 3] + length * n
        assert is_beyond_reach(exact, at, 1e-3, 0.0) == expected
        assert is_beyond_reach(exact, at, 0.0, 1e-3 / reach.radius[0]) == expected


def test_nan_pose_and_infinite_tolerance_are_not_beyond_reach():
    reach = random_reach(np.random.default_rng(4), [DISTANCE])
    assert not is_beyond_reach(reach, np.full((4, 4), np.nan), 1e-6, 1e-6)
    assert not is_beyond_reach(reach, 1e3 * np.eye(4), 1e-6, np.inf)
    at_origin = reach._replace(tip=np.zeros((1, 2, 3)), radius=np.zeros(1))
    assert is_beyond_reach(at_origin, random_pose(np.random.default_rng(5), 1e3), 1e-6, np.inf)


def test_no_pose_is_beyond_reach_without_bounds():
    rng = np.random.default_rng(6)
    assert not is_beyond_reach(random_reach(rng, []), random_pose(rng), 0.0, 0.0)
