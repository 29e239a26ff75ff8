"""``dls-ik doctor``: what is installed, what works, and what to do about the rest.

Checks are tried in other processes, so that none can take this one along.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby
from typing import IO, TYPE_CHECKING

import click

from dls_ik.cli.doctor_checks import (
    BROKEN,
    CORE,
    CORE_CHECKS,
    EXTRA_CHECKS,
    MISSING,
    NODE_CHECKS,
    OK,
    PART_CHECKS,
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
UNWELL = 1
CODE = (
    "import sys; sys.path[:] = {path!r}; from dls_ik.cli.doctor_checks import main; main({names!r})"
)
BRIEF, GRACE = 0.5, 12.0  # [s] to end by itself, and when it is told
State = tuple[str, str]  # and words


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
    try:
        from rich.console import Console
    except ImportError:  # one of the things that may be missing
        return _examine(lambda name: None)
    with Console(stderr=True).status("looking") as status:
        return _examine(lambda name: status.update(f"looking at {name}"))


def _print(findings: list[Finding]) -> None:
    try:
        from dls_ik.cli.terminal import stdout_console
    except ImportError:
        for section, name, state, words, mend in findings:
            click.echo(f"{section}: {name}: {state}: {words}" + (f": {mend}" if mend else ""))
    else:
        _print_table(stdout_console(), findings)
    click.echo(_verdict(findings))


def _print_table(console: Console, findings: list[Finding]) -> None:
    """Print the sections; what mends a thing stands below the words about it."""
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
            told = Text(words)
            if mend:
                told.append(f"\n{mend}", style="cyan")
            grid.add_row(f"  {name}", Text(state, style=STYLES[state]), told)
        console.print(grid)


def _verdict(findings: list[Finding]) -> str:
    counts = {state: sum(f.state == state for f in findings) for state in STYLES}
    trouble = [finding.name for finding in findings if _is_trouble(finding)]
    words = f"{counts[OK]} ok, {counts[MISSING]} missing, {counts[BROKEN]} broken"
    return f"{words}: mend {', '.join(trouble)}" if trouble else f"{words}: what is needed works"


def _examine(tell: Callable[[str], None]) -> list[Finding]:
    """Try everything; `tell` hears the name of each before."""
    checks, of_ros = [*CORE_CHECKS, *EXTRA_CHECKS, *PART_CHECKS], ros_checks()
    found = tried([check.name for check in (*checks, *of_ros)], tell)
    before = [python_finding(), *(_finding(check, found) for check in checks)]
    ros = [*ros_findings(), *(_finding(check, found) for check in of_ros)]
    broken = [finding for finding in ros if finding.state != OK and _is_needed(finding)]
    if broken:
        node = [
            Finding(check.section, check.name, MISSING, f"without {broken[0].name}", broken[0].mend)
            for check in NODE_CHECKS
        ]
    else:
        states = tried([check.name for check in NODE_CHECKS], tell)
        node = [_finding(check, states) for check in NODE_CHECKS]
    return [*before, *ros, *node]


def _is_needed(finding: Finding) -> bool:
    return finding.name == "rclpy" or "_msgs" in finding.name or "interfaces" in finding.name


def _finding(check: Check, found: dict[str, tuple[str, str]]) -> Finding:
    state, words = found[check.name]
    name = check.name.partition(".")[0] if check.name.endswith((".msg", ".srv")) else check.name
    if state == OK:
        return Finding(check.section, name, state, words)
    what = f"{words}; for {check.use}" if check.use and state == MISSING else words
    return Finding(check.section, name, state, what, check.mend)


def tried(names: Iterable[str], tell: Callable[[str], None]) -> dict[str, State]:
    """Try things in their order, in one process as long as none of them ends it.

    Args:
        tell: called with the name of each before it is tried.
    """
    left = list(names)
    found: dict[str, State] = {}
    while left:
        reason = _one_process(left, found, tell)
        left = [name for name in left if name not in found]
        if left:
            found[left[0]] = (BROKEN, reason)
            left = left[1:]
    return found


def _one_process(names: list[str], found: dict[str, State], tell: Callable[[str], None]) -> str:
    """Add to `found` what a process finds; return why it came no farther."""
    code = CODE.format(path=sys.path, names=names)
    with _scratch() as errors:
        process = subprocess.Popen(  # noqa: S603  this Python, with code of this package
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            reason = _listen(process, names, found, tell)
        finally:
            _stop(process)
        return reason or _end(process.returncode, errors)


def _scratch() -> IO[str]:
    """A file without a name, in memory where that can be: there may be no folder to write to."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("errors"), "w+")
    return tempfile.TemporaryFile("w+")


def _stop(process: subprocess.Popen[str]) -> None:
    """End it, first so that it can end what it started itself."""
    if not _has_ended(process, BRIEF):
        process.send_signal(signal.SIGINT)
        if not _has_ended(process, GRACE):
            process.kill()
            process.wait()


def _has_ended(process: subprocess.Popen[str], patience: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    return process.returncode is not None


def _listen(
    process: subprocess.Popen[str],
    names: list[str],
    found: dict[str, State],
    tell: Callable[[str], None],
) -> str:
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    for name in names:
        tell(name)
        patience = TESTS[name].patience if name in TESTS else PATIENCE
        try:
            line = lines.get(timeout=patience)
        except queue.Empty:
            return f"no end of it within {patience:g} s"
        if not line:
            process.wait()
            return ""
        named, state, words = json.loads(line)
        found[named] = (state, words)
    return ""


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    for line in process.stdout or ():
        lines.put(line)
    lines.put("")


def _end(code: int, errors: IO[str]) -> str:
    if code < 0:
        return f"it ends the process with {signal.Signals(-code).name}"
    errors.seek(0)
    last = [line for line in errors.read().splitlines() if line.strip()]
    return one_line(f"it ends the process with code {code}: {last[-1] if last else 'no words'}")
