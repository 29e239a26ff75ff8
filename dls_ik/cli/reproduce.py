"""``dls-ik reproduce``: a published table or figure, computed again.

In the terminal the printed figures stand dim below the measured ones. Reports are HTML or Markdown
of the same document: one HTML file, or a Markdown file with its pictures in a folder beside it.
"""

import base64
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import NamedTuple

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
    PRINTED,
    Cell,
    Column,
    Experiment,
    Reproduction,
    ReproductionError,
    ResultTable,
    WideTable,
    begin,
    complete,
    experiment,
)
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
@click.option("--rows", metavar="NAMES", help="Run these rows only, such as jp,sd (table-v).")
@click.option("--reading", help="Run one reading only: as published, as meant (table-v).")
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
    rows: str | None,
    reading: str | None,
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
        _check_suffix(Path(report_path))
    output.check_outputs(json_path, report_path, plot=plot)
    experiments = [experiment(name) for name in (EXPERIMENTS if what == ALL else [what])]
    if what == ALL and (rows is not None or reading is not None):
        raise click.UsageError(f"--rows and --reading are of one experiment, not of {ALL}")
    only = [] if rows is None else [name.strip() for name in rows.split(",")]
    run: Run = [
        (each, begin(each, _enough(each, what, samples), seed, only, reading or ""))
        for each in experiments
    ]
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
    for file, content in _report_files(Path(path), sections_of(run)).items():
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
        lines = table.lines(report)
        if lines or not table.series:
            _print_table(console, table, lines, experiment.mark_means)
    for note in report.notes:
        bullet = RichTable.grid(padding=(0, 1))
        bullet.add_row("*" if note.isascii() else "\u2022", Text(note))
        console.print(bullet)


def _print_table(
    console: Console, table: ResultTable, lines: list[list[Cell]], mark_means: str
) -> None:
    if _least_width(console, _rich_table(table, lines, break_headings=True)) > console.width:
        kept = [i for i, column in enumerate(table.columns) if not column.is_spare]
        table = replace(table, columns=tuple(table.columns[i] for i in kept))
        lines = [[line[i] for i in kept] for line in lines]
    shown = _rich_table(table, lines, break_headings=False)
    if table_width(console, shown) > console.width:
        shown = _rich_table(table, lines, break_headings=True)
    # The terminal breaks longer lines, so that no figure is cut off.
    width = max(console.width, Measurement.get(console, console.options, shown).minimum)
    console.print(shown, width=width, crop=False)
    if any(cell.printed for line in lines for cell in line):
        legend = f"below each figure, dim: the printed one{_mark_legend(lines, mark_means)}"
        console.print(Text(legend, style="dim"))


def _mark_legend(lines: list[list[Cell]], mark_means: str) -> str:
    return f"; {MARK} {mark_means}" if any(cell.differs for line in lines for cell in line) else ""


def _least_width(console: Console, table: RichTable) -> int:
    return Measurement.get(console, console.options.update(width=10**4), table).minimum


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


# Reports

SUFFIXES = (".md", ".html", ".htm")
TITLE = "The published experiments, run again by dls_ik"
LEGEND = f"{PRINTED}: the figure of the paper, left of it ours; {MARK} {{}}."


class Section(NamedTuple):
    """One chapter of a report."""

    name: str  # anchor, and file name of the picture
    title: str
    source: str
    tables: tuple[tuple[str, WideTable], ...]  # with their titles
    notes: Sequence[str]
    legend: str  # of the tables; may be empty
    picture: bytes  # PNG


def sections_of(run: Run) -> list[Section]:
    """Return a section for each experiment."""
    return [
        Section(
            each.what,
            each.title,
            f"{each.source}; {each.about(report)}.",
            tuple((table.title, table.wide(report)) for table in each.tables),
            report.notes,
            LEGEND.format(each.mark_means) if report.printed else "",
            _png(each, report),
        )
        for each, report in run
    ]


def _png(each: Experiment, report: Reproduction) -> bytes:
    buffer = io.BytesIO()
    each.plot(report).savefig(buffer, format="png")
    return buffer.getvalue()


def _check_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise ReproductionError(f"a report is one of {', '.join(SUFFIXES)}, not {path.name}")


def _report_files(path: Path, sections: Sequence[Section]) -> dict[Path, bytes]:
    """Return the files of a report; the one at `path` comes last, after those it refers to."""
    if path.suffix.lower() != ".md":
        links = {each.name: _embedded(each.picture) for each in sections}
        return {path: html(sections, links).encode()}
    folder = path.with_name(f"{path.stem}_files")
    links = {each.name: f"{folder.name}/{each.name}.png".replace(" ", "%20") for each in sections}
    files = {folder / f"{each.name}.png": each.picture for each in sections}
    return {**files, path: markdown(sections, links).encode()}


def _embedded(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


# Markdown


def markdown(sections: Sequence[Section], pictures: Mapping[str, str]) -> str:
    """Return the whole Markdown file; `pictures` has a link for each section's name."""
    parts = [_markdown_section(each, pictures[each.name]) for each in sections]
    return "\n\n".join([f"# {TITLE}", *parts]) + "\n"


def _markdown_section(each: Section, picture: str) -> str:
    parts = [f"## {each.name}: {each.title}", each.source]
    for title, table in each.tables:
        parts += [f"**{title}**" if title else "", _markdown_table(table)]
    parts += [each.legend, "\n".join(f"- {note}" for note in each.notes)]
    parts.append(f"![{each.title}]({picture})")
    return "\n\n".join(part for part in parts if part)


def _markdown_table(table: WideTable) -> str:
    rule = [":--" if left else "--:" for left in table.is_left]
    return "\n".join(_markdown_row(cells) for cells in (table.headings, rule, *table.lines))


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# HTML

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 75rem; margin: 2rem auto;
       padding: 0 1rem; }
table { font-size: 14px; border-collapse: collapse; margin: 1rem 0;
        font-variant-numeric: tabular-nums; }
div.table { overflow-x: auto; }
th, td { padding: .2rem .4rem; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; font-weight: 600; }
.name { text-align: left; white-space: nowrap; }
.printed { color: #777; } .differs { background: #fdebc8; }
img { max-width: 100%; } p.source { color: #555; }
"""


def html(sections: Sequence[Section], pictures: Mapping[str, str]) -> str:
    """Return the whole HTML file; `pictures` has a link for each section's name."""
    contents = "".join(
        f'<li><a href="#{each.name}">{escape(each.name)}</a>: {escape(each.title)}</li>'
        for each in sections
    )
    body = "".join(_html_section(each, pictures[each.name]) for each in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(TITLE)}</title><style>{STYLE}</style></head><body>\n"
        f"<h1>{escape(TITLE)}</h1>\n<ul>{contents}</ul>\n{body}</body></html>\n"
    )


def _html_section(each: Section, picture: str) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in each.notes)
    legend = f"<p>{escape(each.legend)}</p>" if each.legend else ""
    tables = "".join(_html_table(*pair) for pair in each.tables)
    return (
        f'<h2 id="{each.name}">{escape(each.name)}: {escape(each.title)}</h2>\n'
        f'<p class="source">{escape(each.source)}</p>\n'
        f"{tables}{legend}<ul>{notes}</ul>\n"
        f'<p><img src="{picture}" alt="{escape(each.title)}"></p>\n'
    )


def _html_table(title: str, table: WideTable) -> str:
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    kinds = [
        "name" if left else "printed" if text == PRINTED else ""
        for text, left in zip(table.headings, table.is_left, strict=True)
    ]
    head = _html_row("th", table.headings, kinds)
    body = "".join(_html_row("td", line, kinds) + "\n" for line in table.lines)
    return f'{heading}<div class="table"><table>{head}\n{body}</table></div>\n'


def _html_row(tag: str, cells: Sequence[str], kinds: Sequence[str]) -> str:
    found = ""
    for text, kind in zip(cells, kinds, strict=True):
        is_figure = tag == "td" and kind != "name"  # the name DLS* ends in the mark too
        classes = f"{kind}{' differs' if is_figure and text.endswith(MARK) else ''}".strip()
        found += f'<{tag} class="{classes}">{escape(text)}</{tag}>'
    return f"<tr>{found}</tr>"
