# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures 1 and 2 of Colome & Torras 2012: the damping laws near a singular pose.

Figure 1: condition numbers of the damped inverses of a planar 4R arm, on a path toward the
stretched pose. Figure 2: the gain of each law, which is the factor that the law uses in place of
1 / sigma (sigma: singular value) of the pseudoinverse.
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

# Line style of all plug-ins
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

# [rad] The path has the configurations t * BENT_ANGLES; the arm is stretched at t = 0.
BENT_ANGLES = np.array([0.6, -0.9, 0.8, 0.5])
NUM_DIRECTIONS = 64  # number of directions in which the error is changed
MIN_PATH_PARAMETER = 1e-9  # parameter t of the last configuration of the path
GROWS_TO_INFINITY, BOUNDED = "to infinity", "bounded"
CONDITION_CLAIMS = {
    **dict.fromkeys(("jp", "jt", "jd", "jf", "ed", "ied"), GROWS_TO_INFINITY),
    **dict.fromkeys(("svf", "svf+ed"), BOUNDED),
}
FIGURE_1_NOTES = [
    "Condition number: the largest gain of the inverse divided by the smallest gain. The task is "
    "the position in the plane, and the goal is the position of the stretched arm. All methods are "
    "evaluated at the same configurations, t times a bent configuration, so that the error "
    "decreases as t^2 and the smallest singular value as t. The paper does not print its own path "
    "to the goal.",
    "Toward the pose: 'to infinity' means that in the last tenth of the path (measured in the "
    "logarithm of the smallest singular value) the condition number still grows about tenfold each "
    "time the smallest singular value falls to a tenth; 'bounded' means that it does not.",
    "The appendix of the paper says that the condition numbers of JD, JF, ED and IED go to "
    "infinity only near the singular pose; farther away, damping bounds them. IED uses Omega = "
    "lambda^2. JF damps where the smallest singular value is below 0.1.",
    "Share of kappa: an experiment on the bound of section II, |d dq| / |dq| <= kappa |d e| / |e|, "
    "where kappa is the condition number. The table has the largest amplification of a relative "
    "error, (|d dq| / |dq|) / (|d e| / |e|), over the path and over all directions of d e, divided "
    "by kappa. At 1 the bound is attained.",
    "SVF+ED: far from the goal, the error damps the inverse; close to the goal only SVF remains.",
    "Random configurations: the same bound, on the WAM at random configurations and goals, for a "
    "random change d e of the error. Amplification is (|d dq| / |dq|) / (|d e| / |e|). For JT, "
    "kappa is the condition number of J.",
]


def run_figure_1(report: Reproduction, progress: Progress) -> None:
    """Compute the condition number of the inverse of every law along the path to the goal.

    Also add the rows of :func:`random_rows`. The path has `report.samples` configurations.
    """
    robot = planar_robot([1.0] * 4)
    goal, parameters = robot.fk(np.zeros(4)), np.geomspace(1.0, MIN_PATH_PARAMETER, report.samples)
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
            sigma, condition, share = _conditions(stepper, goal, parameters)
        except MethodError as error:
            not_run(report, {"method": method}, method, error)
            continue
        row = _condition_row(method, sigma, condition)
        report.rows.append({**row, "bound_share": float(share.max())})
        report.series["sigma"] = sigma
        report.series["condition"][method] = condition
    report.series["random"] = random_rows(report.seed)


def _conditions(stepper: Stepper, goal: Array, parameters: Array) -> tuple[Array, Array, Array]:
    """Evaluate the inverse of a method at k configurations of the path.

    A change d e of the error e changes the step dq by d dq. The amplification,
    (|d dq| / |dq|) / (|d e| / |e|), is at most the condition number kappa of the inverse.

    Args:
        stepper: Method to test.
        goal: Goal pose (4, 4).
        parameters: Parameters t (k,) of the configurations t * BENT_ANGLES.

    Returns:
        Three arrays (k,): the smallest singular value of the Jacobian, kappa, and the maximum
        amplification over all directions of d e, divided by kappa.
    """
    found = []
    angles = np.linspace(0.0, np.pi, NUM_DIRECTIONS, endpoint=False)
    changes = np.array([np.cos(angles), np.sin(angles)])  # (2, k)
    for t in parameters:
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

    A change d e of the error e changes the step dq by d dq; the amplification is
    (|d dq| / |dq|) / (|d e| / |e|). The robot is the WAM; `seed` determines configurations, goals
    and changes.
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
    """Return the bound A(s1) / sigma0 on the condition number of SVF, from the text after (4).

    A(s) is the filtered value of a singular value s, and s1 is the largest singular value of the
    stretched arm.

    Args:
        nu: Parameter nu of SVF.
        sigma0: Parameter sigma0 of SVF, the smallest filtered singular value.
    """
    s1 = float(np.linalg.norm([1.0, 2.0, 3.0, 4.0]))
    return (s1**3 + nu * s1**2 + 2 * s1 + 2 * sigma0) / (sigma0 * (s1**2 + nu * s1 + 2))


def plot_figure_1(report: Reproduction) -> Figure:
    """Draw the condition number of every law over the smallest singular value."""
    figure, axes = _curves(report, "condition", "Figure 1 of Colome & Torras 2012")
    x = "smallest singular value of J (0, the singular pose, is to the right)"
    plain(axes, x, "condition number of the inverse")
    axes.invert_xaxis()
    axes.set_ylim(0.7, 1e10)
    return figure


def _curves(report: Reproduction, key: str, title: str) -> tuple[Figure, Axes]:
    """Draw a curve for each law over the singular value; return the figure and the axes.

    The curves are `report.series[key]`, a mapping from the name of a law to its values.
    """
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
    title="Condition numbers of all laws for a planar 4R arm that approaches a singular pose",
    tables=(
        ResultTable(
            (
                Column("method", "method", is_name=True),
                Column("first", "at the start", ".3g"),
                Column("middle", "at s = 1e-3", ".3g"),
                Column("last", "at the end", ".4g"),
                Column("limit", "toward the pose", is_text=True),
                Column("bound", "A(s1) / s0", ".4g"),
                Column("bound_share", "share of kappa", ".3f"),
            )
        ),
        ResultTable(
            (
                Column("method", "method", is_name=True),
                Column("kappa", "kappa, median", ".3g"),
                Column("largest_kappa", "kappa, largest", ".3g"),
                Column("growth", "amplification, median", ".3g"),
                Column("largest_growth", "largest", ".3g"),
                Column("share", "largest share of kappa", ".3f"),
            ),
            "Random configurations of the WAM: amplification of a relative error, at most kappa",
            series="random",
        ),
    ),
    run=run_figure_1,
    plot=plot_figure_1,
    samples=200,
    samples_are="configurations on the path",
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
    "By formula: the values that the appendix derives, with the settings of Figure 1; the paper "
    "prints no numbers. The gain g = s / (s^2 + lambda^2) has its maximum 1 / (2 lambda) at s = "
    "lambda; the gain of SVF never exceeds 1 / sigma0.",
    f"ED and SVF+ED are computed for an error of {ERROR_NORM:g}, with E in place of lambda^2. For "
    "JF the appendix gives only the order of magnitude; the value by formula is that of "
    "lambda_max. The gain of JP has no maximum; its largest gain is the gain at the smallest "
    "singular value of the plot.",
]


def run_figure_2(report: Reproduction, progress: Progress) -> None:
    """Compute the gain of every law at `report.samples` singular values, and add a row per law."""
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
    """Return the gains (k,) that a law uses in place of 1 / sigma of the pseudoinverse.

    The robot has one link of 1 m along x, and the task is the y coordinate of the tip. Its Jacobian
    is 1 m/rad times the weight of the task, so a task of weight sigma has the singular value sigma.

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
    title="Gain of each law, which replaces 1 / s of the pseudoinverse",
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
