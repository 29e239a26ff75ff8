"""Figure 2 of Colome & Torras 2012: what the laws make of 1 / sigma."""

from __future__ import annotations

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

ERROR = 0.01  # norm of the error that ED and IED are damped by
LAMBDA, LAMBDA_MAX, SIGMA0, E = 1e-3, 5e-3, 5e-3, 0.5 * ERROR**2
SVF = {"nu": 10.0, "sigma0": SIGMA0}
METHODS: dict[str, dict[str, Any]] = {
    "jp": {},
    "jd": {"lambda_": LAMBDA},
    "jf": {"lambda_max": LAMBDA_MAX, "epsilon": 0.1},
    "ed": {"error_gain": 0.5},
    "svf": SVF,
    "svf+ed": {**SVF, "error_gain": 0.5},
}
LEAST, LARGEST = 1e-5, 1.0  # singular values
PRINTED: list[Row] = [
    {"method": "jd", "peak": 1.0 / (2.0 * LAMBDA), "at": LAMBDA},
    {"method": "jf", "peak": 1.0 / (2.0 * LAMBDA_MAX), "at": LAMBDA_MAX},
    {"method": "ed", "peak": 1.0 / (2.0 * E**0.5), "at": E**0.5},
    {"method": "svf", "peak": 1.0 / SIGMA0},
]
NOTES = [
    "Printed: what the appendix says of it, in the figures of Figure 1's setting. g = s / (s^2 + "
    "lambda^2) has its maximum 1 / (2 lambda) at s = lambda; SVF never exceeds 1 / sigma0.",
    f"ED and SVF+ED for an error of {ERROR:g}, with E in place of lambda^2. Of JF the appendix "
    "says the order of magnitude only; the figure beside it is that of lambda_max. JP has no "
    "maximum: its value is that at the least singular value drawn.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """The gain of every law for a range of singular values."""
    sigma = np.geomspace(LEAST, LARGEST, report.samples)
    report.settings.update({"rows": METHODS, "error": ERROR, "sigma": (LEAST, LARGEST)})
    report.printed += PRINTED
    report.notes += NOTES
    report.series["sigma"], report.series["gain"] = sigma, {}
    for method in progress.track(list(METHODS), "laws"):
        gain = gains(method, METHODS[method], sigma)
        peak = int(np.argmax(gain))
        at = float(sigma[peak]) if 0 < peak < len(sigma) - 1 else None
        row = {"method": method, "peak": float(gain[peak]), "at": at}
        report.rows.append({**row, "least": float(gain[0])})
        report.series["gain"][method] = gain


def gains(name: str, options: dict[str, Any], sigma: Array) -> Array:
    """What a law makes of each singular value (k,).

    One link along x: its tip moves along y by 1 a radian, and by the weight of that row, scaled.
    """
    robot = RobotModel.from_dh([DhRow(a=1.0, kind="continuous")])
    found = []
    for value in sigma.tolist():
        stepper = Stepper(robot, name, [0.0], task=Task("y", "", weights=(value,)), **options)
        T = np.eye(4)
        T[1, 3] = ERROR / value
        found.append(stepper.inverse(T).gain[0])
    return np.array(found)


def plot(report: Reproduction) -> Figure:
    """All gains over the singular value."""
    figure = new_figure(9.0, 5.6)
    axes = figure.subplots()
    for method, gain in report.series.get("gain", {}).items():
        axes.loglog(report.series["sigma"], gain, label=method.upper(), **LINES[method])
    for x, text in ((LAMBDA, "lambda"), (LAMBDA_MAX, "lambda_max = sigma0")):
        axes.axvline(x, color="#BBBBBB", linewidth=0.8, zorder=0)
        axes.annotate(text, (x, 1.2), (3, 0), textcoords="offset points", fontsize=8)
    axes.set_ylim(1.0, 2e4)
    axes.set_xlabel("singular value s", fontsize=9)
    axes.set_ylabel("gain g(s)", fontsize=9)
    if report.rows:
        axes.legend(fontsize=9, frameon=False)
    plain(axes)
    figure.suptitle("Figure 2 of Colome & Torras 2012", fontsize=13, fontweight="bold")
    return figure


EXPERIMENT = Experiment(
    what="figure-2",
    source="Colome & Torras 2012, Figure 2",
    title="What the laws make of 1 / s",
    tables=(
        Table(
            (
                Column("method", "method", is_name=True),
                Column("peak", "largest gain", ".4g"),
                Column("at", "at s", ".3g"),
                Column("least", f"gain at {LEAST:g}", ".4g"),
            )
        ),
    ),
    run=run,
    plot=plot,
    samples=400,
    samples_are="singular values",
    least_samples=20,
)
