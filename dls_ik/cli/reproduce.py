# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik reproduce``: repeated computation of a published table or figure.

The terminal shows each published number dim beside the measured one, or below it on a narrow
terminal. A report has the same content as one HTML file, or as a Markdown file with its pictures in
a folder next to it.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from dls_ik.cli import output
from dls_ik.cli.options import plugin_option
from dls_ik.cli.terminal import ProgressBars, stdout_console
from dls_ik.reproduce.experiment import (
    ALL_EXPERIMENTS,
    EMPTY,
    EXPERIMENTS,
    MARK,
    PRINTED_HEADING,
    Cell,
    Column,
    Experiment,
    Reproduction,
    ResultTable,
    begin,
    complete,
    experiment,
)
from dls_ik.reproduce.report import (
    Document,
    check_report,
    document_of,
    latex,
    report_files,
)
from dls_ik.tables import empty_table, table_width
from dls_ik.text import json_text

DEFAULT_REPORT = "dls-ik-reproduction.html"
Run = list[tuple[Experiment, Reproduction]]


@click.command(
    epilog=f"WHAT is one of {', '.join(EXPERIMENTS)}, or {ALL_EXPERIMENTS} for a report of all.",
    short_help="Run a published experiment again.",
)
@plugin_option
@click.argument("what", metavar="WHAT")
@click.option("--samples", type=int, help="Number of samples; each experiment has a default.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0)
@click.option("--rows", metavar="NAMES", help="Run only these rows, such as jp,sd (table-v).")
@click.option("--reading", help="Run only one reading: as published, as meant (table-v).")
@click.option(
    "--json", "json_path", metavar="FILE", help="Write the figures to FILE; - for stdout."
)
@output.plot_option("the results")
@click.option(
    "--report",
    "report_path",
    metavar="FILE",
    help="Write tables and pictures: .md or .html. Default of "
    f"{ALL_EXPERIMENTS}: {DEFAULT_REPORT}.",
)
@click.option("--latex", "latex_path", metavar="FILE", help="Write the tables for LaTeX.")
def reproduce(
    what: str,
    samples: int | None,
    seed: int,
    rows: str | None,
    reading: str | None,
    json_path: str | None,
    plot: str | None,
    report_path: str | None,
    latex_path: str | None,
) -> None:
    """Run a published experiment again, and print the results next to the published ones."""
    experiments = [
        experiment(name) for name in (EXPERIMENTS if what == ALL_EXPERIMENTS else [what])
    ]
    if what == ALL_EXPERIMENTS:
        report_path = report_path or DEFAULT_REPORT
        if plot is not None:
            words = f"with {ALL_EXPERIMENTS} use --report for the pictures"
            raise click.UsageError(f"--plot draws a single experiment; {words}")
    if output.STDOUT in (report_path, latex_path):
        raise click.UsageError("only --json supports standard output")
    if report_path is not None:
        check_report(Path(report_path))
    output.check_outputs(json_path, report_path, latex_path, plot=plot)
    if what == ALL_EXPERIMENTS and (rows is not None or reading is not None):
        raise click.UsageError(
            f"--rows and --reading need a single experiment; got {ALL_EXPERIMENTS}"
        )
    only = [] if rows is None else [name.strip() for name in rows.split(",")]
    run: Run = [
        (each, begin(each, _num_samples(each, what, samples), seed, only, reading or ""))
        for each in experiments
    ]
    is_complete = _complete(run, quiet=json_path == output.STDOUT)
    finished = [(each, report) for each, report in run if report.rows or report.complete]
    writer = _ResultWriter()
    if json_path is not None:
        whole = {"what": what, "reports": [report for _, report in finished]}
        text = json_text(whole if what == ALL_EXPERIMENTS else run[0][1]) + "\n"
        writer.write(json_path, lambda path: output.write_text(path, text))
    if plot is not None and finished:
        figure = finished[0][0].plot(finished[0][1])
        writer.write(plot, lambda path: output.write_picture(path, figure))
    if finished and (report_path is not None or latex_path is not None):
        left_out = [each.what for each, report in run if not (report.rows or report.complete)]
        document = document_of(finished, ["dls-ik", *sys.argv[1:]], left_out)
        if latex_path is not None:
            writer.write(latex_path, lambda path: output.write_text(path, latex(document)))
        if report_path is not None:
            writer.write(report_path, lambda path: _write_report(path, document))
    if writer.failed:
        sys.exit(output.EXIT_BAD_INPUT)
    if not is_complete:
        sys.exit(output.EXIT_INTERRUPTED)


class _ResultWriter:
    """Writer of results that falls back to a temporary folder, so that no result is lost.

    Attributes:
        failed: Whether a result could not be written to its path.
    """

    def __init__(self) -> None:
        self.failed = False

    def write(self, path: str, write: Callable[[str], object]) -> None:
        """Write a file to `path`; if that fails, to a new temporary folder, with a warning.

        Args:
            path: Path of the file.
            write: Called with the path to write to.
        """
        try:
            write(path)
        except (click.UsageError, OSError) as error:
            told = f"cannot write {path}: {getattr(error, 'strerror', None)}"
            reason = error.message if isinstance(error, click.UsageError) else told
            folder = Path(tempfile.mkdtemp(prefix="dls-ik-"))
            try:
                write(str(folder / Path(path).name))
            except (click.UsageError, OSError):  # the temporary folder is not writable either
                shutil.rmtree(folder, ignore_errors=True)
                raise error from None
            output.warn(f"{reason}; the result is in {folder}")
            self.failed = True


def _num_samples(each: Experiment, what: str, samples: int | None) -> int | None:
    """Return the number of samples for an experiment; None selects its default.

    If all experiments run, the number is raised to the minimum of the experiment.

    Args:
        each: Experiment.
        what: Name of an experiment, or ALL.
        samples: Number of samples given on the command line, or None.
    """
    if what != ALL_EXPERIMENTS or samples is None or samples < 1:
        return samples
    if each.needs_all:
        return None
    return max(samples, each.least_samples)


def _complete(run: Run, quiet: bool) -> bool:
    """Run the experiments in order and print each; return False if Ctrl-C interrupts them.

    Args:
        run: Experiments, each with the report that receives its results.
        quiet: Whether to print no results.
    """
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
        output.warn("interrupted; finished results are kept")
        return False
    return True


def _write_report(path: str, document: Document) -> None:
    """Write the report file, and the pictures of a Markdown report."""
    for file, content in report_files(Path(path), document).items():
        file.parent.mkdir(exist_ok=True)
        output.write_whole(str(file), partial(Path.write_bytes, data=content))
    click.echo(f"report: {path}", err=True)


# Tables in the terminal


def _print_report(console: Console, experiment: Experiment, report: Reproduction) -> None:
    """Print the tables and notes of an experiment that has run."""
    console.print()
    console.print(Text(experiment.title, style="bold"))
    console.print(Text(f"{experiment.source}; {experiment.about(report)}", style="dim"))
    warning = experiment.warning(report)
    if warning:
        console.print(Text(f"{warning}.", style="yellow"))
    for table in experiment.tables:
        if table.is_shown(report):
            lines = [line for line in table.lines(report) if _has_figures(table, line)]
            console.print()
            _print_table(console, table, lines, experiment.mark_means)
    for note in report.notes:
        bullet = RichTable.grid(padding=(0, 1))
        bullet.add_row("-" if note.isascii() else "\u2022", Text(note))
        console.print(bullet)


def _has_figures(table: ResultTable, line: list[Cell]) -> bool:
    """Return whether a line of a table has a measured or printed value besides its names."""
    return any(
        cell.printed or cell.measured != EMPTY
        for column, cell in zip(table.columns, line, strict=True)
        if not column.is_left
    )


def _print_table(
    console: Console, table: ResultTable, lines: list[list[Cell]], mark_means: str
) -> None:
    """Print a table with our numbers and the published ones.

    Each published number is printed to the right of ours. If the terminal is too narrow for this,
    the less important columns (`is_spare`) are omitted. If this is not enough, the published
    numbers are printed below ours.

    Args:
        console: Console to print to.
        table: Columns of the table.
        lines: Cells of each row.
        mark_means: Meaning of the mark ``*`` after a number, for the legend.
    """
    kept = [i for i, column in enumerate(table.columns) if not column.is_spare]
    narrow = replace(table, columns=tuple(table.columns[i] for i in kept))
    fewer = [[line[i] for i in kept] for line in lines]
    has_printed = any(cell.printed for line in lines for cell in line)
    is_beside = True
    for columns, cells, is_beside in (
        (table, lines, True), (narrow, fewer, True), (table, lines, False), (narrow, fewer, False),
    ):  # fmt: skip
        shown = _rich_table(columns, cells, is_beside, break_headings=False)
        if table_width(console, shown) > console.width:
            shown = _rich_table(columns, cells, is_beside, break_headings=True)
        if (has_printed or not is_beside) and _minimum_width(console, shown) <= console.width:
            break
    # The table may be wider than the terminal, which wraps lines; rich would cut numbers off.
    width = max(console.width, _minimum_width(console, shown))
    console.print(shown, width=width, crop=False)
    if has_printed:
        marks = any(cell.differs for line in lines for cell in line)
        legend = f"; {MARK} {mark_means}" if marks else ""
        place = "right of" if is_beside else "below"
        console.print(Text(f"dim, {place} each figure: the published one{legend}", style="dim"))


def _minimum_width(console: Console, shown: RichTable) -> int:
    """Return the minimum width of a table on an unbounded console [characters]."""
    return Measurement.get(console, console.options.update(width=10**4), shown).minimum


def _rich_table(
    table: ResultTable, lines: list[list[Cell]], is_beside: bool, break_headings: bool
) -> RichTable:
    """Convert a table of results to a rich table.

    Args:
        table: Columns of the table.
        lines: Cells of the table.
        is_beside: Whether published figures have their own columns, to the right of ours.
        break_headings: Whether to put each word of a heading on its own line.
    """
    shown = empty_table(table.title)
    doubled = [
        is_beside and any(line[i].printed for line in lines) for i in range(len(table.columns))
    ]
    for i, column in enumerate(table.columns):
        words = column.heading.split()
        shown.add_column(
            Text("\n".join(words) if break_headings else column.heading),
            justify="left" if column.is_left else "right",
            min_width=_min_width(column, [line[i] for line in lines]),
        )
        if doubled[i]:
            width = max(len(PRINTED_HEADING), *(len(line[i].printed) for line in lines))
            heading = Text(PRINTED_HEADING, style="dim not bold")
            shown.add_column(heading, justify="right", min_width=width)
    for line in lines:
        below = not is_beside and any(cell.printed for cell in line)
        cells = []
        for cell, is_doubled in zip(line, doubled, strict=True):
            cells.append(_cell(cell, below))
            if is_doubled:
                cells.append(Text(cell.printed, style="dim not bold"))
        shown.add_row(*cells)
    return shown


def _min_width(column: Column, cells: list[Cell]) -> int:
    """Return the minimum width of a column [characters], so that numbers and heading words fit.

    Cells with text may be wrapped to a smaller width.
    """
    words = column.heading.split()
    if not column.is_text:
        words += [text for cell in cells for text in (cell.measured, cell.printed)]
    return max(map(len, words), default=0)


def _cell(cell: Cell, below: bool) -> Text:
    """Return the text of a cell: the measured number, and with `below` the published number."""
    text = Text(cell.measured, style="bold yellow" if cell.differs else "")
    if below:
        mark = " " * cell.measured.count(MARK)  # aligns the digits of both numbers
        text.append(f"\n{cell.printed}{mark if cell.printed else ''}", style="dim not bold")
    return text
