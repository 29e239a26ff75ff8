"""Into a joint limit: poses that one joint alone would have to pass its limit for."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.solver import IkSolver
from dls_ik.viewer.presets.preset import Preset
from dls_ik.viewer.start import comfortable

POSES = 61
BEYOND = (0.35, 0.22, 0.12)  # of its range, past the limit: as far as the others make up for it
ATTEMPTS = 10
NEAR = 2.0  # [rad or m] that a joint may have to go: a solution farther off is another posture
WATCH = (
    "joint {joint} comes to its limit (red in the bars) and stops there; {rest}: A does not know "
    "of limits and is just cut off, B (CTP) holds the joint and moves the others instead."
)
REDUNDANT = "the other joints could make up for it"
NOT_REDUNDANT = "the others cannot quite make up for it"


class _Case(NamedTuple):
    joint: int
    Ts: Array  # (POSES, 4, 4)
    is_reached: bool  # by the others
    travel: float  # [m] of the tip


def into_a_limit(robot: RobotModel) -> Preset | None:
    """For the joint that moves the tip most, of those that others make up for, if there are any.

    None for a robot without limits.
    """
    q = comfortable(robot)
    limited = [int(j) for j in np.flatnonzero(robot.limited) if robot.upper[j] > robot.lower[j]]
    if not limited:
        return None
    solver = IkSolver(robot, max_restarts=ATTEMPTS, timeout=0.1)
    cases = [_case(robot, solver, q, j, past) for j in limited for past in BEYOND]
    best = max(cases, key=lambda case: (case.is_reached, case.travel))
    rest = REDUNDANT if best.is_reached else NOT_REDUNDANT
    watch = WATCH.format(joint=robot.joint_names[best.joint], rest=rest)
    return Preset("Into a joint limit", watch, ("jp", "ctp+sd+svf"), q, best.Ts, 4.0)


def _case(robot: RobotModel, solver: IkSolver, q: Array, j: int, past: float) -> _Case:
    Ts = _way(robot, q, j, past)
    result = solver.solve(Ts[-1], seed=q)
    is_reached = result.success and float(np.abs(result.q - q).max()) < NEAR
    return _Case(j, Ts, is_reached, float(np.linalg.norm(Ts[-1, :3, 3] - Ts[0, :3, 3])))


def _way(robot: RobotModel, q: Array, j: int, past: float) -> Array:
    """(POSES, 4, 4) while joint j goes to the limit next to it, and past it."""
    lower, upper = float(robot.lower[j]), float(robot.upper[j])
    width = upper - lower
    is_lower = q[j] - lower < upper - q[j]
    end = lower - past * width if is_lower else upper + past * width
    qs = np.repeat(q[None], POSES, axis=0)
    qs[:, j] = np.linspace(q[j], end, POSES)
    return robot.fk(qs)
