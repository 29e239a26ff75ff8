"""Table V as a picture: measured beside printed, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, new_figure, plain
from dls_ik.reproduce.report import Reproduction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = (
    ("solved_percent", "solved [%]"),
    ("in_limits_percent", "solved in limits [%]"),
    ("iterations", "iterations"),
)


def plot(report: Reproduction) -> Figure:
    """A panel for each column, a line for each method from the printed figure to the measured."""
    figure = new_figure(11.0, 1.6 + 0.27 * max(4, len(report.rows)))
    grid = figure.subplots(1, len(PANELS), sharey=True)
    names = [row["method"] for row in report.rows]
    for axes, (key, heading) in zip(grid, PANELS, strict=True):
        _panel(axes, report, key)
        axes.set_xlabel(heading, fontsize=9)
    grid[0].set_yticks(range(len(names)), names)
    grid[0].invert_yaxis()
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.suptitle(
        f"Table V of Colome & Torras 2012, {report.samples} pairs", fontsize=13, fontweight="bold"
    )
    return figure


def _panel(axes: Axes, report: Reproduction, key: str) -> None:
    printed = {row["method"]: row[key] for row in report.printed}
    rows = [(i, row) for i, row in enumerate(report.rows) if row.get(key) is not None]
    pairs = [(i, row[key], printed[row["method"]]) for i, row in rows if row["method"] in printed]
    for i, ours, theirs in pairs:
        axes.plot([ours, theirs], [i, i], color=PALE, linewidth=2.0, zorder=1)
    axes.plot(
        [p[2] for p in pairs], [p[0] for p in pairs], "D", color=ORANGE, label="printed", ms=6
    )
    axes.plot(
        [row[key] for _, row in rows], [i for i, _ in rows], "o", color=BLUE, label="measured", ms=4
    )
    axes.set_xlim(left=-3.0)
    plain(axes)
    axes.tick_params(axis="y", colors=GREY)
