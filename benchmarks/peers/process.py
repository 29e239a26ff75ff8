"""The parent's end of a peer's process."""

import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.arm import Arm
from benchmarks.peers.solver import Found

ROOT = Path(__file__).resolve().parents[2]
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")
START_TIME = 2400.0  # [s] generators of closed forms may take half an hour
GRACE = 60.0  # [s] beyond the time that a block is given


class PeerError(Exception):
    """A peer that cannot be run, or stopped answering; the message says why."""


class Peer:
    """A process that solves blocks of poses by the solvers of one file."""

    def __init__(self, file: str, python: str, arm: Arm) -> None:
        self.file = file
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - until the end
        ours, theirs = Pipe()
        number = theirs.fileno()
        command = [python, "-m", "benchmarks.peers.worker", file, str(number)]
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
        """Settings by row, whether each is a batch, and versions.

        Raises:
            PeerError: the peer is not installed, or cannot serve this arm.
        """
        answer = self._received(START_TIME)
        if isinstance(answer, str):
            raise PeerError(answer)
        return answer

    def solve(self, row: str, Ts: np.ndarray, seeds: np.ndarray, seconds: float) -> Found:
        """Answers to as many of the poses as the time allows.

        Raises:
            PeerError: the process ended, or does not answer.
        """
        self._send((row, Ts, seeds, seconds))
        return Found(*self._received(seconds + GRACE))

    def close(self) -> None:
        """Kill the process and what it started."""
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
