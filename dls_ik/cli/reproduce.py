"""``dls-ik reproduce``: a published table or figure, run again.

In the terminal the printed figures stand dim below the measured ones.
"""

import signal
import sys
from functools import partial
from pathlib import Path

import click
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from dls_ik.cli.exits import INTERRUPTED
from dls_ik.cli.output import STDOUT, check_writable, write_whole
from dls_ik.cli.terminal import Bars, empty_table, stdout_console, width_of
from dls_ik.plot import check_picture, save_picture
from dls_ik.reproduce.experiment import ALL, EXPERIMENTS, Experiment, begin, complete, experiment
from dls_ik.reproduce.report import check_suffix, json_text, report_files, sections_of
from dls_ik.reproduce.tables import MARK, Cell, Column, Reproduction, ResultTable

DEFAULT_REPORT = "dls-ik-reproduction.html"
Run = list[tuple[Experiment, Reproduction]]


@click.command(
    epilog=f"WHAT is one of {', '.join(EXPERIMENTS)}, or {ALL} for a report of them.",
    short_help="Run a published experiment again.",
)
@click.argument("what", type=click.Choice([*EXPERIMENTS, ALL]), metavar="WHAT")
@click.option("--samples", type=int, help="How many; each experiment has its default.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True)
@click.option("--json", "json_path", metavar="FILE", help="Write the figures there; - for stdout.")
@click.option("--plot", "plot_path", metavar="FILE", help="Draw them there: .png, .svg or .pdf.")
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
    plot_path: str | None,
    report_path: str | None,
) -> None:
    """Run a published experiment again, and show it beside the printed figures."""
    if what == ALL and plot_path is not None:
        raise click.UsageError(
            f"--plot draws one experiment; the pictures of {ALL} are in --report"
        )
    if what == ALL and report_path is None:
        report_path = DEFAULT_REPORT
    _check_outputs(json_path, plot_path, report_path)
    experiments = [experiment(name) for name in (EXPERIMENTS if what == ALL else [what])]
    run: Run = [(each, begin(each, _enough(each, what, samples), seed)) for each in experiments]
    interrupted = _complete(run, quiet=json_path == STDOUT)
    finished = [pair for pair in run if pair[1].rows or pair[1].complete]
    if json_path is not None:
        _write_json(json_path, what, run if what != ALL else finished)
    if plot_path is not None and finished:
        _write_picture(plot_path, *finished[0])
    if report_path is not None and finished:
        _write_report(report_path, finished)
    if interrupted:
        sys.exit(INTERRUPTED)


def _enough(each: Experiment, what: str, samples: int | None) -> int | None:
    """As many as asked for; of all experiments some need more to show anything."""
    if what != ALL or samples is None or samples < 1:
        return samples
    return max(samples, each.least_samples)


def _check_outputs(json_path: str | None, plot_path: str | None, report_path: str | None) -> None:
    """Refuse before the work begins what could not be written after it."""
    if STDOUT in (plot_path, report_path):
        raise click.UsageError("only --json can write to standard output")
    if plot_path is not None:
        check_picture(Path(plot_path))
    if report_path is not None:
        check_suffix(Path(report_path))
    check_writable([path for path in (json_path, plot_path, report_path) if path is not None])


def _complete(run: Run, quiet: bool) -> bool:
    """Run and show the experiments one after the other; return whether Ctrl-C ended it."""
    console = stdout_console()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background job ignores it
    try:
        for each, report in run:
            try:
                with Bars(Console(stderr=True)) as bars:
                    complete(each, report, bars)
            finally:
                if not quiet and (report.rows or report.complete):
                    _show(console, each, report)
    except KeyboardInterrupt:
        click.echo("dls-ik: interrupted; what was finished is kept", err=True)
        return True
    return False


def _write_json(path: str, what: str, run: Run) -> None:
    reports = [report for _, report in run]
    whole = {"what": what, "reports": reports}
    text = json_text(whole if what == ALL else reports[0])
    if path == STDOUT:
        click.echo(text)
    else:
        write_whole(path, lambda part: part.write_text(text + "\n", encoding="utf-8"))


def _write_report(path: str, run: Run) -> None:
    for file, content in report_files(Path(path), sections_of(run)).items():
        file.parent.mkdir(exist_ok=True)
        write_whole(str(file), partial(Path.write_bytes, data=content))
    click.echo(f"report: {path}", err=True)


def _write_picture(path: str, each: Experiment, report: Reproduction) -> None:
    write_whole(path, lambda part: save_picture(part, each.plot(report)))


def _show(console: Console, experiment: Experiment, report: Reproduction) -> None:
    """Print a report."""
    console.print()
    console.print(Text(experiment.title, style="bold"))
    console.print(Text(f"{experiment.source}; {experiment.about(report)}", style="dim"))
    for table in experiment.tables:
        console.print()
        _show_table(console, table, table.lines(report))
    for note in report.notes:
        console.print(_note(note))


def _show_table(console: Console, table: ResultTable, lines: list[list[Cell]]) -> None:
    shown = _rich_table(table, lines, break_headings=False)
    if width_of(console, shown) > console.width:
        shown = _rich_table(table, lines, break_headings=True)
    # Rather lines that the terminal breaks than figures cut off.
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
