# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Timed motions along paths: limits and distances from the lines, between the points too."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from dls_ik import DlsIkError, IkSolver, RobotModel, Task, time_path
from dls_ik.errors import ChainError, OptionError
from dls_ik.model.files import shipped_urdf
from dls_ik.servo import path_tolerance

ROOT = Path(__file__).parents[2]
TIPS = "left_wam_tip", "right_wam_tip"
BENT = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
CORNERS = np.array([[0.0, 0.0, 0.0], [0.0, 0.2, 0.0], [-0.1, 0.2, 0.1]])  # [m]


@pytest.fixture(scope="module")
def solver():
    return IkSolver(RobotModel.wam())


def corner_path(solver, count=4):
    """Return poses along two lines with a corner, and the joint path."""
    T0 = solver.robot.fk(BENT)
    shares = np.linspace(0.0, 2.0, 2 * count + 1)
    T = np.tile(T0, (len(shares), 1, 1))
    for axis in range(3):
        T[:, axis, 3] += np.interp(shares, np.arange(3.0), CORNERS[:, axis])
    return T, solver.solve_path(T, BENT)


def between(timed, parts=9):
    """Return positions, velocities and accelerations between the points, by another library."""
    from scipy.interpolate import BPoly

    derivatives = np.stack([timed.q, timed.v, timed.a], axis=1)
    motion = BPoly.from_derivatives(timed.t, derivatives)
    t = (timed.t[:-1, None] + np.linspace(0.0, 1.0, parts) * np.diff(timed.t)[:, None]).ravel()
    return motion(t), motion(t, 1), motion(t, 2)


def rotation_between(R_a, R_b):
    """Return the angle between two rotations [rad]; exact for small angles."""
    skew = R_a.T @ R_b - (R_a.T @ R_b).T
    return np.arcsin(min(1.0, np.linalg.norm([skew[2, 1], skew[0, 2], skew[1, 0]]) / 2.0))


def naive_distances(robot, T, q):
    """Return distances and rotations of the tip from the lines between poses of one orientation."""
    found = []
    for X in robot.fk(q):
        p, distance = X[:3, 3], np.inf
        for a, b in zip(T[:-1, :3, 3], T[1:, :3, 3], strict=True):
            share = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
            distance = min(distance, np.linalg.norm(p - a - share * (b - a)))
        found.append((distance, rotation_between(T[0, :3, :3], X[:3, :3])))
    return np.array(found)


@pytest.mark.parametrize("speed", [np.inf, 0.1])
def test_limits_and_tolerances_hold_between_the_points(solver, speed):
    robot = solver.robot
    T, path = corner_path(solver)
    timed = time_path(solver, T, path, max_linear_speed=speed, acceleration=4.0)
    assert timed.position_deviation <= 1e-4
    assert timed.rotation_deviation <= 1e-4
    q, v, a = between(timed)
    assert (np.abs(v) / robot.velocity).max() <= 1.0 + 1e-6
    assert np.abs(a).max() <= 4.0 * (1.0 + 1e-3)
    tip = np.array([np.linalg.norm((robot.jacobian(x) @ w)[:3]) for x, w in zip(q, v, strict=True)])
    assert tip.max() <= speed * (1.0 + 1e-3)
    distances = naive_distances(robot, T, q)
    assert (distances.max(axis=0) <= (timed.position_deviation, timed.rotation_deviation)).all()
    assert not timed.v[[0, -1]].any()
    assert np.allclose(timed.q[[0, -1]], path.q[[0, -1]], atol=1e-9)
    assert np.diff(timed.t).max() <= 0.011 * max(1.0, timed.duration)


def straight_path(solver, shift, count):
    """Return poses along a line, and the joint path."""
    T = np.tile(solver.robot.fk(BENT), (count, 1, 1))
    T[:, :3, 3] += np.linspace(0.0, 1.0, count)[:, None] * shift
    return T, solver.solve_path(T, BENT).q


@pytest.mark.parametrize("count", [20, 400])
def test_durations_are_within_one_percent_of_toppra(solver, count):
    toppra = pytest.importorskip("toppra")
    from toppra import algorithm, constraint

    robot, limit = solver.robot, np.array([-1.0, 1.0])
    T, q = straight_path(solver, [-0.2, 0.1, 0.1], count)
    timed = time_path(solver, T, q, acceleration=5.0)
    s = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1)))
    grid = np.interp(np.linspace(0.0, count - 1.0, 4000), np.arange(count), s)
    limits = [
        constraint.JointVelocityConstraint(robot.velocity[:, None] * limit),
        constraint.JointAccelerationConstraint(
            np.full((robot.n, 1), 5.0) * limit,
            discretization_scheme=constraint.DiscretizationType.Interpolation,
        ),
    ]
    spline = toppra.SplineInterpolator(s, q, "not-a-knot")
    _, speed, _ = algorithm.TOPPRA(limits, spline, gridpoints=grid).compute_parameterization(0, 0)
    fastest = (2.0 * np.diff(grid) / (speed[:-1] + speed[1:])).sum()
    assert 0.995 * fastest < timed.duration < 1.01 * fastest


def test_jerks_on_a_joint_line_are_as_fast_as_ruckig(solver):
    ruckig = pytest.importorskip("ruckig")
    robot = solver.robot
    change = np.array([0.8, 0.3, 0.0, -0.4, 0.0, 0.2, 0.1])
    q = BENT + np.linspace(0.0, 1.0, 30)[:, None] * change
    timed = time_path(solver, robot.fk(q), q, jerk=40.0, path_tolerance=0.1, rotation_tolerance=0.2)
    given, found = ruckig.InputParameter(7), ruckig.Trajectory(7)
    given.current_position, given.target_position = BENT.tolist(), q[-1].tolist()
    given.max_velocity, given.max_acceleration = robot.velocity.tolist(), [5.0] * 7
    given.max_jerk = [40.0] * 7
    assert ruckig.Ruckig(7).calculate(given, found) == ruckig.Result.Working
    assert timed.duration == pytest.approx(found.duration, rel=0.01)


def test_jerks_stay_within_their_limits_between_the_points(solver):
    T, path = corner_path(solver)
    timed = time_path(solver, T, path, acceleration=4.0, jerk=50.0)
    from scipy.interpolate import BPoly

    motion = BPoly.from_derivatives(timed.t, np.stack([timed.q, timed.v, timed.a], axis=1))
    t = np.linspace(0.0, timed.duration, 50_000)
    assert np.abs(motion(t, 3)).max() <= 50.0 * (1.0 + 1e-3)
    assert np.abs(motion(t, 2)).max() <= 4.0 * (1.0 + 1e-9)
    assert not timed.a[[0, -1]].any()
    distances = naive_distances(solver.robot, T, motion(t[::20]))
    assert (distances.max(axis=0) <= (timed.position_deviation, timed.rotation_deviation)).all()
    assert timed.position_deviation <= 1e-4
    assert timed.duration < 1.3 * time_path(solver, T, path, acceleration=4.0).duration


def test_times_are_whole_nanoseconds(solver):
    T, path = corner_path(solver, 2)
    t = time_path(solver, T, path, jerk=30.0).t
    assert np.array_equal(t, np.round(t * 1e9) / 1e9)


def test_errors_of_the_solver_do_not_slow_dense_paths_down(solver):
    T, q = straight_path(solver, [0.0, 0.4, 0.0], 400)
    exact = time_path(solver, T, q, jerk=50.0)
    noise = np.random.default_rng(0).uniform(-1e-6, 1e-6, q.shape)
    noisy = time_path(solver, T, q + noise, jerk=50.0)
    assert noisy.duration == pytest.approx(exact.duration, rel=0.01)


def test_slow_tips_take_as_long_as_the_path_is(solver):
    T, path = corner_path(solver)
    length = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1).sum()
    timed = time_path(solver, T, path, max_linear_speed=0.02, acceleration=10.0)
    assert length / 0.02 <= timed.duration <= 1.1 * length / 0.02 + 0.5


def test_a_scale_slows_all_limits_down(solver):
    T, path = corner_path(solver)
    half = time_path(solver, T, path, scale=0.5)
    assert np.abs(half.v).max() <= 0.5 * solver.robot.velocity.max() + 1e-9
    assert np.abs(between(half)[2]).max() <= 2.5 * (1.0 + 1e-3)


def test_two_poses_become_a_straight_line(solver):
    T = np.tile(solver.robot.fk(BENT), (2, 1, 1))
    T[1, 1, 3] += 0.15
    q = solver.solve_path(T, BENT).q
    timed = time_path(solver, T, q, path_tolerance=1e-5, rotation_tolerance=1e-5)
    assert naive_distances(solver.robot, T, between(timed)[0]).max() <= 1e-5
    joints = q[0] + np.linspace(0.0, 1.0, 50)[:, None] * (q[1] - q[0])
    assert naive_distances(solver.robot, T, joints).max() > 1e-4, "the joint motion is no line"


def test_turns_and_sliding_joints_stay_on_the_path():
    robot = RobotModel.from_urdf(ROOT / "test" / "urdf" / "column_lwr.urdf")
    solver = IkSolver(robot)
    q0 = np.resize([0.1, 0.3, -0.6, 1.2, 0.2, 0.9, 0.4, 0.3], robot.n)
    q1 = q0 + 0.15
    T = robot.fk(np.stack([q0, q0 + 0.5 * (q1 - q0), q1]))
    timed = time_path(solver, T, solver.solve_path(T, q0))
    lines = path_tolerance.lines_between(T)
    q = between(timed)[0]
    position, rotation = path_tolerance.distances(lines, robot.fk(q), np.zeros(len(q), int))
    assert position.max() <= timed.position_deviation <= 1e-4
    assert rotation.max() <= timed.rotation_deviation <= 1e-4


def test_bounds_hold_for_random_motions(solver):
    robot, rng = solver.robot, np.random.default_rng(4)
    for _ in range(20):
        q = robot.random(2, rng=rng)
        c = np.stack([q[0], *rng.normal(0.0, 0.02, (3, robot.n))])  # a cubic from q[0]
        lines = path_tolerance.lines_between(robot.fk(np.stack([c[0], c.sum(axis=0)])))
        velocity = np.abs(c[1]) + 2.0 * np.abs(c[2]) + 3.0 * np.abs(c[3])
        acceleration = 2.0 * np.abs(c[2]) + 6.0 * np.abs(c[3])
        bounds = path_tolerance.JointBounds(velocity[None], acceleration[None])
        linear, angular = path_tolerance.tip_accelerations(robot, bounds)
        u = np.linspace(0.0, 1.0, 201)[:, None] ** np.arange(4)
        exact = path_tolerance.distances(lines, robot.fk(u @ c), np.zeros(201, int))
        for count in (1, 2, 8):
            few = np.linspace(0.0, 1.0, count + 1)[:, None] ** np.arange(4) @ c
            excess = linear / count**2 / 8.0, angular / count**2 / 8.0
            found = path_tolerance.largest_deviations(
                robot, lines, few[None], np.zeros(1, int), excess
            )
            assert exact[0].max() <= found[0][0] + 1e-12
            assert exact[1].max() <= found[1][0] + 1e-12


def test_csv_and_message_have_velocities_and_accelerations(solver):
    T, path = corner_path(solver, 2)
    timed = time_path(solver, T, path)
    header, *rows = csv.reader(io.StringIO(timed.to_csv()))
    names = solver.robot.joint_names
    assert header == [
        "t", *names, *(f"velocity {name}" for name in names),
        *(f"acceleration {name}" for name in names),
    ]  # fmt: skip
    values = np.array(rows, float)
    assert np.array_equal(values, np.column_stack([timed.t, timed.q, timed.v, timed.a]))
    pytest.importorskip("trajectory_msgs.msg")
    message = timed.to_trajectory_msg("base")
    last = message.points[-1]
    assert len(message.points) == len(timed)
    assert list(last.positions) == timed.q[-1].tolist()
    assert list(last.velocities) == [0.0] * 7
    assert list(last.accelerations) == timed.a[-1].tolist()
    time = last.time_from_start.sec + 1e-9 * last.time_from_start.nanosec
    assert time == pytest.approx(timed.duration, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"acceleration": 0.0}, "acceleration must be finite and above 0"),
        ({"acceleration": np.inf}, "acceleration must be finite and above 0"),
        ({"jerk": 0.0}, "jerk must be above 0 for each joint"),
        ({"max_linear_speed": 0.0}, "max_linear_speed"),
        ({"path_tolerance": -1.0}, "path_tolerance"),
        ({"rate": float("nan")}, "rate"),
        ({"aceleration": 2.0}, "did you mean acceleration"),
    ],
)
def test_bad_options_are_refused(solver, options, words):
    T, path = corner_path(solver, 1)
    with pytest.raises(OptionError, match=words):
        time_path(solver, T, path, **options)


def test_paths_that_cannot_be_timed_are_refused(solver):
    T, path = corner_path(solver, 2)
    with pytest.raises(OptionError, match="at least two poses with different joint positions"):
        time_path(solver, T[:1], path.q[:1])
    with pytest.raises(OptionError, match="5 x 7 finite numbers"):
        time_path(solver, T, path.q[1:])
    jumping = path.q.copy()
    jumping[2:, 0] += 2.0
    with pytest.raises(OptionError, match="jump by more than 1 rad or m to the poses 2"):
        time_path(solver, T, jumping)
    far = T.copy()
    far[-1, :3, 3] += 9.0
    with pytest.raises(OptionError, match=r"1 of 5 poses are not reached \(indices 4\)"):
        time_path(solver, far, solver.solve_path(far, BENT))
    pair = IkSolver(RobotModel.from_urdf(ROOT / "urdf" / "two_wams.urdf", tip=TIPS))
    with pytest.raises(ChainError, match="only paths of one tip"):
        time_path(pair, T, path)


def test_a_change_of_the_branch_within_a_line_is_refused():
    robot = RobotModel.from_urdf(shipped_urdf("planar_2r"))
    solver = IkSolver(robot, task=Task.position_only())
    q = np.array([[0.0, 0.4], [0.4, -0.4]])  # the elbow changes sides, through the stretched arm
    with pytest.raises(DlsIkError, match=r"pose 0"):
        time_path(solver, robot.fk(q), q, rotation_tolerance=3.0)
