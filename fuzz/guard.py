# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Detection of defects: foreign exceptions, broken promises, and more than a second of CPU time."""

import hashlib
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError
from fuzz.source import Source

ROOT = Path(__file__).resolve().parents[1]
MAX_CPU = 1.0  # [s] of this process, so that a busy machine raises no false alarm
MAX_MESSAGE = 20_000  # characters
Run = Callable[[Source], None]


class BrokenPromiseError(Exception):
    """Error of a promise that is not kept."""


class SlowError(Exception):
    """Error of an input that takes too long twice."""


class Defect(NamedTuple):
    """Defect that an input shows."""

    name: str  # the same for the same place in the code
    words: str  # a traceback


# Checks of targets


def require(holds: Any, message: str, *about: Any) -> None:
    """Raise a BrokenPromiseError unless a condition holds."""
    if not holds:
        raise BrokenPromiseError(": ".join([message, *map(str, about)]))


def require_inside(robot: RobotModel, q: Any) -> None:
    """Require joint positions (n,) or (b, n) that are finite and inside the limits."""
    require(np.isfinite(q).all(), "not finite", q)
    require(((q >= robot.lower) & (q <= robot.upper)).all(), "beyond the limits", q)


@contextmanager
def refusals(in_one_line: bool = False) -> Iterator[None]:
    """Suppress errors of the package in the context, and require messages of bounded length."""
    try:
        yield
    except DlsIkError as error:
        message = str(error)
        require(message and len(message) <= MAX_MESSAGE, "a message of length", len(message))
        if in_one_line:
            require("\n" not in message and "\x1b" not in message, "lines", repr(message))


# Defects


def defect_of(run: Run, data: bytes) -> Defect | None:
    """Run a target with an input, and return the defect, if any."""
    try:
        for _ in range(2):  # the first time may load or compile kernels
            begin = time.process_time()
            run(Source(data))
            spent = time.process_time() - begin
            if spent <= MAX_CPU:
                return None
        raise SlowError(f"{spent:.2f} s of CPU for one input")
    except Exception as error:  # noqa: BLE001  any other error is a defect
        return Defect(_name(error), "".join(traceback.format_exception(error)))


def _name(error: BaseException) -> str:
    """Return the type and place of an error; the place is in the package if possible."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/dls_ik/" in frame.filename]
    last = (ours or frames)[-1]
    return f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"


def store(folder: Path, defect: Defect, data: bytes) -> None:
    """Write an input and its traceback, once for each name."""
    if any(folder.glob(f"{defect.name}-*.bin")):
        return
    path = folder / f"{defect.name}-{hashlib.sha256(data).hexdigest()[:8]}.bin"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(defect.words)
