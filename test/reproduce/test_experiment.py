"""Experiments in general: reports, tables, documents, chance."""

import json
import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from dls_ik.cli.reproduce import html, markdown, sections_of
from dls_ik.reproduce.experiment import (
    EXPERIMENTS,
    Column,
    Experiment,
    Reproduction,
    ReproductionError,
    ResultTable,
    begin,
    experiment,
    means_differ,
    percents_differ,
    reproduce,
)
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


def test_a_table_takes_its_rows_from_where_it_is_told():
    made = report()
    made.series["more"] = [{"method": "a", "value": 3.0}, {"method": "z", "value": 4.0}]
    more = ResultTable(TABLE.columns, series="more")
    assert [line[0].measured for line in more.lines(made)] == ["a", "z"]
    chosen = ResultTable(TABLE.columns, where={"method": "b"})
    assert [line[0].measured for line in chosen.lines(made)] == ["b"]


@pytest.mark.parametrize("writer", [markdown, html])
def test_documents_hold_everything_and_escape_it(writer):
    text = writer(sections_of([(fake(), report())]), {"x": "x.png"})
    assert "x.png" in text
    assert "1.2*" in text
    assert ("A &amp; B" in text) == (writer is html)
    assert ("a &lt; b" in text) == (writer is html)
    # a name that ends like the mark of what differs
    made = Reproduction("x", 3, 0, rows=[{"method": "DLS*", "value": 1.0}], complete=True)
    assert 'class="name differs"' not in html(sections_of([(fake(), made)]), {"x": "x.png"})


def test_experiments_by_name_too_few_samples_and_unknown_names_are_refused():
    for what in EXPERIMENTS:
        found = experiment(what)
        assert found.what == what
        assert found.samples >= found.least_samples
    assert reproduce(fake()).complete
    with pytest.raises(ReproductionError, match="1 or more samples"):
        begin(fake(), 0)
    with pytest.raises(ReproductionError, match="table-v"):
        experiment("table-vi")


def test_chance():
    assert not percents_differ(100.0, 1000, 100.0, 1000)
    assert not percents_differ(50.0, 1000, 53.0, 1000)
    assert percents_differ(50.0, 1000, 60.0, 1000)
    rng = np.random.default_rng(0)
    pairs = 100.0 * rng.binomial(500, 0.3, (400, 2)) / 500
    assert sum(percents_differ(a, 500, b, 500) for a, b in pairs) <= 8
    assert not means_differ(10.0, 100, 10.5, 100, 2.0, 0.0)
    assert means_differ(10.0, 100, 11.5, 100, 2.0, 0.0)
    assert not means_differ(10.0, 1, 99.0, 100, 2.0, 0.0)
