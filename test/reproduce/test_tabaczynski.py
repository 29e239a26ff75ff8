"""Table 4.4 of Tabaczynski."""

import numpy as np
import pytest

from dls_ik.reproduce import tabaczynski
from dls_ik.reproduce.experiment import reproduce
from dls_ik.reproduce.tabaczynski import SCENARIOS

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
# The printed traces of 5 links, distance at each iteration.
TRACES = {
    "truncated pinv": [3.1772, 2.2797, 1.3181, 0.2902, 0.0388, 0.0002],
    "DLS": [3.1772, 2.5221, 1.9160, 1.4197, 1.0371, 0.7239, 0.4460, 0.2767, 0.1722, 0.1072,
            0.0667, 0.0415, 0.0258, 0.0161, 0.0100, 0.0062],
}  # fmt: skip


@pytest.fixture(scope="module")
def report():
    return reproduce(tabaczynski.TABLE_4_4)


def row(report, scenario, method):
    return next(r for r in report.rows if (r["scenario"], r["method"]) == (scenario, method))


@pytest.mark.parametrize("method", TRACES)
def test_printed_traces_of_5_links(method):
    _, distance = tabaczynski.follow(BY_NAME["5 links"], method, len(TRACES[method]))
    np.testing.assert_allclose(distance, TRACES[method], atol=6e-5)


def test_printed_first_step_of_5_links():
    q, _ = tabaczynski.follow(BY_NAME["5 links"], "truncated pinv", 2)
    printed = [-0.2548, -0.3650, -0.4744, -0.2963, 0.1077]
    np.testing.assert_allclose(q[1] - q[0], printed, atol=6e-5)


def test_iterations_in_reach_are_the_printed_ones(report):
    for scenario in ("2 links", "5 links"):
        for method, printed in zip(tabaczynski.METHODS, BY_NAME[scenario].printed, strict=True):
            measured = row(report, scenario, method)
            assert (measured["coarse"], measured["fine"]) == printed[:2]
            assert "differs" not in measured


@pytest.mark.parametrize("scenario", ["2 links, too far", "2 links, too close"])
def test_out_of_reach_only_damping_comes_quietly_to_the_line(report, scenario):
    pinv, transpose, dls = (row(report, scenario, method) for method in tabaczynski.METHODS)
    assert pinv["line"] == "never"
    assert dls["line"] < 45
    assert transpose["line"] == "never" or transpose["line"] > dls["line"]
    assert pinv["oscillation"] > 80.0
    assert dls["oscillation"] < 5.0 < transpose["oscillation"]


def test_what_has_not_come_in_few_iterations_does_not_differ():
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


def test_too_far_within_a_thousandth_takes_the_printed_100(report):
    assert row(report, "2 links, too far", "transpose")["line_fine"] == 100


def test_studies(report):
    studies = {(r["scenario"], r["method"]): r for r in report.series["studies"]}
    assert len(studies) == len(tabaczynski.SCENARIOS) * len(tabaczynski.STUDIES)
    dual, alone = studies["2 links", tabaczynski.DUAL], row(report, "2 links", "DLS")
    assert dual["fine"] < 0.4 * alone["fine"]
    assert dual["beyond"] == pytest.approx(alone["beyond"], abs=0.05)
    slow = studies["2 links", "truncated pinv, cap 0.1"]
    assert slow["coarse"] > 10 * row(report, "2 links", "truncated pinv")["coarse"]
    wild = studies["2 links, too close", "truncated pinv, cap pi"]
    assert wild["beyond"] > 4 * row(report, "2 links, too close", "truncated pinv")["beyond"]
