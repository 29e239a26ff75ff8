"""``dls-ik doctor``: what is installed, what works, and how to mend the rest.

Checks run in other processes, so that none can crash this one.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby
from typing import IO, TYPE_CHECKING

import click

from dls_ik.cli.doctor_checks import (
    BROKEN,
    CORE,
    FIXED_CHECKS,
    MISSING,
    NODE_CHECKS,
    OK,
    PATIENCE,
    TESTS,
    Check,
    Finding,
    one_line,
    python_finding,
    ros_checks,
    ros_findings,
)

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {OK: "green", MISSING: "yellow", BROKEN: "bold red"}
UNHEALTHY = 1  # exit code
CODE = (
    "import sys; sys.path[:] = {path!r}; from dls_ik.cli.doctor_checks import main; main({names!r})"
)
END_TIMEOUT, SIGINT_TIMEOUT = 0.5, 12.0  # [s] for a process to end, and after SIGINT
Tell = Callable[[str], None]


@click.command(epilog="Exit codes: 0 what is needed works, 1 something is broken.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(as_json: bool) -> None:
    """Say what is installed, which parts work, and how to mend the rest.

    Everything is tried in other processes: a solve, a message from one process to another, a node
    that starts and answers. The first time kernels may be compiled, which takes a minute.
    """
    from dls_ik import __version__

    findings = _examine_with_status()
    trouble = [finding.name for finding in findings if _is_trouble(finding)]
    if as_json:
        rows = [finding._asdict() for finding in findings]
        document = {"dls_ik": __version__, "ok": not trouble, "findings": rows}
        click.echo(json.dumps(document, indent=2))
    else:
        _print_findings(findings)
        counts = Counter(finding.state for finding in findings)
        end = f"mend {', '.join(trouble)}" if trouble else "what is needed works"
        click.echo(f"{', '.join(f'{counts[state]} {state}' for state in STYLES)}: {end}")
    if trouble:
        sys.exit(UNHEALTHY)


def _is_trouble(finding: Finding) -> bool:
    return finding.state == BROKEN or (finding.state == MISSING and finding.section == CORE)


# Findings


def _examine_with_status() -> list[Finding]:
    """Run all checks; a terminal shows which one."""
    try:
        from rich.console import Console
    except ImportError:  # a check may find that rich is missing
        return _examine(lambda name: None)
    with Console(stderr=True).status("looking") as status:
        return _examine(lambda name: status.update(f"looking at {name}"))


def _examine(tell: Tell) -> list[Finding]:
    """Run all checks; `tell` gets the name of each before."""
    checks_of_ros = ros_checks()
    results = run_checks([check.name for check in (*FIXED_CHECKS, *checks_of_ros)], tell)
    found = [python_finding(), *(_finding(check, *results[check.name]) for check in FIXED_CHECKS)]
    ros = [*ros_findings(), *(_finding(check, *results[check.name]) for check in checks_of_ros)]
    obstacles = [finding for finding in ros if finding.state != OK and _node_needs(finding.name)]
    if obstacles:
        reason, mend = f"without {obstacles[0].name}", obstacles[0].mend
        node = [Finding(each.section, each.name, MISSING, reason, mend) for each in NODE_CHECKS]
    else:
        results = run_checks([check.name for check in NODE_CHECKS], tell)
        node = [_finding(check, *results[check.name]) for check in NODE_CHECKS]
    return [*found, *ros, *node]


def _node_needs(name: str) -> bool:
    return name == "rclpy" or "_msgs" in name or "interfaces" in name


def _finding(check: Check, state: str, words: str) -> Finding:
    name = check.name.partition(".")[0] if check.name.endswith((".msg", ".srv")) else check.name
    if state == MISSING and check.use:
        words = f"{words}; for {check.use}"
    return Finding(check.section, name, state, words, "" if state == OK else check.mend)


# Print


def _print_findings(findings: list[Finding]) -> None:
    try:
        from dls_ik.cli.terminal import stdout_console
    except ImportError:
        for section, name, state, words, mend in findings:
            click.echo(f"{section}: {name}: {state}: {words}" + (f": {mend}" if mend else ""))
    else:
        _print_sections(stdout_console(), findings)


def _print_sections(console: Console, findings: list[Finding]) -> None:
    """Print a table for each section; commands that mend stand below the words."""
    from rich.table import Table
    from rich.text import Text

    width = max(len(finding.name) for finding in findings)
    for section, rows in groupby(findings, key=lambda finding: finding.section):
        console.print(Text(section, style="bold"))
        grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_column(no_wrap=True, min_width=width + 2)
        grid.add_column(no_wrap=True, min_width=len(MISSING))
        grid.add_column(overflow="fold")
        for _, name, state, words, mend in rows:
            text = Text(words).append(f"\n{mend}" if mend else "", style="cyan")
            grid.add_row(f"  {name}", Text(state, style=STYLES[state]), text)
        console.print(grid)


# Processes


def run_checks(names: Iterable[str], tell: Tell) -> dict[str, tuple[str, str]]:
    """Run checks in order, in one process as long as none of them ends it.

    Args:
        tell: called with the name of each before.

    Returns:
        State and words of each.
    """
    left = list(names)
    found: dict[str, tuple[str, str]] = {}
    while left:
        reason = _run_in_process(left, found, tell)
        left = [name for name in left if name not in found]
        if left:
            found[left.pop(0)] = (BROKEN, reason)
    return found


def _run_in_process(names: list[str], found: dict[str, tuple[str, str]], tell: Tell) -> str:
    """Add results of a process to `found`; return why it did not finish."""
    code = CODE.format(path=sys.path, names=names)
    with _scratch_file() as errors:
        process = subprocess.Popen(  # noqa: S603  this Python, with code of this package
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, bufsize=0
        )
        try:
            reason = _receive(process, names, found, tell)
        finally:
            _stop(process)
        return reason or _exit_reason(process.returncode, errors)


def _scratch_file() -> IO[str]:
    """Open a file without a name; in memory if possible, as no folder may be writable."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("errors"), "w+")
    return tempfile.TemporaryFile("w+")


def _receive(
    process: subprocess.Popen[bytes],
    names: list[str],
    found: dict[str, tuple[str, str]],
    tell: Tell,
) -> str:
    """Read a line for each check; return the reason if one takes too long."""
    output = process.stdout
    assert output is not None  # noqa: S101  for mypy
    for name in names:
        tell(name)
        patience = TESTS[name].patience if name in TESTS else PATIENCE
        if not select.select([output], [], [], patience)[0]:
            return f"no end of it within {patience:g} s"
        line = output.readline()
        if not line:
            process.wait()
            break
        key, state, words = json.loads(line)
        found[key] = (state, words)
    return ""


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, with SIGINT first, so that it can end its own children."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_TIMEOUT)
        return
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(SIGINT_TIMEOUT)
        return
    process.kill()
    process.wait()


def _exit_reason(code: int, errors: IO[str]) -> str:
    if code < 0:
        return f"it ends the process with {signal.Signals(-code).name}"
    errors.seek(0)
    lines = [line for line in errors.read().splitlines() if line.strip()]
    return one_line(f"it ends the process with code {code}: {lines[-1] if lines else 'no message'}")
