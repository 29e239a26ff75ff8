"""Figure 7 of Deo & Walker 1993: the rectangle, with an obstacle below its lower left corner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.canvas import RED, new_figure
from dls_ik.reproduce import planar_3r
from dls_ik.reproduce.experiment import Experiment, Progress
from dls_ik.reproduce.rates import DELTA, FEEDBACK, Motion, figures, follow, maker, series
from dls_ik.reproduce.rates_plot import arm_panel, legend, norm_panel
from dls_ik.reproduce.rates_table import RATE_NOTE, SEARCH_NOTE, TABLE, append, printed
from dls_ik.reproduce.report import Reproduction
from dls_ik.reproduce.table import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBSTACLE = (1.0, -0.3)
LAST_SIDE = planar_3r.HEIGHT / (2.0 * (planar_3r.WIDTH + planar_3r.HEIGHT))  # share of the path
_POSTURE = {"objective": "posture", "reference": tuple(np.radians([-30.0, 0.0, 0.0]).tolist())}
_DISTANCE = {"objective": "obstacle", "obstacle": (*OBSTACLE, 0.0), "influence": 1.2}
_BOTH = {"mu": 1.0, "Delta": DELTA}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "no subtask (18)": ("odls", {"Delta": DELTA}),
    "reference (18)": ("gp+odls", {**_POSTURE, **_BOTH, "search": 18}),
    "reference (17)": ("gp+odls", {**_POSTURE, **_BOTH, "search": 17}),
    "distance (18)": ("gp+odls", {**_DISTANCE, **_BOTH, "search": 18}),
    "distance (17)": ("gp+odls", {**_DISTANCE, **_BOTH, "search": 17}),
}
NOTES = [
    f"Where the obstacle is, and the gain, are not printed: here {OBSTACLE} and mu = 1.",
    "Two criteria: the distance from the reference configuration (-30, 0, 0) deg that the figure "
    "prints, and the distance of the links from the obstacle, within 1.2. Elbow: up if the "
    "two inner joints are above the tip at the end of the last side. The paper's comes down with "
    "its elbow up. So does ours by the distance from the obstacle; by the reference configuration "
    "it stays down, on the obstacle. How the paper uses the reference is not known.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Follow the rectangle with every criterion."""
    steps, case = report.samples, planar_3r.case()
    dt, path = planar_3r.DURATION / steps, planar_3r.rectangle(steps)
    given = {"Delta": DELTA, "K_p": FEEDBACK, "dt": dt, "obstacle": OBSTACLE, "mu": 1.0}
    report.settings.update({**planar_3r.SETTINGS, **given, "reference [deg]": (-30, 0, 0)})
    report.printed.append({**printed("distance (18)", 3.0), "elbow": "up"})
    report.notes += [*NOTES, planar_3r.NOTE, RATE_NOTE, SEARCH_NOTE]
    report.series["path"] = np.array([moment.T[:2, 3] for moment in path])
    for name in progress.track(list(METHODS), "rectangle"):
        motion = follow(maker(case, *METHODS[name]), case.start, path, dt)
        append(report, {**figures(name, motion), **_clearance(motion)})
        report.series[name] = series(motion, dt)


def _clearance(motion: Motion) -> dict[str, Any]:
    """How near the links come to the obstacle on the last side, and which way the elbow bends."""
    last = motion.q[-max(1, round(LAST_SIDE * len(motion.q))) :]
    points = planar_3r.joints(last)
    near = min(float(_distances(arm, np.array(OBSTACLE)).min()) for arm in points)
    _, elbow, wrist, tip = points[-1]
    is_up = 0.5 * (elbow[1] + wrist[1]) > tip[1]
    return {"clearance": near, "elbow": "up" if is_up else "down"}


def _distances(arm: Array, point: Array) -> Array:
    """Of a point (2,) from every link of an arm (k + 1, 2)."""
    along = np.diff(arm, axis=0)
    share = ((point - arm[:-1]) * along).sum(axis=1) / (along**2).sum(axis=1)
    nearest = arm[:-1] + np.clip(share, 0.0, 1.0)[:, None] * along
    return np.asarray(np.linalg.norm(nearest - point, axis=1))


def plot(report: Reproduction) -> Figure:
    """The arm and its joint velocity, without a subtask and with either."""
    shown = [name for name in METHODS if name.endswith("(18)") and name in report.series]
    figure = new_figure(10.0, 0.6 + 3.4 * max(1, len(shown)))
    grid = figure.subplots(max(1, len(shown)), 2, squeeze=False)
    for row, name in zip(grid, shown, strict=False):
        data = report.series[name]
        points = planar_3r.joints(np.asarray(data["q"]))
        arm_panel(row[0], points, np.asarray(report.series["path"]), name)
        row[0].plot(*OBSTACLE, "s", color=RED, markersize=7)
        row[0].annotate("obstacle", OBSTACLE, (8, -3), textcoords="offset points", color=RED)
        norm_panel(row[1], np.asarray(data["t"]), np.asarray(data["norm"]), 1.2 * DELTA)
    legend(figure, grid[0, 0])
    figure.suptitle("Figure 7 of Deo & Walker 1993", fontsize=13, fontweight="bold")
    return figure


EXPERIMENT = Experiment(
    what="figure-7",
    source="Deo & Walker 1993, Figure 7",
    title="Planar 3R arm around a rectangle, past an obstacle, by optimal damping (25) to (29)",
    tables=(
        Table(
            (
                *TABLE.columns,
                Column("clearance", "from obstacle [m]", ".3f"),
                Column("elbow", "elbow", is_text=True),
            )
        ),
    ),
    run=run,
    plot=plot,
    samples=640,
    samples_are="steps along the path",
    least_samples=32,
)
