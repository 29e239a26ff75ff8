# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures of a study: share solved against time, shares by robot, medians of the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.errors import OptionError
from dls_ik.plot.canvas import (
    BLUE,
    GREY,
    ORANGE,
    heading,
    legend_below,
    new_figure,
    panel_title,
    plain,
    series_look,
)
from dls_ik.plot.methods import draw_share
from dls_ik.study.definition import METRICS
from dls_ik.study.results import StudyResults
from dls_ik.study.statistics import ALL_ROBOTS, SUCCESS, Summary, summaries
from dls_ik.text import scaled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dls_ik.study.tuning import TuningResult

PANEL_WIDTH, PANEL_HEIGHT = 5.2, 3.4  # [inch]
ROW_HEIGHT = 0.2  # [inch] height of a method in the picture of the metrics
MAX_TICKS_RATIO = 30.0  # ratio of largest to smallest median above which an axis is logarithmic
INTERVAL_NOTE = "bars: 95 % intervals"
MAX_LEGEND_COLUMNS = 6
LABEL_WIDTH, NUM_TICKS = 30, 4  # characters in a line of a label, ticks of a linear axis


def study_pictures(results: StudyResults) -> dict[str, Figure]:
    """Return the pictures of a study by name.

    The names are ``share_against_time``, ``by_robot`` and ``by_metric``. Bars show the intervals of
    `dls_ik.study.statistics`.

    Raises:
        DlsIkError: If matplotlib is not installed.
    """
    found = summaries(results)
    return {
        "share_against_time": _share_against_time(results),
        "by_robot": _by_robot(results, found),
        "by_metric": _by_metric(results, found),
    }


def _title(results: StudyResults) -> str:
    """Return the size of a study as text."""
    study = results.study
    names = [robot.name for robot in study.robots]
    of = names[0] if len(names) == 1 else f"{len(names)} robots"
    return f"{of}, {study.pairs} pairs each, seed {study.seed}"


def _share_against_time(results: StudyResults) -> Figure:
    """Draw the share of pairs of all robots that each method has solved within a time."""
    from matplotlib.ticker import LogLocator

    study = results.study
    columns = min(len(study.cases), 2)
    rows = -(-len(study.cases) // columns)
    legend = _legend_height(len(study.variants))
    figure = new_figure(max(PANEL_WIDTH * columns, 7.0), PANEL_HEIGHT * rows + 0.6 + legend)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes in panels[len(study.cases) :]:
        axes.remove()
    for axes, (index, case) in zip(panels, enumerate(study.cases), strict=False):
        times = 1e6 * results.of("time", None, index)
        solved, there = results.of("solved", None, index), results.of("applicable", None, index)
        end = 1.3 * float(times.max())
        for v, variant in enumerate(study.variants):
            t, good = times[v][there[v]], solved[v][there[v]]
            draw_share(axes, variant.label, t, good, end, **series_look(v))
        axes.set_xscale("log")
        axes.set_xlim(0.8 * float(np.percentile(times[there], 0.5)), end)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.xaxis.set_major_formatter(lambda t, _: scaled(1e-6 * t, "s", 3))
        axes.minorticks_off()
        axes.set_ylim(0.0, 102.0)
        panel_title(axes, case, "dots: median times")
        plain(axes, "processor time of a solve", "solved [%]" if index % columns == 0 else "")
    _draw_legend(figure, panels[0], [variant.label for variant in study.variants])
    heading(figure, f"Share solved within a time: {_title(results)}")
    return figure


def _by_robot(results: StudyResults, found: Sequence[Summary]) -> Figure:
    """Draw the share that each method solves, by robot; a panel for each case."""
    study = results.study
    names = [robot.name for robot in study.robots]
    labels = [variant.label for variant in study.variants]
    legend = _legend_height(len(labels))
    width = max(7.0, 1.5 + len(names) * (0.5 + 0.09 * len(labels)))
    figure = new_figure(width, 0.6 + 2.6 * len(study.cases) + legend)
    panels = figure.subplots(len(study.cases), 1, sharex=True, squeeze=False)[:, 0]
    for axes, case in zip(panels, study.cases, strict=True):
        for v, label in enumerate(labels):
            rows = [e for e in found if (e.case, e.method) == (case, label) and e.robot in names]
            x = [names.index(e.robot) + 0.8 * ((v + 0.5) / len(labels) - 0.5) for e in rows]
            look = {"color": series_look(v)["color"], "fmt": _marker(v)}
            _draw_intervals(axes, x, [e.solved for e in rows], label, look)
        for i in range(1, len(names)):
            axes.axvline(i - 0.5, color="#E6E6E6", linewidth=0.8)
        panel_title(axes, case, INTERVAL_NOTE)
        plain(axes, "", "solved [%]")
        axes.grid(visible=False, axis="x")
        axes.set_ylim(-3.0, 103.0)
    panels[-1].set_xticks(range(len(names)), names, rotation=30 if len(names) > 4 else 0)
    panels[-1].set_xlim(-0.5, len(names) - 0.5)
    _draw_legend(figure, panels[0], labels)
    heading(figure, f"Share solved by robot: {_title(results)}")
    return figure


def _by_metric(results: StudyResults, found: Sequence[Summary]) -> Figure:
    """Draw the share and the median of each metric over all robots; a row for each case."""
    from matplotlib.ticker import MaxNLocator

    study = results.study
    labels = [variant.label for variant in study.variants]
    robot = ALL_ROBOTS if len(study.robots) > 1 else study.robots[0].name
    columns = ("solved", *study.metrics)
    height = 0.9 + ROW_HEIGHT * len(labels)
    figure = new_figure(1.2 + 2.6 * len(columns), 0.6 + height * len(study.cases))
    grid = figure.subplots(len(study.cases), len(columns), sharey=True, squeeze=False)
    for i, case in enumerate(study.cases):
        rows = [e for e in found if (e.robot, e.case) == (robot, case)]
        y = [labels.index(e.method) for e in rows]
        for axes, column in zip(grid[i], columns, strict=True):
            intervals = [e.solved if column == "solved" else e.medians[column] for e in rows]
            for k, each in zip(y, intervals, strict=True):
                look = {"color": series_look(k)["color"], "fmt": _marker(k)}
                factor = 100.0 if column == "solved" else 1.0
                value, low, high = (factor * number for number in each)
                axes.errorbar(
                    [value], [k], xerr=[[value - low], [high - value]], markersize=4, **look
                )
            values = np.array([each.value for each in intervals])
            good = values[np.isfinite(values) & (values > 0.0)]
            if column != "solved" and len(good) and good.max() > MAX_TICKS_RATIO * good.min():
                axes.set_xscale("log")
            label = "[%] of the pairs" if column == "solved" else f"median {METRICS[column]}"
            plain(axes, fill(label, LABEL_WIDTH) if i == len(study.cases) - 1 else "")
            if axes.get_xscale() == "linear":
                axes.xaxis.set_major_locator(MaxNLocator(NUM_TICKS))
            panel_title(axes, f"{case}: {column}", INTERVAL_NOTE if column == "solved" else "")
            if column == "time":
                axes.xaxis.set_major_formatter(lambda t, _: scaled(t, "s", 3))
        grid[i, 0].set_yticks(range(len(labels)), labels)
        grid[i, 0].set_ylim(len(labels) - 0.4, -0.6)  # the first method is on top
    heading(figure, f"Metrics: {_title(results)}")
    return figure


def tuning_picture(result: TuningResult) -> Figure:
    """Return a picture of the scores of all values, with intervals, and of the best value.

    Raises:
        DlsIkError: If matplotlib is not installed.
        OptionError: If no value solved a pair.
    """
    tuning = result.tuning
    points = [point for point in result.points if np.isfinite(point.score.value)]
    if not points:
        raise OptionError(
            f"no value of {tuning.option} solved a pair, so there is no curve; tune by the "
            "criterion solved, or give other values"
        )
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    scale = 100.0 if tuning.criterion == SUCCESS else 1.0
    x = np.array([point.value for point in points], float)
    value, low, high = scale * np.array([tuple(point.score) for point in points]).T
    axes.fill_between(x, low, np.where(np.isfinite(high), high, value), color=BLUE, alpha=0.15)
    axes.plot(x, value, ".-", color=BLUE, label=tuning.criterion)
    axes.axvspan(result.best.low, result.best.high, color=ORANGE, alpha=0.15)
    axes.axvline(result.best.value, color=ORANGE, label=f"best: {result.best.value:.4g}")
    if tuning.default is not None and x[0] <= tuning.default <= x[-1]:
        axes.axvline(tuning.default, color=GREY, linestyle=":", label="default")
    if x[0] > 0.0:
        axes.set_xscale("log")
    unit = "[%]" if tuning.criterion == SUCCESS else ""
    plain(axes, tuning.option, f"{tuning.criterion} {unit}".strip())
    panel_title(axes, f"{tuning.pairs} pairs, case {tuning.case}, seed {tuning.seed}")
    axes.legend(frameon=False, fontsize=9)
    heading(figure, f"{tuning.robot.name}, {tuning.method}: {tuning.option}")
    return figure


def _draw_intervals(
    axes: Any,
    x: Sequence[float],
    intervals: Sequence[Any],
    label: str,
    look: dict[str, Any],
) -> None:
    """Draw shares with their intervals as points with vertical bars, in percent.

    Args:
        axes: Axes to draw in.
        x: Position of each point.
        intervals: Shares with intervals.
        label: Label in the legend.
        look: Arguments of ``Axes.errorbar``.
    """
    values = 100.0 * np.array([tuple(each) for each in intervals]).reshape(-1, 3)
    below, above = values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]
    axes.errorbar(
        x, values[:, 0], yerr=np.maximum([below, above], 0.0), label=label, markersize=4,
        elinewidth=1.0, **look,
    )  # fmt: skip


def _marker(v: int) -> str:
    """Return the marker of variant number v; colours repeat after seven variants."""
    return "osD^v"[v // 7 % 5]


def _legend_height(count: int) -> float:
    """Return the height [inch] of a legend of `count` methods."""
    return 0.22 * -(-count // MAX_LEGEND_COLUMNS) + 0.1


def _draw_legend(figure: Figure, axes: Any, labels: Sequence[str]) -> None:
    """Draw the legend of all methods below the panels."""
    handles = axes.get_legend_handles_labels()[0]
    for handle, label in zip(handles, labels, strict=True):
        handle.set_label(label)
    legend_below(figure, handles, min(len(labels), MAX_LEGEND_COLUMNS), handlelength=2.2)
