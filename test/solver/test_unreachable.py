# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Unreachable poses: a result instead of an exception, in time, with the best configuration."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
from oracle_ik import CLIPPING, parts_of, pose_error
from out_of_grasp import out_of_grasp

from dls_ik import IkSolver, RobotModel, Status, method_names
from dls_ik.core.search_rows import search_packed
from dls_ik.solver import calls
from dls_ik.solver import search as search_module
from dls_ik.solver import solver as solver_module
from dls_ik.solver.search import UNTIMED_ATTEMPTS

NAMES = method_names()
WAM, PUMA = RobotModel.wam(), RobotModel.from_name("puma560")
PLANAR = RobotModel.from_name("planar_2r")


def poses_out_of_reach(robot, rng, reach=3.0):
    T = robot.fk(robot.random(rng=rng))
    T[:3, 3] *= reach / np.linalg.norm(T[:3, 3])
    return T


def errors(robot, T, q):
    e = pose_error(T, robot.fk(q))
    return np.linalg.norm(e[:3]), np.linalg.norm(e[3:])


def assert_consistent(robot, T, result):
    assert not result.success
    position, rotation = errors(robot, T, result.q)
    assert result.position_error == pytest.approx(position, abs=1e-12)
    assert result.rotation_error == pytest.approx(rotation, abs=1e-9)


@pytest.mark.parametrize("robot", [WAM, PUMA, PLANAR], ids=["wam", "puma560", "planar_2r"])
def test_the_best_configuration_is_within_limits_with_true_errors(robot):
    rng = np.random.default_rng(1)
    solver = IkSolver(robot, max_restarts=20, prove_after=5)
    for _ in range(20):
        T = poses_out_of_reach(robot, rng)
        result = solver.solve(T, robot.random(rng=rng), timeout=3600.0)
        assert (result.status, result.restarts) == (Status.UNREACHABLE, 4)
        assert robot.within_limits(result.q)
        assert_consistent(robot, T, result)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_reports_the_true_errors(name):
    rng = np.random.default_rng(2)
    solver = IkSolver(WAM, name, max_restarts=3, max_iterations=50)
    for _ in range(5):
        T = poses_out_of_reach(WAM, rng)
        result = solver.solve(T, WAM.random(rng=rng), timeout=3600.0)
        proved = name in ("sqp", "dual") or parts_of(name).strategy in CLIPPING
        status = Status.UNREACHABLE if proved else Status.MAX_RESTARTS
        assert (result.status, result.restarts) == (status, 3)
        assert result.iterations <= 200 or name == "auto"
        assert np.isfinite(result.q).all()
        assert_consistent(WAM, T, result)


def test_poses_out_of_the_plane_of_a_planar_arm_are_unreachable():
    off, tilted = PLANAR.fk([0.3, 0.8]), PLANAR.fk([0.3, 0.8])
    off[2, 3] = 1e-3
    tilted[:3, :3] = tilted[:3, :3] @ np.array([[1.0, 0, 0], [0, 0.8, -0.6], [0, 0.6, 0.8]])
    for T in (off, tilted):
        result = IkSolver(PLANAR, max_restarts=10).solve(T, timeout=3600.0)
        assert result.status is Status.UNREACHABLE
        assert PLANAR.within_limits(result.q)
        assert_consistent(PLANAR, T, result)


def test_poses_reached_outside_the_limits_are_no_success():
    rng = np.random.default_rng(4)
    seen = set()
    for _ in range(100):
        T, seed = WAM.fk(WAM.random(rng=rng)), WAM.random(rng=rng)
        result = IkSolver(WAM, "jp").solve(T, seed, timeout=3600.0)
        seen.add(result.status)
        assert result.success == (result.status is Status.SUCCESS)
        if result.status is Status.OUTSIDE_LIMITS:
            assert not WAM.within_limits(result.q)
            assert np.max(errors(WAM, T, result.q)) <= 1.01e-6
    assert Status.OUTSIDE_LIMITS in seen


SEARCH_ATTEMPTS = list(inspect.signature(search_packed).parameters).index("attempts")


def set_attempt_duration(monkeypatch, seconds):
    """Replace the clock of the solver by one that advances only with each attempt."""
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)

    def slow_search(*args):
        search_packed(*args)
        clock.now += seconds * args[SEARCH_ATTEMPTS]

    monkeypatch.setattr(calls, "time", clock)
    monkeypatch.setattr(solver_module, "time", clock)
    monkeypatch.setattr(search_module, "search_packed", slow_search)
    monkeypatch.setattr(search_module, "_search_plain", slow_search)


@pytest.mark.parametrize("seconds", [1e-5, 1e-4, 1e-3])
def test_the_search_stops_at_the_timeout(monkeypatch, seconds):
    T = out_of_grasp(WAM, np.random.default_rng(6))
    set_attempt_duration(monkeypatch, seconds)
    result = IkSolver(WAM).solve(T, timeout=0.05)
    assert result.status is Status.TIMED_OUT
    assert 0.05 <= result.duration < 0.05 + 2.0 * seconds
    assert result.restarts == pytest.approx(0.05 / seconds, abs=2)
    assert WAM.within_limits(result.q)


@pytest.mark.parametrize("timeout", [0.0, 1e-9, 0.001])
def test_the_first_round_ignores_the_timeout(monkeypatch, timeout):
    T = out_of_grasp(WAM, np.random.default_rng(6))
    far = poses_out_of_reach(WAM, np.random.default_rng(6))
    set_attempt_duration(monkeypatch, 0.001)
    result = IkSolver(WAM).solve(T, timeout=timeout)
    assert (result.status, result.restarts) == (Status.TIMED_OUT, UNTIMED_ATTEMPTS - 1)
    published = IkSolver(WAM, "ed", max_restarts=None).solve(far, timeout=timeout)
    assert (published.status, published.restarts) == (Status.TIMED_OUT, 0)


def test_timeout_option_bounds_the_search_duration(monkeypatch):
    T = out_of_grasp(WAM, np.random.default_rng(6))
    set_attempt_duration(monkeypatch, 0.001)
    short, long = (IkSolver(WAM, timeout=t, max_restarts=300).solve(T) for t in (0.1, 1.0))
    assert short.status is Status.TIMED_OUT
    assert short.duration == pytest.approx(0.1, abs=0.002)
    assert (long.status, long.restarts) == (Status.MAX_RESTARTS, 300)
    assert long.duration == pytest.approx(0.301)


@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma560"])
def test_search_times_out_by_the_real_clock(robot):
    T = out_of_grasp(robot, np.random.default_rng(7))
    solver = IkSolver(robot)
    solver.solve(T, timeout=0.0)
    result = solver.solve(T, timeout=0.01)  # a search without a bound would not end
    assert result.status is Status.TIMED_OUT
    assert result.duration >= 0.01
