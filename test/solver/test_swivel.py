# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Feasible swivel angles, against solutions of the solver with the angle fixed."""

import math
from pathlib import Path

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel, SwivelTask, Task, TaskStack
from dls_ik.errors import OptionError, PoseError
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.stack_problem import build_stack
from dls_ik.solver.swivel import SwivelIntervals, swivel_intervals
from dls_ik.solver.swivel_angles import from_arcs, union

URDF = Path(__file__).parents[1] / "urdf"
UP = (0.0, 0.0, 1.0)
ARMS = {
    "wam": RobotModel.wam(),
    "iiwa": RobotModel.from_urdf(URDF / "iiwa14.urdf"),
    "panda": RobotModel.from_urdf(URDF / "fr3.urdf"),
    "sawyer": RobotModel.from_urdf(URDF / "sawyer.urdf"),
}
EXACT = ("wam", "iiwa")
CLOSE = 1e-3  # [rad] distance from an end within which the solver need not agree


def swivel(robot, q, up=UP):
    """Swivel angle [rad] by its definition, from the points of the task stack."""
    points = build_stack(robot, TaskStack(Task(), SwivelTask(0.0, up)), SolverOptions()).params
    from dls_ik.core.kinematics import forward

    P = np.empty((3, 3, 4))
    forward(points.points, np.array(q), np.empty((len(points.points.prismatic), 2, 3)), P)
    s, e, w = P[:, :, 3]
    a = (w - s) / np.linalg.norm(w - s)
    return math.atan2(a @ np.cross(up, e - s), np.cross(a, up) @ np.cross(a, e - s))


def poses(robot, count, seed=1):
    rng = np.random.default_rng(seed)
    return [robot.fk(robot.random(rng=rng)) for _ in range(count)]


def is_reached(solver, T, angle, seeds):
    """Whether the solver reaches the pose with this swivel angle from any seed."""
    stack = TaskStack(Task(), SwivelTask(angle))
    for seed in seeds:
        result = solver.solve(T, seed, task=stack, timeout=10.0)
        if result.success and result.level_errors[1] < 1e-7:
            return True
    return False


def compare_with_brute_force(robot, T, count, seeds):
    """Solve with each of `count` fixed angles; return the number of feasible ones.

    No feasible angle may be outside the intervals; each angle inside must be reached from one of
    the solutions with the closest angles.
    """
    found, solver = swivel_intervals(robot, T, UP), IkSolver(robot, timeout=10.0)
    known = solver.solve_all(T, seeds).q
    angles = np.array([swivel(robot, q) for q in known])
    feasible = 0
    for angle in np.linspace(-math.pi, math.pi, count, endpoint=False):
        away = np.abs((angles - angle + math.pi) % math.tau - math.pi)
        closest = known[np.argsort(away)]
        if found.contains(angle):
            feasible += 1
            ends = np.abs((found.intervals.ravel() - angle + math.pi) % math.tau - math.pi)
            is_whole = np.ptp(found.intervals[0]) > math.tau - 1e-9
            if ends.min() > CLOSE or is_whole:
                assert is_reached(solver, T, angle, closest[:40]), (angle, found)
        elif found.distance(angle) > CLOSE:
            assert not is_reached(solver, T, angle, closest[:5]), (angle, found)
    return feasible


@pytest.mark.parametrize("arm", ARMS)
def test_solutions_of_the_pose_have_feasible_angles(arm):
    robot, solver = ARMS[arm], IkSolver(ARMS[arm])
    for T in poses(robot, 3):
        found = solver.swivel_intervals(T)
        assert found.is_exact == (arm in EXACT)
        for q in solver.solve_all(T, 60).q:
            assert found.contains(swivel(robot, q), 1e-5), found


@pytest.mark.parametrize("arm", ["wam", "iiwa", "panda"])
def test_angles_inside_and_outside_agree_with_the_solver(arm):
    T = poses(ARMS[arm], 5)[4 if arm != "wam" else 1]
    assert 0 < compare_with_brute_force(ARMS[arm], T, 24, 60) < 24


@pytest.mark.campaign
@pytest.mark.parametrize("arm", ["wam", "iiwa", "panda"])
def test_720_angles_of_many_poses_agree_with_the_solver(arm):
    for T in poses(ARMS[arm], 5):
        compare_with_brute_force(ARMS[arm], T, 720, 200)


def test_sampled_angles_are_those_of_the_closed_form():
    """Curves are followed for an arm whose intervals are known exactly."""
    from dls_ik.solver.swivel import _Curves

    robot = ARMS["wam"]
    for T in poses(robot, 4, seed=2):
        curves = _Curves(robot, UP, T)
        sampled = [each for curve in curves.find() for each in curves.angles(curve)]
        exact = swivel_intervals(robot, T, UP)
        np.testing.assert_allclose(union(sampled), exact.intervals, atol=1e-6)


@pytest.mark.parametrize("arm", ["wam", "panda"])
def test_ends_are_where_the_elbow_of_a_controller_stops(arm):
    """From a solution, the solver moves the elbow to within 1e-3 rad of an end of its branch."""
    robot = ARMS[arm]
    T = poses(robot, 2)[1]
    solver = IkSolver(robot, timeout=10.0)
    found, q = solver.swivel_intervals(T), solver.solve(T).q
    start = swivel(robot, q)
    branch = [
        high
        for part in found.branches
        for low, high in part.tolist()
        if (start - low) % math.tau <= high - low
    ]
    last = start
    for _ in range(400):
        result = solver.solve(T, q, task=TaskStack(Task(), SwivelTask(last + 0.02)))
        reached = last + math.remainder(swivel(robot, result.q) - last, math.tau)
        if reached - last < 1e-6 or np.abs(result.q - q).max() > 0.5:
            break
        q, last = result.q, reached
    assert min(abs(math.remainder(last - high, math.tau)) for high in branch) < CLOSE


def test_the_direction_of_zero_shifts_all_angles():
    robot = ARMS["iiwa"]
    (T,) = poses(robot, 1, seed=3)
    one, other = (swivel_intervals(robot, T, up) for up in (UP, (1.0, 0.0, 0.0)))
    q = IkSolver(robot).solve(T).q
    shift = swivel(robot, q, (1.0, 0.0, 0.0)) - swivel(robot, q)
    for low, high in one.intervals:
        assert other.contains(0.5 * (low + high) + shift)
        assert other.contains(low + shift, 1e-9)
        assert other.contains(high + shift, 1e-9)


def test_unreachable_poses_have_no_angles_and_wrong_robots_are_refused():
    far = np.eye(4)
    far[0, 3] = 9.0
    for arm in ("wam", "panda"):
        found = IkSolver(ARMS[arm]).swivel_intervals(far)
        assert found.intervals.shape == (0, 2)
        assert not found.contains(0.0)
        assert math.isnan(found.closest(0.0))
        assert "none" in repr(found)
    with pytest.raises(OptionError, match="7 joints"):
        IkSolver(RobotModel.from_name("puma560")).swivel_intervals(far)
    with pytest.raises(OptionError, match="zero vector"):
        IkSolver(ARMS["wam"]).swivel_intervals(far, up=(0.0, 0.0, 0.0))
    with pytest.raises(PoseError):
        IkSolver(ARMS["wam"]).swivel_intervals(np.ones((3, 3)))


def test_membership_and_closest_angle_ignore_full_turns():
    found = SwivelIntervals([np.array([[-1.0, -0.5]]), np.array([[3.0, 3.5]])], True)
    assert found.contains(3.2)
    assert found.contains(3.2 - math.tau)
    assert found.contains(-0.7 + math.tau)
    assert not found.contains(0.0)
    assert found.distance(0.0) == pytest.approx(0.5)
    assert found.closest(0.0) == pytest.approx(-0.5)
    assert found.closest(2.9) == pytest.approx(3.0)
    assert found.closest(3.4 - math.tau) == pytest.approx(3.4 - math.tau)
    assert repr(found) == "SwivelIntervals([-1.000, -0.500], [3.000, 3.500]; exact)"


def test_arcs_and_unions_join_across_the_turn():
    cuts = np.array([-2.0, -1.0, 1.0, 2.0])
    arcs = from_arcs(cuts, np.array([True, False, True, True]))
    np.testing.assert_allclose(arcs, [[1.0, math.tau - 1.0]])
    np.testing.assert_allclose(from_arcs(cuts, np.ones(4, bool)), [[-math.pi, math.pi]])
    assert from_arcs(cuts, np.zeros(4, bool)).shape == (0, 2)
    joined = union([np.array([[3.0, 3.5]]), np.array([[-3.0, -2.0], [0.0, 1.0]])])
    np.testing.assert_allclose(joined, [[0.0, 1.0], [3.0, math.tau - 2.0]])
    whole = union([np.array([[-3.0, 1.0]]), np.array([[0.5, 3.5]])])
    np.testing.assert_allclose(whole, [[-math.pi, math.pi]])
    assert union([]).shape == (0, 2)


def test_a_joint_without_limits_bounds_no_angle():
    text = (URDF / "iiwa14.urdf").read_text()
    free = RobotModel.from_urdf(text.replace('type="revolute"', 'type="continuous"'))
    for T in poses(ARMS["iiwa"], 3, seed=4):
        found = swivel_intervals(free, T, UP)
        np.testing.assert_allclose(found.intervals, [[-math.pi, math.pi]])
