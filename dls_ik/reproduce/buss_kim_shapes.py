# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures 1 and 2 of Buss & Kim 2004: shapes, targets and methods of all their experiments.

Figure 1 shows a planar arm near a singularity; a table lists one step of each method to each of the
three targets of the text. Figure 2 shows the Y and the double-Y with their targets. Lengths have no
unit. The geometry is in urdf/y_shape.urdf and urdf/double_y.urdf; the paths of the targets and the
bounds on steps are taken from the authors' published code.
"""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model import RobotModel, share_file
from dls_ik.plot.arm import arm_points
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, RED, heading, new_figure, plain
from dls_ik.reproduce.experiment import Column, Experiment, Progress, Reproduction, ResultTable
from dls_ik.reproduce.tabaczynski import planar_joints, planar_robot
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEGREE = pi / 180.0

# Shapes and targets


class Shape(NamedTuple):
    """Tree-shaped robot with several effectors, and the path of each effector's target."""

    name: str
    file: str  # file in urdf/
    tips: tuple[str, ...]
    paths: Array  # (tips, 3, 3): [tip, axis] has c, a, n of the coordinate c + a sin(n T)
    damping: float  # damping constant of DLS
    clamped_damping: float  # damping constant of DLS'

    def robot(self) -> RobotModel:
        """Load the robot model of the shape from its URDF file; the joints have no limits."""
        return RobotModel.from_urdf(share_file("urdf", self.file), tip=self.tips)

    def targets(self, T: Array) -> Array:
        """Return the target poses (t, k, 4, 4) of the k tips for path parameters T (t,)."""
        poses = np.tile(np.eye(4), (len(T), len(self.tips), 1, 1))
        center, reach, rate = np.moveaxis(self.paths, 2, 0)
        poses[:, :, :3, 3] = center + reach * np.sin(rate * T[:, None, None])
        return poses


Y = Shape(
    "Y", "y_shape.urdf", ("E0", "E1"),
    np.array(
        [
            [(2.0, 1.5, 6.0), (1.2, 0.2, 7.0), (0.3, 0.2, 8.0)],
            [(-0.7, 0.4, 4.0), (0.8, 0.3, 4.0), (-0.2, 0.2, 3.0)],
        ]
    ),
    0.6, 0.6,
)  # fmt: skip
DOUBLE_Y = Shape(
    "double-Y", "double_y.urdf", ("E0", "E1", "E2", "E3"),
    np.array(
        [
            [(2.0, 3.0, 3.0), (0.5, 0.4, 7.0), (0.3, 1.4, 5.0)],
            [(0.5, 0.8, 4.0), (0.4, 0.6, 4.0), (-0.2, 2.0, 3.0)],
            [(-0.5, 1.6, 6.0), (0.6, 0.4, 7.0), (0.3, 1.0, 8.0)],
            [(-1.6, 1.6, 4.0), (0.3, 0.6, 4.0), (-0.2, 0.6, 3.0)],
        ]
    ),
    1.1, 0.7,
)  # fmt: skip


def tip_distances(error: Array) -> Array:
    """Return the distances (s, k) of k tips from their targets, given position errors (s, 3 k)."""
    return np.asarray(np.linalg.norm(error.reshape(len(error), -1, 3), axis=2))


# Methods

CODE_PUBLISHED, CODE_MENDED, CODE_TEXT = "as published", "mended", "as in the text"
# CODE_PUBLISHED adapts D_max by the increase of the distance in the last step, as the published
# code does, and like that code reads the wrong rows of the last error. CODE_MENDED reads the right
# rows. CODE_TEXT adapts D_max by the decrease of the distance.
CODES: dict[str, dict[str, Any]] = {
    CODE_PUBLISHED: {"bug_compatible": True},
    CODE_MENDED: {},
    CODE_TEXT: {"adaptive_by": "approach"},
}


def methods(code: str, shape: Shape = DOUBLE_Y) -> dict[str, tuple[str, dict[str, Any]]]:
    """Map each method name of section 5 to a method name and options of this package.

    Args:
        code: Rule that adapts the error clamp D_max, a key of CODES.
        shape: Shape whose damping constants are used.
    """
    clamp: dict[str, Any] = {"D_max": 0.4, "adaptive": True, **CODES[code]}
    sdls = {"gamma_max": 45 * DEGREE, **clamp}
    turn = {"largest_change": 45 * DEGREE}
    return {
        "SDLS": ("sdls+clamp", {**sdls, "soft": True}),
        "SDLS hard": ("sdls+clamp", sdls),
        "DLS": ("dls+max", {"lambda_": shape.damping, **turn}),
        "DLS 0.6": ("dls+max", {"lambda_": 0.6, **turn}),
        "DLS'": ("dls+clamp+max", {"lambda_": shape.clamped_damping, **turn, **clamp}),
        "DLS*": ("dls+clamp+max", {"lambda_": shape.damping, **turn, **clamp}),
        "J^T": ("jt+max", {"largest_change": 30 * DEGREE}),
        "pinv": ("tpinv+max", {"largest_change": 5 * DEGREE, "truncation": 0.01}),
    }


def start(robot: RobotModel, method: str, code: str, shape: Shape = DOUBLE_Y) -> Stepper:
    """Return a stepper (it makes single steps of a method) with all joints at zero.

    Args:
        robot: Robot of the shape.
        method: Key of the result of :func:`methods`, or name of a plug-in.
        code: Rule that adapts the error clamp D_max, a key of CODES.
        shape: Shape whose damping constants are used.
    """
    name, options = methods(code, shape).get(method, (method, {}))
    return Stepper(robot, name, np.zeros(robot.n), task=Task.position_only(), **options)


# Figures 1 and 2

ARM_LINKS, ARM_ANGLES = (1.0, 1.0), (-0.05, 0.1)  # nearly collinear; the paper prints no numbers
# relative to the tip: along the arm, across the arm, and very close along the arm
TARGET_OFFSETS = {
    "t1": (0.1, 0.0),
    "t1'": (-0.01, 0.3),
    "close": (0.0005, 0.0),
}
ONE_STEP: dict[str, tuple[str, dict[str, Any]]] = {
    "pinv": ("jp", {}),
    "DLS 0.6": ("dls", {"lambda_": 0.6}),
    "SDLS": ("sdls", {"gamma_max": pi / 4}),
}
DRAWN_INSTANT = 1.0  # parameter T of the target paths at which the targets are drawn
NOTES = [
    "Figure 1: the links have length 1 and angles of -0.05 and 0.1 rad; these values are ours, "
    "since the paper prints no numbers. The steps agree with the text: toward t1 the pseudoinverse "
    "turns joint a far counterclockwise and joint b far clockwise; toward t1' it turns both "
    "counterclockwise. SDLS damps the step toward t1 as much as DLS does, and the step toward t1' "
    "only a little. For the target very close to the tip, SDLS does not damp at all, while DLS "
    "hardly moves.",
    "Figure 2: both shapes in the zero position, and after SDLS has moved them toward the targets "
    f"at T = {DRAWN_INSTANT:g}; view along z. Lines are the paths of the targets.",
    "The double-Y has 25 joints in the published code; the paper speaks of 16 links.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Make one step of each method to each target of figure 1, and move the shapes of figure 2."""
    report.settings.update(
        {"figure 1": {"links": ARM_LINKS, "q": ARM_ANGLES, "targets": TARGET_OFFSETS}}
    )
    report.notes += NOTES
    robot, begin = planar_robot(ARM_LINKS), np.array(ARM_ANGLES)
    report.series["arm"] = planar_joints(ARM_LINKS, begin)
    for target, method in progress.track(
        [(t, m) for t in TARGET_OFFSETS for m in ONE_STEP], "figure 1"
    ):
        T = robot.fk(begin)
        T[:2, 3] += TARGET_OFFSETS[target]
        name, options = ONE_STEP[method]
        dq = Stepper(robot, name, begin, task=Task("xy", ""), **options).step(T)
        where = planar_joints(ARM_LINKS, begin + dq)
        row = {"target": target, "method": method, "a": float(dq[0]), "b": float(dq[1])}
        left = float(np.linalg.norm(T[:2, 3] - where[-1]))
        report.rows.append({**row, "left": left, "of": float(np.hypot(*TARGET_OFFSETS[target]))})
    for shape in progress.track((Y, DOUBLE_Y), "figure 2"):
        report.series[shape.name] = _shown(shape, report.samples)


def _shown(shape: Shape, steps: int) -> dict[str, Any]:
    """Return the data of a panel of figure 2, after `steps` SDLS steps toward the drawn targets.

    The keys are "zero" and "turned" (points (m, 3) of each branch before and after the steps),
    "targets" (k, 3), and "paths" (p, k, 3) of the targets.
    """
    robot, targets = shape.robot(), shape.targets(np.array([DRAWN_INSTANT]))
    q = start(robot, "SDLS", CODE_MENDED, shape).run(targets[0], steps).q[[0, -1]]
    branches = arm_points(robot, q)
    paths = shape.targets(np.linspace(0.0, 2.0 * pi, 721))[:, :, :3, 3]
    return {
        "zero": [branch[0] for branch in branches],
        "turned": [branch[1] for branch in branches],
        "targets": targets[0, :, :3, 3],
        "paths": paths,
    }


def plot(report: Reproduction) -> Figure:
    """Draw the arm of figure 1 after one step to two targets, and both shapes of figure 2."""
    figure = new_figure(11.0, 8.0)
    top, bottom = figure.subplots(2, 2, height_ratios=(1.0, 1.7))
    for axes, target in zip(top, ("t1", "t1'"), strict=True):
        _draw_steps(axes, report, target)
    for axes, shape in zip(bottom, (Y, DOUBLE_Y), strict=True):
        _draw_shape(axes, shape.name, report.series.get(shape.name))
    heading(figure, "Figures 1 and 2: an arm near a singularity, and the shapes")
    return figure


def _draw_steps(axes: Axes, report: Reproduction, target: str) -> None:
    """Draw the arm of figure 1 before and after one step of each method to a target."""
    rows = [row for row in report.rows if row["target"] == target]
    for row, color in zip(rows, (RED, ORANGE, BLUE), strict=False):
        moved = planar_joints(
            ARM_LINKS, np.array([ARM_ANGLES[0] + row["a"], ARM_ANGLES[1] + row["b"]])
        )
        axes.plot(*moved.T, color=color, marker="o", markersize=3, label=row["method"])
    arm = np.asarray(report.series.get("arm", np.empty((0, 2))))
    axes.plot(*arm.T, color=GREY, lw=3.5, marker="o", label="before")
    if len(arm):
        axes.plot(*(arm[-1] + TARGET_OFFSETS[target]), "o", color=RED, markersize=9)
        for name, place in zip(("a", "b", "e"), arm, strict=True):
            axes.annotate(name, place, (0, -15), textcoords="offset points", ha="center")
    axes.set_title(f"one step toward {target}", fontsize=10, loc="left")
    axes.set_aspect("equal", adjustable="datalim")
    plain(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def _draw_shape(axes: Axes, name: str, shown: dict[str, Any] | None) -> None:
    axes.set_title(
        f"{name}: zero position (pale), after SDLS steps (blue)", fontsize=10, loc="left"
    )
    axes.set_aspect("equal", adjustable="datalim")
    plain(axes, "x", "y")
    if shown is None:
        return
    for path in np.moveaxis(np.asarray(shown["paths"]), 1, 0):
        axes.plot(*path[:, :2].T, color=ORANGE, lw=0.7, alpha=0.6)
    for key, color in (("zero", PALE), ("turned", BLUE)):
        for branch in shown[key]:
            axes.plot(*np.asarray(branch)[1:, :2].T, color=color, lw=2.5, marker="o", markersize=4)
    axes.plot(*np.asarray(shown["targets"])[:, :2].T, "o", color=RED, markersize=9)


SHAPES = Experiment(
    what="shapes",
    source="Buss & Kim 2004, figures 1 and 2",
    title="Planar arm near a singularity; the Y and the double-Y with their targets",
    tables=(
        ResultTable(
            (
                Column("target", "target", is_name=True),
                Column("method", "method", is_name=True),
                Column("a", "change of joint a [rad]", "+.4f"),
                Column("b", "change of joint b [rad]", "+.4f"),
                Column("left", "distance after", ".4f"),
                Column("of", "before", ".4f"),
            ),
            "Figure 1: one step of each method toward each target",
        ),
    ),
    run=run,
    plot=plot,
    samples=200,
    samples_are="steps toward the targets of figure 2",
)
