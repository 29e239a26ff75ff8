# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures of joint positions and velocities over time, with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import JointValueError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import (
    BLUE,
    GREY,
    PURPLE,
    RED,
    checked_motion,
    heading,
    legend_below,
    new_figure,
    plain,
    show_times,
)
from dls_ik.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAD = 0.12  # margin of the axis beyond each limit, relative to the joint's range
TICK_MARGIN = 0.15  # minimum distance of a tick at 0 from a limit, relative to the joint's range
# Pairs of a maximum number of joints and the number of columns of panels for up to so many joints
COLUMNS = ((1, 1), (8, 2), (18, 3), (32, 4))
MAX_PANEL_COLUMNS, WIDTHS = (
    5,
    (6.5, 9.0, 11.0, 13.0, 15.0),
)  # [inch] width for each number of columns
MINUS = "\N{MINUS SIGN}"  # used in tick labels, as matplotlib does
NOTE_WIDTH, NAME_WIDTH = 4.2, 6.6  # [pt] width of a character of a note and of a joint name


class Band(NamedTuple):
    """Content of the panel of one joint: its values and limits over time."""

    name: str
    unit: str
    lower: float  # -inf without a limit; inf for `upper`
    upper: float
    values: Array  # (k,) positions or velocities of the joint
    note: str


def joint_bands(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    title: str = "Joint positions and their limits",
    *,
    marked: ArrayLike = (),
) -> Figure:
    """Draw the position of each joint over time in its own panel; shade the ranges beyond limits.

    Args:
        robot: Robot.
        times: (k,) times [s].
        q: (k, n) joint positions [rad or m].
        title: Title of the picture.
        marked: Times [s] of reconfigurations, which are drawn as numbered vertical lines.

    Raises:
        JointValueError: If the joint positions do not fit the robot or the times.
        DlsIkError: If matplotlib is not installed.
    """
    t, values = checked_motion(robot, times, q)
    bands = []
    for i, name in enumerate(robot.joint_names):
        lower, upper, unit = float(robot.lower[i]), float(robot.upper[i]), robot.units[i]
        note = _distance_note(lower, upper, values[:, i], unit)
        bands.append(Band(name, unit, lower, upper, values[:, i], note))
    marked = np.asarray(marked, float).ravel()
    figure = _draw_bands(t, bands, title, "position of the joint", bool(len(marked)))
    for axes in figure.axes[: len(bands)]:
        for number, at in enumerate(marked.tolist(), 1):
            axes.axvline(at, color=PURPLE, linewidth=1.4, linestyle="--", zorder=1.5)
            axes.annotate(
                f"{number}", (at, 1.0), (2.0, -9.0), xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=9, color=PURPLE, annotation_clip=True,
            )  # fmt: skip
    return figure


def _distance_note(lower: float, upper: float, values: Array, unit: str) -> str:
    """Return a note with the smallest distance of a joint to its limits.

    Args:
        lower: Lower limit.
        upper: Upper limit.
        values: (k,) positions of the joint.
        unit: Unit of the positions and limits.
    """
    margins = {"lower": values.min() - lower, "upper": upper - values.max()}
    side, margin = min(margins.items(), key=lambda item: item[1])
    if not np.isfinite(margin):
        return "no limits"
    if margin < 0.0:
        return f"{short(-margin)} {unit} BEYOND {side} limit"
    return f"{short(margin)} {unit} from {side} limit"


def joint_velocities(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    velocity: ArrayLike | None = None,
    title: str = "Joint velocities and their limits",
) -> Figure:
    """Draw the velocity of each joint over time in its own panel; shade the ranges beyond limits.

    Args:
        robot: Robot.
        times: (k,) times [s].
        q: (k, n) joint positions [rad or m].
        velocity: (k, n) joint velocities [rad/s or m/s]; None draws the mean velocity between
            successive times as steps.
        title: Title of the picture.

    Raises:
        JointValueError: If the joint positions do not fit the robot or the times, or two times are
            equal although no velocities are given.
        DlsIkError: If matplotlib is not installed.
    """
    t, values = checked_motion(robot, times, q)
    if velocity is None:
        t, speeds = _mean_velocities(t, values)
    else:
        speeds = robot.validated(velocity)
        if speeds.shape != values.shape:
            raise JointValueError(
                f"velocity must have the shape of q, {values.shape}; got {speeds.shape}"
            )
    bands = []
    for i, name in enumerate(robot.joint_names):
        limit, unit = float(robot.velocity[i]), f"{robot.units[i]}/s"
        note = _speed_note(limit, speeds[:, i], unit)
        bands.append(Band(name, unit, -limit, limit, speeds[:, i], note))
    return _draw_bands(t, bands, title, "velocity of the joint")


def _mean_velocities(t: Array, values: Array) -> tuple[Array, Array]:
    """Return the mean joint velocities between successive times, as points of a step curve.

    Args:
        t: (k,) times [s].
        values: (k, n) joint positions [rad or m].

    Returns:
        Start and end of each interval, times (2 (k - 1),) [s], and the mean velocities in the
        interval (2 (k - 1), n) [rad/s or m/s].

    Raises:
        JointValueError: If two times are equal.
    """
    length = np.diff(t)
    if not (length > 0.0).all():
        raise JointValueError("times must increase strictly if no velocities are given")
    mean = np.diff(values, axis=0) / length[:, None]
    return np.repeat(t, 2)[1:-1], np.repeat(mean, 2, axis=0)


def _speed_note(limit: float, values: Array, unit: str) -> str:
    """Return a note with the largest speed of a joint, relative to its limit if it has one.

    Args:
        limit: Velocity limit.
        values: (k,) velocities of the joint.
        unit: Unit of the velocities and the limit.
    """
    top = float(np.abs(values).max())
    if not np.isfinite(limit):
        return f"at most {short(top)} {unit}, no limit"
    percent = short(100.0 * top / limit, 3)
    return (
        f"{percent} % of its limit: BEYOND" if top > limit else f"at most {percent} % of its limit"
    )


def _draw_bands(
    t: Array, bands: Sequence[Band], title: str, label: str, has_marks: bool = False
) -> Figure:
    """Draw a panel for each joint over times.

    Args:
        t: (k,) times [s].
        bands: Contents of the panels.
        title: Title of the picture.
        label: Name of the lines in the legend.
        has_marks: Whether the legend explains marks of reconfigurations.
    """
    columns = next((c for count, c in COLUMNS if len(bands) <= count), MAX_PANEL_COLUMNS)
    rows = -(-len(bands) // columns)
    width = WIDTHS[columns - 1]
    length = 72.0 * width / columns - 60.0  # [pt] width of a title
    needed = [NAME_WIDTH * (1 + len(band.name)) + NOTE_WIDTH * len(band.note) for band in bands]
    lines = 2 if max(needed) > length else 1
    figure = new_figure(width, 1.1 + (1.4 + 0.2 * lines) * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for axes, band in zip(grid, bands, strict=False):
        _draw_panel(axes, t, band)
        _draw_title(axes, band, lines, int(length / NAME_WIDTH))
    for axes in grid[max(0, len(bands) - columns) : len(bands)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("time [s]", fontsize=9)
    for axes in grid[len(bands) :]:
        axes.set_axis_off()
    _draw_legend(figure, label, has_marks)
    heading(figure, title)
    return figure


def _draw_panel(axes: Axes, t: Array, band: Band) -> None:
    """Draw the values of a joint over times t (k,) [s], and shade the ranges beyond its limits."""
    ends = [end for end in (band.lower, band.upper) if np.isfinite(end)]
    shown = np.array([*ends, band.values.min(), band.values.max()])
    pad = PAD * max(np.ptp(shown), 0.1)
    axes.set_ylim(shown.min() - pad, shown.max() + pad)
    show_times(axes, t)
    for limit, edge in zip((band.lower, band.upper), axes.get_ylim(), strict=True):
        if np.isfinite(limit):
            axes.axhspan(limit, edge, color=RED, alpha=0.22, linewidth=0)
            axes.axhline(limit, color=RED, linewidth=1.0)
    axes.plot(t, band.values, color=BLUE, linewidth=1.8)
    _set_ticks(axes, ends)
    plain(axes, y=f"[{band.unit}]")


def _set_ticks(axes: Axes, ends: list[float]) -> None:
    """Set ticks at the limits `ends` of a joint, and at 0 unless 0 is too close to a limit."""
    if not ends:
        axes.locator_params(axis="y", nbins=3)
        return
    low, high = axes.get_ylim()
    is_clear = min(abs(end) for end in ends) > TICK_MARGIN * (high - low)
    ticks = sorted([*ends, 0.0]) if is_clear and low < 0.0 < high else ends
    axes.set_yticks(ticks, [short(tick, 3).replace("-", MINUS) for tick in ticks])


def _draw_title(axes: Axes, band: Band, lines: int, letters: int) -> None:
    """Write the name and the note of a joint above its panel.

    Args:
        axes: Axes of the panel.
        band: Content of the panel.
        lines: 1 writes the note to the right of the name, 2 below it.
        letters: Number of letters that fit in a line; a longer name is shortened.
    """
    half = max(3, letters // 2 - 1)
    is_long = len(band.name) > 2 * half + 2
    name = f"{band.name[:half]}..{band.name[-half:]}" if is_long else band.name
    is_beyond = band.values.min() < band.lower or band.values.max() > band.upper
    pad = 6.0 if lines == 1 else 18.0  # [pt] distance between panel and name
    axes.set_title(name, fontsize=10, fontweight="bold", loc="left", pad=pad)
    axes.annotate(
        band.note, (0.0, 1.0) if lines == 2 else (1.0, 1.0), (0.0, 6.0),
        xycoords="axes fraction", textcoords="offset points", fontsize=8.5,
        ha="left" if lines == 2 else "right", color=RED if is_beyond else GREY,
    )  # fmt: skip


def _draw_legend(figure: Figure, label: str, has_marks: bool) -> None:
    """Draw the legend below all panels; `label` names the blue lines."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=BLUE, linewidth=1.8, label=label),
        Line2D([], [], color=RED, linewidth=1.0, label="its limits"),
        Patch(color=RED, alpha=0.22, linewidth=0, label="beyond the limits"),
    ]
    if has_marks:
        handles.append(
            Line2D([], [], color=PURPLE, linewidth=1.4, linestyle="--", label="reconfiguration")
        )
    legend_below(figure, handles, len(handles))
