"""Tables and progress bars that read well in a narrow terminal and in a file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from types import TracebackType
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dls_ik.cli.exits import held
from dls_ik.text import escape

if TYPE_CHECKING:
    from dls_ik.reproduce.experiment import Item

LEAST = 20  # characters of a value, however narrow the terminal
WIDTH = 110  # characters where it is no terminal
PATIENCE = 2.0  # [s] before a bar appears

Row = Sequence[str | Text]


def stdout_console() -> Console:
    """Where tables go: as wide as the terminal or as COLUMNS says, wide enough in a file."""
    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, markup=False, emoji=False, width=WIDTH)


def empty_table(title: str | Text = "") -> Table:
    """A table without frames, one line below its headings."""
    shown = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        title_justify="left",
    )
    shown.title = Text(title) if isinstance(title, str) and title else title or None
    return shown


def print_table(
    console: Console, headings: Sequence[str], rows: Sequence[Row], left: Sequence[int] = (0,)
) -> None:
    """Print rows below headings; where they do not fit, each row as a block of lines.

    Args:
        left: columns of words; the others are of figures, and stand to the right.
    """
    shown = empty_table()
    for i, heading in enumerate(headings):
        justify = "left" if i in left else "right"
        shown.add_column(Text(heading), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        shown.add_row(*(_text(cell) for cell in row))
    if width_of(console, shown) <= console.width:
        console.print(shown)
    else:
        for row in rows:
            console.print(_text(row[0]), soft_wrap=True)
            print_pairs(
                console,
                [(name, str(cell)) for name, cell in zip(headings[1:], row[1:], strict=True)],
                indent=2,
            )


def print_pairs(console: Console, pairs: Sequence[tuple[str, str]], indent: int = 0) -> None:
    """Print names and values one below the other; long values go on below themselves."""
    room = indent + max((len(name) for name, _ in pairs), default=0) + 2
    for name, value in pairs:
        lines = wrap(
            escape(value, keep="\n"), max(console.width - room, LEAST), break_on_hyphens=False
        ) or [""]
        shown = Text((" " * indent + name).ljust(room), style="dim")
        shown.append(f"\n{' ' * room}".join(lines), style="not dim")
        console.print(shown, soft_wrap=True)


def print_heading(console: Console, words: str) -> None:
    """Print what comes next, after an empty line."""
    console.print()
    console.print(Text(words, style="bold"))


def print_note(console: Console, words: str, style: str = "dim") -> None:
    """Print a sentence in as many lines as it takes."""
    lines = wrap(escape(words, keep="\n"), max(console.width, LEAST), break_on_hyphens=False)
    console.print(Text("\n".join(lines), style=style), soft_wrap=True)


def width_of(console: Console, shown: Table) -> int:
    """Characters that a table takes where nothing is broken."""
    return Measurement.get(console, console.options.update(width=10**4), shown).maximum


def _text(cell: str | Text) -> Text:
    return Text(escape(cell, keep="\n")) if isinstance(cell, str) else cell


def figure(value: float, digits: int = 3) -> str:
    """A number with so many digits, never -0."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def limit(value: float) -> str:
    """A limit as figures of one width, or that there is none."""
    return f"{value:.4f}" if math.isfinite(value) else "none"


class Bars:
    """Shows how far a run has come. Use it in a ``with``, so that the terminal is left tidy."""

    def __init__(self, console: Console, patience: float = PATIENCE) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._patience = patience
        self._begin = time.monotonic()

    def __enter__(self) -> Bars:
        """Start to count the seconds."""
        self._begin = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bars away."""
        self._bars.stop()

    def counter(self, title: str) -> Callable[[int, int], None]:
        """A function to be told how many of how many are done; its bar appears as that of track."""
        task = self._bars.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            self._bars.update(task, completed=done, total=total)
            self._show_in_time()

        return show

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """The items one by one; the bar appears once the run has lasted two seconds."""
        task = self._bars.add_task(title, total=len(items))
        try:
            for item in items:
                self._show_in_time()
                yield item
                self._bars.advance(task)
        finally:
            self._bars.remove_task(task)

    def _show_in_time(self) -> None:
        """Begin to show the bars once the run has lasted two seconds."""
        if time.monotonic() - self._begin > self._patience and not self._bars.live.is_started:
            with held():  # rich cannot stop what is half started
                self._bars.start()
