# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table V of Colome & Torras: both readings, their statistics, and the paper's conclusions."""

import math
from itertools import product

import numpy as np
import pytest
from reproduce.pictures import shows_something

from dls_ik.model.robot import RobotModel
from dls_ik.reproduce.colome_torras_outcomes import Outcomes, figures, scores
from dls_ik.reproduce.colome_torras_readings import (
    COMPARED,
    KDL_ROWS,
    MEANT_READING_NAME,
    PUBLISHED_READING_NAME,
    READING_AS_PUBLISHED,
    SLIPS,
    TABLE_V_METHODS,
    printed_rows,
)
from dls_ik.reproduce.colome_torras_table_v import REACHED_STATUSES, notes, sign_test, verdict
from dls_ik.reproduce.colome_torras_variants import ROWS, VARIANTS, run_variant
from dls_ik.reproduce.experiment import begin, experiment, reproduce
from dls_ik.solver.solver import IkSolver

pytestmark = pytest.mark.xdist_group("table_v")

SAMPLES = 150
KEYS = {
    "reading", "method", "solved_percent", "in_limits_percent", "iterations", "iterations_solved",
    "time_ms", "time_solved_ms", "time_in_limits_ms", "residual",
}  # fmt: skip


@pytest.fixture(scope="module")
def report():
    return reproduce(experiment("table-v"), SAMPLES, seed=3)


def rows_of(report, reading):
    return {row["method"]: row for row in report.rows if row["reading"] == reading}


def test_report_has_all_rows_and_keys_and_is_drawn(report):
    assert len(report.printed) == 19
    assert list(rows_of(report, PUBLISHED_READING_NAME)) == [
        row["method"] for row in report.printed
    ]
    assert list(rows_of(report, MEANT_READING_NAME)) == list(TABLE_V_METHODS)
    for row in report.rows:
        assert set(row) >= KEYS or (row["method"] in KDL_ROWS and "missing" in row)
    num_variants = sum(len(slip.rows) for slip in SLIPS) + len(VARIANTS)
    assert len(report.series["slips"]) == num_variants
    each = experiment("table-v")
    assert shows_something(each.plot(report))
    each.plot(begin(each))


def test_published_reading_matches_all_printed_figures_but_one(report):
    found = verdict(report.rows, PUBLISHED_READING_NAME)
    assert found["figures"] >= 80
    assert found["beyond"] <= 2
    assert found["mean_z2_rest"] < 1.6
    for row, key in product(rows_of(report, PUBLISHED_READING_NAME).values(), COMPARED[:4]):
        assert abs(row["z"].get(key, 0.0)) < 3.5, (row["method"], key)
    assert rows_of(report, PUBLISHED_READING_NAME)["jt"]["differs"] == ["residual"]
    meant = verdict(report.rows, MEANT_READING_NAME)
    assert meant["mean_z2_rest"] > 4.0 * found["mean_z2_rest"]
    columns = {(row["reading"], row["column"]): row for row in report.series["columns"]}
    assert columns[PUBLISHED_READING_NAME, "iterations"]["sign_p"] > 0.001


def test_slips_do_what_the_notes_say(report):
    slips = {(row["slip"], row["method"]): row for row in report.series["slips"]}
    assert slips["SD bounds max(w)", "sd"]["iterations_change"] > 4.0
    assert slips["JC may end outside the limits", "jc"]["in_limits_percent_change"] > 10.0
    assert slips["CTP has a margin of 0.2", "ctp"]["solved_percent_change"] > 10.0
    assert slips["TA weights a direction", "ta"]["in_limits_percent_change"] < -10.0


def test_null_hypothesis_is_in_the_report(report):
    (row,) = report.series["null"]
    assert row["figures"] >= 80
    assert row["beyond"] <= row["beyond_99"] + 2
    assert min(row["mean_z2_p"], row["covariance_p"]) > 0.01


@pytest.mark.parametrize("row", ["jt", "sd", "tp"])
def test_the_solver_takes_the_steps_of_the_variants_that_are_as_published(row):
    robot, rng = RobotModel.wam(), np.random.default_rng(5)
    starts, goals = robot.random(40, rng), robot.fk(robot.random(40, rng))
    found = run_variant(robot, ROWS[row], goals, starts)
    method, options = READING_AS_PUBLISHED.options_of(row)
    batch = IkSolver(robot, method, **options).solve_batch(goals, starts)
    solved = np.isin(batch.status, REACHED_STATUSES)
    assert np.sum(found.solved != solved) <= 1
    same = found.iterations[solved & found.solved] == batch.iterations[solved & found.solved]
    assert same.all() or row == "tp"


def test_the_second_stop_of_the_matlab_file_solves_less_by_jc(report):
    slips = {(row["instead"], row["method"]): row for row in report.series["slips"]}
    row = slips["also at norm(dq) < 1e-4", "jc"]
    assert row["iterations_change"] < -10.0
    assert row["solved_percent_change"] < 0.0


def test_conclusions_of_the_paper_hold_for_the_meant_reading(report):
    rows = rows_of(report, MEANT_READING_NAME)
    for unlimited in ("jp", "jd", "jf", "ed", "svf", "svf+ed", "jw"):
        assert rows[unlimited]["solved_percent"] > 97.0
    assert rows["jt"]["solved_percent"] < 70.0
    assert rows["tp"]["solved_percent"] < 0.3 * rows["ctp"]["solved_percent"]
    for ctp in ("tp", "ctp", "ctp+svf", "ctp+sd", "ctp+sd+svf"):
        assert rows[ctp]["solved_percent"] - rows[ctp]["in_limits_percent"] < 1.5
    assert rows["svf+ed"]["in_limits_percent"] > 3 * rows["svf"]["in_limits_percent"]
    assert rows["ed"]["iterations"] < rows["jp"]["iterations"] < rows["sd"]["iterations"]


def test_rows_beyond_chance_are_named(report):
    assert any(note.startswith("jt, residual") for note in report.notes)
    strange = {"reading": PUBLISHED_READING_NAME, "method": "svf+ed", "differs": ["iterations"]}
    assert any(note.startswith("svf+ed: some of our figures differ") for note in notes([strange]))


def test_the_same_seed_gives_the_same_pairs_and_rows_may_be_chosen():
    made = [
        begin(experiment("table-v"), 10, seed, ["jp", "ed"], PUBLISHED_READING_NAME)
        for seed in (3, 3, 4)
    ]
    for report in made:
        experiment("table-v").run(report, Silent())
        assert [row["method"] for row in report.rows] == ["jp", "ed"]
    one, same, other = ([row["iterations"] for row in report.rows] for report in made)
    assert one == same
    assert one != other


class Silent:
    def track(self, items, title):
        yield from items


def test_sign_test_is_the_binomial_one():
    assert sign_test(0, 0) == 1.0
    assert sign_test(5, 5) == 1.0
    assert sign_test(0, 5) == pytest.approx(2 / 32)
    assert sign_test(9, 1) == pytest.approx(22 / 1024)


def test_figures_are_averages_of_the_outcomes():
    found = Outcomes(
        np.array([True, True, False, False]),
        np.array([True, False, False, False]),
        np.array([2.0, 4.0, 250.0, 250.0]),
        np.array([0.0, 0.0, 0.1, 0.3]),
    )
    row = figures(found)
    assert (row["solved_percent"], row["in_limits_percent"]) == (50.0, 25.0)
    assert (row["iterations"], row["iterations_solved"]) == (126.5, 3.0)
    assert row["residual"] == pytest.approx(0.2)
    assert "time_ms" not in row
    printed = next(row for row in printed_rows() if row["method"] == "jp")
    assert scores(found, printed, 1000)["solved_percent"] < -3.0
    nothing = np.zeros(3, bool)
    row = figures(Outcomes(nothing, nothing, np.full(3, math.nan), np.ones(3), np.ones(3)))
    assert row["iterations"] is None
    assert row["iterations_solved"] is None
    assert row["time_solved_ms"] is None
