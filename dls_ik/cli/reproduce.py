"""``dls-ik reproduce``: a published table or figure, computed again.

In the terminal the printed figures stand dim below the measured ones.
"""

import sys
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from dls_ik.cli import output
from dls_ik.cli.terminal import ProgressBars, empty_table, stdout_console, table_width
from dls_ik.reproduce.experiment import (
    ALL,
    EXPERIMENTS,
    MARK,
    Cell,
    Column,
    Experiment,
    Reproduction,
    ResultTable,
    begin,
    complete,
    experiment,
)
from dls_ik.reproduce.report import check_suffix, report_files, sections_of
from dls_ik.text import json_text

DEFAULT_REPORT = "dls-ik-reproduction.html"
Run = list[tuple[Experiment, Reproduction]]


@click.command(
    epilog=f"WHAT is one of {', '.join(EXPERIMENTS)}, or {ALL} for a report of them.",
    short_help="Run a published experiment again.",
)
@click.argument("what", type=click.Choice([*EXPERIMENTS, ALL]), metavar="WHAT")
@click.option("--samples", type=int, help="Number of samples; each experiment has its default.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0)
@click.option("--json", "json_path", metavar="FILE", help="Write the figures there; - for stdout.")
@output.plot_option("them")
@click.option(
    "--report",
    "report_path",
    metavar="FILE",
    help=f"Write tables and pictures there: .md or .html. Default of {ALL}: {DEFAULT_REPORT}.",
)
def reproduce(
    what: str,
    samples: int | None,
    seed: int,
    json_path: str | None,
    plot: str | None,
    report_path: str | None,
) -> None:
    """Run a published experiment again, and print it beside the published figures."""
    if what == ALL:
        report_path = report_path or DEFAULT_REPORT
        if plot is not None:
            words = f"the pictures of {ALL} are in --report"
            raise click.UsageError(f"--plot draws one experiment; {words}")
    if report_path == output.STDOUT:
        raise click.UsageError("only --json can write to standard output")
    if report_path is not None:
        check_suffix(Path(report_path))
    output.check_outputs(json_path, report_path, plot=plot)
    experiments = [experiment(name) for name in (EXPERIMENTS if what == ALL else [what])]
    run: Run = [(each, begin(each, _enough(each, what, samples), seed)) for each in experiments]
    is_complete = _complete(run, quiet=json_path == output.STDOUT)
    finished = [(each, report) for each, report in run if report.rows or report.complete]
    if json_path is not None:
        whole = {"what": what, "reports": [report for _, report in finished]}
        output.write_text(json_path, json_text(whole if what == ALL else run[0][1]) + "\n")
    if plot is not None and finished:
        each, report = finished[0]
        output.write_picture(plot, each.plot(report))
    if report_path is not None and finished:
        _write_report(report_path, finished)
    if not is_complete:
        sys.exit(output.INTERRUPTED)


def _enough(each: Experiment, what: str, samples: int | None) -> int | None:
    """Return the samples asked for; in a run of all, as many as an experiment needs."""
    if what != ALL or samples is None or samples < 1:
        return samples
    return max(samples, each.least_samples)


def _complete(run: Run, quiet: bool) -> bool:
    """Run and print the experiments one after the other; return False after Ctrl-C."""
    console = stdout_console()
    try:
        for each, report in run:
            try:
                with ProgressBars() as bars:
                    complete(each, report, bars)
            finally:
                if not quiet and (report.rows or report.complete):
                    _print_report(console, each, report)
    except KeyboardInterrupt:
        output.warn("interrupted; what was finished is kept")
        return False
    return True


def _write_report(path: str, run: Run) -> None:
    for file, content in report_files(Path(path), sections_of(run)).items():
        file.parent.mkdir(exist_ok=True)
        output.write_whole(str(file), partial(Path.write_bytes, data=content))
    click.echo(f"report: {path}", err=True)


# Tables in the terminal


def _print_report(console: Console, experiment: Experiment, report: Reproduction) -> None:
    console.print()
    console.print(Text(experiment.title, style="bold"))
    console.print(Text(f"{experiment.source}; {experiment.about(report)}", style="dim"))
    for table in experiment.tables:
        console.print()
        _print_table(console, table, table.lines(report))
    for note in report.notes:
        bullet = RichTable.grid(padding=(0, 1))
        bullet.add_row("*" if note.isascii() else "\u2022", Text(note))
        console.print(bullet)


def _print_table(console: Console, table: ResultTable, lines: list[list[Cell]]) -> None:
    shown = _rich_table(table, lines, break_headings=False)
    if table_width(console, shown) > console.width:
        shown = _rich_table(table, lines, break_headings=True)
    # The terminal breaks longer lines, so that no figure is cut off.
    width = max(console.width, Measurement.get(console, console.options, shown).minimum)
    console.print(shown, width=width, crop=False)
    if any(cell.printed for line in lines for cell in line):
        legend = f"below each figure, dim: the printed one; {MARK} differs by more than chance"
        console.print(Text(legend, style="dim"))


def _rich_table(table: ResultTable, lines: list[list[Cell]], break_headings: bool) -> RichTable:
    shown = empty_table(table.title)
    for i, column in enumerate(table.columns):
        words = column.heading.split()
        shown.add_column(
            Text("\n".join(words) if break_headings else column.heading),
            justify="left" if column.is_left else "right",
            min_width=_min_width(column, [line[i] for line in lines]),
        )
    for line in lines:
        below = any(cell.printed for cell in line)
        shown.add_row(*(_cell(cell, below) for cell in line))
    return shown


def _min_width(column: Column, cells: list[Cell]) -> int:
    """Return the width of every figure and of the words of the heading; other words may break."""
    words = column.heading.split()
    if not column.is_text:
        words += [text for cell in cells for text in (cell.measured, cell.printed)]
    return max(map(len, words), default=0)


def _cell(cell: Cell, below: bool) -> Text:
    text = Text(cell.measured, style="bold yellow" if cell.differs else "")
    if below:
        mark = " " * cell.measured.count(MARK)  # aligns the digits
        text.append(f"\n{cell.printed}{mark if cell.printed else ''}", style="dim not bold")
    return text
