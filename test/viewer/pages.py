# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik view`` as a process of its own, on a port that is free."""

import contextlib
import signal
import subprocess

from programs import COMMAND, LONG, environment


@contextlib.contextmanager
def view(*arguments):
    """The command while it serves; with its URL."""
    process = subprocess.Popen(
        [*COMMAND, "view", "--port", "0", "--no-browser", *map(str, arguments)],
        env=environment(PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1"),
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
