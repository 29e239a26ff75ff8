"""Success against time: the share of the poses that a solver has solved within some time."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.run import Contestants, Record

COLOURS = {
    "dls_ik": "#0b6e4f",
    "kdl": "#6d6d6d",
    "trac_ik": "#d1495b",
    "toolbox": "#2e86ab",
    "placo": "#8e5ea2",
    "pinocchio": "#e08e0b",
    "ssik": "#5c4033",
}
DASHES = ("-", "--", ":", "-.", (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1)))


def draw(target: str, title: str, contestants: Contestants, about: dict[str, Any]) -> None:
    """Write a picture of every row that ran; the best one of a peer is drawn bold."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 6.0), layout="constrained")
    axes = figure.subplots()
    for name, records in contestants.records.items():
        done = [record for record in records if record.times]
        best = min(done, key=_rank, default=None)
        for dash, record in zip(DASHES, done, strict=False):
            _line(axes, record, COLOURS[name], dash, record is best)
    axes.set(xscale="log", ylim=(0.0, 102.0), ylabel="poses solved within it, in limits [%]")
    axes.set_xlabel("time for one pose [us], from Python")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_title(title, loc="left")
    axes.set_title(f"{about['processor']}, {about['date']}", loc="right", fontsize=8, color="0.4")
    axes.grid(which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    heading = "solver, mean time [us]"
    figure.legend(loc="outside right upper", fontsize=8, frameon=False, title=heading)
    figure.savefig(target, dpi=150)


def _rank(record: Record) -> tuple[bool, float, float]:
    """Single calls first, then the most solved to a percent, then the least mean."""
    return record.is_batch, -round(record.share(inside=True)), record.mean


def _line(axes: Any, record: Record, colour: str, dash: Any, is_best: bool) -> None:
    """A curve of single calls; a batch has but a mean: a marker there."""
    label, share = f"{record.name}, {record.mean:.0f}", record.share(inside=True)
    if record.is_batch:
        style = {"marker": "o" if "one" in record.name else "D", "linestyle": "none"}
        fill = "white" if "no seed" in record.name else colour
        axes.plot(record.mean, share, color=colour, markerfacecolor=fill, label=label, **style)
        return
    inside = np.concatenate([v.inside for v in record.verdicts])
    times = np.sort(record.time[inside])
    counts = 100.0 * np.arange(1, len(times) + 1) / len(inside)
    style = {"linewidth": 2.4} if is_best else {"linewidth": 1.1, "alpha": 0.6}
    axes.plot(times, counts, color=colour, linestyle=dash, label=label, **style)
