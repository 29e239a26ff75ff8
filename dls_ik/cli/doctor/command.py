"""The command ``dls-ik doctor``."""

from __future__ import annotations

import json
import sys

import click

from dls_ik.cli.doctor.catalogue import CORE
from dls_ik.cli.doctor.finding import BROKEN, MISSING, OK, Finding

STYLES = {OK: "green", MISSING: "yellow", BROKEN: "bold red"}
UNWELL = 1


@click.command(epilog="Exit codes: 0 what is needed works, 1 something is broken.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(as_json: bool) -> None:
    """Say what is installed, which parts work, and how to mend the rest.

    Everything is tried in other processes: a solve, a message from one process to another, a node
    that starts and answers. The first time kernels may be compiled, which takes a minute.
    """
    from dls_ik import __version__

    findings = _examined()
    healthy = not any(_is_trouble(finding) for finding in findings)
    if as_json:
        rows = [finding._asdict() for finding in findings]
        click.echo(json.dumps({"dls_ik": __version__, "ok": healthy, "findings": rows}, indent=2))
    else:
        _print(findings)
    if not healthy:
        sys.exit(UNWELL)


def _is_trouble(finding: Finding) -> bool:
    return finding.state == BROKEN or (finding.state == MISSING and finding.section == CORE)


def _examined() -> list[Finding]:
    """Look, and say on a terminal what is being looked at."""
    from dls_ik.cli.doctor.examination import examine

    try:
        from rich.console import Console
    except ImportError:  # one of the things that may be missing
        return examine(lambda name: None)
    with Console(stderr=True).status("looking") as status:
        return examine(lambda name: status.update(f"looking at {name}"))


def _print(findings: list[Finding]) -> None:
    try:
        from dls_ik.cli.doctor.table import print_findings
    except ImportError:
        for section, name, state, words, mend in findings:
            click.echo(f"{section}: {name}: {state}: {words}" + (f": {mend}" if mend else ""))
    else:
        print_findings(findings, STYLES)
    click.echo(_verdict(findings))


def _verdict(findings: list[Finding]) -> str:
    counts = {state: sum(f.state == state for f in findings) for state in STYLES}
    trouble = [finding.name for finding in findings if _is_trouble(finding)]
    words = f"{counts[OK]} ok, {counts[MISSING]} missing, {counts[BROKEN]} broken"
    return f"{words}: mend {', '.join(trouble)}" if trouble else f"{words}: what is needed works"
