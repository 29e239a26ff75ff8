"""Small tables in a terminal of any width: rows, or a block for each row where it is narrow."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


def show_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of cells below headings, the first column to the left, the others to the right.

    Headings break at their spaces. Where even so a row is too wide, each becomes a block of lines
    ``heading  cell``.
    """
    table = _table(headings, rows)
    wanted = Measurement.get(console, console.options.update(width=10**4), table).maximum
    if wanted <= console.width:
        console.print(table)
        return
    for k, row in enumerate(rows):
        if k:
            console.print()
        console.print(_block(headings, row))


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for i, heading in enumerate(headings):
        words = Text("\n".join(heading.split()), style="bold")
        table.add_column(words, justify="right" if i else "left", no_wrap=True, vertical="bottom")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _block(headings: Sequence[str], row: Sequence[str]) -> Table:
    block = Table.grid(padding=(0, 2))
    block.add_row(Text(headings[0], style="bold"), Text(row[0], style="bold"))
    for heading, cell in zip(headings[1:], row[1:], strict=True):
        block.add_row(Text(f"  {heading}"), Text(cell, justify="right"))
    return block
