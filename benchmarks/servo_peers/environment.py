# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Environments of the servo-level peers, and the processes in which they follow streams."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers.process import FOLDER, ROOT, THREADS, prepared
from benchmarks.servo_peers.adapters import PEERS
from benchmarks.servo_peers.job import ServoJob, ServoRun
from dls_ik import DlsIkError

SERVO_PEERS = FOLDER.with_name("servo_peers")


def run(peer: str, python: str, job: ServoJob) -> ServoRun:
    """Run a peer in a process of its own, and return its answers.

    Raises:
        DlsIkError: If the peer is not installed, or cannot follow the streams.
    """
    with tempfile.TemporaryDirectory() as folder:
        given, answers = Path(folder, "job.npz"), Path(folder, "answers.npz")
        job.save(given)
        command = [python, "-m", "benchmarks.servo_peers.worker", peer, str(given), str(answers)]
        threads = {f"{name}_NUM_THREADS": "1" for name in THREADS}
        environment = {**os.environ, **threads, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise DlsIkError(f"{peer} did not run: {lines[-1]}")
        return ServoRun.load(answers)


def pythons(names: list[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the Python of each peer, after installing missing packages."""
    for name in names:
        environment = PEERS[name].environment
        if not environment:
            yield name, sys.executable
            continue
        requirements = ROOT / "requirements" / "servo_peers" / f"{environment}.txt"
        python, missing = prepared(
            folder / environment, lambda text: print(text, file=sys.stderr), requirements
        )
        for line, why in missing.items():
            print(f"could not install {line}: {why}", file=sys.stderr)
        yield name, python
