"""Table V of Colome & Torras: rows, their statistics, and what the paper concludes from them."""

import math

import numpy as np
import pytest
from reproduce.pictures import shows_something

from dls_ik.reproduce.colome_torras_table_v import (
    KDL,
    METHODS,
    READINGS,
    Outcomes,
    differing,
    figures,
    notes,
    printed_rows,
)
from dls_ik.reproduce.experiment import begin, experiment, reproduce

SAMPLES = 150
KEYS = {
    "method", "solved_percent", "in_limits_percent", "iterations", "iterations_solved", "time_ms",
    "time_solved_ms", "residual",
}  # fmt: skip


@pytest.fixture(scope="module")
def report():
    return reproduce(experiment("table-v"), SAMPLES, seed=3)


@pytest.fixture(scope="module")
def rows(report):
    return {row["method"]: row for row in report.rows}


def test_every_row_is_there_with_the_keys_of_the_contract_and_drawn(report, rows):
    assert list(rows) == list(METHODS)
    assert len(report.printed) == 19
    for name, row in rows.items():
        assert set(row) >= KEYS or (name in KDL and "missing" in row)
    assert len(report.series["readings"]) == len(READINGS)
    each = experiment("table-v")
    assert shows_something(each.plot(report))
    each.plot(begin(each))


def near(measured, printed, sigmas=4.0):
    p = min(max(printed, 1.0), 99.0) / 100.0
    return abs(measured - printed) <= 100 * sigmas * math.sqrt(p * (1 - p) / SAMPLES)


@pytest.mark.parametrize(
    "method", ["jp", "jd", "jf", "ed", "svf", "svf+ed", "sd", "svf+sd", "ctp+sd", "ctp+sd+svf"]
)
def test_rows_whose_settings_are_printed_agree(report, rows, method):
    printed = next(row for row in report.printed if row["method"] == method)
    for key in ("solved_percent", "in_limits_percent"):
        assert near(rows[method][key], printed[key])


def test_what_the_paper_concludes(rows):
    for unlimited in ("jp", "jd", "jf", "ed", "svf", "svf+ed", "jw"):
        assert rows[unlimited]["solved_percent"] > 97.0
    assert rows["jt"]["solved_percent"] < 70.0
    assert rows["tp"]["solved_percent"] < 0.3 * rows["ctp"]["solved_percent"]
    for ctp in ("tp", "ctp", "ctp+svf", "ctp+sd", "ctp+sd+svf"):
        assert rows[ctp]["solved_percent"] - rows[ctp]["in_limits_percent"] < 1.5
    assert rows["svf+ed"]["in_limits_percent"] > 3 * rows["svf"]["in_limits_percent"]
    assert rows["ed"]["iterations"] < rows["jp"]["iterations"] < rows["sd"]["iterations"]


def test_every_row_that_differs_is_explained_or_said_not_to_be(report, rows):
    text = "\n".join(report.notes)
    for name, row in rows.items():
        if row.get("differs"):
            assert name in text
    assert "svf+ed: not known." in notes([{"method": "svf+ed", "differs": ["iterations"]}])


def test_the_same_seed_gives_the_same_pairs():
    one, same, other = (reproduce(experiment("table-v"), 10, seed=seed) for seed in (3, 3, 4))
    one, same, other = ([row["iterations"] for row in r.rows[:5]] for r in (one, same, other))
    assert one == same
    assert one != other


def test_figures_of_outcomes():
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
    assert "solved_percent" in differing(found, printed, 1000)
    nothing = np.zeros(3, bool)
    row = figures(Outcomes(nothing, nothing, np.full(3, math.nan), np.ones(3), np.ones(3)))
    assert row["iterations"] is None
    assert row["iterations_solved"] is None
    assert row["time_solved_ms"] is None
