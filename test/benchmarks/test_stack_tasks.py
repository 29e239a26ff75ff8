# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of task stacks at its smallest size, and its parts."""

import json
import math
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks import tasks
from benchmarks.servo_peers.adapters import DlsIk
from benchmarks.servo_peers.worker import follow
from benchmarks.servo_runs import moving
from dls_ik import RobotModel

WAM = RobotModel.wam()


def test_swivel_angle_is_the_turn_of_the_elbow_about_the_line_to_the_wrist():
    # A turn of the first joint does not change heights, so that it keeps the angle from up.
    q = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
    assert tasks.swivel(WAM, q) == pytest.approx(0.0, abs=1e-12)
    assert tasks.swivel(WAM, q + 0.4 * np.eye(7)[0]) == pytest.approx(0.0, abs=1e-12)
    assert abs(tasks.swivel(WAM, q + 0.4 * np.eye(7)[2])) > 0.1


def test_angles_continue_beyond_half_a_turn():
    assert tasks.turned(-3.1, 3.1) == pytest.approx(math.tau - 3.1)
    assert tasks.turned(3.1, 3.0) == pytest.approx(3.1)


def test_random_stacks_hold_their_bounds_and_priorities():
    rng = np.random.default_rng(1)
    for n in (7, 14):
        stack = tasks.random_stack(rng, n)
        x, is_optimal = stack.solve()
        assert is_optimal
        assert (x >= stack.low - 1e-12).all()
        assert (x <= stack.high + 1e-12).all()
        alone, _ = stack.solve(1)
        np.testing.assert_allclose(stack.residuals(x)[0], stack.residuals(alone)[0], atol=1e-12)


def test_a_comparison_of_stacks_continues_at_any_number(tmp_path, monkeypatch):
    changed = []
    for first, count in ((0, 6), (0, 3), (3, 3)):
        path = tmp_path / f"{first} {count}.json"
        small = ["--only-stacks", "--first-stack", str(first), "--stacks", str(count)]
        monkeypatch.setattr(sys, "argv", ["tasks.py", "--json", str(path), *small])
        tasks.main()
        (table,) = json.loads(path.read_text())["tables"]
        assert [(row["first stack"], row["stacks"]) for row in table["rows"]] == 2 * [
            (first, count)
        ]
        changed.append([row["violation of bounds"] for row in table["rows"]])
    whole, *parts = changed
    assert whole == [max(part) for part in zip(*parts, strict=True)]


@pytest.mark.slow
def test_stacks_leave_the_tip_and_the_first_level(tmp_path, monkeypatch):
    path = tmp_path / "figures.json"
    small = ["--stacks", "20", "--poses", "1", "--repeats", "1", "--cycles", "8", "--carried", "50"]
    monkeypatch.setattr(sys, "argv", ["tasks.py", "--json", str(path), *small])
    tasks.main()
    tables = json.loads(path.read_text())["tables"]
    moved, compared, times, *_ = (table["rows"] for table in tables)
    assert moved[0]["range [rad]"] == pytest.approx(moved[0]["of the solver [rad]"], abs=1e-4)
    assert moved[0]["position error, max [m]"] < 1e-5
    for row in compared:
        assert row["stacks"] == 20
        assert row["level 1 changed by 2 and 3"] < 1e-9
        if find_spec("daqp"):
            assert row["worse than daqp"] == 0
            assert row["daqp failed on"] < 20
        else:
            assert row["worse than daqp"] is None
    assert len(times) == 8
    assert all(row["median [us]"] > 0.0 for row in times)


def test_a_posture_on_a_lower_level_does_not_move_the_tip():
    job = tasks.posture_job(moving("wam7"), np.nan)
    short = job._replace(targets=job.targets[:, :500], has_arrived=job.has_arrived[:, :500])
    row = tasks.posture_row("dls_ik", np.nan, short, follow(short, DlsIk))
    name, cost, position, rotation, largest, distance, acceleration, time = row
    assert (name, cost) == ("dls_ik", None)
    assert max(position, rotation, largest) < 1e-6
    assert distance < np.linalg.norm(tasks.POSTURE_STEP) - 0.05
    assert acceleration < 1.0 + 1e-6
    assert time > 0.0
