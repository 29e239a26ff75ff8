# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik doctor``: test of the installation, with commands that fix or install missing parts.

The checks run in other processes, so that a crash in a check does not end the command.
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
    CHECK_BROKEN,
    CHECK_MISSING,
    CHECK_OK,
    NODE_CHECKS,
    SECTION_NEEDED,
    SECTION_ROS,
    Check,
    Finding,
    checks,
    one_line,
    robot_checks,
)

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {CHECK_OK: "green", CHECK_MISSING: "yellow", CHECK_BROKEN: "bold red"}
UNHEALTHY = 1  # exit code if a needed part does not work
CODE = (
    "import sys; sys.path[:] = {path!r}; from dls_ik.cli.doctor_checks import main; "
    "main({names!r}, {robot!r})"
)
END_TIMEOUT, SIGINT_TIMEOUT = 0.5, 12.0  # [s] times to wait before SIGINT and before SIGKILL
Tell = Callable[[str], None]  # called with the name of a check before the check runs


@click.command(epilog="Exit codes: 0 all needed parts work, 1 a needed part does not.")
@click.argument("robot", default="")
@output.json_option
def doctor(robot: str, as_json: bool) -> None:
    """Show which parts are installed and work, and how to fix or install the other parts.

    The parts are tested in other processes. Among the tests are a solve, a message between two
    processes, and a node that starts and answers. The first run may compile kernels, which takes a
    minute.

    If ROBOT is given, a name or a file as for dls-ik info, its description and its collision
    geometry are checked too.
    """
    findings = _examine_with_status(robot)
    trouble = [
        finding.name
        for finding in findings
        if finding.state == CHECK_BROKEN
        or (finding.state == CHECK_MISSING and finding.section == SECTION_NEEDED)
    ]
    if as_json:
        rows = [finding._asdict() for finding in findings]
        output.print_json({"dls_ik": __version__, "ok": not trouble, "findings": rows})
    else:
        _print_findings(findings)
        counts = Counter(finding.state for finding in findings)
        end = f"to fix: {', '.join(trouble)}" if trouble else "all needed parts work"
        click.echo(f"{', '.join(f'{counts[state]} {state}' for state in STYLES)}: {end}")
    if trouble:
        sys.exit(UNHEALTHY)


# Findings


def _examine_with_status(robot: str) -> list[Finding]:
    """Run all checks, and show the name of the current check if stderr is a terminal."""
    try:
        from rich.console import Console
    except ImportError:  # a check may find that rich is missing
        return _examine(lambda name: None, robot)
    with Console(stderr=True).status("checking") as status:
        return _examine(lambda name: status.update(f"checking {name}"), robot)


def _examine(tell: Tell, robot: str) -> list[Finding]:
    """Run all checks, and return their findings.

    Checks that start a ROS node run only if the ROS packages that the node needs can be imported;
    otherwise, their findings name the missing package.

    Args:
        tell: Called with the name of each check before the check runs.
        robot: Name or file of a robot that is also checked; empty for none.
    """
    found = check_robot(robot, tell) if robot else []
    found += run_checks(checks(), tell)
    obstacles = [each for each in found if each.state != CHECK_OK and _stops_node(each)]
    if not obstacles:
        return [*found, *run_checks(NODE_CHECKS, tell)]
    about = CHECK_MISSING, f"without {obstacles[0].name}", obstacles[0].mend
    return [*found, *(Finding(check.section, check.name, *about) for check in NODE_CHECKS)]


def check_robot(robot: str, tell: Tell) -> list[Finding]:
    """Check a robot's description and collision geometry, and return the findings.

    If the description is not valid, the finding about the geometry is left out.

    Args:
        robot: Name or file of the robot.
        tell: Called with the name of each check before the check runs.
    """
    description, geometry = run_checks(robot_checks(robot), tell, robot)
    return [description] if description.state == CHECK_BROKEN else [description, geometry]


def _stops_node(finding: Finding) -> bool:
    """Return whether a finding is about a ROS package without which no node can run."""
    name = finding.name
    return finding.section == SECTION_ROS and (
        name == "rclpy" or "_msgs" in name or "interfaces" in name
    )


# Print


def _print_findings(findings: list[Finding]) -> None:
    """Print findings as tables, or as plain lines if the package rich is not installed."""
    try:
        from dls_ik.cli.terminal import stdout_console
    except ImportError:
        for section, name, state, words, mend in findings:
            click.echo(f"{section}: {name}: {state}: {words}" + (f": {mend}" if mend else ""))
    else:
        _print_sections(stdout_console(), findings)


def _print_sections(console: Console, findings: list[Finding]) -> None:
    """Print a table of findings for each section, with commands that fix findings."""
    from rich.table import Table
    from rich.text import Text

    width = max(len(finding.name) for finding in findings)
    for section, rows in groupby(findings, key=lambda finding: finding.section):
        console.print(Text(section, style="bold"))
        grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_column(no_wrap=True, min_width=width + 2)
        grid.add_column(no_wrap=True, min_width=len(CHECK_MISSING))
        grid.add_column(overflow="fold")
        for _, name, state, words, mend in rows:
            text = Text(words).append(f"\n{mend}" if mend else "", style="cyan")
            grid.add_row(f"  {name}", Text(state, style=STYLES[state]), text)
        console.print(grid)


# Processes


def run_checks(checks: Sequence[Check], tell: Tell, robot: str = "") -> list[Finding]:
    """Run checks in order in another process, and return the finding of each check.

    If a check crashes the process or times out, the remaining checks run in a new process.

    Args:
        checks: Checks to run.
        tell: Called with the name of each check before the check runs.
        robot: Name or file of the robot for the checks of :func:`robot_checks`; empty for none.
    """
    found: list[Finding] = []
    while rest := checks[len(found) :]:
        found += _run_in_process(rest, tell, robot)
    return found


def _run_in_process(checks: Sequence[Check], tell: Tell, robot: str) -> list[Finding]:
    """Run checks in a new process, and return the findings of the checks that ran.

    If a check crashes or times out, the last finding contains the reason, and later checks have no
    finding.
    """
    code = CODE.format(path=sys.path, names=[check.name for check in checks], robot=robot)
    found: list[Finding] = []
    with _scratch_file() as errors:
        process = subprocess.Popen(  # noqa: S603  runs code of this package
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, bufsize=0
        )
        try:
            reason = _receive(process, checks, found, tell)
        finally:
            _stop(process)
        if len(found) < len(checks):
            reason = reason or _exit_reason(process.returncode, errors)
            found.append(checks[len(found)].finding(CHECK_BROKEN, reason))
    return found


def _scratch_file() -> IO[str]:
    """Return a temporary file, in memory if the system supports that, as disks may be read-only."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("errors"), "w+")
    return tempfile.TemporaryFile("w+")


def _receive(
    process: subprocess.Popen[bytes], checks: Sequence[Check], found: list[Finding], tell: Tell
) -> str:
    """Read the result of each check from a process, and append a finding for each to `found`.

    Returns:
        A message if a check timed out, or "" if all results were read or the process exited.
    """
    results = process.stdout
    assert results is not None  # noqa: S101  for mypy
    for check in checks:
        tell(check.name)
        if not select.select([results], [], [], check.timeout)[0]:
            return f"no result within {check.timeout:g} s"
        line = results.readline()
        if not line:
            process.wait()
            break
        found.append(check.finding(*json.loads(line)))
    return ""


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process to exit; send SIGINT, then SIGKILL, if it does not exit in time.

    SIGINT comes first, because it lets the process stop its own child processes.
    """
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
    """Return a message that explains why a process exited before its last check.

    Args:
        code: Exit code of the process; negative for a signal.
        errors: File with the stderr of the process.
    """
    if code < 0:
        return f"the check ended its process with {signal.Signals(-code).name}"
    errors.seek(0)
    lines = [line for line in errors.read().splitlines() if line.strip()]
    message = lines[-1] if lines else "no message"
    return one_line(f"the check ended its process with code {code}: {message}")
