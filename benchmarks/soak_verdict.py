"""What a soak comes to: figures, and verdicts that can fail."""

import os
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Column, Table
from benchmarks.lateness import late_figures, missed

MINUTE = 60.0  # [s] that does not count, and that a median is of
MOST_GROWTH = 1.0  # [%] of memory
ORDINARY, SPARE = 3.0, 1e-4  # of a loop of ordinary priority, and of all: see `deadlines`
MEMORY = [
    Column("memory of the node"),
    Column("second minute [MiB]", ".2f"),
    Column("last minute [MiB]", ".2f"),
    Column("growth [%]", ".2f"),
    Column("slope [MiB/h]", ".2f"),
]
LATE = [
    Column("loop"),
    Column("cycles", "d"),
    Column("median [ms]", ".3f"),
    Column("99 % [ms]", ".3f"),
    Column("99.9 % [ms]", ".3f"),
    Column("largest [ms]", ".2f"),
    Column("deadlines missed", "d"),
    Column("share [%]", ".4f"),
]
WORDS = {True: "holds", False: "FAILS", None: "not judged"}
COUNTS = [Column("what"), Column("count", "d")]


class Verdict(NamedTuple):
    """A line that says whether something held."""

    holds: bool | None  # None: it cannot be judged here
    words: str

    def __str__(self) -> str:
        """As it is printed."""
        return f"{WORDS[self.holds]}: {self.words}"


class Growth(NamedTuple):
    """Of one figure of memory, after the first minute."""

    before: float  # [MiB] median of the second minute
    after: float  # [MiB] median of the last minute
    slope: float  # [MiB/h] of the straight line through all but the first minute

    @property
    def percent(self) -> float:
        """How much it grew."""
        return 100.0 * (self.after / self.before - 1.0)


def growth(samples: list[dict[str, Any]], name: str) -> Growth:
    """Of a figure of the samples; of a short run quarters stand for minutes."""
    t = np.array([sample["time"] for sample in samples])
    values = np.array([sample[name] for sample in samples])
    minute = min(MINUTE, 0.25 * float(t[-1]))
    later = t >= minute
    slope = float(np.polyfit(t[later], values[later], 1)[0]) if later.sum() > 1 else np.nan
    before = float(np.median(values[later & (t < 2.0 * minute)]))
    after = float(np.median(values[t >= t[-1] - minute]))
    return Growth(before, after, 3600.0 * slope)


def memory_table(samples: list[dict[str, Any]]) -> Table:
    """Growth of what is resident, of its share of it, and of its own pages."""
    rows = []
    for name in ("rss", "pss", "uss"):
        found = growth(samples, name)
        rows.append([name.upper(), found.before, found.after, found.percent, found.slope])
    return Table("Memory", MEMORY, rows)


def late_table(late: dict[str, np.ndarray], rate: float) -> Table:
    """Percentiles of how late the cycles of each loop began."""
    table = Table("Deadlines", LATE)
    for name, values in late.items():
        gone = missed(values, 1.0 / rate)
        share = 100.0 * gone / max(1, len(values) + gone)
        table.rows.append([name, len(values), *late_figures(values), gone, share])
    return table


def count_table(counts: dict[str, int]) -> Table:
    """Calls, commands and threads."""
    return Table("Counts", COUNTS, [[name, int(count)] for name, count in counts.items()])


def verdicts(
    samples: list[dict[str, Any]], late: dict[str, np.ndarray], counts: dict[str, int], rate: float
) -> list[Verdict]:
    """All that must hold."""
    lost = counts["calls sent"] - counts["calls answered"]
    broken = counts["commands out of bounds"]
    threads, files = ([sample[name] for sample in samples] for name in ("threads", "files"))
    return [
        memory(samples),
        deadlines(samples, late, rate),
        Verdict(lost == 0 and counts["calls sent"] > 0, f"{lost} calls without an answer"),
        Verdict(counts["wrong answers"] == 0, f"{counts['wrong answers']} answers are wrong"),
        Verdict(broken == 0 and len(late["node"]) > 0, f"{broken} commands out of bounds"),
        steady("threads", threads),
        steady("open files", files),
        Verdict(counts["faults in the log"] == 0, f"{counts['faults in the log']} faults logged"),
    ]


def memory(samples: list[dict[str, Any]]) -> Verdict:
    """What is resident may grow by less than a percent after the first minute."""
    found = growth(samples, "rss")
    words = f"memory grew by {found.percent:.2f} % after the first minute, at most {MOST_GROWTH:g}"
    return Verdict(found.percent < MOST_GROWTH, words)


def deadlines(samples: list[dict[str, Any]], late: dict[str, np.ndarray], rate: float) -> Verdict:
    """The node may miss what the machine itself makes a loop miss: more without priority."""
    load = float(np.median([sample["load"] for sample in samples]))
    factor = 1.0 if has_priority(samples) else ORDINARY
    node, idle = (missed(late[name], 1.0 / rate) for name in ("node", "idle"))
    allowed = factor * idle + SPARE * (len(late["node"]) + node)
    words = f"the node missed {node} deadlines, the idle loop {idle}; at most {allowed:.0f}"
    cores = len(os.sched_getaffinity(0))
    if load > cores:
        return Verdict(None, f"{words}, but a load of {load:.1f} leaves none of {cores} cores free")
    return Verdict(node <= allowed, words)


def has_priority(samples: list[dict[str, Any]]) -> bool:
    """Whether the node's loop had real-time priority all the time."""
    return all(sample["priority"] for sample in samples)


def steady(what: str, counts: list[int]) -> Verdict:
    """A count is no higher at the end than it was in the first half: threads begin when needed."""
    most, last = max(counts[: len(counts) // 2]), min(counts[-10:])
    return Verdict(last <= most, f"{last} {what} at the end, {most} at most in the first half")
