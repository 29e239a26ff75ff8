# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Beyond resolved rates, Deo & Walker 1993: resolved acceleration, and second-order steps.

The paper mentions both methods, and prints no figures. Resolved acceleration (Wampler & Leifer
1988): the tip of the planar arm moves to the boundary of its workspace and back, by joint
velocities or by joint accelerations. Second-order steps: the linear model of the arm fails at the
boundary of its workspace; the conclusions of the paper suggest second-order information there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, heading, new_figure, plain
from dls_ik.reproduce.deo_walker_damping import PLANAR_LINKS, PLANAR_TASK
from dls_ik.reproduce.experiment import (
    Column,
    Experiment,
    Progress,
    Reproduction,
    ResultTable,
    Row,
)
from dls_ik.reproduce.tabaczynski import planar_robot
from dls_ik.solver.stepper import Stepper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Second derivatives of an open chain, computed from its geometric Jacobian, which has three rows of
# position and then three rows of rotation.


def acceleration_bias(J: Array, q_dot: Array) -> Array:
    """Return the acceleration dJ/dt q_dot (6,) that the tip has at zero joint accelerations.

    Args:
        J: (6, n) Jacobian in the base frame; its columns are ordered from base to tip, and no joint
            mimics another joint.
        q_dot: (n,) joint velocities [rad/s or m/s].
    """
    moved = J * q_dot
    before = np.cumsum(moved[3:], axis=1) - moved[3:]  # rotation by the joints before each joint
    position = np.cross(2.0 * before + moved[3:], moved[:3], axis=0)
    rotation = np.cross(before, moved[3:], axis=0)
    return np.concatenate([position.sum(axis=1), rotation.sum(axis=1)])


def position_hessian(J: Array) -> Array:
    """Return the Hessian (3, n, n) of the position of the tip, given its Jacobian J (6, n)."""
    n = J.shape[1]
    low, high = np.minimum.outer(np.arange(n), np.arange(n)), np.maximum.outer(*[np.arange(n)] * 2)
    return np.asarray(np.cross(J[3:, low], J[:3, high], axis=0))


# Resolved acceleration: commanded x_dd = x_dd_d + K_v (x_dot_d - x_dot) + K_p (x_d - x)

DAMPING_FACTOR = 0.01
K_P, K_V = 100.0, 20.0  # [1/s^2], [1/s] critically damped; poles at -K_RATE
K_RATE = 10.0  # [1/s] feedback gain of velocity control
K_NULL = 5.0  # [1/s] gain k of the null-space motion v = -k q_dot
NEAR_X = 1.4  # [m] smallest x of the tip
GOALS = {"1 cm inside": 1.99, "5 cm outside": 2.05}  # [m] largest x of the tip; the arm is 2 m long
DURATION = 4.0  # [s] time to the goal and back
DIVERGED_SPEED = 1e3  # [1/s] a motion with a larger joint velocity has diverged
START_POSITIONS = np.radians([-50.0, 60.0, 40.0])


class JointControl(NamedTuple):
    """Control law by joint velocities or joint accelerations."""

    accelerates: bool
    lambda_: float
    k_null: float = 0.0  # [1/s] gain k of -(I - J* J) k q_dot, which damps joint velocities


JOINT_CONTROLS = {
    "rates, pseudoinverse": JointControl(accelerates=False, lambda_=0.0),
    "rates, damped": JointControl(accelerates=False, lambda_=DAMPING_FACTOR),
    "accelerations, pseudoinverse": JointControl(accelerates=True, lambda_=0.0),
    "accelerations, damped": JointControl(accelerates=True, lambda_=DAMPING_FACTOR),
    "accelerations, damped, v": JointControl(
        accelerates=True, lambda_=DAMPING_FACTOR, k_null=K_NULL
    ),
}


def reference(t: float, far: float) -> tuple[Array, Array, Array]:
    """Return desired position [m], velocity and acceleration (2,) of the tip at a time t [s].

    Args:
        t: Time since the start.
        far: Largest x of the tip [m].
    """
    turn = 2.0 * np.pi / DURATION
    way = np.array([0.5 * (far - NEAR_X), 0.0])
    position = np.array([NEAR_X, 0.0]) + way * (1.0 - np.cos(turn * t))
    return position, way * turn * np.sin(turn * t), way * turn**2 * np.cos(turn * t)


def start() -> Array:
    """Return joint positions (3,) [rad] at which the tip is at (NEAR_X, 0)."""
    T = np.eye(4)
    T[0, 3] = NEAR_X
    stepper = Stepper(planar_robot(PLANAR_LINKS), "jp", START_POSITIONS, task=PLANAR_TASK)
    return np.asarray(stepper.run(T, 50).q[-1])


MIN_GAIN_DIVISOR = 1e-100  # avoids 0 / 0 for a singular value of 0, whose gain is 0


class AccelerationResult(NamedTuple):
    """Motion in s steps; a motion that diverges ends early."""

    t: Array  # (s,) [s]
    velocity: Array  # (s,) norm of the joint velocity [1/s]
    acceleration: Array  # (s,) norm of the joint acceleration [1/s^2]
    off: Array  # (s,) position error of the tip [m]
    diverged: bool


def inverse(J: Array, lambda_: float) -> Array:
    """Return the damped inverse J* (n, r) of J (r, n); the pseudoinverse if lambda_ is 0."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    gains = s / np.maximum(s * s + lambda_, MIN_GAIN_DIVISOR)
    return np.asarray(Vt.T @ (gains[:, None] * U.T))


def move(way: JointControl, far: float, steps: int) -> AccelerationResult:
    """Move the tip along x from NEAR_X to `far` [m] and back by a control law."""
    robot, dt = planar_robot(PLANAR_LINKS), DURATION / steps
    q, q_dot, found = start(), np.zeros(3), []
    for t in dt * np.arange(steps):
        x, x_dot, x_dd = reference(t, far)
        J = robot.jacobian(q)
        off, P = x - robot.fk(q)[:2, 3], inverse(J[:2], way.lambda_)
        if way.accelerates:
            asked = x_dd + K_V * (x_dot - J[:2] @ q_dot) + K_P * off
            rest = (np.eye(3) - P @ J[:2]) @ (way.k_null * q_dot)
            q_dd = P @ (asked - acceleration_bias(J, q_dot)[:2]) - rest
            q, q_dot = q + dt * q_dot + 0.5 * dt * dt * q_dd, q_dot + dt * q_dd
        else:
            q_dd, q_dot = q_dot, P @ (x_dot + K_RATE * off)
            q, q_dd = q + dt * q_dot, (q_dot - q_dd) / dt
        norms = (np.linalg.norm(each) for each in (q_dot, q_dd, off))
        found.append((t, *norms))
        if found[-1][1] > DIVERGED_SPEED:
            break
    t, *columns = np.array(found).T
    velocity, acceleration, away = columns
    return AccelerationResult(
        t, velocity, acceleration, away, diverged=bool(velocity[-1] > DIVERGED_SPEED)
    )


def motion_row(goal: str, name: str, motion: AccelerationResult) -> Row:
    """Return a row with the maximum velocity, acceleration and error, and the final velocity."""
    row: Row = {"goal": goal, "way": name, "ends": "diverges" if motion.diverged else "at rest"}
    if motion.diverged:
        return row
    if motion.velocity[-1] > MIN_MOVING_SPEED:
        row["ends"] = "moving"
    return row | {
        "velocity": float(motion.velocity.max()),
        "acceleration": float(motion.acceleration[1:].max()),
        "off": float(motion.off.max()),
        "last": float(motion.velocity[-1]),
    }


MIN_MOVING_SPEED = 0.02  # [1/s] joint velocity above which the arm still moves at the end


# Second-order steps

# [m] distance of each target from the base
TARGET_DISTANCES = {"in reach": 1.5, "at the boundary": 2.0, "out of reach": 2.2}
DIRECTION = 0.5  # [rad] direction of the targets
NUM_STARTS = 20  # number of random starts
MAX_NUM_STEPS = 300  # maximum number of iterations
REACHED_TOLERANCE = 1e-9  # [m] distance above the minimum at which a target counts as reached
MAX_STEP_NORM = 0.5  # [rad] maximum norm of a step
MIN_CURVATURE_SHARE = 1e-9  # minimum curvature, relative to the largest one
NEWTON_LABEL, HALLEY_LABEL = "second order, of |e|^2", "second order, J + H dq / 2"
STEP_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "pseudoinverse": ("jp", {}),
    "damped, 0.1": ("dls", {"lambda_": 0.1}),
    "damped, 0.6": ("dls", {"lambda_": 0.6}),
    "error damping": ("ed", {}),
    "SDLS": ("sdls", {}),
}


def newton_step(J: Array, e: Array) -> Array:
    """Return Newton's step (n,) for |e|^2 / 2, whose Hessian is J^T J - sum_i e_i H_i.

    H_i is the Hessian of coordinate i of the tip. The linear model omits the sum. At a target in
    reach e vanishes, and with it the sum; at the closest point to a target out of reach it does
    not. Eigenvalues of the Hessian are replaced by their absolute values, so that the step
    decreases the error.

    Args:
        J: (6, n) Jacobian.
        e: (3,) position error.
    """
    curvature = J[:3].T @ J[:3] - np.einsum("i,ijk->jk", e, position_hessian(J))
    size, V = np.linalg.eigh(curvature)
    size = np.maximum(np.abs(size), MIN_CURVATURE_SHARE * np.abs(size).max())
    dq = V @ ((V.T @ (J[:3].T @ e)) / size)
    return np.asarray(dq * min(1.0, MAX_STEP_NORM / max(float(np.linalg.norm(dq)), 1e-300)))


def halley_step(J: Array, e: Array) -> Array:
    """Return the step (n,) that the damped inverse of J + H dq / 2 gives for the error e.

    The step dq is that of the damped inverse of J. The quadratic model e = J dq + dq^T H dq / 2
    becomes linear if this dq is inserted once. Both inverses have the damping |e|^2 / 2.

    Args:
        J: (6, n) Jacobian.
        e: (3,) position error.
    """
    damping = 0.5 * float(e @ e)
    rows = slice(0, 2)  # the arm is planar
    dq = inverse(J[rows], damping) @ e[rows]
    bent = J[rows] + 0.5 * np.einsum("ijk,k->ij", position_hessian(J)[rows], dq)
    return inverse(bent, damping) @ e[rows]


def approach(name: str, target: Array, starts: Array) -> Array:
    """Return the distance (MAX_NUM_STEPS + 1, k) to a target (3,) after each step, for k starts."""
    robot = planar_robot(PLANAR_LINKS)
    T = np.eye(4)
    T[:3, 3] = target
    if name in STEP_METHODS:
        method, options = STEP_METHODS[name]
        steppers = [Stepper(robot, method, q, task=PLANAR_TASK, **options) for q in starts]
        return np.array(
            [np.linalg.norm(each.run(T, MAX_NUM_STEPS).error, axis=1) for each in steppers]
        ).T
    step = newton_step if name == NEWTON_LABEL else halley_step
    qs, found = starts, []
    for _ in range(MAX_NUM_STEPS + 1):
        e = target - robot.fk(qs)[:, :3, 3]
        found.append(np.linalg.norm(e, axis=1))
        J = robot.jacobian(qs)
        qs = qs + np.array([step(*pair) for pair in zip(J, e, strict=True)])
    return np.array(found)


def steps_row(where: str, name: str, seed: int) -> tuple[Row, Array]:
    """Return a row with numbers of iterations, and the distance at each step of the first run.

    Args:
        where: Key of TARGET_DISTANCES.
        name: Name of the kind of step.
        seed: Seed of the random starts.

    Returns:
        The row, and the distance (MAX_NUM_STEPS + 1,) above the minimum distance [m].
    """
    away = TARGET_DISTANCES[where]
    target = away * np.array([np.cos(DIRECTION), np.sin(DIRECTION), 0.0])
    starts = np.random.default_rng(seed).uniform(-np.pi, np.pi, (NUM_STARTS, 3))
    beyond = approach(name, target, starts) - max(0.0, away - sum(PLANAR_LINKS))
    far = beyond > REACHED_TOLERANCE
    counts = np.where(far.any(axis=0), len(far) - np.argmax(far[::-1], axis=0), 0)
    reached = counts < len(far)
    row: Row = {
        "target": where,
        "step": name,
        "reached": 100.0 * float(reached.mean()),
        "iterations": float(np.median(counts)) if reached.all() else None,
        "most": int(counts.max()) if reached.all() else None,
        "farthest": None if reached.all() else 1e3 * float(beyond[-1].max()),
    }
    return row, beyond[:, 0]


NOTES = [
    f"Resolved acceleration: the tip of the planar arm goes from {NEAR_X:g} m out along x and "
    "back. Joint accelerations J* (x_dd - dJ/dt q_dot) follow x_dd = x_dd_d + K_v (x_d_d - x_d) "
    "+ K_p (x_d - x); with v = -k q_dot as in (23), velocities are damped in the null space and "
    "where J is damped. Damped: lambda = 0.01.",
    "Outside, undamped accelerations diverge. Without v, joints of the redundant arm keep moving "
    "when the tip is at rest, since nothing takes up their self-motion: damped accelerations do "
    "not damp velocities.",
    f"Second-order steps: from {NUM_STARTS} random starts, at most {MAX_NUM_STEPS} iterations; "
    "reached: within "
    f"{REACHED_TOLERANCE:g} m of the least distance for good. Iterations: where all "
    "starts reach it.",
    "Of |e|^2: Newton's step on the squared error, of at most 0.5 rad, with the curvature J^T J - "
    "sum e_i H_i. J + H dq / 2: the linear step put into the quadratic model. Out of reach only "
    "the first converges quickly, since the error, and with it the term that the linear model "
    "leaves out, does not vanish: light damping sways, heavy damping creeps. At the boundary, a "
    "double root, steps without constant damping all converge by a constant factor.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Move to both goals with every control law, then make all kinds of steps to every target."""
    report.settings.update(
        {
            "links": PLANAR_LINKS,
            "there and back [s]": DURATION,
            "K_p, K_v": (K_P, K_V),
            "K of rates": K_RATE,
            "k of v": K_NULL,
            "lambda": DAMPING_FACTOR,
            "targets [m]": TARGET_DISTANCES,
            "starts": NUM_STARTS,
        }
    )
    report.notes += NOTES
    pairs = [(goal, name) for goal in GOALS for name in JOINT_CONTROLS]
    for goal, name in progress.track(pairs, "accelerations"):
        motion = move(JOINT_CONTROLS[name], GOALS[goal], report.samples)
        report.rows.append(motion_row(goal, name, motion))
        report.series[f"{goal}, {name}"] = motion._asdict()
    steps, ways = report.series.setdefault("steps", []), report.series.setdefault("approach", {})
    for where, name in progress.track(
        [
            (where, name)
            for where in TARGET_DISTANCES
            for name in (*STEP_METHODS, HALLEY_LABEL, NEWTON_LABEL)
        ],
        "steps",
    ):
        row, distance = steps_row(where, name, report.seed)
        steps.append(row)
        ways[f"{where}, {name}"] = distance


# Picture

CONTROL_COLOURS = {
    "rates, pseudoinverse": GREY,
    "rates, damped": BLUE,
    "accelerations, pseudoinverse": RED,
    "accelerations, damped": ORANGE,
    "accelerations, damped, v": GREEN,
}
LINE_COLOURS = {
    "pseudoinverse": GREY,
    "damped, 0.1": ORANGE,
    "damped, 0.6": RED,
    "SDLS": PURPLE,
    HALLEY_LABEL: GREEN,
    NEWTON_LABEL: BLUE,
}
NUM_SHOWN_ITERATIONS = 100  # iterations that are drawn


def plot(report: Reproduction) -> Figure:
    """Draw the joint velocities of the motions to both goals, and the distance over iterations."""
    figure = new_figure(13.0, 4.6)
    *moves, steps = figure.subplots(1, 3)
    for axes, goal in zip(moves, GOALS, strict=True):
        for name, color in CONTROL_COLOURS.items():
            motion = report.series.get(f"{goal}, {name}")
            if motion and not motion["diverged"]:
                axes.plot(motion["t"], motion["velocity"], color=color, label=name)
        axes.set_title(f"tip to {goal} of the boundary", fontsize=10, loc="left")
        _legend(axes, "time [s]", "norm of the joint velocity [1/s]")
    moves[1].set_yscale("log")
    moves[1].set_ylim(1e-2, DIVERGED_SPEED)
    for name, color in LINE_COLOURS.items():
        way = report.series.get("approach", {}).get(f"out of reach, {name}")
        if way is not None:
            values = np.maximum(np.asarray(way)[:NUM_SHOWN_ITERATIONS], 1e-16)
            steps.semilogy(values, color=color, label=name)
    steps.set_ylim(1e-15, 1e2)
    steps.set_title("target out of reach", fontsize=10, loc="left")
    _legend(steps, "iteration", "beyond the least distance [m]")
    if steps.lines:
        steps.legend(fontsize=7, frameon=False, loc="lower right")
    heading(figure, "Resolved acceleration and second-order steps")
    return figure


def _legend(axes: Axes, x: str, y: str) -> None:
    if axes.lines:
        axes.legend(fontsize=7, frameon=False)
    plain(axes, x, y)


ACCELERATIONS = Experiment(
    what="accelerations",
    source="Deo & Walker 1993, sections 2.1 and 6",
    title="Resolved acceleration beside resolved rates, and second-order steps at the boundary",
    tables=(
        ResultTable(
            (
                Column("goal", "tip goes to", is_name=True),
                Column("way", "joints by", is_name=True),
                Column("velocity", "velocity [1/s]", ".2f"),
                Column("acceleration", "acceleration [1/s^2]", ".3g"),
                Column("off", "tip off [m]", ".4f"),
                Column("last", "velocity at the end [1/s]", ".3f"),
                Column("ends", "ends", is_text=True),
            ),
            "Resolved rates and resolved acceleration to the boundary and back, largest norms",
        ),
        ResultTable(
            (
                Column("target", "target", is_name=True),
                Column("step", "steps", is_name=True),
                Column("reached", "reached [%]", ".0f"),
                Column("iterations", "iterations, median", ".1f"),
                Column("most", "most"),
                Column("farthest", "farthest at last [mm]", ".2g"),
            ),
            "Steps of first and of second order",
            series="steps",
        ),
    ),
    run=run,
    plot=plot,
    samples=1000,
    samples_are="steps there and back",
    least_samples=200,
)
