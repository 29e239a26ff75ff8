"""The step of every method beside the oracle's, all laws, strategies and bounds."""

from itertools import combinations

import numpy as np
import pytest
from arms import random_arm
from kernels import WAM, options_of, step
from oracle_ik import error_and_jacobian
from oracle_ik import joint_step as slow_step

from dls_ik import RobotModel, method_names

RNG = np.random.default_rng(17)
ARMS = {
    "wam": WAM,
    "puma560": RobotModel.from_name("puma560"),
    "5": random_arm(RNG, *["revolute"] * 5),
    "6 with a slide": random_arm(RNG, "prismatic", *["revolute"] * 5),
    "7 turning": random_arm(RNG, *["continuous", "revolute"] * 3, "continuous"),
    "6 and a follower": random_arm(RNG, *["revolute"] * 3, "mimic", *["revolute"] * 3),
    "9": random_arm(RNG, "prismatic", *["continuous"] * 2, *["revolute"] * 6),
}
PLACES = ("inside", "in margins", "at limits", "beyond")


def placed(robot, place, rng):
    """A configuration inside, or with some joints near, at or beyond a limit: q, which joints."""
    lower, upper = robot.finite_limits()
    q = rng.uniform(lower + 0.1 * (upper - lower), upper - 0.1 * (upper - lower))
    near = (rng.random(robot.n) < 0.4) & (place != "inside")
    high = rng.random(robot.n) < 0.5
    depth = {"in margins": rng.uniform(0.001, 0.049), "beyond": -0.02}.get(place, 0.0)
    inward = np.where(high, -depth, depth) * (upper - lower)
    return np.where(near, np.where(high, upper, lower) + inward, q), np.flatnonzero(near)


def is_regular(J, near):
    """Whether no singular value is small, whichever of the joints near a limit are held."""
    for count in range(len(near) + 1):
        for held in combinations(near, count):
            s = np.linalg.svd(np.delete(J, held, axis=1))[1]
            if not s[-1] > 0.03 * s[0]:
                return False
    return True


def draws(robot, place, seed, count=6):
    """(q, J, e) away from singularities, with targets near and far."""
    rng = np.random.default_rng([seed, PLACES.index(place)])
    found = []
    while len(found) < count:
        q, near = placed(robot, place, rng)
        reach = (0.02, 0.3, 1.0)[len(found) % 3]
        e, J = error_and_jacobian(robot, robot.fk(q + reach * (robot.random(rng) - q)), q)
        if is_regular(J, near):
            found.append((q, J, e))
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("name", method_names())
def test_is_the_papers_step(name, arm, place):
    robot = ARMS[arm]
    for q, J, e in draws(robot, place, 5):
        expected = slow_step(name, options_of(name), robot, q, J, e)
        ours = step(name, robot, q, J, e)
        scale = max(1e-3, np.abs(expected).max())
        np.testing.assert_allclose(ours, expected, rtol=0.0, atol=1e-10 * scale)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("name", method_names())
def test_is_the_step_of_following(name, arm, place):
    robot = ARMS[arm]
    for q, J, e in draws(robot, place, 6):
        expected = slow_step(name, options_of(name), robot, q, J, e, following=True)
        ours = step(name, robot, q, J, e, following=True)
        scale = max(1e-3, np.abs(expected).max())
        np.testing.assert_allclose(ours, expected, rtol=0.0, atol=1e-10 * scale)
