# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures that compare methods: error and step of each iteration, success and solve time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.plot.canvas import (
    GREY,
    RED,
    above_zero,
    heading,
    legend_below,
    log_axis,
    new_figure,
    panel_title,
    plain,
    series_look,
)
from dls_ik.solver.result import IkBatchResult, IkResult, Status
from dls_ik.solver.stepper import Trace
from dls_ik.text import scaled, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Mapping[str, IkResult | IkBatchResult]
BAR_HEIGHT = 0.3  # [inch] height of a bar and the gap to the next bar
MAX_TICKS = 8


class Measure(NamedTuple):
    """Quantity that is drawn as a bar for each method, in one panel."""

    title: str
    label: str
    value: Callable[[IkResult | IkBatchResult], float]
    is_log: bool


def compare_methods(
    traces: Mapping[str, Trace] | None = None,
    results: Results | None = None,
    title: str = "The same problem by several methods",
    parts: Mapping[str, str] | None = None,
) -> Figure:
    """Draw errors and step sizes over iterations, and bars of success, time and iterations.

    Lines over iterations are drawn from `traces`, and bars from `results`; at least one of both
    must be given.

    Args:
        traces: Results of :meth:`dls_ik.Stepper.run` by method.
        results: Results of ``solve`` or ``solve_batch`` of :class:`dls_ik.IkSolver` by method. For
            single poses the final error is drawn instead of the share of solved poses.
        title: Title of the picture.
        parts: Note for each method whose trace shows only a part of a solve: ``attempt 1 of 3``.

    Raises:
        OptionError: If neither traces nor results are given, or a trace has no step.
        DlsIkError: If matplotlib is not installed.
    """
    runs, answers = dict(traces or {}), dict(results or {})
    if not runs and not answers:
        raise OptionError("traces and results are both empty; give at least one method")
    for name, trace in runs.items():
        if len(trace.q) < 2:
            raise OptionError(f"the trace of {name} has no steps; give at least one")
    names = list(dict.fromkeys([*runs, *answers]))
    heights = [3.4] * bool(runs) + [0.9 + BAR_HEIGHT * len(answers)] * bool(answers)
    figure = new_figure(11.0, 0.6 + sum(heights) + 0.25 * (len(names) // 8 + 1) * bool(runs))
    panels = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    looks = {name: series_look(i) for i, name in enumerate(names)}
    if runs:
        _draw_lines(panels[0], runs, looks, dict(parts or {}))
    if answers:
        _draw_bars(panels[-1], answers, looks)
    heading(figure, title)
    return figure


def _draw_lines(
    part: Any,
    runs: Mapping[str, Trace],
    looks: Mapping[str, dict[str, Any]],
    notes: Mapping[str, str],
) -> None:
    """Draw a line for each method in two panels: error and step size over iterations.

    Args:
        part: Part of the figure to draw in.
        runs: Trace of each method.
        looks: Line options of each method.
        notes: Note in the legend for some methods.
    """
    error, step = part.subplots(1, 2, sharex=True)
    panels = (
        (error, "error before each iteration", "scaled error [m]", _errors),
        (step, "step size of each iteration", "step [rad or m]", _steps),
    )
    for axes, title, label, measure in panels:
        values = {name: measure(trace) for name, trace in runs.items()}
        for name, each in values.items():
            shown = f"{name} ({notes[name]})" if name in notes else name
            axes.plot(above_zero(each), linewidth=1.6, label=shown, **looks[name])
        panel_title(axes, title)
        plain(axes, "iteration", label)
        log_axis(axes, np.concatenate(list(values.values())))
    handles = error.get_legend_handles_labels()[0]
    legend_below(part, handles, 4 if notes else 8, handlelength=2.6)


def _errors(trace: Trace) -> Array:
    """Return the norm of the scaled error before each iteration of a trace [m]."""
    return np.asarray(np.linalg.norm(trace.error, axis=1))


def _steps(trace: Trace) -> Array:
    """Return the norm of the joint step of each iteration of a trace [rad or m]."""
    return np.asarray(np.linalg.norm(np.diff(trace.q, axis=0), axis=1))


def _draw_bars(part: Any, answers: Results, looks: Mapping[str, dict[str, Any]]) -> None:
    """Draw a panel for each quantity, with a bar for each method.

    Args:
        part: Part of the figure to draw in.
        answers: Result of each method.
        looks: Line options of each method, whose colour and style the bars use.
    """
    are_single = all(isinstance(answer, IkResult) for answer in answers.values())
    kinds = (REMAINING if are_single else SOLVED, TIME, ITERATIONS)
    names = list(answers)
    panels = part.subplots(1, len(kinds), sharey=True)
    colours = [looks[name]["color"] for name in names]
    hatches = ["" if looks[name]["linestyle"] == "-" else "///" for name in names]
    for axes, kind in zip(panels, kinds, strict=True):
        values = np.array([kind.value(answers[name]) for name in names])
        axes.barh(
            range(len(names)), values, height=0.65, color=colours, hatch=hatches, edgecolor="white"
        )
        notes = [_note(answers[name]) if kind is REMAINING else "" for name in names]
        _label_bars(axes, values, notes, kind.is_log)
        panel_title(axes, kind.title)
        plain(axes, kind.label)
        axes.grid(visible=False, axis="y")
        if kind is SOLVED:
            axes.set_xticks(range(0, 101, 20))
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.4, -0.6)  # the first method is on top


def _label_bars(axes: Axes, values: Array, notes: Sequence[str], is_log: bool) -> None:
    """Write the value and a note at the end of each bar, and extend the axis for the text."""
    good = values[np.isfinite(values) & (values > 0.0)]
    margin = 1.25 + 0.025 * max(map(len, notes))
    if is_log and len(good):
        axes.set_xscale("log")
        low, high = np.floor(np.log10(good.min())) - 0.3, np.log10(good.max())
        decades = np.arange(np.ceil(low), np.ceil(high) + 1.0)
        axes.set_xticks(10.0 ** decades[:: 1 + len(decades) // MAX_TICKS])
        axes.minorticks_off()
        axes.set_xlim(10.0**low, 10.0 ** (low + 1.1 * margin * (high - low)))
    else:
        axes.set_xlim(0.0, margin * (good.max() if len(good) else 1.0))
    for i, (value, note) in enumerate(zip(values, notes, strict=True)):
        axes.annotate(
            f"{short(value, 3)}{note}" if np.isfinite(value) else f"-{note}",
            (value if value > 0.0 else axes.get_xlim()[0], i), (4, 0),
            textcoords="offset points", va="center", fontsize=8, color=RED if note else GREY,
        )  # fmt: skip


def _note(answer: IkResult | IkBatchResult) -> str:
    """Return a note that says how a result failed, or "" if it is a success."""
    if np.all(answer.success):
        return ""
    is_beyond = isinstance(answer, IkResult) and answer.status == Status.OUTSIDE_LIMITS
    return ", outside the limits" if is_beyond else ", not reached"


def _milliseconds(answer: IkResult | IkBatchResult) -> float:
    """Return the mean time per pose of a result [ms]."""
    count = len(answer) if isinstance(answer, IkBatchResult) else 1
    return 1e3 * answer.duration / count


SOLVED = Measure(
    "solved", "share of the poses [%]", lambda answer: 100.0 * float(np.mean(answer.success)), False
)
REMAINING = Measure(
    "remaining error", "position [m]", lambda answer: float(np.max(answer.position_error)), True
)
TIME = Measure("time", "for one pose [ms]", _milliseconds, True)
ITERATIONS = Measure(
    "iterations",
    "for one pose, in all attempts",
    lambda answer: float(np.mean(answer.iterations)),
    False,
)


def draw_share(axes: Axes, name: str, t: Array, good: Array, end: float, **look: Any) -> None:
    """Draw the share of solved poses over the solve time, with a dot at the median time.

    Args:
        axes: Axes to draw in.
        name: Name of the method.
        t: (k,) solve times [us].
        good: (k,) whether each pose was solved.
        end: Time at the right end of the curve [us].
        look: Options of the line, such as its colour.
    """
    finished = np.sort(t[good])
    share = 100.0 * np.arange(1, len(finished) + 1) / len(t)
    label = f"{name}  {100.0 * good.mean():.0f} %"
    middle = (len(finished) - 1) // 2
    if len(finished):
        label += f", {scaled(1e-6 * float(finished[middle]), 's', 3)}"
    x, y = np.append(finished, end), np.append(share, share[-1:] if len(share) else [0.0])
    axes.step(x, y, where="post", linewidth=1.8, label=label, **look)
    if len(finished):
        place = finished[middle], share[middle]
        edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8}
        axes.plot(*place, "o", color=look["color"], markersize=5, zorder=5, **edge)
