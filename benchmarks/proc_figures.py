"""What a process has, by /proc."""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MEBIBYTE = 1024.0  # [kB]


class ProcFigures(NamedTuple):
    """At one moment."""

    rss: float  # [MiB] resident
    pss: float  # [MiB] resident, of shared pages its part
    uss: float  # [MiB] resident, its own pages alone
    threads: int
    files: int  # open
    priority: int  # of real time, the highest of its threads; 0: none


def proc_figures(pid: int) -> ProcFigures:
    """Look at a process.

    Raises:
        OSError: it has ended.
    """
    folder = Path(f"/proc/{pid}")
    sizes: dict[str, float] = {}
    for line in (folder / "smaps_rollup").read_text().splitlines()[1:]:
        name, size = line.split()[:2]
        sizes[name.rstrip(":")] = int(size) / MEBIBYTE
    own = sizes["Private_Clean"] + sizes["Private_Dirty"]
    threads, files = (len(os.listdir(folder / name)) for name in ("task", "fd"))
    return ProcFigures(sizes["Rss"], sizes["Pss"], own, threads, files, _priority(folder / "task"))


def _priority(tasks: Path) -> int:
    highest = 0
    for task in tasks.iterdir():
        with suppress(ProcessLookupError):  # a thread that has just ended
            highest = max(highest, os.sched_getparam(int(task.name)).sched_priority)
    return highest
