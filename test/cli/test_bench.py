# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik bench``: methods on the same poses, as a table, JSON and a picture."""

import numpy as np
import pytest
from cli_runner import document
from cli_runner import run as dls_ik
from plot.plot_cases import assert_good

from dls_ik import IkSolver, RobotModel
from dls_ik.cli.bench import figures, new_comparison, run
from dls_ik.errors import OptionError
from dls_ik.plot.methods import solve_times


def test_bench_reports_solve_rate_and_times_of_each_method():
    found = document("bench", "wam", "--method", "auto, jd", "--samples", 40, "--reference", "auto")
    assert (found["robot"], found["reference"], found["finished"]) == ("wam7", "auto", 40)
    assert found["complete"]
    auto, jd = found["methods"]
    assert (auto["method"], jd["method"]) == ("auto", "jd")
    assert auto["solved"] == auto["inside_limits"] == auto["faster"] == 1.0
    assert jd["solved"] < 0.5
    assert jd["restarts"] == 0.0
    for row in (auto, jd):
        assert 0.0 < row["median_time"] <= row["p95_time"]
        assert row["batch_rate"] > 0.0


def test_the_same_seed_gives_the_same_poses():
    keys = ("solved", "inside_limits", "restarts", "iterations")
    arguments = ("planar_2r", "--method", "jd,auto", "--samples", 30, "--seed", 7)
    once, again = (document("bench", *arguments) for _ in range(2))
    assert once["reference"] == "jd", "the first, as PyKDL does not serve it"
    assert [[row[key] for key in keys] for row in once["methods"]] == [
        [row[key] for key in keys] for row in again["methods"]
    ]


def test_bench_prints_a_table_and_writes_a_picture(tmp_path):
    picture = tmp_path / "times.svg"
    result = dls_ik("bench", "planar_2r", "--method", "auto,jd", "--samples", 5, "--plot", picture)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert any(words[:2] == ["auto", "100.0"] for words in lines)
    assert "<svg" in picture.read_text()


def test_interrupted_comparison_keeps_the_finished_poses():
    robot = RobotModel.from_name("planar_2r")
    found = new_comparison(robot, ["auto"], 10, seed=0)

    def stop(done, total):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(found, [IkSolver(robot)], stop)
    (row,) = figures(found, "auto")
    assert found.finished == 4
    assert row["solved"] == 1.0
    assert row["batch_rate"] is None


def test_lines_of_the_picture_end_at_the_share_that_was_solved():
    times = {"a": [1e-5, 3e-5, 2e-5, 9e-5], "b": [1e-3, 2e-3, 1e-3, 1e-3]}
    solved = {"a": [True, True, True, False], "b": [False] * 4}
    lines = {line.get_label(): line for line in solve_times(times, solved).axes[0].lines}
    np.testing.assert_allclose(lines["a  75 %, 20 us"].get_xdata()[:3], [10.0, 20.0, 30.0])
    assert lines["a  75 %, 20 us"].get_ydata()[-1] == 75.0
    assert lines["b  0 %"].get_ydata()[-1] == 0.0
    assert_good(solve_times(times, solved), units=False)
    with pytest.raises(OptionError, match="same positive size"):
        solve_times({"a": [1.0]}, {"a": []})
