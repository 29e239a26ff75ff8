"""Reports in a terminal: measured figures, the printed ones dim below them."""

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from dls_ik.cli.tables import empty_table, width_of
from dls_ik.reproduce.experiment import Experiment
from dls_ik.reproduce.report import Reproduction
from dls_ik.reproduce.table import MARK, Cell, Column, Table


def show(console: Console, experiment: Experiment, report: Reproduction) -> None:
    """Print a report."""
    console.print()
    console.print(Text(experiment.title, style="bold"))
    console.print(Text(f"{experiment.source}; {experiment.about(report)}", style="dim"))
    for table in experiment.tables:
        console.print()
        _show_table(console, table, table.lines(report))
    for note in report.notes:
        console.print(_note(note))


def _show_table(console: Console, table: Table, lines: list[list[Cell]]) -> None:
    shown = _rich_table(table, lines, break_headings=False)
    if width_of(console, shown) > console.width:
        shown = _rich_table(table, lines, break_headings=True)
    # Rather lines that the terminal breaks than figures cut off.
    width = max(console.width, Measurement.get(console, console.options, shown).minimum)
    console.print(shown, width=width, crop=False)
    if any(cell.printed for line in lines for cell in line):
        legend = f"below each figure, dim: the printed one; {MARK} differs by more than chance"
        console.print(Text(legend, style="dim"))


def _rich_table(table: Table, lines: list[list[Cell]], break_headings: bool) -> RichTable:
    shown = empty_table(table.title)
    for i, column in enumerate(table.columns):
        words = column.heading.split()
        shown.add_column(
            Text("\n".join(words) if break_headings else column.heading),
            justify="left" if column.is_left else "right",
            min_width=_least_width(column, [line[i] for line in lines]),
        )
    for line in lines:
        below = any(cell.printed for cell in line)
        shown.add_row(*(_cell(cell, below) for cell in line))
    return shown


def _least_width(column: Column, cells: list[Cell]) -> int:
    """Room for every figure and for the words of the heading; other words may break."""
    words = column.heading.split()
    if not column.is_text:
        words += [text for cell in cells for text in (cell.measured, cell.printed)]
    return max(map(len, words), default=0)


def _cell(cell: Cell, below: bool) -> Text:
    text = Text(cell.measured, style="bold yellow" if cell.differs else "")
    if below:
        room = " " * cell.measured.count(MARK)  # so that digits stand under digits
        text.append(f"\n{cell.printed}{room if cell.printed else ''}", style="dim not bold")
    return text


def _note(note: str) -> RenderableType:
    grid = RichTable.grid(padding=(0, 1))
    grid.add_row("*" if note.isascii() else "\u2022", Text(note))
    return grid
