"""What counts as a defect: an exception that is not ours, and more than a second of CPU."""

import hashlib
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz.source import Source

LONGEST = 1.0  # [s] of CPU of this process, so that a busy machine makes no false alarm
Run = Callable[[Source], None]


class Defect(NamedTuple):
    """What went wrong with an input."""

    name: str  # the same for the same place in the code
    words: str  # a traceback, or how long it took


class SlowError(Exception):
    """An input that takes too long, again when it comes again."""


def defect_of(run: Run, data: bytes) -> Defect | None:
    """Try an input on a target."""
    try:
        spent = cpu_time(run, data)
        if spent > LONGEST:  # the first time loads and compiles, and tables are made once
            spent = cpu_time(run, data)
        if spent > LONGEST:
            raise SlowError(f"{spent:.2f} s of CPU for one input")
    except Exception as error:  # noqa: BLE001  whatever is not ours is what is looked for
        return Defect(_name(error), "".join(traceback.format_exception(error)))
    return None


def cpu_time(run: Run, data: bytes) -> float:
    """How long an input takes [s]."""
    begin = time.process_time()
    run(Source(data))
    return time.process_time() - begin


def _name(error: BaseException) -> str:
    """Type and place; the place within the package where there is one, else the last."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/dls_ik/" in frame.filename]
    last = (ours or frames)[-1]
    return f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"


def stored(folder: Path, defect: Defect, data: bytes) -> Path:
    """Write an input and what it did, once for each name; return the file of the input."""
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted(folder.glob(f"{defect.name}-*.bin"))
    if found:
        return found[0]
    path = folder / f"{defect.name}-{hashlib.sha256(data).hexdigest()[:8]}.bin"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(defect.words)
    return path
