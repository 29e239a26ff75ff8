# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures 1 and 2 of Colome & Torras 2012: the damping laws near a singular pose.

Figure 1: condition numbers of the damped inverses of a planar 4R arm, on a path toward the
stretched pose. Figure 2: the gain of each law, by which it replaces 1 / sigma in the pseudoinverse.
"""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    heading,
    new_figure,
    plain,
)
from dls_ik.reproduce.experiment import (
    Column,
    Experiment,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
    not_run,
)
from dls_ik.reproduce.tabaczynski import planar_robot
from dls_ik.solver.plugins import plugin_names
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE_STYLES: dict[str, dict[str, Any]] = {
    "jp": {"color": GREY, "linewidth": 3.5, "alpha": 0.5},
    "jt": {"color": "black", "linestyle": ":", "linewidth": 2.0},
    "jd": {"color": ORANGE, "linewidth": 1.8},
    "jf": {"color": RED, "linewidth": 1.8, "linestyle": "--"},
    "ed": {"color": GREEN, "linewidth": 1.8},
    "ied": {"color": PURPLE, "linewidth": 1.8, "linestyle": "-."},
    "svf": {"color": BLUE, "linewidth": 2.4},
    "svf+ed": {"color": SKY, "linewidth": 2.0, "linestyle": "--"},
}

# Line style of a plug-in
PLUGIN_LINE_STYLE: dict[str, Any] = {"color": "black", "linewidth": 1.2, "linestyle": "-."}

JD_LAMBDA, LAMBDA_MAX, SIGMA0 = 1e-3, 5e-3, 5e-3
SVF_OPTIONS = {"nu": 10.0, "sigma0": SIGMA0}
FIGURE_1_LAWS: dict[str, dict[str, Any]] = {
    "jp": {},
    "jt": {},
    "jd": {"lambda_": JD_LAMBDA},
    "jf": {"lambda_max": LAMBDA_MAX, "epsilon": 0.1},
    "ed": {"error_gain": 0.5},
    "ied": {"error_gain": 0.5, "omega": 1e-3},
    "svf": SVF_OPTIONS,
    "svf+ed": {**SVF_OPTIONS, "error_gain": 0.5},
}


# Figure 1

# [rad] configuration at t = 1; t = 0 is the stretched arm
BENT_ANGLES = np.array([0.6, -0.9, 0.8, 0.5])
NUM_DIRECTIONS = 64  # number of directions in which the error is changed
MIN_PATH_PARAMETER = 1e-9  # t of the last configuration
GROWS_TO_INFINITY, BOUNDED = "to infinity", "bounded"
CONDITION_CLAIMS = {
    **dict.fromkeys(("jp", "jt", "jd", "jf", "ed", "ied"), GROWS_TO_INFINITY),
    **dict.fromkeys(("svf", "svf+ed"), BOUNDED),
}
FIGURE_1_NOTES = [
    "Condition number: the largest gain of the inverse over the least one. The goal is the arm "
    "stretched out, its position in the plane the task; configurations are t times a bent one, the "
    "same for all methods, so that the error falls as t^2 and the least singular value as t. The "
    "paper's own way to its goal is not printed.",
    "To infinity: in the last tenth of the way (in the logarithm of the least singular value) the "
    "condition number still grows tenfold for every tenfold fall of it; bounded: it does not.",
    "Of JD, JF, ED and IED the paper's appendix says so near the pose only; farther out damping "
    "bounds them. IED: Omega = lambda^2. JF: below a least singular value of 0.1.",
    "Share of kappa: the bound of section II, |d dq| / |dq| <= kappa |d e| / |e| with kappa the "
    "condition number, as an experiment: the largest growth of a relative error along the way, "
    "over directions of d e, as a share of the bound. 1 is where the bound is met.",
    "SVF+ED is damped by the error far from the goal; near it only SVF remains.",
    "At random: the same bound on the WAM at random configurations and goals, for a random change "
    "of the error; growth is |d dq| / |dq| over |d e| / |e|. JT's kappa is that of J.",
]


def run_figure_1(report: Reproduction, progress: Progress) -> None:
    """Compute the condition number of the inverse of every law along the path."""
    robot = planar_robot([1.0] * 4)
    goal, ways = robot.fk(np.zeros(4)), np.geomspace(1.0, MIN_PATH_PARAMETER, report.samples)
    report.settings.update(
        {
            "links": 1.0,
            "bent [rad]": BENT_ANGLES,
            "nearest": MIN_PATH_PARAMETER,
            "rows": FIGURE_1_LAWS,
        }
    )
    report.printed += [{"method": m, "limit": claim} for m, claim in CONDITION_CLAIMS.items()]
    report.notes += FIGURE_1_NOTES
    report.series["condition"] = {}
    for method in progress.track([*FIGURE_1_LAWS, *plugin_names()], "laws"):
        stepper = Stepper(
            robot, method, BENT_ANGLES, task=Task("xy", ""), **FIGURE_1_LAWS.get(method, {})
        )
        try:
            sigma, condition, share = _conditions(stepper, goal, ways)
        except MethodError as error:
            not_run(report, {"method": method}, method, error)
            continue
        row = _condition_row(method, sigma, condition)
        report.rows.append({**row, "bound_share": float(share.max())})
        report.series["sigma"] = sigma
        report.series["condition"][method] = condition
    report.series["random"] = random_rows(report.seed)


def _conditions(stepper: Stepper, goal: Array, ways: Array) -> tuple[Array, Array, Array]:
    """Return the smallest singular value, condition number and amplification at k configurations.

    The condition number kappa is that of the inverse. A change d e of the error e changes the step
    dq by d dq. The amplification, (|d dq| / |dq|) / (|d e| / |e|), is at most kappa; its maximum
    over all directions of d e is returned as a share of kappa.

    Args:
        stepper: Method to test.
        goal: Goal pose (4, 4).
        ways: Values t (k,) of the configurations t * BENT_ANGLES.
    """
    found = []
    angles = np.linspace(0.0, np.pi, NUM_DIRECTIONS, endpoint=False)
    changes = np.array([np.cos(angles), np.sin(angles)])  # (2, k)
    for t in ways:
        stepper.reset(t * BENT_ANGLES)
        inverse, e = stepper.inverse(goal), stepper.error(goal)
        condition = inverse.gain.max() / inverse.gain.min()
        grown = np.linalg.norm(inverse.P @ changes, axis=0).max() * np.linalg.norm(e)
        share = grown / np.linalg.norm(inverse.P @ e) / condition
        found.append((inverse.s[-1], condition, share))
    return tuple(np.array(found).T)


NUM_RANDOM = 200  # number of random configurations and goals of the WAM


def random_rows(seed: int) -> list[Row]:
    """Return a row for each law: amplification and condition number at random configurations.

    The amplification is (|d dq| / |dq|) / (|d e| / |e|) if a change d e of e changes the step dq.
    """
    robot, rng = RobotModel.wam(), np.random.default_rng(seed)
    starts, goals = robot.random(NUM_RANDOM, rng=rng), robot.fk(robot.random(NUM_RANDOM, rng=rng))
    changes = rng.normal(size=(NUM_RANDOM, 6))
    rows = []
    for method, options in FIGURE_1_LAWS.items():
        stepper, found = Stepper(robot, method, starts[0], **options), []
        for q, goal, change in zip(starts, goals, changes, strict=True):
            stepper.reset(q)
            inverse, e = stepper.inverse(goal), stepper.error(goal)
            grown = np.linalg.norm(inverse.P @ change) / np.linalg.norm(inverse.P @ e)
            relative = np.linalg.norm(change) / np.linalg.norm(e)
            found.append((inverse.gain.max() / inverse.gain.min(), grown / relative))
        kappa, growth = np.array(found).T
        rows.append(
            {
                "method": method,
                "kappa": float(np.median(kappa)),
                "largest_kappa": float(kappa.max()),
                "growth": float(np.median(growth)),
                "largest_growth": float(growth.max()),
                "share": float((growth / kappa).max()),
            }
        )
    return rows


def _condition_row(method: str, sigma: Array, condition: Array) -> Row:
    start = int(0.9 * (len(sigma) - 1))
    fall = log10(sigma[start] / sigma[-1])
    grows = log10(condition[-1] / condition[start]) > 0.5 * fall
    row: Row = {
        "method": method,
        "first": float(condition[0]),
        "middle": float(np.interp(-3.0, np.log10(sigma[::-1]), condition[::-1])),
        "last": float(condition[-1]),
        "limit": GROWS_TO_INFINITY if grows else BOUNDED,
    }
    if method == "svf":
        row["bound"] = _svf_bound(SVF_OPTIONS["nu"], SVF_OPTIONS["sigma0"])
    return marked(
        row, ["limit"] if row["limit"] != CONDITION_CLAIMS.get(method, row["limit"]) else []
    )


def _svf_bound(nu: float, sigma0: float) -> float:
    """Return the bound of the condition number of SVF: A(s1) / sigma0 in the text after (4).

    A is the filtered singular value, and s1 the largest singular value of the stretched arm.
    """
    s1 = float(np.linalg.norm([1.0, 2.0, 3.0, 4.0]))
    return (s1**3 + nu * s1**2 + 2 * s1 + 2 * sigma0) / (sigma0 * (s1**2 + nu * s1 + 2))


def plot_figure_1(report: Reproduction) -> Figure:
    """Draw the condition number of every law over the smallest singular value."""
    figure, axes = _curves(report, "condition", "Figure 1 of Colome & Torras 2012")
    x = "least singular value of J; the singular pose is to the right"
    plain(axes, x, "condition number of the inverse")
    axes.invert_xaxis()
    axes.set_ylim(0.7, 1e10)
    return figure


def _curves(report: Reproduction, key: str, title: str) -> tuple[Figure, Axes]:
    """Draw a curve for each law over the singular value; `key` names the data in the report."""
    figure = new_figure(9.0, 5.6)
    axes = figure.subplots()
    for method, values in report.series.get(key, {}).items():
        axes.loglog(
            report.series["sigma"],
            values,
            label=method.upper(),
            **LINE_STYLES.get(method, PLUGIN_LINE_STYLE),
        )
    if report.rows:
        axes.legend(fontsize=9, frameon=False, ncols=2)
    heading(figure, title)
    return figure, axes


FIGURE_1 = Experiment(
    what="figure-1",
    source="Colome & Torras 2012, Figure 1",
    title="Condition numbers of all laws on a planar 4R arm toward a singular pose",
    tables=(
        ResultTable(
            (
                Column("method", "method", is_name=True),
                Column("first", "at the start", ".3g"),
                Column("middle", "at s = 1e-3", ".3g"),
                Column("last", "at the last", ".4g"),
                Column("limit", "toward the pose", is_text=True),
                Column("bound", "A(s1) / s0", ".4g"),
                Column("bound_share", "share of kappa", ".3f"),
            )
        ),
        ResultTable(
            (
                Column("method", "method", is_name=True),
                Column("kappa", "kappa, median", ".3g"),
                Column("largest_kappa", "largest", ".3g"),
                Column("growth", "growth, median", ".3g"),
                Column("largest_growth", "largest", ".3g"),
                Column("share", "largest share of kappa", ".3f"),
            ),
            "At random on the WAM: growth of a relative error, at most kappa",
            series="random",
        ),
    ),
    run=run_figure_1,
    plot=plot_figure_1,
    samples=200,
    samples_are="configurations on the way",
    least_samples=20,
)


# Figure 2

ERROR_NORM = 0.01  # norm of the error, which sets the damping of ED and IED
E = 0.5 * ERROR_NORM**2
FIGURE_2_LAWS = {law: FIGURE_1_LAWS[law] for law in ("jp", "jd", "jf", "ed", "svf", "svf+ed")}
MIN_DRAWN_SIGMA, MAX_DRAWN_SIGMA = 1e-5, 1.0  # range of singular values
BY_FORMULA: list[Row] = [
    {"method": "jd", "peak": 1.0 / (2.0 * JD_LAMBDA), "at": JD_LAMBDA},
    {"method": "jf", "peak": 1.0 / (2.0 * LAMBDA_MAX), "at": LAMBDA_MAX},
    {"method": "ed", "peak": 1.0 / (2.0 * E**0.5), "at": E**0.5},
    {"method": "svf", "peak": 1.0 / SIGMA0},
]
FIGURE_2_NOTES = [
    "By formula: what the appendix derives, for the settings of Figure 1; the paper prints no "
    "figures. g = s / (s^2 + lambda^2) has its maximum 1 / (2 lambda) at s = lambda; SVF never "
    "exceeds 1 / sigma0.",
    f"ED and SVF+ED for an error of {ERROR_NORM:g}, with E in place of lambda^2. For JF the "
    "appendix has the order of magnitude only; the figure beside it is that of lambda_max. JP has "
    "no maximum: its value is that at the least singular value drawn.",
]


def run_figure_2(report: Reproduction, progress: Progress) -> None:
    """Compute the gain of every law over a range of singular values."""
    sigma = np.geomspace(MIN_DRAWN_SIGMA, MAX_DRAWN_SIGMA, report.samples)
    report.settings.update(
        {"rows": FIGURE_2_LAWS, "error": ERROR_NORM, "sigma": (MIN_DRAWN_SIGMA, MAX_DRAWN_SIGMA)}
    )
    by_formula = {row["method"]: row for row in BY_FORMULA}
    report.notes += FIGURE_2_NOTES
    report.series["sigma"], report.series["gain"] = sigma, {}
    for method in progress.track([*FIGURE_2_LAWS, *plugin_names()], "laws"):
        try:
            gain = gains(method, FIGURE_2_LAWS.get(method, {}), sigma)
        except MethodError as error:
            not_run(report, {"method": method}, method, error)
            continue
        peak = int(np.argmax(gain))
        at = float(sigma[peak]) if 0 < peak < len(sigma) - 1 else None
        row = {"method": method, "peak": float(gain[peak]), "at": at, "least": float(gain[0])}
        known = by_formula.get(method, {})
        row |= {f"{key}_by_formula": known.get(key) for key in ("peak", "at")}
        report.rows.append(row)
        report.series["gain"][method] = gain


def gains(name: str, options: dict[str, Any], sigma: Array) -> Array:
    """Return the gain (k,) by which a law replaces 1 / sigma.

    The robot is one link of 1 m along x, and the task is the y coordinate of its tip. The Jacobian
    is 1 m/rad times the weight of the task, so the weight is the singular value.

    Args:
        name: Name of the law.
        options: Options of the law.
        sigma: (k,) singular values.
    """
    robot = planar_robot([1.0])
    found = []
    for value in sigma.tolist():
        stepper = Stepper(robot, name, [0.0], task=Task("y", "", weights=(value,)), **options)
        T = np.eye(4)
        T[1, 3] = ERROR_NORM / value
        found.append(stepper.inverse(T).gain[0])
    return np.array(found)


def plot_figure_2(report: Reproduction) -> Figure:
    """Draw the gain of every law over the singular value."""
    figure, axes = _curves(report, "gain", "Figure 2 of Colome & Torras 2012")
    for x, text in ((JD_LAMBDA, "lambda"), (LAMBDA_MAX, "lambda_max = sigma0")):
        axes.axvline(x, color="#BBBBBB", linewidth=0.8, zorder=0)
        axes.annotate(text, (x, 1.2), (3, 0), textcoords="offset points", fontsize=8)
    axes.set_ylim(1.0, 2e4)
    plain(axes, "singular value s", "gain g(s)")
    return figure


FIGURE_2 = Experiment(
    what="figure-2",
    source="Colome & Torras 2012, Figure 2",
    title="The gain of each law in place of 1 / s",
    tables=(
        ResultTable(
            (
                Column("method", "method", is_name=True),
                Column("peak", "largest gain", ".4g"),
                Column("peak_by_formula", "by formula", ".4g"),
                Column("at", "at s", ".3g"),
                Column("at_by_formula", "by formula", ".3g"),
                Column("least", f"gain at {MIN_DRAWN_SIGMA:g}", ".4g"),
            )
        ),
    ),
    run=run_figure_2,
    plot=plot_figure_2,
    samples=400,
    samples_are="singular values",
    least_samples=20,
)
