"""Things tried in other processes, so that none can take this one along."""

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
from typing import IO

from dls_ik.cli.doctor.finding import BROKEN, one_line

CODE = (
    "import sys; sys.path[:] = {path!r}; from dls_ik.cli.doctor.worker import main; main({names!r})"
)
PATIENCE = 60.0  # [s] for one thing
BRIEF, GRACE = 0.5, 12.0  # [s] to end by itself, and when it is told
LONGEST = {"kernels": 600.0, "ik_node": 180.0}  # [s]

State = tuple[str, str]  # and words


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
        patience = LONGEST.get(name, PATIENCE)
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
