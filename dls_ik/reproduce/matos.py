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
from numpy.typing import NDArray

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
from dls_ik.servo.ticks import tick_scale
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
SERVOS = tick_scale(
    tuple(f"joint{i}" for i in range(1, 6)),
    (np.full(5, -np.inf), np.full(5, np.inf)),
    np.radians(TICK_ANGLES).tolist(),
)
SERVO_HOME = np.radians([0.0, 60.0, 90.0, -30.0, 0.0])
TOOL_DOWN = np.diag([1.0, -1.0, -1.0])


def arm() -> RobotModel:
    """Build the model of the arm with five independent joints; lengths are in [cm]."""
    return RobotModel.from_dh(DH_ROWS, name="dasl")


def coupled_arm() -> RobotModel:
    """Build the model of the arm with four variables, th1, th2, th3 and th5; lengths in [cm].

    Joint 4 is replaced by two joints, one mimics th2 and the other -th3, so th4 = th2 - th3.
    """
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
    """Return all joint positions (5,) [rad], given those of the coupled arm.

    `q` (4,) has th1, th2, th3 and th5 [rad]; the missing th4 is th2 - th3.
    """
    return np.array([q[0], q[1], q[2], q[1] - q[2], q[3]])


def ticks(q: Array) -> NDArray[np.int64]:
    """Return the goal positions (5,) of the servos [ticks] for joint positions (5,) [rad]."""
    return SERVOS.ticks(q)


def angles(goal_positions: NDArray[np.int64]) -> Array:
    """Return the joint positions (5,) [rad] for goal positions (5,) of the servos [ticks]."""
    return SERVOS.positions(goal_positions)


# Path

JOINTS = tuple(f"joint{i}" for i in range(1, 6))
POINTING_METHODS = ("set after each step", "coupled in the model", "pointing task")
AS_WRITTEN = "Matos's code as written"
CONSTANT_LAMBDA = 1.0  # [cm/rad]
SOLVE_TOLERANCE = 1e-3  # [cm]
MOST_STEPS = 1000
# [cm] corners of the path to the hole
PATH_CORNERS = np.array([[20.0, -12.0, 12.0], [26.0, 8.0, 10.0], [26.0, 8.0, 3.0]])
Solve = Callable[[Array, Array], tuple[Array, int]]  # maps T, seed to q (5,), iterations

SETTINGS = {
    "arm": "d1 9, a2 20, a3 18, d5 12 cm; alpha 90, 180, 0, -90, 0 deg",
    "path": "from (20, -12, 12) via (26, 8, 10) down to (26, 8, 3) cm; each waypoint is solved "
    "from the solution of the previous one",
    "method": f"dls, lambda = {CONSTANT_LAMBDA:g} cm/rad, until the error is below "
    f"{SOLVE_TOLERANCE:g} cm",
    "ticks": "0.088 deg (joints 1 to 3), 0.29 deg (joints 4 and 5), rounded to integers",
}
NOTES = [
    "The text that we have lacks Matos's table of Denavit-Hartenberg rows, so the link lengths are "
    "our assumption. The text names no unit; its lambda = 1 and its threshold of 1 cm fit lengths "
    "in cm.",
    "The text that we have lacks minus signs: 'th4 = th2 th3' may have been th4 = -th2 - th3. "
    "Which signs keep the tool vertical depends on the direction of the elbow axis; here it is "
    "th4 = th2 - th3.",
    "Matos's code differs from his text. It converts each step from degrees to radians, although "
    "the step is already in radians; so steps are 57 times shorter, in the same direction. It has "
    "three additional rows that constrain the rotation of the tool in each step to zero, while the "
    "text ignores the orientation. It stops after the first step that starts with an error below 1 "
    "cm along each axis. The text sends the joint angles of its '100 iterations' one after the "
    "other to the servos, for a gradual movement: a move has about 100 iterations because of the "
    "conversion, and two to five without it. The rotation rows change little.",
    "The paper prints only one figure, the ticks for 50 degrees. Here ticks are rounded, not "
    "truncated.",
    "'Set after each step' takes more steps than 'coupled in the model': setting the wrist angle "
    "after a step undoes a part of this step, while the coupled model has the coupling in the "
    "Jacobian. Neither needs a task row for the direction of the tool.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Solve for all waypoints with each method, then run the variants of Matos's code.

    The variants move from corner to corner of the path, without the waypoints between.
    """
    report.settings.update(SETTINGS)
    report.notes += NOTES
    report.printed.append({"table": "example", "angle": 50, "ticks": 568})
    fifty = int(ticks(np.full(5, np.radians(50.0)))[0])
    report.rows.append({"table": "example", "angle": 50, "ticks": fifty})
    coupled = _solving(coupled_arm(), Task.position_only())
    pointing = _solving(arm(), Task.pointing("z"))
    methods = dict(zip(POINTING_METHODS, (_overwrite, coupled, pointing), strict=True))
    methods[AS_WRITTEN] = _as_written
    points = waypoints(report.samples)
    report.series |= {"path": points, "home": _joint_positions(SERVO_HOME)}
    for method, solve in methods.items():
        q = SERVO_HOME
        for i, point in enumerate(progress.track(list(points), method), start=1):
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = TOOL_DOWN, point
            q, iterations = solve(T, q)
            report.rows.append({**_row(method, q, T, iterations), "waypoint": i})
            report.series.setdefault(method, []).append(_joint_positions(q))
        report.series.setdefault("ways", []).append(_summary(method, report.rows))
    run_his_code(report)


def _summary(method: str, rows: list[Row]) -> Row:
    """Return a row with the total iterations and the maximum errors of a method.

    `rows` are the rows of all waypoints and methods.
    """
    own = [row for row in rows if row.get("way") == method]
    largest = {key: max(row[key] for row in own) for key in ("before", "after", "tilt")}
    return {"way": method, "iterations": sum(row["iterations"] for row in own), **largest}


def waypoints(count: int) -> Array:
    """Return points (count, 3) [cm], evenly spaced along the path through PATH_CORNERS."""
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
    """Return a function that solves the inverse kinematics of the arm or the coupled arm.

    The function takes a target pose (4, 4) [cm] and initial joint positions (5,) [rad], and returns
    all joint positions (5,) [rad] and the number of iterations.
    """
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


def _row(method: str, q: Array, T: Array, iterations: int) -> Row:
    """Return a table row for one waypoint: goal positions of the servos, and errors of the tool.

    The goal positions are integers in the unit of the servos (ticks). The errors are computed for
    the solution, and again after the solution is rounded to ticks.

    Args:
        method: Name of the method that found the solution.
        q: Solution (5,), joint positions [rad].
        T: Target pose (4, 4) of the tool [cm].
        iterations: Number of iterations of the method.
    """
    goal_positions = ticks(q)
    before, after = _deviation(q, T), _deviation(angles(goal_positions), T)
    sent = dict(zip(JOINTS, goal_positions.tolist(), strict=True))
    figures = {"before": before[0], "after": after[0], "lean": before[1], "tilt": after[1]}
    return {"table": "path", "way": method, "iterations": iterations, **sent, **figures}


def _deviation(q: Array, T: Array) -> tuple[float, float]:
    """Return the distance of the tool from its target [mm], and the tilt of the tool [deg].

    The tilt is the angle between the z axes of the tool and of the target.

    Args:
        q: (5,) joint positions [rad].
        T: (4, 4) target pose [cm].
    """
    reached = arm().fk(q)
    sine = float(np.linalg.norm(np.cross(reached[:3, 2], T[:3, 2])))
    angle = np.arctan2(sine, float(reached[:3, 2] @ T[:3, 2]))
    return 10.0 * float(np.linalg.norm(reached[:3, 3] - T[:3, 3])), float(np.degrees(angle))


def _joint_positions(q: Array) -> Array:
    """Return the positions (5, 3) [cm] of base, joints 2 to 4 and tip at q (5,) [rad]."""
    robot = arm()
    links = (robot.base, "joint2_link", "joint3_link", "joint4_link", robot.tip)
    return np.array([robot.link_pose(link, q)[:3, 3] for link in links])


# The code of Matos


class Form(NamedTuple):
    """Variant of the loop of Matos's code; the defaults are the code as written."""

    converts: bool = True  # whether each step is converted from degrees to radians
    rotation_rows: bool = True  # whether the task also has rotation rows, with an error of zero


CODE_FORMS = {
    AS_WRITTEN: Form(),
    "without the conversion from degrees": Form(converts=False),
    "without the rotation rows": Form(rotation_rows=False),
    "as in the text": Form(converts=False, rotation_rows=False),
}
MAX_AXIS_ERROR = 1.0  # [cm] error along each axis below which the loop ends
# Iterations that are listed, in addition to the last one
SHOWN_ITERATIONS = (0, 1, 2, 5, 10, 20, 50, 100)


def his_loop(point: Array, seed: Array, form: Form = Form()) -> Array:  # noqa: B008  immutable
    """Run a variant of the loop of Matos's code toward a target position.

    Args:
        point: Target position (3,) [cm].
        seed: Initial joint positions (5,) [rad].
        form: Variant of the loop.

    Returns:
        Joint positions (k + 1, 5) [rad]: the seed, and those after each of k iterations.
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
    """Move from corner to corner of the path with each variant of Matos's code.

    Add a row with the number of iterations of each move for every variant, and the ticks of all
    iterations of the code as written.
    """
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
    last = next((name for name in reversed(POINTING_METHODS) if name in report.series), None)
    _draw_side(side, np.asarray(report.series.get(last or "", [])), np.array(report.series["path"]))
    rows = [row for row in report.rows if row.get("way") == last]
    for joint, color in zip(JOINTS, JOINT_COLOURS, strict=True):
        steps = [row["waypoint"] for row in rows]
        sent.step(steps, [row[joint] for row in rows], where="mid", color=color, label=joint)
    sent.set_title(f"goal positions of the servos [ticks], {last}", fontsize=9, loc="left")
    looks = ((BLUE, 3.5, 7), (ORANGE, 2.0, 4), (GREY, 0.7, 2))  # thin lines above thick ones
    for name, (color, lw, ms) in zip(POINTING_METHODS, looks, strict=True):
        rows = [row for row in report.rows if row.get("way") == name]
        steps = [row["waypoint"] for row in rows]
        off.plot(steps, [row["after"] for row in rows], "o-", ms=ms, lw=lw, color=color, label=name)
    off.set_title("distance from target after rounding to ticks [mm]", fontsize=9, loc="left")
    off.set_ylim(0.0)
    for axes in (sent, off):
        axes.set_xlabel("waypoint", fontsize=8)
        axes.legend(fontsize=7, frameon=False)
        plain(axes)
    _draw_gradual(gradual, report.series.get("gradual motion", []))
    heading(figure, "DASL arm with a vertical tool: servo positions in ticks")
    return figure


def _draw_gradual(axes: Axes, moves: list[Row]) -> None:
    """Draw the servo positions [ticks] over the iterations of all moves by Matos's code.

    A row of `moves` has the key "ticks" (k + 1, 5); the moves are drawn one after the other.
    """
    begin = 0
    for move in moves:
        sent = np.asarray(move["ticks"])
        at = begin + np.arange(len(sent))
        for values, joint, color in zip(sent.T, JOINTS, JOINT_COLOURS, strict=True):
            axes.plot(at, values, color=color, label=joint if begin == 0 else "")
        begin = int(at[-1])
        axes.axvline(begin, color=PALE, linewidth=0.8, zorder=0)
    axes.set_title(f"{AS_WRITTEN}: ticks after every iteration", fontsize=9, loc="left")
    axes.set_xlabel("iteration of the three moves", fontsize=8)
    if moves:
        axes.legend(fontsize=7, frameon=False, ncols=5)
    plain(axes)


def _draw_side(axes: Axes, chains: Array, path: Array) -> None:
    """Draw the arm and the path from the side: height over the distance from the waist axis [cm].

    Args:
        axes: Axes to draw in.
        chains: (k, 5, 3) joint positions of k configurations; the last one is emphasized.
        path: (w, 3) waypoints.
    """
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
    Column("after", "error, rounded [mm]", ".2f"),
    Column("tilt", "tilt, rounded [deg]", ".2f"),
)
DASL = Experiment(
    what="dasl",
    source="Matos 2016",
    title="5-joint arm with a vertical tool, and goal positions of its servos in ticks",
    tables=(
        ResultTable(
            (Column("angle", "angle [deg]", is_name=True), Column("ticks", "ticks of 0.088 deg")),
            "Example of the text: conversion of an angle to ticks",
            {"table": "example"},
        ),
        ResultTable(
            (
                Column("form", "code", is_name=True),
                *(Column(f"move {i}", f"move {i}: iterations") for i in (1, 2, 3)),
                Column("longest", "largest step [ticks]", ".0f"),
                Column("off", "largest axis error [cm]", ".2f"),
            ),
            "Variants of Matos's code: moves from corner to corner of the path",
            series="his code",
        ),
        ResultTable(
            (
                Column("iteration", "iteration", is_name=True),
                *_TICKS,
                *(Column(axis, f"{axis} error [cm]", ".2f") for axis in "xyz"),
            ),
            "Matos's code as written: ticks that are sent one after the other in the first move",
            series="first move",
        ),
        ResultTable(
            (
                Column("way", "method", is_name=True),
                Column("iterations", "iterations, sum"),
                *_OFF,
            ),
            "All waypoints of the path: sum of iterations, and largest errors",
            series="ways",
        ),
        ResultTable(
            (
                Column("waypoint", "point", is_name=True),
                *_TICKS,
                Column("iterations", "iterations"),
                *_OFF,
            ),
            f"Waypoints of the path, {POINTING_METHODS[-1]}",
            {"table": "path", "way": POINTING_METHODS[-1]},
        ),
    ),
    run=run,
    plot=plot,
    samples=10,
    samples_are="waypoints",
    least_samples=2,
)
