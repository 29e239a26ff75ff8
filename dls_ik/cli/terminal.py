# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tables and progress bars that are readable in a narrow terminal and in a file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dls_ik.cli.output import defer_sigint
from dls_ik.text import escape

if TYPE_CHECKING:
    from dls_ik.reproduce.experiment import Item

MIN_VALUE_WIDTH = 20  # [characters] even in a narrower terminal
FILE_WIDTH = 110  # [characters]
BAR_DELAY = 2.0  # delay of the progress display [s]


def stdout_console() -> Console:
    """Return a console with the width of the terminal or COLUMNS, or `FILE_WIDTH` for a file."""
    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, markup=False, emoji=False, width=FILE_WIDTH)


def empty_table(title: str = "") -> Table:
    """Return a table without frame, with a line below its headings."""
    return Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        title=Text(title) if title else None,
        title_justify="left",
    )


def print_table(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (0,),
) -> None:
    """Print a table; if it is too wide, print each row as a block of lines.

    Args:
        console: Console.
        headings: Headings of the columns.
        rows: Cells of the rows.
        left: Indices of text columns; other columns are numbers, aligned to the right.
    """
    table = _table_of(headings, rows, left)
    if table_width(console, table) <= console.width:
        console.print(table)
        return
    for row in rows:
        console.print(Text(escape(row[0], keep="\n")), soft_wrap=True)
        print_pairs(console, list(zip(headings[1:], row[1:], strict=True)), indent=2)


def _table_of(headings: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> Table:
    """Return a table with headings and rows."""
    table = empty_table()
    for i, heading in enumerate(headings):
        justify = "left" if i in left else "right"
        table.add_column(Text(heading), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(escape(cell, keep="\n")) for cell in row))
    return table


def print_method_table(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (0,),
) -> None:
    """Print rows that start with a method's name; its long name is in a column or below."""
    from dls_ik.solver.method import long_name

    names = [(row[0], long_name(row[0])) for row in rows]
    wide = [[*pair, *row[1:]] for pair, row in zip(names, rows, strict=True)]
    wide_headings = [headings[0], "name", *headings[1:]]
    wide_left = [0, 1, *(i + 1 for i in left if i > 0)]
    if table_width(console, _table_of(wide_headings, wide, wide_left)) <= console.width:
        print_table(console, wide_headings, wide, wide_left)
        return
    print_table(console, headings, rows, left)
    console.print()
    print_pairs(console, names)


def print_pairs(console: Console, pairs: Sequence[tuple[str, str]], indent: int = 0) -> None:
    """Print names and values, one pair per line; long values are wrapped."""
    column = indent + max((len(name) for name, _ in pairs), default=0) + 2
    for name, value in pairs:
        lines = _wrapped(value, console.width - column) or [""]
        line = Text((" " * indent + name).ljust(column), style="dim")
        line.append(f"\n{' ' * column}".join(lines), style="not dim")
        console.print(line, soft_wrap=True)


def print_heading(console: Console, words: str) -> None:
    """Print a heading after an empty line."""
    console.print()
    console.print(Text(words, style="bold"))


def print_note(console: Console, words: str, style: str = "dim") -> None:
    """Print a wrapped text."""
    lines = _wrapped(words, console.width)
    console.print(Text("\n".join(lines), style=style), soft_wrap=True)


def _wrapped(words: str, width: int) -> list[str]:
    """Return escaped text, wrapped to a width."""
    return wrap(escape(words, keep="\n"), max(width, MIN_VALUE_WIDTH), break_on_hyphens=False)


def table_width(console: Console, table: Table) -> int:
    """Return the width of a table without line breaks [characters]."""
    return Measurement.get(console, console.options.update(width=10**4), table).maximum


def figure(value: float, digits: int = 3) -> str:
    """Return a number with a number of decimals, never -0."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def limit(value: float) -> str:
    """Return a joint limit as text; "none" if it is infinite."""
    return f"{value:.4f}" if math.isfinite(value) else "none"


class ProgressBars:
    """Progress bars on stderr, shown only in a terminal and after `BAR_DELAY`.

    A ``with`` statement restores the terminal.
    """

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._begin = time.monotonic()

    def __enter__(self) -> ProgressBars:
        """Start the delay, and return the bars."""
        self._begin = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bars."""
        self._bars.stop()

    def counter(self, title: str) -> Callable[[int, int], None]:
        """Return a function to call with the numbers of finished and of all items."""
        task = self._bars.add_task(title, total=None)

        def update(done: int, total: int) -> None:
            self._bars.update(task, completed=done, total=total)
            self._show_after_delay()

        return update

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items, and show a bar that counts them."""
        task = self._bars.add_task(title, total=len(items))
        try:
            for item in items:
                self._show_after_delay()
                yield item
                self._bars.advance(task)
        finally:
            self._bars.remove_task(task)

    def _show_after_delay(self) -> None:
        """Show the bars once the delay is over."""
        if time.monotonic() - self._begin > BAR_DELAY and not self._bars.live.is_started:
            with defer_sigint():  # rich cannot stop a display that is only half started
                self._bars.start()
