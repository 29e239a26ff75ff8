# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Document with the reports of several experiments.

The document lists how many figures agree with each paper, the versions and the machine, and the
tables and pictures of all experiments. Its formats are one HTML file, a Markdown file with a folder
of pictures, and a LaTeX file with the tables.
"""

from __future__ import annotations

import base64
import io
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import dls_ik
from dls_ik.reproduce.experiment import (
    MARK,
    ORIGINS,
    PRINTED_HEADING,
    Experiment,
    Reproduction,
    ReproductionError,
    WideTable,
    count_figures,
)
from dls_ik.text import json_text

REPORT_SUFFIXES = (".md", ".html", ".htm")
TITLE = "Published experiments reproduced by dls_ik"
LEGEND = (
    f"{PRINTED_HEADING}: figure of the paper, to the right of our figure; {MARK}: our figure {{}}."
)
Run = Sequence[tuple[Experiment, Reproduction]]

# Papers by short name; the source of an experiment begins with the short name of its paper
PAPERS = {
    "Colome & Torras 2012": "A. Colome, C. Torras: Redundant inverse kinematics: experimental "
    "comparative review and two enhancements. IEEE/RSJ Int. Conf. Intelligent Robots and Systems "
    "(IROS), 2012.",
    "Buss & Kim 2004": "S. R. Buss, J.-S. Kim: Selectively damped least squares for inverse "
    "kinematics. Journal of Graphics Tools 10(3), 37-49, 2005. doi:10.1080/2151237X.2005.10129202",
    "Tabaczynski 2005": "M. Tabaczynski: Jacobian solutions to the inverse kinematics problem. "
    "Final project, Math 128, Tufts University, 2005.",
    "Deo & Walker 1993": "A. S. Deo, I. D. Walker: Overview of damped least-squares methods for "
    "inverse kinematics of robot manipulators. J. Intelligent and Robotic Systems 14, 1995. "
    "doi:10.1007/BF01254007",
    "Matos 2016": "J. Matos: Inverse kinematics solver using damped least squares method. Tutorial "
    "for the 5-joint DASL arm, 2016.",
}


class Section(NamedTuple):
    """Section of the document about one experiment."""

    name: str  # name of the experiment, used as HTML anchor and as file name of the picture
    paper: str  # short name of the paper, usually a key of PAPERS
    title: str
    source: str
    settings: str
    tables: tuple[tuple[str, WideTable], ...]  # (title, table) of each table
    notes: Sequence[str]
    legend: str  # legend of the tables; may be empty
    picture: bytes  # SVG
    counts: Mapping[str, Mapping[str, int]]  # result of experiment.count_figures
    reasons: tuple[tuple[str, str], ...]  # origin and reason of each NotPredicted of the experiment


class Document(NamedTuple):
    """Content of the document, independent of the file format."""

    sections: list[Section]  # sections of the same paper follow one another
    provenance: list[tuple[str, str]]  # names and values: command, versions, machine, date


def document_of(run: Run, command: Sequence[str] = (), left_out: Sequence[str] = ()) -> Document:
    """Return the document of several experiments, grouped by paper.

    Args:
        run: Experiments with their reports.
        command: Words of the command that ran the experiments.
        left_out: Names of the experiments that were not run because of an interruption.
    """
    sections = [_section(each, report) for each, report in run]
    order = list(dict.fromkeys(each.paper for each in sections))
    sections.sort(key=lambda each: order.index(each.paper))
    about = provenance(command)
    parts = [each.what for each, report in run if not report.complete]
    if parts or left_out:
        about.append(("interrupted", _interruption(parts, left_out)))
    return Document(sections, about)


def _interruption(parts: Sequence[str], left_out: Sequence[str]) -> str:
    said = f"incomplete: {', '.join(parts)}" if parts else ""
    missing = f"not run: {', '.join(left_out)}" if left_out else ""
    return "; ".join(filter(None, (said, missing)))


def _section(each: Experiment, report: Reproduction) -> Section:
    tables = [table for table in each.tables if table.is_shown(report)]
    return Section(
        each.what,
        each.source.partition(",")[0],
        each.title,
        f"{each.source}; {each.about(report)}.",
        json_text(report.settings),
        tuple((table.title, table.wide(report)) for table in tables),
        [*filter(None, [each.warning(report)]), *report.notes],
        LEGEND.format(each.mark_means) if report.printed else "",
        _svg(each, report),
        count_figures(each, report),
        tuple((kind.origin, kind.reason) for kind in each.not_predicted),
    )


def provenance(command: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of name and value: versions, command, machine and date of a document.

    `command` has the words of the command that ran the experiments; the pair is omitted if empty.
    """
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    found = [
        ("package", f"dls_ik {dls_ik.__version__}{_commit()}"),
        ("command", " ".join(command)),
        ("machine", f"{_processor()}, {platform.system()} {platform.machine()}"),
        ("with", f"Python {platform.python_version()}, {libraries}"),
        ("date", f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"),
    ]
    return [(name, value) for name, value in found if value]


def _commit() -> str:
    """Return the text ", commit HASH" of the last commit; empty if the package is not in git."""
    folder = Path(__file__).parents[1]
    words = ["git", "-C", str(folder), "log", "-1", "--format=%h", "--", "."]
    try:
        found = subprocess.run(  # noqa: S603  fixed command
            words, capture_output=True, text=True, timeout=5.0, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return f", commit {found.stdout.strip()}" if found.stdout.strip() else ""


def _processor() -> str:
    """Return the name of the processor; "unknown processor" if the system does not provide it."""
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _svg(each: Experiment, report: Reproduction) -> bytes:
    buffer = io.BytesIO()
    each.plot(report).savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def verdicts(document: Document) -> WideTable:
    """Return a table with a row for each paper and cells such as "12 of 14".

    A cell counts the printed results that agree with ours, of those that are compared. There is a
    column for each reason why results may agree, see
    :meth:`dls_ik.reproduce.experiment.Experiment.origin`. If there are several papers, a last row
    with the name "all" has the sums.
    """
    papers = [(paper, list(some)) for paper, some in _by_paper(document)]
    if len(papers) > 1:
        papers.append(("all", document.sections))
    lines = []
    for paper, some in papers:
        line = [paper]
        for origin in ORIGINS:
            agree, compared = (
                sum(each.counts[origin][key] for each in some) for key in ("agree", "compared")
            )
            line.append(f"{agree} of {compared}")
        lines.append(line)
    return WideTable(["paper", *ORIGINS], [True, *(False for _ in ORIGINS)], lines)


def _by_paper(document: Document) -> list[tuple[str, list[Section]]]:
    groups = groupby(document.sections, key=lambda each: each.paper)
    return [(paper, list(some)) for paper, some in groups]


VERDICT = "Printed figures that agree with ours, without times"
VERDICT_LEGEND = (
    "predicted: the printed figure was not used to choose any setting of the run; fitted: a "
    "setting was chosen so that the run gives the printed figure; tautological: a setting, such as "
    "a bound, forces the run to give this figure; in words: the paper states a result in words, "
    "not as a number. Only predicted figures test the reproduction."
)


def check_report(path: Path) -> None:
    """Check the path of a document before a long run.

    Raises:
        ReproductionError: If the suffix is not one of REPORT_SUFFIXES, or a file has the name of
            the folder for the pictures of a Markdown document.
    """
    if path.suffix.lower() not in REPORT_SUFFIXES:
        raise ReproductionError(
            f"the suffix of a report must be one of {', '.join(REPORT_SUFFIXES)}; got {path.name}"
        )
    folder = _picture_folder(path)
    if path.suffix.lower() == ".md" and folder.exists() and not folder.is_dir():
        raise ReproductionError(
            f"cannot write {path}: the folder of its pictures would be {folder.name}, which is a "
            "file; remove this file or choose another path"
        )


def _picture_folder(path: Path) -> Path:
    """Return the folder of the pictures of the Markdown document at `path`: NAME_files."""
    return path.with_name(f"{path.stem}_files")


def report_files(path: Path, document: Document) -> dict[Path, bytes]:
    """Return the content of each file to write for a document at `path`.

    An HTML document is a single file. A Markdown document has picture files, which come before the
    file at `path`.
    """
    sections = document.sections
    if path.suffix.lower() != ".md":
        links = {each.name: _embedded(each.picture) for each in sections}
        return {path: html(document, links).encode()}
    folder = _picture_folder(path)
    links = {each.name: f"{folder.name}/{each.name}.svg".replace(" ", "%20") for each in sections}
    files = {folder / f"{each.name}.svg": each.picture for each in sections}
    return {**files, path: markdown(document, links).encode()}


def _embedded(picture: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(picture).decode()


# Markdown


def markdown(document: Document, pictures: Mapping[str, str]) -> str:
    """Return the document as Markdown; `pictures` maps the name of a section to a link."""
    table = _markdown_table(verdicts(document))
    parts = [f"# {TITLE}", f"**{VERDICT}**", table, VERDICT_LEGEND]
    parts.append("\n".join(f"- {name}: {value}" for name, value in document.provenance))
    for paper, sections in _by_paper(document):
        parts += [f"## {paper}", PAPERS.get(paper, "")]
        parts += [_markdown_section(each, pictures[each.name]) for each in sections]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_section(each: Section, picture: str) -> str:
    parts = [f"### {each.name}: {each.title}", each.source]
    for title, table in each.tables:
        parts += [f"**{title}**" if title else "", _markdown_table(table)]
    notes = [*(f"{origin}: {reason}" for origin, reason in each.reasons), *each.notes]
    parts += [each.legend, "\n".join(f"- {note}" for note in notes)]
    parts += [f"Settings: `{' '.join(each.settings.split())}`", f"![{each.title}]({picture})"]
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
table { font-size: 13px; border-collapse: collapse; margin: 1rem 0;
        font-variant-numeric: tabular-nums; }
div.table { overflow-x: auto; }
th, td { padding: .15rem .35rem; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; font-weight: 600; }
.name { text-align: left; } td:first-child { white-space: nowrap; }
.printed { color: #777; } .differs { background: #fdebc8; }
img { max-width: 100%; } p.source { color: #555; }
"""


def html(document: Document, pictures: Mapping[str, str]) -> str:
    """Return the document as HTML; `pictures` maps the name of a section to the picture's URL."""
    verdict = _html_table(VERDICT, verdicts(document)) + f"<p>{escape(VERDICT_LEGEND)}</p>\n"
    about = "".join(
        f"<li>{escape(name)}: {escape(value)}</li>" for name, value in document.provenance
    )
    contents, body = "", ""
    for paper, sections in _by_paper(document):
        body += f"<h2>{escape(paper)}</h2>\n<p>{escape(PAPERS.get(paper, ''))}</p>\n"
        for each in sections:
            body += _html_section(each, pictures[each.name])
            contents += (
                f'<li><a href="#{each.name}">{escape(each.name)}</a>: {escape(each.title)}</li>'
            )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(TITLE)}</title><style>{STYLE}</style></head><body>\n"
        f"<h1>{escape(TITLE)}</h1>\n{verdict}<ul>{about}</ul>\n<ul>{contents}</ul>\n"
        f"{body}</body></html>\n"
    )


def _html_section(each: Section, picture: str) -> str:
    all_notes = [*(f"{origin}: {reason}" for origin, reason in each.reasons), *each.notes]
    notes = "".join(f"<li>{escape(note)}</li>" for note in all_notes)
    legend = f"<p>{escape(each.legend)}</p>" if each.legend else ""
    tables = "".join(_html_table(*pair) for pair in each.tables)
    return (
        f'<h3 id="{each.name}">{escape(each.name)}: {escape(each.title)}</h3>\n'
        f'<p class="source">{escape(each.source)}</p>\n'
        f"{tables}{legend}<ul>{notes}</ul>\n"
        f"<details><summary>Settings</summary><pre>{escape(each.settings)}</pre></details>\n"
        f'<p><img src="{picture}" alt="{escape(each.title)}"></p>\n'
    )


def _html_table(title: str, table: WideTable) -> str:
    heading = f"<h4>{escape(title)}</h4>" if title else ""
    kinds = [
        "name" if left else "printed" if text == PRINTED_HEADING else ""
        for text, left in zip(table.headings, table.is_left, strict=True)
    ]
    head = _html_row("th", table.headings, kinds)
    body = "".join(_html_row("td", line, kinds) + "\n" for line in table.lines)
    return f'{heading}<div class="table"><table>{head}\n{body}</table></div>\n'


def _html_row(tag: str, cells: Sequence[str], kinds: Sequence[str]) -> str:
    found = ""
    for text, kind in zip(cells, kinds, strict=True):
        is_figure = tag == "td" and kind != "name"  # the method name DLS* also ends in *
        classes = f"{kind}{' differs' if is_figure and text.endswith(MARK) else ''}".strip()
        found += f'<{tag} class="{classes}">{escape(text)}</{tag}>'
    return f"<tr>{found}</tr>"


# LaTeX

# maximum numbers of columns and of letters per row on a page
MAX_TABLE_COLUMNS, MAX_LETTERS = 8, 70
_SPECIAL = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip


def latex(document: Document) -> str:
    """Return a LaTeX file with the number of agreeing figures, the provenance, and all tables.

    The file needs the packages booktabs and graphicx.
    """
    about = [f"% {name}: {value}" for name, value in document.provenance]
    parts = ["\n".join(["% required packages: \\usepackage{booktabs, graphicx}", *about])]
    parts.append(_latex_table(verdicts(document), f"{VERDICT}. {VERDICT_LEGEND}"))
    for each in document.sections:
        for title, table in each.tables:
            caption = f"{each.source} {title}".strip()
            parts.append(_latex_table(table, caption))
    return "\n\n".join(parts) + "\n"


def _latex_table(table: WideTable, caption: str) -> str:
    columns = "".join("l" if left else "r" for left in table.is_left)
    lines = [_latex_row(table.headings), r"\midrule", *map(_latex_row, table.lines)]
    body = "\n".join([r"\toprule", *lines, r"\bottomrule"])
    tabular = f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}"
    if (
        len(columns) > MAX_TABLE_COLUMNS
        or max(map(_width, (table.headings, *table.lines))) > MAX_LETTERS
    ):
        tabular = f"\\resizebox{{\\linewidth}}{{!}}{{%\n{tabular}}}"
    head = f"\\begin{{table}}\n\\caption{{{_latex_text(caption)}}}\n\\centering"
    return f"{head}\n{tabular}\n\\end{{table}}"


def _width(cells: Sequence[str]) -> int:
    return sum(map(len, cells))


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex_text, cells)) + r" \\"


def _latex_text(text: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in text)
