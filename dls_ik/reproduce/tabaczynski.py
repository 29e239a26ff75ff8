# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table 4.4 of Tabaczynski 2005: three methods on planar chains, targets in and out of reach.

Iterations are counted as in Tabaczynski's code: iteration 1 tests the start. For a target out of
reach, the paper counts the iterations until the method has converged to the target line, which
contains the reachable point closest to the target. Here a method has converged to this line when
the distance from the target stays within 0.01 of the minimum possible distance. The paper does not
print links, starts and goals; ``NOTES`` tell how they were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.dh import DhRow
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import draw_arms
from dls_ik.plot.canvas import BLUE, GREY, heading, new_figure, plain
from dls_ik.reproduce.experiment import (
    FITTED,
    Column,
    Experiment,
    NotPredicted,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
)
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Planar chains of revolute joints, which other papers use too: in the zero position all links are
# along x; joints rotate about z, and the task is the position (x, y).


def planar_robot(links: Sequence[float]) -> RobotModel:
    """Build a planar chain of revolute joints without limits, given the link lengths [m]."""
    return RobotModel.from_dh([DhRow(a=a, kind="continuous") for a in links], name="planar")


def planar_joints(links: Sequence[float], q: Array) -> Array:
    """Return the positions (..., n + 1, 2) [m] of base, joints 2 to n and tip of a planar chain.

    Args:
        links: (n,) link lengths [m].
        q: (..., n) joint positions [rad].
    """
    turned = np.cumsum(q, axis=-1)
    steps = np.array(links)[:, None] * np.stack([np.cos(turned), np.sin(turned)], axis=-1)
    ends = np.cumsum(steps, axis=-2)
    return np.concatenate([np.zeros_like(ends[..., :1, :]), ends], axis=-2)


def draw_planar_arms(axes: Axes, points: Array, colours: Sequence[Any]) -> None:
    """Draw k configurations of a planar chain, with equal scale on both axes.

    Args:
        axes: Axes to draw in.
        points: (k, n + 1, 2) positions of base, joints and tip [m].
        colours: (k,) colour of each configuration.
    """
    draw_arms(axes, points, colours, 0.8)
    axes.set_aspect("equal", adjustable="datalim")
    plain(axes)


# Scenarios


class Scenario(NamedTuple):
    """Planar chain with a start and a goal, and the printed results of each method."""

    name: str
    links: tuple[float, ...]  # lengths [m]
    start: tuple[float, ...]  # initial joint positions [rad]
    goal: tuple[float, float]  # x, y [m]
    printed: tuple[tuple[int | str, ...], ...]  # row of a method: iterations, words on its motion

    @property
    def is_reachable(self) -> bool:
        """Whether the goal is in reach; if not, iterations to the target line are counted."""
        return len(self.printed[0]) == 3

    @property
    def least_distance(self) -> float:
        """Minimum distance [m] between tip and goal over all configurations; 0 if in reach."""
        away, longest = float(np.hypot(*self.goal)), max(self.links)
        return max(0.0, away - sum(self.links), 2 * longest - sum(self.links) - away)


_TWO = ((1.0, 2.0), (pi / 4, pi / 8))
_FIVE = ((2.0, 1.0, 1.5, 2.5, 0.7), (pi / 4, 2 * pi / 3, 1.5, pi / 3, -3.0))
_JERKY, _WIDE, _SMOOTH = "jerky", "wide oscillation", "very smooth"
SCENARIOS = (
    Scenario("2 links, too far", *_TWO, (-2.5, -2.5),
             (("never", _WIDE), (100, _WIDE), (45, _SMOOTH))),
    Scenario("2 links, too close", *_TWO, (-0.5, -0.5),
             (("never", _WIDE), (68, _WIDE), (30, _SMOOTH))),
    Scenario("2 links", *_TWO, (-2.0, -2.0),
             ((14, 16, _JERKY), (120, 570, _WIDE), (50, 141, _SMOOTH))),
    Scenario("5 links", *_FIVE, (-2.0, -2.0),
             ((6, 7, _JERKY), (140, 459, _WIDE), (16, 40, _SMOOTH))),
)  # fmt: skip


# Table

COARSE_TOLERANCE, FINER_TOLERANCE, FINE_TOLERANCE = 0.01, 1e-3, 1e-7
NEVER_REACHED = "never"
STEP_CAP = {"largest_change": pi / 4}
TABLE_4_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "truncated pinv": ("tpinv+max", {"truncation": 5e-5, **STEP_CAP}),
    "transpose": ("jt+max", STEP_CAP),
    "DLS": ("dls+clamp+max", {"lambda_": sqrt(1.1), "D_max": 0.7, **STEP_CAP}),
}

SETTINGS = {
    "2 links": "lengths 1, 2; start pi/4, pi/8",
    "5 links": "lengths 2, 1, 1.5, 2.5, 0.7; start pi/4, 2 pi/3, 1.5, pi/3, -3",
    "goals": "(-2, -2); too far: (-2.5, -2.5); too close: (-0.5, -0.5)",
    "methods": "truncated pinv: singular values below 1e-4 are zero; DLS: lambda^2 = 1.1, D_max "
    "0.7; all: cap of the step pi/4",
}
NOTES = [
    "The paper prints neither links nor starts nor goals. For 5 links they were recovered from the "
    "printed trace of the truncated pseudoinverse: links, start and goal fitted to the 30 numbers "
    "of iterations 1 to 5 reproduce these numbers up to rounding, and are round numbers "
    "themselves. With them, the other two methods take the printed numbers of iterations, and DLS "
    "follows its printed trace. A rotation of the whole plane would give the same results.",
    "The links and the start of the chain of 2 links were found by a search over round lengths and "
    "angles. A run with them reproduces all six printed numbers of iterations for the target in "
    "reach.",
    "The goals out of reach are assumed: they are on the line from the base to the goal in reach, "
    "with the same chain. The paper does not define 'converged to the target line', but read it "
    "off a plot. Here it means that the distance stays within 0.01 of the minimum possible "
    "distance. Therefore these numbers of iterations differ from the printed ones. Within 0.001 "
    "the transpose takes the printed 100 for the target that is too far. For the target that is "
    "too close, the number of the transpose is chaotic: the last digit of a length or angle "
    "changes it by hundreds.",
    "Oscillation: the paper describes it in words. 'Turns back' is the share of steps in which a "
    "joint reverses its direction, among the first 100 steps or until the distance is 0.01. "
    "'Excess rotation' is the total rotation minus the net rotation, summed over all joints.",
    "Never: the distance was not attained in the iterations of this run. It counts as a difference "
    "only if this run has at least as many iterations as the paper needs.",
    "Tabaczynski's code adds lambda where the text has lambda squared; here lambda^2 = 1.1.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Run every method in every scenario, and add a row for each pair to the report."""
    report.settings.update(SETTINGS)
    report.notes += NOTES
    report.printed += [row for scenario in SCENARIOS for row in _printed(scenario)]
    pairs = [(scenario, method) for scenario in SCENARIOS for method in TABLE_4_METHODS]
    for scenario, method in progress.track(pairs, "chains"):
        q, distance = follow(scenario, TABLE_4_METHODS[method], report.samples)
        row = row_of(scenario, method, q, distance)
        printed = next(p for p in report.printed if _name(p) == _name(row))
        keys = ("line", "coarse", "fine")
        far = [key for key in keys if _differs(row.get(key), printed.get(key), len(distance))]
        report.rows.append(marked(row, far))
        report.series[f"{scenario.name}, {method}"] = {
            "points": planar_joints(scenario.links, q[: _shown(distance)]),
            "goal": scenario.goal,
        }


Method = tuple[str, dict[str, Any]]  # name and options


def follow(
    scenario: Scenario, method: Method, iterations: int, start: Sequence[float] | None = None
) -> tuple[Array, Array]:
    """Run a method in a scenario for a number of iterations.

    Args:
        scenario: Chain and goal.
        method: Name and options of the method.
        iterations: Number i of iterations; the first one only tests the start.
        start: Initial joint positions (n,) [rad]; None for those of the scenario.

    Returns:
        Joint positions (i, n) [rad] and distances (i,) from the goal [m], tested in each iteration.
    """
    robot, (name, options) = planar_robot(scenario.links), method
    T = np.eye(4)
    T[:2, 3] = scenario.goal
    begin = scenario.start if start is None else start
    stepper = Stepper(robot, name, begin, task=Task("xy", ""), **options)
    trace = stepper.run(T, iterations - 1)
    return trace.q, np.asarray(np.linalg.norm(trace.error, axis=1))


def row_of(scenario: Scenario, method: str, q: Array, distance: Array) -> Row:
    """Return the table row of a method in a scenario, computed from the method's iterations.

    The row has three results: the number of iterations until the tip is at the goal, or until it
    stays close to the minimum possible distance if the goal is out of reach; the percentage of
    displacements of a joint that are opposite to the previous displacement; and the rotation of
    all joints in excess of the difference between their first and last positions [rad].

    Args:
        scenario: Chain, start and goal of the run.
        method: Name of the method.
        q: (i, n) joint positions [rad] in each iteration.
        distance: (i,) distances of the tip from the goal [m] in each iteration.
    """
    row: Row = {"table": _table(scenario), "scenario": scenario.name, "method": method}
    if scenario.is_reachable:
        row |= {
            "coarse": first_of(distance <= COARSE_TOLERANCE),
            "fine": first_of(distance <= FINE_TOLERANCE),
        }
    else:
        row["line"] = _for_good(distance <= scenario.least_distance + COARSE_TOLERANCE)
        row["line_fine"] = _for_good(distance <= scenario.least_distance + FINER_TOLERANCE)
    moved = np.diff(q[: _shown(distance)], axis=0)
    back = moved[1:] * moved[:-1] < 0.0
    beyond = np.abs(moved).sum(axis=0) - np.abs(moved.sum(axis=0))
    turns = 100.0 * float(back.mean()) if back.size else 0.0
    return {**row, "oscillation": turns, "beyond": float(beyond.sum())}


def _shown(distance: Array) -> int:
    """Return the number of iterations that are drawn: until the goal is reached, at most 100.

    `distance` (i,) has the distance from the goal in each iteration.
    """
    first = first_of(distance <= COARSE_TOLERANCE)
    return min(100, len(distance), first if isinstance(first, int) else 100)


def _differs(ours: int | str | None, printed: int | str | None, iterations: int) -> bool:
    """Return whether our number of iterations differs from the printed number.

    If ours is NEVER_REACHED, it differs only if our run has at least the printed number of
    iterations.

    Args:
        ours: Our number of iterations, or NEVER_REACHED.
        printed: Printed number of iterations, or "never".
        iterations: Number of iterations of our run.
    """
    if ours == NEVER_REACHED and isinstance(printed, int):
        return printed <= iterations
    return ours != printed


def first_of(good: NDArray[np.bool_]) -> int | str:
    """Return the number, from 1, of the first true entry of `good` (i,), or NEVER_REACHED."""
    return int(np.argmax(good)) + 1 if good.any() else NEVER_REACHED


def _for_good(good: NDArray[np.bool_]) -> int | str:
    bad = np.flatnonzero(~good)
    if not len(bad):
        return 1
    return int(bad[-1]) + 2 if bad[-1] + 1 < len(good) else NEVER_REACHED


def _printed(scenario: Scenario) -> list[Row]:
    keys = ("coarse", "fine", "oscillation") if scenario.is_reachable else ("line", "oscillation")
    name = {"table": _table(scenario), "scenario": scenario.name}
    return [
        {**name, "method": method, **dict(zip(keys, figures, strict=True))}
        for method, figures in zip(TABLE_4_METHODS, scenario.printed, strict=True)
    ]


def _table(scenario: Scenario) -> str:
    return "in reach" if scenario.is_reachable else "out of reach"


def _name(row: Row) -> tuple[Any, ...]:
    return row["scenario"], row["method"]


# Picture


def plot(report: Reproduction) -> Figure:
    """Draw all runs: a row of panels for each scenario, with two panels for each method.

    The left panel of a method has the configurations, from red (first) to green (last); the right
    panel has the paths of the joints.
    """
    scenarios, methods = [scenario.name for scenario in SCENARIOS], list(TABLE_4_METHODS)
    figure = new_figure(2.6 * 2 * len(methods), 2.9 * len(scenarios))
    grid = figure.subplots(len(scenarios), 2 * len(methods), squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    for row, scenario in zip(grid, scenarios, strict=True):
        for i, method in enumerate(methods):
            shown = report.series.get(f"{scenario}, {method}")
            if shown:
                points = np.asarray(shown["points"])
                draw_planar_arms(row[2 * i], points, _red_to_green(len(points)))
                _paths(row[2 * i + 1], points)
                for axes in (row[2 * i], row[2 * i + 1]):
                    _frame(axes, shown["goal"])
                count = f"{len(points)} iterations"
                row[2 * i].set_title(f"{scenario}\n{method}, {count}", fontsize=12, loc="left")
                row[2 * i + 1].set_title("paths of the joints", fontsize=11, loc="left", color=GREY)
    heading(figure, "Table 4.4: first configuration red, last green")
    return figure


def _red_to_green(count: int) -> list[Any]:
    """Return `count` colours from red to green, as in Tabaczynski's figures."""
    late = np.linspace(0.0, 1.0, count)
    return list(np.stack([1.0 - late, 0.8 * late, np.zeros(count)], axis=1))


def _paths(axes: Axes, points: Array) -> None:
    """Draw the paths of tip and joints; `points` (i, n + 1, 2) has their positions per iteration.

    The first joint, which does not move, is not drawn.
    """
    for path in np.moveaxis(points[:, 1:], 1, 0):
        axes.plot(*path.T, linewidth=0.9, marker=".", markersize=2.0)


def _frame(axes: Axes, goal: Sequence[float]) -> None:
    axes.set_axis_on()
    axes.plot(*goal, marker="s", markersize=6, markerfacecolor="none", color=BLUE)
    axes.plot(0.0, 0.0, marker="o", markersize=3, color=GREY)
    axes.set_aspect("equal", adjustable="datalim")
    plain(axes)
    axes.tick_params(labelsize=10)


NAME_COLUMNS = (
    Column("scenario", "target", is_name=True),
    Column("method", "method", is_name=True),
)
MOTION_COLUMNS = (
    Column("oscillation", "turns back [%]", ".0f"),
    Column("beyond", "excess rotation [rad]", ".2f"),
)
TABLE_4_4 = Experiment(
    what="table-4-4",
    source="Tabaczynski 2005, table 4.4",
    title="Planar chains of 2 and 5 links: numbers of iterations, and oscillation",
    tables=(
        ResultTable(
            (
                *NAME_COLUMNS,
                Column("line", "to 0.01"),
                Column("line_fine", "to 0.001"),
                *MOTION_COLUMNS,
            ),
            "Targets out of reach: iterations to the target line",
            {"table": "out of reach"},
        ),
        ResultTable(
            (
                *NAME_COLUMNS,
                Column("coarse", "to 0.01"),
                Column("fine", "to 1e-7"),
                *MOTION_COLUMNS,
            ),
            "Targets in reach: iterations to a distance of 0.01 and 1e-7",
            {"table": "in reach"},
        ),
    ),
    run=run,
    plot=plot,
    samples=1000,
    samples_are="iterations per run",
    least_samples=2,
    not_predicted=(
        NotPredicted(
            FITTED,
            "the lengths and the start of the chain of 2 links were chosen so that the run "
            "reproduces the six printed numbers of iterations for the target in reach",
            {"scenario": ("2 links",)},
            ("coarse", "fine"),
        ),
    ),
)
