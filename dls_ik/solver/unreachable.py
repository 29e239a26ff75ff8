# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Proofs that no configuration within the joint limits fulfils the tasks of all tips.

A proof compares the target pose of each tip with bounds on the poses that the tip can reach, see
:mod:`dls_ik.model.reach`. Only the components of the pose that the task of the tip selects are
compared, and the tolerances of the task and of the solver are added to the bounds.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import cache_folder
from dls_ik.core.reach_bounds import ReachBounds, rows_beyond_reach
from dls_ik.core.types import Array
from dls_ik.model.kept_files import read_kept, remove_oldest, write_kept
from dls_ik.model.pose_functionals import path_elements
from dls_ik.model.reach import FREE_ROTATION, Budget, build_reach
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.task import AXES, VECTOR_ERROR, Task, is_bound


class TaskRegion(NamedTuple):
    """Region around the target pose of a tip that encloses all poses that fulfil the task."""

    tip: int  # index of the tip
    pointing: int | None  # free rotation, as for build_reach
    position: float  # largest distance from the target position [length unit of the robot]
    rotation: float  # largest angle to the target rotation, or to the target's pointing axis [rad]


def regions(tasks: tuple[Task, ...], options: SolverOptions) -> tuple[TaskRegion, ...]:
    """Return the task regions of the tips; a tip is omitted if no proof is possible for its task.

    Args:
        tasks: Task of each tip.
        options: Solver options with the tolerances.
    """
    found = (_region(tip, task, options) for tip, task in enumerate(tasks))
    return tuple(each for each in found if min(each.position, each.rotation) < math.inf)


def _region(tip: int, task: Task, options: SolverOptions) -> TaskRegion:
    """Return the task region of a tip; a distance is infinite if it cannot be bounded.

    Args:
        tip: Index of the tip.
        task: Task of the tip.
        options: Solver options with the tolerances.
    """
    position = math.inf
    if task.position == AXES:
        tolerances = dict(zip(AXES, task.position_tolerance, strict=True))
        widths = [tolerances[axis] for axis in AXES if axis not in task.round[1:]]
        position = options.length_unit * (math.hypot(*widths) + options.position_tolerance)
    pointing, rotation = _rotation(task, options)
    return TaskRegion(tip, pointing, position, rotation)


def _rotation(task: Task, options: SolverOptions) -> tuple[int | None, float]:
    """Return the fields `pointing` and `rotation` [rad] of the task region of a task.

    `rotation` is infinite if the task leaves the rotation free or the angle cannot be bounded.
    """
    axes = [AXES.index(axis) for axis in task.rotation]
    bounded = all(is_bound(3 + k, task.rotation_tolerance[k], task.angles) for k in axes)
    if len(axes) < 2 or not bounded or options.rotation_error != VECTOR_ERROR:
        return FREE_ROTATION, math.inf
    tolerances = [task.rotation_tolerance[k] for k in axes]
    if task.angles == "euler":
        # The angle of a rotation is at most the sum of its Euler angles.
        angle = sum(tolerances) + math.sqrt(3.0) * options.rotation_tolerance
        return (None, angle) if len(axes) == len(AXES) else (FREE_ROTATION, math.inf)
    angle = math.hypot(*tolerances) + options.rotation_tolerance
    if len(axes) == len(AXES):
        return None, angle
    (pointing,) = {0, 1, 2} - {*axes}
    return pointing, angle


REACH_PREFIX = "reach."  # first characters of the names of files with bounds
MAX_KEPT_REACHES = 200  # maximum number of files with bounds, of 4 kB each
# Source files of this package whose code computes the bounds.
REACH_SOURCES = (
    "core/reach_bounds.py", "core/types.py", "model/joint.py", "model/pose_functionals.py",
    "model/reach.py", "model/rotations.py", "solver/unreachable.py",
)  # fmt: skip


@lru_cache(maxsize=256)  # a node has fewer planning groups, and requests fewer tasks
def reach_of(robot: RobotModel, tip: int = 0, pointing: int | None = None) -> ReachBounds:
    """Return bounds on the poses that a tip can reach.

    The first call for a robot takes up to a second. The bounds are cached in memory, and on disk in
    the folder of the compiled kernels.

    Args:
        robot: Robot with its full joint limits.
        tip: Index of the tip.
        pointing: Free rotation, as for :func:`dls_ik.model.reach.build_reach`.
    """
    folder, budget = reach_folder(), Budget()
    if folder is None:
        return build_reach(robot.chain, tip, pointing)
    path = os.path.join(folder, REACH_PREFIX + _path_digest(robot, tip, pointing)[:24])
    content = read_kept(path, REACH_SOURCES)
    if content is not None:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return ReachBounds(*(arrays[name] for name in ReachBounds._fields))
    reach = build_reach(robot.chain, tip, pointing, budget)
    if not budget.is_spent:  # incomplete bounds are not stored: each process must log them
        buffer = io.BytesIO()
        np.savez(buffer, **reach._asdict())
        write_kept(path, REACH_SOURCES, buffer.getvalue())
        remove_oldest(folder, REACH_PREFIX, MAX_KEPT_REACHES)
    return reach


def reach_folder() -> str | None:
    """Return the folder of the compiled kernels, which also stores the bounds; None without one."""
    return cache_folder(rows_beyond_reach)


def _path_digest(robot: RobotModel, tip: int, pointing: int | None) -> str:
    """Return a hexadecimal digest of the numbers from which the bounds of a tip are computed."""
    digest = hashlib.sha256(f"{pointing} {np.__version__}".encode())
    for values in path_elements(robot.chain, tip):
        digest.update(f"{values.shape}".encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def are_unreachable(
    robot: RobotModel, regions: tuple[TaskRegion, ...], Ts: Array
) -> NDArray[np.bool_]:
    """Return (b,) whether target poses are proven unreachable for at least one tip.

    False means that no proof was found; the pose may still be unreachable.

    Args:
        robot: Robot with its full joint limits.
        regions: Task regions of the tips, from :func:`regions`.
        Ts: (b, k, 4, 4) target poses of the k tips.
    """
    beyond, some = np.zeros((2, len(Ts)), np.bool_)
    for region in regions:
        poses = np.ascontiguousarray(Ts[:, region.tip])
        reach = reach_of(robot, region.tip, region.pointing)
        rows_beyond_reach(reach, poses, region.position, region.rotation, some)
        beyond |= some
    return beyond
