"""Voxels cover what they should, and the ball holds every position of the tip."""

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
    reach_ball,
)

KINDS = ("revolute", "continuous", "prismatic", "mimic")


@pytest.mark.parametrize("number", range(20))
def test_no_position_lies_outside_the_ball(number):
    rng = np.random.default_rng(number)
    kinds = ("revolute", *rng.choice(KINDS, size=rng.integers(1, 7)))
    kinds = [
        "revolute" if kind == "mimic" and kinds[i - 1] == "mimic" else kind
        for i, kind in enumerate(kinds)
    ]
    arm = random_arm(rng, *kinds)
    ball = reach_ball(arm)
    positions = arm.fk(arm.random(rng, 2000))[:, :3, 3]
    assert np.linalg.norm(positions - ball.centre, axis=1).max() <= ball.radius + 1e-9


def test_the_ball_of_a_planar_arm_is_its_disc():
    ball = reach_ball(planar_arm(1.0, 0.5))
    np.testing.assert_allclose(ball.centre, 0.0, atol=1e-12)
    assert ball.radius == pytest.approx(1.5)


def test_the_ball_of_a_shoulder_is_at_its_height():
    ball = reach_ball(RobotModel.from_name("puma560"))
    np.testing.assert_allclose(ball.centre[:2], 0.0, atol=1e-12)
    assert 0.8 < ball.radius < 1.2


def test_slides_are_counted_from_mid_range():
    ball = reach_ball(gantry((0.0, 1.0), (-2.0, 0.0), (0.5, 0.7)))
    np.testing.assert_allclose(ball.centre, [0.5, -1.0, 0.6])
    assert ball.radius == pytest.approx(0.5 + 1.0 + 0.1)


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


def test_voxels_of_a_region():
    grid = grid_in((0.0, 1.0, -0.5, 0.0, 0.3, 0.3), 0.25)
    assert grid.shape == (4, 2, 1)
    np.testing.assert_allclose(grid.axis(0), [0.125, 0.375, 0.625, 0.875])
    np.testing.assert_allclose(grid.axis(1), [-0.375, -0.125])
    np.testing.assert_allclose(grid.axis(2), [0.3])
    assert grid_in((0.0, 0.3, 0.0, 0.1, 0.0, 0.1), 0.1).shape == (3, 1, 1)  # 0.3 / 0.1 > 3
    assert grid_in((0.0, 0.31, 0.0, 0.1, 0.0, 0.1), 0.1).shape == (4, 1, 1)


def test_numbers_of_voxels_are_those_of_a_c_array():
    grid = Grid((1.0, 2.0, 3.0), 0.5, (2, 3, 4))
    x, y, z = np.meshgrid(*(grid.axis(i) for i in range(3)), indexing="ij")
    expected = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    np.testing.assert_allclose(grid.centres(0, grid.size), expected)
    np.testing.assert_allclose(grid.centres(5, 9), expected[5:9])
    assert [grid.layer(1, y) for y in (-9.0, 2.2, 2.3, 9.0)] == [0, 0, 1, 2]


@pytest.mark.parametrize("resolution", [0.0, -0.1, np.nan, np.inf, "wide", None, 1e-9])
def test_a_resolution_is_a_length(resolution):
    with pytest.raises(ReachabilityError, match="edge of a voxel"):
        checked_resolution(resolution)


@pytest.mark.parametrize(
    "region", [(0, 1), (1, 0, 0, 1, 0, 1), (0, 1, 0, np.nan, 0, 1), "all", None, range(7)]
)
def test_a_region_is_six_numbers_in_order(region):
    with pytest.raises(ReachabilityError, match="x0 x1 y0 y1 z0 z1"):
        grid_in(region, 0.1)


def test_too_many_voxels_are_counted():
    with pytest.raises(ReachabilityError, match=r"1000 x 1000 x 1000 = 1e\+09 voxels"):
        grid_in((0, 1, 0, 1, 0, 1), 0.001)
