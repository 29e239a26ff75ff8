"""Report files: Markdown with its pictures in a folder beside it, or one HTML file."""

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from dls_ik.reproduce.experiment import Experiment, ReproductionError
from dls_ik.reproduce.report import LEGEND, MARK, PRINTED, Reproduction, Table, wide_lines

SUFFIXES = (".md", ".html", ".htm")
TITLE = "The published experiments, run again by dls_ik"

Run = Sequence[tuple[Experiment, Reproduction]]


def check_suffix(path: Path) -> None:
    """Refuse a kind of file that no report can be written as.

    Raises:
        ReproductionError: the ones that there are.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ReproductionError(f"a report is one of {', '.join(SUFFIXES)}, not {path.name}")


def document_files(path: Path, run: Run) -> dict[Path, bytes]:
    """The files of a report, the one at `path` last, so that it refers to what is there."""
    check_suffix(path)
    pictures = {each.what: _png(each, report) for each, report in run}
    if path.suffix.lower() != ".md":
        links = {what: _embedded(picture) for what, picture in pictures.items()}
        return {path: html(TITLE, run, links).encode()}
    folder = path.with_name(f"{path.stem}_files")
    links = {what: f"{folder.name}/{what}.png".replace(" ", "%20") for what in pictures}
    files = {folder / f"{what}.png": picture for what, picture in pictures.items()}
    return {**files, path: markdown(TITLE, run, links).encode()}


def _png(each: Experiment, report: Reproduction) -> bytes:
    buffer = io.BytesIO()
    each.plot(report).savefig(buffer, format="png")
    return buffer.getvalue()


def _embedded(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


# Markdown


def markdown(title: str, run: Run, pictures: Mapping[str, str]) -> str:
    """The whole file; pictures are links by the experiment's name."""
    sections = [_markdown_section(each, report, pictures[each.what]) for each, report in run]
    return "\n\n".join([f"# {title}", *sections]) + "\n"


def _markdown_section(each: Experiment, report: Reproduction, picture: str) -> str:
    parts = [f"## {each.what}: {each.title}", f"{each.source}; {each.about(report)}."]
    for table in each.tables:
        parts += [f"**{table.title}**"] if table.title else []
        parts.append(_markdown_table(table, report))
    parts += [LEGEND] if report.printed else []
    parts.append("\n".join(f"- {note}" for note in report.notes))
    parts.append(f"![{each.title}]({picture})")
    return "\n\n".join(part for part in parts if part)


def _markdown_table(table: Table, report: Reproduction) -> str:
    headings, is_text, lines = wide_lines(table, report)
    rule = [":--" if text else "--:" for text in is_text]
    return "\n".join(_markdown_row(cells) for cells in (headings, rule, *lines))


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


def html(title: str, run: Run, pictures: Mapping[str, str]) -> str:
    """The whole file; pictures are links by the experiment's name."""
    contents = "".join(
        f'<li><a href="#{each.what}">{escape(each.what)}</a>: {escape(each.title)}</li>'
        for each, _ in run
    )
    sections = "".join(_html_section(each, report, pictures[each.what]) for each, report in run)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n<ul>{contents}</ul>\n{sections}</body></html>\n"
    )


def _html_section(each: Experiment, report: Reproduction, picture: str) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    legend = f"<p>{escape(LEGEND)}</p>" if report.printed else ""
    tables = "".join(_html_table(table, report) for table in each.tables)
    return (
        f'<h2 id="{each.what}">{escape(each.what)}: {escape(each.title)}</h2>\n'
        f'<p class="source">{escape(each.source)}; {escape(each.about(report))}.</p>\n'
        f"{tables}{legend}<ul>{notes}</ul>\n"
        f'<p><img src="{picture}" alt="{escape(each.title)}"></p>\n'
    )


def _html_table(table: Table, report: Reproduction) -> str:
    headings, is_text, lines = wide_lines(table, report)
    title = f"<h3>{escape(table.title)}</h3>" if table.title else ""
    kinds = [_html_kind(*pair) for pair in zip(headings, is_text, strict=True)]
    head = "".join(_html_cell("th", *pair) for pair in zip(headings, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(_html_cell('td', *pair) for pair in zip(line, kinds, strict=True))}</tr>\n"
        for line in lines
    )
    return f'{title}<div class="table"><table><tr>{head}</tr>\n{body}</table></div>\n'


def _html_kind(heading: str, is_text: bool) -> str:
    return "name" if is_text else "printed" if heading == PRINTED else ""


def _html_cell(tag: str, text: str, kind: str) -> str:
    figure = tag == "td" and kind != "name"  # a method's name may end so: DLS*
    marked = " differs" if figure and text.endswith(MARK) else ""
    classes = f"{kind}{marked}".strip()
    return f'<{tag} class="{classes}">{escape(text)}</{tag}>'
