# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The result of ``solve_all``: errors, families connected by self-motion, and use as an array."""

import pickle

import numpy as np
import pytest
from oracle_ik import pose_error
from solve_cases import PUMA, WAM, drawn, errors, robot_of

from dls_ik import IkSolutions, IkSolver, PlanningScene, RobotModel, Task

ORACLE_STEP = 0.02


def anywhere(q):
    return True


def oracle_curve(robot, T, q, sign, allowed):
    """Integrate the null vector of the Jacobian from q, with corrections of the pose."""
    curve, direction = [q], None
    for _ in range(2000):
        null = np.linalg.svd(robot.jacobian(q))[2][-1]
        direction = null * (sign if direction is None else np.sign(null @ direction))
        q = q + ORACLE_STEP * direction
        for _ in range(3):
            q = q + np.linalg.pinv(robot.jacobian(q)) @ pose_error(T, robot.fk(q))
        if not robot.within_limits(q, 1e-9) or not allowed(q):
            break
        curve.append(q)
        if len(curve) > 10 and np.linalg.norm(q - curve[0]) < ORACLE_STEP:
            break
    return np.array(curve)


def oracle_families(robot, T, solutions, allowed=anywhere):
    """Return (s, s) whether the curve through one solution leads to another one."""
    together = np.zeros((len(solutions), len(solutions)), bool)
    for i, q in enumerate(solutions):
        curve = np.vstack([oracle_curve(robot, T, q, sign, allowed) for sign in (1.0, -1.0)])
        away = np.linalg.norm(curve[:, None] - np.asarray(solutions), axis=2).min(axis=0)
        together[i] = away < ORACLE_STEP
    return together


def partition(families):
    return families[:, None] == families


@pytest.mark.parametrize("method", ["auto", "dls"])
def test_families_of_the_wam_are_those_of_the_null_vector(method):
    solver = IkSolver(WAM, method)
    for T in drawn(WAM, 3)[0]:
        found = solver.solve_all(T, 8)
        assert len(found) == 8
        np.testing.assert_array_equal(partition(found.families), oracle_families(WAM, T, found))


def test_solutions_of_one_family_of_the_wam_share_the_elbow_angle():
    T = drawn(WAM, 1)[0][0]
    found = IkSolver(WAM).solve_all(T, 40)
    assert 1 < found.num_families < 40
    for k in range(found.num_families):
        assert np.ptp(found[found.families == k, 3]) < 1e-3
    assert len(found.representatives) == found.num_families
    np.testing.assert_array_equal(found.representatives[0], found[0])


@pytest.mark.parametrize("name", ["puma560", "ur5e"])
def test_each_solution_of_six_joints_is_a_family(name):
    robot = robot_of(name)
    for T in drawn(robot, 4)[0]:
        found = IkSolver(robot).solve_all(T)
        assert len(found) > 1
        np.testing.assert_array_equal(found.families, np.arange(len(found)))


def test_a_singular_wrist_of_six_joints_connects_solutions():
    q = np.array([0.3, 0.9, 0.2, 0.1, 0.0, 0.4])
    found = IkSolver(PUMA).solve_all(PUMA.fk(q), 40, q)
    same_arm = np.abs(found[:, :3] - q[:3]).max(axis=1) < 1e-3
    assert same_arm.sum() > 3
    assert len(set(found.families[same_arm])) == 1
    assert not set(found.families[same_arm]) & set(found.families[~same_arm])


@pytest.mark.parametrize(
    "links", [(1.0, 1.0, 0.5), (1.0, 0.8, 0.9), (0.5, 1.0, 1.0), (1.0, 1.0, 0.2, 0.1), (1.0,) * 4]
)
def test_planar_arms_have_the_families_of_a_closed_linkage(links):
    """Kapovich & Millson 1995: two if the second and third longest edges exceed half the sum."""
    robot = RobotModel.from_dh([{"a": length, "kind": "continuous"} for length in links])
    solver = IkSolver(robot, task=Task(position="xy", rotation=""))
    for distance in (0.6, 1.0, 1.5, 2.0):
        found = solver.solve_all((distance, 0.0, 0.0), 40)
        edges = sorted((distance, *links), reverse=True)
        expected = 2 if edges[1] + edges[2] > 0.5 * sum(edges) else 1
        assert (len(found), found.num_families) == (40, expected), distance


def test_a_limit_separates_solutions_of_a_planar_arm():
    rows = [{"a": 1.0, "kind": "continuous"}, {"a": 1.0, "kind": "continuous"}, {"a": 0.5}]
    wide, narrow = (
        RobotModel.from_dh([*rows[:2], {**rows[2], "lower": -limit, "upper": limit}])
        for limit in (3.2, 0.4)
    )
    task = Task(position="xy", rotation="")
    counts = [
        IkSolver(robot, task=task).solve_all((1.8, 0.0, 0.0), 60).num_families
        for robot in (wide, narrow)
    ]
    assert counts == [1, 2]


def test_an_obstacle_separates_solutions():
    T = drawn(WAM, 1)[0][0]
    free = IkSolver(WAM).solve_all(T, 40)
    family = free[free.families == 0]
    middle = family[len(family) // 2]
    scene = PlanningScene(WAM)
    place = np.eye(4)
    place[:3, 3] = WAM.link_pose("wam_link4", middle)[:3, 3]
    scene.add_sphere("ball", 0.05, place)
    found = IkSolver(WAM, scene=scene).solve_all(T, 8)
    assert len(found) == 8
    snapshot = found.search.snapshot
    expected = oracle_families(WAM, T, found, lambda q: snapshot.first_touching(q) is None)
    np.testing.assert_array_equal(partition(found.families), expected)
    assert (expected != oracle_families(WAM, T, found)).any()


def test_errors_are_those_of_the_configurations():
    for robot in (WAM, PUMA):
        for T in drawn(robot, 3)[0]:
            found = IkSolver(robot).solve_all(T, 6)
            for q, position, rotation in zip(
                found, found.position_error, found.rotation_error, strict=True
            ):
                np.testing.assert_allclose(errors(robot, T, q), (position, rotation), atol=1e-9)


def test_the_result_is_used_like_an_array():
    T, q, _ = drawn(WAM, 1)
    found = IkSolver(WAM).solve_all(T[0], 5, q[0])
    assert isinstance(found, IkSolutions)
    assert found.robot is WAM
    array = np.asarray(found)
    assert array.shape == found.shape == (5, 7)
    assert np.asarray(found, np.float32).dtype == np.float32
    assert [*map(len, found)] == [7] * 5
    np.testing.assert_array_equal(found[1:3, 2], array[1:3, 2])
    np.testing.assert_array_equal(found[found.families == 0], array[found.families == 0])
    for result in (found - q[0], -(q[0] - found), np.subtract(found, q[0])):
        np.testing.assert_array_equal(result, array - q[0])
    np.testing.assert_array_equal(np.vstack([found, q]), np.vstack([array, q]))
    np.testing.assert_array_equal(WAM.fk(found), WAM.fk(array))
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.families, found.families)


def test_a_pose_without_solution_has_an_empty_result():
    found = IkSolver(WAM).solve_all(np.eye(4) + 9.0 * np.eye(4, k=3))
    assert not found
    assert (found.shape, found.num_families, repr(found)) == ((0, 7), 0, "IkSolutions(no solution)")
    assert found.representatives.shape == (0, 7)
    assert "no solution" in found._repr_html_()


def test_the_result_shows_families_and_errors():
    found = IkSolver(PUMA).solve_all(drawn(PUMA, 1)[0][0], 2)
    assert repr(found).startswith("IkSolutions(2 solutions in 2 families, errors up to ")
    assert found._repr_html_().count("<tr>") == 3
    assert "family" in found._repr_html_()
