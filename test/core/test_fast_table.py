# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the table of starts, and of structs packed into two arrays."""

import numpy as np
import pytest
from arms import PUBLISHED, published, random_arm
from start_tables import KINDS, WEIGHT, Drawn, at_last_joint, drawn

from dls_ik import IkSolver, RobotModel
from dls_ik.core.fast.packed import pack, unpack
from dls_ik.core.fast.table import LEAF_ROWS, MAX_LIMIT_DEVIATION
from dls_ik.core.jit import allocating
from dls_ik.core.types import ChainTable, Method, SerialChain, Starts, StopCriteria
from dls_ik.model import DhRow
from dls_ik.model.chain import build_arm
from dls_ik.solver.problem import no_table, random_starts, start_table


@pytest.mark.parametrize("name", KINDS)
def test_table_marks_first_and_last_joints_that_can_turn(name):
    table = drawn(name).table
    first = name not in ("slides first", "slides at both ends", "first followed", "1 slide",
                         "all slide")  # fmt: skip
    last = name not in ("slides last", "slides at both ends", "last follows", "1", "1 slide",
                        "all slide")  # fmt: skip
    assert (table.first_turns, table.last_turns) == (first, last)


@pytest.mark.parametrize("name", KINDS)
def test_table_rows_and_starts_are_in_limits_with_correct_distances(name):
    arm, rng = drawn(name), np.random.default_rng(7)
    assert arm.robot.within_limits(arm.table.q).all()
    for q in arm.robot.random(10, rng):
        T = arm.robot.fk(q)
        first, distances, starts = arm.starts(T)
        assert np.isfinite(starts).all()
        assert arm.robot.within_limits(starts).all()
        assert first % LEAF_ROWS == 0
        rows = arm.table.q[first : first + LEAF_ROWS]
        apart = [np.sum((arm.parts(T) - arm.parts(arm.robot.fk(row))) ** 2) for row in rows]
        np.testing.assert_allclose(distances, apart, atol=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_lookup_of_the_pose_of_a_row_finds_that_row(name):
    arm = drawn(name)
    for row in range(0, len(arm.table.q), 997):
        first, distances, _ = arm.starts(arm.robot.fk(arm.table.q[row]))
        assert distances.min() <= 1e-12
        if not first <= row < first + LEAF_ROWS:  # the row is at a cut between two leaves
            other = arm.table.q[first + distances.argmin()]
            apart = arm.parts(arm.robot.fk(other)) - arm.parts(arm.robot.fk(arm.table.q[row]))
            assert np.abs(apart).max() <= 1e-6


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("1", "1 slide")])
def test_error_of_a_start_is_at_most_its_distance(name):
    """Check that the remaining error is at most the distance by which rows are compared."""
    arm, rng = drawn(name), np.random.default_rng(8)
    robot, checked = arm.robot, 0
    for q in robot.random(40, rng):
        T = robot.fk(q)
        goal = arm.parts(T)
        for start in arm.starts(T)[2]:
            inside = (start > robot.lower) & (start < robot.upper)
            if not (inside[0] and inside[-1]):
                continue
            checked += 1
            reached = robot.fk(start)
            left = np.linalg.norm(arm.parts(reached) - goal)
            away = np.linalg.norm(at_last_joint(arm, T) - at_last_joint(arm, reached))
            assert away <= left + 1e-9
    assert checked > 0 or name == "all slide"


def test_last_joint_of_a_start_minimises_the_rotation_error():
    arm, rng = drawn("turning ends"), np.random.default_rng(9)
    robot = arm.robot
    for q in robot.random(20, rng):
        T = robot.fk(q)
        for start in arm.starts(T)[2]:
            ours = np.trace(T[:3, :3].T @ robot.fk(start)[:3, :3])
            for angle in np.linspace(-np.pi, np.pi, 60):
                other = start + angle * np.eye(robot.n)[-1]
                assert np.trace(T[:3, :3].T @ robot.fk(other)[:3, :3]) <= ours + 1e-9


@pytest.mark.parametrize("name", PUBLISHED)
def test_starts_of_published_arms_are_closer_than_random_ones(name):
    """Check that most poses have a start within the limits, closer than a random configuration."""
    arm, rng = Drawn(published(name)), np.random.default_rng(10)
    robot = arm.robot
    Ts, near, anywhere = robot.fk(robot.random(30, rng)), [], []
    for T in Ts:
        starts = arm.starts(T)[2]
        assert robot.within_limits(starts).all()
        if len(starts):
            near.append(np.linalg.norm(robot.fk(starts[0])[:3, 3] - T[:3, 3]))
            anywhere.append(np.linalg.norm(robot.fk(robot.random(rng=rng))[:3, 3] - T[:3, 3]))
    assert len(near) > 20
    assert np.mean(near) < 0.5 * np.mean(anywhere)


def test_first_joint_limits_reduce_the_number_of_starts():
    rng = np.random.default_rng(11)
    lengths, twists = rng.uniform(0.1, 0.4, 6), rng.uniform(-np.pi, np.pi, 6)
    wide = [
        DhRow(a=a, alpha=t, lower=-3.0, upper=3.0) for a, t in zip(lengths, twists, strict=True)
    ]
    arm = Drawn(RobotModel.from_dh([wide[0]._replace(lower=-0.2, upper=0.2), *wide[1:]]))
    robot, counts = RobotModel.from_dh(wide), []
    for first in (0.0, 2.5):
        q = robot.random(rng=rng)
        q[0] = first
        T = robot.fk(q)
        starts = arm.starts(T)[2]
        counts.append(len(starts))
        for start in starts:
            wanted, reached = at_last_joint(arm, T), at_last_joint(arm, arm.robot.fk(start))
            away = np.arctan2(wanted[1], wanted[0]) - np.arctan2(reached[1], reached[0])
            assert abs((away + np.pi) % (2.0 * np.pi) - np.pi) <= MAX_LIMIT_DEVIATION + 1e-9
    assert counts[1] < counts[0]


@pytest.mark.parametrize("name", ["7", "slides first"])
def test_start_table_is_reproducible(name):
    one = start_table(random_arm(np.random.default_rng(5), *KINDS[name]), WEIGHT)
    other = start_table(random_arm(np.random.default_rng(5), *KINDS[name]), WEIGHT)
    for field, ours, theirs in zip(one._fields, one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs, field)


def test_every_row_is_in_one_leaf_on_its_side_of_every_cut():
    table = drawn("7").table
    features = table.features.transpose(0, 2, 1).reshape(-1, 9)
    for row in range(0, len(features), 13):
        node = row // LEAF_ROWS + (1 << table.levels)
        while node > 1:
            value, cut = features[row, table.by[node // 2]], table.cut[node // 2]
            assert value >= cut if node % 2 else value <= cut
            node //= 2


@allocating
def unpacked(numbers, integers):
    return unpack(numbers, integers)


ARMS = {
    "1": ["revolute"],
    "6 and two followers": [*["revolute"] * 3, "mimic", "prismatic", "mimic", "revolute"],
    "7": ["continuous", *["revolute"] * 6],
    "12": ["revolute", "prismatic"] * 6,
}


def structs(kinds, with_table):
    """Return structs whose numbers are all different."""
    rng = np.random.default_rng(1)
    robot = random_arm(rng, *kinds)
    options = IkSolver(robot, max_iterations=77, stall_count=5).options
    goal = options.goal()._replace(position_tolerance=0.1, rotation_tolerance=0.2)
    method = Method(3, 4, 5, True, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4)
    starts = random_starts(robot, rng.uniform(1.0, 2.0, robot.n), True)
    table = start_table(robot, 0.5) if with_table else no_table(robot.n)
    return build_arm(robot.chain), table, method, goal, starts


@pytest.mark.parametrize("with_table", [False, True], ids=["no table", "table"])
@pytest.mark.parametrize("name", ARMS)
def test_unpacked_structs_equal_the_packed_ones(name, with_table):
    given = structs(ARMS[name], with_table)
    back = unpacked(*pack(*given))
    for kind, ours, theirs in zip(
        (SerialChain, ChainTable, Method, StopCriteria, Starts), given, back, strict=True
    ):
        for field in kind._fields:
            before, after = getattr(ours, field), getattr(theirs, field)
            np.testing.assert_array_equal(after, before, f"{kind.__name__}.{field}")
            assert np.shape(after) == np.shape(before), f"{kind.__name__}.{field}"


def test_packed_arrays_have_no_extra_entries():
    given = structs(ARMS["7"], True)
    numbers, integers = pack(*given)
    arm, table, _, _, starts = given
    arrays = [x for each in (arm, table, starts) for x in each if isinstance(x, np.ndarray)]
    whole = sum(x.size for x in arrays if x.dtype == np.int64)
    assert numbers.size == 13 + sum(x.size for x in arrays) - whole
    assert integers.size == 13 + whole
    assert (numbers.dtype, integers.dtype) == (np.float64, np.int64)
