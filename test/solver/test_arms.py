# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The default method on real arms: random poses, limits, stretched arms, tasks, seeds."""

import numpy as np
import pytest
from arms import PUBLISHED, published
from oracle import rigid, rotation
from published_arms import ARMS

from dls_ik import IkSolver, Status, Task

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; rounding


def check(name, Ts, seeds=None, task=None, **options):
    """Solve a batch on a published arm; every pose must be reached within the limits."""
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
    """Return the norms (b, 2) of the constrained position [m] and rotation [rad] errors."""
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


COUNT = 150


def drawn(name, seed, count=COUNT):
    """Return a robot, a random generator, joint positions, and their poses by the DH table."""
    robot, rng = published(name), np.random.default_rng(seed)
    q = robot.random(count, rng)
    return robot, rng, q, ARMS[name].pose(q)


@pytest.mark.parametrize("name", PUBLISHED)
def test_reachable_poses_are_solved_from_any_seed(name):
    """Seeds are random, far outside the limits, at the limits, or absent."""
    robot, rng, _, Ts = drawn(name, 1)
    shape, limits = (COUNT, robot.n), robot.finite_limits()
    for seeds in (
        robot.random(COUNT, rng),
        None,
        20.0 * rng.normal(size=shape),
        np.where(rng.random(shape) < 0.5, *limits),
    ):
        check(name, Ts, seeds)
    check(name, Ts[:50], 1e6 * rng.normal(size=(50, robot.n)))


@pytest.mark.parametrize("name", PUBLISHED)
def test_pointing_and_position_tasks_are_solved(name):
    robot, rng, _, Ts = drawn(name, 5)
    for T in Ts:  # fewer than six joints cannot turn the tool as they like
        T[:] = T @ rigid(rotation([0, 0, 1], rng.uniform(-np.pi, np.pi)), np.zeros(3))
    check(name, Ts, robot.random(COUNT, rng), Task.pointing("z"))
    for T in Ts:  # most rotations are out of reach there
        T[:3, :3] = rotation(rng.normal(size=3), rng.uniform(0.0, np.pi))
    check(name, Ts, robot.random(COUNT, rng), Task.position_only())


@pytest.mark.parametrize("name", PUBLISHED)
def test_poses_half_a_turn_from_the_seed_are_solved(name):
    """The initial rotation error is half a turn, so the direction of its axis is ambiguous."""
    robot, rng, _, _ = drawn(name, 7, 1)
    lower, upper = robot.finite_limits()
    able = np.flatnonzero(~robot.chain.prismatic & (upper - lower >= np.pi))
    joint = np.repeat(able, 10)
    seeds, rows = robot.random(len(joint), rng), np.arange(len(joint))
    seeds[rows, joint] = rng.uniform(lower[joint], upper[joint] - np.pi)
    q = seeds.copy()
    q[rows, joint] += np.pi
    Ts, before = ARMS[name].pose(q), ARMS[name].pose(seeds)
    traces = np.einsum("bij,bij->b", Ts[:, :3, :3], before[:, :3, :3])
    np.testing.assert_allclose(traces, -1.0, atol=1e-12)
    check(name, Ts, seeds)


@pytest.mark.parametrize("name", ["gen3", "fetch"])
def test_continuous_joints_end_within_half_a_turn_of_the_seed(name):
    robot, rng, q, Ts = drawn(name, 8)
    whole = 2.0 * np.pi * robot.continuous
    for turns in (1, 1000):
        seeds = robot.random(COUNT, rng) + whole * rng.integers(-turns, turns, q.shape)
        result = check(name, Ts, seeds)
        assert np.abs(result.q - seeds)[:, robot.continuous].max() <= np.pi + 1e-9
    seeds = q + whole * rng.integers(-5, 6, robot.n)
    result = check(name, Ts, seeds)
    np.testing.assert_allclose(result.q, seeds, atol=1e-6)
    assert result.restarts.max() == 0


def special_configurations(robot, rng, count):
    """Return joint positions at limits, zero, quarter turns and mid-range."""
    lower, upper = robot.finite_limits()
    quarter, q = np.full(robot.n, np.pi / 2), robot.random(count, rng)
    marks = (lower, upper, 0.0 * lower, quarter, -quarter, 0.5 * (lower + upper))
    which = rng.integers(0, 9, q.shape)  # a third stay as drawn
    for k, mark in enumerate(marks):
        q = np.where(which == k, mark, q)
    return np.clip(q, lower, upper)


def tip_distance(robot, q):
    """Return the distance (k,) from the base to the tip."""
    return np.linalg.norm(robot.fk(q)[:, :3, 3], axis=1)


def stretched_configurations(robot, rng, count, rounds=25):
    """Return joint positions whose tip is at a local maximum of the distance from the base.

    Each joint in turn moves to its largest distance, on finer and finer grids.
    """
    q = robot.random(count, rng)
    lower, upper = robot.finite_limits()
    width = upper - lower
    for _ in range(rounds):
        for joint in range(robot.n):
            tried = np.repeat(q[:, None], 21, axis=1)
            tried[:, :, joint] += 0.5 * width[joint] * np.linspace(-1.0, 1.0, 21)
            tried = np.clip(tried, lower, upper)
            distance = tip_distance(robot, tried.reshape(-1, robot.n)).reshape(count, 21)
            q = tried[np.arange(count), distance.argmax(axis=1)]
        width = 0.6 * width
    return q


@pytest.mark.parametrize("name", PUBLISHED)
def test_singular_poses_and_poses_at_joint_limits_are_solved(name):
    """All joints or one joint at a limit, all joints at zero, and mixtures."""
    robot, rng = published(name), np.random.default_rng(7)
    lower, upper = robot.finite_limits()
    corners = np.where(rng.random((50, robot.n)) < 0.5, lower, upper)
    ones = robot.random(2 * robot.n, rng)
    joints = np.tile(np.flatnonzero(robot.limited), 2)
    ones = ones[: len(joints)]
    ends = np.where(np.arange(len(joints)) < len(joints) // 2, lower[joints], upper[joints])
    ones[np.arange(len(joints)), joints] = ends
    zero = robot.clip(np.zeros((5, robot.n)))
    Ts = ARMS[name].pose(np.vstack([special_configurations(robot, rng, 150), corners, ones, zero]))
    seeds = special_configurations(robot, rng, len(Ts))
    seeds[::20] = zero[0]
    for task in (Task.pose(), Task.pointing("z"), Task.position_only()):
        check(name, Ts, seeds, task)
        check(name, Ts, None, task)


@pytest.mark.parametrize("name", PUBLISHED)
def test_poses_at_the_workspace_boundary_are_solved(name):
    robot, rng = published(name), np.random.default_rng(3)
    q = stretched_configurations(robot, rng, 20)
    near = robot.clip(q + 1e-3 * rng.normal(size=q.shape))
    assert (tip_distance(robot, near) <= tip_distance(robot, q) + 1e-7).all()
    Ts, seeds = ARMS[name].pose(q), robot.random(20, rng)
    check(name, Ts, seeds)
    check(name, Ts, seeds, Task.position_only())
