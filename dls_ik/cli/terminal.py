# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Print to a terminal or a file: consoles, tables of solver methods, and progress bars."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from dls_ik.cli.output import defer_sigint
from dls_ik.tables import print_pairs, print_table, table_of, table_width

if TYPE_CHECKING:
    from dls_ik.reproduce.experiment import Item

LINE_PERIOD = 0.1  # [s] period of updates of a status line
FILE_WIDTH = 110  # [characters] width of output that goes to a file
BAR_DELAY = 2.0  # [s] time after which progress bars are shown
HOUR, DAY = 3600.0, 86400.0  # [s]
ESTIMATE_AFTER = 8  # number of finished chunks after which the remaining time is estimated
MIN_REMAINING = 60.0  # [s] the remaining time is printed if it is longer


def stdout_console() -> Console:
    """Return a rich console for stdout.

    The width is that of the terminal, the environment variable COLUMNS, or `FILE_WIDTH` for a file.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, markup=False, emoji=False, width=FILE_WIDTH)


def print_method_table(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (0,),
) -> None:
    """Print a table with a row for each solver method, and the long names of the methods.

    If the console is wide enough, the long names are an additional second column; otherwise they
    are printed as a list below the table.

    Args:
        console: Console to print to.
        headings: Headings of the columns.
        rows: Cells of each row; the first cell is the short name of a method.
        left: Indices of the columns aligned to the left.
    """
    from dls_ik.solver.method import long_name

    names = [(row[0], long_name(row[0])) for row in rows]
    wide = [[*pair, *row[1:]] for pair, row in zip(names, rows, strict=True)]
    wide_headings = [headings[0], "name", *headings[1:]]
    wide_left = [0, 1, *(i + 1 for i in left if i > 0)]
    if table_width(console, table_of(wide_headings, wide, wide_left)) <= console.width:
        print_table(console, wide_headings, wide, wide_left)
        return
    print_table(console, headings, rows, left)
    console.print()
    print_pairs(console, names)


def figure(value: float, digits: int = 3) -> str:
    """Return a number as text with `digits` decimals; -0 is shown as 0."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def limit(value: float) -> str:
    """Return a joint limit as text; an infinite limit is "none"."""
    return f"{value:.4f}" if math.isfinite(value) else "none"


@contextmanager
def status_line(console: Console) -> Iterator[Callable[[Callable[[], Text]], None]]:
    """Yield a function that shows a text in a line at the end of a terminal.

    The function may be called often: it computes and shows the text once per `LINE_PERIOD`.
    """
    live = Live(console=console, transient=True, auto_refresh=False)
    last = time.monotonic()

    def show(make_text: Callable[[], Text]) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_PERIOD:
            last = now
            line = make_text()
            line.truncate(console.width)
            live.update(line, refresh=True)

    try:
        with defer_sigint():  # rich cannot stop a display that is only half started
            live.start()
        yield show
    finally:
        live.stop()


class ProgressBars:
    """Progress bars on stderr, shown only in a terminal and only after `BAR_DELAY` seconds.

    To be used in a ``with`` statement, which removes the bars and restores the terminal.
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
        """Start the delay after which bars are shown."""
        self._begin = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bars from the terminal."""
        self._bars.stop()

    def counter(self, title: str) -> Callable[[int, int], None]:
        """Add a bar; return a function that sets it to the counts of finished and all items."""
        task = self._bars.add_task(title, total=None)

        def update(done: int, total: int) -> None:
            self._bars.update(task, completed=done, total=total)
            self._show_after_delay()

        return update

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items one by one, and show a bar that counts them."""
        task = self._bars.add_task(title, total=len(items))
        try:
            for item in items:
                self._show_after_delay()
                yield item
                self._bars.advance(task)
        finally:
            self._bars.remove_task(task)

    def _show_after_delay(self) -> None:
        """Show the bars if `BAR_DELAY` seconds have passed and the bars are not shown yet."""
        if time.monotonic() - self._begin > BAR_DELAY and not self._bars.live.is_started:
            with defer_sigint():  # rich cannot stop a display that is only half started
                self._bars.start()


class ChunkProgress:
    """Progress display on stderr: size of the work, a bar, and an estimate of the remaining time.

    Args:
        about: Size of the work, for the first line.
        bars: Bars to which the bar of the chunks is added.
    """

    def __init__(self, about: str, bars: ProgressBars) -> None:
        self.done = 0
        self._about, self._bar = about, bars.counter("chunks")
        self._first: int | None = None  # number of chunks finished before the start
        self._begin = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Display that `done` of `total` chunks are finished."""
        self.done = done
        self._bar(done, total)
        if self._first is None:
            self._first, self._begin = done, time.monotonic()
            kept = f", {done} of them finished earlier" if done else ""
            chunks = f"{total} chunk{'s' if total > 1 else ''}{kept}"
            click.echo(f"{self._about} in {chunks}", err=True)
        elif done - self._first == ESTIMATE_AFTER:
            left = (time.monotonic() - self._begin) / ESTIMATE_AFTER * (total - done)
            if left > MIN_REMAINING:
                click.echo(f"approximately {_duration(left)} remaining", err=True)


def _duration(seconds: float) -> str:
    """Return a duration [s] as text in minutes, hours or days."""
    if seconds >= 2.0 * DAY:
        return f"{seconds / DAY:.1f} days"
    return f"{seconds / HOUR:.1f} h" if seconds >= 2.0 * HOUR else f"{seconds / 60.0:.0f} min"
