"""Figure 3 of Buss & Kim."""

import pytest

from dls_ik.reproduce import figure_3
from dls_ik.reproduce.experiment import reproduce

NEAR = 0.3  # percentage points: 6 of 2000 steps, of which rounding may move some


@pytest.fixture(scope="module")
def report():
    return reproduce(figure_3.EXPERIMENT)


def row(report, **wanted):
    return next(r for r in report.rows if wanted.items() <= r.items())


@pytest.mark.parametrize("pair", figure_3.PRINTED)
def test_shares_are_the_printed_ones(report, pair):
    measured = row(report, pair=" over ".join(pair), code="as published")
    for key, printed in zip(figure_3.KEYS, figure_3.PRINTED[pair], strict=True):
        assert abs(measured[key] - printed) < NEAR


@pytest.mark.parametrize("code", figure_3.CODES)
def test_shares_are_whole(report, code):
    for pair in figure_3.PAIRS:
        measured = row(report, pair=" over ".join(pair), code=code)
        assert sum(measured[key] for key in figure_3.KEYS) == pytest.approx(100.0)


def test_sums_are_those_of_the_other_replication(report):
    for name in ("DLS", "DLS 0.6", "DLS'", "SDLS", "SDLS hard"):
        measured = row(report, method=name, code="as published")
        assert measured["sum"] == pytest.approx(figure_3.REPLICATED[name], rel=0.02)


def test_mended_code_is_better(report):
    for name in ("SDLS", "DLS'"):
        mended = row(report, method=name, code="mended")["sum"]
        assert mended < row(report, method=name, code="as published")["sum"]


def test_few_samples_are_the_first_ones_and_make_a_picture():
    report = reproduce(figure_3.EXPERIMENT, samples=20)
    assert len(report.series["mended"]["T"]) == 20
    figure_3.plot(report)
    assert "replicated" not in row(report, method="DLS")
