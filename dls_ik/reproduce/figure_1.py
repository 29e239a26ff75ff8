"""Figure 1 of Colome & Torras 2012: condition numbers on a planar 4R arm toward a singular pose."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.dh import DhRow
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import new_figure, plain
from dls_ik.reproduce.experiment import Experiment, Progress
from dls_ik.reproduce.laws_plot import LINES
from dls_ik.reproduce.report import Reproduction, Row
from dls_ik.reproduce.table import Column, Table
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BENT = np.array([0.6, -0.9, 0.8, 0.5])  # [rad] from the arm stretched out, where t = 1
NEAREST = 1e-9  # t of the last configuration
SVF = {"nu": 10.0, "sigma0": 0.005}
METHODS: dict[str, dict[str, Any]] = {
    "jp": {},
    "jt": {},
    "jd": {"lambda_": 1e-3},
    "jf": {"lambda_max": 5e-3, "epsilon": 0.1},
    "ed": {"error_gain": 0.5},
    "ied": {"error_gain": 0.5, "omega": 1e-3},
    "svf": SVF,
    "svf+ed": {**SVF, "error_gain": 0.5},
}
GROWS, BOUNDED = "to infinity", "bounded"
CLAIMS = {
    **dict.fromkeys(("jp", "jt", "jd", "jf", "ed", "ied"), GROWS),
    **dict.fromkeys(("svf", "svf+ed"), BOUNDED),
}
NOTES = [
    "Condition number: the largest gain of the inverse over the least one. The goal is the arm "
    "stretched out, its position in the plane the task; configurations are t times a bent one, the "
    "same for all methods, so that the error falls as t^2 and the least singular value as t. The "
    "paper's own way to its goal is not printed.",
    "To infinity: in the last tenth of the way (in the logarithm of the least singular value) the "
    "condition number still grows tenfold for every tenfold fall of it; bounded: it does not.",
    "Of JD, JF, ED and IED the paper's appendix says so near the pose only; farther out damping "
    "bounds them. IED: Omega = lambda^2. JF: below a least singular value of 0.1.",
    "SVF+ED is damped by the error far from the goal; near it nothing but SVF is left.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Invert by every law along the way."""
    robot = RobotModel.from_dh([DhRow(a=1.0, kind="continuous")] * 4, name="planar_4r")
    goal, ways = robot.fk(np.zeros(4)), np.geomspace(1.0, NEAREST, report.samples)
    report.settings.update({"links": 1.0, "bent [rad]": BENT, "nearest": NEAREST, "rows": METHODS})
    report.printed += [{"method": m, "limit": claim} for m, claim in CLAIMS.items()]
    report.notes += NOTES
    report.series["condition"] = {}
    for method in progress.track(list(METHODS), "laws"):
        stepper = Stepper(robot, method, BENT, task=Task("xy", ""), **METHODS[method])
        sigma, condition = _conditions(stepper, goal, ways)
        report.rows.append(_row(method, sigma, condition))
        report.series["sigma"] = sigma
        report.series["condition"][method] = condition


def _conditions(stepper: Stepper, goal: Array, ways: Array) -> tuple[Array, Array]:
    """The least singular value and the condition number of the inverse at t, (k,) each."""
    found = []
    for t in ways:
        stepper.reset(t * BENT)
        inverse = stepper.inverse(goal)
        found.append((inverse.s[-1], inverse.gain.max() / inverse.gain.min()))
    return tuple(np.array(found).T)


def _row(method: str, sigma: Array, condition: Array) -> Row:
    start = int(0.9 * (len(sigma) - 1))
    fall = log10(sigma[start] / sigma[-1])
    grows = log10(condition[-1] / condition[start]) > 0.5 * fall
    row: Row = {
        "method": method,
        "first": float(condition[0]),
        "middle": float(np.interp(-3.0, np.log10(sigma[::-1]), condition[::-1])),
        "last": float(condition[-1]),
        "limit": GROWS if grows else BOUNDED,
    }
    if method == "svf":
        row["bound"] = _svf_bound(SVF["nu"], SVF["sigma0"])
    return {**row, "differs": ["limit"]} if row["limit"] != CLAIMS[method] else row


def _svf_bound(nu: float, sigma0: float) -> float:
    """A(s1) / s0, below (4), where s1 is that of the arm stretched out."""
    s1 = float(np.linalg.norm([1.0, 2.0, 3.0, 4.0]))
    return (s1**3 + nu * s1**2 + 2 * s1 + 2 * sigma0) / (sigma0 * (s1**2 + nu * s1 + 2))


def plot(report: Reproduction) -> Figure:
    """All condition numbers over the least singular value."""
    figure = new_figure(9.0, 5.6)
    axes = figure.subplots()
    for method, condition in report.series.get("condition", {}).items():
        axes.loglog(report.series["sigma"], condition, label=method.upper(), **LINES[method])
    axes.invert_xaxis()
    axes.set_xlabel("least singular value of J; the singular pose is to the right", fontsize=9)
    axes.set_ylabel("condition number of the inverse", fontsize=9)
    axes.set_ylim(0.7, 1e10)
    if report.rows:
        axes.legend(fontsize=9, frameon=False, loc="upper left", ncols=2)
    plain(axes)
    figure.suptitle("Figure 1 of Colome & Torras 2012", fontsize=13, fontweight="bold")
    return figure


EXPERIMENT = Experiment(
    what="figure-1",
    source="Colome & Torras 2012, Figure 1",
    title="Condition numbers of all laws on a planar 4R arm toward a singular pose",
    tables=(
        Table(
            (
                Column("method", "method", is_name=True),
                Column("first", "at the start", ".3g"),
                Column("middle", "at s = 1e-3", ".3g"),
                Column("last", "at the last", ".4g"),
                Column("limit", "toward the pose", is_text=True),
                Column("bound", "A(s1) / s0", ".4g"),
            )
        ),
    ),
    run=run,
    plot=plot,
    samples=200,
    samples_are="configurations on the way",
    least_samples=20,
)
