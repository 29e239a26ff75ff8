"""Planar chains as drawn by Tabaczynski 2005: configurations red to green, paths of joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.arm import draw_arms
from dls_ik.plot.canvas import BLUE, GREY, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def stroboscope(
    series: Mapping[str, Mapping[str, Any]], scenarios: Sequence[str], methods: Sequence[str]
) -> Figure:
    """A row for each scenario; for each method its configurations and the paths of its joints.

    Args:
        series: by ``"scenario, method"``: points (i, n + 1, 2) of the chain, and the goal (2,).
    """
    figure = new_figure(3.0 * 2 * len(methods), 3.1 * len(scenarios))
    grid = figure.subplots(len(scenarios), 2 * len(methods), squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    for row, scenario in zip(grid, scenarios, strict=True):
        for i, method in enumerate(methods):
            shown = series.get(f"{scenario}, {method}")
            if shown:
                points = np.asarray(shown["points"])
                draw_arms(row[2 * i], points, _red_to_green(len(points)), 0.8)
                _paths(row[2 * i + 1], points)
                for axes in (row[2 * i], row[2 * i + 1]):
                    _frame(axes, shown["goal"])
                count = f"{len(points)} iterations"
                row[2 * i].set_title(f"{scenario}\n{method}, {count}", fontsize=9, loc="left")
                row[2 * i + 1].set_title("paths of the joints", fontsize=8, loc="left", color=GREY)
    figure.suptitle("Table 4.4: first configuration red, last green", fontsize=13, weight="bold")
    return figure


def _red_to_green(count: int) -> list[Any]:
    """A colour for each configuration, as in his figures."""
    late = np.linspace(0.0, 1.0, count)
    return list(np.stack([1.0 - late, 0.8 * late, np.zeros(count)], axis=1))


def _paths(axes: Axes, points: Array) -> None:
    """The way of every joint but the first, which stays, and of the end, with each iteration."""
    for path in np.moveaxis(points[:, 1:], 1, 0):
        axes.plot(*path.T, linewidth=0.9, marker=".", markersize=2.0)


def _frame(axes: Axes, goal: Sequence[float]) -> None:
    axes.set_axis_on()
    axes.plot(*goal, marker="s", markersize=6, markerfacecolor="none", color=BLUE)
    axes.plot(0.0, 0.0, marker="o", markersize=3, color=GREY)
    axes.set_aspect("equal", adjustable="datalim")
    plain(axes)
    axes.tick_params(labelsize=6)
