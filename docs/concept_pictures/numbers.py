# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Draw gains of singular values, lengths of steps, and the need of restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from concept_pictures.plane import arm
from dls_ik import IkSolver, RobotModel, Stepper, Task
from dls_ik.core.types import Array
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, RED, new_figure, plain
from dls_ik.plot.comparison import path_comparison
from dls_ik.reproduce.colome_torras_figures import gains
from dls_ik.solver.comparison import compare_on_path
from dls_ik.solver.hard_paths import singular_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GREEN, PURPLE = "#009E73", "#CC79A7"
LAWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "jp": ({}, {"color": GREY, "linewidth": 4.0, "alpha": 0.4}),
    "tpinv": ({"truncation": 0.01}, {"color": GREY, "linestyle": ":"}),
    "jd": ({"lambda_": 0.01}, {"color": ORANGE}),
    "jf": ({"lambda_max": 0.02}, {"color": RED, "linestyle": "--"}),
    "nf": ({"velocity_bound": 20.0}, {"color": PURPLE, "linestyle": "-."}),
    "ed": ({"error_gain": 10.0}, {"color": GREEN}),
    "svf": ({"sigma0": 0.01}, {"color": BLUE, "linewidth": 2.4}),
}
SAMPLES = 300


def laws() -> Figure:
    """Draw the gain of each law in place of 1/s, by its own kernel."""
    figure = new_figure(8.0, 4.2)
    axes = figure.subplots()
    s = np.geomspace(1e-4, 1.0, 241)
    for name, (options, line) in LAWS.items():
        shown = s if name != "tpinv" else s[s > options["truncation"]]
        gain = gains(name, options, shown) if name != "tpinv" else 1.0 / shown
        said = ", ".join(f"{key} {value:g}" for key, value in options.items())
        text = f"{name} ({said})" if said else name
        axes.loglog(shown, gain, label=text, **{"linewidth": 1.8, **line})
    axes.axvline(0.01, color="#BBBBBB", linewidth=0.8, zorder=0)
    axes.set_ylim(1.0, 2e3)
    axes.set_xlabel("singular value s", fontsize=9)
    axes.set_ylabel("gain g(s), in place of 1/s", fontsize=9)
    axes.legend(fontsize=8, frameon=False, loc="upper right")
    plain(axes)
    return figure


def methods() -> Figure:
    """Draw five methods at one target and along a path through a singularity of the WAM."""
    robot = RobotModel.wam()
    names = ("jp", "dls", "svf", "sd", "ctp+sd+svf")
    figure = path_comparison(compare_on_path(robot, names, singular_path(robot)))
    figure.set_dpi(105)
    return figure


def step_sizes(method: str, elbows: Array, **options: Any) -> list[float]:
    """Return norms of steps [rad] toward a point 0.1 m inward, from stretched to bent."""
    robot, found = arm(1.0, 0.8), []
    for elbow in elbows:
        q = np.array([0.3, elbow])
        T = robot.fk(q)
        T[:2, 3] *= 1.0 - 0.1 / np.linalg.norm(T[:2, 3])
        stepper = Stepper(robot, method, q, task=Task("xy", ""), **options)
        found.append(float(np.linalg.norm(stepper.step(T))))
    return found


def steps() -> Figure:
    """Draw the length of a step for the same error, from stretched to bent."""
    figure = new_figure(8.0, 3.6)
    axes = figure.subplots()
    elbows = np.geomspace(1e-4, 1.5, 161)
    drawn: dict[str, dict[str, Any]] = {
        "jp": {"color": GREY, "linewidth": 4.0, "alpha": 0.4},
        "dls": {"color": ORANGE},
        "svf": {"color": BLUE},
        "sd": {"color": RED},
        "svf+sd": {"color": PURPLE, "linestyle": "--"},
    }
    for method, line in drawn.items():
        sizes = step_sizes(method, elbows)
        axes.loglog(elbows, sizes, label=method, **{"linewidth": 1.8, **line})
    axes.axhline(0.5, color="#BBBBBB", linewidth=0.8, zorder=0)
    axes.annotate("gamma_max", (1.05e-4, 0.53), fontsize=8, color=GREY)
    axes.set_ylim(5e-4, 1e3)
    axes.set_xlabel("elbow [rad]; stretched, and singular, at 0", fontsize=9)
    axes.set_ylabel("norm of the step [rad]", fontsize=9)
    axes.legend(fontsize=9, frameon=False)
    plain(axes)
    return figure


def shares(starts: str, seeds: bool, most: int) -> Array:
    """Return the share of random poses of the WAM solved after 1, 2, ... attempts."""
    robot, rng = RobotModel.wam(), np.random.default_rng(0)
    Ts = robot.fk(robot.random(SAMPLES, rng))
    given = robot.random(SAMPLES, rng) if seeds else None
    solver = IkSolver(robot, starts=starts, max_restarts=most)
    found = solver.solve_batch(Ts, given)
    attempts = 1 + np.asarray(found.restarts)
    return np.array([(found.success & (attempts <= k)).mean() for k in range(1, most + 1)])


def restarts() -> Figure:
    """Draw the share of random poses solved by attempts, for three kinds of starts."""
    figure = new_figure(8.0, 3.2)
    axes = figure.subplots()
    most = 16
    drawn = (
        ("table", False, BLUE, "no seed: from the table of starts"),
        ("table", True, ORANGE, "from a random seed, then the table"),
        ("random", True, RED, "from a random seed, then random starts"),
    )
    for starts, seeds, color, text in drawn:
        share = 100.0 * shares(starts, seeds, most)
        axes.plot(range(1, most + 1), share, "o-", color=color, markersize=4, label=text)
    axes.set_ylim(0.0, 103.0)
    axes.set_xticks(range(1, most + 1))
    axes.set_xlabel("attempts", fontsize=9)
    axes.set_ylabel("solved [%]", fontsize=9)
    axes.legend(fontsize=9, frameon=False, loc="lower right")
    plain(axes)
    return figure
