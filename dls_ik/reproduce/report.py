"""Reports: HTML and Markdown of the same document.

A ``Section`` holds a heading, tables of text, notes and a picture. ``report_files`` makes one HTML
file, or a Markdown file with its pictures in a folder beside it.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from dls_ik.reproduce.experiment import (
    MARK,
    PRINTED,
    Experiment,
    Reproduction,
    ReproductionError,
    WideTable,
)

SUFFIXES = (".md", ".html", ".htm")
TITLE = "The published experiments, run again by dls_ik"
LEGEND = f"{PRINTED}: the figure of the paper, left of it ours; {MARK} differs by more than chance."


class Section(NamedTuple):
    """One chapter of a report."""

    name: str  # anchor, and file name of the picture
    title: str
    source: str
    tables: tuple[tuple[str, WideTable], ...]  # with their titles
    notes: Sequence[str]
    legend: str  # of the tables; may be empty
    picture: bytes  # PNG


def sections_of(run: Sequence[tuple[Experiment, Reproduction]]) -> list[Section]:
    """Return a section for each experiment."""
    return [
        Section(
            each.what,
            each.title,
            f"{each.source}; {each.about(report)}.",
            tuple((table.title, table.wide(report)) for table in each.tables),
            report.notes,
            LEGEND if report.printed else "",
            _png(each, report),
        )
        for each, report in run
    ]


def _png(each: Experiment, report: Reproduction) -> bytes:
    buffer = io.BytesIO()
    each.plot(report).savefig(buffer, format="png")
    return buffer.getvalue()


def check_suffix(path: Path) -> None:
    """Refuse a file that is neither HTML nor Markdown.

    Raises:
        ReproductionError: another suffix; the message lists the valid ones.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ReproductionError(f"a report is one of {', '.join(SUFFIXES)}, not {path.name}")


def report_files(path: Path, sections: Sequence[Section], title: str = TITLE) -> dict[Path, bytes]:
    """Return the files of a report; the one at `path` comes last, after those it refers to."""
    check_suffix(path)
    if path.suffix.lower() != ".md":
        links = {each.name: _embedded(each.picture) for each in sections}
        return {path: html(title, sections, links).encode()}
    folder = path.with_name(f"{path.stem}_files")
    links = {each.name: f"{folder.name}/{each.name}.png".replace(" ", "%20") for each in sections}
    files = {folder / f"{each.name}.png": each.picture for each in sections}
    return {**files, path: markdown(title, sections, links).encode()}


def _embedded(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


# Markdown


def markdown(title: str, sections: Sequence[Section], pictures: Mapping[str, str]) -> str:
    """Return the whole Markdown file; `pictures` has a link for each section's name."""
    parts = [_markdown_section(each, pictures[each.name]) for each in sections]
    return "\n\n".join([f"# {title}", *parts]) + "\n"


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


def html(title: str, sections: Sequence[Section], pictures: Mapping[str, str]) -> str:
    """Return the whole HTML file; `pictures` has a link for each section's name."""
    contents = "".join(
        f'<li><a href="#{each.name}">{escape(each.name)}</a>: {escape(each.title)}</li>'
        for each in sections
    )
    body = "".join(_html_section(each, pictures[each.name]) for each in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n<ul>{contents}</ul>\n{body}</body></html>\n"
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
