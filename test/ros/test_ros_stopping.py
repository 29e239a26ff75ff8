"""How a trajectory comes to rest, as a controller would follow it between the points."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.ros.outputs.stopping import cycles_to_stop, stop

PERIOD = 0.01


def followed(q, v, times):
    """Positions on the cubics through points with velocities, as joint_trajectory_controller has
    them: 50 between two points."""
    s = np.linspace(0.0, 1.0, 51)[:, None]
    pieces = []
    for k, h in enumerate(np.diff(times)):
        (a, b), (u, w) = q[k : k + 2], v[k : k + 2] * h
        pieces.append(
            a * (1 - s) ** 2 * (1 + 2 * s) + b * s**2 * (3 - 2 * s)
            + u * s * (1 - s) ** 2 - w * s**2 * (1 - s)
        )  # fmt: skip
    return np.concatenate(pieces)


def drawn(rng, n=4):
    """A command inside its limits, some joints at them or at rest, some without them."""
    lower, upper = -rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, n)
    q = rng.uniform(lower, upper)
    near = rng.random(n) < 0.3
    q[near] = (upper - rng.choice([0.0, 1e-6, 1e-3, 0.05], n))[near]
    free = rng.random(n) < 0.2
    velocity = rng.normal(size=n) * rng.choice([0.0, 0.01, 1.0, 3.0], n)
    acceleration = rng.choice([0.5, 5.0, 50.0, np.inf], n)
    return q, velocity, np.where(free, -np.inf, lower), np.where(free, np.inf, upper), acceleration


@pytest.mark.parametrize("seed", range(200))
def test_stop_keeps_to_every_limit(seed):
    q0, v0, lower, upper, acceleration = drawn(np.random.default_rng(seed))
    cycles = cycles_to_stop(q0, v0, lower, upper, acceleration, PERIOD)
    elapsed = np.arange(cycles + 3.0)
    q, v = stop(q0, v0, cycles, PERIOD, elapsed)
    path = followed(q, v, elapsed * PERIOD)
    assert (path >= lower - 1e-12).all()
    assert (path <= upper + 1e-12).all()
    assert not v[cycles:].any()
    assert (np.ptp(q[cycles:], axis=0) == 0.0).all()
    free = np.full(4, np.inf)
    unhindered = cycles == cycles_to_stop(q0, v0, -free, free, acceleration, PERIOD)
    if unhindered and cycles > 1:
        assert (np.abs(np.diff(v, axis=0)) <= acceleration * PERIOD * (1.0 + 1e-9)).all()
    moved = path - q0  # on a straight line
    np.testing.assert_allclose(np.outer(moved @ v0, v0), moved * (v0 @ v0), atol=1e-9)


def test_stop_within_a_cycle_without_limits_of_acceleration():
    free = np.full(1, np.inf)
    one, rest = np.array([1.0]), np.array([0.0])
    assert cycles_to_stop(rest, one, -free, free, free, PERIOD) == 1
    assert cycles_to_stop(rest, rest, -free, free, free, PERIOD) == 1
    q, v = stop(rest, one, 1, PERIOD, np.arange(2.0))
    assert (q.ravel().tolist(), v.ravel().tolist()) == ([0.0, 0.005], [1.0, 0.0])


def test_stop_at_once_where_there_is_no_room():
    limit, free = np.array([1.0]), np.full(1, np.inf)
    assert cycles_to_stop(limit, limit, -limit, limit, limit, PERIOD) == 0
    q, v = stop(limit, limit, 0, PERIOD, np.arange(3.0))
    assert (q == 1.0).all()
    assert not v.any()
    outside = np.array([1.5])  # and on its way in
    assert cycles_to_stop(outside, -limit, -limit, limit, free, PERIOD) == 1


def test_stop_of_an_arm_that_hardly_slows_down_has_an_end():
    one, free = np.array([1.0]), np.full(1, np.inf)
    assert cycles_to_stop(one, one, -free, free, np.array([1e-12]), PERIOD) == 60000
