"""The peg-in-hole arm of Matos 2016: position with the tool vertical, and ticks for its servos.

Three ways to keep the tool vertical: as his code, which sets th4 = th2 - th3 after every step of
all joints; with that coupling in the model; and as a task, position and the tool's direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.reproduce.dasl_arm import (
    HOME,
    TOOL_DOWN,
    angles,
    arm,
    coupled_arm,
    ticks,
    with_wrist,
)
from dls_ik.reproduce.dasl_picture import JOINTS, WAYS, plot
from dls_ik.reproduce.experiment import Experiment, Progress
from dls_ik.reproduce.report import Reproduction, Row
from dls_ik.reproduce.table import Column, Table
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

LAMBDA = 1.0  # [cm/rad]
TOLERANCE = 1e-3  # [cm]
MOST_STEPS = 1000
CORNERS = np.array([[20.0, -12.0, 12.0], [26.0, 8.0, 10.0], [26.0, 8.0, 3.0]])  # [cm] to the hole
Solve = Callable[[Array, Array], tuple[Array, int]]  # T, seed -> q (5,), iterations

SETTINGS = {
    "arm": "d1 9, a2 20, a3 18, d5 12 cm; alpha 90, 180, 0, -90, 0 deg",
    "path": "from (20, -12, 12) over (26, 8, 10) down to (26, 8, 3) cm, each from the one before",
    "method": f"dls, lambda = {LAMBDA:g} cm/rad, until {TOLERANCE:g} cm",
    "ticks": "0.088 deg of joints 1 to 3, 0.29 deg of 4 and 5, rounded to whole ones",
}
NOTES = [
    "The table of Denavit-Hartenberg rows did not survive: the lengths are ours. The text names no "
    "unit; its lambda = 1 goes with lengths in cm, and so does its threshold of 1 cm.",
    "Minus signs are lost in the text: 'th4 = th2 th3' may have been -th2 - th3. Which one keeps "
    "the tool vertical depends on where the elbow's axis points; here it is th2 - th3.",
    "His code converts each step from degrees, though it is in radians already: steps are 57 times "
    "shorter and go the same way. And it asks for no turn of the tool in each step, by rows of "
    "zeros, where the text leaves the orientation out. Neither is done here.",
    "The paper prints one figure, the ticks for 50 degrees. Ticks are rounded here, not cut off.",
    "Set after each step, the wrist undoes part of the step: it takes more of them than the "
    "coupling in the model, whose Jacobian knows it. Both need no row for the tool's direction.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Go along the path in each way, from waypoint to waypoint."""
    report.settings.update(SETTINGS)
    report.notes += NOTES
    report.printed.append({"table": "example", "angle": 50, "ticks": 568})
    fifty = int(ticks(np.full(5, np.radians(50.0)))[0])
    report.rows.append({"table": "example", "angle": 50, "ticks": fifty})
    ways: dict[str, Solve] = dict(zip(WAYS, (_overwriting(), _coupled(), _pointing()), strict=True))
    points = waypoints(report.samples)
    report.series |= {"path": points, "home": _joint_positions(HOME)}
    for way, solve in ways.items():
        q = HOME
        for i, point in enumerate(progress.track(list(points), way), start=1):
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = TOOL_DOWN, point
            q, iterations = solve(T, q)
            report.rows.append({**_row(way, q, T, iterations), "waypoint": i})
            report.series.setdefault(way, []).append(_joint_positions(q))


def waypoints(count: int) -> Array:
    """Points (count, 3) [cm], evenly along the path."""
    lengths = np.linalg.norm(np.diff(CORNERS, axis=0), axis=1)
    along = np.linspace(0.0, lengths.sum(), count)
    knots = np.concatenate([[0.0], np.cumsum(lengths)])
    return np.column_stack([np.interp(along, knots, axis) for axis in CORNERS.T])


def _overwriting() -> Solve:
    robot = arm()

    def solve(T: Array, seed: Array) -> tuple[Array, int]:
        stepper = Stepper(robot, "dls", seed, task=Task.position_only(), lambda_=LAMBDA)
        for step in range(MOST_STEPS):
            if np.linalg.norm(stepper.error(T)) <= TOLERANCE:
                return stepper.q, step
            stepper.step(T)
            stepper.q[3] = stepper.q[1] - stepper.q[2]
        return stepper.q, MOST_STEPS

    return solve


def _coupled() -> Solve:
    solver = _solver(coupled_arm(), Task.position_only())

    def solve(T: Array, seed: Array) -> tuple[Array, int]:
        result = solver.solve(T, np.delete(seed, 3))
        return with_wrist(result.q), result.iterations

    return solve


def _pointing() -> Solve:
    solver = _solver(arm(), Task.pointing("z"))

    def solve(T: Array, seed: Array) -> tuple[Array, int]:
        result = solver.solve(T, seed)
        return result.q, result.iterations

    return solve


def _solver(robot: Any, task: Task) -> IkSolver:
    return IkSolver(
        robot,
        "dls",
        task=task,
        lambda_=LAMBDA,
        position_tolerance=TOLERANCE,
        rotation_tolerance=1e-4,
        timeout=10.0,
        rotation_weight=20.0,
        max_iterations=MOST_STEPS,
    )


def _row(way: str, q: Array, T: Array, iterations: int) -> Row:
    """What the servos are sent, and how far off the tool is before and after rounding."""
    goal_positions = ticks(q)
    before, after = _deviation(q, T), _deviation(angles(goal_positions), T)
    sent = dict(zip(JOINTS, goal_positions.tolist(), strict=True))
    figures = {"before": before[0], "after": after[0], "lean": before[1], "tilt": after[1]}
    return {"table": "path", "way": way, "iterations": iterations, **sent, **figures}


def _deviation(q: Array, T: Array) -> tuple[float, float]:
    """Distance [mm] and tilt of the tool [deg]."""
    reached = arm().fk(q)
    sine = float(np.linalg.norm(np.cross(reached[:3, 2], T[:3, 2])))
    angle = np.arctan2(sine, float(reached[:3, 2] @ T[:3, 2]))
    return 10.0 * float(np.linalg.norm(reached[:3, 3] - T[:3, 3])), float(np.degrees(angle))


def _joint_positions(q: Array) -> Array:
    """Where the joints and the tip are (k, 3) [cm]."""
    robot = arm()
    links = (robot.base, "joint2_link", "joint3_link", "joint4_link", robot.tip)
    return np.array([robot.link_pose(link, q)[:3, 3] for link in links])


_NAMES = (Column("way", "tool vertical", is_name=True), Column("waypoint", "point", is_name=True))
EXPERIMENT = Experiment(
    what="dasl",
    source="Matos 2016",
    title="A 5-joint arm with its tool vertical, and the ticks for its servos",
    tables=(
        Table(
            (Column("angle", "angle [deg]", is_name=True), Column("ticks", "ticks of 0.088 deg")),
            "The example of the text",
            {"table": "example"},
        ),
        Table(
            (
                *_NAMES,
                *(Column(joint, f"{joint} [ticks]") for joint in JOINTS),
                Column("iterations", "iterations"),
                Column("before", "error [mm]", ".3f"),
                Column("after", "in ticks [mm]", ".2f"),
                Column("tilt", "tilt in ticks [deg]", ".2f"),
            ),
            "Along the path",
            {"table": "path"},
        ),
    ),
    run=run,
    plot=plot,
    samples=10,
    samples_are="waypoints",
    least_samples=2,
)
