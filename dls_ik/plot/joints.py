"""Joint positions and velocities over time, each inside the band of its limits."""

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
    RED,
    heading,
    motion,
    new_figure,
    plain,
    short,
    show_times,
    unit_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAD = 0.12  # of the range, shown beyond each limit
ROOM = 0.15  # of the range, that 0 keeps from a limit to have a tick of its own
COLUMNS = ((1, 1), (8, 2), (18, 3), (32, 4))  # joints at most, columns
MOST_COLUMNS, WIDTHS = 5, (6.5, 9.0, 11.0, 13.0, 15.0)  # [inch] by columns
MINUS = "\N{MINUS SIGN}"  # as in ticks that matplotlib writes
NOTE_WIDTH, NAME_WIDTH = 4.2, 6.6  # [pt] of a character


class Band(NamedTuple):
    """What one panel shows."""

    name: str
    unit: str
    lower: float  # -inf where there is none
    upper: float
    values: Array  # (k,)
    note: str

    @property
    def is_left(self) -> bool:
        """Whether a value is out of bounds."""
        return bool(self.values.min() < self.lower or self.values.max() > self.upper)


def draw_bands(t: Array, bands: Sequence[Band], title: str, what: str) -> Figure:
    """All panels, and one legend for them.

    Args:
        t: (k,) [s].
        bands: a joint each.
        title: what the picture says as a whole.
        what: is drawn as a line, for the legend.
    """
    columns = next((c for most, c in COLUMNS if len(bands) <= most), MOST_COLUMNS)
    rows = -(-len(bands) // columns)
    width = WIDTHS[columns - 1]
    room = 72.0 * width / columns - 60.0  # [pt] of a title
    lines = 2 if any(_length(band) > room for band in bands) else 1
    figure = new_figure(width, 1.1 + (1.4 + 0.2 * lines) * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for axes, band in zip(grid, bands, strict=False):
        _panel(axes, t, band)
        _title(axes, band, lines, int(room / NAME_WIDTH))
    for axes in grid[max(0, len(bands) - columns) : len(bands)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("time [s]", fontsize=9)
    for axes in grid[len(bands) :]:
        axes.set_axis_off()
    _legend(figure, what)
    heading(figure, title)
    return figure


def _length(band: Band) -> float:
    """Of name and note in one line [pt]."""
    return NAME_WIDTH * (1 + len(band.name)) + NOTE_WIDTH * len(band.note)


def _panel(axes: Axes, t: Array, band: Band) -> None:
    ends = [end for end in (band.lower, band.upper) if np.isfinite(end)]
    shown = np.array([*ends, band.values.min(), band.values.max()])
    pad = PAD * max(np.ptp(shown), 0.1)
    axes.set_ylim(shown.min() - pad, shown.max() + pad)
    show_times(axes, t)
    _forbid(axes, band)
    axes.plot(t, band.values, color=BLUE, linewidth=1.8)
    _ticks(axes, ends)
    axes.set_ylabel(f"[{band.unit}]", fontsize=9)
    plain(axes)


def _title(axes: Axes, band: Band, lines: int, letters: int) -> None:
    """The name, and the note beside it, or below it where names are long."""
    name, pad = _shortened(band.name, letters), 6.0 if lines == 1 else 18.0  # [pt]
    axes.set_title(name, fontsize=10, fontweight="bold", loc="left", pad=pad)
    axes.annotate(
        band.note, (0.0, 1.0) if lines == 2 else (1.0, 1.0), (0.0, 6.0),
        xycoords="axes fraction", textcoords="offset points", fontsize=8.5,
        ha="left" if lines == 2 else "right", color=RED if band.is_left else GREY,
    )  # fmt: skip


def _ticks(axes: Axes, ends: list[float]) -> None:
    """The limits themselves, and 0 where it is not too near to one."""
    if not ends:
        axes.locator_params(axis="y", nbins=3)
        return
    low, high = axes.get_ylim()
    clear = min(abs(end) for end in ends) > ROOM * (high - low)
    ticks = sorted([*ends, 0.0]) if clear and low < 0.0 < high else ends
    axes.set_yticks(ticks, [short(tick, 3).replace("-", MINUS) for tick in ticks])


def _shortened(name: str, letters: int) -> str:
    """The name, without its middle where there is no room for that."""
    half = max(3, letters // 2 - 1)
    return name if len(name) <= 2 * half + 2 else f"{name[:half]}..{name[-half:]}"


def _forbid(axes: Axes, band: Band) -> None:
    bottom, top = axes.get_ylim()
    for limit, edge in ((band.lower, bottom), (band.upper, top)):
        if np.isfinite(limit):
            axes.axhspan(limit, edge, color=RED, alpha=0.22, linewidth=0)
            axes.axhline(limit, color=RED, linewidth=1.0)


def _legend(figure: Figure, what: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=BLUE, linewidth=1.8, label=what),
        Line2D([], [], color=RED, linewidth=1.0, label="its limits"),
        Patch(color=RED, alpha=0.22, linewidth=0, label="out of bounds"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def joint_bands(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    title: str = "Joint positions and their limits",
) -> Figure:
    """One panel for each joint: its position, and what its limits forbid, shaded.

    Args:
        robot: whose joints and limits.
        times: (k,) [s].
        q: (k, n) [rad or m].
        title: what the picture says as a whole.

    Raises:
        JointValueError: values that do not fit the robot or each other.
        DlsIkError: matplotlib is not installed.
    """
    t, values = motion(robot, times, q)
    bands = [_position_band(robot, i, values[:, i]) for i in range(robot.n)]
    return draw_bands(t, bands, title, "position of the joint")


def _position_band(robot: RobotModel, i: int, values: Array) -> Band:
    lower, upper, unit = float(robot.lower[i]), float(robot.upper[i]), unit_of(robot, i)
    note = _closest(lower, upper, values, unit)
    return Band(robot.joint_names[i], unit, lower, upper, values, note)


def _closest(lower: float, upper: float, values: Array, unit: str) -> str:
    """How near the joint came to a limit, in words."""
    rooms = {"lower": values.min() - lower, "upper": upper - values.max()}
    side, room = min(rooms.items(), key=lambda item: item[1])
    if not np.isfinite(room):
        return "no limits"
    if room < 0.0:
        return f"{short(-room)} {unit} BEYOND {side} limit"
    return f"{short(room)} {unit} from {side} limit"


def joint_velocities(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    velocity: ArrayLike | None = None,
    title: str = "Joint velocities and their limits",
) -> Figure:
    """One panel for each joint: its velocity, and what its limit forbids, shaded.

    Args:
        robot: whose joints and velocity limits.
        times: (k,) [s].
        q: (k, n) [rad or m].
        velocity: (k, n) [rad/s or m/s] where it is known; default: the mean velocity from one
            instant to the next, drawn as steps.
        title: what the picture says as a whole.

    Raises:
        JointValueError: values that do not fit the robot or each other; times that stand still,
            where the velocity is to be found from them.
        DlsIkError: matplotlib is not installed.
    """
    t, values = motion(robot, times, q)
    if velocity is None:
        t, speeds = _mean_velocities(t, values)
    else:
        speeds = robot.validated(velocity)
        if speeds.shape != values.shape:
            raise JointValueError(
                f"the velocity of joint values {values.shape} has that shape, not {speeds.shape}"
            )
    bands = [_velocity_band(robot, i, speeds[:, i]) for i in range(robot.n)]
    return draw_bands(t, bands, title, "velocity of the joint")


def _mean_velocities(t: Array, values: Array) -> tuple[Array, Array]:
    """Both ends (2 (k - 1),) of every interval, and the mean velocity in it."""
    length = np.diff(t)
    if not (length > 0.0).all():
        raise JointValueError("velocities are found from times that rise from each to the next")
    mean = np.diff(values, axis=0) / length[:, None]
    return np.repeat(t, 2)[1:-1], np.repeat(mean, 2, axis=0)


def _velocity_band(robot: RobotModel, i: int, values: Array) -> Band:
    limit, unit = float(robot.velocity[i]), f"{unit_of(robot, i)}/s"
    return Band(robot.joint_names[i], unit, -limit, limit, values, _most(limit, values, unit))


def _most(limit: float, values: Array, unit: str) -> str:
    """The greatest speed, in words."""
    top = float(np.abs(values).max())
    if not np.isfinite(limit):
        return f"at most {short(top)} {unit}, no limit"
    percent = 100.0 * top / limit
    if top > limit:
        return f"{short(percent, 3)} % of its limit: BEYOND"
    return f"at most {short(percent, 3)} % of its limit"
