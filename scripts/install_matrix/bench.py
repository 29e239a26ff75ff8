"""The temporary folder in which a row is tried, and its steps."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
# What would let a row see the checkout, a sourced ROS 2 or another environment.
FOREIGN = (
    "AMENT_",
    "COLCON_",
    "CMAKE_",
    "PYTHON",
    "ROS_",
    "RMW_",
    "NUMBA_",
    "_ROS_",
    "VIRTUAL_ENV",
)


class Step(NamedTuple):
    """What was done in a row, and how it went."""

    name: str
    state: str  # PASSED, FAILED or NOT_RUN
    seconds: float = 0.0
    words: str = ""  # what was found, or what is wrong


class StepError(Exception):
    """A step has failed; the message is one line."""


class Bench:
    """A folder, an environment of variables, and the steps that were tried there."""

    def __init__(self, folder: Path, niceness: int, patience: float) -> None:
        self.folder = folder
        self.steps: list[Step] = []
        self.patience = patience  # [s] for one command
        self._niceness = niceness
        kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self.variables = {
            **kept,
            "PYTHONNOUSERSITE": "1",
            "ROS_DOMAIN_ID": str(random.SystemRandom().randrange(1, 100)),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "log"),
        }

    @property
    def bin(self) -> Path:
        """Where the commands of the virtual environment are."""
        return self.folder / "venv" / "bin"

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Note how a step goes; what is put into the list are its words."""
        begin, words = time.monotonic(), []
        print(f"  {name} ...", end=" ", file=sys.stderr, flush=True)
        try:
            yield words
        except (StepError, OSError, ValueError) as error:
            self._note(name, FAILED, begin, " ".join(str(error).split()))
            raise StepError(name) from error
        self._note(name, PASSED, begin, " ".join(words))

    def _note(self, name: str, state: str, begin: float, words: str) -> None:
        step = Step(name, state, round(time.monotonic() - begin, 1), words)
        self.steps.append(step)
        print(f"{state} ({step.seconds:.0f} s) {words}", file=sys.stderr, flush=True)

    def run(self, *command: str | Path, **variables: str) -> str:
        """What a command prints to standard output.

        Raises:
            StepError: if it exits with anything but 0, or takes longer than the patience.
        """
        line = self.line(*command)
        try:
            done = subprocess.run(
                line,
                cwd=self.folder,
                env={**self.variables, **variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self.patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StepError(f"{_name(command)} took longer than {self.patience:.0f} s") from None
        if done.returncode:
            said = _objection(done.stderr + "\n" + done.stdout)
            raise StepError(f"{_name(command)} ended with {done.returncode}: {said}")
        return done.stdout

    def line(self, *command: str | Path) -> list[str]:
        """The command line, polite to whoever else works on this machine."""
        return ["nice", "-n", str(self._niceness), *map(str, command)]


def _name(command: tuple[str | Path, ...]) -> str:
    """A command without folders."""
    return " ".join([Path(command[0]).name, *map(str, command[1:3])])


def _objection(text: str) -> str:
    """The line that says most likely why."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it said nothing"])[-1][:300]
