# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Published experiments: execution, registry, and tables next to the printed figures.

The module of a paper holds its experiments, and ``EXPERIMENTS`` lists them. ``run`` fills the
report in place: settings and printed figures first, then each row as soon as it is finished, so an
interrupted run keeps its finished rows. Kernel calls take less than a second, because Ctrl-C is
noticed only between them.
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
    """Published table or figure, measured again.

    The experiment fills the report while it runs, so an interrupted run keeps the finished rows.
    """

    what: str
    samples: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # measured rows
    printed: list[Row] = field(default_factory=list)  # rows of the paper, with the same keys
    notes: list[str] = field(default_factory=list)  # differences and their causes
    series: dict[str, Any] = field(default_factory=dict)  # data of the picture
    complete: bool = False
    only: tuple[str, ...] = ()  # names of the rows to run; empty: all
    reading: str = ""  # name of the reading to run; empty: all


# Statistics

SIGMAS = 3.0  # standard deviations; a difference exceeds them by chance in one figure of 370
MAX_SCORE = 99.0  # z-score of different shares whose deviation is 0


def percent_score(
    first: float, count: int, second: float, second_count: int, rounding: float = 0.0
) -> float:
    """Return the difference of two shares [percent] divided by its binomial standard deviation.

    Args:
        first: First share [percent].
        count: Sample size of the first share.
        second: Second share [percent].
        second_count: Sample size of the second share.
        rounding: Maximum rounding error of the second share.
    """
    shares = first / 100.0, second / 100.0
    pooled = (shares[0] * count + shares[1] * second_count) / (count + second_count)
    variance = pooled * (1.0 - pooled) * (1.0 / count + 1.0 / second_count)
    return _score(100.0 * (shares[0] - shares[1]), 1e4 * variance, rounding)


def mean_score(
    first: float, count: int, second: float, second_count: int, deviation: float, rounding: float
) -> float:
    """Return the z-score of the difference of two means.

    Student's t of the first sample is converted to a normal score by Wallace's approximation,
    because the standard deviation of a small sample is itself uncertain.

    Args:
        first: First mean.
        count: Sample size of the first mean.
        second: Second mean.
        second_count: Sample size of the second mean.
        deviation: Standard deviation of a value in the first sample, assumed for both samples.
        rounding: Maximum rounding error of the second mean.
    """
    variance = deviation * deviation * (1.0 / count + 1.0 / second_count)
    t, n = _score(first - second, variance, rounding), max(1, count - 1)
    z = (8.0 * n + 1.0) / (8.0 * n + 3.0) * sqrt(n * math.log1p(t * t / n))
    return math.copysign(z, t)


def _score(difference: float, variance: float, rounding: float) -> float:
    """Return the z-score, for a uniform rounding error of the printed figure."""
    sigma = sqrt(variance + rounding * rounding / 3.0)
    if sigma > 0.0:
        return difference / sigma
    return math.copysign(MAX_SCORE, difference) if difference else 0.0


# Tables

EMPTY = "-"
MARK = "*"  # follows a value that differs from the printed one by more than chance
PRINTED = "printed"  # heading of the columns with the figures of the paper


class Column(NamedTuple):
    """Column with the values of one key."""

    key: str
    heading: str  # includes the unit in brackets
    form: str = ""  # format specification
    is_name: bool = False  # identifies the row in both the measured and the printed rows
    is_text: bool = False  # contains words instead of a figure
    is_spare: bool = False  # omitted on a narrow terminal
    is_plain: bool = False  # has no printed figure next to it
    is_compared: bool = True  # is compared with the printed figure

    @property
    def is_left(self) -> bool:
        """Whether the column is aligned to the left."""
        return self.is_name or self.is_text


class Cell(NamedTuple):
    """Measured value as text, with the printed value."""

    measured: str
    printed: str  # empty if the paper prints no figure
    differs: bool


class WideTable(NamedTuple):
    """Table as text, with the printed figures in separate columns."""

    headings: list[str]
    is_left: list[bool]
    lines: list[list[str]]


@dataclass(frozen=True)
class ResultTable:
    """Selection of a report's rows. Several tables may share the rows of one report."""

    columns: tuple[Column, ...]
    title: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)  # keys and values that its rows have
    is_verdict: bool = True  # its figures count in the verdict of a report
    series: str = ""  # key of report.series with its rows; empty: report.rows

    def lines(self, report: Reproduction) -> list[list[Cell]]:
        """Return the cells of all measured rows, then those of rows that are only printed."""
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
        """Return whether a printed row belongs to the table; it may lack keys of measured rows."""
        return all(row.get(key, value) == value for key, value in self.where.items())

    def _name(self, row: Row) -> tuple[Any, ...]:
        return tuple(row.get(column.key) for column in self.columns if column.is_name)


def marked(row: Row, differs: Sequence[str]) -> Row:
    """Return a row with the keys of the figures that differ from the printed ones."""
    return {**row, "differs": list(differs)} if differs else row


def not_run(report: Reproduction, row: Row, name: str, error: Exception) -> None:
    """Add the row of a plug-in that failed: names only; the notes have the reason."""
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
    """An unknown experiment, or options with which an experiment cannot run."""


class Progress(Protocol):
    """Display of a run's progress."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items; an item is finished when the next one is requested."""


class NoProgress:
    """Progress that shows nothing."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items."""
        del title
        yield from items


@dataclass(frozen=True)
class Experiment:
    """Table or figure of a paper."""

    what: str  # name on the command line
    source: str  # author and year, table or figure
    title: str  # subject, in a line
    tables: tuple[ResultTable, ...]
    run: Callable[[Reproduction, Progress], None]  # appends each row when it is finished
    plot: Callable[[Reproduction], Figure]  # draws the data so far, also of an incomplete run
    samples: int  # default number of samples
    samples_are: str  # such as "pairs of start and goal", "points of the path"
    least_samples: int = 1
    needs_all: bool = False  # fewer samples make no figure comparable
    is_sampled: bool = False  # a mark means a difference beyond the sampling error of both
    row_names: tuple[str, ...] = ()  # rows that can be run alone
    readings: tuple[str, ...] = ()

    @property
    def mark_means(self) -> str:
        """Meaning of the mark at a figure."""
        return "differs by more than chance" if self.is_sampled else "differs from the printed one"

    def about(self, report: Reproduction) -> str:
        """Describe the sample of a report in a line."""
        text = f"{report.samples} {self.samples_are}, seed {report.seed}"
        return text if report.complete else f"{text}; interrupted: only what was finished"


def reproduce(experiment: Experiment, samples: int | None = None, seed: int = 0) -> Reproduction:
    """Run an experiment to its end; to keep partial results, use ``begin`` and ``complete``."""
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
    """Return an empty report for :func:`complete`; after Ctrl-C the report has the finished rows.

    Args:
        experiment: Experiment to run.
        samples: Number of samples; None for the default.
        seed: Seed of the random numbers.
        only: Names of the rows to run; empty for all.
        reading: The only reading to run, such as ``as published``; empty for all.

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
    """Run the experiment, and fill the report."""
    experiment.run(report, progress)
    report.complete = True


ALL = "all"

# Module and name of each experiment, in the order of the report. Modules are imported on demand.
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
