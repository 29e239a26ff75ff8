"""Reports of experiments: rows measured and printed, and the tables that show them."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

Row = dict[str, Any]


@dataclass
class Reproduction:
    """One published table or figure, measured again. An experiment fills it in as it goes.

    A run that is interrupted leaves the rows that were finished.
    """

    what: str
    samples: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # measured
    printed: list[Row] = field(default_factory=list)  # in the paper, with the same keys
    notes: list[str] = field(default_factory=list)  # what differs, and why
    series: dict[str, Any] = field(default_factory=dict)  # what the picture draws
    complete: bool = False

    def to_json(self) -> str:
        """The whole as JSON; a number that is not finite is null."""
        return json.dumps(_plain(asdict(self)), indent=2, allow_nan=False)


def reports_json(what: str, reports: list[Reproduction]) -> str:
    """Several reports as one JSON object."""
    whole = {"what": what, "reports": [asdict(report) for report in reports]}
    return json.dumps(_plain(whole), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    """The value in the types that JSON has."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# Chance

SIGMAS = 3.0  # of the difference; of a hundred figures less than one goes beyond it by chance


def percents_differ(first: float, count: int, second: float, second_count: int) -> bool:
    """Whether two shares [percent] of so many tries differ by more than their binomial spread."""
    shares = first / 100.0, second / 100.0
    pooled = (shares[0] * count + shares[1] * second_count) / (count + second_count)
    sigma = sqrt(pooled * (1.0 - pooled) * (1.0 / count + 1.0 / second_count))
    return abs(shares[0] - shares[1]) > SIGMAS * sigma


def means_differ(
    first: float, count: int, second: float, second_count: int, deviation: float, rounding: float
) -> bool:
    """Whether two means differ by more than their spread.

    Args:
        deviation: standard deviation of one try, the same for both.
        rounding: by which a printed mean may be off.
    """
    if min(count, second_count) < 2:
        return False
    sigma = deviation * sqrt(1.0 / count + 1.0 / second_count)
    return abs(first - second) > SIGMAS * sigma + rounding


# Tables

NOTHING = "-"
MARK = "*"  # behind a value that differs from the printed one by more than chance
PRINTED = "printed"  # the heading of what is in the paper
LEGEND = f"{PRINTED}: the figure of the paper, left of it ours; {MARK} differs by more than chance."


class Column(NamedTuple):
    """A heading over the values of one key."""

    key: str
    heading: str  # with the unit in brackets
    form: str = ""  # a format specification
    is_name: bool = False  # tells which row it is: printed and measured rows meet by it
    is_text: bool = False  # words, not a figure

    @property
    def is_left(self) -> bool:
        """Whether it is aligned as words are."""
        return self.is_name or self.is_text


class Cell(NamedTuple):
    """What stands in a place of a table."""

    measured: str
    printed: str  # empty where the paper says nothing
    differs: bool


@dataclass(frozen=True)
class Table:
    """A choice of a report's rows. Several tables may share the rows of one report."""

    columns: tuple[Column, ...]
    title: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)  # key: value that its rows have
    series: str = ""  # its rows are report.series[this], not report.rows

    def lines(self, report: Reproduction) -> list[list[Cell]]:
        """The cells of every measured row, then of rows that are only printed."""
        rows = report.series.get(self.series, []) if self.series else report.rows
        measured = [row for row in rows if self._has(row)]
        printed = {self._name(row): row for row in report.printed if self._has(row)}
        names = {self._name(row) for row in measured}
        is_whole = report.complete and not self.series
        missing = [row for name, row in printed.items() if name not in names and is_whole]
        pairs = [(row, printed.get(self._name(row), {})) for row in measured]
        pairs += [({c.key: row[c.key] for c in self.columns if c.is_name}, row) for row in missing]
        return [[_cell(c, *pair) for c in self.columns] for pair in pairs]

    def _has(self, row: Row) -> bool:
        return all(row.get(key) == value for key, value in self.where.items())

    def _name(self, row: Row) -> tuple[Any, ...]:
        return tuple(row.get(column.key) for column in self.columns if column.is_name)


def wide_lines(table: Table, report: Reproduction) -> tuple[list[str], list[bool], list[list[str]]]:
    """Headings, which columns are text, and cells; printed figures in columns of their own."""
    lines = table.lines(report)
    doubled = [any(line[i].printed for line in lines) for i in range(len(table.columns))]
    headings: list[str] = []
    is_text: list[bool] = []
    for column, twice in zip(table.columns, doubled, strict=True):
        headings += [column.heading, PRINTED] if twice else [column.heading]
        is_text += [column.is_left, False] if twice else [column.is_left]
    return headings, is_text, [_wide(line, doubled) for line in lines]


def _wide(line: Sequence[Cell], doubled: Sequence[bool]) -> list[str]:
    cells: list[str] = []
    for cell, twice in zip(line, doubled, strict=True):
        cells += [cell.measured, cell.printed or NOTHING] if twice else [cell.measured]
    return cells


def differing(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows that differ from the paper by more than chance, by the key in which they do."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for key in row.get("differs", ()):
            found.setdefault(key, []).append(row)
    return found


def _cell(column: Column, measured: Row, printed: Row) -> Cell:
    differs = column.key in measured.get("differs", ())
    mark = MARK if differs else ""
    beside = "" if column.is_name else _text(column, printed.get(column.key))
    return Cell((_text(column, measured.get(column.key)) or NOTHING) + mark, beside, differs)


def _text(column: Column, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return format(value, column.form) if not isinstance(value, str) else value
