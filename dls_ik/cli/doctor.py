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
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import IO, TYPE_CHECKING

import click

from dls_ik import __version__
from dls_ik.cli import output
from dls_ik.cli.doctor_checks import (
    BROKEN,
    CORE,
    MISSING,
    NODE_CHECKS,
    OK,
    ROS,
    Check,
    Finding,
    checks,
    one_line,
    robot_checks,
)

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {OK: "green", MISSING: "yellow", BROKEN: "bold red"}
UNHEALTHY = 1  # exit code
CODE = (
    "import sys; sys.path[:] = {path!r}; from dls_ik.cli.doctor_checks import main; "
    "main({names!r}, {robot!r})"
)
END_TIMEOUT, SIGINT_TIMEOUT = 0.5, 12.0  # [s] for a process to end, and after SIGINT
Tell = Callable[[str], None]


@click.command(epilog="Exit codes: 0 what is needed works, 1 something is broken.")
@click.argument("robot", default="")
@output.json_option
def doctor(robot: str, as_json: bool) -> None:
    """Say what is installed, which parts work, and how to mend the rest.

    Everything is tried in other processes: a solve, a message from one process to another, a node
    that starts and answers. The first time kernels may be compiled, which takes a minute.

    With a ROBOT, a name or a file as for dls-ik info, its description and its collision geometry
    are checked too.
    """
    findings = _examine_with_status(robot)
    trouble = [
        finding.name
        for finding in findings
        if finding.state == BROKEN or (finding.state == MISSING and finding.section == CORE)
    ]
    if as_json:
        rows = [finding._asdict() for finding in findings]
        output.print_json({"dls_ik": __version__, "ok": not trouble, "findings": rows})
    else:
        _print_findings(findings)
        counts = Counter(finding.state for finding in findings)
        end = f"mend {', '.join(trouble)}" if trouble else "what is needed works"
        click.echo(f"{', '.join(f'{counts[state]} {state}' for state in STYLES)}: {end}")
    if trouble:
        sys.exit(UNHEALTHY)


# Findings


def _examine_with_status(robot: str) -> list[Finding]:
    """Run all checks; a terminal shows which one."""
    try:
        from rich.console import Console
    except ImportError:  # a check may find that rich is missing
        return _examine(lambda name: None, robot)
    with Console(stderr=True).status("looking") as status:
        return _examine(lambda name: status.update(f"looking at {name}"), robot)


def _examine(tell: Tell, robot: str) -> list[Finding]:
    """Run all checks; `tell` gets the name of each before."""
    found = run_checks(robot_checks(robot), tell, robot) if robot else []
    found += run_checks(checks(), tell)
    obstacles = [each for each in found if each.state != OK and _stops_node(each)]
    if not obstacles:
        return [*found, *run_checks(NODE_CHECKS, tell)]
    about = MISSING, f"without {obstacles[0].name}", obstacles[0].mend
    return [*found, *(Finding(check.section, check.name, *about) for check in NODE_CHECKS)]


def _stops_node(finding: Finding) -> bool:
    name = finding.name
    return finding.section == ROS and (name == "rclpy" or "_msgs" in name or "interfaces" in name)


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


def run_checks(checks: Sequence[Check], tell: Tell, robot: str = "") -> list[Finding]:
    """Run checks in order, in one process as long as none of them ends it.

    Args:
        checks: Checks to run.
        tell: Function that is called with the name of each check before it runs.
        robot: Robot of the checks of :func:`robot_checks`.
    """
    found: list[Finding] = []
    while rest := checks[len(found) :]:
        found += _run_in_process(rest, tell, robot)
    return found


def _run_in_process(checks: Sequence[Check], tell: Tell, robot: str) -> list[Finding]:
    """Return the findings of a process; where it does not finish, the last one says why."""
    code = CODE.format(path=sys.path, names=[check.name for check in checks], robot=robot)
    found: list[Finding] = []
    with _scratch_file() as errors:
        process = subprocess.Popen(  # noqa: S603  this Python, with code of this package
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, bufsize=0
        )
        try:
            reason = _receive(process, checks, found, tell)
        finally:
            _stop(process)
        if len(found) < len(checks):
            reason = reason or _exit_reason(process.returncode, errors)
            found.append(checks[len(found)].finding(BROKEN, reason))
    return found


def _scratch_file() -> IO[str]:
    """Open a file without a name; in memory if possible, as no folder may be writable."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("errors"), "w+")
    return tempfile.TemporaryFile("w+")


def _receive(
    process: subprocess.Popen[bytes], checks: Sequence[Check], found: list[Finding], tell: Tell
) -> str:
    """Read a line for each check; return the reason if one takes too long."""
    results = process.stdout
    assert results is not None  # noqa: S101  for mypy
    for check in checks:
        tell(check.name)
        if not select.select([results], [], [], check.patience)[0]:
            return f"no end of it within {check.patience:g} s"
        line = results.readline()
        if not line:
            process.wait()
            break
        found.append(check.finding(*json.loads(line)))
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
