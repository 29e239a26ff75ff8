# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Resolved acceleration and second-order steps, Deo & Walker 1993, sections 2.1 and 6.

The paper mentions both methods, and prints no figures. Resolved acceleration (Wampler & Leifer
1988): the tip of the planar arm moves to the boundary of the workspace and back, controlled by
joint velocities ("rates") or by joint accelerations. Second-order steps: the linear model of the
arm fails at the boundary of the workspace; the conclusions of the paper suggest second-order
information there.
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
    """Return the acceleration dJ/dt q_dot (6,) of the tip while all joint accelerations are zero.

    Args:
        J: (6, n) Jacobian in the base frame; its columns are ordered from base to tip, and no joint
            mimics another joint.
        q_dot: (n,) joint velocities [rad/s or m/s].
    """
    moved = J * q_dot
    before = np.cumsum(moved[3:], axis=1) - moved[3:]  # angular velocity due to preceding joints
    position = np.cross(2.0 * before + moved[3:], moved[:3], axis=0)
    rotation = np.cross(before, moved[3:], axis=0)
    return np.concatenate([position.sum(axis=1), rotation.sum(axis=1)])


def position_hessian(J: Array) -> Array:
    """Return the Hessian (3, n, n) of the tip position with respect to the joints.

    `J` (6, n) is the Jacobian in the base frame, with columns ordered from base to tip.
    """
    n = J.shape[1]
    low, high = np.minimum.outer(np.arange(n), np.arange(n)), np.maximum.outer(*[np.arange(n)] * 2)
    return np.asarray(np.cross(J[3:, low], J[:3, high], axis=0))


# Resolved acceleration: commanded x_dd = x_dd_d + K_v (x_dot_d - x_dot) + K_p (x_d - x)

DAMPING_FACTOR = 0.01
K_P, K_V = 100.0, 20.0  # [1/s^2], [1/s] critically damped, with both poles at -K_RATE
K_RATE = 10.0  # [1/s] feedback gain of velocity control
K_NULL = 5.0  # [1/s] gain k of the null-space motion v = -k q_dot
NEAR_X = 1.4  # [m] smallest x of the tip
GOALS = {"1 cm inside": 1.99, "5 cm outside": 2.05}  # [m] largest desired x; the arm is 2 m long
DURATION = 4.0  # [s] time to the goal and back
DIVERGED_SPEED = 1e3  # [1/s] a motion with a larger joint velocity has diverged
START_POSITIONS = np.radians([-50.0, 60.0, 40.0])


class JointControl(NamedTuple):
    """Control law for the joints of the planar arm."""

    accelerates: bool  # whether the law commands joint accelerations; otherwise joint velocities
    lambda_: float  # damping factor of the inverse J*; 0 is the pseudoinverse
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
    """Return the desired motion of the tip from NEAR_X to `far` and back at a time.

    Args:
        t: Time since the start [s].
        far: Largest x of the tip [m].

    Returns:
        Position (2,) [m], velocity (2,) [m/s] and acceleration (2,) [m/s^2].
    """
    turn = 2.0 * np.pi / DURATION
    half = np.array([0.5 * (far - NEAR_X), 0.0])
    position = np.array([NEAR_X, 0.0]) + half * (1.0 - np.cos(turn * t))
    return position, half * turn * np.sin(turn * t), half * turn**2 * np.cos(turn * t)


def start() -> Array:
    """Solve for joint positions (3,) [rad] of the planar arm with the tip at (NEAR_X, 0)."""
    T = np.eye(4)
    T[0, 3] = NEAR_X
    stepper = Stepper(planar_robot(PLANAR_LINKS), "jp", START_POSITIONS, task=PLANAR_TASK)
    return np.asarray(stepper.run(T, 50).q[-1])


MIN_GAIN_DIVISOR = 1e-100  # avoids 0 / 0 for a singular value of 0, whose gain is 0


class AccelerationResult(NamedTuple):
    """Motion out and back in s time steps; it ends early if the joint velocity diverges."""

    t: Array  # (s,) [s]
    velocity: Array  # (s,) norm of the joint velocity [1/s]
    acceleration: Array  # (s,) norm of the joint acceleration [1/s^2]
    off: Array  # (s,) position error of the tip [m]
    diverged: bool


def inverse(J: Array, lambda_: float) -> Array:
    """Return the damped inverse J* (n, r) = J^T (J J^T + lambda I)^-1 of J (r, n).

    With a damping factor `lambda_` of 0 the result is the pseudoinverse.
    """
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    gains = s / np.maximum(s * s + lambda_, MIN_GAIN_DIVISOR)
    return np.asarray(Vt.T @ (gains[:, None] * U.T))


def move(control: JointControl, far: float, steps: int) -> AccelerationResult:
    """Simulate the planar arm, whose tip follows :func:`reference`, in `steps` time steps.

    Args:
        control: Control law of the joints.
        far: Largest desired x of the tip [m].
        steps: Number of time steps in DURATION.
    """
    robot, dt = planar_robot(PLANAR_LINKS), DURATION / steps
    q, q_dot, found = start(), np.zeros(3), []
    for t in dt * np.arange(steps):
        x, x_dot, x_dd = reference(t, far)
        J = robot.jacobian(q)
        off, P = x - robot.fk(q)[:2, 3], inverse(J[:2], control.lambda_)
        if control.accelerates:
            asked = x_dd + K_V * (x_dot - J[:2] @ q_dot) + K_P * off
            rest = (np.eye(3) - P @ J[:2]) @ (control.k_null * q_dot)
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
    """Return a row with the maximum norms of a motion, and the state at the end.

    The row has the largest joint velocity norm [1/s], joint acceleration norm [1/s^2] and tip error
    [m], the final joint velocity norm [1/s], and whether the arm diverges, is moving or at rest.
    A motion that diverges has only the last entry.

    Args:
        goal: Key of GOALS.
        name: Key of JOINT_CONTROLS.
        motion: Motion by this control law.
    """
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


MIN_MOVING_SPEED = 0.02  # [1/s] joint velocity norm above which the arm counts as moving at the end


# Second-order steps

# [m] distance of each target from the base
TARGET_DISTANCES = {"in reach": 1.5, "at the boundary": 2.0, "out of reach": 2.2}
DIRECTION = 0.5  # [rad] angle between the x axis and the direction from the base to the targets
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
    "SDLS": ("sdls", {"gamma_max": MAX_STEP_NORM}),
}


def newton_step(J: Array, e: Array) -> Array:
    """Return Newton's step (n,) [rad] that minimizes |e|^2 / 2, at most MAX_STEP_NORM long.

    The Hessian of |e|^2 / 2 is J^T J - sum_i e_i H_i, where H_i is the Hessian of coordinate i of
    the tip. The linear model of damped least squares omits the sum. For a target in reach, e and
    thus the sum vanish at the target; for a target out of reach, the sum remains at the closest
    point. Eigenvalues of the Hessian are replaced by their absolute values, so that the step
    decreases the error.

    Args:
        J: (6, n) Jacobian.
        e: (3,) position error [m].
    """
    curvature = J[:3].T @ J[:3] - np.einsum("i,ijk->jk", e, position_hessian(J))
    size, V = np.linalg.eigh(curvature)
    size = np.maximum(np.abs(size), MIN_CURVATURE_SHARE * np.abs(size).max())
    dq = V @ ((V.T @ (J[:3].T @ e)) / size)
    return np.asarray(dq * min(1.0, MAX_STEP_NORM / max(float(np.linalg.norm(dq)), 1e-300)))


def halley_step(J: Array, e: Array) -> Array:
    """Return the step (n,) [rad] of Halley's method for the error e.

    The quadratic model of the arm is e = (J + H dq / 2) dq, with the Hessian H of the tip position.
    A first step dq is computed with the damped inverse of J, and inserted into the parentheses; the
    damped inverse of this matrix gives the result. Both inverses have the damping |e|^2 / 2.

    Args:
        J: (6, n) Jacobian.
        e: (3,) position error [m].
    """
    damping = 0.5 * float(e @ e)
    rows = slice(0, 2)  # the arm is planar
    dq = inverse(J[rows], damping) @ e[rows]
    bent = J[rows] + 0.5 * np.einsum("ijk,k->ij", position_hessian(J)[rows], dq)
    return inverse(bent, damping) @ e[rows]


def approach(name: str, target: Array, starts: Array) -> Array:
    """Make MAX_NUM_STEPS steps toward a target; return the distances (MAX_NUM_STEPS + 1, k) [m].

    Row i has the distances to the target after i steps, for k starts.

    Args:
        name: Kind of step: key of STEP_METHODS, NEWTON_LABEL or HALLEY_LABEL.
        target: (3,) target position [m].
        starts: (k, 3) start configurations [rad].
    """
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
    """Make steps toward a target from NUM_STARTS random starts; return a table row and a curve.

    Args:
        where: Key of TARGET_DISTANCES.
        name: Kind of step: key of STEP_METHODS, NEWTON_LABEL or HALLEY_LABEL.
        seed: Seed of the random starts.

    Returns:
        The row with numbers of iterations, and the distances (MAX_NUM_STEPS + 1,) of the first run
        from the target, minus the minimum possible distance [m].
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
    f"Resolved acceleration: the desired position of the tip moves from x = {NEAR_X:g} m outward "
    "along x and back. The joint accelerations are J* (x_dd - dJ/dt q_dot) with x_dd = x_dd_d + "
    "K_v (x_dot_d - x_dot) + K_p (x_d - x). Laws with v add the null-space acceleration "
    "v = -k q_dot of (23), which damps joint velocities in the null space and where J is damped. "
    "Damped laws use lambda = 0.01.",
    "If the desired motion goes outside the workspace, undamped accelerations diverge. Without v, "
    "the joints of the redundant arm keep moving when the tip is at rest, because nothing damps "
    "their self-motion: damped accelerations do not damp velocities.",
    f"Second-order steps: each kind of step is run from {NUM_STARTS} random starts with at most "
    f"{MAX_NUM_STEPS} iterations. A target is reached when the distance stays within "
    f"{REACHED_TOLERANCE:g} m of the minimum possible distance. Iterations are listed only if all "
    "starts reach the target.",
    "'Second order, of |e|^2' is Newton's step on the squared error, at most 0.5 rad long, with "
    "the Hessian J^T J - sum e_i H_i. 'Second order, J + H dq / 2' inserts the linear step into "
    "the quadratic model of the arm. Out of reach, only Newton's step converges quickly, because "
    "the error does not vanish there, and neither does the term that the linear model omits: with "
    "little damping the steps oscillate, with much damping they are very slow. At the boundary, "
    "where the solution is a double root, all steps without constant damping decrease the "
    "distance by a constant factor per step.",
]


def run(report: Reproduction, progress: Progress) -> None:
    """Run every control law with both goals, then every kind of step with every target."""
    report.settings.update(
        {
            "links": PLANAR_LINKS,
            "duration [s]": DURATION,
            "K_p, K_v": (K_P, K_V),
            "K_p of rates": K_RATE,
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
    steps, curves = report.series.setdefault("steps", []), report.series.setdefault("approach", {})
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
        curves[f"{where}, {name}"] = distance


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
    """Draw the joint velocity norms for both goals, and the distances for the target out of reach.

    Motions that diverge are not drawn.
    """
    figure = new_figure(13.0, 4.6)
    *moves, steps = figure.subplots(1, 3)
    for axes, goal in zip(moves, GOALS, strict=True):
        for name, color in CONTROL_COLOURS.items():
            motion = report.series.get(f"{goal}, {name}")
            if motion and not motion["diverged"]:
                axes.plot(motion["t"], motion["velocity"], color=color, label=name)
        axes.set_title(f"tip moves to {goal} the boundary", fontsize=10, loc="left")
        _legend(axes, "time [s]", "norm of the joint velocity [1/s]")
    moves[1].set_yscale("log")
    moves[1].set_ylim(1e-2, DIVERGED_SPEED)
    for name, color in LINE_COLOURS.items():
        curve = report.series.get("approach", {}).get(f"out of reach, {name}")
        if curve is not None:
            values = np.maximum(np.asarray(curve)[:NUM_SHOWN_ITERATIONS], 1e-16)
            steps.semilogy(values, color=color, label=name)
    steps.set_ylim(1e-15, 1e2)
    steps.set_title("target out of reach", fontsize=10, loc="left")
    _legend(steps, "iteration", "distance minus minimum distance [m]")
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
    title="Resolved acceleration compared with resolved rates, and second-order steps",
    tables=(
        ResultTable(
            (
                Column("goal", "goal of the tip", is_name=True),
                Column("way", "control", is_name=True),
                Column("velocity", "velocity [1/s]", ".2f"),
                Column("acceleration", "acceleration [1/s^2]", ".3g"),
                Column("off", "tip error [m]", ".4f"),
                Column("last", "final velocity [1/s]", ".3f"),
                Column("ends", "at the end", is_text=True),
            ),
            "Motion to the workspace boundary and back: largest norms",
        ),
        ResultTable(
            (
                Column("target", "target", is_name=True),
                Column("step", "kind of step", is_name=True),
                Column("reached", "reached [%]", ".0f"),
                Column("iterations", "iterations, median", ".1f"),
                Column("most", "largest"),
                Column("farthest", "largest final distance [mm]", ".2g"),
            ),
            "Steps of first and second order: iterations to reach the target",
            series="steps",
        ),
    ),
    run=run,
    plot=plot,
    samples=1000,
    samples_are="time steps out and back",
    least_samples=200,
)
