"""Pictures of the benchmarks: their option, curves of shares, panels of a table."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common import Table
from dls_ik import DlsIkError
from dls_ik.plot import check_picture
from dls_ik.plot.canvas import log_axis, new_figure, panel_title, plain, series_look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def add_plot(options: argparse.ArgumentParser, what: str) -> None:
    """Add the option for a picture; a wrong suffix is refused before anything is measured."""
    options.add_argument("--plot", metavar="FILE", type=_picture, help=f"draw {what} there")


def _picture(text: str) -> Path:
    try:
        check_picture(Path(text))
    except DlsIkError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def draw_shares(axes: Axes, series: Mapping[str, Any], label: str, title: str) -> None:
    """Draw for each series the share [%] of its values up to each value.

    Args:
        series: by name, (k,) each; NaN and inf count as not reached.
        label: of the values, with their unit.
        title: of the panel.
    """
    known = {name: np.sort(np.array(v, float)[np.isfinite(v)]) for name, v in series.items()}
    top = max((times[-1] for times in known.values() if len(times)), default=1.0)
    for i, (name, times) in enumerate(known.items()):
        shares = 100.0 * np.arange(len(times) + 1) / len(series[name])
        steps = [0.0, *times, top], [*shares, shares[-1]]
        axes.step(*steps, where="post", label=name, **series_look(i))
    axes.set_ylim(0.0, 102.0)
    axes.set_xlabel(label, fontsize=9)
    axes.set_ylabel("share that came within it [%]", fontsize=9)
    panel_title(axes, title)
    plain(axes)


def facets(table: Table, row: str, column: str, x: str, y: str) -> Figure:
    """Draw y over x in a panel for each value of two columns, a line for each other variation.

    Args:
        table: columns up to the last of `row`, `column`, `x` are the variations.
        row, column, x, y: names of columns.
    """
    names = [each.name for each in table.columns]
    varied = names[: 1 + max(map(names.index, (row, column, x)))]
    rows = [dict(zip(names, each, strict=True)) for each in table.rows]
    down, across = (list(dict.fromkeys(each[key] for each in rows)) for key in (row, column))
    rest = [key for key in varied if key not in (row, column, x)]
    lines = list(dict.fromkeys(tuple(each[key] for key in rest) for each in rows))
    figure = new_figure(
        1.5 + 3.4 * len(across), 1.2 + 2.3 * len(down) + 0.2 * (len(lines) // len(across))
    )
    grid = figure.subplots(len(down), len(across), squeeze=False, sharex=True)
    for panels, first in zip(grid, down, strict=True):
        for axes, second in zip(panels, across, strict=True):
            shown = [each for each in rows if (each[row], each[column]) == (first, second)]
            for i, line in enumerate(lines):
                points = [each for each in shown if tuple(each[key] for key in rest) == line]
                along, values = ([each[key] for each in points] for key in (x, y))
                label = ", ".join(_said(key, value) for key, value in zip(rest, line, strict=True))
                axes.plot(along, values, "o", ls=series_look(i)["linestyle"], ms=3, lw=1.4,
                          color=series_look(i)["color"], label=label)  # fmt: skip
            _finish(axes, [each[y] for each in shown], x, y, f"{first}, {column} {second}")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(across), frameon=False, fontsize=8
    )
    return figure


def _finish(axes: Axes, values: Sequence[float], x: str, y: str, title: str) -> None:
    plain(axes)
    panel_title(axes, title)
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    log_axis(axes, np.array(values, float))


def _said(key: str, value: Any) -> str:
    """Format a value with its column's name and unit."""
    name, _, unit = key.partition(" [")
    return f"{name} {value:g} {unit.rstrip(']')}" if isinstance(value, float) else f"{name} {value}"
