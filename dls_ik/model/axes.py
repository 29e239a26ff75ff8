"""Joint axes that always meet in a point, such as a wrist's, or are always parallel."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

INSTANTS = 3  # random configurations at which it has to be so
NEAR = 1e-6  # [m] or sine of an angle

Run = tuple[int, ...]  # numbers of neighbouring joints


class Axes(NamedTuple):
    """What neighbouring revolute joints have in common."""

    meeting: tuple[Run, ...]  # in one point, three or more of them
    parallel: tuple[Run, ...]  # two or more


def joint_axes(robot: RobotModel) -> Axes:
    """Look at the axes of the first tip's chain at random configurations."""
    q = robot.random(np.random.default_rng(0), INSTANTS)
    J = robot.jacobian(q)[:, :6].swapaxes(1, 2)  # (b, n, 6)
    moments, directions = J[..., :3], J[..., 3:]
    points = np.cross(directions, moments)  # of each axis the one nearest to the tip
    turns = (np.abs(np.linalg.norm(directions, axis=2) - 1.0) < NEAR).all(axis=0)
    return Axes(
        _runs(turns, lambda run: _meets(directions[:, run], points[:, run]), 3),
        _runs(turns, lambda run: _is_parallel(directions[:, run]), 2),
    )


def _runs(turns: Any, holds: Callable[[list[int]], bool], least: int) -> tuple[Run, ...]:
    """The longest runs of joints that turn and of which something holds."""
    runs: list[Run] = []
    first = 0
    for after in range(1, len(turns) + 1):
        while first < after and not (turns[first:after].all() and holds([*range(first, after)])):
            first += 1
        run = tuple(range(first, after))
        if runs and runs[-1] == run[:-1]:
            runs[-1] = run
        elif len(run) >= 1 and not (runs and set(run) <= set(runs[-1])):
            runs.append(run)
    return tuple(run for run in runs if len(run) >= least)


def _is_parallel(directions: Array) -> bool:
    return float(np.abs(np.cross(directions, directions[:, :1])).max()) < NEAR


def _meets(directions: Array, points: Array) -> bool:
    """Whether lines (b, k) have a point in common that is one only, at each instant."""
    if directions.shape[1] < 2:
        return True
    for a, p in zip(directions, points, strict=True):
        across = np.eye(3) - a[:, :, None] * a[:, None]  # (k, 3, 3)
        normal, side = across.sum(axis=0), (across @ p[:, :, None]).sum(axis=0)[:, 0]
        if np.linalg.eigvalsh(normal)[0] < NEAR:
            return False
        middle = np.linalg.solve(normal, side)
        if np.abs(across @ middle - (across @ p[:, :, None])[:, :, 0]).max() > NEAR:
            return False
    return True
