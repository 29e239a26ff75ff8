# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Report of a soak: statistics, verdicts, tables and a picture."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish
from benchmarks.idle_loop import late_figures, missed
from dls_ik import DlsIkError
from dls_ik.plot import save_picture
from dls_ik.plot.canvas import GREY, heading, log_axis, new_figure, panel_title, plain, series_look

SHORTEST = 10  # samples
MOST = 120  # points of a curve
NAMES = {"rss": "resident", "pss": "its share of it", "uss": "its own pages"}
MINUTE = 60.0  # [s] length of the ignored start, and window of the medians
MOST_GROWTH = 1.0  # [%] maximum growth of memory
ORDINARY, SPARE = 3.0, 1e-4  # factor without real-time priority, and allowance: see `deadlines`
MEMORY = columns(
    "memory of the node; second minute [MiB] :.2f; last minute [MiB] :.2f; growth [%] :.2f; "
    "slope [MiB/h] :.2f"
)
LATE = columns(
    "loop; cycles :d; median [ms] :.3f; 99 % [ms] :.3f; 99.9 % [ms] :.3f; largest [ms] :.2f; "
    "deadlines missed :d; share [%] :.4f"
)
WORDS = {True: "holds", False: "FAILS", None: "not judged"}
COUNTS = columns("what; count :d")


class Verdict(NamedTuple):
    """Result of one check."""

    holds: bool | None  # None: it cannot be judged here
    words: str

    def __str__(self) -> str:
        """Return the verdict as printed."""
        return f"{WORDS[self.holds]}: {self.words}"


class Growth(NamedTuple):
    """Growth of one memory statistic after the first minute."""

    before: float  # [MiB] median of the second minute
    after: float  # [MiB] median of the last minute
    slope: float  # [MiB/h] of the straight line through all but the first minute

    @property
    def percent(self) -> float:
        """Relative growth [%]."""
        return 100.0 * (self.after / self.before - 1.0)


def growth(samples: list[dict[str, Any]], name: str) -> Growth:
    """Return the growth of a statistic of the samples; a short run is split into quarters."""
    t = np.array([sample["time"] for sample in samples])
    values = np.array([sample[name] for sample in samples])
    minute = min(MINUTE, 0.25 * float(t[-1]))
    later = t >= minute
    slope = float(np.polyfit(t[later], values[later], 1)[0]) if later.sum() > 1 else np.nan
    before = float(np.median(values[later & (t < 2.0 * minute)]))
    after = float(np.median(values[t >= t[-1] - minute]))
    return Growth(before, after, 3600.0 * slope)


def tables(soak: Measured, rate: float) -> list[Table]:
    """Return the growth of RSS, PSS and USS, the lateness of each loop, and the counts."""
    memory, deadlines = Table("Memory", MEMORY), Table("Deadlines", LATE)
    for name in ("rss", "pss", "uss"):
        found = growth(soak.samples, name)
        memory.rows.append([name.upper(), *found[:2], found.percent, found.slope])
    for name, values in soak.late.items():
        gone = missed(values, 1.0 / rate)
        share = 100.0 * gone / max(1, len(values) + gone)
        deadlines.rows.append([name, len(values), *late_figures(values), gone, share])
    return [memory, deadlines, Table("Counts", COUNTS, [*soak.counts.items()])]


def verdicts(
    samples: list[dict[str, Any]], late: dict[str, np.ndarray], counts: dict[str, int], rate: float
) -> list[Verdict]:
    """Return all checks."""
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
    """Check that resident memory grows by less than a percent after the first minute."""
    found = growth(samples, "rss")
    words = f"memory grew by {found.percent:.2f} % after the first minute, at most {MOST_GROWTH:g}"
    return Verdict(found.percent < MOST_GROWTH, words)


def deadlines(samples: list[dict[str, Any]], late: dict[str, np.ndarray], rate: float) -> Verdict:
    """Compare the missed deadlines with those of the idle loop; allow more without priority."""
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
    """Return whether the node's loop always had real-time priority."""
    return all(sample["priority"] for sample in samples)


def steady(what: str, counts: list[int]) -> Verdict:
    """Check that a count is not higher at the end than in the first half."""
    most, last = max(counts[: len(counts) // 2]), min(counts[-10:])
    return Verdict(last <= most, f"{last} {what} at the end, {most} at most in the first half")


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Picture


def draw_soak(samples: list[dict[str, Any]], rate: float, title: str) -> Figure:
    """Draw memory, lateness, calls, threads and files over time."""
    figure = new_figure(11.0, 7.0)
    memory, late, calls, counts = figure.subplots(2, 2, sharex=True).ravel()
    curves = {key: np.array([sample[key] for sample in samples], float) for key in samples[0]}
    parts = np.array_split(np.arange(len(samples)), min(MOST, len(samples)))
    ends = np.array([part[-1] for part in parts])
    t = curves["time"][ends] / 60.0
    _lines(memory, t, {NAMES[key]: curves[key][ends] for key in NAMES}, "[MiB]",
           "Memory of the node")  # fmt: skip
    memory.set_ylim(0.0, 1.15 * curves["rss"].max())
    worst = {"node": curves["node_worst"], "idle loop": curves["idle_worst"]}
    worst = {key: 1e3 * np.array([np.fmax.reduce(v[p]) for p in parts]) for key, v in worst.items()}
    seconds = 60.0 * t[-1] / len(parts)
    _lines(late, t, worst, "[ms]", f"Latest cycle in each {seconds:.3g} s")
    late.axhline(1e3 / rate, color=GREY, linewidth=0.8)
    late.annotate(
        "a period", (t[0], 1e3 / rate), xytext=(2, 3), textcoords="offset points", fontsize=8,
        color=GREY, bbox={"color": "white", "alpha": 0.7, "pad": 1.0},
    )  # fmt: skip
    log_axis(late, np.array([1e3 / rate, *np.concatenate(list(worst.values()))]))
    pace = np.diff(np.cumsum(curves["sent"])[ends], prepend=0.0) / np.diff(60.0 * t, prepend=0.0)
    _lines(calls, t, {"sent a second": pace, "on their way": curves["waiting"][ends]}, "",
           "Calls of compute_ik")  # fmt: skip
    calls.set_ylim(-0.04 * pace.max(), 1.3 * max(1.0, pace.max()))
    found = {"threads": curves["threads"][ends], "open files": curves["files"][ends]}
    _lines(counts, t, found, "", "Threads and open files of the node")
    counts.set_ylim(0.0, 1.3 * max(values.max() for values in found.values()))
    for axes in (calls, counts):
        axes.set_xlabel("time [min]", fontsize=9)
    heading(figure, title)
    return figure


def _lines(axes: Axes, t: Any, series: dict[str, Any], unit: str, title: str) -> None:
    for i, (name, values) in enumerate(series.items()):
        axes.plot(t, values, label=name, linewidth=1.2, **series_look(i))
    axes.set_ylabel(unit, fontsize=9)
    panel_title(axes, title)
    plain(axes)
    axes.legend(frameon=False, fontsize=8, ncols=len(series), loc="best")


# Report


class Measured(NamedTuple):
    """All measurements of a run."""

    samples: list[dict[str, Any]]  # one a second
    late: dict[str, np.ndarray]  # [s] of each cycle of the node and of the idle loop
    counts: dict[str, int]
    worst_call: float  # [s]
    exit_code: int | None


def report(soak: Measured, given: Any, interrupted: bool) -> int:
    """Print and save the measurements, and return the exit code."""
    if len(soak.samples) < SHORTEST:
        raise DlsIkError("too short to say anything: less than 10 s")
    late, counts, code = soak.late, soak.counts, soak.exit_code
    found = [
        *verdicts(soak.samples, late, counts, given.rate),
        Verdict(code == 0, f"the node ended with exit code {code}"),
    ]
    minutes = soak.samples[-1]["time"] / 60.0
    notes = [f"{minutes:.1f} minutes at {given.rate} Hz, {given.clients} clients, seed "
             f"{given.seed}{', interrupted' if interrupted else ''}", *notes_of(soak),
             *map(str, found)]  # fmt: skip
    if given.plot:
        title = f"{minutes:.3g} minutes at {given.rate} Hz with {given.clients} clients"
        save_picture(given.plot, draw_soak(soak.samples, given.rate, title))
    with suppress(OSError):  # a terminal that was closed
        finish(given, tables(soak, given.rate), notes)
    if any(verdict.holds is False for verdict in found):
        return 1
    return 130 if interrupted else 0


def notes_of(soak: Measured) -> list[str]:
    """Return the results that are not in a table."""
    last, first = soak.samples[-1], soak.samples[0]
    share = (last["processor"] - first["processor"]) / (last["time"] - first["time"])
    away = float(np.median([sample["away"] for sample in soak.samples]))
    loads = [sample["load"] for sample in soak.samples]
    kind = "real-time" if has_priority(soak.samples) else "ordinary"
    return [
        f"the loop of the node has {kind} priority, the idle loop an ordinary one",
        f"the node took {100.0 * share:.0f} % of a core; the longest call {soak.worst_call:.3f} s",
        f"the tip was {1e3 * away:.1f} mm behind the target, median of all seconds",
        f"load average from {min(loads):.1f} to {max(loads):.1f}, median {np.median(loads):.1f}",
    ]
