# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures 1 to 3 of Deo & Walker 1993, and the errata of its equations.

Figure 1: a stretched arm that needs damping in one direction of motion and not in the other. Figure
2: the norm of the damped joint velocity as a function of the damping factor, and two iterative
searches, (17) and (18), for the factor at which the norm equals the bound Delta. Figure 3: the norm
with a subtask; the shift T of (28) removes the pole at a factor of 0. The paper prints curves and
claims, but no numbers. Numbers in parentheses are equations of the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.optimal_damping import T as SHIFT  # T of (28)
from dls_ik.core.types import Array
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, RED, heading, new_figure, plain
from dls_ik.reproduce.experiment import (
    Column,
    Experiment,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
)
from dls_ik.reproduce.tabaczynski import draw_planar_arms, planar_joints, planar_robot
from dls_ik.solver.plugins import MEMORY, Step, StepState
from dls_ik.solver.published_steps import running_filter
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELTA = 5.0  # bound on the norm of the joint velocity [1/s]
# Tolerance of a search, relative to DELTA, with which the printed numbers of iterations result
FINE_SEARCH_TOLERANCE = 1e-10
PLANAR_LINKS = (1.0, 0.5, 0.5)
PLANAR_TASK = Task("xy", "")
PLANAR_START = np.radians([5.0, -175.0, 175.0])
ERRATA_NOTE = (
    "Errata of the paper: in appendix A, the norm of the deviation lacks gamma_i, and s / (s^2 + "
    "lambda) is largest at s = sqrt(lambda), not at lambda; (26) should have - grad h instead of "
    "+ grad h; (27) lacks a square."
)

# Figure 1

BEND = np.radians([0.0, 1.0, 1.0])
DIRECTIONS = {"X": np.array([1.0, 0.0]), "Y": np.array([0.0, 1.0])}  # X is nearly singular


def stretched() -> Array:
    """Return joint positions (3,) [rad] of a nearly stretched arm whose singular direction is X."""
    u = np.linalg.svd(planar_robot(PLANAR_LINKS).jacobian(BEND)[:2])[0][:, -1]
    return np.asarray(BEND - [np.arctan2(u[1], u[0]) % np.pi, 0.0, 0.0])


DAMPING_LAWS: dict[str, tuple[str, dict[str, Any]] | Step] = {
    "pseudoinverse": ("jp", {}),
    "constant": ("jd", {"lambda_": 0.1}),
    "manipulability": ("jd", {"policy": "manipulability", "lambda0": 0.05, "w_t": 0.2}),
    "velocity (6)": ("jd", {"policy": "velocity", "velocity_bound": DELTA}),
    "tracking (7)": ("jd", {"policy": "tracking", "tracking_bound": 0.5}),
    "condition (8)": ("jd", {"policy": "condition", "condition_bound": 100.0}),
    "filter": ("nf", {"velocity_bound": DELTA}),
    "filter, running estimate": running_filter(DELTA),
    "optimal (18)": ("odls", {"Delta": DELTA}),
}
ALWAYS_DAMPED_LAWS = ("constant", "manipulability", "velocity (6)", "tracking (7)", "condition (8)")
YES, NO = "yes", "no"
MIN_DAMPED_SHARE = 1e-7  # relative loss of tip velocity above which a motion counts as damped


def joint_velocity(law: str, q: Array, x_dot: Array) -> Array:
    """Return the joint velocity (3,) [1/s] of the planar arm for a tip velocity.

    Args:
        law: Key of DAMPING_LAWS, a damping law.
        q: (3,) joint positions [rad].
        x_dot: (2,) tip velocity [1/s]; lengths have no unit.
    """
    chosen = DAMPING_LAWS[law]
    robot = planar_robot(PLANAR_LINKS)
    if callable(chosen):
        state = StepState(q, robot.lower, robot.upper, 0, np.zeros(MEMORY))
        return np.asarray(chosen(robot.jacobian(q)[:2], x_dot, state))
    name, options = chosen
    return Stepper(robot, name, q, task=PLANAR_TASK, **options).rate(x_dot, 0.0)


def directions_row(law: str) -> Row:
    """Return a row with the effect of a damping law on unit velocities along X and along Y.

    The law is a key of DAMPING_LAWS. For each direction the row has the norm of the joint velocity
    [1/s], the loss of tip velocity [percent], whether the motion is damped, and whether the text
    says so. The arm is nearly stretched.
    """
    q = stretched()
    J = planar_robot(PLANAR_LINKS).jacobian(q)[:2]
    row: Row = {"law": law}
    for name, x_dot in DIRECTIONS.items():
        q_dot = joint_velocity(law, q, x_dot)
        lost = float(np.linalg.norm(x_dot - J @ q_dot))
        row |= {
            f"norm_{name}": float(np.linalg.norm(q_dot)),
            f"lost_{name}": 100.0 * lost,
            f"damped_{name}": YES if lost > MIN_DAMPED_SHARE else NO,
        }
    claims = claimed(law)
    row |= {f"{key}_says": claim for key, claim in claims.items()}
    return marked(row, [key for key, claim in claims.items() if claim != row[key]])


def claimed(law: str) -> Row:
    """Return two columns with what the text of the paper says about a law, a key of DAMPING_LAWS.

    The columns are YES or NO: whether the law damps motions along X, and along Y. There are no
    columns for the pseudoinverse.
    """
    if law == "pseudoinverse":
        return {}
    return {"damped_X": YES, "damped_Y": YES if law in ALWAYS_DAMPED_LAWS else NO}


# Figures 2 and 3: the norm of the joint velocity over the damping factor


class Norm(NamedTuple):
    """Norm of the joint velocity as a function of the damping factor a.

    The norm is phi(a) = sqrt(sum_i c_i^2 / (d_i + a)^2). With d_i = s_i^2, squared singular values,
    it is (15); with d_i = s_i^2 + T and the shift T it is (29).
    """

    c: Array  # (k,) s_i gamma_i without a subtask, s_i gamma_i + beta_i with a subtask
    d: Array  # (k,) s_i^2 or s_i^2 + T

    def __call__(self, a: Array) -> Array:
        """Return phi at damping factors `a` of any shape, as an array of this shape."""
        parts = self.c / (self.d + np.asarray(a)[..., None])
        return np.asarray(np.linalg.norm(parts, axis=-1))

    def slope(self, a: float) -> float:
        """Return the derivative of phi with respect to the damping factor, (16), at `a`."""
        parts = self.c / (self.d + a)
        return float(-np.sum(parts**2 / (self.d + a)) / np.linalg.norm(parts))


def plain_norm(J: Array, x_dot: Array) -> Norm:
    """Return the norm (15) of the damped joint velocity, a function of the damping factor.

    Args:
        J: (r, n) Jacobian.
        x_dot: (r,) tip velocity.
    """
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    return Norm(s * (U.T @ x_dot), s * s)


def total_norm(J: Array, x_dot: Array, v: Array, shift: float) -> Norm:
    """Return the norm (29) of the joint velocity with a subtask, a function of alpha.

    Args:
        J: (r, n) Jacobian.
        x_dot: (r,) tip velocity.
        v: (n,) joint velocity of the subtask, which acts in the null space.
        shift: Shift T of the damping factor, lambda = alpha + T. With a shift of 0 the norm is
            (27), without the erratum of the printed equation.
    """
    U, s, Vt = np.linalg.svd(J)
    c = Vt @ v
    c[: len(s)] += s * (U.T @ x_dot)
    d = np.full(len(v), shift)
    d[: len(s)] += s * s
    return Norm(c, d)


MAX_SEARCH_ITERATIONS = 60  # maximum number of iterations
SEARCH_EQUATIONS = {"17": 17, "18": 18}


def iterates(norm: Norm, search: int) -> list[float]:
    """Search for the damping factor at which a norm equals DELTA; return the factors tried.

    The result has the first factor, 0, and the factor after each iteration of equation (17) or (18)
    as printed. The search ends when the norm differs from DELTA by at most FINE_SEARCH_TOLERANCE
    times DELTA.

    Args:
        norm: Norm of the joint velocity as a function of the damping factor.
        search: Number of the equation, 17 or 18.
    """
    found = [0.0]
    for _ in range(MAX_SEARCH_ITERATIONS):
        phi = float(norm(np.array(found[-1])))
        if abs(phi - DELTA) <= FINE_SEARCH_TOLERANCE * DELTA:
            break
        newton = (phi - DELTA) / norm.slope(found[-1])
        found.append(found[-1] - (newton if search == 17 else phi / DELTA * newton))
    return found


# Values of s in the Jacobian diag(1, s)
STEEP_SINGULAR_VALUES = tuple(10.0**-k for k in range(1, 7))


def steep_row(least: float) -> Row:
    """Return a row with the iterations of both searches for the Jacobian diag(1, `least`).

    A small singular value makes the norm a steep function of the damping factor at 0. The row also
    has the damping factor that the searches find.
    """
    norm = plain_norm(np.diag([1.0, least]), np.array([0.6, 0.8]))
    counts = {
        f"iterations_{name}": len(iterates(norm, n)) - 1 for name, n in SEARCH_EQUATIONS.items()
    }
    return {"least": least, "factor": iterates(norm, 18)[-1], **counts}


# Joint velocity v of the subtask [rad/s]: from the start to the reference configuration of Figure 7
SUBTASK = np.radians([-30.0, 0.0, 0.0]) - PLANAR_START
TIP_VELOCITY = DIRECTIONS["X"]  # desired tip velocity, along the first side of the rectangle


# Errata: the equations as printed, corrected, and computed in another way


def errata_rows() -> list[Row]:
    """Return a row for each erratum of the paper, with three values computed for an example.

    The values are the result of the equation as printed, the result of the corrected equation, and
    an independently computed result. In the example the planar arm is at the start of the
    rectangle, lambda is 0.01, and the subtask v = -grad h moves the arm toward the reference
    configuration.
    """
    J = planar_robot(PLANAR_LINKS).jacobian(PLANAR_START)[:2]
    lambda_, v, x_dot = 0.01, SUBTASK, TIP_VELOCITY
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    gamma = U.T @ x_dot
    inverse = J.T @ np.linalg.inv(J @ J.T + lambda_ * np.eye(2))
    total = inverse @ x_dot + (np.eye(3) - inverse @ J) @ v / lambda_
    # Equation (26) as printed has +grad h, which is -v
    other = inverse @ x_dot - (np.eye(3) - inverse @ J) @ v / lambda_
    by_27 = float(total_norm(J, x_dot, v, 0.0)(np.array(lambda_)))
    # The minimization (21), written as a linear least-squares problem with this matrix
    stacked = np.vstack([J, np.sqrt(lambda_) * np.eye(3)])
    aim = np.concatenate([x_dot, v / np.sqrt(lambda_)])
    least = np.linalg.lstsq(stacked, aim)[0]
    lost = float(np.linalg.norm(x_dot - J @ inverse @ x_dot))
    share = lambda_ / (s * s + lambda_)
    grid = np.geomspace(1e-6, 1e2, 80001)
    peak = float(grid[np.argmax(grid / (grid * grid + lambda_))])
    norm, printed_norm = float(np.linalg.norm(total)), by_27**2
    return [
        _erratum("(26): + grad h instead of - grad h", float(np.linalg.norm(other)), norm,
                 float(np.linalg.norm(least))),
        _erratum("(27): the square of the norm is missing", printed_norm, by_27, norm),
        _erratum("appendix A: deviation without gamma_i", float(np.linalg.norm(share)),
                 float(np.linalg.norm(share * gamma)), lost),
        _erratum("appendix A: s / (s^2 + lambda) is largest at s = lambda", lambda_,
                 lambda_**0.5, peak),
    ]  # fmt: skip


def _erratum(where: str, printed: float, corrected: float, checked: float) -> Row:
    return {
        "where": where,
        "as_printed": printed,
        "corrected": corrected,
        "checked": checked,
    }


NOTES = [
    "Figure 1: the planar arm of Figures 4 and 5 with its two outer joints at 1 degree, turned so "
    "that X is its singular direction. The tip moves with 1/s along X or along Y. A motion counts "
    "as damped if some of the tip velocity is lost. The text remarks that laws that depend only on "
    "the Jacobian also damp motions along Y, which need no damping; numerical filtering and the "
    "optimal damping factor do not.",
    "Constants: constant lambda 0.1; manipulability w_t 0.2 and lambda_0 0.05; tracking R 0.5; "
    "condition number 100; velocity bounds 5.",
    "Figure 2: the arm is at the start of the rectangle. Both searches, (17) and (18), are run as "
    "printed: they start from a factor of 0, without limits on the factor, and end when the norm "
    "is within 1e-10 of Delta. (18) takes 2 iterations, as printed for the planar arm, and (17) "
    "three times as many. With limits that enclose the root from both sides, (17) takes fewer (see "
    "figures-4-5).",
    "Small singular value: J = diag(1, s), velocity (0.6, 0.8). The text says that (18) is better "
    "if a singular value is close to zero. Indeed (17) takes more iterations the smaller s is.",
    "Figure 3: the same configuration, with a subtask v toward the reference configuration "
    "(-30, 0, 0) deg. The norm (27) has a pole at 0; with the shift "
    f"T = {SHIFT:g} the norm (29) is finite there.",
    ERRATA_NOTE,
    "The column 'checked' has independent values, from the first row to the last: from the "
    "least-squares problem (21); the norm of the joint velocity vector; the norm of the deviation "
    "vector; the largest of 80001 values.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Add the tables of all damping laws, of the searches and of the errata, and the curves."""
    report.settings.update(
        {
            "links": PLANAR_LINKS,
            "stretched [deg]": np.degrees(stretched()),
            "start [deg]": np.degrees(PLANAR_START),
            "Delta": DELTA,
            "T": SHIFT,
        }
    )
    report.notes += NOTES
    for law in progress.track(list(DAMPING_LAWS), "laws"):
        report.rows.append(directions_row(law))
    J = planar_robot(PLANAR_LINKS).jacobian(PLANAR_START)[:2]
    norms = {
        "Figure 2": plain_norm(J, TIP_VELOCITY),
        "Figure 3": total_norm(J, TIP_VELOCITY, SUBTASK, SHIFT),
    }
    report.series["searches"] = [
        row for name, norm in norms.items() for row in search_rows(name, norm)
    ]
    report.series["steep"] = [steep_row(least) for least in STEEP_SINGULAR_VALUES]
    report.series["errata"] = errata_rows()
    factors = np.geomspace(1e-6, 10.0, report.samples)
    at_zero = np.linspace(0.0, 0.03, report.samples)
    unshifted = total_norm(J, TIP_VELOCITY, SUBTASK, 0.0)
    report.series["curves"] = {
        "factor": at_zero,
        "Figure 2": norms["Figure 2"](at_zero),
        "logarithmic factor": factors,
        "with its pole (27)": unshifted(factors),
        "shifted (29)": norms["Figure 3"](factors),
    }


def search_rows(name: str, norm: Norm) -> list[Row]:
    """Return a row for each iteration, with damping factor and norm of the searches (17) and (18).

    Args:
        name: Name of the figure, the first column of the rows.
        norm: Norm of the joint velocity as a function of the damping factor.
    """
    factors = {key: iterates(norm, search) for key, search in SEARCH_EQUATIONS.items()}
    rows = []
    for k in range(max(map(len, factors.values()))):
        row: Row = {"figure": name, "iteration": k}
        for key, a in factors.items():
            if k < len(a):
                row |= {f"factor_{key}": a[k], f"norm_{key}": float(norm(np.array(a[k])))}
        rows.append(row)
    return rows


# Picture


def plot(report: Reproduction) -> Figure:
    """Draw the stretched arm of figure 1, and the norms of figures 2 and 3 over the factor."""
    figure = new_figure(12.0, 4.2)
    arm, damped, shifted = figure.subplots(1, 3)
    points = planar_joints(PLANAR_LINKS, stretched())
    draw_planar_arms(arm, points[None], [BLUE])
    arm.plot(*points.T, "o-", color=BLUE, linewidth=3.0, markersize=5)
    tip = points[-1]
    for name, color in (("X", RED), ("Y", ORANGE)):
        arm.annotate(
            "", tip + 0.5 * DIRECTIONS[name], tip,
            arrowprops={"arrowstyle": "->", "color": color, "lw": 2.0},
        )  # fmt: skip
        arm.annotate(name, tip + 0.55 * DIRECTIONS[name], color=color, ha="center", va="center")
    arm.set_xlim(-0.2, 2.8)
    arm.set_title("1: X needs damping, Y does not", fontsize=10, loc="left")
    curves = report.series.get("curves", {})
    if curves:
        _draw_norm(damped, curves["factor"], curves["Figure 2"], BLUE, "")
        _draw_search(damped, report, "Figure 2")
        x = curves["logarithmic factor"]
        _draw_norm(shifted, x, curves["with its pole (27)"], PALE, "(27), over lambda")
        _draw_norm(shifted, x, curves["shifted (29)"], BLUE, "(29), over alpha = lambda - T")
        shifted.set_xscale("log")
        shifted.set_yscale("log")
        for axes in (damped, shifted):
            axes.legend(fontsize=8, frameon=False)
    damped.set_title("2: search for the damping factor", fontsize=10, loc="left")
    shifted.set_title("3: the shift T removes the pole at 0", fontsize=10, loc="left")
    plain(damped, "damping factor", "norm of the joint velocity [1/s]")
    plain(shifted, "damping factor, alpha")
    heading(figure, "Figures 1 to 3 of Deo & Walker 1993")
    return figure


def _draw_norm(axes: Axes, x: Array, y: Array, color: str, label: str) -> None:
    axes.plot(x, y, color=color, label=label)
    if axes.get_lines()[0].get_color() == color:
        axes.axhline(DELTA, color=RED, linewidth=1.0, linestyle="--", label=f"Delta = {DELTA:g}")


def _draw_search(axes: Axes, report: Reproduction, name: str) -> None:
    """Draw a marker at the factor and the norm of each iteration of both searches of a figure."""
    rows = [row for row in report.series["searches"] if row["figure"] == name]
    for key, color, marker in (("17", ORANGE, "o"), ("18", GREY, "s")):
        found = [row for row in rows if f"factor_{key}" in row]
        x = [row[f"factor_{key}"] for row in found]
        y = [row[f"norm_{key}"] for row in found]
        label = f"({key}), {len(x) - 1} iterations"
        axes.plot(x, y, marker, color=color, markersize=5, label=label)


_LAW = Column("law", "damping law", is_name=True)
FIGURES_1_3 = Experiment(
    what="figures-1-3",
    source="Deo & Walker 1993, Figures 1 to 3",
    title="Directions that need damping, searches for the damping factor, and errata",
    tables=(
        ResultTable(
            (
                _LAW,
                *(
                    column
                    for name in DIRECTIONS
                    for column in (
                        Column(f"norm_{name}", f"{name}: norm [1/s]", ".2f"),
                        Column(f"lost_{name}", "lost [%]", ".2f"),
                        Column(f"damped_{name}", "damped", is_text=True),
                        Column(f"damped_{name}_says", "text says", is_text=True),
                    )
                ),
            ),
            "Figure 1: unit velocities along X, the nearly singular direction, and along Y",
        ),
        ResultTable(
            (
                Column("figure", "figure", is_name=True),
                Column("iteration", "iteration", is_name=True),
                *(
                    column
                    for key in SEARCH_EQUATIONS
                    for column in (
                        Column(f"factor_{key}", f"({key}): factor", ".6f"),
                        Column(f"norm_{key}", "norm", ".6f"),
                    )
                ),
            ),
            "Figures 2 and 3: iterations of the searches (17) and (18), starting from 0",
            series="searches",
        ),
        ResultTable(
            (
                Column("least", "singular value", ".0e", is_name=True),
                Column("factor", "factor", ".3g"),
                *(Column(f"iterations_{key}", f"({key}): iterations") for key in SEARCH_EQUATIONS),
            ),
            "Iterations of both searches for the damping factor, at a small singular value",
            series="steep",
        ),
        ResultTable(
            (
                Column("where", "erratum", is_name=True),
                Column("as_printed", "as printed", ".4f"),
                Column("corrected", "corrected", ".4f"),
                Column("checked", "checked", ".4f"),
            ),
            "Errata of the equations",
            series="errata",
        ),
    ),
    run=run,
    plot=plot,
    samples=400,
    samples_are="points of a curve",
    least_samples=16,
)
