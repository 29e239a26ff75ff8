"""``dls-ik view`` as a process of its own, on a port that is free."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONG = 120.0  # [s] for a process on a busy machine


def command(*arguments):
    return [sys.executable, "-m", "dls_ik.cli", "view", *map(str, arguments)]


def environment():
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def run(*arguments):
    """The command, ended by itself."""
    return subprocess.run(
        command(*arguments),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )


@contextlib.contextmanager
def view(*arguments):
    """The command while it serves; with its URL."""
    process = subprocess.Popen(
        command("--port", 0, "--no-browser", *arguments),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("http://localhost:"), line + process.stderr.read()
        process.url = line.split()[0]
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.said, process.complained = process.communicate(timeout=LONG)
