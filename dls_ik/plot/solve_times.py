"""How many of some poses methods have solved within a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.plot.canvas import GREY, new_figure, plain, series_look, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def solve_times(
    times: Mapping[str, ArrayLike],
    solved: Mapping[str, ArrayLike],
    title: str = "Poses solved within a time",
) -> Figure:
    """One rising line a method: the share of the k poses that it solved within a time.

    Args:
        times: by method, (k,) what each pose took [s].
        solved: by method, (k,) whether it was solved.
        title: what the picture says as a whole.

    Raises:
        OptionError: no methods, or arrays that do not fit.
        DlsIkError: matplotlib is not installed.
    """
    sizes = [(np.size(times[name]), np.size(solved[name])) for name in times]
    if not sizes or any(k != answers or k == 0 for k, answers in sizes):
        raise OptionError(f"a picture takes as many times as answers for each method, not {sizes}")
    every = 1e6 * np.concatenate([np.ravel(np.asarray(t, float)) for t in times.values()])
    end = 1.3 * float(every.max())
    figure = new_figure(8.0, 4.6)
    axes = figure.subplots()
    for k, name in enumerate(times):
        t = np.asarray(times[name], float)
        good = np.asarray(solved[name], bool)
        _line(axes, name, 1e6 * t, good, end, **series_look(k))
    axes.set_xscale("log")
    axes.set_xlim(0.8 * float(np.percentile(every, 0.5)), end)
    axes.xaxis.set_major_formatter(lambda t, _: _time(t))
    axes.set_ylim(0.0, 102.0)
    axes.set_xlabel("time for a pose", fontsize=9)
    axes.set_ylabel("solved [%]", fontsize=9)
    axes.set_title(title, fontsize=13, fontweight="bold", loc="left")
    plain(axes)
    legend = figure.legend(
        *axes.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9,
        title="method, share solved,\nand by when half of it", title_fontsize=8.5,
        alignment="left",
    )  # fmt: skip
    legend.get_title().set_color(GREY)
    return figure


def _line(axes: Axes, name: str, t: Array, good: Array, end: float, **look: Any) -> None:
    """The share over time [us], and a dot where half of what is ever solved is."""
    finished = np.sort(t[good])
    share = 100.0 * np.arange(1, len(finished) + 1) / len(t)
    label = f"{name}  {100.0 * good.mean():.0f} %"
    if len(finished):
        label += f", {_time(float(finished[(len(finished) - 1) // 2]))}"
    x, y = np.append(finished, end), np.append(share, share[-1:] if len(share) else [0.0])
    axes.step(x, y, where="post", linewidth=1.8, label=label, **look)
    if len(finished):
        middle = (len(finished) - 1) // 2
        place = finished[middle], share[middle]
        edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8}
        axes.plot(*place, "o", color=look["color"], markersize=5, zorder=5, **edge)


def _time(microseconds: float) -> str:
    """In a unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{short(microseconds / size, 3)} {unit}"
    return f"{short(microseconds, 3)} us"
