"""Pictures as in Deo & Walker 1993: the arm at intervals, and the joint velocity over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.arm import draw_arms, fading
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, RED, plain, show_times
from dls_ik.reproduce.rates import DELTA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POSES = 33  # of the arm in a picture


def arm_panel(axes: Axes, points: Array, path: Array, title: str) -> None:
    """The arm at intervals, pale to dark, along its path.

    Args:
        points: (s, k, 2) of the arm over time.
        path: (s, 2) asked for.
    """
    chosen = np.unique(np.linspace(0, len(points) - 1, POSES).astype(int))
    draw_arms(axes, points[chosen], fading(np.linspace(0.0, 1.0, len(chosen))), 0.8)
    axes.plot(*path.T, color=ORANGE, linewidth=3.0, alpha=0.7, label="asked for")
    axes.plot(*points[:, -1].T, color="black", linewidth=1.0, label="path of the tip")
    axes.plot(*points[0, 0], "o", color=GREY, markersize=4)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_title(title, fontsize=10, fontweight="bold", loc="left")
    plain(axes)


def legend(figure: Figure, axes: Axes) -> None:
    """One legend for all arms, below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=2, frameon=False, fontsize=8)


def norm_panel(axes: Axes, t: Array, norm: Array, top: float) -> None:
    """The norm of the joint velocity over time, and its bound."""
    axes.plot(t, norm, color=BLUE, linewidth=1.4)
    axes.axhline(DELTA, color=RED, linewidth=1.0, linestyle="--")
    axes.annotate(
        f"bound {DELTA:g}", (t[-1], DELTA), (0, 3), textcoords="offset points", ha="right",
        fontsize=8, color=RED,
    )  # fmt: skip
    axes.set_ylim(0.0, 1.05 * max(top, DELTA))
    show_times(axes, t)
    axes.set_xlabel("time [s]", fontsize=9)
    axes.set_ylabel("norm of the joint velocity [1/s]", fontsize=9)
    plain(axes)
