# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Processes of the peers, and their environment, which is separate from that of dls_ik."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.arm import Arm
from benchmarks.peers.solver import Found
from dls_ik import DlsIkError

ROOT = Path(__file__).resolve().parents[2]
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")
START_TIME = 2400.0  # [s] generators of closed forms may take half an hour
GRACE = 60.0  # [s] allowed in addition to the time of a block
REQUIREMENTS = ROOT / "requirements" / "peers.txt"
FOLDER = Path("~/.cache/dls_ik/peers").expanduser()
STAMP = "dls_ik_peers.json"


class PeerError(Exception):
    """Error of a peer that cannot be run, or stopped answering."""


class Peer:
    """Process that solves blocks of poses with the solvers of one peer."""

    def __init__(self, name: str, python: str, arm: Arm) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - until the end
        ours, theirs = Pipe()
        number = theirs.fileno()
        command = [python, "-m", "benchmarks.peers.worker", name, str(number)]
        threads = {f"{name}_NUM_THREADS": "1" for name in THREADS}
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **threads, "PYTHONPATH": str(ROOT)},
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is the parent's, which then ends them all
        )
        theirs.close()
        self._connection = ours
        self._send(arm)

    def described(self) -> tuple[dict[str, tuple[str, bool]], dict[str, str]]:
        """Return setting and is_batch of each row, and versions.

        Raises:
            PeerError: If the peer is not installed, or does not support this arm.
        """
        answer = self._received(START_TIME)
        if isinstance(answer, str):
            raise PeerError(answer)
        return answer

    def solve(
        self, row: str, Ts: np.ndarray, seeds: np.ndarray, seconds: float, grace: float = GRACE
    ) -> Found:
        """Return answers to as many poses as the time [s] allows; the last may exceed the time.

        Raises:
            PeerError: If the process exited, or does not answer.
        """
        self._send((row, Ts, seeds, seconds))
        return Found(*self._received(seconds + grace))

    def close(self) -> None:
        """Kill the process and its children."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()

    def _send(self, message: Any) -> None:
        try:
            self._connection.send(message)
        except OSError:
            raise PeerError(self._reason()) from None

    def _received(self, seconds: float) -> Any:
        try:
            if not self._connection.poll(seconds):
                raise PeerError(f"no answer within {seconds:g} s")
            return self._connection.recv()
        except (EOFError, OSError):
            raise PeerError(self._reason()) from None

    def _reason(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return f"its process ended with {code}: {lines[-1] if lines else 'no word'}"


# Environment


def pinned(requirements: Path) -> list[str]:
    """Return the lines of a file of requirements."""
    lines = (line.partition("#")[0].strip() for line in requirements.read_text().splitlines())
    return [line for line in lines if line]


def prepared(
    folder: Path, say: Callable[[str], None], requirements: Path = REQUIREMENTS
) -> tuple[str, dict[str, str]]:
    """Create the environment, or use the existing one.

    Args:
        folder: Folder of the environment.
        say: Function that prints a line.
        requirements: File with the packages of the environment.

    Returns:
        Its Python, and the reason for each requirement that could not be installed.

    Raises:
        DlsIkError: If the environment cannot be created.
    """
    python, stamp = folder / "bin" / "python", folder / STAMP
    lines = pinned(requirements)
    key = hashlib.sha256(f"{sys.base_prefix} {sys.version} {lines}".encode()).hexdigest()
    if stamp.is_file():
        made = json.loads(stamp.read_text())
        if made["key"] == key:
            return str(python), made["missing"]
    elif folder.exists() and any(folder.iterdir()):
        raise DlsIkError(f"{folder} is not an environment of the peers: name a new folder")
    say(f"peers: installing {requirements.name} into {folder}; all peers take 1.4 GB, a minute")
    base = str(getattr(sys, "_base_executable", sys.executable))
    if why := _failure(base, "-m", "venv", "--clear", "--system-site-packages", str(folder)):
        raise DlsIkError(f"cannot make {folder}: {why}")
    _mark(stamp, "", {})  # an interrupted installation is made again
    install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    install += ["--only-binary", ":all:"]
    missing = {}
    if _failure(*install, *lines):  # one after the other, to find the reason
        found = {line: _failure(*install, line) for line in lines}
        missing = {line: why for line, why in found.items() if why}
    _mark(stamp, "" if missing else key, missing)
    return str(python), missing


def _mark(stamp: Path, key: str, missing: dict[str, str]) -> None:
    stamp.write_text(json.dumps({"key": key, "missing": missing}, indent=2) + "\n")


def _failure(*command: str) -> str:
    """Run a command, and return the line that explains its failure, or an empty string."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    lines = (done.stderr or done.stdout).strip().splitlines()
    reasons = [line for line in lines if "ERROR" in line] or lines
    return reasons[-1].strip() if reasons else f"exit code {done.returncode}"
