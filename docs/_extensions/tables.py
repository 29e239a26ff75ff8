# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tables that can be read on a phone: each cell knows its heading, and names break at their joints.

A table of words that would not fit gets the class ``wide``; site.css turns its rows into blocks on
narrow screens, with the headings beside the cells. One of figures gets the class ``figures`` and
scrolls, its first column in place.
"""

import re
from html import escape, unescape
from typing import Any

from sphinx.application import Sphinx

TABLE = re.compile(r'<table class="([^"]*docutils[^"]*)">(.*?)</table>', re.DOTALL)
ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)
HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
CELL = re.compile(r"<td\b([^>]*)>(.*?)</td>", re.DOTALL)
NAME = re.compile(r'(<span class="pre">)([^<]*)(</span>)')
JOINT = re.compile(r"([_/.:=+])(?=\w)")  # where a name may break

PHONE = 350.0  # [px] of a table
LETTER, PADDING = 7.5, 17.0  # [px] of a character, of a cell
PROSE = 22  # characters of a line that reads well
DENSE = 8  # columns from which cells are smaller
MANY, SHORT, MOSTLY = 4, 12, 0.75  # columns; characters; share of short cells: a table of figures


def improve_tables(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Change the tables of a page."""
    if "body" in context:
        context["body"] = TABLE.sub(_improve, context["body"])


def _improve(found: re.Match[str]) -> str:
    classes, inner = found[1], found[2]
    headings = [_text(head) for head in HEAD.findall(inner)]
    rows = [CELL.findall(row) for row in ROW.findall(inner)]
    if not headings or any(len(row) not in (0, len(headings)) for row in rows):
        return found[0]
    if _width(headings, rows) > PHONE:
        classes += " figures" if _has_figures(rows) else " wide"
    if len(headings) >= DENSE:
        classes += " dense"
    inner = ROW.sub(lambda row: _labelled(row[0], headings), inner)
    return f'<table class="{classes}">{NAME.sub(_breakable, inner)}</table>'


def _text(cell: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", cell)).strip()


def _width(headings: list[str], rows: list[list[tuple[str, str]]]) -> float:
    """Estimate the width [px] at which all columns read well."""
    total = 0.0
    for i, heading in enumerate(headings):
        texts = [heading, *(_text(row[i][1]) for row in rows if row)]
        longest = max(len(text) for text in texts)
        word = max((len(word) for text in texts for word in text.split()), default=0)
        total += LETTER * max(min(longest, PROSE), word) + PADDING
    return total


def _has_figures(rows: list[list[tuple[str, str]]]) -> bool:
    """Return whether there are four columns or more, mostly of numbers."""
    cells = [_text(cell) for row in rows for _, cell in row[1:]]
    short = sum(len(cell) <= SHORT for cell in cells)
    return max(map(len, rows)) >= MANY and short >= MOSTLY * len(cells)


def _labelled(row: str, headings: list[str]) -> str:
    labels = iter(headings)

    def labelled(cell: re.Match[str]) -> str:
        mark = "" if _text(cell[2]) else " data-empty"
        return f'<td{cell[1]} data-label="{escape(next(labels))}"{mark}>{cell[2]}</td>'

    return CELL.sub(labelled, row)


def _breakable(found: re.Match[str]) -> str:
    return found[1] + JOINT.sub(r"\1<wbr>", found[2]) + found[3]


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to pages that are about to be written."""
    app.connect("html-page-context", improve_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
