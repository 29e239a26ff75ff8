"""Interpreters of this machine, whoever installed them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SAY_VERSION = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"


def find_first(versions: tuple[str, ...]) -> tuple[str, str] | None:
    """The path and version of the first of these that is here, or None."""
    return next(((path, each) for each in versions if (path := find(each))), None)


def find(version: str) -> str | None:
    """An interpreter of a version such as 3.12 that can make virtual environments, or None."""
    return next((path for path in _candidates(version) if _is(path, version)), None)


def why_not(versions: tuple[str, ...]) -> str:
    """What to say where none is found."""
    names = " or ".join(versions)
    return f"no Python {names} with venv on PATH, from pyenv or from uv"


def _candidates(version: str) -> Iterator[str]:
    for folder in os.get_exec_path():
        yield from (str(Path(folder, name)) for name in (f"python{version}", "python3"))
    if root := os.environ.get("PYENV_ROOT") or _answer("pyenv", "root"):
        yield from map(str, sorted(Path(root, "versions").glob(f"{version}.*/bin/python")))
    if path := _answer("uv", "python", "find", "--no-project", version):
        yield path


def _answer(*command: str) -> str:
    """The one line that a program prints; empty where it is not here or objects."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _is(path: str, version: str) -> bool:
    """Shims of pyenv have the name of every version, and refuse to run most."""
    if not os.access(path, os.X_OK):
        return False
    done = subprocess.run([path, "-c", SAY_VERSION], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version
