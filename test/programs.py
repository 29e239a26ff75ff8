# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Programs of this tree in separate processes."""

import os
import subprocess
import sys

from robots import ROOT

COMMAND = [sys.executable, "-m", "dls_ik.cli"]
LONG = 300.0  # [s] timeout of a process on a busy machine that may compile kernels


def environment(**more):
    """Return the environment variables of this process, with the package of this tree."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def run_python(*words, cwd=None, **variables):
    """Run Python with arguments until it exits, and return its output as text."""
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env=environment(**variables),
        capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip


def run_command(*words, **variables):
    """Run ``dls-ik`` with arguments."""
    return run_python(*COMMAND[1:], *words, **variables)
