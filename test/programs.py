# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Programs of this tree in processes of their own."""

import os
import subprocess
import sys

from robots import ROOT

COMMAND = [sys.executable, "-m", "dls_ik.cli"]
LONG = 300.0  # [s] for a process on a busy machine, whose kernels may have to be compiled


def environment(**more):
    """The variables of this process, with the package of this tree."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def run_python(*words, cwd=None, **variables):
    """Python with arguments, ended by itself, with its output as text."""
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env=environment(**variables),
        capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip


def run_command(*words, **variables):
    """``dls-ik`` with arguments."""
    return run_python(*COMMAND[1:], *words, **variables)
