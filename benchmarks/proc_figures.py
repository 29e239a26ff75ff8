"""What a process has, by /proc."""

import os
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
    threads = len(os.listdir(folder / "task"))
    return ProcFigures(sizes["Rss"], sizes["Pss"], own, threads, len(os.listdir(folder / "fd")))
