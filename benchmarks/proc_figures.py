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
    highest = max(real_time_priorities(pid), default=0)
    return ProcFigures(sizes["Rss"], sizes["Pss"], own, threads, files, highest)


def real_time_priorities(pid: int) -> list[int]:
    """Of those threads of a process that have one."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(ProcessLookupError):  # it has just ended
            found.append(os.sched_getparam(int(thread)).sched_priority)
    return [priority for priority in found if priority]
