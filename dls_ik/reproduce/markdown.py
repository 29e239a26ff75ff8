"""Reports in Markdown."""

from collections.abc import Mapping, Sequence

from dls_ik.reproduce.experiment import Experiment
from dls_ik.reproduce.report import Reproduction
from dls_ik.reproduce.table import LEGEND, Table, wide_lines

Run = Sequence[tuple[Experiment, Reproduction]]


def document(title: str, run: Run, pictures: Mapping[str, str]) -> str:
    """The whole file; pictures are links by the experiment's name."""
    sections = [_section(each, report, pictures[each.what]) for each, report in run]
    return "\n\n".join([f"# {title}", *sections]) + "\n"


def _section(each: Experiment, report: Reproduction, picture: str) -> str:
    parts = [f"## {each.what}: {each.title}", f"{each.source}; {each.about(report)}."]
    for table in each.tables:
        parts += [f"**{table.title}**"] if table.title else []
        parts.append(_table(table, report))
    parts += [LEGEND] if report.printed else []
    parts.append("\n".join(f"- {note}" for note in report.notes))
    parts.append(f"![{each.title}]({picture})")
    return "\n\n".join(part for part in parts if part)


def _table(table: Table, report: Reproduction) -> str:
    headings, is_text, lines = wide_lines(table, report)
    rule = [":--" if text else "--:" for text in is_text]
    return "\n".join(_row(cells) for cells in (headings, rule, *lines))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
