# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Weighted damped least squares of Deo & Walker 1993: full weights (2), and task augmentation (19).

Full weight matrices give priority to a direction, bound the velocities of links instead of joints,
or make the result independent of units. Task augmentation adds a second task, here the angle of the
last link, to the task of the tip. The second task causes additional (artificial) singularities;
therefore the weight w of the second task and the damping lambda can depend on the distance from
singularities (Egeland et al. 1991). The paper prints no figures of either method; the tables test
the claims of its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import fading
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, heading, new_figure, plain
from dls_ik.reproduce.deo_walker_damping import (
    NO,
    PLANAR_LINKS,
    PLANAR_START,
    PLANAR_TASK,
    YES,
)
from dls_ik.reproduce.deo_walker_paths import (
    FEEDBACK,
    PLANAR_DURATION,
    PUMA_SPEED,
    PUMA_START,
    Method,
    PathPoint,
    PathResult,
    follow,
    rectangle,
)
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
from dls_ik.solver.plugins import MEMORY, StepState
from dls_ik.solver.published_steps import weighted_damped
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Full weights, (2): the rectangle of Figures 4 and 5

DAMPING_FACTOR = 0.01
DIAGONAL = np.array([1.0, 1.0]) / np.sqrt(2.0)
ACROSS = np.array([1.0, -1.0]) / np.sqrt(2.0)
ABSOLUTE = np.tril(np.ones((3, 3)))  # maps joint velocities to absolute velocities of the links
PRIORITY = np.eye(2) + 99.0 * np.outer(DIAGONAL, DIAGONAL)
FULL_WEIGHTS = {
    "I": (np.eye(2), DAMPING_FACTOR * np.eye(3)),
    "W1: diagonal first": (PRIORITY, DAMPING_FACTOR * np.eye(3)),
    "W2: velocities of links": (np.eye(2), DAMPING_FACTOR * ABSOLUTE.T @ ABSOLUTE),
}


def rectangle_row(name: str, steps: int) -> Row:
    """Follow the rectangle with the weight matrices FULL_WEIGHTS[name], and return the table row.

    The row has the largest velocity norms of joints and links [1/s], and the largest errors of the
    tip along and across the diagonal (1, 1) [m]. The path has `steps` points.
    """
    path = rectangle(steps)
    step = weighted_damped(*FULL_WEIGHTS[name])
    dt = PLANAR_DURATION / steps
    motion = follow(planar_robot(PLANAR_LINKS), PLANAR_TASK, step, PLANAR_START, path, dt)
    off = tip_deviation(motion.q, path)
    q_dot = np.diff(motion.q, axis=0) / dt
    return {
        "weights": name,
        "peak": float(motion.norm.max()),
        "peak_links": float(np.linalg.norm(q_dot @ ABSOLUTE.T, axis=1).max()),
        "off_diagonal": float(np.abs(off @ DIAGONAL).max()),
        "off_across": float(np.abs(off @ ACROSS).max()),
    }


def tip_deviation(q: Array, path: list[PathPoint]) -> Array:
    """Return the position errors of the tip (s, 2) [m], desired minus actual, at q (s, 3) [rad]."""
    desired = np.array([point.T[:2, 3] for point in path])
    return desired - planar_joints(PLANAR_LINKS, q)[:, -1]


# Units: metres and millimetres

MASS, TOOL_INERTIA = 2.0, 0.01  # [kg], [kg m^2] mass and inertia of the tool
JOINT_INERTIA = np.diag([1.0, 1.0, 0.5, 0.1, 0.1, 0.1])  # [kg m^2]
MILLIMETRES = 1e3  # number of millimetres in a metre


def units_row(name: str) -> Row:
    """Return a row with the norm of the joint velocity for lengths in metres and in millimetres.

    The PUMA moves with the velocity of Figure 6, with the damped least-squares step (2).

    Args:
        name: Name of the weights: PLAIN_WEIGHTS (identity matrices) or ENERGY_WEIGHTS (units of
            energy).
    """
    robot = RobotModel.from_name("puma560")
    J, x_dot = robot.jacobian(PUMA_START), np.array([0.0, -PUMA_SPEED, 0.0, 0.0, 0.0, 0.0])
    found = []
    for units in (1.0, MILLIMETRES):
        U = np.diag([units] * 3 + [1.0] * 3)
        W1, W2 = np.eye(6), DAMPING_FACTOR * np.eye(6)
        if name == ENERGY_WEIGHTS:  # mass and inertia of the tool, expressed in the unit of length
            W1 = np.diag([MASS / units**2] * 3 + [TOOL_INERTIA] * 3)
            W2 = DAMPING_FACTOR * JOINT_INERTIA
        state = StepState(PUMA_START, robot.lower, robot.upper, 0, np.zeros(MEMORY))
        found.append(np.asarray(weighted_damped(W1, W2)(U @ J, U @ x_dot, state)))
    metres, millimetres = found
    return {
        "weights": name,
        "metres": float(np.linalg.norm(metres)),
        "millimetres": float(np.linalg.norm(millimetres)),
        "change_percent": float(
            100.0 * np.linalg.norm(metres - millimetres) / np.linalg.norm(metres)
        ),
    }


PLAIN_WEIGHTS, ENERGY_WEIGHTS = "I", "energy"


# Task augmentation, (19): the tip in the plane, and the direction of the last link

ANGLE = np.pi / 2.0  # [rad] desired angle of the last link
# The last link cannot be at ANGLE while the tip is at FAR_POINT.
NEAR_POINT, FAR_POINT = np.array([1.1, 0.5]), np.array([1.75, 0.5])
DURATION = 4.0  # [s] time to FAR_POINT and back
AUGMENTED = Task("xy", "z")
# W_MIN: minimum weight of the angle. WEIGHT_EPSILON: the weight is 1 if the smallest singular value
# of the augmented Jacobian is larger than WEIGHT_EPSILON, and decreases below.
W_MIN, WEIGHT_EPSILON = 0.03, 0.3


def _by_distance(w_min: float, lambda_max: float) -> tuple[str, dict[str, Any]]:
    """Return the name and options of the method in which w and lambda depend on the Jacobian.

    Where the smallest singular value is below WEIGHT_EPSILON, the weight w of the angle decreases
    from 1 to `w_min`, and the damping lambda increases from 0 to `lambda_max`.
    """
    options = {"w_min": w_min, "lambda_max": lambda_max, "epsilon": WEIGHT_EPSILON}
    return "jd", {"policy": "accuracy", "direction": (0.0, 0.0, 1.0), **options}


BY_DISTANCE = "w and lambda by distance"
CONSTANT_LABEL = "constant w and lambda"
AUGMENTED_METHODS: dict[str, tuple[Task, Method]] = {
    "pseudoinverse": (AUGMENTED, ("jp", {})),
    "constant lambda": (AUGMENTED, ("jd", {"lambda_": 0.1})),
    "lambda by distance": (AUGMENTED, _by_distance(1.0, 0.1)),
    CONSTANT_LABEL: (Task("xy", "z", weights=(1.0, 1.0, W_MIN)), ("jd", {"lambda_": 0.3 * W_MIN})),
    BY_DISTANCE: (AUGMENTED, _by_distance(W_MIN, 0.3 * W_MIN)),
}


def there_and_back(steps: int) -> list[PathPoint]:
    """Return a path of `steps` points from NEAR_POINT to FAR_POINT and back.

    The desired angle of the last link is ANGLE everywhere.
    """
    t = np.arange(steps) * (2.0 * np.pi / steps)
    share, speed = 0.5 - 0.5 * np.cos(t), np.sin(t) * np.pi / DURATION
    path = []
    for s, v in zip(share, speed, strict=True):
        T = np.eye(4)
        T[:2, :2] = [[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]]
        T[:2, 3] = NEAR_POINT + s * (FAR_POINT - NEAR_POINT)
        path.append(PathPoint(T, np.array([*(v * (FAR_POINT - NEAR_POINT)), 0.0])))
    return path


def first_configuration() -> Array:
    """Return joint positions (3,) [rad] with the tip at NEAR_POINT and the last link at ANGLE."""
    a, b, c = PLANAR_LINKS
    wrist = NEAR_POINT - c * np.array([np.cos(ANGLE), np.sin(ANGLE)])
    bend = np.arccos((wrist @ wrist - a * a - b * b) / (2.0 * a * b))
    first = np.arctan2(wrist[1], wrist[0]) - np.arctan2(b * np.sin(bend), a + b * np.cos(bend))
    return np.array([first, bend, ANGLE - first - bend])


def augmented_row(name: str, motion: PathResult, path: list[PathPoint]) -> Row:
    """Return the row of a method that follows the augmented task.

    The row has the maximum errors of tip [m] and angle [deg], the final error of the angle [deg],
    and whether the tip stays on its path and the angle is restored at the end.

    Args:
        name: Name of the method.
        motion: Motion along the path.
        path: Desired path.
    """
    off = np.linalg.norm(tip_deviation(motion.q, path), axis=1)
    turned = np.degrees(np.abs(motion.q.sum(axis=1) - ANGLE))
    return {
        "way": name,
        "peak": float(motion.norm.max()),
        "off": float(off.max()),
        "turned": float(turned.max()),
        "turned_last": float(turned[-1]),
        "keeps": YES if off.max() < MAX_KEPT_DEVIATION else NO,
        "restores": YES if turned[-1] < MAX_RESTORED_ANGLE else NO,
    }


# [m] maximum error of a tip that stays on its path; [deg] maximum final error of a restored angle
MAX_KEPT_DEVIATION, MAX_RESTORED_ANGLE = 1e-2, 0.1
# Claims of the paper: whether the tip stays on its path, and whether the angle is restored
AUGMENTATION_CLAIMS: dict[str, tuple[str | None, str | None]] = {
    CONSTANT_LABEL: (YES, None),
    BY_DISTANCE: (YES, YES),
}


NOTES = [
    "Full weights: q_dot = (J^T W1 J + W2)^-1 J^T W1 x_dot, along the rectangle of Figures 4 and "
    "5. W1 gives the diagonal direction (1, 1) the weight 100: the tip deviates across the "
    "diagonal instead of along it. W2 weights the absolute velocities of the links instead of the "
    "joint velocities.",
    "Units: the velocity is that of Figure 6. Weights with units of energy are mass and inertia of "
    "a tool in W1, and inertias of the joints in W2. With them, lengths in millimetres instead of "
    "metres do not change the result, as section 2.1 says; with identity matrices (I) they do.",
    "Augmentation: the tip moves out to a point where the last link cannot keep its angle of 90 "
    "deg, and back. There the Jacobian of both tasks is singular, but the Jacobian of the tip "
    f"alone is not. On path: the error of the tip is at most {1e3 * MAX_KEPT_DEVIATION:g} mm at "
    f"any time; restored: the error of the angle is at most {MAX_RESTORED_ANGLE:g} deg at the end.",
    "By distance: where the smallest singular value s is below epsilon = "
    f"{WEIGHT_EPSILON:g}, lambda = "
    "(1 - (s / epsilon)^2) lambda_max and (w - 1)^2 = (1 - (s / epsilon)^2) "
    "(w_min - 1)^2; elsewhere lambda = "
    "0 and w = 1 (Chiaverini, Egeland & Kanestrom 1991). The "
    "text claims that w << 1 with "
    "lambda < w preserves the main task, and that varying both values "
    "avoids unnecessary weighting and "
    "damping.",
    f"The commanded velocity includes the feedback of section 2.1, with a gain of {FEEDBACK:g}/s.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Follow the augmented task, change units, and follow the rectangle with FULL_WEIGHTS."""
    given = {"lambda": DAMPING_FACTOR, "W1": PRIORITY, "W2": DAMPING_FACTOR * ABSOLUTE.T @ ABSOLUTE}
    path = there_and_back(report.samples)
    report.settings.update(
        {
            "links": PLANAR_LINKS,
            "full weights": given,
            "tool": f"{MASS:g} kg, {TOOL_INERTIA:g} kg m^2",
            "augmented": f"({NEAR_POINT[0]:g}, {NEAR_POINT[1]:g}) to ({FAR_POINT[0]:g}, "
            f"{FAR_POINT[1]:g}) and back, "
            f"{DURATION:g} s",
            "w_min": W_MIN,
            "epsilon": WEIGHT_EPSILON,
            "K_p": FEEDBACK,
        }
    )
    report.notes += NOTES
    report.series["path"] = np.array([point.T[:2, 3] for point in path])
    dt, start = DURATION / report.samples, first_configuration()
    for name in progress.track(list(AUGMENTED_METHODS), "augmentation"):
        task, method = AUGMENTED_METHODS[name]
        motion = follow(planar_robot(PLANAR_LINKS), task, method, start, path, dt)
        row = augmented_row(name, motion, path)
        claims = dict(
            zip(("keeps", "restores"), AUGMENTATION_CLAIMS.get(name, (None, None)), strict=True)
        )
        far = [key for key, claim in claims.items() if claim not in (None, row[key])]
        row |= {f"{key}_says": claim for key, claim in claims.items()}
        report.rows.append(marked(row, far))
        report.series[name] = {
            "t": dt * np.arange(report.samples),
            "q": motion.q,
            "off": np.linalg.norm(tip_deviation(motion.q, path), axis=1),
            "turned": np.degrees(motion.q.sum(axis=1) - ANGLE),
        }
    report.series["units"] = [units_row(name) for name in (PLAIN_WEIGHTS, ENERGY_WEIGHTS)]
    for name in progress.track(list(FULL_WEIGHTS), "rectangle"):
        found = report.series.setdefault("full weights", [])
        found.append(rectangle_row(name, report.samples))


# Picture

DRAWN_STYLES = {
    "constant lambda": (ORANGE, "-"),
    CONSTANT_LABEL: (GREY, "--"),
    BY_DISTANCE: (BLUE, "-"),
}
NUM_DRAWN_ARMS = 12  # number of drawn poses of the arm, out and back


def plot(report: Reproduction) -> Figure:
    """Draw the arm with w and lambda by distance, and the errors of both tasks over time."""
    figure = new_figure(12.0, 4.4)
    arm, off, turned = figure.subplots(1, 3)
    if BY_DISTANCE in report.series:
        q = np.asarray(report.series[BY_DISTANCE]["q"])
        chosen = np.linspace(0, len(q) // 2, NUM_DRAWN_ARMS).astype(int)
        colours = fading(np.linspace(0.0, 1.0, NUM_DRAWN_ARMS))
        draw_planar_arms(arm, planar_joints(PLANAR_LINKS, q[chosen]), colours)
    if "path" in report.series:
        arm.plot(*np.asarray(report.series["path"]).T, color=ORANGE, linewidth=3.0, alpha=0.7)
    for name, (color, dash) in DRAWN_STYLES.items():
        if name in report.series:
            data = report.series[name]
            line: dict[str, Any] = {"color": color, "linestyle": dash, "label": name}
            off.plot(data["t"], 1e3 * np.asarray(data["off"]), **line)
            turned.plot(data["t"], data["turned"], **line)
    arm.set_title(f"{BY_DISTANCE}, moving out", fontsize=10, loc="left")
    plain(off, "time [s]", "error of the tip [mm]")
    plain(turned, "time [s]", "error of the angle of the last link [deg]")
    handles, labels = off.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower right", ncols=3, frameon=False)
    heading(figure, "Task augmentation (19), Deo & Walker 1993")
    return figure


WEIGHTED = Experiment(
    what="weights",
    source="Deo & Walker 1993, (2) and (19)",
    title="Weighted damped least squares: full weight matrices, and task augmentation",
    tables=(
        ResultTable(
            (
                Column("way", "augmented task", is_name=True),
                Column("peak", "largest norm [1/s]", ".2f"),
                Column("off", "tip error [m]", ".4f"),
                Column("keeps", "on path", is_text=True),
                Column("keeps_says", "text says", is_text=True),
                Column("turned", "angle error [deg]", ".1f"),
                Column("turned_last", "at the end", ".3f"),
                Column("restores", "restored", is_text=True),
                Column("restores_says", "text says", is_text=True),
            ),
            "Task augmentation (19): the first task is the tip, the second the last link's angle",
        ),
        ResultTable(
            (
                Column("weights", "weights", is_name=True),
                Column("peak", "largest norm [1/s]", ".2f"),
                Column("peak_links", "of links [1/s]", ".2f"),
                Column("off_diagonal", "error along (1, 1) [m]", ".4f"),
                Column("off_across", "across [m]", ".4f"),
            ),
            "Full weight matrices (2) along the rectangle",
            series="full weights",
        ),
        ResultTable(
            (
                Column("weights", "weights", is_name=True),
                Column("metres", "norm, lengths in m [1/s]", ".4f"),
                Column("millimetres", "in mm", ".4f"),
                Column("change_percent", "change [%]", ".2g"),
            ),
            "Units of length: norm of the joint velocity of the PUMA",
            series="units",
        ),
    ),
    run=run,
    plot=plot,
    samples=640,
    samples_are="steps along a path",
    least_samples=256,
)
