# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Picture that compares methods at a target and along a path.

Its panels show the error, joint speed, condition number and distance to joint limits of the
methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.canvas import (
    GREY,
    RED,
    above_zero,
    heading,
    log_axis,
    new_figure,
    panel_title,
    plain,
    series_look,
)
from dls_ik.solver.comparison import MethodRun, PathComparison, Peaks
from dls_ik.text import scaled, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_WIDTH, FIGURE_HEIGHT = 11.0, 11.0  # [inch] size of the picture
SHOWN_STEPS = 60  # number of steps toward the target that are shown if a method does not reach it
LINE_HEIGHT = 0.115  # height of a label, relative to a panel
LABEL_GAP = 0.04  # gap between the panel and the labels on its right, relative to a panel
WIDE_RANGE = 30.0  # ratio of largest to smallest value above which an axis is logarithmic


class _Panel(NamedTuple):
    """Content of a panel that shows one quantity for all methods."""

    label: str
    values: Callable[[MethodRun], Array]
    title: str
    is_log: bool = False
    is_least: bool = False  # whether labels give the smallest value instead of the largest
    floor: float = 1e-4  # lower end of a logarithmic axis, relative to the largest value
    first: int = 0  # index of the first value that counts for the label


def path_comparison(compared: PathComparison, title: str = "") -> Figure:
    """Draw how methods reach a target, over iterations, and follow a path, over time.

    The left column of panels shows the iterations at the target, the right column the path. The
    rows show the error, the speed of the joints, the condition number and the distance to joint
    limits. The title of each panel contains extreme values: in the left column those of the shown
    iterations, in the right column those of :meth:`PathComparison.peaks`. A grey band covers the
    first lap if its errors and speeds are not evaluated.

    Args:
        compared: Result of :func:`dls_ik.solver.comparison.compare_on_path`.
        title: Title of the picture; by default the robot and the path.

    Raises:
        DlsIkError: If matplotlib is not installed.
    """
    robot, path = compared.robot, compared.path
    figure = new_figure(FIGURE_WIDTH, FIGURE_HEIGHT)
    grid = figure.subplots(4, 2, sharex="col")
    peaks, units = compared.peaks(), sorted(set(robot.units), reverse=True)
    shown = _shown_steps(compared, peaks)
    at_target = {name: _first_steps(run, shown) for name, run in compared.at_target.items()}
    columns = (
        (at_target, _at_target(at_target, peaks, units), np.arange(shown + 1.0)),
        (compared.along, _along(compared, peaks, units), path.dt * np.arange(len(path.Ts) + 1.0)),
    )
    for j, (runs, panels, x) in enumerate(columns):
        for axes, panel in zip(grid[:, j], panels, strict=True):
            _draw(axes, runs, panel, x)
    grid[0, 0].set_xlim(0, shown)
    grid[0, 1].set_xlim(0.0, path.dt * len(path.Ts))
    _mark_limits(grid[1, 1], grid[3], compared)
    if path.first_counted:
        for axes in grid[:2, 1]:
            axes.axvspan(0.0, path.dt * path.first_counted, color="#EEEEEE", linewidth=0, zorder=0)
        grid[1, 1].annotate(
            "first lap, not counted", (0.01, 0.97), xycoords="axes fraction", va="top", fontsize=8,
            color=GREY,
        )  # fmt: skip
    for j, (runs, panels, x) in enumerate(columns):
        for axes, panel in zip(grid[:, j], panels, strict=True):
            _label_extremes(axes, runs, panel) if j else _label_ends(axes, runs, panel, x)
    rate = short(1.0 / path.dt, 3)
    captions = "toward one target", f"along a path, {rate} targets per second"
    for axes, caption in zip(grid[0], captions, strict=True):
        axes.annotate(
            caption, (0.0, 1.0), (0, 24), xycoords="axes fraction", textcoords="offset points",
            fontsize=10, fontstyle="italic", color=GREY, annotation_clip=False,
        )  # fmt: skip
    grid[3, 0].set_xlabel("iteration", fontsize=9)
    grid[3, 1].set_xlabel("time [s]", fontsize=9)
    for axes in grid[3]:
        axes.tick_params(labelbottom=True)
    names = list(compared.along)
    subject = f"{len(names)} methods take" if len(names) > 1 else f"{names[0]} takes"
    heading(figure, title or f"{subject} {robot.name} {path.about}")
    return figure


# Panels


def _shown_steps(compared: PathComparison, peaks: Mapping[str, Peaks]) -> int:
    """Return the number of iterations toward the target that the left column shows."""
    steps = max(len(run.step) for run in compared.at_target.values())
    counts = [peak.iterations for peak in peaks.values()]
    needed = max((count for count in counts if count is not None), default=SHOWN_STEPS)
    return min(max(needed, SHOWN_STEPS if None in counts else 1), steps)


def _first_steps(run: MethodRun, count: int) -> MethodRun:
    """Return the first `count` steps of a run."""
    arrays = {name: getattr(run, name)[: count + 1] for name in run._fields}
    return run._replace(**{**arrays, "step": run.step[:count]})


def _at_target(
    runs: Mapping[str, MethodRun], peaks: Mapping[str, Peaks], units: list[str]
) -> list[_Panel]:
    """Return the panels of the left column, which show the iterations of each method at the target.

    Args:
        runs: Shown steps of each method toward the target.
        peaks: Extreme values of each method.
        units: Units of the joints, without duplicates.
    """
    unit = " or ".join(units)
    counts = {name: peak.iterations for name, peak in peaks.items() if peak.iterations is not None}
    steps = {name: float(run.step.max(initial=0.0)) for name, run in runs.items()}
    condition = max(float(run.condition.max()) for run in runs.values())
    margin = {name: float(run.margin.min()) for name, run in runs.items()}
    return [
        _Panel(
            "scaled error [m]",
            lambda run: run.error,
            _iterations_title(counts, list(peaks)),
            True,
            floor=1e-8,
        ),
        _Panel(
            f"step of a joint [{unit}]",
            _steps,
            _range_title(steps, unit, "steps by up to"),
            True,
            floor=1e-8,
        ),
        _Panel(
            "condition number [-]", lambda run: run.condition, _condition_title(condition), True
        ),
        _Panel(
            f"distance to a limit [{unit}]",
            lambda run: run.margin,
            _margin_title(margin, unit),
            is_least=True,
        ),
    ]


def _along(compared: PathComparison, peaks: Mapping[str, Peaks], units: list[str]) -> list[_Panel]:
    """Return the panels of the right column, which show each method along the path.

    Args:
        compared: Results of the methods.
        peaks: Extreme values of each method.
        units: Units of the joints, without duplicates.
    """
    dt, unit, speed = compared.path.dt, " or ".join(units), " or ".join(f"{u}/s" for u in units)
    errors = {name: peak.largest_error for name, peak in peaks.items()}
    speeds = {name: peak.fastest_joint for name, peak in peaks.items()}
    condition = max(peak.condition for peak in peaks.values())
    margin = {name: peak.margin for name, peak in peaks.items()}
    far, close = max(errors, key=errors.__getitem__), min(errors, key=errors.__getitem__)
    title = f"{far} is off by up to {scaled(errors[far], 'm')}"
    title += f", {close} by {scaled(errors[close], 'm')}" if close != far else ""
    values = np.array(list(speeds.values()))
    return [
        _Panel(
            "position error [mm]",
            lambda run: 1e3 * run.position_error,
            title,
            first=1 + compared.path.first_counted,
        ),
        _Panel(
            f"fastest joint [{speed}]",
            lambda run: np.append(run.step / dt, np.nan),
            _range_title(speeds, speed, "commands up to"),
            bool(values.max() > WIDE_RANGE * values.min()),
            first=compared.path.first_counted,
        ),
        _Panel(
            "condition number [-]", lambda run: run.condition, _condition_title(condition), True
        ),
        _Panel(
            f"distance to a limit [{unit}]",
            lambda run: run.margin,
            _margin_title(margin, unit),
            is_least=True,
        ),
    ]


def _steps(run: MethodRun) -> Array:
    """Return the step size of each iteration of a run; the last iteration has none, hence NaN."""
    return np.append(run.step, np.nan)


def _iterations_title(counts: Mapping[str, int], names: list[str]) -> str:
    """Return a panel title that names the fastest method to the target and the worst method.

    The worst method is one that fails, or the slowest method if all reach the target.

    Args:
        counts: Number of iterations of each method that reaches the target.
        names: Names of all methods.
    """
    missing = [name for name in names if name not in counts]
    if not counts:
        return "no method reaches the target"
    first = min(counts, key=counts.__getitem__)
    last = max(counts, key=counts.__getitem__)
    said = f"{first} reaches the target after {counts[first]} steps"
    if missing:
        return f"{said}, {missing[-1]} does not"
    return f"{said}, {last} after {counts[last]}" if last != first else said


def _range_title(values: Mapping[str, float], unit: str, verb: str) -> str:
    """Return a panel title with the largest and the smallest value and their methods.

    Args:
        values: Value of each method.
        unit: Unit of the values.
        verb: Words between the first method and its value, such as "steps by up to".
    """
    largest, smallest = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
    said = f"{largest} {verb} {short(values[largest], 3)} {unit}"
    return f"{said}, {smallest} {short(values[smallest], 2)}" if smallest != largest else said


def _condition_title(condition: float) -> str:
    """Return a panel title with the largest condition number of all methods."""
    return f"the condition number is up to {short(condition, 2)}"


def _margin_title(margins: Mapping[str, float], unit: str) -> str:
    """Return a panel title with the smallest distance of a joint to a limit, over all methods.

    If a joint is beyond a limit, the title names the method and the distance beyond the limit.

    Args:
        margins: Smallest distance of each method, negative beyond a limit.
        unit: Unit of the distances.
    """
    name = min(margins, key=margins.__getitem__)
    margin = margins[name]
    if not np.isfinite(margin):
        return "no joint has a limit"
    if margin < 0.0:
        return f"{name} goes {short(-margin, 3)} {unit} beyond a limit"
    return f"every joint stays {short(margin, 3)} {unit} from its limits"


# Lines


def _draw(axes: Axes, runs: Mapping[str, MethodRun], panel: _Panel, x: Array) -> None:
    """Draw the values of each run as a line in a panel, over x."""
    every = []
    for i, run in enumerate(runs.values()):
        values = panel.values(run)
        shown = above_zero(values) if panel.is_log else values
        axes.plot(x[: len(shown)], shown, linewidth=1.5, **series_look(i))
        every.append(shown)
    panel_title(axes, panel.title)
    plain(axes, y=panel.label)
    together = np.concatenate(every)
    if panel.is_log:
        log_axis(axes, together[together > panel.floor * np.nanmax(together)])
    elif not np.isfinite(together).any():
        axes.set_yticks([])
    elif np.nanmin(together) >= 0.0:
        axes.set_ylim(0.0, 1.08 * max(float(np.nanmax(together[np.isfinite(together)])), 1e-9))


def _mark_limits(speed: Axes, margins: Array, compared: PathComparison) -> None:
    """Draw a line at the smallest velocity limit, and shade distances beyond joint limits.

    Args:
        speed: Axes of the joint speed.
        margins: Axes of the distances to limits.
        compared: Results of the methods.
    """
    slowest = float(compared.robot.velocity.min())
    low, high = speed.get_ylim()
    if low < slowest < high:
        speed.axhline(slowest, color=GREY, linewidth=1.0, linestyle="--")
        speed.annotate(
            f"limit {short(slowest)}", (0.01, slowest), (0, 2), fontsize=8, color=GREY,
            xycoords=speed.get_yaxis_transform(), textcoords="offset points",
        )  # fmt: skip
    for axes in margins:
        low = axes.get_ylim()[0]
        if low < 0.0:
            axes.axhspan(low, 0.0, color=RED, alpha=0.15, linewidth=0)
            axes.axhline(0.0, color=RED, linewidth=1.0)


def _label_ends(axes: Axes, runs: Mapping[str, MethodRun], panel: _Panel, x: Array) -> None:
    """Write the names of the methods to the right of a panel, and mark the line ends by dots."""
    right, low = axes.get_xlim()[1], axes.get_ylim()[0]
    ends = []
    for name, run in runs.items():
        values = panel.values(run)
        seen = np.flatnonzero(np.isfinite(values) & (x[: len(values)] <= right))
        if len(seen):
            point = (x[seen[-1]], max(values[seen[-1]], low))
            ends.append((name, *_in_axes(axes, point)))
    places = _spread(np.array([height for _, _, height in ends]))
    for (name, at, height), place in zip(ends, places, strict=True):
        color = series_look(list(runs).index(name))["color"]
        axes.plot(
            min(at, 1.0), np.clip(height, 0.0, 1.0), "o", transform=axes.transAxes, clip_on=False,
            color=color, markersize=4.0,
        )  # fmt: skip
        axes.annotate(
            name, (1.0 + LABEL_GAP, place), xycoords="axes fraction", va="center", fontsize=8.5,
            color=color, annotation_clip=False,
        )  # fmt: skip


def _label_extremes(axes: Axes, runs: Mapping[str, MethodRun], panel: _Panel) -> None:
    """Write name and extreme value of each method next to a panel, at the height of the value."""
    pick = np.nanmin if panel.is_least else np.nanmax
    extremes = {name: float(pick(panel.values(run)[panel.first :])) for name, run in runs.items()}
    shown = {name: value for name, value in extremes.items() if np.isfinite(value)}
    heights = [_in_axes(axes, (axes.get_xlim()[0], value))[1] for value in shown.values()]
    places = _spread(np.array(heights))
    for (name, value), place in zip(shown.items(), places, strict=True):
        axes.annotate(
            f"{name}  {short(value, 3)}", (1.0 + LABEL_GAP, place), xycoords="axes fraction",
            va="center", fontsize=8.5, color=series_look(list(runs).index(name))["color"],
            annotation_clip=False,
        )  # fmt: skip


def _in_axes(axes: Axes, point: tuple[float, float]) -> tuple[float, float]:
    """Convert a point from data coordinates to axes coordinates, which are 0 to 1 in the panel."""
    x, y = axes.transAxes.inverted().transform(axes.transData.transform(point))
    return float(x), float(y)


def _spread(heights: Array) -> Array:
    """Return label heights close to the given ones that are at least LINE_HEIGHT apart.

    Heights are relative to the panel.
    """
    order = np.argsort(heights, kind="stable")
    rungs = LINE_HEIGHT * np.arange(len(heights))
    # Isotonic regression: values in the wrong order are replaced by their mean.
    blocks: list[list[float]] = []
    for value in heights[order] - rungs:
        blocks.append([float(value)])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    level = np.array([np.mean(block) for block in blocks for _ in block])
    highest = max(1.0 - LINE_HEIGHT * (len(heights) - 1), 0.0)
    placed = np.empty(len(heights))
    placed[order] = np.clip(level, 0.0, highest) + rungs
    return placed
