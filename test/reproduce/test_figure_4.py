"""Figure 4 of Buss & Kim: its rules, and what it concludes."""

import numpy as np
import pytest

from dls_ik.reproduce import figure_4
from dls_ik.reproduce.experiment import reproduce
from dls_ik.reproduce.figure_4_rows import end


@pytest.fixture(scope="module")
def report():
    return reproduce(figure_4.EXPERIMENT, samples=60)


def rows(report, group, gain=1e-6):
    found = [r for r in report.rows if r["group"] == group and r["gain"] == gain]
    return {row["method"]: row for row in found}


def test_a_run_ends_when_a_step_improves_too_little():
    assert end(np.array([3.0, 2.0, 1.0]), 1e-5) is None
    assert end(np.array([3.0, 2.0, 2.0 - 1e-6, 1.0]), 1e-5) == 2
    assert end(np.array([3.0, 2.0, 2.0, 1.0]), 1e-5) == 2


def test_a_run_ends_with_its_third_step_back():
    assert end(np.array([3.0, 4.0, 2.0, 3.0, 1.0, 2.0, 0.0]), 1e-5) == 5


def test_a_run_ends_after_4000_steps():
    assert end(np.linspace(9.0, 1.0, 4001), 1e-5) == 4000
    assert end(np.linspace(9.0, 1.0, 4000), 1e-5) is None


def test_sdls_wins_wherever_a_target_is_reached(report):
    reached = rows(report, "reached")
    assert reached["SDLS"]["wins"] == 100.0
    assert reached["SDLS"]["excess"] == 0.0
    assert 5.0 < reached["SDLS"]["share"] < 30.0


def test_sdls_needs_few_more_steps_for_each_digit_and_dls_hundreds(report):
    reached = rows(report, "reached")
    assert reached["SDLS"]["steps_1e-4"] - reached["SDLS"]["steps_1e-2"] < 10.0
    for name in ("DLS", "DLS'", "DLS*"):
        assert reached[name]["steps_1e-4"] - reached[name]["steps_1e-2"] > 150.0
        assert reached[name]["excess"] < 5e-4


def test_dls_with_clamped_targets_wins_most_targets_out_of_reach(report):
    missed = rows(report, "not reached")
    assert missed["DLS'"]["wins"] == max(row["wins"] for row in missed.values())
    assert missed["DLS'"]["excess"] < 0.2 * missed["SDLS"]["excess"]
    assert missed["SDLS"]["steps_1e-4"] < missed["DLS'"]["steps_1e-4"]


@pytest.mark.parametrize("group", figure_4.GROUPS)
def test_the_transpose_stops_early_and_far_off(report, group):
    transpose = rows(report, group)["J^T"]
    assert transpose["wins"] == 0.0
    assert transpose["excess"] > 0.5
    assert transpose["steps_1e-4"] < 100.0


def test_a_finer_rule_comes_nearer(report):
    coarse, fine = rows(report, "reached", 1e-5), rows(report, "reached", 1e-6)
    assert fine["DLS"]["excess"] < 0.3 * coarse["DLS"]["excess"]


def test_every_printed_row_is_measured(report):
    names = ("gain", "group", "method")
    assert {tuple(r[n] for n in names) for r in report.rows} == {
        tuple(r[n] for n in names) for r in report.printed
    }


def test_picture(report):
    assert len(figure_4.plot(report).axes) == 2
