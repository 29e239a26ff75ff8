"""Figures 4 to 7 of Deo & Walker 1993: optimal damping on a planar 3R arm and on the PUMA 560.

Figures 4 and 5: a rectangle, by pseudoinverse and by optimal damping. Figure 6: the PUMA from near
its shoulder singularity. Figure 7: the rectangle, with an obstacle below its lower left corner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.dh import DhRow
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import BLUE, ORANGE, RED, new_figure, plain, show_times
from dls_ik.reproduce.experiment import Experiment, Progress
from dls_ik.reproduce.report import Column, Reproduction, Table
from dls_ik.reproduce.resolved_rates import (
    DELTA,
    FEEDBACK,
    RATE_NOTE,
    SEARCH_NOTE,
    TABLE,
    Case,
    Moment,
    Motion,
    append,
    arm_panel,
    figures,
    follow,
    legend,
    maker,
    norm_panel,
    printed,
    series,
)
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Planar arm and rectangle of Figures 4, 5 and 7

PLANAR_LINKS = (1.0, 0.5, 0.5)
PLANAR_START = np.radians([5.0, -175.0, 175.0])
WIDTH, HEIGHT = 0.7, 0.9
PLANAR_SPEED = 1.0  # along the rectangle [1/s]
PLANAR_DURATION = 2.0 * (WIDTH + HEIGHT) / PLANAR_SPEED
PLANAR_SETTINGS = {
    "links": PLANAR_LINKS,
    "start [deg]": (5, -175, 175),
    "rectangle": f"{WIDTH} wide, {HEIGHT} high, counter-clockwise from its lower left corner",
    "speed [1/s]": PLANAR_SPEED,
}
PLANAR_NOTE = (
    "The rectangle of 0.9 x 0.7 is 0.7 wide and 0.9 high here: from the start it would leave the "
    "reach of the arm the other way round. Its speed is not printed; here 1 unit a second."
)


def planar_case() -> Case:
    """The arm, at its start, whose position in the plane counts."""
    robot = RobotModel.from_dh(
        [DhRow(a=a, kind="continuous") for a in PLANAR_LINKS], name="planar_3r"
    )
    return Case(robot, PLANAR_START, Task("xy", ""))


def rectangle(steps: int) -> list[Moment]:
    """The path from the lower left corner, counter-clockwise."""
    corner = planar_joints(PLANAR_START)[-1]
    sides = np.array([[WIDTH, 0.0], [0.0, HEIGHT], [-WIDTH, 0.0], [0.0, -HEIGHT]])
    corners = corner + np.concatenate([np.zeros((1, 2)), np.cumsum(sides, axis=0)])
    lengths = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])
    ends = np.cumsum(lengths)
    path = []
    for way in np.arange(steps) * (ends[-1] / steps):
        side = min(int(np.searchsorted(ends, way, side="right")), 3)
        direction = sides[side] / lengths[side]
        T = np.eye(4)
        T[:2, 3] = corners[side] + direction * (way - ends[side] + lengths[side])
        path.append(Moment(T, PLANAR_SPEED * direction))
    return path


def planar_joints(q: Array) -> Array:
    """The base, the joints and the tip (..., 4, 2) at q (..., 3)."""
    turned = np.cumsum(q, axis=-1)
    links = np.array(PLANAR_LINKS)[:, None] * np.stack([np.cos(turned), np.sin(turned)], axis=-1)
    ends = np.cumsum(links, axis=-2)
    return np.concatenate([np.zeros_like(ends[..., :1, :]), ends], axis=-2)


# Figures 4 and 5

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "pseudoinverse": ("jp", {}),
    "optimal (18)": ("odls", {"Delta": DELTA, "search": 18}),
    "optimal (17)": ("odls", {"Delta": DELTA, "search": 17}),
}


def run_figures_4_5(report: Reproduction, progress: Progress) -> None:
    """Follow the rectangle with every method."""
    steps, case = report.samples, planar_case()
    dt, path = PLANAR_DURATION / steps, rectangle(steps)
    report.settings.update({**PLANAR_SETTINGS, "Delta": DELTA, "K_p": FEEDBACK, "dt": dt})
    report.printed.append(printed("optimal (18)", 2.0))
    report.notes += [PLANAR_NOTE, RATE_NOTE, SEARCH_NOTE]
    report.series["path"] = np.array([moment.T[:2, 3] for moment in path])
    for name in progress.track(list(METHODS), "rectangle"):
        motion = follow(maker(case, *METHODS[name]), case.start, path, dt)
        append(report, figures(name, motion))
        report.series[name] = series(motion, dt)


def plot_figures_4_5(report: Reproduction) -> Figure:
    """The two figures, one above the other."""
    shown = [name for name in list(METHODS)[:2] if name in report.series]
    figure = new_figure(10.0, 0.6 + 3.6 * max(1, len(shown)))
    grid = figure.subplots(max(1, len(shown)), 2, squeeze=False)
    top = max((float(np.max(report.series[name]["norm"])) for name in shown), default=DELTA)
    for row, name in zip(grid, shown, strict=False):
        data = report.series[name]
        points = planar_joints(np.asarray(data["q"]))
        arm_panel(row[0], points, np.asarray(report.series["path"]), name)
        norm_panel(row[1], np.asarray(data["t"]), np.asarray(data["norm"]), top)
    legend(figure, grid[0, 0])
    figure.suptitle("Figures 4 and 5 of Deo & Walker 1993", fontsize=13, fontweight="bold")
    return figure


FIGURES_4_5 = Experiment(
    what="figures-4-5",
    source="Deo & Walker 1993, Figures 4 and 5",
    title="Planar 3R arm around a rectangle, by pseudoinverse and by optimal damping",
    tables=(TABLE,),
    run=run_figures_4_5,
    plot=plot_figures_4_5,
    samples=640,
    samples_are="steps along the path",
    least_samples=32,
)


# Figure 6

# The wrist is 9 mm beside the singular plane.
PUMA_START = np.radians([0.0, 45.5, 0.0, 0.0, 45.0, 0.0])
PUMA_SPEED, PUMA_DURATION = 0.5, 0.7  # [m/s], [s]
FIGURE_6_NOTES = [
    "The start, the bound and the duration are not printed: here (0, 45.5, 0, 0, 45, 0) "
    "deg, 5, 0.7 s.",
    "Our PUMA has its shoulder offset on the other side of y = 0: its singular motion, away from "
    "the shoulder axis, is along -y. A metre and a radian weigh the same, as in the paper.",
]


def run_figure_6(report: Reproduction, progress: Progress) -> None:
    """Move in the singular direction with every method."""
    robot = RobotModel.from_name("puma560")
    case = Case(robot, PUMA_START, Task())
    dt = PUMA_DURATION / report.samples
    path = _puma_line(robot.fk(PUMA_START), report.samples)
    given = {
        "robot": "puma560",
        "start [deg]": np.degrees(PUMA_START),
        "velocity [m/s]": (0, -PUMA_SPEED, 0),
    }
    report.settings.update({**given, "Delta": DELTA, "K_p": FEEDBACK, "dt": dt})
    report.printed.append(printed("optimal (18)", 3.0))
    report.notes += [*FIGURE_6_NOTES, RATE_NOTE, SEARCH_NOTE]
    for name in progress.track(list(METHODS), "PUMA"):
        motion = follow(maker(case, *METHODS[name]), PUMA_START, path, dt)
        append(report, figures(name, motion))
        report.series[name] = series(motion, dt)


def _puma_line(start: Array, steps: int) -> list[Moment]:
    """A straight line along -y, the rotation kept."""
    path = []
    for t in np.arange(steps) * (PUMA_DURATION / steps):
        T = start.copy()
        T[1, 3] -= PUMA_SPEED * t
        path.append(Moment(T, np.array([0.0, -PUMA_SPEED, 0.0, 0.0, 0.0, 0.0])))
    return path


def plot_figure_6(report: Reproduction) -> Figure:
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


FIGURE_6 = Experiment(
    what="figure-6",
    source="Deo & Walker 1993, Figure 6",
    title="PUMA 560 moving in the singular direction of its shoulder, by pseudoinverse and damped",
    tables=(TABLE,),
    run=run_figure_6,
    plot=plot_figure_6,
    samples=350,
    samples_are="steps along the path",
    least_samples=32,
)


# Figure 7

OBSTACLE = (1.0, -0.3)
LAST_SIDE = HEIGHT / (2.0 * (WIDTH + HEIGHT))  # share of the path
_POSTURE = {"objective": "posture", "reference": tuple(np.radians([-30.0, 0.0, 0.0]).tolist())}
_DISTANCE = {"objective": "obstacle", "obstacle": (*OBSTACLE, 0.0), "influence": 1.2}
_BOTH = {"mu": 1.0, "Delta": DELTA}
SUBTASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "no subtask (18)": ("odls", {"Delta": DELTA}),
    "reference (18)": ("gp+odls", {**_POSTURE, **_BOTH, "search": 18}),
    "reference (17)": ("gp+odls", {**_POSTURE, **_BOTH, "search": 17}),
    "distance (18)": ("gp+odls", {**_DISTANCE, **_BOTH, "search": 18}),
    "distance (17)": ("gp+odls", {**_DISTANCE, **_BOTH, "search": 17}),
}
FIGURE_7_NOTES = [
    f"Where the obstacle is, and the gain, are not printed: here {OBSTACLE} and mu = 1.",
    "Two criteria: the distance from the reference configuration (-30, 0, 0) deg that the figure "
    "prints, and the distance of the links from the obstacle, within 1.2. Elbow: up if the "
    "two inner joints are above the tip at the end of the last side. The paper's comes down with "
    "its elbow up. So does ours by the distance from the obstacle; by the reference configuration "
    "it stays down, on the obstacle. How the paper uses the reference is not known.",
]


def run_figure_7(report: Reproduction, progress: Progress) -> None:
    """Follow the rectangle with every criterion."""
    steps, case = report.samples, planar_case()
    dt, path = PLANAR_DURATION / steps, rectangle(steps)
    given = {"Delta": DELTA, "K_p": FEEDBACK, "dt": dt, "obstacle": OBSTACLE, "mu": 1.0}
    report.settings.update({**PLANAR_SETTINGS, **given, "reference [deg]": (-30, 0, 0)})
    report.printed.append({**printed("distance (18)", 3.0), "elbow": "up"})
    report.notes += [*FIGURE_7_NOTES, PLANAR_NOTE, RATE_NOTE, SEARCH_NOTE]
    report.series["path"] = np.array([moment.T[:2, 3] for moment in path])
    for name in progress.track(list(SUBTASKS), "rectangle"):
        motion = follow(maker(case, *SUBTASKS[name]), case.start, path, dt)
        append(report, {**figures(name, motion), **_clearance(motion)})
        report.series[name] = series(motion, dt)


def _clearance(motion: Motion) -> dict[str, Any]:
    """How near the links come to the obstacle on the last side, and which way the elbow bends."""
    last = motion.q[-max(1, round(LAST_SIDE * len(motion.q))) :]
    points = planar_joints(last)
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


def plot_figure_7(report: Reproduction) -> Figure:
    """The arm and its joint velocity, without a subtask and with either."""
    shown = [name for name in SUBTASKS if name.endswith("(18)") and name in report.series]
    figure = new_figure(10.0, 0.6 + 3.4 * max(1, len(shown)))
    grid = figure.subplots(max(1, len(shown)), 2, squeeze=False)
    for row, name in zip(grid, shown, strict=False):
        data = report.series[name]
        points = planar_joints(np.asarray(data["q"]))
        arm_panel(row[0], points, np.asarray(report.series["path"]), name)
        row[0].plot(*OBSTACLE, "s", color=RED, markersize=7)
        row[0].annotate("obstacle", OBSTACLE, (8, -3), textcoords="offset points", color=RED)
        norm_panel(row[1], np.asarray(data["t"]), np.asarray(data["norm"]), 1.2 * DELTA)
    legend(figure, grid[0, 0])
    figure.suptitle("Figure 7 of Deo & Walker 1993", fontsize=13, fontweight="bold")
    return figure


FIGURE_7 = Experiment(
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
    run=run_figure_7,
    plot=plot_figure_7,
    samples=640,
    samples_are="steps along the path",
    least_samples=32,
)
