"""Resolved rates along a path, as in the simulations of Deo & Walker 1993, section 5.

The velocity asked for is x_dot_d + K_p (x_d - x), the feedback of their section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import draw_arms, fading
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, RED, plain, show_times
from dls_ik.reproduce.report import Column, Reproduction, Row, Table
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEEDBACK = 10.0  # K_p [1/s]
DELTA = 5.0  # bound on the norm of the joint velocity [1/s]
TOLERANCE = 1e-2  # of the bound; it is kept to 1e-3


class Case(NamedTuple):
    """An arm, where it starts, and what of its tip follows the path."""

    robot: RobotModel
    start: Array  # (n,) [rad]
    task: Task


class Moment(NamedTuple):
    """Where the tip should be and how fast it should move."""

    T: Array  # (4, 4)
    x_dot: Array  # (r,) [m/s, rad/s]


class Motion(NamedTuple):
    """What came of a path of s steps."""

    q: Array  # (s, n) [rad]
    norm: Array  # (s,) of the joint velocity [1/s]
    deviation: Array  # (s,) norm of the error of the task
    searches: Array  # (s,) iterations for the damping factor, warm-started; 0: no damping
    anew: Array  # (s,) the same from nothing, where there was damping


Make = Callable[[Array], Stepper]


def maker(case: Case, method: str, options: dict[str, Any]) -> Make:
    """What makes a stepper of a method at some configuration."""
    return lambda q: Stepper(case.robot, method, q, task=case.task, rotation_weight=1.0, **options)


def follow(make: Make, start: Array, path: Sequence[Moment], dt: float) -> Motion:
    """Follow the path."""
    stepper, steps = make(start), []
    for moment in path:
        q, error = stepper.q, stepper.error(moment.T)
        x_dot = moment.x_dot + FEEDBACK * error
        q_dot = stepper.rate(x_dot, dt)
        anew = _searches_anew(make(q), x_dot, dt) if stepper.searches else 0
        norms = (np.linalg.norm(q_dot), np.linalg.norm(error))
        steps.append((q, *norms, stepper.searches, anew))
    return Motion(*(np.array(column) for column in zip(*steps, strict=True)))


def figures(method: str, motion: Motion) -> Row:
    """The columns that all these figures have."""
    damped = motion.searches > 0
    return {
        "method": method,
        "peak": float(motion.norm.max()),
        "over_percent": 100.0 * float(np.mean(motion.norm > DELTA * (1.0 + TOLERANCE))),
        "deviation": float(motion.deviation.max()),
        "damped_percent": 100.0 * float(damped.mean()),
        "searches": float(motion.searches[damped].mean()) if damped.any() else None,
        "searches_anew": float(motion.anew[damped].mean()) if damped.any() else None,
    }


def series(motion: Motion, dt: float) -> dict[str, Any]:
    """What the pictures draw."""
    t = dt * np.arange(len(motion.norm))
    return {"t": t, "q": motion.q, "norm": motion.norm, "deviation": motion.deviation}


def _searches_anew(stepper: Stepper, x_dot: Array, dt: float) -> int:
    stepper.rate(x_dot, dt)
    return stepper.searches


# Rows, beside the printed ones

FAR = 0.5  # iterations on the average
TABLE = Table(
    (
        Column("method", "method", is_name=True),
        Column("peak", "largest norm [1/s]", ".2f"),
        Column("over_percent", "above bound [%]", ".1f"),
        Column("deviation", "off the path [m]", ".3f"),
        Column("damped_percent", "damped [%]", ".1f"),
        Column("searches", "iterations", ".2f"),
        Column("searches_anew", "from nothing", ".2f"),
    )
)
SEARCH_NOTE = (
    "Iterations: of the search for the damping factor, mean over the steps that are damped; the "
    "search starts from the factor of the step before, and ends at 1e-3 of the bound. The paper "
    "prints a whole number, without its tolerance or time step; with a short step the last factor "
    "is nearly right already. From nothing: the same searches without it."
)
RATE_NOTE = (
    f"The velocity asked for includes the feedback of section 2.1, {FEEDBACK:g}/s of the "
    "error; the paper prints neither gain nor time step."
)


def printed(method: str, searches: float) -> Row:
    """The row of the optimal damping factor."""
    return {"method": method, "peak": DELTA, "over_percent": 0.0, "searches": searches}


def append(report: Reproduction, row: Row) -> None:
    """Add a row, with its mark if its iterations are not the printed ones."""
    beside = next((p for p in report.printed if p["method"] == row["method"]), {})
    pair = (row.get("searches"), beside.get("searches"))
    if None not in pair and abs(pair[0] - pair[1]) > FAR:  # type: ignore[operator]
        row = {**row, "differs": ["searches"]}
    report.rows.append(row)


# Panels: the arm at intervals, and the joint velocity over time

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
