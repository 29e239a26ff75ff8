"""The default method on real arms: random poses, limits, stretched arms, tasks, any seed."""

import numpy as np
import pytest
from arms import PUBLISHED, published, random_arm
from oracle import rigid, rotation
from published_arms import ARMS

from dls_ik import IkSolver, Status, Task

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; rounding


def check(name, Ts, seeds=None, task=None, **options):
    """Solve a batch on one of the published arms; every pose must be reached inside the limits."""
    robot = published(name)
    result = IkSolver(robot, task=task, **options).solve_batch(Ts, seeds)
    assert result.success.all(), f"{name} missed {np.flatnonzero(~result.success)}"
    assert (result.status == Status.SUCCESS).all()
    assert (result.q >= robot.lower).all()
    assert (result.q <= robot.upper).all()
    apart = errors(task or Task(), Ts, ARMS[name].pose(result.q))
    assert apart.max() <= TOLERANCE, f"{name}: {apart.max(axis=0)}"
    return result


def errors(task, wanted, reached):
    """(b, 2) norms of what counts of position [m] and rotation [rad] between (b, 4, 4) poses."""
    position = np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=1)
    if task == Task.position_only():
        rotation = np.zeros(len(position))
    elif task == Task.pointing("z"):
        a, b = wanted[:, :3, 2], reached[:, :3, 2]
        rotation = np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), (a * b).sum(axis=1))
    else:
        assert task == Task.pose()
        R = np.swapaxes(wanted[:, :3, :3], 1, 2) @ reached[:, :3, :3]
        twice_sine = np.linalg.norm((R - np.swapaxes(R, 1, 2))[:, (2, 0, 1), (1, 2, 0)], axis=1)
        rotation = np.arctan2(twice_sine, np.trace(R, axis1=1, axis2=2) - 1.0)
    return np.column_stack([position, rotation])


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
class TestReachablePoses:
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


STRAIGHT = {  # the elbow and where it is straight, of arms that can
    "ur5e": (2, 0.0),
    "ur10e": (2, 0.0),
    "iiwa14": (3, 0.0),
    "gen3": (3, 0.0),
    "sawyer": (3, 0.0),
    "irb140": (2, -np.pi / 2),
    "tx60": (2, 0.0),
    "cobra600": (1, 0.0),
    "youbot": (2, 0.0),
    "fetch": (4, 0.0),
    "column_lwr": (5, 0.0),
}


def marked(robot, rng, count):
    """Joint values many of which are limits, zero, a quarter turn or mid-range."""
    lower, upper = robot.finite_limits()
    quarter, q = np.full(robot.n, np.pi / 2), robot.random(rng, count)
    marks = (lower, upper, 0.0 * lower, quarter, -quarter, 0.5 * (lower + upper))
    which = rng.integers(0, 9, q.shape)  # a third stay as drawn
    for k, mark in enumerate(marks):
        q = np.where(which == k, mark, q)
    return np.clip(q, lower, upper)


def far(robot, q):
    """How far the tip is from the base."""
    return np.linalg.norm(robot.fk(q)[:, :3, 3], axis=1)


def stretched(robot, rng, count, rounds=40):
    """Joint values at the workspace's edge: the tip as far from the base as it goes thereabouts.

    One joint after the other goes where the distance is largest, on ever finer grids.
    """
    q = robot.random(rng, count)
    lower, upper = robot.finite_limits()
    width = upper - lower
    for _ in range(rounds):
        for joint in range(robot.n):
            tried = np.repeat(q[:, None], 21, axis=1)
            tried[:, :, joint] += 0.5 * width[joint] * np.linspace(-1.0, 1.0, 21)
            tried = np.clip(tried, lower, upper)
            distance = far(robot, tried.reshape(-1, robot.n)).reshape(count, 21)
            q = tried[np.arange(count), distance.argmax(axis=1)]
        width = 0.6 * width
    return q


@pytest.mark.parametrize("name", PUBLISHED)
class TestEndsOfTheWorkspace:
    """One property a test, for each arm."""

    def test_one_joint_exactly_at_its_limit(self, name):
        robot, rng = published(name), np.random.default_rng(1)
        for joint in np.flatnonzero(robot.limited):
            for limit in (robot.lower, robot.upper):
                q = robot.random(rng, 15)
                q[:, joint] = limit[joint]
                check(name, ARMS[name].pose(q), robot.random(rng, 15))

    def test_all_joints_exactly_at_limits(self, name):
        robot, rng = published(name), np.random.default_rng(2)
        lower, upper = robot.finite_limits()
        q = np.where(rng.random((100, robot.n)) < 0.5, lower, upper)
        check(name, ARMS[name].pose(q), robot.random(rng, 100))

    def test_wherever_singular_or_at_limits(self, name):
        robot, rng = published(name), np.random.default_rng(7)
        Ts = ARMS[name].pose(marked(robot, rng, 300))
        for task in (Task.pose(), Task.pointing("z"), Task.position_only()):
            check(name, Ts, marked(robot, rng, 300), task)
            check(name, Ts, None, task)

    def test_pose_at_the_edge_of_the_workspace(self, name):
        robot, rng = published(name), np.random.default_rng(3)
        q = stretched(robot, rng, 20)
        near = robot.clip(q + 1e-3 * rng.normal(size=q.shape))
        assert (far(robot, near) <= far(robot, q) + 1e-7).all()
        check(name, ARMS[name].pose(q), robot.random(rng, 20))


@pytest.mark.parametrize("name", PUBLISHED)
def test_position_at_the_edge_of_the_workspace(name):
    robot, rng = published(name), np.random.default_rng(3)
    Ts = ARMS[name].pose(stretched(robot, rng, 20))
    check(name, Ts, robot.random(np.random.default_rng(5), 20), Task.position_only())


@pytest.mark.parametrize("name", STRAIGHT)
@pytest.mark.parametrize("straight", [("goals",), ("seeds",), ("goals", "seeds")])
def test_straight_elbow(name, straight):
    robot, rng = published(name), np.random.default_rng(4)
    q = {"goals": robot.random(rng, 150), "seeds": robot.random(rng, 150)}
    joint, value = STRAIGHT[name]
    for which in straight:
        q[which][:, joint] = value
    check(name, ARMS[name].pose(q["goals"]), q["seeds"])


@pytest.mark.parametrize("name", STRAIGHT)
def test_every_joint_at_zero(name):
    """Elbows are straight, and wrists have lost a degree of freedom."""
    robot, rng = published(name), np.random.default_rng(6)
    zero, q = np.tile(robot.clip(np.zeros(robot.n)), (50, 1)), robot.random(rng, 50)
    check(name, ARMS[name].pose(zero), q)
    check(name, ARMS[name].pose(q), zero)
