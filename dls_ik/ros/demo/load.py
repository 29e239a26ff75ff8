"""How busy the machine is with other programs while something is measured."""

import os
import time
from pathlib import Path
from typing import NamedTuple

BUSY = 0.25  # share of the processors that others take, from which figures by the clock are theirs
STAT = Path("/proc/stat")


class Load(NamedTuple):
    """What other programs took meanwhile."""

    cores: int
    average: float | None  # processes that run or wait, over the last minute, our own among them
    others: float | None  # share of all processors that other programs took; None: not known

    @property
    def is_busy(self) -> bool:
        """Whether others took so much that what depends on the clock is about them."""
        if self.others is not None:
            return self.others > BUSY
        return self.average is not None and self.average > 1.5 * self.cores

    def __str__(self) -> str:
        known = []
        if self.others is not None:
            known.append(f"other programs took {self.others:.0%} of {self.cores} cores")
        if self.average is not None:
            known.append(f"load average {self.average:.1f}")
        return ", ".join(known) or f"{self.cores} cores, load unknown"


class LoadMeter:
    """Measures from its making on.

    Args:
        own: further processes, whose time is not that of other programs.
    """

    def __init__(self, *own: int) -> None:
        self._own = own
        self._begin = time.monotonic()
        self._before = _busy(), self._ours()

    def result(self) -> Load:
        """The load since."""
        cores = os.cpu_count() or 1
        average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        busy, before = _busy(), self._before[0]
        if busy is None or before is None:
            return Load(cores, average, None)
        others = busy - before - (self._ours() - self._before[1])
        elapsed = max(time.monotonic() - self._begin, 1e-9)
        return Load(cores, average, min(max(others / (elapsed * cores), 0.0), 1.0))

    def _ours(self) -> float:
        """Processor time [s] of this process and the others that belong to it."""
        return time.process_time() + sum(map(_time_of, self._own))


def _busy() -> float | None:
    """Processor time [s] of all programs and of other machines on this hardware, since the boot."""
    try:
        fields = [float(word) for word in STAT.read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # without idle, iowait


def _time_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (float(fields[11]) + float(fields[12])) / os.sysconf("SC_CLK_TCK")
