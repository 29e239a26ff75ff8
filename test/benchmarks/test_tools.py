# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks, run for real at the smallest size, and their parts."""

import argparse
import json
import os
import re
import sys
from importlib import import_module

import numpy as np
import pytest
from robots import ROOT

from benchmarks.choosing import CASES, METHODS, WISHES
from benchmarks.common import add_plot, thread_counts
from benchmarks.million import poses
from benchmarks.servo_limits import random_arm
from benchmarks.servo_runs import in_processes, joint_time, moving
from benchmarks.start_up import copy_sources, current_environment, left_environment
from benchmarks.tracking import STRETCHED, errors, lost, paths
from dls_ik import DlsIkError, IkSolver, RobotModel


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """Run a tool in this process and read the rows of its tables."""

    def run(tool, *options):
        target = tmp_path / "figures.json"
        monkeypatch.setattr(sys, "argv", [f"{tool}.py", "--json", str(target), *options])
        import_module(f"benchmarks.{tool}").main()
        return [table["rows"] for table in json.loads(target.read_text())["tables"]]

    return run


def test_million_reports_array_sizes_and_rates(figures):
    (rows,) = figures("million", "--samples", "3000")
    assert [row["threads"] for row in rows] == thread_counts()
    for row in rows:
        assert row["solved [%]"] == 100.0
        assert row["poses [MiB]"] == pytest.approx(3000 * 16 * 8 / 2**20)
        assert row["answer [MiB]"] >= 3000 * 7 * 8 / 2**20
        assert row["poses a second"] * row["time [s]"] == pytest.approx(3000)


def test_poses_generated_in_parts_are_rigid_transforms():
    robot = RobotModel.from_name("planar_2r")
    Ts = poses(robot, 10_001, np.random.default_rng(0))
    assert Ts.shape == (10_001, 4, 4)
    assert np.allclose(Ts[:, 3], [0.0, 0.0, 0.0, 1.0])
    assert np.allclose(Ts[-1, :3, :3] @ Ts[-1, :3, :3].T, np.eye(3))


def test_plot_option_refuses_unsupported_file_formats(capsys):
    options = argparse.ArgumentParser()
    add_plot(options, "it")
    with pytest.raises(SystemExit):
        options.parse_args(["--plot", "figures.csv"])
    assert "must end in .png, .svg, .pdf; got figures.csv" in capsys.readouterr().err


def test_choosing_reports_figures_for_every_method(figures):
    small = ["--samples", "3", "--methods", "svf", "odls"]
    shares, times, which, streamed = figures("choosing", *small)
    for rows in (shares, times, streamed):
        assert [row["method"] for row in rows] == ["auto", "svf", "odls"]
    assert [row["solve_type"] for row in which] == list(WISHES)
    assert shares[0] == {"method": "auto", **dict.fromkeys(CASES, 100.0)}


def test_page_has_a_row_for_every_method():
    page = (ROOT / "docs" / "lab" / "choosing.md").read_text()
    rows = re.findall(r"^\| `([\w+]+)` \| [\d.]+ \(", page, re.MULTILINE)
    assert rows == list(METHODS)


def test_static_targets_are_all_reached_with_the_joint_motion(figures):
    small = ["--targets", "3", "--methods", "jd", "--robots", "wam7", "--processes", "1"]
    (rows,) = figures("static_targets", *small, "--acceleration", "10")
    assert [row["when stuck"] for row in rows] == ["hold", "motion"]
    assert rows[1]["reached [%]"] == 100.0


def test_tracking_error_is_smaller_with_feed_forward(figures):
    small = ["--paths", "circle", "--speeds", "0.5", "--rates", "100", "--messages", "30"]
    rest = ["--limits", "velocity", "--processes", "1"]
    rows, needs = figures("tracking", *small, *rest)
    without, forward = (row["position, max [mm]"] for row in rows)
    assert 0.0 < forward < without
    assert needs[0]["poses with a solution [%]"] == 100.0


def test_servo_limits_reports_no_limit_violation(figures):
    (rows,) = figures("servo_limits", "--cycles", "2000", "--processes", "1")
    (row,) = rows
    assert row["cycles"] == 2000
    for name in ("position / range", "velocity / limit"):
        assert 0.0 <= row[name] <= 1e-9


def test_servo_step_reports_times_relative_to_jd(figures):
    small = ["--methods", "jd", "--repeats", "1", "--cycles", "8"]
    (rows,) = figures("servo_step", *small)
    assert rows[0]["as a multiple of jd"].startswith("1.00")
    assert {row["part"] for row in rows} == {"step", "cycle"}


def test_soft_orientation_has_the_least_error(figures):
    (rows,) = figures("soft_orientation", "--samples", "20")
    assert [row["orientation_weight"] for row in rows] == [0.0, 0.01, 1.0]
    for row in rows:
        assert 0.99 < row["error over the least, median"] < 1.001
        assert row["a call [us]"] >= row["forward [us]"] > 0.0


def test_fixed_targets_have_a_row_for_each_printed_figure(figures, tmp_path):
    path = tmp_path / "figure_4.csv"
    (rows,) = figures("fixed_targets", "--samples", "8", "--csv", str(path))
    assert len(rows) == 61
    assert [row["figure"] for row in rows if row["remark"] == "copied"] == ["steps_1e-1"] * 2
    assert rows[0]["ours"] == pytest.approx(100.0 * rows[1]["number"] / 8)
    lines = path.read_text().splitlines()
    assert len(lines) == 62
    assert lines[2].startswith("reached,3,SDLS,wins [%],100,100,+0.00,")


def test_seeds_of_table_v_are_compared_with_chance(figures):
    (rows,) = figures("table_v_seeds", "--samples", "30", "--seeds", "1", "2")
    assert [row["seed"] for row in rows] == ["1", "2", "all"]
    for row in rows:
        assert row["figures"] >= 75
        assert 0.0 < row["its p"] <= 1.0
        assert 0 <= row["in limits: below print"] <= 19


def test_joint_time_follows_velocity_and_acceleration_limits():
    robot = moving("wam7")
    way = np.array([0.1, -4.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert joint_time(robot, way, np.inf) == pytest.approx(2.0)
    assert joint_time(robot, way, 2.0) == pytest.approx(3.0)
    assert joint_time(robot, 0.125 * way, 2.0) == pytest.approx(1.0)


def test_paths_begin_where_the_arm_is_and_have_solutions():
    robot = moving("wam7")
    for path in paths().values():
        assert np.allclose(robot.fk(path.start()), path.pose(0.0), atol=2e-6)
        Ts = np.array([path.pose(phase) for phase in np.linspace(0.0, 6.28, 40)])
        assert IkSolver(robot).solve_batch(Ts).success.all()
    J = robot.jacobian(STRETCHED)
    assert np.linalg.svd(J)[1][-1] < 1e-12
    assert np.linalg.norm(lost(STRETCHED)) == pytest.approx(1.0)


def test_a_lag_is_a_delay_along_the_path():
    Ts_d = np.tile(np.eye(4), (50, 1, 1))
    Ts_d[:, 0, 3] = 0.2 * np.arange(50)
    Ts, velocity = Ts_d.copy(), np.tile([0.2, 0.0, 0.0], (50, 1))
    Ts[:, 0, 3] -= 0.2 * 0.03
    position, rotation, lag = errors(Ts, Ts_d, velocity)
    assert lag == pytest.approx(0.03)
    assert position == pytest.approx(0.006)
    assert rotation == pytest.approx(0.0)


def test_known_robots_load_and_unknown_names_are_reported():
    assert (moving("ur10e", 1.5).velocity == 1.5).all()
    with pytest.raises(DlsIkError, match="no_such_robot"):
        moving("no_such_robot")
    assert random_arm(np.random.default_rng(1)).n >= 1


def test_results_keep_their_order_in_several_processes():
    assert in_processes(abs, [-3, 2, -1], 2, "a test") == [3, 2, 1]


def test_process_time_is_split_at_each_stamp():
    code = "import sys\nstamp()\nsum(range(4_000_000))\nstamp()"
    idle, busy, _ = current_environment().run(code)
    assert min(idle) > 0.0
    assert min(busy) > 0.01


def test_separate_environment_has_the_sources_but_no_checkout_paths(tmp_path, monkeypatch):
    copy_sources(tmp_path)
    assert (tmp_path / "dls_ik" / "py.typed").is_file()
    assert not (tmp_path / ".git").exists()
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:/elsewhere")
    with left_environment():
        assert os.environ["PYTHONPATH"] == "/elsewhere"
    assert os.environ["PYTHONPATH"] == f"{ROOT}:/elsewhere"


def test_moveit_scenes_are_checked_and_planned(figures, tmp_path):
    """One goal is in a box, one is not; spheres and the library agree."""
    robot = RobotModel.wam()
    box = {"type": "box", "dimensions": [0.1, 0.1, 0.1]}
    for i, goal in enumerate(([0.0] * 7, [0.0, 1.5, *[0.0] * 5])):
        place = {"position": robot.fk(np.zeros(7))[:3, 3].tolist(), "orientation": [0, 0, 0, 1]}
        thing = {"id": "b", "primitives": [box], "primitive_poses": [place]}
        world = {"name": "", "world": {"collision_objects": [thing]}}
        joints = [
            {"joint_name": name, "position": q}
            for name, q in zip(robot.joint_names, goal, strict=True)
        ]
        request = {
            "start_state": {"joint_state": {"name": ["wam_j1"], "position": [0.0]}},
            "goal_constraints": [{"joint_constraints": joints}],
        }
        (tmp_path / f"scene{i}.yaml").write_text(json.dumps(world))
        (tmp_path / f"request{i}.yaml").write_text(json.dumps(request))
    checks, *_ = figures("scenes", str(tmp_path), "--robot", "wam", "--samples", "20")
    (row,) = checks
    assert (row["problems"], row["goals free"], row["differ"]) == (2, 1, 0)
    assert row["batch [us]"] > 0.0
    (planned,), *_ = figures("scenes", str(tmp_path), "--robot", "wam", "--repeats", "1", "--plan")
    assert (planned["requests"], planned["straight [%]"], planned["solved [%]"]) == (2, 0.0, 50.0)
    assert planned["corners"] >= 1.0
