# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The folder in which a page is followed: a checkout in which nothing that is written stays."""

import os
import re
import shutil
import sys
from pathlib import Path

from docs_pages import ROOT, blocks
from docs_table import ARM_FILE
from prefork import FIRST_ENVIRONMENT, READ_LATE

PROGRAMS = {
    "dls-ik": "dls_ik.cli",
    "ik_node": "dls_ik.ros.node",
    "ik_sim_arm": "dls_ik.ros.sim_arm.node",
}
WRITTEN = ("docs",)  # folders that commands write into: copied, all else is linked
LEFT_OUT = ("dls_ik", "build", "install", "log", "demo_output")  # the package would be another one


def make(folder: Path, page: str) -> Path:
    """A folder that looks like a checkout with its ``.venv``, and the files a page shows."""
    for path in ROOT.iterdir():
        if path.name in WRITTEN:
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("_build"))
        elif not path.name.startswith(".") and path.name not in LEFT_OUT:
            (folder / path.name).symlink_to(path)
    arm = (ROOT / "test" / "urdf" / "ur10e.urdf").read_text()
    (folder / ARM_FILE).write_text(arm.replace('"tip"', '"tool0"'))
    for block in blocks(page):
        if "ros__parameters" in block.text and not (folder / "arm.yaml").exists():
            (folder / "arm.yaml").write_text(block.text)
        named = re.match(r"# (\w+\.py)\n", block.text)  # a file that the page names
        if named:
            (folder / named[1]).write_text(block.text)
    _make_programs(folder / ".venv" / "bin")
    return folder


def environment(folder: Path) -> dict[str, str]:
    """With the programs of the package, which run from this source tree."""
    path = [str(folder / ".venv" / "bin"), os.environ.get("PATH", "")]
    modules = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": os.pathsep.join(filter(None, modules)),
        "PYTHONUNBUFFERED": "1",
    }


def environment_of_programs() -> dict[str, str]:
    """Return an environment in which prefork.py can fork programs, with unbuffered output."""
    own = {name: value for name, value in os.environ.items() if name.startswith(READ_LATE)}
    first = {k: v for k, v in FIRST_ENVIRONMENT.items() if not k.startswith(READ_LATE)}
    return {**first, **own, "PYTHONUNBUFFERED": "1"}


def _make_programs(folder: Path) -> None:
    folder.mkdir(parents=True)
    calls = {name: f"-m {module}" for name, module in PROGRAMS.items()}
    for name, call in {**calls, "python": "", "python3": ""}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (folder / name).chmod(0o755)
