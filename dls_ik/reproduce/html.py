"""Reports in HTML: one file, nothing to fetch."""

from collections.abc import Mapping, Sequence
from html import escape

from dls_ik.reproduce.experiment import Experiment
from dls_ik.reproduce.report import Reproduction
from dls_ik.reproduce.table import LEGEND, MARK, PRINTED, Table, wide_lines

Run = Sequence[tuple[Experiment, Reproduction]]

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


def document(title: str, run: Run, pictures: Mapping[str, str]) -> str:
    """The whole file; pictures are links by the experiment's name."""
    contents = "".join(
        f'<li><a href="#{each.what}">{escape(each.what)}</a>: {escape(each.title)}</li>'
        for each, _ in run
    )
    sections = "".join(_section(each, report, pictures[each.what]) for each, report in run)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n<ul>{contents}</ul>\n{sections}</body></html>\n"
    )


def _section(each: Experiment, report: Reproduction, picture: str) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    legend = f"<p>{escape(LEGEND)}</p>" if report.printed else ""
    tables = "".join(_table(table, report) for table in each.tables)
    return (
        f'<h2 id="{each.what}">{escape(each.what)}: {escape(each.title)}</h2>\n'
        f'<p class="source">{escape(each.source)}; {escape(each.about(report))}.</p>\n'
        f"{tables}{legend}<ul>{notes}</ul>\n"
        f'<p><img src="{picture}" alt="{escape(each.title)}"></p>\n'
    )


def _table(table: Table, report: Reproduction) -> str:
    headings, is_text, lines = wide_lines(table, report)
    title = f"<h3>{escape(table.title)}</h3>" if table.title else ""
    kinds = [_kind(*pair) for pair in zip(headings, is_text, strict=True)]
    head = "".join(_cell("th", *pair) for pair in zip(headings, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell('td', *pair) for pair in zip(line, kinds, strict=True))}</tr>\n"
        for line in lines
    )
    return f'{title}<div class="table"><table><tr>{head}</tr>\n{body}</table></div>\n'


def _kind(heading: str, is_text: bool) -> str:
    return "name" if is_text else "printed" if heading == PRINTED else ""


def _cell(tag: str, text: str, kind: str) -> str:
    figure = tag == "td" and kind != "name"  # a method's name may end so: DLS*
    marked = " differs" if figure and text.endswith(MARK) else ""
    classes = f"{kind}{marked}".strip()
    return f'<{tag} class="{classes}">{escape(text)}</{tag}>'
