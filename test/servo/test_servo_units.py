"""A controller of the same arm in other units moves alike, to the last bit by a power of two."""

import numpy as np
import pytest
from drive import BENT, WAM, Drive
from scaled import scaled, scaled_poses

KILO = 2.0**10
AWAY = np.array([0.4, -0.3, 0.5, 0.3, -0.4, 0.2, 0.6])


def drives(k, method=None, **options):
    """One in metres and one in units of which a metre has k."""
    there = scaled(WAM, k)
    return Drive(BENT, WAM, method, **options), Drive(BENT, there, method, length_unit=k, **options)


def assert_alike(one, other):
    np.testing.assert_array_equal(other.q, one.q)
    assert other.states == one.states


@pytest.mark.parametrize("k", [KILO, 1.0 / KILO])
@pytest.mark.parametrize("method", [None, "dls", "odls", "auto", "gp+dls", "sdls"])
def test_a_pose_is_followed_alike(method, k):
    one, other = drives(k, method, acceleration=8.0)
    T = WAM.fk(BENT + AWAY)
    one.pose(T).run(1.0)
    other.pose(scaled_poses(T, k)).run(1.0)
    assert_alike(one, other)
    assert np.abs(one.q[-1] - BENT).max() > 0.1


@pytest.mark.parametrize("k", [KILO, 1.0 / KILO])
def test_a_target_out_of_reach_is_left_for_the_next_one_alike(k):
    one, other = drives(k, position_tolerance=2.0**-20)
    far, near = WAM.fk(BENT), WAM.fk(BENT)
    far[0, 3] += 2.0
    near[:3, 3] += (0.01, 0.02, -0.01)  # in kilometres less than entries of a rotation may differ
    for T in (far, near):
        one.pose(T).run(2.5)
        other.pose(scaled_poses(T, k)).run(2.5)
    assert_alike(one, other)
    np.testing.assert_allclose(WAM.fk(one.q[-1])[:3, 3], near[:3, 3], atol=1e-4)


@pytest.mark.parametrize("k", [KILO, 1.0 / KILO])
@pytest.mark.parametrize("speed", [0.25, 200.0])
def test_a_twist_is_followed_alike(k, speed):
    one, other = drives(k)
    V = np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.1])
    one.run(0.5, lambda drive: drive.twist(V))
    other.run(0.5, lambda drive: drive.twist(V * ([k] * 3 + [1.0] * 3)))
    assert_alike(one, other)


@pytest.mark.parametrize("k", [KILO, 1.0 / KILO])
def test_a_trajectory_is_followed_alike(k):
    one, other = drives(k)
    Ts = WAM.fk(BENT + np.linspace(0.0, 0.3, 12)[:, None] * AWAY)
    one.trajectory(Ts, 0.1).run(1.5)
    other.trajectory(scaled_poses(Ts, k), 0.1).run(1.5)
    assert_alike(one, other)
    np.testing.assert_allclose(WAM.fk(one.q[-1]), Ts[-1], atol=1e-3)
