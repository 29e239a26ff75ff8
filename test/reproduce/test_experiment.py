# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Experiments in general: reports, tables, documents, chance."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dls_ik.reproduce.experiment import (
    EXPERIMENTS,
    FITTED,
    ORIGINS,
    SIGMAS,
    TAUTOLOGICAL,
    Column,
    Experiment,
    NotPredicted,
    Reproduction,
    ReproductionError,
    ResultTable,
    begin,
    count_figures,
    experiment,
    mean_score,
    percent_score,
    reproduce,
)
from dls_ik.reproduce.report import document_of, html, latex, markdown, verdicts
from dls_ik.text import json_text


def report():
    return Reproduction(
        "x",
        3,
        0,
        rows=[{"method": "a", "value": 1.25, "differs": ["value"]}, {"method": "b", "value": None}],
        printed=[{"method": "a", "value": 1.0}, {"method": "c", "value": 2.0}],
        notes=["a < b | c"],
        complete=True,
    )


TABLE = ResultTable((Column("method", "method", is_name=True), Column("value", "value [m]", ".1f")))


def fake():
    return Experiment("x", "A & B", "t", (TABLE,), lambda *_: None, lambda _: Figure(), 5, "tries")


def test_json_has_the_keys_of_the_contract_and_only_finite_numbers():
    made = report()
    made.series = {"s": np.array([1.0, math.nan]), "n": np.int64(3), "t": (1, math.inf)}
    found = json.loads(json_text(made))
    assert list(found)[:6] == ["what", "samples", "seed", "settings", "rows", "printed"]
    assert found["series"] == {"s": [1.0, None], "n": 3, "t": [1, None]}


def test_printed_figures_stand_beside_the_measured_ones():
    headings, is_left, lines = TABLE.wide(report())
    assert headings == ["method", "value [m]", "printed"]
    assert is_left == [True, False, False]
    assert lines == [["a", "1.2*", "1.0"], ["b", "-", "-"], ["c", "-", "2.0"]]


def test_table_selects_rows_by_series_and_condition():
    made = report()
    made.series["more"] = [{"method": "a", "value": 3.0}, {"method": "z", "value": 4.0}]
    more = ResultTable(TABLE.columns, series="more")
    assert [line[0].measured for line in more.lines(made)] == ["a", "z"]
    chosen = ResultTable(TABLE.columns, where={"method": "b"})
    assert [line[0].measured for line in chosen.lines(made)] == ["b"]


def test_a_table_of_one_reading_is_left_out_of_a_report_of_another():
    one, other = (ResultTable(TABLE.columns, where={"reading": name}) for name in ("x", "y"))
    made = replace(report(), reading="x")
    for row in made.rows:
        row["reading"] = "x"
    assert one.is_shown(made)
    assert not other.is_shown(made)
    assert [line[0].measured for line in one.lines(made)] == ["a", "b"]
    assert other.lines(made) == []
    assert other.is_shown(replace(made, reading=""))
    text = markdown(document_of([(replace(fake(), tables=(one, other)), made)]), {"x": "x.svg"})
    assert text.count("| method |") == 1


def test_a_report_begins_with_its_verdict_and_where_it_was_made():
    uncounted = ResultTable(TABLE.columns, is_verdict=False)
    each = replace(fake(), tables=(TABLE, uncounted), source="Buss & Kim 2004, figure 9")
    document = document_of([(each, report()), (fake(), report())], ["dls-ik", "reproduce", "x"])
    assert verdicts(document).headings == ["paper", *ORIGINS]
    rest = ["0 of 0", "0 of 0", "0 of 0"]
    assert verdicts(document).lines == [
        ["Buss & Kim 2004", "0 of 1", *rest],
        ["A & B", "0 of 1", *rest],
        ["all", "0 of 2", *rest],
    ]
    broken = replace(report(), complete=False)
    about = markdown(document_of([(each, broken)], (), ["figure-7"]), {"x": "x.svg"})
    assert "- interrupted: incomplete: x; not run: figure-7" in about
    assert "interrupted" not in markdown(document, {"x": "x.svg"})
    part = replace(each, needs_all=True)  # 3 of 5 samples
    few = replace(each, is_sampled=True)
    for uncounted in (part, few):
        found = verdicts(document_of([(uncounted, report())])).lines
        assert found == [["Buss & Kim 2004", "0 of 0", *rest]]
    assert "3 tries are few" in markdown(document_of([(few, report())]), {"x": "x.svg"})
    text = markdown(document, {"x": "x.svg"})
    places = [
        text.index(word) for word in ("| all | 0 of 2 |", "dls-ik reproduce x", "doi:", "1.2*")
    ]
    assert places == sorted(places)
    tables = latex(document)
    # The verdict, and the tables of three experiments
    assert tables.count(r"\begin{tabular}{lrr}") == 3
    assert tables.count(r"\begin{tabular}{lrrrr}") == 1
    assert r"A \& B" in tables
    assert r"a & 1.2* & 1.0 \\" in tables


def test_figures_are_counted_by_the_origin_of_their_agreement():
    columns = (
        Column("method", "method", is_name=True),
        Column("value", "value"),
        Column("bound", "bound"),
        Column("words", "words", is_text=True),
        Column("motion", "motion"),
        Column("time", "time", is_compared=False),
    )
    row = {"value": 1, "bound": 5.0, "words": "up", "motion": 0.5, "time": 2.0}
    made = Reproduction(
        "x",
        5,
        0,
        rows=[{"method": "a", **row}, {"method": "b", **row, "differs": ["value", "words"]}],
        printed=[{"method": name, **row, "motion": "very smooth"} for name in "ab"],
        complete=True,
    )
    each = replace(
        fake(),
        tables=(ResultTable(columns),),
        not_predicted=(
            NotPredicted(FITTED, "fitted to it", {"method": ("a",)}, ("value",)),
            NotPredicted(TAUTOLOGICAL, "it is the bound", columns=("bound",)),
        ),
    )
    assert count_figures(each, made) == {
        "predicted": {"agree": 0, "compared": 1},
        "fitted": {"agree": 1, "compared": 1},
        "tautological": {"agree": 2, "compared": 2},
        "in words": {"agree": 1, "compared": 2},
    }
    assert "- fitted: fitted to it" in markdown(document_of([(each, made)]), {"x": "x.svg"})


def test_a_run_counts_its_figures_for_the_json_file():
    made = reproduce(experiment("table-4-4"), 600)
    counts = json.loads(json_text(made))["counts"]
    assert counts["fitted"] == {"agree": 6, "compared": 6}
    assert counts["predicted"]["compared"] == 12
    assert counts["in words"]["compared"] == 0
    traces = reproduce(experiment("section-4"), 2).counts
    assert traces["fitted"] == {"agree": 31, "compared": 31}


@pytest.mark.parametrize("writer", [markdown, html])
def test_documents_contain_all_results_and_escape_text(writer):
    text = writer(document_of([(fake(), report())]), {"x": "x.png"})
    assert "x.png" in text
    assert "1.2*" in text
    assert ("A &amp; B" in text) == (writer is html)
    assert ("a &lt; b" in text) == (writer is html)
    # The name ends like the mark of differing figures
    made = Reproduction("x", 3, 0, rows=[{"method": "DLS*", "value": 1.0}], complete=True)
    assert 'class="name differs"' not in html(document_of([(fake(), made)]), {"x": "x.png"})


def test_unknown_experiments_and_too_few_samples_are_refused():
    for what in EXPERIMENTS:
        found = experiment(what)
        assert found.what == what
        assert found.samples >= found.least_samples
    assert reproduce(fake()).complete
    with pytest.raises(ReproductionError, match="1 or more samples"):
        begin(fake(), 0)
    with pytest.raises(ReproductionError, match="table-v"):
        experiment("table-vi")


def test_scores_are_in_standard_deviations_of_both_samplings():
    rng = np.random.default_rng(1)
    found = rng.binomial(1000, 0.3, size=(400, 2)) / 10.0
    z = np.array([percent_score(a, 1000, b, 1000) for a, b in found])
    assert np.std(z) == pytest.approx(1.0, abs=0.1)
    means = rng.normal(5.0, 2.0, size=(400, 2, 50)).mean(axis=2)
    z = np.array([mean_score(a, 50, b, 50, 2.0, 0.0) for a, b in means])
    assert np.std(z) == pytest.approx(1.0, abs=0.1)
    few = rng.normal(5.0, 2.0, size=(2000, 2, 4))
    z = [mean_score(a.mean(), 4, b.mean(), 4, a.std(ddof=1), 0.0) for a, b in few]
    assert np.mean(np.abs(z) > 3.0) < 0.008  # 6 percent for Student's t without the conversion
    assert percent_score(100.0, 1000, 100.0, 1000) == 0.0
    assert mean_score(10.0, 9, 10.4, 9, 0.0, 0.5) < -1.0
    assert mean_score(10.0, 9, 9.0, 9, 0.0, 0.0) > SIGMAS


def test_a_mark_means_chance_only_where_samples_are_drawn():
    for name in EXPERIMENTS:
        assert experiment(name).is_sampled == (name in ("table-v", "figure-4"))
    assert "chance" not in markdown(document_of([(fake(), report())]), {"x": "x.png"})
    sampled = replace(fake(), is_sampled=True)
    assert "more than chance" in markdown(document_of([(sampled, report())]), {"x": "x.png"})


def test_rows_and_readings_that_are_not_there_are_refused():
    each = experiment("table-v")
    with pytest.raises(ReproductionError, match=r"no row 'jj'.* jp, jt"):
        begin(each, 1, 0, ["jp", "jj"])
    with pytest.raises(ReproductionError, match="as published, as meant"):
        begin(each, 1, 0, reading="as printed")
    with pytest.raises(ReproductionError, match="no rows to choose"):
        begin(fake(), 1, 0, ["jp"])
