"""Figures 4 and 5 of Deo & Walker 1993: a rectangle, by pseudoinverse and by optimal damping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.plot.canvas import new_figure
from dls_ik.reproduce import planar_3r
from dls_ik.reproduce.experiment import Experiment, Progress
from dls_ik.reproduce.rates import DELTA, FEEDBACK, figures, follow, maker, series
from dls_ik.reproduce.rates_plot import arm_panel, legend, norm_panel
from dls_ik.reproduce.rates_table import RATE_NOTE, SEARCH_NOTE, TABLE, append, printed
from dls_ik.reproduce.report import Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "pseudoinverse": ("jp", {}),
    "optimal (18)": ("odls", {"Delta": DELTA, "search": 18}),
    "optimal (17)": ("odls", {"Delta": DELTA, "search": 17}),
}


def run(report: Reproduction, progress: Progress) -> None:
    """Follow the rectangle with every method."""
    steps, case = report.samples, planar_3r.case()
    dt, path = planar_3r.DURATION / steps, planar_3r.rectangle(steps)
    report.settings.update({**planar_3r.SETTINGS, "Delta": DELTA, "K_p": FEEDBACK, "dt": dt})
    report.printed.append(printed("optimal (18)", 2.0))
    report.notes += [planar_3r.NOTE, RATE_NOTE, SEARCH_NOTE]
    report.series["path"] = np.array([moment.T[:2, 3] for moment in path])
    for name in progress.track(list(METHODS), "rectangle"):
        motion = follow(maker(case, *METHODS[name]), case.start, path, dt)
        append(report, figures(name, motion))
        report.series[name] = series(motion, dt)


def plot(report: Reproduction) -> Figure:
    """The two figures, one above the other."""
    shown = [name for name in list(METHODS)[:2] if name in report.series]
    figure = new_figure(10.0, 0.6 + 3.6 * max(1, len(shown)))
    grid = figure.subplots(max(1, len(shown)), 2, squeeze=False)
    top = max((float(np.max(report.series[name]["norm"])) for name in shown), default=DELTA)
    for row, name in zip(grid, shown, strict=False):
        data = report.series[name]
        points = planar_3r.joints(np.asarray(data["q"]))
        arm_panel(row[0], points, np.asarray(report.series["path"]), name)
        norm_panel(row[1], np.asarray(data["t"]), np.asarray(data["norm"]), top)
    legend(figure, grid[0, 0])
    figure.suptitle("Figures 4 and 5 of Deo & Walker 1993", fontsize=13, fontweight="bold")
    return figure


EXPERIMENT = Experiment(
    what="figures-4-5",
    source="Deo & Walker 1993, Figures 4 and 5",
    title="Planar 3R arm around a rectangle, by pseudoinverse and by optimal damping",
    tables=(TABLE,),
    run=run,
    plot=plot,
    samples=640,
    samples_are="steps along the path",
    least_samples=32,
)
