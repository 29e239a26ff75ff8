# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Peg-in-hole arm of Matos 2016: tool positions with a vertical tool, and ticks of the servos.

The experiment compares Matos's code as written, this code without its slips, and three methods of
this package that keep the tool vertical. The first method sets th4 = th2 - th3 after every step of
all joints, as Matos's code does. The second method couples the joints by this equation in the
model. The third method has a task of position and tool direction.

The text lacks Matos's table of Denavit-Hartenberg rows. The rows here are assumed [cm], except the
known row of joint 1, d = L1 and alpha = pi/2. The elbow turns in the direction opposite to the
shoulder, so that th4 = th2 - th3 keeps the tool vertical.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import pi
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model import RobotModel
from dls_ik.model.dh import DhRow, tree_from_dh
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.tree import Tree
from dls_ik.plot.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    RED,
    heading,
    new_figure,
    plain,
)
from dls_ik.reproduce.experiment import Column, Experiment, Progress, Reproduction, ResultTable, Row
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Arm

DH_ROWS = (
    DhRow(d=9.0, alpha=pi / 2, kind="continuous"),  # waist
    DhRow(a=20.0, alpha=pi, kind="continuous"),  # shoulder
    DhRow(a=18.0, kind="continuous"),  # elbow
    DhRow(alpha=-pi / 2, kind="continuous"),  # wrist, up and down
    DhRow(d=12.0, kind="continuous"),  # wrist, about the tool axis
)
TICK_ANGLES = np.array([0.088, 0.088, 0.088, 0.29, 0.29])  # [deg] per tick
SERVO_HOME = np.radians([0.0, 60.0, 90.0, -30.0, 0.0])
TOOL_DOWN = np.diag([1.0, -1.0, -1.0])


def arm() -> RobotModel:
    """Return the arm with five independent joints."""
    return RobotModel.from_dh(DH_ROWS, name="dasl")


def coupled_arm() -> RobotModel:
    """Return the arm with four variables; two joints that mimic th2 and -th3 replace joint 4."""
    tree = tree_from_dh(DH_ROWS, name="dasl")
    joints: list[Joint] = []
    for joint in tree.joints:
        if joint.name != "joint4":
            joints.append(joint)
            continue
        half = "joint4_half"
        joints.append(replace(joint, name=half, child=half, mimic=Mimic("joint2", 1.0)))
        rest = replace(joint, parent=half, origin=np.eye(4), mimic=Mimic("joint3", -1.0))
        joints.append(rest)
    return RobotModel.from_tree(Tree(tree.name, (*tree.links, "joint4_half"), tuple(joints)))


def with_wrist(q: Array) -> Array:
    """Return all five joint positions [rad], given th1, th2, th3, th5 (4,) [rad]."""
    return np.array([q[0], q[1], q[2], q[1] - q[2], q[3]])


def ticks(q: Array) -> Array:
    """Return the goal positions (5,) of the servos [ticks] for joint positions (5,) [rad]."""
    return np.asarray(np.rint(np.degrees(q) / TICK_ANGLES), dtype=np.int64)


def angles(goal_positions: Array) -> Array:
    """Return the joint positions (5,) [rad] for goal positions (5,) of the servos [ticks]."""
    return np.asarray(np.radians(goal_positions * TICK_ANGLES))


# Path

JOINTS = tuple(f"joint{i}" for i in range(1, 6))
POINTING_METHODS = ("set after each step", "coupled in the model", "pointing task")
AS_WRITTEN = "his code as written"
CONSTANT_LAMBDA = 1.0  # [cm/rad]
SOLVE_TOLERANCE = 1e-3  # [cm]
MOST_STEPS = 1000
# [cm] corners of the path to the hole
PATH_CORNERS = np.array([[20.0, -12.0, 12.0], [26.0, 8.0, 10.0], [26.0, 8.0, 3.0]])
Solve = Callable[[Array, Array], tuple[Array, int]]  # maps T, seed to q (5,), iterations

SETTINGS = {
    "arm": "d1 9, a2 20, a3 18, d5 12 cm; alpha 90, 180, 0, -90, 0 deg",
    "path": "from (20, -12, 12) over (26, 8, 10) down to (26, 8, 3) cm, each from the one before",
    "method": f"dls, lambda = {CONSTANT_LAMBDA:g} cm/rad, until {SOLVE_TOLERANCE:g} cm",
    "ticks": "0.088 deg of joints 1 to 3, 0.29 deg of 4 and 5, rounded to whole ones",
}
NOTES = [
    "The table of Denavit-Hartenberg rows did not survive: the lengths are ours. The text names no "
    "unit; its lambda = 1 goes with lengths in cm, and so does its threshold of 1 cm.",
    "Minus signs are lost in the text: 'th4 = th2 th3' may have been -th2 - th3. The sign "
    "that keeps the tool vertical depends on the direction of the elbow's axis; here it is "
    "th2 - th3.",
    "His code converts each step from degrees, though it is in radians already: steps are 57 times "
    "shorter, in the same direction. It also constrains the rotation of the tool in each step to "
    "zero, by three rows with an error of zero; the text leaves the orientation out. It stops "
    "after a step from where each axis was within 1 cm. The text sends the joint angles of its "
    "'100 iterations' one after the other, for a gradual movement: a move has that many because of "
    "the conversion, and two to five without it. The rows of rotation change little.",
    "The paper prints one figure, the ticks for 50 degrees. Ticks are rounded here, not cut off.",
    "Set after each step, the wrist undoes part of the step: it takes more of them than with "
    "the coupling in the model, which is in the Jacobian. Both need no row for the direction of "
    "the tool.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Follow the waypoints with each method; then run Matos's code from corner to corner."""
    report.settings.update(SETTINGS)
    report.notes += NOTES
    report.printed.append({"table": "example", "angle": 50, "ticks": 568})
    fifty = int(ticks(np.full(5, np.radians(50.0)))[0])
    report.rows.append({"table": "example", "angle": 50, "ticks": fifty})
    coupled = _solving(coupled_arm(), Task.position_only())
    pointing = _solving(arm(), Task.pointing("z"))
    ways = dict(zip(POINTING_METHODS, (_overwrite, coupled, pointing), strict=True))
    ways[AS_WRITTEN] = _as_written
    points = waypoints(report.samples)
    report.series |= {"path": points, "home": _joint_positions(SERVO_HOME)}
    for way, solve in ways.items():
        q = SERVO_HOME
        for i, point in enumerate(progress.track(list(points), way), start=1):
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = TOOL_DOWN, point
            q, iterations = solve(T, q)
            report.rows.append({**_row(way, q, T, iterations), "waypoint": i})
            report.series.setdefault(way, []).append(_joint_positions(q))
        report.series.setdefault("ways", []).append(_summary(way, report.rows))
    run_his_code(report)


def _summary(way: str, rows: list[Row]) -> Row:
    """Return a row with the total iterations and the maximum errors of a method."""
    of_way = [row for row in rows if row.get("way") == way]
    largest = {key: max(row[key] for row in of_way) for key in ("before", "after", "tilt")}
    return {"way": way, "iterations": sum(row["iterations"] for row in of_way), **largest}


def waypoints(count: int) -> Array:
    """Return points (count, 3) [cm], evenly spaced along the path."""
    lengths = np.linalg.norm(np.diff(PATH_CORNERS, axis=0), axis=1)
    along = np.linspace(0.0, lengths.sum(), count)
    knots = np.concatenate([[0.0], np.cumsum(lengths)])
    return np.column_stack([np.interp(along, knots, axis) for axis in PATH_CORNERS.T])


def _overwrite(T: Array, seed: Array) -> tuple[Array, int]:
    stepper = Stepper(arm(), "dls", seed, task=Task.position_only(), lambda_=CONSTANT_LAMBDA)
    for step in range(MOST_STEPS):
        if np.linalg.norm(stepper.error(T)) <= SOLVE_TOLERANCE:
            return stepper.q, step
        stepper.step(T)
        stepper.q[3] = stepper.q[1] - stepper.q[2]
    return stepper.q, MOST_STEPS


def _solving(robot: RobotModel, task: Task) -> Solve:
    """Return a function that solves for the five joint positions of the arm or the coupled arm."""
    solver = IkSolver(
        robot,
        "dls",
        task=task,
        lambda_=CONSTANT_LAMBDA,
        position_tolerance=SOLVE_TOLERANCE,
        rotation_tolerance=1e-4,
        timeout=10.0,
        rotation_weight=20.0,
        max_iterations=MOST_STEPS,
    )

    def solve(T: Array, seed: Array) -> tuple[Array, int]:
        is_coupled = robot.n < len(seed)
        result = solver.solve(T, np.delete(seed, 3) if is_coupled else seed)
        return with_wrist(result.q) if is_coupled else result.q, result.iterations

    return solve


def _row(way: str, q: Array, T: Array, iterations: int) -> Row:
    """Return a row with the goal positions [ticks], and the tool's error before and after rounding.

    Args:
        way: Name of the method.
        q: Solution (5,) [rad].
        T: Target pose (4, 4) [cm].
        iterations: Number of iterations.
    """
    goal_positions = ticks(q)
    before, after = _deviation(q, T), _deviation(angles(goal_positions), T)
    sent = dict(zip(JOINTS, goal_positions.tolist(), strict=True))
    figures = {"before": before[0], "after": after[0], "lean": before[1], "tilt": after[1]}
    return {"table": "path", "way": way, "iterations": iterations, **sent, **figures}


def _deviation(q: Array, T: Array) -> tuple[float, float]:
    """Return the distance of the tool from its target T [mm], and the tilt of the tool [deg]."""
    reached = arm().fk(q)
    sine = float(np.linalg.norm(np.cross(reached[:3, 2], T[:3, 2])))
    angle = np.arctan2(sine, float(reached[:3, 2] @ T[:3, 2]))
    return 10.0 * float(np.linalg.norm(reached[:3, 3] - T[:3, 3])), float(np.degrees(angle))


def _joint_positions(q: Array) -> Array:
    """Return the positions (5, 3) [cm] of the base, three joints and the tip at q (5,) [rad]."""
    robot = arm()
    links = (robot.base, "joint2_link", "joint3_link", "joint4_link", robot.tip)
    return np.array([robot.link_pose(link, q)[:3, 3] for link in links])


# The code of Matos


class Form(NamedTuple):
    """Variant of the loop of Matos's code, with or without its differences from the text."""

    converts: bool = True  # whether each step is converted from degrees to radians
    rotation_rows: bool = True  # whether the task has rotation rows, with an error of zero


CODE_FORMS = {
    AS_WRITTEN: Form(),
    "without the conversion from degrees": Form(converts=False),
    "without the rows of rotation": Form(rotation_rows=False),
    "as the text": Form(converts=False, rotation_rows=False),
}
MAX_AXIS_ERROR = 1.0  # [cm] along each axis
# Iterations that are drawn, in addition to the last
SHOWN_ITERATIONS = (0, 1, 2, 5, 10, 20, 50, 100)


def his_loop(point: Array, seed: Array, form: Form = Form()) -> Array:  # noqa: B008  immutable
    """Run the loop of Matos's code; return the joint positions (k + 1, 5) [rad].

    Args:
        point: Target position (3,) [cm].
        seed: Initial joint positions (5,) [rad].
        form: Variant of the loop.

    Returns:
        The seed, and the joint positions after each of k iterations.
    """
    robot, task = arm(), Task() if form.rotation_rows else Task.position_only()
    stepper = Stepper(robot, "dls", seed, task=task, lambda_=CONSTANT_LAMBDA, rotation_weight=1.0)
    found = [stepper.q]
    is_near = False
    while not is_near and len(found) <= MOST_STEPS:
        T = robot.fk(stepper.q)  # a target with the current rotation has no rotation error
        T[:3, 3] = point
        e = stepper.error(T)
        is_near = bool((np.abs(e[:3]) < MAX_AXIS_ERROR).all())  # ends the loop after this step
        dq = stepper.step_for(e, stepper.jacobian(T), T)
        q = stepper.q + (np.radians(dq) if form.converts else dq)
        q[3] = q[1] - q[2]
        stepper.q = q
        found.append(q)
    return np.array(found)


def _as_written(T: Array, seed: Array) -> tuple[Array, int]:
    found = his_loop(T[:3, 3], seed)
    return found[-1], len(found) - 1


def run_his_code(report: Reproduction) -> None:
    """Move from corner to corner by each variant of Matos's code; record ticks per iteration."""
    robot, rows = arm(), report.series.setdefault("his code", [])
    moves = report.series.setdefault("gradual motion", [])
    for name, form in CODE_FORMS.items():
        row: Row = {"form": name}
        q = SERVO_HOME
        longest = farthest = 0.0
        for i, corner in enumerate(PATH_CORNERS, start=1):
            found = his_loop(corner, q, form)
            sent, q = ticks(found), found[-1]
            off = corner - robot.fk(found)[:, :3, 3]
            row[f"move {i}"] = len(found) - 1
            longest = max(longest, float(np.abs(np.diff(sent, axis=0)).max()))
            farthest = max(farthest, float(np.abs(off[-1]).max()))
            if name == AS_WRITTEN:
                moves.append({"move": i, "ticks": sent, "off": off})
        rows.append({**row, "longest": longest, "off": farthest})
    first = moves[0]
    steps = [i for i in SHOWN_ITERATIONS if i < len(first["ticks"]) - 1] + [len(first["ticks"]) - 1]
    report.series["first move"] = [
        {
            "iteration": i,
            **dict(zip(JOINTS, first["ticks"][i].tolist(), strict=True)),
            **dict(zip(("x", "y", "z"), first["off"][i].tolist(), strict=True)),
        }
        for i in steps
    ]


# Picture


JOINT_COLOURS = (BLUE, ORANGE, RED, GREEN, PURPLE)  # colours of the joints


def plot(report: Reproduction) -> Figure:
    """Draw the arm from the side, the ticks, their rounding error, and motions by Matos's code."""
    figure = new_figure(12.0, 8.0)
    (side, sent), (off, gradual) = figure.subplots(2, 2)
    way = next((way for way in reversed(POINTING_METHODS) if way in report.series), None)
    _draw_side(side, np.asarray(report.series.get(way or "", [])), np.array(report.series["path"]))
    rows = [row for row in report.rows if row.get("way") == way]
    for joint, color in zip(JOINTS, JOINT_COLOURS, strict=True):
        steps = [row["waypoint"] for row in rows]
        sent.step(steps, [row[joint] for row in rows], where="mid", color=color, label=joint)
    sent.set_title(f"goal positions [ticks], {way}", fontsize=9, loc="left")
    looks = ((BLUE, 3.5, 7), (ORANGE, 2.0, 4), (GREY, 0.7, 2))  # thin lines above thick ones
    for name, (color, lw, ms) in zip(POINTING_METHODS, looks, strict=True):
        rows = [row for row in report.rows if row.get("way") == name]
        steps = [row["waypoint"] for row in rows]
        off.plot(steps, [row["after"] for row in rows], "o-", ms=ms, lw=lw, color=color, label=name)
    off.set_title("distance after rounding [mm]", fontsize=9, loc="left")
    off.set_ylim(0.0)
    for axes in (sent, off):
        axes.set_xlabel("waypoint", fontsize=8)
        axes.legend(fontsize=7, frameon=False)
        plain(axes)
    _draw_gradual(gradual, report.series.get("gradual motion", []))
    heading(figure, "DASL arm, tool vertical, in ticks")
    return figure


def _draw_gradual(axes: Axes, moves: list[Row]) -> None:
    """Draw the motor ticks after every iteration of Matos's code, one move after the other."""
    begin = 0
    for move in moves:
        sent = np.asarray(move["ticks"])
        at = begin + np.arange(len(sent))
        for values, joint, color in zip(sent.T, JOINTS, JOINT_COLOURS, strict=True):
            axes.plot(at, values, color=color, label=joint if begin == 0 else "")
        begin = int(at[-1])
        axes.axvline(begin, color=PALE, linewidth=0.8, zorder=0)
    axes.set_title(f"{AS_WRITTEN}: ticks of every iteration", fontsize=9, loc="left")
    axes.set_xlabel("iteration, three moves", fontsize=8)
    if moves:
        axes.legend(fontsize=7, frameon=False, ncols=5)
    plain(axes)


def _draw_side(axes: Axes, chains: Array, path: Array) -> None:
    """Draw the arm and the path from the side: height over the distance from the waist's axis."""
    for i, chain in enumerate(chains):
        out = np.hypot(chain[:, 0], chain[:, 1])
        last = i + 1 == len(chains)
        axes.plot(
            out, chain[:, 2], "o-", ms=2.5, lw=2.4 if last else 0.9, color=BLUE if last else PALE
        )
    axes.plot(np.hypot(path[:, 0], path[:, 1]), path[:, 2], ".", ms=4, color=ORANGE)
    axes.set_aspect("equal")
    axes.set_title("height over distance from the waist [cm]", fontsize=9, loc="left")
    plain(axes)


_TICKS = tuple(Column(joint, f"{joint} [ticks]") for joint in JOINTS)
_OFF = (
    Column("before", "error [mm]", ".3f"),
    Column("after", "in ticks [mm]", ".2f"),
    Column("tilt", "tilt in ticks [deg]", ".2f"),
)
DASL = Experiment(
    what="dasl",
    source="Matos 2016",
    title="A 5-joint arm with its tool vertical, and the ticks for its servos",
    tables=(
        ResultTable(
            (Column("angle", "angle [deg]", is_name=True), Column("ticks", "ticks of 0.088 deg")),
            "The example of the text",
            {"table": "example"},
        ),
        ResultTable(
            (
                Column("form", "his code", is_name=True),
                *(Column(f"move {i}", f"move {i}: iterations") for i in (1, 2, 3)),
                Column("longest", "longest step [ticks]", ".0f"),
                Column("off", "farthest axis [cm]", ".2f"),
            ),
            "His code, from corner to corner of the path",
            series="his code",
        ),
        ResultTable(
            (
                Column("iteration", "iteration", is_name=True),
                *_TICKS,
                *(Column(axis, f"{axis} to go [cm]", ".2f") for axis in "xyz"),
            ),
            "His code as written: ticks of the first move, as they are sent one after the other",
            series="first move",
        ),
        ResultTable(
            (
                Column("way", "tool vertical", is_name=True),
                Column("iterations", "iterations, sum"),
                *_OFF,
            ),
            "Along the path: largest of all waypoints",
            series="ways",
        ),
        ResultTable(
            (
                Column("waypoint", "point", is_name=True),
                *_TICKS,
                Column("iterations", "iterations"),
                *_OFF,
            ),
            f"Along the path, {POINTING_METHODS[-1]}",
            {"table": "path", "way": POINTING_METHODS[-1]},
        ),
    ),
    run=run,
    plot=plot,
    samples=10,
    samples_are="waypoints",
    least_samples=2,
)
