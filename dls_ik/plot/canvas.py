"""Figures, colours, axes, units and files shared by all pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, JointValueError
from dls_ik.model.robot import RobotModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito: told apart by colour-blind people, and in print.
BLUE = "#0072B2"  # what was done
ORANGE = "#E69F00"  # what was asked
RED = "#D55E00"  # what is forbidden
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
BLACK = "#000000"
GREY = "#5A5A5A"
PALE = "#C9CED6"
SERIES = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK)  # lines of equal rank
DASHES = ("-", "--", ":", "-.")  # where there are more lines than colours


PREFIXES = (("", 1.0), ("m", 1e-3), ("u", 1e-6), ("n", 1e-9))
PLAIN = 1e5  # from which on figures have exponents


def short(value: float, digits: int = 2) -> str:
    """A figure with so many digits that count, and without an exponent where it can be."""
    rounded = float(f"{value:.{digits - 1}e}") if np.isfinite(value) else value
    if rounded == 0.0 or not 1e-3 <= abs(rounded) < PLAIN:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(rounded)))))
    text = f"{rounded:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def scaled(value: float, unit: str, digits: int = 2) -> str:
    """A length [m] or an angle [rad] in a unit that suits it, such as ``1.5 um``."""
    size = abs(float(f"{value:.{digits - 1}e}")) if np.isfinite(value) else 0.0
    for prefix, step in PREFIXES:
        if size >= step:
            return f"{short(value / step, digits)} {prefix}{unit}"
    return f"{short(value / PREFIXES[-1][1], digits)} n{unit}" if size >= 1e-12 else f"0 {unit}"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure [inch] that no display and no global state know of.

    Raises:
        DlsIkError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DlsIkError("pictures need matplotlib: pip install 'dls-ik[demo]'") from error
    return Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")


def plain(axes: Axes) -> None:
    """Leave out what carries no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=GREY)


def heading(figure: Figure, title: str) -> None:
    """Say above all panels what the picture says as a whole."""
    figure.suptitle(title, fontsize=13, fontweight="bold")


def panel_title(axes: Axes, title: str, note: str = "", color: str = GREY) -> None:
    """What a panel shows, on its left, and a figure or two about it, on its right."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_title(note, fontsize=8.5, color=color, loc="right")


def series_look(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th line of a panel."""
    return {"color": SERIES[i % len(SERIES)], "linestyle": DASHES[i // len(SERIES) % len(DASHES)]}


def log_axis(axes: Axes, values: Array) -> None:
    """A logarithmic vertical axis that holds all values above 0, and two decades or more."""
    good = values[np.isfinite(values) & (values > 0.0)]
    if len(good):
        axes.set_yscale("log")
        low, high = np.floor(np.log10(good.min())), np.ceil(np.log10(good.max()))
        axes.set_ylim(0.7 * 10.0 ** min(low, high - 1.0), 1.4 * 10.0**high)


def above_zero(values: Array) -> Array:
    """The same, NaN where a logarithmic axis has no place for it."""
    return np.where(values > 0.0, values, np.nan)


def show_times(axes: Axes, t: Array) -> None:
    """Let the horizontal axis be time (k,), with a little room for the ticks at both ends."""
    room = 0.005 * (t[-1] - t[0])
    axes.set_xlim(t[0] - room, t[-1] + room)


def motion(robot: RobotModel, times: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Times (k,) [s] and joint values (k, n) [rad or m], checked.

    Raises:
        JointValueError: values that do not fit the robot or each other, or times that fall.
    """
    t = np.asarray(times, dtype=np.float64)
    values = robot.validated(q)
    if t.ndim != 1 or values.ndim != 2 or len(t) != len(values) or len(t) < 2:
        raise JointValueError(
            "a picture takes times (k,) and joint values (k, n) for two instants or more, not "
            f"{t.shape} and {values.shape}"
        )
    if not np.isfinite(t).all() or (np.diff(t) < 0.0).any() or t[0] == t[-1]:
        raise JointValueError("the times of a picture are finite numbers that rise")
    return t, values


def unit_of(robot: RobotModel, i: int) -> str:
    """The unit of the i-th joint."""
    return "m" if robot.chain.prismatic[robot.chain.variable == i].any() else "rad"


SUFFIXES = (".png", ".svg", ".pdf")
_DATES = {".svg": "Date", ".pdf": "CreationDate"}


def check_picture(path: Path) -> None:
    """Refuse a kind of file that no picture can be saved as, and pictures without matplotlib.

    Raises:
        DlsIkError: the reason.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise DlsIkError(f"a picture is one of {', '.join(SUFFIXES)}, not {path.name}")
    new_figure(1.0, 1.0)


def save_picture(path: Path, figure: Figure, dpi: int = 150) -> None:
    """Save it as what its suffix says.

    Raises:
        DlsIkError: as :func:`check_picture`.
    """
    import matplotlib as mpl

    check_picture(path)
    date = _DATES.get(path.suffix.lower())
    with mpl.rc_context({"svg.hashsalt": "dls_ik"}):  # names of the parts of an SVG
        figure.savefig(path, dpi=dpi, metadata={date: None} if date else None)
