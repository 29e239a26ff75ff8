# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Experiments that repeat published tables and figures, and compare our values with the paper's.

Each paper has one or more modules with its experiments; ``EXPERIMENTS`` lists all experiments. The
function ``run`` of an experiment fills the report in place: first settings and printed figures,
then each row as soon as it is finished, so that the report of an interrupted run has the finished
rows. Each call of a compiled kernel takes less than a second, because Python handles Ctrl-C only
between such calls.
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
from dls_ik.text import did_you_mean, listing, quoted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")
Row = dict[str, Any]


@dataclass
class Reproduction:
    """Report of an experiment: our figures, and the figures that the paper prints.

    A row is a dictionary of figures and names, by column key. The experiment fills the report while
    it runs, so that the report of an interrupted run has the finished rows.
    """

    what: str
    samples: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # measured rows
    printed: list[Row] = field(default_factory=list)  # rows of the paper, with the same keys
    notes: list[str] = field(default_factory=list)  # differences and their causes
    series: dict[str, Any] = field(default_factory=dict)  # data of pictures, rows of further tables
    complete: bool = False
    only: tuple[str, ...] = ()  # names of the rows to run; empty: all
    reading: str = ""  # name of the reading (interpretation of the paper) to run; empty: all
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  # result of count_figures


# Statistics

# A number of ours is marked as different from the printed one if the absolute z-score of the
# difference is larger; chance alone causes this for 1 of 370 independent numbers.
SIGMAS = 3.0
MAX_SCORE = 99.0  # |z| of figures that differ although their standard deviation is 0


def percent_score(
    first: float, count: int, second: float, second_count: int, rounding: float = 0.0
) -> float:
    """Return the z-score of the difference of two shares, first minus second.

    The z-score is the difference divided by its standard deviation, which is that of binomial
    samples.

    Args:
        first: First share [percent].
        count: Sample size of the first share.
        second: Second share [percent].
        second_count: Sample size of the second share.
        rounding: Maximum rounding error of the second share [percent].
    """
    shares = first / 100.0, second / 100.0
    pooled = (shares[0] * count + shares[1] * second_count) / (count + second_count)
    variance = pooled * (1.0 - pooled) * (1.0 / count + 1.0 / second_count)
    return _score(100.0 * (shares[0] - shares[1]), 1e4 * variance, rounding)


def mean_score(
    first: float, count: int, second: float, second_count: int, deviation: float, rounding: float
) -> float:
    """Return the z-score of the difference of two means, first minus second.

    Because the standard deviation of a small sample is uncertain, the difference is divided by its
    standard deviation to give Student's t, with the degrees of freedom of the first sample.
    Wallace's approximation then converts t to z.

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
    """Return a difference divided by its standard deviation.

    If the standard deviation is 0, return 0 for equal figures, and MAX_SCORE with the sign of the
    difference otherwise.

    Args:
        difference: Measured minus printed figure.
        variance: Variance of the difference without rounding.
        rounding: Maximum rounding error of the printed figure, which is uniformly distributed.
    """
    sigma = sqrt(variance + rounding * rounding / 3.0)
    if sigma > 0.0:
        return difference / sigma
    return math.copysign(MAX_SCORE, difference) if difference else 0.0


# Tables

EMPTY = "-"
MARK = "*"  # follows a value that differs from the printed one by more than chance
PRINTED_HEADING = "printed"  # heading of columns with the figures of the paper


class Column(NamedTuple):
    """Column of a table, and format of the values that the rows have for its key."""

    key: str
    heading: str  # includes the unit in brackets
    form: str = ""  # format specification of numbers
    is_name: bool = False  # whether its values identify a row, to find the printed row of our row
    is_text: bool = False  # whether it contains words instead of numbers
    is_spare: bool = False  # whether it is omitted on a narrow terminal
    is_plain: bool = False  # whether it is shown without the printed values
    is_compared: bool = True  # whether its figures count in the verdict of a report

    @property
    def is_left(self) -> bool:
        """Whether the column is aligned to the left."""
        return self.is_name or self.is_text


class Cell(NamedTuple):
    """Cell of a table: our value and the printed value, both as text."""

    measured: str
    printed: str  # empty if the paper prints no value
    differs: bool  # whether the values differ by more than the tolerance or chance


class WideTable(NamedTuple):
    """Table of text; our values and the printed values are in separate columns."""

    headings: list[str]
    is_left: list[bool]
    lines: list[list[str]]


@dataclass(frozen=True)
class ResultTable:
    """Table of selected rows of a report."""

    columns: tuple[Column, ...]
    title: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)  # rows with these values are selected
    is_verdict: bool = True  # whether the figures of this table count in the verdict of a report
    series: str = ""  # key of report.series with the rows; empty: report.rows

    def is_shown(self, report: Reproduction) -> bool:
        """Return whether the table is shown; a table is hidden if it can have no rows.

        A table of one reading (interpretation of the paper) is hidden if only another reading is
        run. A table of a series is hidden until the series has rows.
        """
        is_other = (
            bool(report.reading) and self.where.get("reading", report.reading) != report.reading
        )
        return not is_other and (not self.series or bool(self.pairs(report)))

    def lines(self, report: Reproduction) -> list[list[Cell]]:
        """Return the cells of each row: our rows first, then printed rows that we do not have."""
        return [[_cell(c, *pair) for c in self.columns] for pair in self.pairs(report)]

    def pairs(self, report: Reproduction) -> list[tuple[Row, Row]]:
        """Return (our row, printed row) for each line of the table, in the order of `lines`.

        If the paper prints no row for our row, the printed row is empty. If we have no row for a
        printed row, our row has only the cells of the columns that identify the row (`is_name`).
        """
        rows = report.series.get(self.series, []) if self.series else report.rows
        measured = [row for row in rows if self._has(row)]
        printed = {self._name(row): row for row in report.printed if self._may_have(row)}
        names = {self._name(row) for row in measured}
        is_whole = report.complete and not self.series
        is_all = is_whole and not report.only and not report.reading
        missing = [row for name, row in printed.items() if name not in names and is_all]
        pairs = [(row, printed.get(self._name(row), {})) for row in measured]
        pairs += [({c.key: row[c.key] for c in self.columns if c.is_name}, row) for row in missing]
        return pairs

    def wide(self, report: Reproduction) -> WideTable:
        """Return the table as text; a column that has printed values is followed by these."""
        lines = self.lines(report)
        doubled = [any(line[i].printed for line in lines) for i in range(len(self.columns))]
        wide = WideTable([], [], [[] for _ in lines])
        for i, (column, twice) in enumerate(zip(self.columns, doubled, strict=True)):
            wide.headings.extend([column.heading, PRINTED_HEADING] if twice else [column.heading])
            wide.is_left.extend([column.is_left, False] if twice else [column.is_left])
            for cells, line in zip(wide.lines, lines, strict=True):
                measured, printed = line[i].measured, line[i].printed or EMPTY
                cells.extend([measured, printed] if twice else [measured])
        return wide

    def _has(self, row: Row) -> bool:
        return all(row.get(key) == value for key, value in self.where.items())

    def _may_have(self, row: Row) -> bool:
        """Return whether a printed row is selected by `where`; keys that it lacks are ignored."""
        return all(row.get(key, value) == value for key, value in self.where.items())

    def _name(self, row: Row) -> tuple[Any, ...]:
        return tuple(row.get(column.key) for column in self.columns if column.is_name)


def marked(row: Row, differs: Sequence[str]) -> Row:
    """Return a copy of a row in which some figures are marked as different from the printed ones.

    `differs` has the column keys of these figures; if it is empty, `row` itself is returned.
    """
    return {**row, "differs": list(differs)} if differs else row


def not_run(report: Reproduction, row: Row, name: str, error: Exception) -> None:
    """Add a row without figures for a plug-in that failed, and a note with the reason.

    Args:
        report: Report to change.
        row: Names that identify the row.
        name: Name of the plug-in.
        error: Error that the plug-in raised.
    """
    report.rows.append({**row, "missing": str(error)})
    note = f"{name}: not run, because: {error}"
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


# Reasons why a number of ours may agree with the printed number; see ORIGINS

PREDICTED = "predicted"  # the printed number was not used to choose any setting of the run
FITTED = "fitted"  # a setting of the run was chosen so that the run gives the printed number
TAUTOLOGICAL = "tautological"  # a setting, such as a bound, forces the run to give this number
IN_WORDS = "in words"  # the paper states the result in words, not as a number
ORIGINS = (PREDICTED, FITTED, TAUTOLOGICAL, IN_WORDS)


class NotPredicted(NamedTuple):
    """Selection of numbers whose agreement with the paper proves nothing, and the reason.

    A number is selected by its row and its column.
    """

    origin: str  # FITTED or TAUTOLOGICAL
    reason: str
    # Conditions on a row: the value for each of these keys is one of the given values. Empty
    # selects all rows.
    rows: Mapping[str, tuple[Any, ...]] = {}
    columns: tuple[str, ...] = ()  # keys of the selected columns; empty selects all columns

    def has(self, row: Row, key: str) -> bool:
        """Return whether the number in column `key` of a row of our results is not predicted."""
        is_row = all(row.get(name) in values for name, values in self.rows.items())
        return is_row and (not self.columns or key in self.columns)


# Experiments


class ReproductionError(DlsIkError):
    """Exception for an unknown experiment, and for options with which an experiment cannot run."""


class Progress(Protocol):
    """Interface of a display of the progress of a run, such as a progress bar."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items, and show how many are finished.

        An item counts as finished when the caller requests the next one.

        Args:
            items: Items that the caller processes one after another.
            title: Text next to the display, such as the name of a method.
        """


class NoProgress:
    """Progress that shows nothing."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items; show nothing."""
        del title
        yield from items


@dataclass(frozen=True)
class Experiment:
    """Experiment that reproduces a table or figure of a paper."""

    what: str  # name on the command line
    source: str  # author and year, table or figure
    title: str  # one line about the subject
    tables: tuple[ResultTable, ...]
    run: Callable[[Reproduction, Progress], None]  # appends each row when it is finished
    plot: Callable[[Reproduction], Figure]  # draws a report, which may be incomplete
    samples: int  # default number of samples
    samples_are: str  # name of the samples in plural, such as "pairs of start and goal"
    least_samples: int = 1  # minimum number of samples
    needs_all: bool = False  # whether figures are compared only with the default number of samples
    is_sampled: bool = False  # whether a mark means a difference larger than the sampling errors
    row_names: tuple[str, ...] = ()  # names of rows that can be run alone
    readings: tuple[str, ...] = ()  # names of the readings (interpretations of the paper)
    not_predicted: tuple[NotPredicted, ...] = ()  # numbers that are not PREDICTED; all others are

    @property
    def mark_means(self) -> str:
        """Words that explain the mark ``*`` after a figure in a table of this experiment."""
        if self.is_sampled:
            return "differs from the printed figure by more than chance"
        return "differs from the printed figure"

    def is_comparable(self, report: Reproduction) -> bool:
        """Return whether enough samples were run to compare the figures of a report.

        With fewer samples than the default, chance hides most differences of a sampled experiment.
        """
        if self.needs_all:
            return report.samples == self.samples
        return not self.is_sampled or report.samples >= self.samples

    def warning(self, report: Reproduction) -> str:
        """Return a sentence about figures that cannot be compared; empty if they can."""
        if self.is_comparable(report):
            return ""
        if self.needs_all:
            reason = "evaluate another part of the experiment, so that no figure is marked"
        else:
            reason = "are few: nearly any figure agrees with the printed one within chance"
        return (
            f"{report.samples} {self.samples_are} {reason}. Figures are comparable with "
            f"{self.samples} (the default)"
        )

    def origin(self, row: Row, column: Column) -> str:
        """Return the reason why a number of ours may agree with the paper: one of ORIGINS.

        The reasons are "predicted", "fitted", "tautological" and "in words"; see the constants
        PREDICTED, FITTED, TAUTOLOGICAL and IN_WORDS.

        Args:
            row: Our row that contains the number.
            column: Column that contains the number.
        """
        if column.is_text:
            return IN_WORDS
        found = (each.origin for each in self.not_predicted if each.has(row, column.key))
        return next(found, PREDICTED)

    def about(self, report: Reproduction) -> str:
        """Return one line about a report: number and kind of samples, seed, any interruption."""
        text = f"{report.samples} {self.samples_are}, seed {report.seed}"
        return text if report.complete else f"{text}; interrupted: only finished rows are listed"


def reproduce(experiment: Experiment, samples: int | None = None, seed: int = 0) -> Reproduction:
    """Run an experiment, and return its report.

    An exception, such as Ctrl-C, loses the finished rows; to keep them, use :func:`begin` and
    :func:`complete` instead.

    Args:
        experiment: Experiment to run.
        samples: Number of samples; None for the default of the experiment.
        seed: Seed of the random numbers.
    """
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
    """Check the options of a run, and return an empty report, which :func:`complete` fills.

    If Ctrl-C interrupts :func:`complete`, the report has the rows finished so far.

    Args:
        experiment: Experiment to run.
        samples: Number of samples; None for the default of the experiment.
        seed: Seed of the random numbers.
        only: Names of the rows to run; empty for all.
        reading: Reading (interpretation of the paper) to run, such as ``as published``; empty for
            all.

    Raises:
        ReproductionError: If the experiment needs more samples than `samples`, or has no rows of
            the given names or no reading of the given name.
    """
    count = experiment.samples if samples is None else samples
    if count < experiment.least_samples:
        raise ReproductionError(
            f"{experiment.what} needs {experiment.least_samples} or more samples "
            f"({experiment.samples_are}); got {count}"
        )
    rows = (*experiment.row_names, *plugin_names()) if experiment.row_names else ()
    _check_known(experiment, "row", only, rows)
    _check_known(experiment, "reading", [reading] if reading else [], experiment.readings)
    return Reproduction(experiment.what, count, seed, only=tuple(only), reading=reading)


def _check_known(each: Experiment, kind: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown and not known:
        raise ReproductionError(f"{each.what} has no {kind}s to choose from; omit the option")
    if unknown:
        raise ReproductionError(
            f"{each.what} has no {kind} {listing(map(repr, unknown))}; valid {kind}s are "
            f"{', '.join(known)}{did_you_mean(unknown[0], known, '; {}')}"
        )


def complete(experiment: Experiment, report: Reproduction, progress: Progress) -> None:
    """Run an experiment, and add its results to a report.

    If an exception interrupts the run, the report has the rows finished so far.

    Args:
        experiment: Experiment to run.
        report: Report that :func:`begin` returned.
        progress: Display of the progress.
    """
    try:
        experiment.run(report, progress)
        report.complete = True
    finally:
        report.counts = count_figures(experiment, report)


def count_figures(experiment: Experiment, report: Reproduction) -> dict[str, dict[str, int]]:
    """Count the printed results that are compared with ours, and how many of them agree.

    The results are counted separately for each of ORIGINS (see :meth:`Experiment.origin`). Not
    counted are tables with ``is_verdict=False``, columns with ``is_compared=False``, such as times,
    and numbers of ours where the paper prints words. All counts are 0 if the report has too few
    samples (:meth:`Experiment.is_comparable`).

    Args:
        experiment: Experiment of the report.
        report: Report to count; it may be incomplete.

    Returns:
        Dictionary with the counts ``agree`` and ``compared`` for each of ORIGINS.
    """
    counts = {origin: {"agree": 0, "compared": 0} for origin in ORIGINS}
    if not experiment.is_comparable(report):
        return counts
    for table in (each for each in experiment.tables if each.is_verdict):
        for (ours, printed), line in zip(table.pairs(report), table.lines(report), strict=True):
            for column, cell in zip(table.columns, line, strict=True):
                if not (cell.printed and column.is_compared) or cell.measured == EMPTY:
                    continue
                is_word = isinstance(printed.get(column.key), str)
                if is_word and not isinstance(ours.get(column.key), str | int):
                    continue
                count = counts[experiment.origin(ours, column)]
                count["compared"] += 1
                count["agree"] += not cell.differs
    return counts


ALL_EXPERIMENTS = "all"

# Module and variable name of each experiment, in the order of the report. The modules are imported
# when an experiment is requested.
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
    """Return the experiment of a name; `what` is a key of EXPERIMENTS.

    Raises:
        ReproductionError: If the name is unknown; the message suggests similar names and lists the
            known names.
    """
    if what not in EXPERIMENTS:
        hint = did_you_mean(what, [*EXPERIMENTS, ALL_EXPERIMENTS], "{} ")
        known = ", ".join([*EXPERIMENTS, ALL_EXPERIMENTS])
        raise ReproductionError(f"unknown experiment {quoted(what)}; {hint}valid names are {known}")
    module, name = EXPERIMENTS[what]
    found: Experiment = getattr(import_module(f"dls_ik.reproduce.{module}"), name)
    return found
