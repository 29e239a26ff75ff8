# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Voxels cover their region, the ball contains every position, rotations are evenly spread."""

import numpy as np
import pytest
from arms import random_arm
from reach_maps import gantry, planar_arm

from dls_ik.model import RobotModel
from dls_ik.reachability.grid import (
    Grid,
    ReachabilityError,
    checked_resolution,
    grid_around,
    grid_in,
    orientations,
    reach_ball,
    spread_directions,
    spread_rotations,
)
from dls_ik.reachability.settings import checked_orientations, checked_task

KINDS = ("revolute", "continuous", "prismatic", "mimic")


@pytest.mark.parametrize("number", range(8))
def test_no_position_lies_outside_the_ball(number):
    rng = np.random.default_rng(number)
    kinds = ("revolute", *rng.choice(KINDS, size=rng.integers(1, 7)))
    kinds = [
        "revolute" if kind == "mimic" and kinds[i - 1] == "mimic" else kind
        for i, kind in enumerate(kinds)
    ]
    arm = random_arm(rng, *kinds)
    ball = reach_ball(arm)
    positions = arm.fk(arm.random(2000, rng))[:, :3, 3]
    assert np.linalg.norm(positions - ball.centre, axis=1).max() <= ball.radius + 1e-9


@pytest.mark.parametrize(
    ("arm", "centre", "least", "most"),
    [
        (planar_arm(1.0, 0.5), [0.0, 0.0, 0.0], 1.5, 1.5),
        (gantry((0.0, 1.0), (-2.0, 0.0), (0.5, 0.7)), [0.5, -1.0, 0.6], 1.6, 1.6),
        # The centre is at the height of the shoulder
        (RobotModel.from_name("puma560"), [0.0, 0.0], 0.8, 1.2),
    ],
    ids=["disc", "slides from mid-range", "puma560"],
)
def test_reach_ball_of_known_arms_has_the_expected_size(arm, centre, least, most):
    ball = reach_ball(arm)
    np.testing.assert_allclose(ball.centre[: len(centre)], centre, atol=1e-12)
    assert least - 1e-9 <= ball.radius <= most + 1e-9


@pytest.mark.parametrize("resolution", [0.03, 0.1, 0.7, 3.0])
def test_voxels_cover_the_ball_and_one_is_in_its_middle(resolution):
    ball = reach_ball(RobotModel.wam())
    grid = grid_around(ball, resolution)
    for i in range(3):
        edges = grid.edges(i)
        assert edges[0] <= ball.centre[i] - ball.radius + 1e-9
        assert edges[-1] >= ball.centre[i] + ball.radius - 1e-9
        assert edges[-1] - edges[0] < 2.0 * ball.radius + 2.0 * resolution
        assert np.abs(grid.axis(i) - ball.centre[i]).min() < 1e-9


def test_grid_in_divides_a_region_into_voxels():
    grid = grid_in((0.0, 1.0, -0.5, 0.0, 0.3, 0.3), 0.25)
    assert grid.shape == (4, 2, 1)
    np.testing.assert_allclose(grid.axis(0), [0.125, 0.375, 0.625, 0.875])
    np.testing.assert_allclose(grid.axis(1), [-0.375, -0.125])
    np.testing.assert_allclose(grid.axis(2), [0.3])
    assert grid_in((0.0, 0.3, 0.0, 0.1, 0.0, 0.1), 0.1).shape == (3, 1, 1)  # 0.3 / 0.1 > 3
    assert grid_in((0.0, 0.31, 0.0, 0.1, 0.0, 0.1), 0.1).shape == (4, 1, 1)


def test_voxels_are_numbered_in_c_order():
    grid = Grid((1.0, 2.0, 3.0), 0.5, (2, 3, 4))
    x, y, z = np.meshgrid(*(grid.axis(i) for i in range(3)), indexing="ij")
    expected = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    np.testing.assert_allclose(grid.centres(0, grid.size), expected)
    np.testing.assert_allclose(grid.centres(5, 9), expected[5:9])
    assert [grid.layer(1, y) for y in (-9.0, 2.2, 2.3, 9.0)] == [0, 0, 1, 2]


@pytest.mark.parametrize("resolution", [0.0, -0.1, np.nan, np.inf, "wide", None, 1e-9])
def test_invalid_resolutions_are_refused(resolution):
    with pytest.raises(ReachabilityError, match="edge of a voxel"):
        checked_resolution(resolution)


def test_invalid_and_too_large_regions_are_refused():
    for region in [
        (0, 1), (1, 0, 0, 1, 0, 1), (0, 1, 0, np.nan, 0, 1), "all", None, range(7),
    ]:  # fmt: skip
        with pytest.raises(ReachabilityError, match="x0 x1 y0 y1 z0 z1"):
            grid_in(region, 0.1)
    with pytest.raises(ReachabilityError, match=r"1000 x 1000 x 1000 = 1e\+09 voxels"):
        grid_in((0, 1, 0, 1, 0, 1), 0.001)


@pytest.mark.parametrize("spread", [spread_rotations, spread_directions])
@pytest.mark.parametrize("count", [1, 2, 7, 64, 1000])
def test_spread_functions_return_reproducible_rotations(spread, count):
    R = spread(count)
    assert R.shape == (count, 3, 3)
    np.testing.assert_allclose(R @ R.swapaxes(1, 2), np.eye(3)[None].repeat(count, 0), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(R), 1.0)
    np.testing.assert_array_equal(R, spread(count))


def angles(traces):
    return np.arccos(np.clip((traces - 1.0) / 2.0, -1.0, 1.0))


def random_rotations(rng, count):
    z, x = rng.normal(size=(2, count, 3))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    y = np.cross(z, x)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    return np.stack([np.cross(y, z), y, z], axis=-1)


def test_spread_rotations_are_more_even_than_random_ones():
    rng, count = np.random.default_rng(0), 512
    probes = random_rotations(rng, 4000)

    def away(R):
        return angles(np.einsum("aij,bij->ab", probes, R).max(axis=1))

    spread, drawn = away(spread_rotations(count)), away(random_rotations(rng, count))
    assert spread.mean() < 0.95 * drawn.mean()
    assert spread.max() < drawn.max()
    apart = np.einsum("aij,bij->ab", spread_rotations(count), spread_rotations(count))
    np.fill_diagonal(apart, -1.0)
    nearest = angles(apart.max(axis=1))
    assert nearest.min() > 0.5 * nearest.mean()
    np.testing.assert_allclose(spread_rotations(count).mean(axis=0), 0.0, atol=0.02)


def test_directions_share_the_sphere_evenly():
    count = 500
    z = spread_directions(count)[:, :, 2]
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(z.T @ z / count, np.eye(3) / 3.0, atol=0.01)
    apart = z @ z.T
    np.fill_diagonal(apart, -1.0)
    nearest = np.arccos(apart.max(axis=1))
    assert nearest.min() > 0.7 * np.sqrt(4.0 * np.pi / count)


def test_position_task_has_one_orientation_and_invalid_counts_are_refused():
    assert checked_orientations(None, "position") == 1
    assert orientations(1, "position").shape == (1, 3, 3)
    with pytest.raises(ReachabilityError, match="orientation free"):
        checked_orientations(5, "position")
    for count in (0, -1, 2.5, True, "many", 10**6):
        with pytest.raises(ReachabilityError, match="from 1 to 100000"):
            checked_orientations(count, "pose")
    with pytest.raises(ReachabilityError, match="pose, pointing, position"):
        checked_task("grasp")
