# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Change of the length unit: equal answers, bit by bit if the factor is a power of two."""

import numpy as np
import pytest
from arms import published, random_arm
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import STEPPED, WAM, serves
from scaled import scaled, scaled_poses

from dls_ik import IkSolver, RobotModel, Task
from dls_ik.model import DhRow

PUMA = RobotModel.from_name("puma560")
KILO = 2.0**10  # factor without rounding
FIELDS = ("success", "status", "q", "rotation_error", "iterations", "restarts")


def random_poses(robot, b, seed):
    """Return poses, some of them out of reach, and seeds."""
    rng = np.random.default_rng(seed)
    Ts, seeds = robot.fk(robot.random(b, rng)), robot.random(b, rng)
    Ts[::4, :3, 3] *= 3.0
    return Ts, seeds


def assert_alike(k, method, robot, Ts, seeds, wish=None, **options):
    """Check that the answers equal those in metres, bit by bit."""
    there = IkSolver(scaled(robot, k), method, length_unit=k, **options)
    one = IkSolver(robot, method, **options).solve_batch(Ts, seeds, **(wish or {}))
    other = there.solve_batch(scaled_poses(Ts, k), seeds, **(wish or {}))
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(other, name), getattr(one, name), name)
    np.testing.assert_array_equal(other.position_error, k * one.position_error)


@pytest.mark.parametrize("name", STEPPED)
def test_methods_are_invariant_to_the_last_bit(name):
    for robot, k in ((WAM, KILO), (PUMA, 1.0 / KILO)):
        if serves(name, robot):
            Ts, seeds = random_poses(robot, 8, 1)
            assert_alike(k, name, robot, Ts, seeds, max_iterations=20, max_restarts=3)


@pytest.mark.parametrize(
    "wish", [{"solve_type": "distance"}, {"solve_type": "manipulability"}, {"approximate": True}],
    ids=str,
)  # fmt: skip
def test_solve_types_are_invariant_to_the_last_bit(wish):
    Ts, seeds = random_poses(WAM, 12, 2)
    assert_alike(1.0 / KILO, "auto", WAM, Ts, seeds, wish, max_restarts=20, num_candidates=15)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("jd", {"policy": "manipulability"}), ("jd", {"policy": "mayorga-condition"}),
        ("jd", {"policy": "accuracy"}), ("gp+dls", {"form": 23}),
        ("gp", {"objective": "obstacle", "obstacle": (0.25, 0.125, 0.5)}),
        ("auto", {"error_tolerance": 2e-6}), ("dls", {"error_tolerance": 2e-6}),
        ("dls", {"task": Task.pointing("z")}), ("auto", {"task": Task.position_only()}),
    ],
    ids=str,
)  # fmt: skip
def test_options_in_metres_are_not_scaled(method, options):
    Ts, seeds = random_poses(WAM, 8, 3)
    assert_alike(KILO, method, WAM, Ts, seeds, max_iterations=20, max_restarts=3, **options)


@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32 - 1),
    kinds=st.lists(st.sampled_from(["revolute", "continuous"]), min_size=2, max_size=8),
    k=st.sampled_from([1000.0, 1e-3, 39.37, 1e6, 1e-6]),
)
def test_random_arms_in_other_units_have_equal_success(seed, kinds, k):
    robot = random_arm(np.random.default_rng(seed), *kinds)
    rng = np.random.default_rng(seed)
    Ts, seeds, there = robot.fk(robot.random(6, rng)), robot.random(6, rng), scaled(robot, k)
    options = {"max_restarts": 99, "starts": "random"}
    one = IkSolver(robot, **options).solve_batch(Ts, seeds)
    other = IkSolver(there, length_unit=k, **options).solve_batch(scaled_poses(Ts, k), seeds)
    np.testing.assert_array_equal(other.success, one.success)
    reached = there.fk(other.q[other.success])[:, :3, 3] / k
    wanted = Ts[other.success][:, :3, 3]
    assert (np.linalg.norm(reached - wanted, axis=1) <= 1.001e-6).all()


@pytest.mark.parametrize(("name", "k"), [("ur10e", 1000.0), ("fr3", 1000.0), ("iiwa14", 1e-3)])
def test_real_arms_are_solved_in_millimetres_and_kilometres(name, k):
    robot = published(name)
    Ts, _ = random_poses(robot, 40, 4)
    Ts = Ts[np.arange(40) % 4 != 0]
    solver = IkSolver(scaled(robot, k), length_unit=k)
    result = solver.solve_batch(scaled_poses(Ts, k))
    assert result.success.all()
    assert (result.position_error <= 1e-6 * k).all()


def test_all_solutions_are_equal_in_other_units():
    T = PUMA.fk(np.array([0.3, -0.5, 0.4, 0.8, 0.6, -0.2]))
    one = IkSolver(PUMA).solve_all(T)
    other = IkSolver(scaled(PUMA, KILO), length_unit=KILO).solve_all(scaled_poses(T, KILO))
    assert len(one) >= 2
    np.testing.assert_array_equal(other, one)


def test_weights_compensate_the_unit_of_prismatic_joints():
    k = 1000.0
    rows = [DhRow(kind="prismatic", alpha=np.pi / 2, lower=-1.5, upper=1.5)]
    rows += [DhRow(a=0.3, alpha=1.0, d=0.1, lower=-2.8, upper=2.8)] * 7
    robot = RobotModel.from_dh(rows)
    Ts, seeds = (
        robot.fk(robot.random(20, np.random.default_rng(5))),
        robot.random(20, np.random.default_rng(6)),
    )
    there, starts = scaled(robot, k), seeds * ([k] + [1.0] * 7)
    weights = (k**-2, *[1.0] * 7)
    options = {"solve_type": "distance", "max_restarts": 60, "num_candidates": 50}
    one = IkSolver(robot, **options).solve_batch(Ts, seeds)
    other = IkSolver(there, length_unit=k, joint_weights=weights, **options)
    found = other.solve_batch(scaled_poses(Ts, k), starts)
    assert one.success.all()
    assert found.success.all()
    ways = [np.linalg.norm(one.q - seeds, axis=1)]
    ways.append(np.linalg.norm((found.q - starts) / ([k] + [1.0] * 7), axis=1))
    # The search, and so the answers, depend on the unit
    assert ways[1].mean() <= 1.15 * ways[0].mean()
