"""The default method on real arms where they end: joints at limits, arms stretched out."""

import numpy as np
import pytest
from arms import PUBLISHED, published
from published_arms import ARMS
from reached import check

from dls_ik import Task

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
class TestEveryArm:
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
