# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures, colours, axes and files that all pictures use."""

from __future__ import annotations

import io
import os
from functools import partial
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

# Palette of Okabe and Ito, whose colours are distinct in print and for colour-blind people.
BLUE = "#0072B2"  # actual motion
ORANGE = "#E69F00"  # target
RED = "#D55E00"  # positions and velocities beyond a limit
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
BLACK = "#000000"
GREY = "#5A5A5A"
PALE = "#C9CED6"
SERIES = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK)  # colours of lines without a fixed meaning
DASHES = ("-", "--", ":", "-.")  # line styles; each is combined with all colours before the next

NOTEBOOK_DPI, NUM_COLOURS = 90, 200  # resolution and number of colours of pictures in notebooks
PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
_DATES = {".svg": "Date", ".pdf": "CreationDate"}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty matplotlib figure, which can be saved without a display.

    A notebook shows the figure if it is the last expression of a cell.

    Args:
        width: Width [inch].
        height: Height [inch].

    Raises:
        DlsIkError: If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DlsIkError("pictures need matplotlib: pip install 'dls-ik[demo]'") from error
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")
    figure._repr_png_ = partial(notebook_png, figure)  # type: ignore[attr-defined]
    return figure


def notebook_png(figure: Figure, **_: Any) -> bytes:
    """Return a figure as a PNG file with a reduced palette, which keeps notebook files small."""
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=NOTEBOOK_DPI)
    with Image.open(drawn) as image:
        reduced = image.convert("RGB").quantize(NUM_COLOURS, dither=Image.Dither.NONE)
    reduced.save(small, "png", optimize=True)
    return small.getvalue()


def check_picture(path: Path) -> None:
    """Check that a picture can be saved: its suffix is supported, and matplotlib is installed.

    Raises:
        DlsIkError: If the suffix is not supported, or matplotlib is not installed.
    """
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise DlsIkError(f"a picture must end in {', '.join(PICTURE_SUFFIXES)}; got {path.name}")
    new_figure(1.0, 1.0)


def save_picture(path: str | os.PathLike[str], figure: Figure, dpi: int = 150) -> None:
    """Save a figure in the format given by the suffix of the file name.

    No date is written, so that equal figures give identical files.

    Args:
        path: File to write, such as ``"arm.svg"``.
        figure: Figure.
        dpi: Resolution [dots per inch].

    Raises:
        DlsIkError: If the suffix is not supported, or matplotlib is not installed.
    """
    import matplotlib as mpl

    path = Path(path)
    check_picture(path)
    date = _DATES.get(path.suffix.lower())
    with mpl.rc_context({"svg.hashsalt": "dls_ik"}):  # same ids at each save
        figure.savefig(path, dpi=dpi, metadata={date: None} if date else None)


def plain(axes: Axes, x: str = "", y: str = "") -> None:
    """Apply the style of this package to axes: no frame, pale grid; set the axis labels x and y."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=GREY)
    if x:
        axes.set_xlabel(x, fontsize=9)
    if y:
        axes.set_ylabel(y, fontsize=9)


def heading(figure: Figure, title: str) -> None:
    """Write a bold title above all panels of a figure."""
    figure.suptitle(title, fontsize=13, fontweight="bold")


def panel_title(axes: Axes, title: str, note: str = "") -> None:
    """Write a title above a panel at its left side, and a small note at its right side."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_title(note, fontsize=8.5, color=GREY, loc="right")


def legend_below(figure: Any, handles: Any, columns: int, **look: Any) -> None:
    """Draw a legend below all panels of a figure.

    Args:
        figure: Figure.
        handles: Lines and patches that the legend explains.
        columns: Number of columns of the legend.
        **look: Further arguments of ``Figure.legend``.
    """
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
        **look,
    )


def series_look(i: int) -> dict[str, Any]:
    """Return the line options `color` and `linestyle` for line number i of a panel."""
    return {"color": SERIES[i % len(SERIES)], "linestyle": DASHES[i // len(SERIES) % len(DASHES)]}


def log_axis(axes: Axes, values: Array) -> None:
    """Make the vertical axis logarithmic; show all positive values, and at least two decades."""
    good = values[np.isfinite(values) & (values > 0.0)]
    if len(good):
        axes.set_yscale("log")
        low, high = np.floor(np.log10(good.min())), np.ceil(np.log10(good.max()))
        axes.set_ylim(0.7 * 10.0 ** min(low, high - 1.0), 1.4 * 10.0**high)


def above_zero(values: Array) -> Array:
    """Return values with NaN in place of 0 and negative numbers, for a logarithmic axis."""
    return np.where(values > 0.0, values, np.nan)


def show_times(axes: Axes, t: Array) -> None:
    """Set the horizontal axis to the range of the times t (k,) [s], with a small margin."""
    margin = 0.005 * (t[-1] - t[0])
    axes.set_xlim(t[0] - margin, t[-1] + margin)


def checked_motion(robot: RobotModel, times: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Check a motion, and return times (k,) [s] and joint positions (k, n) [rad or m] as arrays.

    Raises:
        JointValueError: If the joint positions do not fit the robot or the times, or times
            decrease.
    """
    t = np.asarray(times, dtype=np.float64)
    values = robot.validated(q)
    if t.ndim != 1 or values.ndim != 2 or len(t) != len(values) or len(t) < 2:
        raise JointValueError(
            "a picture needs times (k,) and joint positions (k, n) for at least 2 instants; got "
            f"shapes {t.shape} and {values.shape}"
        )
    if not np.isfinite(t).all() or (np.diff(t) < 0.0).any() or t[0] == t[-1]:
        raise JointValueError("the times of a picture must be finite, not decrease, not all equal")
    return t, values
