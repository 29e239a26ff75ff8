"""The report for a person."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text

from dls_ik.cli.doctor.finding import MISSING, Finding
from dls_ik.cli.tables import stdout_console


def print_findings(findings: Sequence[Finding], styles: Mapping[str, str]) -> None:
    """Print the sections; what mends a thing stands below the words about it."""
    console = stdout_console()
    width = max(len(finding.name) for finding in findings)
    for section, rows in groupby(findings, key=lambda finding: finding.section):
        console.print(Text(section, style="bold"))
        grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_column(no_wrap=True, min_width=width + 2)
        grid.add_column(no_wrap=True, min_width=len(MISSING))
        grid.add_column(overflow="fold")
        for _, name, state, words, mend in rows:
            told = Text(words)
            if mend:
                told.append(f"\n{mend}", style="cyan")
            grid.add_row(f"  {name}", Text(state, style=styles[state]), told)
        console.print(grid)
