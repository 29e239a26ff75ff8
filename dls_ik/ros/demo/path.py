"""The targets that are streamed: a gentle approach, then a figure of eight."""

from math import pi
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.ros.demo.poses import HOME

# Where the node's arm begins: drawn back and turned, away from limits and singularities.
READY = (-0.6, -0.2, 0.3, 2.3, -0.3, 0.2, 0.4)

# The eight lies in a plane above the table; no joint needs more than half of its top speed.
WIDTH, LENGTH = 0.1, 0.25  # [m] from its centre, along x and along y of the base
LAP = 5.0  # [s]

APPROACH_SPEED = 0.8  # [rad/s] of the joint that moves most
HOLD = 0.5  # [s] at rest before the eight
RUN_IN = 1.0  # [s] from rest to full speed, on the eight already


class Targets(NamedTuple):
    """Poses to send one after the other."""

    poses: Array  # (k, 4, 4) T_base_tip
    counted: int  # index of the first one that counts


def targets(robot: RobotModel, start: Array, rate: float, duration: float) -> Targets:
    """The approach from joint values (n,), the run-in, and the eight for a duration [s]."""
    before = [
        approach(robot, start, rate),
        np.repeat(robot.fk(HOME)[None], int(HOLD * rate), axis=0),
    ]
    times = np.arange(-RUN_IN, duration, 1.0 / rate)
    eight = figure_of_eight(robot.fk(HOME), times)
    poses = np.concatenate([*before, eight])
    return Targets(poses, len(poses) - round(duration * rate))


def approach(robot: RobotModel, start: Array, rate: float) -> Array:
    """Poses (k, 4, 4) on the straight way from joint values to HOME, as smooth as can be."""
    way = np.array(HOME) - start
    duration = 1.875 * np.abs(way).max() / APPROACH_SPEED  # 1.875: peak over mean of minimum jerk
    share = np.linspace(0.0, 1.0, 2 + int(duration * rate))
    smooth = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return robot.fk(start + smooth[:, None] * way)


def figure_of_eight(centre: Array, times: Array) -> Array:
    """Poses (k, 4, 4) that keep their orientation; at full speed from time 0 on [s]."""
    running = np.maximum(times, 0.0)
    run_in = np.minimum(times, 0.0) + RUN_IN
    phase = 2.0 * pi / LAP * (running + 0.5 * run_in**2 / RUN_IN)
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, 0, 3] += WIDTH * np.sin(2.0 * phase)
    poses[:, 1, 3] += LENGTH * np.sin(phase)
    return poses
