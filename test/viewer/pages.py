# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik view`` as a separate process, on an unused port."""

import contextlib
import signal
import subprocess

from programs import COMMAND, LONG, environment


@contextlib.contextmanager
def view(*arguments):
    """Yield the process and its URL while it serves."""
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
