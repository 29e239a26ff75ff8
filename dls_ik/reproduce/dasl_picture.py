"""The picture of the DASL arm: from the side, its ticks, and what rounding them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, RED, new_figure, plain
from dls_ik.reproduce.report import Reproduction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

JOINTS = tuple(f"joint{i}" for i in range(1, 6))
WAYS = ("set after each step", "coupled in the model", "pointing task")


def plot(report: Reproduction) -> Figure:
    """The arm along its path from the side, the ticks, and what rounding them costs."""
    figure = new_figure(12.0, 4.4)
    side, sent, off = figure.subplots(1, 3, width_ratios=(1.0, 1.1, 1.1))
    way = next((way for way in reversed(WAYS) if way in report.series), None)
    _draw_side(side, np.asarray(report.series.get(way or "", [])), np.array(report.series["path"]))
    rows = [row for row in report.rows if row.get("way") == way]
    for joint, color in zip(JOINTS, (BLUE, ORANGE, RED, GREY, PALE), strict=True):
        steps = [row["waypoint"] for row in rows]
        sent.step(steps, [row[joint] for row in rows], where="mid", color=color, label=joint)
    sent.set_title(f"goal positions [ticks], {way}", fontsize=9, loc="left")
    looks = ((BLUE, 3.5, 7), (ORANGE, 2.0, 4), (GREY, 0.7, 2))  # the thin ones above the thick
    for name, (color, lw, ms) in zip(WAYS, looks, strict=True):
        rows = [row for row in report.rows if row.get("way") == name]
        steps = [row["waypoint"] for row in rows]
        off.plot(steps, [row["after"] for row in rows], "o-", ms=ms, lw=lw, color=color, label=name)
    off.set_title("distance after rounding [mm]", fontsize=9, loc="left")
    off.set_ylim(0.0)
    for axes in (sent, off):
        axes.set_xlabel("waypoint", fontsize=8)
        axes.legend(fontsize=7, frameon=False)
        plain(axes)
    figure.suptitle("DASL arm, tool vertical, in ticks", fontsize=13, fontweight="bold")
    return figure


def _draw_side(axes: Axes, chains: Array, path: Array) -> None:
    """Distance from the waist's axis over height, waypoint by waypoint."""
    for i, chain in enumerate(chains):
        out = np.hypot(chain[:, 0], chain[:, 1])
        last = i + 1 == len(chains)
        axes.plot(
            out, chain[:, 2], "o-", ms=2.5, lw=2.4 if last else 0.9, color=BLUE if last else PALE
        )
    axes.plot(np.hypot(path[:, 0], path[:, 1]), path[:, 2], ".", ms=4, color=ORANGE)
    axes.set_aspect("equal")
    axes.set_title("height over distance from the waist [cm]", fontsize=9, loc="left")
    plain(axes)
