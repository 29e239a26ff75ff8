"""Resolved rates along a path, as in the simulations of Deo & Walker 1993, section 5.

The velocity asked for is x_dot_d + K_p (x_d - x), the feedback of their section 2.1.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.reproduce.report import Row
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

FEEDBACK = 10.0  # K_p [1/s]
DELTA = 5.0  # bound on the norm of the joint velocity [1/s]
TOLERANCE = 1e-2  # of the bound; it is kept to 1e-3


class Case(NamedTuple):
    """An arm, where it starts, and what of its tip follows the path."""

    robot: RobotModel
    start: Array  # (n,) [rad]
    task: Task


class Moment(NamedTuple):
    """Where the tip should be and how fast it should move."""

    T: Array  # (4, 4)
    x_dot: Array  # (r,) [m/s, rad/s]


class Motion(NamedTuple):
    """What came of a path of s steps."""

    q: Array  # (s, n) [rad]
    norm: Array  # (s,) of the joint velocity [1/s]
    deviation: Array  # (s,) norm of the error of the task
    searches: Array  # (s,) iterations for the damping factor, warm-started; 0: no damping
    anew: Array  # (s,) the same from nothing, where there was damping


Make = Callable[[Array], Stepper]


def maker(case: Case, method: str, options: dict[str, Any]) -> Make:
    """What makes a stepper of a method at some configuration."""
    return lambda q: Stepper(case.robot, method, q, task=case.task, rotation_weight=1.0, **options)


def follow(make: Make, start: Array, path: Sequence[Moment], dt: float) -> Motion:
    """Follow the path."""
    stepper, steps = make(start), []
    for moment in path:
        q, error = stepper.q, stepper.error(moment.T)
        x_dot = moment.x_dot + FEEDBACK * error
        q_dot = stepper.rate(x_dot, dt)
        anew = _searches_anew(make(q), x_dot, dt) if stepper.searches else 0
        norms = (np.linalg.norm(q_dot), np.linalg.norm(error))
        steps.append((q, *norms, stepper.searches, anew))
    return Motion(*(np.array(column) for column in zip(*steps, strict=True)))


def figures(method: str, motion: Motion) -> Row:
    """The columns that all these figures have."""
    damped = motion.searches > 0
    return {
        "method": method,
        "peak": float(motion.norm.max()),
        "over_percent": 100.0 * float(np.mean(motion.norm > DELTA * (1.0 + TOLERANCE))),
        "deviation": float(motion.deviation.max()),
        "damped_percent": 100.0 * float(damped.mean()),
        "searches": float(motion.searches[damped].mean()) if damped.any() else None,
        "searches_anew": float(motion.anew[damped].mean()) if damped.any() else None,
    }


def series(motion: Motion, dt: float) -> dict[str, Any]:
    """What the pictures draw."""
    t = dt * np.arange(len(motion.norm))
    return {"t": t, "q": motion.q, "norm": motion.norm, "deviation": motion.deviation}


def _searches_anew(stepper: Stepper, x_dot: Array, dt: float) -> int:
    stepper.rate(x_dot, dt)
    return stepper.searches
