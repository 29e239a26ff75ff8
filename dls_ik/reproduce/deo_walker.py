# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures 4 to 7 of Deo & Walker 1993: optimal damping on a planar 3R arm and on the PUMA 560.

Figures 4 and 5: the planar arm follows a rectangle, by the pseudoinverse and by optimal damping.
Figure 6: the PUMA starts near its shoulder singularity. Figure 7: the planar arm follows the
rectangle, with an obstacle below the lower left corner of the rectangle.

Optimal damping uses the smallest damping factor with which the norm of the joint velocity is at
most Delta, called the bound here. An iterative search, equation (17) or (18) of the paper, finds
this factor in every step of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import fading
from dls_ik.plot.canvas import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    heading,
    legend_below,
    new_figure,
    plain,
    show_times,
)
from dls_ik.reproduce.deo_walker_damping import (
    DELTA,
    ERRATA_NOTE,
    FINE_SEARCH_TOLERANCE,
    PLANAR_LINKS,
    PLANAR_START,
    PLANAR_TASK,
)
from dls_ik.reproduce.deo_walker_paths import (
    FEEDBACK,
    PLANAR_DURATION,
    PLANAR_SPEED,
    PUMA_DURATION,
    PUMA_SPEED,
    PUMA_START,
    RECTANGLE_HEIGHT,
    RECTANGLE_WIDTH,
    Method,
    PathResult,
    follow,
    puma_line,
    rectangle,
)
from dls_ik.reproduce.experiment import (
    FITTED,
    TAUTOLOGICAL,
    Column,
    Experiment,
    NotPredicted,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
)
from dls_ik.reproduce.tabaczynski import draw_planar_arms, planar_joints, planar_robot
from dls_ik.solver.published_steps import running_filter, updated_singular_vector
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_BOUND_EXCESS = 1e-2  # a norm is above the bound if it exceeds the bound by this share of it
MAX_ITERATION_DIFFERENCE = 0.5  # larger differences from the printed iterations are marked
FINEST = "optimal (18) to 1e-10"


def figures(method: str, motion: PathResult) -> Row:
    """Return the table row of a method, computed from its motion along a path.

    The row has the largest norm of the joint velocity [1/s], the shares of steps above the bound
    and of damped steps [percent], the largest deviation from the path, and mean numbers of
    iterations of the search for the damping factor.
    """
    damped = motion.searches > 0
    return {
        "method": method,
        "peak": float(motion.norm.max()),
        "over_percent": 100.0 * float(np.mean(motion.norm > DELTA * (1.0 + MAX_BOUND_EXCESS))),
        "deviation": float(motion.deviation.max()),
        "damped_percent": 100.0 * float(damped.mean()),
        "searches": float(motion.searches[damped].mean()) if damped.any() else None,
        "searches_anew": float(motion.anew[damped].mean()) if damped.any() else None,
        "searches_printed": float(motion.as_printed[damped].mean()) if damped.any() else None,
    }


def series(motion: PathResult, dt: float) -> dict[str, Any]:
    """Return the data that the pictures show: arrays with a row for each time step of `dt` [s].

    The keys are "t" (time [s]), "q" (joint positions [rad]), "norm" (of the joint velocity [1/s])
    and "deviation" (from the path).
    """
    t = dt * np.arange(len(motion.norm))
    return {"t": t, "q": motion.q, "norm": motion.norm, "deviation": motion.deviation}


PATH_TABLE = ResultTable(
    (
        Column("method", "method", is_name=True),
        Column("peak", "largest norm [1/s]", ".2f"),
        Column("over_percent", "above bound [%]", ".1f"),
        Column("deviation", "deviation [m]", ".3f"),
        Column("damped_percent", "damped [%]", ".1f"),
        Column("searches", "iterations", ".2f"),
        Column("searches_anew", "without warm start", ".2f"),
        Column("searches_printed", "(18) from 0", ".2f"),
    )
)
SEARCH_NOTE = (
    "Iterations: mean number of iterations of the search for the damping factor, over the steps of "
    "the path that are damped. The search starts from the factor of the previous step, and ends "
    "when the norm of the joint velocity is within 1e-3 of the bound. Without warm start: the same "
    "searches do not know the previous factor. (18) from 0: equation (18) as printed starts from "
    f"a factor of 0, without limits on the factor, and ends within {FINE_SEARCH_TOLERANCE:g} of "
    "the bound. These iterations are compared with the paper, which prints whole numbers and no "
    "tolerance."
)
RATE_NOTE = (
    f"The commanded velocity includes the feedback of section 2.1, with a gain of {FEEDBACK:g}/s; "
    "the paper prints neither the gain nor the time step."
)


def printed(method: str, searches: float) -> Row:
    """Return the row of the paper for optimal damping: the norm of the joint velocity is Delta.

    Args:
        method: Name of our method that is compared with the paper.
        searches: Printed number of iterations of the search for the damping factor.
    """
    return {"method": method, "peak": DELTA, "over_percent": 0.0, "searches_printed": searches}


def append(report: Reproduction, row: Row) -> None:
    """Add a row to the report; mark its iterations if they differ from the printed number.

    Numbers differ if they are more than MAX_ITERATION_DIFFERENCE apart.
    """
    ours = row["searches_printed"]
    beside = [p["searches_printed"] for p in report.printed if p["method"] == row["method"]]
    differs = ours is not None and any(
        abs(ours - theirs) > MAX_ITERATION_DIFFERENCE for theirs in beside
    )
    report.rows.append(marked(row, ["searches_printed"] if differs else []))


NOT_PREDICTED = (
    NotPredicted(
        TAUTOLOGICAL,
        "optimal damping chooses the damping so that the norm of the joint velocity is at most "
        f"Delta = {DELTA:g}",
        columns=("peak", "over_percent"),
    ),
    NotPredicted(
        FITTED,
        f"the tolerance {FINE_SEARCH_TOLERANCE:g} of the search was chosen so that the printed "
        "numbers of iterations result",
        columns=("searches_printed",),
    ),
)
NUM_DRAWN_POSES = 33  # number of drawn poses of the arm


def arm_panel(axes: Axes, points: Array, path: Array, title: str) -> None:
    """Draw the arm at several instants, from pale (first) to dark (last), and its desired path.

    Args:
        axes: Axes to draw in.
        points: (s, k, 2) points of the arm over time.
        path: (s, 2) desired path.
        title: Title of the panel.
    """
    chosen = np.unique(np.linspace(0, len(points) - 1, NUM_DRAWN_POSES).astype(int))
    draw_planar_arms(axes, points[chosen], fading(np.linspace(0.0, 1.0, len(chosen))))
    axes.plot(*path.T, color=ORANGE, linewidth=3.0, alpha=0.7, label="desired")
    axes.plot(*points[:, -1].T, color="black", linewidth=1.0, label="path of the tip")
    axes.plot(*points[0, 0], "o", color=GREY, markersize=4)
    axes.set_title(title, fontsize=10, fontweight="bold", loc="left")


def norm_panel(axes: Axes, t: Array, norm: Array, top: float) -> None:
    """Draw the norm of the joint velocity over time, and the bound Delta.

    Args:
        axes: Axes to draw in.
        t: (s,) times [s].
        norm: (s,) norms [1/s].
        top: The vertical axis extends at least to this norm [1/s].
    """
    axes.plot(t, norm, color=BLUE, linewidth=1.4)
    axes.axhline(DELTA, color=RED, linewidth=1.0, linestyle="--")
    axes.annotate(
        f"bound {DELTA:g}", (t[-1], DELTA), (0, 3), textcoords="offset points", ha="right",
        fontsize=8, color=RED,
    )  # fmt: skip
    axes.set_ylim(0.0, 1.05 * max(top, DELTA))
    show_times(axes, t)
    plain(axes, "time [s]", "norm of the joint velocity [1/s]")


# Planar arm and rectangle of Figures 4, 5 and 7

PLANAR_SETTINGS = {
    "links": PLANAR_LINKS,
    "start [deg]": (5, -175, 175),
    "rectangle": f"{RECTANGLE_WIDTH} wide, {RECTANGLE_HEIGHT} high, counter-clockwise from the "
    "lower left corner",
    "speed [1/s]": PLANAR_SPEED,
}
PLANAR_NOTE = (
    "Rectangle: the 0.9 x 0.7 rectangle of the paper is 0.7 wide and 0.9 high here; with a width "
    "of 0.9 it would leave the reach of the arm. The paper does not print the speed; here it is 1 "
    "unit per second."
)


def run_rectangle(
    report: Reproduction,
    methods: Mapping[str, Method],
    progress: Progress,
    columns: Callable[[PathResult], Row] = lambda motion: {},
) -> None:
    """Move the planar arm along a rectangle with each method; add a row per method to the report.

    Args:
        report: Report of the experiment.
        methods: Methods by name.
        progress: Display of the progress.
        columns: Function that returns additional numbers of a row by column key, given the motion
            of a method.
    """
    robot, path = planar_robot(PLANAR_LINKS), rectangle(report.samples)
    dt = PLANAR_DURATION / report.samples
    report.settings.update({**PLANAR_SETTINGS, "Delta": DELTA, "K_p": FEEDBACK, "dt": dt})
    report.notes += [PLANAR_NOTE, RATE_NOTE, SEARCH_NOTE]
    report.series["path"] = np.array([point.T[:2, 3] for point in path])
    for name in progress.track(list(methods), "rectangle"):
        motion = follow(robot, PLANAR_TASK, methods[name], PLANAR_START, path, dt)
        append(report, {**figures(name, motion), **columns(motion)})
        report.series[name] = series(motion, dt)


def plot_rectangle(
    report: Reproduction, names: Sequence[str], title: str, height: float, top: float
) -> tuple[Figure, list[Axes]]:
    """Draw a row of two panels for each finished method: the arm, and its joint velocity norm.

    Args:
        report: Report with the series of the finished methods.
        names: Names of the methods to draw.
        title: Title of the figure.
        height: Height of a row of panels [in].
        top: Joint velocity norm [1/s] to which the vertical axes extend at least.

    Returns:
        The figure, and the axes of the panels with the arm.
    """
    shown = [name for name in names if name in report.series]
    figure = new_figure(10.0, 0.6 + height * max(1, len(shown)))
    grid = figure.subplots(max(1, len(shown)), 2, squeeze=False)
    for row, name in zip(grid, shown, strict=False):
        data = report.series[name]
        points = planar_joints(PLANAR_LINKS, np.asarray(data["q"]))
        arm_panel(row[0], points, np.asarray(report.series["path"]), name)
        norm_panel(row[1], np.asarray(data["t"]), np.asarray(data["norm"]), top)
    legend_below(figure, grid[0, 0].get_legend_handles_labels()[0], 2)
    heading(figure, title)
    return figure, list(grid[: len(shown), 0])


# Figures 4 and 5

RECTANGLE_METHODS: dict[str, Method] = {
    "pseudoinverse": ("jp", {}),
    "optimal (18)": ("odls", {"Delta": DELTA, "search": 18}),
    "optimal (17)": ("odls", {"Delta": DELTA, "search": 17}),
    FINEST: ("odls", {"Delta": DELTA, "search": 18, "Delta_tolerance": FINE_SEARCH_TOLERANCE}),
    "filter": ("nf", {"velocity_bound": DELTA}),
    "filter, running estimate": running_filter(DELTA),
}
FILTER_NOTE = (
    "Filter: numerical filtering. It damps only the direction of the smallest singular value, so "
    "that a unit velocity of the tip in this direction causes a joint velocity norm of at most "
    "Delta. The direction is computed by a singular value decomposition ('filter') or by the "
    "running estimate. With feedback the tip velocity exceeds 1, so the norm can exceed Delta."
)


def run_figures_4_5(report: Reproduction, progress: Progress) -> None:
    """Follow the rectangle with RECTANGLE_METHODS; add the rows of :func:`estimate_row`."""
    report.printed.append(printed(FINEST, 2.0))
    report.notes += [ERRATA_NOTE, FILTER_NOTE]
    run_rectangle(report, RECTANGLE_METHODS, progress)
    report.series["estimates"] = [
        estimate_row(f"{name}, damped by {damping:g}", report.series[name]["q"], damping)
        for name in ("pseudoinverse", FINEST)
        for damping in ESTIMATE_DAMPING
    ]


ESTIMATE_DAMPING = (1e-4, 1e-2)


def estimate_row(method: str, q: Array, damping: float) -> Row:
    """Return a row that compares an estimate of the smallest singular value with the true value.

    The running estimate by Maciejewski & Klein 1988, see :func:`updated_singular_vector`, needs one
    linear solve per step, and no singular value decomposition.

    Args:
        method: Name of the row.
        q: (s, 3) joint positions along the path [rad].
        damping: Damping of the linear solve.
    """
    robot = planar_robot(PLANAR_LINKS)
    u, found, true = np.array([1.0, 0.0]), [], []
    for values in np.asarray(q):
        J = robot.jacobian(values)[:2]
        u = updated_singular_vector(J, u, damping)
        found.append(np.linalg.norm(J.T @ u))
        true.append(np.linalg.svd(J, compute_uv=False)[-1])
    error = np.abs(np.array(found) - true) / np.array(true)
    return {
        "method": method,
        "least": float(np.min(true)),
        "estimate": float(np.min(found)),
        "median_percent": 100.0 * float(np.median(error)),
        "worst_percent": 100.0 * float(error[1:].max()),
    }


def plot_figures_4_5(report: Reproduction) -> Figure:
    """Draw the motion by the pseudoinverse above the motion by optimal damping (18)."""
    names = list(RECTANGLE_METHODS)[:2]
    norms = [report.series[name]["norm"] for name in names if name in report.series]
    top = max((float(np.max(norm)) for norm in norms), default=DELTA)
    return plot_rectangle(report, names, "Figures 4 and 5 of Deo & Walker 1993", 3.6, top)[0]


FIGURES_4_5 = Experiment(
    what="figures-4-5",
    source="Deo & Walker 1993, Figures 4 and 5",
    title="Planar 3R arm follows a rectangle, by the pseudoinverse and by optimal damping",
    tables=(
        PATH_TABLE,
        ResultTable(
            (
                Column("method", "motion by", is_name=True),
                Column("least", "minimum along path", ".4f"),
                Column("estimate", "estimated", ".4f"),
                Column("median_percent", "median error [%]", ".2g"),
                Column("worst_percent", "largest error [%]", ".2g"),
            ),
            "Running estimate of the smallest singular value (Maciejewski & Klein)",
            series="estimates",
        ),
    ),
    run=run_figures_4_5,
    plot=plot_figures_4_5,
    samples=640,
    samples_are="steps along the path",
    least_samples=32,
    not_predicted=NOT_PREDICTED,
)


# Figure 6

FIGURE_6_NOTES = [
    "The paper does not print start, bound and duration; here they are (0, 45.5, 0, 0, 45, 0) "
    "deg, 5/s and 0.7 s.",
    "The shoulder offset of our PUMA is on the other side of y = 0 than in the paper. Therefore "
    "the singular direction, away from the shoulder axis, is -y. 1 m weighs as much as 1 rad, as "
    "in the paper.",
]


def run_figure_6(report: Reproduction, progress: Progress) -> None:
    """Move the PUMA in its singular direction by all RECTANGLE_METHODS; add a row for each."""
    robot = RobotModel.from_name("puma560")
    dt = PUMA_DURATION / report.samples
    path = puma_line(robot.fk(PUMA_START), report.samples)
    given = {
        "robot": "puma560",
        "start [deg]": np.degrees(PUMA_START),
        "velocity [m/s]": (0, -PUMA_SPEED, 0),
    }
    report.settings.update({**given, "Delta": DELTA, "K_p": FEEDBACK, "dt": dt})
    report.printed.append({"method": FINEST, "searches_printed": 3.0})
    report.notes += [*FIGURE_6_NOTES, RATE_NOTE, SEARCH_NOTE, FILTER_NOTE]
    for name in progress.track(list(RECTANGLE_METHODS), "PUMA"):
        motion = follow(robot, Task(), RECTANGLE_METHODS[name], PUMA_START, path, dt)
        append(report, figures(name, motion))
        report.series[name] = series(motion, dt)


def plot_figure_6(report: Reproduction) -> Figure:
    """Draw joint velocity and deviation over time, for the pseudoinverse and optimal damping."""
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
    labels = "norm of the joint velocity [1/s]", "deviation from the path [mm, mrad]"
    for axes, label in zip((left, right), labels, strict=True):
        if axes.lines:
            axes.legend(fontsize=8, frameon=False)
        plain(axes, "time [s]", label)
    heading(figure, "Figure 6 of Deo & Walker 1993: PUMA in a singular direction")
    return figure


FIGURE_6 = Experiment(
    what="figure-6",
    source="Deo & Walker 1993, Figure 6",
    title="PUMA 560 moves in the singular direction of its shoulder, with and without damping",
    tables=(PATH_TABLE,),
    run=run_figure_6,
    plot=plot_figure_6,
    samples=350,
    samples_are="steps along the path",
    least_samples=32,
    not_predicted=NOT_PREDICTED,
)


# Figure 7

OBSTACLE_POSITION = (1.0, -0.3)
# Length of the last side, as a share of the path.
LAST_SIDE = RECTANGLE_HEIGHT / (2.0 * (RECTANGLE_WIDTH + RECTANGLE_HEIGHT))
_POSTURE = {"objective": "posture", "reference": tuple(np.radians([-30.0, 0.0, 0.0]).tolist())}
_DISTANCE = {"objective": "obstacle", "obstacle": (*OBSTACLE_POSITION, 0.0), "influence": 1.2}
_BOTH = {"mu": 1.0, "Delta": DELTA}
DISTANCE_FINEST = "distance (18) to 1e-10"
SUBTASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "no subtask (18)": ("odls", {"Delta": DELTA}),
    "reference (18)": ("gp+odls", {**_POSTURE, **_BOTH, "search": 18}),
    "reference (17)": ("gp+odls", {**_POSTURE, **_BOTH, "search": 17}),
    "distance (18)": ("gp+odls", {**_DISTANCE, **_BOTH, "search": 18}),
    "distance (17)": ("gp+odls", {**_DISTANCE, **_BOTH, "search": 17}),
    DISTANCE_FINEST: (
        "gp+odls",
        {**_DISTANCE, **_BOTH, "search": 18, "Delta_tolerance": FINE_SEARCH_TOLERANCE},
    ),
}
FIGURE_7_NOTES = [
    "The paper prints neither the position of the obstacle nor the gain; here they are "
    f"{OBSTACLE_POSITION} and mu = 1.",
    "The subtask optimizes one of two criteria. Reference: the distance from the reference "
    "configuration (-30, 0, 0) deg that the figure prints. Distance: the distance of the links "
    "from the obstacle, where it is below 1.2. The elbow is up if the two inner joints, on "
    "average, are above the tip at the end of the last side. In the paper the arm moves down the "
    "last side with its elbow up. With the criterion 'distance', our arm does too; with "
    "'reference', its elbow stays down and touches the obstacle. We do not know how the paper uses "
    "the reference.",
]


def run_figure_7(report: Reproduction, progress: Progress) -> None:
    """Follow the rectangle with every method of SUBTASKS, and add a row for each."""
    report.settings.update(
        {"obstacle": OBSTACLE_POSITION, "mu": 1.0, "reference [deg]": (-30, 0, 0)}
    )
    report.printed.append({**printed(DISTANCE_FINEST, 3.0), "elbow": "up"})
    report.notes += FIGURE_7_NOTES
    run_rectangle(report, SUBTASKS, progress, _clearance)


def _clearance(motion: PathResult) -> dict[str, Any]:
    """Return the additional columns of figure 7 for a motion along the rectangle.

    The columns are the smallest distance of the links from the obstacle on the last side, and
    whether the elbow is "up" or "down" at the end.
    """
    last = motion.q[-max(1, round(LAST_SIDE * len(motion.q))) :]
    points = planar_joints(PLANAR_LINKS, last)
    near = min(float(_distances(arm, np.array(OBSTACLE_POSITION)).min()) for arm in points)
    _, elbow, wrist, tip = points[-1]
    is_up = 0.5 * (elbow[1] + wrist[1]) > tip[1]
    return {"clearance": near, "elbow": "up" if is_up else "down"}


def _distances(arm: Array, point: Array) -> Array:
    """Return the distances (k,) of a point (2,) from the k links of a planar arm.

    `arm` (k + 1, 2) has the positions of base, joints and tip.
    """
    along = np.diff(arm, axis=0)
    share = ((point - arm[:-1]) * along).sum(axis=1) / (along**2).sum(axis=1)
    nearest = arm[:-1] + np.clip(share, 0.0, 1.0)[:, None] * along
    return np.asarray(np.linalg.norm(nearest - point, axis=1))


def plot_figure_7(report: Reproduction) -> Figure:
    """Draw the arm, the obstacle and the joint velocity norm for the methods with search (18)."""
    names = [name for name in SUBTASKS if name.endswith("(18)")]
    title = "Figure 7 of Deo & Walker 1993"
    figure, panels = plot_rectangle(report, names, title, 3.4, 1.2 * DELTA)
    for axes in panels:
        axes.plot(*OBSTACLE_POSITION, "s", color=RED, markersize=7)
        axes.annotate("obstacle", OBSTACLE_POSITION, (8, -3), textcoords="offset points", color=RED)
    return figure


FIGURE_7 = Experiment(
    what="figure-7",
    source="Deo & Walker 1993, Figure 7",
    title="Planar 3R arm follows a rectangle next to an obstacle, with a subtask, (25) to (29)",
    tables=(
        ResultTable(
            (
                *PATH_TABLE.columns,
                Column("clearance", "clearance [m]", ".3f"),
                Column("elbow", "elbow", is_text=True),
            )
        ),
    ),
    run=run_figure_7,
    plot=plot_figure_7,
    samples=640,
    samples_are="steps along the path",
    least_samples=32,
    not_predicted=NOT_PREDICTED,
)
