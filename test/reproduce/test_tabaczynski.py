# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table 4.4 of Tabaczynski."""

import numpy as np
import pytest

from dls_ik.reproduce import tabaczynski
from dls_ik.reproduce import tabaczynski_studies as studies
from dls_ik.reproduce.experiment import begin, reproduce
from dls_ik.reproduce.tabaczynski import SCENARIOS, planar_joints

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.fixture(scope="module")
def report():
    return reproduce(tabaczynski.TABLE_4_4)


def row(report, scenario, method):
    return next(r for r in report.rows if (r["scenario"], r["method"]) == (scenario, method))


def test_iterations_in_reach_are_the_printed_ones(report):
    for scenario in ("2 links", "5 links"):
        for method, printed in zip(
            tabaczynski.TABLE_4_METHODS, BY_NAME[scenario].printed, strict=True
        ):
            measured = row(report, scenario, method)
            assert (measured["coarse"], measured["fine"]) == printed[:2]
            assert "differs" not in measured


@pytest.mark.parametrize("scenario", ["2 links, too far", "2 links, too close"])
def test_only_dls_converges_without_oscillation_out_of_reach(report, scenario):
    pinv, transpose, dls = (row(report, scenario, method) for method in tabaczynski.TABLE_4_METHODS)
    assert pinv["line"] == "never"
    assert dls["line"] < 45
    assert transpose["line"] == "never" or transpose["line"] > dls["line"]
    assert pinv["oscillation"] > 80.0
    assert dls["oscillation"] < 5.0 < transpose["oscillation"]


def test_unfinished_runs_are_not_marked_as_different():
    few = reproduce(tabaczynski.TABLE_4_4, samples=200)
    measured = row(few, "2 links", "transpose")
    assert (measured["coarse"], measured["fine"]) == (120, "never")
    assert "differs" not in measured
    two = reproduce(tabaczynski.TABLE_4_4, samples=2)
    assert row(two, "5 links", "DLS")["fine"] == "never"
    assert tabaczynski.plot(two).axes
    assert BY_NAME["2 links, too far"].least_distance == pytest.approx(2.5 * 2**0.5 - 3.0)
    assert BY_NAME["2 links, too close"].least_distance == pytest.approx(1.0 - 0.5**0.5)
    assert BY_NAME["5 links"].least_distance == 0.0


def test_transpose_for_too_far_takes_the_printed_100_iterations(report):
    assert row(report, "2 links, too far", "transpose")["line_fine"] == 100


@pytest.fixture(scope="module")
def found():
    return reproduce(studies.STUDIES, samples=6)


def of_table(report, table):
    return [row for row in report.rows if row["table"] == table]


def test_traces_of_5_links_match_the_printed_ones(found):
    for method, printed in studies.TRACES.items():
        rows = of_table(found, method)
        assert len(rows) == len(printed)
        assert not any("differs" in row for row in rows)
        legible = [figure for row in printed for figure in row if figure is not None]
        assert len(legible) > 0.9 * 6 * len(printed)
        for row, figures in zip(rows, printed, strict=True):
            assert row["distance"] == pytest.approx(figures[0], abs=studies.PRINTED_ROUNDING)


def test_dls_then_pinv_is_faster_and_uncapped_pinv_overshoots(found, report):
    variants = {(r["scenario"], r["method"]): r for r in of_table(found, "variants")}
    dual, alone = variants["2 links", studies.DLS_THEN_PINV], row(report, "2 links", "DLS")
    assert dual["fine"] < 0.4 * alone["fine"]
    assert dual["beyond"] == pytest.approx(alone["beyond"], abs=0.05)
    free = variants["2 links, too far", "pinv, no cap"]
    assert free["beyond"] > 4 * row(report, "2 links, too far", "truncated pinv")["beyond"]
    assert ("5 links", "pinv") not in variants  # same as the truncated one
    assert ("2 links, straight", "truncated pinv, halved") in variants


def test_small_caps_take_long_and_chains_reach_their_goals(found):
    caps = {r["cap"]: r for r in of_table(found, "caps")}
    assert caps["0.1"]["median opposite"] > 2 * caps["pi/4"]["median opposite"]
    assert caps["pi/4"]["share a quadrant away"] == 100.0
    chain = studies.random_chain(np.random.default_rng(1), 4)
    x, y = studies.goal_of(np.random.default_rng(2), chain, np.pi)
    end = planar_joints(chain.links, np.array(chain.start))[-1]
    assert np.dot(end, (x, y)) == pytest.approx(-np.hypot(*end) * np.hypot(x, y))
    assert studies.plot(found).axes
    assert studies.plot(begin(studies.STUDIES)).axes
