"""The curves of a soak as one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.plot.canvas import heading, log_axis, new_figure, panel_title, plain, series_look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"rss": "resident", "pss": "its share of it", "uss": "its own pages"}


def draw_soak(samples: list[dict[str, Any]], rate: float, title: str) -> Figure:
    """Memory, lateness beside an idle loop, calls, threads and files, each over time."""
    figure = new_figure(11.0, 7.0)
    memory, late, calls, counts = figure.subplots(2, 2, sharex=True).ravel()
    t = np.array([sample["time"] for sample in samples]) / 60.0
    curves = {key: np.array([sample[key] for sample in samples], float) for key in samples[0]}
    _lines(memory, t, {NAMES[key]: curves[key] for key in NAMES}, "[MiB]", "Memory of the node")
    memory.set_ylim(0.0, 1.15 * curves["rss"].max())
    worst = {"node": curves["node_worst"], "idle loop": curves["idle_worst"]}
    _lines(late, t, {name: 1e3 * values for name, values in worst.items()}, "[ms]",
           "Latest cycle of each second")  # fmt: skip
    late.axhline(1e3 / rate, color="#5A5A5A", linewidth=0.8)
    late.annotate("a period", (t[0], 1e3 / rate), xytext=(2, 3), textcoords="offset points",
                  fontsize=8, color="#5A5A5A")  # fmt: skip
    log_axis(late, 1e3 * np.concatenate(list(worst.values())))
    answers = {"sent": curves["sent"], "answered": curves["answered"]}
    _lines(calls, t, answers, "[1/s]", "Calls of compute_ik")
    calls.set_ylim(0.0, 1.2 * max(1.0, curves["sent"].max()))
    found = {"threads": curves["threads"], "open files": curves["files"]}
    _lines(counts, t, found, "", "Threads and open files of the node")
    counts.set_ylim(0.0, 1.2 * max(values.max() for values in found.values()))
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
    axes.legend(frameon=False, fontsize=8, loc="lower right")
