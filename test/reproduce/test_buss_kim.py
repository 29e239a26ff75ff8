"""Figures 3 and 4 of Buss & Kim: printed shares, the rules that end runs, conclusions."""

import numpy as np
import pytest

from dls_ik.reproduce import buss_kim
from dls_ik.reproduce.buss_kim import end
from dls_ik.reproduce.experiment import reproduce

NEAR = 0.3  # percentage points: 6 of 2000 steps, of which rounding may move some


@pytest.fixture(scope="module")
def figure_3():
    return reproduce(buss_kim.FIGURE_3)


def row(report, **wanted):
    return next(r for r in report.rows if wanted.items() <= r.items())


@pytest.mark.parametrize("pair", buss_kim.PRINTED_SHARES)
def test_shares_are_the_printed_ones(figure_3, pair):
    measured = row(figure_3, pair=" over ".join(pair), code="as published")
    for key, printed in zip(buss_kim.SHARE_KEYS, buss_kim.PRINTED_SHARES[pair], strict=True):
        assert abs(measured[key] - printed) < NEAR


@pytest.mark.parametrize("code", buss_kim.CODES)
def test_shares_are_whole(figure_3, code):
    for pair in buss_kim.PAIRS:
        measured = row(figure_3, pair=" over ".join(pair), code=code)
        assert sum(measured[key] for key in buss_kim.SHARE_KEYS) == pytest.approx(100.0)


def test_sums_are_those_of_the_other_replication(figure_3):
    for name in ("DLS", "DLS 0.6", "DLS'", "SDLS", "SDLS hard"):
        measured = row(figure_3, method=name, code="as published")
        assert measured["sum"] == pytest.approx(buss_kim.REPLICATED[name], rel=0.02)


def test_mended_code_is_better(figure_3):
    for name in ("SDLS", "DLS'"):
        mended = row(figure_3, method=name, code="mended")["sum"]
        assert mended < row(figure_3, method=name, code="as published")["sum"]


def test_few_samples_are_the_first_ones_and_make_a_picture():
    report = reproduce(buss_kim.FIGURE_3, samples=20)
    assert len(report.series["mended"]["T"]) == 20
    buss_kim.plot_figure_3(report)
    assert "replicated" not in row(report, method="DLS")


@pytest.fixture(scope="module")
def figure_4():
    return reproduce(buss_kim.FIGURE_4, samples=60)


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


def test_sdls_wins_wherever_a_target_is_reached(figure_4):
    reached = rows(figure_4, "reached")
    assert reached["SDLS"]["wins"] == 100.0
    assert reached["SDLS"]["excess"] == 0.0
    assert 5.0 < reached["SDLS"]["share"] < 30.0


def test_sdls_needs_few_more_steps_for_each_digit_and_dls_hundreds(figure_4):
    reached = rows(figure_4, "reached")
    assert reached["SDLS"]["steps_1e-4"] - reached["SDLS"]["steps_1e-2"] < 10.0
    for name in ("DLS", "DLS'", "DLS*"):
        assert reached[name]["steps_1e-4"] - reached[name]["steps_1e-2"] > 150.0
        assert reached[name]["excess"] < 5e-4


def test_dls_with_clamped_targets_wins_most_targets_out_of_reach(figure_4):
    missed = rows(figure_4, "not reached")
    assert missed["DLS'"]["wins"] == max(row["wins"] for row in missed.values())
    assert missed["DLS'"]["excess"] < 0.2 * missed["SDLS"]["excess"]
    assert missed["SDLS"]["steps_1e-4"] < missed["DLS'"]["steps_1e-4"]


@pytest.mark.parametrize("group", buss_kim.GROUPS)
def test_the_transpose_stops_early_and_far_off(figure_4, group):
    transpose = rows(figure_4, group)["J^T"]
    assert transpose["wins"] == 0.0
    assert transpose["excess"] > 0.5
    assert transpose["steps_1e-4"] < 100.0


def test_a_finer_rule_comes_nearer(figure_4):
    coarse, fine = rows(figure_4, "reached", 1e-5), rows(figure_4, "reached", 1e-6)
    assert fine["DLS"]["excess"] < 0.3 * coarse["DLS"]["excess"]


def test_every_printed_row_of_figure_4_is_measured(figure_4):
    names = ("gain", "group", "method")
    assert {tuple(r[n] for n in names) for r in figure_4.rows} == {
        tuple(r[n] for n in names) for r in figure_4.printed
    }


def test_figure_4_has_two_panels(figure_4):
    assert len(buss_kim.plot_figure_4(figure_4).axes) == 2
