# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``solve_path``: each pose is solved from the previous answer; jumps are reported."""

import numpy as np
import pytest
from solve_cases import PUMA, TOLERANCE, WAM, errors, robot_of, turning

import dls_ik
from dls_ik import IkSolver, Status, Task
from dls_ik.errors import JointValueError, OptionError, PoseError
from dls_ik.solver.result import IkPathResult
from dls_ik.text import quoted

FIELDS = ("success", "status", "q", "position_error", "rotation_error", "iterations", "restarts",
          "jumps")  # fmt: skip


def joint_path(robot, rng, count=200):
    """Return configurations along a smooth curve through the middle of the joint ranges."""
    lower, upper = robot.finite_limits()
    t = np.linspace(0.0, 1.0, count)[:, None]
    phase, size = rng.uniform(0.0, 2.0 * np.pi, robot.n), rng.uniform(0.1, 0.3, robot.n)
    return 0.5 * (lower + upper) + size * (upper - lower) * np.sin(2.0 * np.pi * t + phase)


def check_solved(robot, Ts, result):
    assert result.success.all(), np.flatnonzero(~result.success)
    assert robot.within_limits(result.q).all()
    for T, q in zip(Ts, result.q, strict=True):
        assert np.max(errors(robot, T, q)) <= TOLERANCE


def largest_moves(q):
    """Return the largest joint change (b,) from the previous pose; 0 for the first."""
    return np.concatenate([[0.0], np.abs(np.diff(q, axis=0)).max(axis=1)])


@pytest.mark.parametrize(
    ("name", "seeded"), [("wam", True), ("fr3", False), ("iiwa14", True), ("gen3", False)]
)
def test_smooth_paths_are_solved_without_unreported_jumps(name, seeded):
    """Every pose is solved, and every jump of a joint is reported."""
    robot = robot_of(name)
    path = joint_path(robot, np.random.default_rng(1))
    Ts = robot.fk(path)
    result = IkSolver(robot).solve_path(Ts, path[0] if seeded else None)
    check_solved(robot, Ts, result)
    np.testing.assert_array_equal(result.jumps, largest_moves(result.q) > 0.5)
    if seeded:
        np.testing.assert_allclose(result.q[0], path[0], atol=1e-9)
        assert result.jumps.mean() <= 0.02


@pytest.mark.parametrize("name", ["puma560", "ur5e"])
def test_nonredundant_arms_keep_the_branch_of_the_seed(name):
    """Away from singularities, all other branches are far from the seed."""
    robot = robot_of(name)
    t = np.linspace(0.0, 1.0, 300)[:, None]
    lower, upper = robot.finite_limits()
    begin = np.clip(np.array([0.3, 0.4, 0.6, 0.3, 0.7, 0.2]), lower + 0.2, upper - 0.4)
    path = begin + 0.2 * t * np.array([1.0, -1.0, 0.5, 1.0, 0.5, -1.0])
    result = IkSolver(robot).solve_path(robot.fk(path), path[0])
    assert result.success.all()
    assert not result.jumps.any()
    np.testing.assert_allclose(result.q, path, atol=2e-5)


def test_a_path_of_two_distant_poses_has_one_jump():
    rng = np.random.default_rng(2)
    one, other = PUMA.clip(0.3 * rng.normal(size=6)), PUMA.clip(0.3 * rng.normal(size=6) + 1.5)
    Ts = PUMA.fk(np.repeat([one, other], 5, axis=0))
    result = IkSolver(PUMA).solve_path(Ts, one)
    check_solved(PUMA, Ts, result)
    assert np.flatnonzero(result.jumps).tolist() == [5]
    wide = IkSolver(PUMA).solve_path(Ts, one, max_joint_step=100.0)
    assert not wide.jumps.any()


JUMPS = [1e-6, 0.05, 0.5, 3.0, 1, np.inf, np.float32(0.5), np.int64(1), np.float64(0.5), 10**5000]


@pytest.mark.parametrize("jump", JUMPS, ids=lambda jump: quoted(jump, 20))
def test_jumps_are_reported_above_max_joint_step(jump):
    path = joint_path(WAM, np.random.default_rng(3), 40)
    result = IkSolver(WAM).solve_path(WAM.fk(path), path[0], max_joint_step=jump)
    assert result.success.all()
    expected = [bool(move > jump) for move in largest_moves(result.q).tolist()]
    np.testing.assert_array_equal(result.jumps, expected)


def test_a_first_pose_far_from_the_seed_is_a_jump():
    path = joint_path(PUMA, np.random.default_rng(4), 5)
    seed = PUMA.clip(path[0] + 1.5)
    assert IkSolver(PUMA).solve_path(PUMA.fk(path), seed).jumps[0]
    # The first pose has no previous configuration
    assert not IkSolver(PUMA).solve_path(PUMA.fk(path)).jumps[0]


@pytest.mark.parametrize("approximate", [False, True])
def test_unreachable_poses_within_a_path_are_missed_without_jumps(approximate):
    path = joint_path(WAM, np.random.default_rng(5), 30)
    Ts = WAM.fk(path)
    Ts[10:13, :3, 3] *= 5.0
    result = IkSolver(WAM, approximate=approximate).solve_path(Ts, path[0])
    missed = np.isin(np.arange(30), [10, 11, 12])
    np.testing.assert_array_equal(result.status == Status.UNREACHABLE, missed)
    np.testing.assert_array_equal(result.success, ~missed | approximate)
    check = np.abs(result.q[13] - result.q[9]).max()
    assert result.jumps[13] == (check > 0.5)  # relative to the last pose that was reached
    assert not result.jumps[10:13].any()
    assert WAM.within_limits(result.q).all()


def test_invalid_poses_within_a_path_fail_alone():
    path = joint_path(WAM, np.random.default_rng(6), 20)
    Ts = WAM.fk(path)
    Ts[0, 0, 0] = Ts[7, 2, 3] = np.nan
    result = IkSolver(WAM).solve_path(Ts, path[0])
    bad = np.isin(np.arange(20), [0, 7])
    np.testing.assert_array_equal(result.status == Status.REFUSED, bad)
    np.testing.assert_array_equal(result.success, ~bad)
    assert np.isnan(result.q[bad]).all()
    assert not result.jumps[bad].any()


def test_each_pose_is_solved_from_the_previous_answer():
    path = joint_path(WAM, np.random.default_rng(7), 50)
    Ts, solver = WAM.fk(path), IkSolver(WAM, max_restarts=1000)
    result, last = solver.solve_path(Ts, path[0]), path[0]
    for i, T in enumerate(Ts):
        alone = solver.solve(T, last, timeout=3600.0)
        if np.abs(alone.q - last).max() <= 0.5:
            np.testing.assert_array_equal(result.q[i], alone.q)
        last = result.q[i]


def test_inexact_rotations_are_corrected_at_jumps():
    rng = np.random.default_rng(8)
    Ts = WAM.fk(WAM.random(20, rng))
    exact = IkSolver(WAM).solve_path(Ts, np.zeros(7))
    Ts[:, :3, :3] += rng.uniform(-1e-8, 1e-8, (20, 3, 3))
    rough = IkSolver(WAM).solve_path(Ts, np.zeros(7))
    assert rough.success.all()
    np.testing.assert_allclose(rough.q, exact.q, atol=1e-3)


def test_the_result_is_deterministic_and_a_batch_result():
    path = joint_path(WAM, np.random.default_rng(9), 40)
    Ts = WAM.fk(path)
    one, other = (IkSolver(WAM).solve_path(Ts, path[0]) for _ in range(2))
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    assert isinstance(one, IkPathResult)
    assert isinstance(one, dls_ik.IkBatchResult)
    assert len(one) == 40
    assert one[3].success
    assert one[3].status is Status.SUCCESS


def test_continuous_joints_keep_turning():
    rng = np.random.default_rng(10)
    robot = turning(rng)
    t = np.linspace(0.0, 1.0, 400)[:, None]
    path = robot.clip(0.05 + 12.0 * t * robot.continuous)
    result = IkSolver(robot, max_restarts=2000).solve_path(robot.fk(path), path[0])
    assert result.success.all()
    np.testing.assert_array_equal(result.jumps, largest_moves(result.q) > 0.5)


def test_position_only_and_empty_paths_are_solved():
    path = joint_path(WAM, np.random.default_rng(11), 20)
    result = IkSolver(WAM).solve_path(WAM.fk(path), path[0], Task.position_only())
    assert result.success.all()
    assert np.abs(WAM.fk(result.q) - WAM.fk(path))[:, :3, 3].max() <= 1.01e-6
    empty = IkSolver(WAM).solve_path(np.empty((0, 4, 4)))
    assert len(empty) == 0
    assert empty.jumps.shape == (0,)


@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma560"])
def test_a_closer_solution_is_searched_after_a_far_first_answer(robot):
    rng = np.random.default_rng(5)
    solver, last = IkSolver(robot), robot.random(1, rng)[0]
    Ts = robot.fk(robot.random(40, rng))
    result = solver.solve_path(Ts, last, max_joint_step=0.3)
    assert result.success.all()
    gains = []
    for T, q in zip(Ts, result.q, strict=True):
        first = solver.solve(T, last).q
        gains.append(np.linalg.norm(first - last) - np.linalg.norm(q - last))
        last = q
    assert np.mean(np.array(gains) > 0.01) > 0.25
    assert np.mean(gains) > 0.2


@pytest.mark.parametrize(
    "jump",
    [0.0, -1.0, np.nan, "far", None, True, [0.5], -(10**5000)],
    ids=lambda jump: quoted(jump, 20),
)
def test_invalid_jump_thresholds_are_refused(jump):
    with pytest.raises(OptionError, match="max_joint_step"):
        IkSolver(WAM).solve_path(np.eye(4)[None], max_joint_step=jump)


def test_bad_poses_and_seeds_are_refused():
    solver = IkSolver(WAM)
    for Ts in (np.eye(4), np.zeros((2, 3, 3)), "poses", None):
        with pytest.raises(PoseError):
            solver.solve_path(Ts)
    for seed in (np.zeros(6), np.full(7, np.nan), np.zeros((2, 7))):
        with pytest.raises(JointValueError):
            solver.solve_path(np.eye(4)[None], seed)


def solved_path():
    """Return a short path of the WAM and its solver."""
    q = joint_path(WAM, np.random.default_rng(3), 6)
    return IkSolver(WAM).solve_path(WAM.fk(q), q[0])


def test_csv_files_of_a_path_are_read_back(tmp_path):
    path = solved_path()
    text = path.to_csv(tmp_path / "path.csv", rate=20.0)
    assert (tmp_path / "path.csv").read_text() == text
    assert text.splitlines()[0].split(",") == ["t", *WAM.joint_names]
    table = np.loadtxt(tmp_path / "path.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table[:, 0], np.arange(6) / 20.0)
    np.testing.assert_array_equal(table[:, 1:], path.q)
    t = np.loadtxt(path.to_csv().splitlines(), delimiter=",", skiprows=1)[:, 0]
    share = np.abs(np.diff(path.q, axis=0)) / np.diff(t)[:, None] / WAM.velocity
    np.testing.assert_allclose(share.max(axis=1), 1.0)  # the limits are fully used


def test_path_converts_to_a_joint_trajectory_message():
    pytest.importorskip("trajectory_msgs.msg", reason="needs ROS's messages")
    path = solved_path()
    message = path.to_trajectory_msg(times=[5.0, 5.5, 6.0, 7.25, 8.0, 9.0], frame_id="base")
    assert (tuple(message.joint_names), message.header.frame_id) == (WAM.joint_names, "base")
    at = [point.time_from_start for point in message.points]
    assert [(each.sec, each.nanosec) for each in at[1:4]] == [
        (0, 5 * 10**8),
        (1, 0),
        (2, 25 * 10**7),
    ]
    np.testing.assert_array_equal([point.positions for point in message.points], path.q)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"times": [0.0, 1.0]}, "6 increasing numbers"),
        ({"times": [0.0, 1.0, 2.0, 2.0, 3.0, 4.0]}, "increasing"),
        ({"times": "now"}, "'now'"),
        ({"rate": 0.0}, "above 0"),
        ({"rate": 5.0, "times": np.arange(6.0)}, "one of them"),
    ],
)
def test_invalid_times_are_refused(given, said):
    with pytest.raises(OptionError, match=said):
        solved_path().to_csv(**given)


def test_incomplete_paths_are_not_written_and_fast_ones_warn(caplog):
    path = solved_path()
    path.to_csv(rate=1000.0)
    assert "times the velocity limit of wam_j1" in caplog.text
    T = WAM.fk(path.q)
    T[2, 0, 3] += 5.0
    with pytest.raises(OptionError, match=r"1 of 6 poses are not reached \(indices 2\)"):
        IkSolver(WAM).solve_path(T, path.q[0]).to_csv()
    wheel = dls_ik.RobotModel.from_dh([{"a": 1.0, "kind": "continuous"}] * 2)
    free = IkSolver(wheel, task=Task.position_only()).solve_path(wheel.fk([[0.1, 1], [0.2, 1]]))
    with pytest.raises(OptionError, match="no velocity limit"):
        free.to_csv()
    assert free.to_csv(rate=1.0)
