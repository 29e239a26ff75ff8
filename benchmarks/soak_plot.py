"""The curves of a soak as one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.plot.canvas import GREY, heading, log_axis, new_figure, panel_title, plain, series_look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 120  # points of a curve
NAMES = {"rss": "resident", "pss": "its share of it", "uss": "its own pages"}


def draw_soak(samples: list[dict[str, Any]], rate: float, title: str) -> Figure:
    """Memory, lateness beside an idle loop, calls, threads and files, each over time."""
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
