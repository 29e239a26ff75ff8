# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Published experiments: how they run, their registry, and tables beside the printed figures.

The module of a paper holds its experiments, and ``EXPERIMENTS`` lists them. ``run`` fills the
report in place, settings and printed figures first, then each row as soon as it is finished: an
interrupted run keeps its finished rows. Kernel calls take less than a second, so that Ctrl-C is
noticed between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from dls_ik.errors import DlsIkError
from dls_ik.solver.plugins import plugin_names
from dls_ik.text import did_you_mean, listing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")
Row = dict[str, Any]


@dataclass
class Reproduction:
    """One published table or figure, measured again.

    An experiment fills it in as it runs, so an interrupted run leaves the finished rows.
    """

    what: str
    samples: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # measured
    printed: list[Row] = field(default_factory=list)  # in the paper, with the same keys
    notes: list[str] = field(default_factory=list)  # differences and their causes
    series: dict[str, Any] = field(default_factory=dict)  # data of the picture
    complete: bool = False
    only: tuple[str, ...] = ()  # rows to run; none: all
    reading: str = ""  # to run; none: all


# Statistics

SIGMAS = 3.0  # of the difference: one figure in 370 exceeds it by chance
FARTHEST = 99.0  # of two shares that differ without any spread


def percent_score(
    first: float, count: int, second: float, second_count: int, rounding: float = 0.0
) -> float:
    """Return the difference of two shares [percent] over its standard deviation, binomial.

    Args:
        rounding: largest rounding error of the second share.
    """
    shares = first / 100.0, second / 100.0
    pooled = (shares[0] * count + shares[1] * second_count) / (count + second_count)
    variance = pooled * (1.0 - pooled) * (1.0 / count + 1.0 / second_count)
    return _score(100.0 * (shares[0] - shares[1]), 1e4 * variance, rounding)


def mean_score(
    first: float, count: int, second: float, second_count: int, deviation: float, rounding: float
) -> float:
    """Return the z-score of the difference of two means.

    Student's t of the first sample as a normal score, by Wallace's approximation: the spread of a
    few values is itself uncertain.

    Args:
        deviation: standard deviation of one value, of the first sample; the same for both.
        rounding: largest rounding error of the second mean.
    """
    variance = deviation * deviation * (1.0 / count + 1.0 / second_count)
    t, n = _score(first - second, variance, rounding), max(1, count - 1)
    z = (8.0 * n + 1.0) / (8.0 * n + 3.0) * sqrt(n * math.log1p(t * t / n))
    return math.copysign(z, t)


def _score(difference: float, variance: float, rounding: float) -> float:
    """Return the z-score; the rounding error of a printed figure is uniform."""
    sigma = sqrt(variance + rounding * rounding / 3.0)
    if sigma > 0.0:
        return difference / sigma
    return math.copysign(FARTHEST, difference) if difference else 0.0


# Tables

EMPTY = "-"
MARK = "*"  # behind a value that differs from the printed one by more than chance
PRINTED = "printed"  # heading of the column with the figures of the paper


class Column(NamedTuple):
    """The values of one key under a heading."""

    key: str
    heading: str  # with the unit in brackets
    form: str = ""  # a format specification
    is_name: bool = False  # identifies the row in both the measured and the printed rows
    is_text: bool = False  # words instead of a figure
    is_spare: bool = False  # left out where a terminal has no room
    is_plain: bool = False  # without the printed figure beside it
    is_compared: bool = True  # with the printed figure

    @property
    def is_left(self) -> bool:
        """True if the column is aligned to the left."""
        return self.is_name or self.is_text


class Cell(NamedTuple):
    """One measured value as text, and the printed value beside it."""

    measured: str
    printed: str  # empty where the paper prints no figure
    differs: bool


class WideTable(NamedTuple):
    """A table as text, with the printed figures in columns of their own."""

    headings: list[str]
    is_left: list[bool]
    lines: list[list[str]]


@dataclass(frozen=True)
class ResultTable:
    """A selection of a report's rows. Several tables may share the rows of one report."""

    columns: tuple[Column, ...]
    title: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)  # key: value that its rows have
    is_verdict: bool = True  # its figures count in the verdict of a report
    series: str = ""  # takes its rows from report.series[this] instead of report.rows

    def lines(self, report: Reproduction) -> list[list[Cell]]:
        """Return the cells of every measured row, then of rows that are only printed."""
        rows = report.series.get(self.series, []) if self.series else report.rows
        measured = [row for row in rows if self._has(row)]
        printed = {self._name(row): row for row in report.printed if self._may_have(row)}
        names = {self._name(row) for row in measured}
        is_whole = report.complete and not self.series
        missing = [row for name, row in printed.items() if name not in names and is_whole]
        missing = [row for row in missing if not report.only]
        pairs = [(row, printed.get(self._name(row), {})) for row in measured]
        pairs += [({c.key: row[c.key] for c in self.columns if c.is_name}, row) for row in missing]
        return [[_cell(c, *pair) for c in self.columns] for pair in pairs]

    def wide(self, report: Reproduction) -> WideTable:
        """Return the table for a page, which has room for the printed columns."""
        lines = self.lines(report)
        doubled = [any(line[i].printed for line in lines) for i in range(len(self.columns))]
        wide = WideTable([], [], [[] for _ in lines])
        for i, (column, twice) in enumerate(zip(self.columns, doubled, strict=True)):
            wide.headings.extend([column.heading, PRINTED] if twice else [column.heading])
            wide.is_left.extend([column.is_left, False] if twice else [column.is_left])
            for cells, line in zip(wide.lines, lines, strict=True):
                measured, printed = line[i].measured, line[i].printed or EMPTY
                cells.extend([measured, printed] if twice else [measured])
        return wide

    def _has(self, row: Row) -> bool:
        return all(row.get(key) == value for key, value in self.where.items())

    def _may_have(self, row: Row) -> bool:
        """Test a printed row, which need not have the keys that only measured ones have."""
        return all(row.get(key, value) == value for key, value in self.where.items())

    def _name(self, row: Row) -> tuple[Any, ...]:
        return tuple(row.get(column.key) for column in self.columns if column.is_name)


def marked(row: Row, differs: Sequence[str]) -> Row:
    """Return a row with the keys of the figures that differ from the printed ones."""
    return {**row, "differs": list(differs)} if differs else row


def not_run(report: Reproduction, row: Row, name: str, error: Exception) -> None:
    """Add the row of a method that failed, a plug-in: names only, with the reason in the notes."""
    report.rows.append({**row, "missing": str(error)})
    note = f"{name}: not run, {error}"
    if note not in report.notes:
        report.notes.append(note)


def _cell(column: Column, measured: Row, printed: Row) -> Cell:
    differs = column.key in measured.get("differs", ())
    mark = MARK if differs else ""
    is_alone = column.is_name or column.is_plain
    beside = "" if is_alone else _text(column, printed.get(column.key))
    return Cell((_text(column, measured.get(column.key)) or EMPTY) + mark, beside, differs)


def _text(column: Column, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return format(value, column.form) if not isinstance(value, str) else value


# Experiments


class ReproductionError(DlsIkError):
    """Raised for an unknown experiment, or for a number of samples it cannot run with."""


class Progress(Protocol):
    """Shows the progress of a run."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items; an item is finished when the next one is requested."""


class NoProgress:
    """Shows nothing."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items."""
        del title
        yield from items


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper."""

    what: str  # its name on the command line
    source: str  # author and year, table or figure
    title: str  # its subject, in a line
    tables: tuple[ResultTable, ...]
    run: Callable[[Reproduction, Progress], None]  # appends each row when it is finished
    plot: Callable[[Reproduction], Figure]  # of the data so far, also of an incomplete run
    samples: int  # default
    samples_are: str  # "pairs of start and goal", "points of the path"
    least_samples: int = 1
    needs_all: bool = False  # fewer samples are another experiment: no figure is comparable
    is_sampled: bool = False  # a mark is a difference beyond the sampling of both
    row_names: tuple[str, ...] = ()  # that can be run alone
    readings: tuple[str, ...] = ()

    @property
    def mark_means(self) -> str:
        """Return the meaning of the mark at a figure."""
        return "differs by more than chance" if self.is_sampled else "differs from the printed one"

    def about(self, report: Reproduction) -> str:
        """Describe the sample of a report in a line."""
        text = f"{report.samples} {self.samples_are}, seed {report.seed}"
        return text if report.complete else f"{text}; interrupted: only what was finished"


def reproduce(experiment: Experiment, samples: int | None = None, seed: int = 0) -> Reproduction:
    """Run an experiment to its end; ``begin`` and ``complete`` keep the rows of a part."""
    report = begin(experiment, samples, seed)
    complete(experiment, report, NoProgress())
    return report


def begin(
    experiment: Experiment,
    samples: int | None = None,
    seed: int = 0,
    only: Sequence[str] = (),
    reading: str = "",
) -> Reproduction:
    """Return an empty report, to be completed: it keeps the finished rows after Ctrl-C.

    Args:
        only: names of the rows to run; none: all.
        reading: to run alone, such as ``as published``.

    Raises:
        ReproductionError: If the experiment needs more samples, or does not have the rows or the
            reading.
    """
    count = experiment.samples if samples is None else samples
    if count < experiment.least_samples:
        raise ReproductionError(
            f"{experiment.what} needs {experiment.least_samples} or more samples "
            f"({experiment.samples_are}), not {count}"
        )
    rows = (*experiment.row_names, *plugin_names()) if experiment.row_names else ()
    _check_known(experiment, "row", only, rows)
    _check_known(experiment, "reading", [reading] if reading else [], experiment.readings)
    return Reproduction(experiment.what, count, seed, only=tuple(only), reading=reading)


def _check_known(each: Experiment, kind: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown and not known:
        raise ReproductionError(f"{each.what} has no {kind}s to choose from")
    if unknown:
        raise ReproductionError(
            f"{each.what} has no {kind} {listing(map(repr, unknown))}; its {kind}s are "
            f"{', '.join(known)}{did_you_mean(unknown[0], known, '; {}')}"
        )


def complete(experiment: Experiment, report: Reproduction, progress: Progress) -> None:
    """Run the experiment into the report."""
    experiment.run(report, progress)
    report.complete = True


ALL = "all"

# Module and name of each; modules are imported on demand. In the order of the report of all.
EXPERIMENTS = {
    "table-v": ("colome_torras_table_v", "TABLE_V"),
    "figure-1": ("colome_torras_figures", "FIGURE_1"),
    "figure-2": ("colome_torras_figures", "FIGURE_2"),
    "shapes": ("buss_kim_shapes", "SHAPES"),
    "figure-3": ("buss_kim_tracking", "FIGURE_3"),
    "section-5": ("buss_kim_tracking", "SECTION_5"),
    "figure-4": ("buss_kim_figure_4", "FIGURE_4"),
    "table-4-4": ("tabaczynski", "TABLE_4_4"),
    "section-4": ("tabaczynski_studies", "STUDIES"),
    "figures-1-3": ("deo_walker_damping", "FIGURES_1_3"),
    "figures-4-5": ("deo_walker", "FIGURES_4_5"),
    "figure-6": ("deo_walker", "FIGURE_6"),
    "figure-7": ("deo_walker", "FIGURE_7"),
    "weights": ("deo_walker_weights", "WEIGHTED"),
    "accelerations": ("deo_walker_accelerations", "ACCELERATIONS"),
    "dasl": ("matos", "DASL"),
}


def experiment(what: str) -> Experiment:
    """Return the experiment of that name.

    Raises:
        ReproductionError: If the name is unknown; the message lists the known names.
    """
    if what not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise ReproductionError(f"unknown experiment {what!r}; known are {known}")
    module, name = EXPERIMENTS[what]
    found: Experiment = getattr(import_module(f"dls_ik.reproduce.{module}"), name)
    return found
