"""The default method on real arms: random reachable poses, tasks, seeds from anywhere."""

import numpy as np
import pytest
from arms import PUBLISHED, published, random_arm
from oracle import rigid, rotation
from published_arms import ARMS
from reached import TOLERANCE, check, errors

from dls_ik import IkSolver, Task

COUNT = 300
TURNING = ("gen3", "fetch")  # some of their joints have no limits
# Chains as descriptions of whole robots have them, from the root to each of their ends.
LIMBS = {
    "wheel": ["continuous"],
    "gripper": ["prismatic"],
    "head": ["revolute"] * 2,
    "leg": ["revolute"] * 3,
    "finger": ["revolute", "revolute", "mimic"],
    "scara": ["revolute", "revolute", "prismatic", "continuous"],
    "hand": ["revolute"] * 5,
    "gantry": ["prismatic"] * 3 + ["revolute"] * 3,
    "lift": ["prismatic"] + ["revolute"] * 7,
    "base": ["prismatic"] * 2 + ["continuous"] + ["revolute"] * 6,
    "snake": ["revolute"] * 12,
}


def drawn(name, seed, count=COUNT):
    """A robot, a random generator, joint values, and their poses by the table."""
    robot, rng = published(name), np.random.default_rng(seed)
    q = robot.random(rng, count)
    return robot, rng, q, ARMS[name].pose(q)


@pytest.mark.parametrize("name", PUBLISHED)
class TestEveryArm:
    """One property a test, for each arm."""

    def test_from_random_seeds(self, name):
        robot, rng, _, Ts = drawn(name, 1)
        check(name, Ts, robot.random(rng, COUNT))

    def test_without_seeds(self, name):
        _, _, _, Ts = drawn(name, 2)
        check(name, Ts)

    def test_from_seeds_far_outside(self, name):
        robot, rng, _, Ts = drawn(name, 3)
        check(name, Ts, 20.0 * rng.normal(size=(COUNT, robot.n)))
        check(name, Ts[:50], 1e6 * rng.normal(size=(50, robot.n)))

    def test_from_seeds_at_limits(self, name):
        robot, rng, _, Ts = drawn(name, 4)
        lower, upper = robot.finite_limits()
        check(name, Ts, np.where(rng.random((COUNT, robot.n)) < 0.5, lower, upper))

    def test_positions_alone(self, name):
        robot, rng, _, Ts = drawn(name, 5)
        for T in Ts:  # most rotations are out of reach there
            T[:3, :3] = rotation(rng.normal(size=3), rng.uniform(0.0, np.pi))
        check(name, Ts, robot.random(rng, COUNT), Task.position_only())

    def test_a_pointing_tool(self, name):
        robot, rng, _, Ts = drawn(name, 6)
        for T in Ts:  # fewer than six joints cannot turn the tool as they like
            T[:] = T @ rigid(rotation([0, 0, 1], rng.uniform(-np.pi, np.pi)), np.zeros(3))
        check(name, Ts, robot.random(rng, COUNT), Task.pointing("z"))

    def test_half_a_turn_of_any_joint(self, name):
        """At the start the rotation error is a half turn: its axis has two directions."""
        robot, rng, _, _ = drawn(name, 7, 1)
        lower, upper = robot.finite_limits()
        able = ~robot.chain.prismatic & (upper - lower >= np.pi)
        assert able.any()
        for joint in np.flatnonzero(able):
            seeds = robot.random(rng, 20)
            seeds[:, joint] = rng.uniform(lower[joint], upper[joint] - np.pi, 20)
            q = seeds + np.pi * (np.arange(robot.n) == joint)
            Ts, before = ARMS[name].pose(q), ARMS[name].pose(seeds)
            traces = np.einsum("bij,bij->b", Ts[:, :3, :3], before[:, :3, :3])
            np.testing.assert_allclose(traces, -1.0, atol=1e-12)
            check(name, Ts, seeds)


@pytest.mark.parametrize("name", TURNING)
@pytest.mark.parametrize("turns", [1, 30, 1000])
def test_the_turn_nearest_the_seed(name, turns):
    robot, rng, _, Ts = drawn(name, 8)
    seeds = robot.random(rng, COUNT)
    seeds += 2.0 * np.pi * robot.continuous * rng.integers(-turns, turns, (COUNT, robot.n))
    result = check(name, Ts, seeds)
    away = np.abs(result.q - seeds)[:, robot.continuous]
    assert away.max() <= np.pi + 1e-9


@pytest.mark.parametrize("name", TURNING)
def test_a_solution_some_turns_away_is_answered_with_itself(name):
    robot, rng, q, Ts = drawn(name, 9)
    seeds = q + 2.0 * np.pi * robot.continuous * rng.integers(-5, 6, robot.n)
    result = check(name, Ts, seeds)
    np.testing.assert_allclose(result.q, seeds, atol=1e-6)
    assert result.restarts.max() == 0


@pytest.mark.parametrize("limb", LIMBS)
def test_twenty_of_twenty_poses_of_limbs_of_any_shape(limb):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        robot = random_arm(rng, *LIMBS[limb])
        Ts = robot.fk(robot.random(rng, 20))
        for start in (None, robot.random(rng, 20)):
            result = IkSolver(robot).solve_batch(Ts, start)
            assert result.success.all(), f"{limb} {seed} missed {np.flatnonzero(~result.success)}"
            assert robot.within_limits(result.q).all()
            assert errors(Task(), Ts, robot.fk(result.q)).max() <= TOLERANCE
