"""Orientations are rotations, spread evenly, and the same each time."""

import numpy as np
import pytest

from dls_ik.reachability.grid import ReachabilityError, spread_directions, spread_rotations
from dls_ik.reachability.settings import checked_orientations, checked_task, orientations


@pytest.mark.parametrize("spread", [spread_rotations, spread_directions])
@pytest.mark.parametrize("count", [1, 2, 7, 64, 1000])
def test_they_are_rotations(spread, count):
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


def test_rotations_fill_their_space_better_than_chance():
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


def test_without_a_rotation_in_the_task_there_is_one_orientation():
    assert checked_orientations(None, "position") == 1
    assert orientations(1, "position").shape == (1, 3, 3)
    with pytest.raises(ReachabilityError, match="orientation free"):
        checked_orientations(5, "position")


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "many", 10**6])
def test_counts_are_whole_numbers(count):
    with pytest.raises(ReachabilityError, match="from 1 to 100000"):
        checked_orientations(count, "pose")


def test_an_unknown_task_lists_the_known():
    with pytest.raises(ReachabilityError, match="pose, pointing, position"):
        checked_task("grasp")
