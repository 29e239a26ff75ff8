"""What all pictures share: the empty figure, the colours, the look of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.exceptions import DlsIkError, JointValueError
from dls_ik.model.robot import RobotModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito: told apart by colour-blind people, and in print.
BLUE = "#0072B2"  # what was done
ORANGE = "#E69F00"  # what was asked
RED = "#D55E00"  # what is forbidden
GREY = "#5A5A5A"
PALE = "#C9CED6"


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


def show_times(axes: Axes, t: Array) -> None:
    """Let the horizontal axis be time (k,), with a little room for the ticks at both ends."""
    room = 0.005 * (t[-1] - t[0])
    axes.set_xlim(t[0] - room, t[-1] + room)


def motion(robot: RobotModel, times: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Times (k,) [s] and joint values (k, n) [rad or m], checked.

    Raises:
        JointValueError: values that do not fit the robot or each other.
    """
    t = np.asarray(times, dtype=np.float64)
    values = robot.validated(q)
    if t.ndim != 1 or values.ndim != 2 or len(t) != len(values) or len(t) < 2:
        raise JointValueError(
            "a picture takes times (k,) and joint values (k, n) for two instants or more, not "
            f"{t.shape} and {values.shape}"
        )
    return t, values
