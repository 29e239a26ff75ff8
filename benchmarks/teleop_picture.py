# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Picture of the comparison on streams of teleoperation, with a row for each package."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.teleop_figures import PeerFigures
from dls_ik.plot import save_picture
from dls_ik.plot.canvas import GREY, heading, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, OTHERS = "#0B6E99", "#B8BEC5"


class Panel(NamedTuple):
    """A figure that the picture shows for each package."""

    title: str
    value: Callable[[PeerFigures], float]
    pattern: str  # format of the number next to a bar


PANELS = (
    Panel(
        "largest acceleration\n(1: the limit of the joints)", lambda f: f.acceleration, "{:,.0f}"
    ),
    Panel("cycles above the\nvelocity limit", lambda f: f.steps_above, "{:,.0f}"),
    Panel("stops of 0.2 s although the\ntarget can be reached", lambda f: f.freezes, "{:,.0f}"),
    Panel("processor time of a\ncycle, median [us]", lambda f: 1e6 * f.median_time, "{:,.0f}"),
)


def draw(path: Path, figures: dict[str, PeerFigures]) -> None:
    """Write the picture of all packages that ran."""
    names = list(figures)[::-1]
    cycles = next(iter(figures.values())).cycles
    picture = new_figure(11.0, 1.5 + 0.34 * len(names))
    heading(picture, f"The same {cycles:,} targets of teleoperation, followed by each package")
    axes = picture.subplots(1, len(PANELS), sharey=True)
    for each, panel in zip(axes, PANELS, strict=True):
        _draw_panel(each, panel, names, [panel.value(figures[name]) for name in names])
    save_picture(path, picture)


def _draw_panel(axes: "Axes", panel: Panel, names: list[str], values: list[float]) -> None:
    colours = [OURS if name.startswith("dls_ik") else OTHERS for name in names]
    axes.barh(names, values, color=colours, height=0.62)
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xlim(0.0, 12.0 * max(*values, 1.0))
    plain(axes)
    axes.grid(visible=False, axis="y")
    axes.set_title(panel.title, fontsize=9.5, loc="left")
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", labelsize=9, length=0, colors="black")
    ticks = [tick for tick in (0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6) if tick <= 2.0 * max(*values, 1)]
    axes.set_xticks(ticks[:1] + ticks[1::2] if len(ticks) > 5 else ticks)
    axes.minorticks_off()
    for row, value in enumerate(values):
        axes.annotate(
            panel.pattern.format(value),
            (value, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color="black" if colours[row] == OURS else GREY,
        )
