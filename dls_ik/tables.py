# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Print tables, name-value pairs and notes so that they fit into a narrow terminal or a file."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dls_ik.text import escape

# [characters] Text is wrapped to at least this width, even if the terminal is narrower.
MIN_VALUE_WIDTH = 20


def empty_table(title: str = "") -> Table:
    """Return a rich table without rows and without a frame; a line separates headings and rows."""
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
    """Print a table; if it is wider than the console, print each row as a block of lines.

    Args:
        console: Console to print to.
        headings: Headings of the columns.
        rows: Cells of the rows.
        left: Indices of the columns aligned to the left; other columns are aligned to the right.
    """
    table = table_of(headings, rows, left)
    if table_width(console, table) <= console.width:
        console.print(table)
        return
    for row in rows:
        console.print(Text(escape(row[0], keep="\n")), soft_wrap=True)
        print_pairs(console, list(zip(headings[1:], row[1:], strict=True)), indent=2)


def table_of(headings: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> Table:
    """Return a table of the library rich with headings and rows of cells.

    The columns with the indices `left` are aligned to the left, other columns to the right.
    """
    table = empty_table()
    for i, heading in enumerate(headings):
        justify = "left" if i in left else "right"
        table.add_column(Text(heading), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(escape(cell, keep="\n")) for cell in row))
    return table


def print_pairs(console: Console, pairs: Sequence[tuple[str, str]], indent: int = 0) -> None:
    """Print names and values in two columns, one pair per line; wrap long values in their column.

    Args:
        console: Console to print to.
        pairs: (name, value) of each line.
        indent: Number of spaces before each name.
    """
    column = indent + max((len(name) for name, _ in pairs), default=0) + 2
    for name, value in pairs:
        lines = _wrapped(value, console.width - column) or [""]
        line = Text((" " * indent + name).ljust(column), style="dim")
        line.append(f"\n{' ' * column}".join(lines), style="not dim")
        console.print(line, soft_wrap=True)


def print_heading(console: Console, words: str) -> None:
    """Print an empty line and a bold heading."""
    console.print()
    console.print(Text(words, style="bold"))


def print_note(console: Console, words: str, style: str = "dim") -> None:
    """Print a text in a style of rich, such as "dim" or "bold", wrapped to the console's width."""
    lines = _wrapped(words, console.width)
    console.print(Text("\n".join(lines), style=style), soft_wrap=True)


def _wrapped(words: str, width: int) -> list[str]:
    """Wrap a text to a width [characters]; return its lines, with control characters escaped."""
    return wrap(escape(words, keep="\n"), max(width, MIN_VALUE_WIDTH), break_on_hyphens=False)


def table_width(console: Console, table: Table) -> int:
    """Return the width [characters] of a table whose cells are printed without line breaks."""
    return Measurement.get(console, console.options.update(width=10**4), table).maximum
