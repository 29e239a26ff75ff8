"""Figure 6 of Deo & Walker 1993: the PUMA from near its shoulder singularity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import BLUE, ORANGE, RED, new_figure, plain, show_times
from dls_ik.reproduce.experiment import Experiment, Progress
from dls_ik.reproduce.rates import (
    DELTA,
    FEEDBACK,
    Case,
    Moment,
    figures,
    follow,
    maker,
    series,
)
from dls_ik.reproduce.rates_table import RATE_NOTE, SEARCH_NOTE, TABLE, append, printed
from dls_ik.reproduce.report import Reproduction
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

START = np.radians([0.0, 45.5, 0.0, 0.0, 45.0, 0.0])  # the wrist 9 mm beside the singular plane
SPEED, DURATION = 0.5, 0.7  # [m/s], [s]
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "pseudoinverse": ("jp", {}),
    "optimal (18)": ("odls", {"Delta": DELTA, "search": 18}),
    "optimal (17)": ("odls", {"Delta": DELTA, "search": 17}),
}
NOTES = [
    "The start, the bound and the duration are not printed: here (0, 45.5, 0, 0, 45, 0) "
    "deg, 5, 0.7 s.",
    "Our PUMA has its shoulder offset on the other side of y = 0: its singular motion, away from "
    "the shoulder axis, is along -y. A metre and a radian weigh the same, as in the paper.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Move in the singular direction with every method."""
    robot = RobotModel.from_name("puma560")
    case = Case(robot, START, Task())
    dt = DURATION / report.samples
    path = _line(robot.fk(START), report.samples)
    given = {"robot": "puma560", "start [deg]": np.degrees(START), "velocity [m/s]": (0, -SPEED, 0)}
    report.settings.update({**given, "Delta": DELTA, "K_p": FEEDBACK, "dt": dt})
    report.printed.append(printed("optimal (18)", 3.0))
    report.notes += [*NOTES, RATE_NOTE, SEARCH_NOTE]
    for name in progress.track(list(METHODS), "PUMA"):
        motion = follow(maker(case, *METHODS[name]), START, path, dt)
        append(report, figures(name, motion))
        report.series[name] = series(motion, dt)


def _line(start: Array, steps: int) -> list[Moment]:
    """A straight line along -y, the rotation kept."""
    path = []
    for t in np.arange(steps) * (DURATION / steps):
        T = start.copy()
        T[1, 3] -= SPEED * t
        path.append(Moment(T, np.array([0.0, -SPEED, 0.0, 0.0, 0.0, 0.0])))
    return path


def plot(report: Reproduction) -> Figure:
    """Joint velocity and deviation over time, of both."""
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    for name, color in (("pseudoinverse", ORANGE), ("optimal (18)", BLUE)):
        if name in report.series:
            data = report.series[name]
            t = np.asarray(data["t"])
            left.plot(t, data["norm"], color=color, label=name)
            right.plot(t, 1e3 * np.asarray(data["deviation"]), color=color, label=name)
            show_times(left, t)
            show_times(right, t)
    left.axhline(DELTA, color=RED, linewidth=1.0, linestyle="--", label=f"bound {DELTA:g}")
    left.set_yscale("log")
    _label(left, "norm of the joint velocity [1/s]")
    _label(right, "off the path [mm, mrad]")
    figure.suptitle("Figure 6 of Deo & Walker 1993: PUMA", fontsize=13, fontweight="bold")
    return figure


def _label(axes: Axes, text: str) -> None:
    axes.set_xlabel("time [s]", fontsize=9)
    axes.set_ylabel(text, fontsize=9)
    if axes.lines:
        axes.legend(fontsize=8, frameon=False)
    plain(axes)


EXPERIMENT = Experiment(
    what="figure-6",
    source="Deo & Walker 1993, Figure 6",
    title="PUMA 560 moving in the singular direction of its shoulder, by pseudoinverse and damped",
    tables=(TABLE,),
    run=run,
    plot=plot,
    samples=350,
    samples_are="steps along the path",
    least_samples=32,
)
