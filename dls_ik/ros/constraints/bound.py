"""A bound on a point of a link: to be in one of some regions, each a target and a task."""

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.rotations import quaternion_from_rotation
from dls_ik.solver.slack import is_bound
from dls_ik.solver.task import Task

NEAR = 1e-6  # [m or rad] beyond a region that counts as within it, as a solver's tolerances


class Region(NamedTuple):
    """Poses around a target that a task with slack is content with."""

    T_base_region: Array  # (4, 4)
    task: Task


class Bound(NamedTuple):
    """A constraint of a request on one link."""

    words: str  # which constraint it is, for messages
    link: str
    T_link_point: Array  # (4, 4)
    regions: tuple[Region, ...]  # one of them is enough; none: no bound at all
    is_orientation: bool

    def holds(self, T_base_link: Array) -> bool:
        """Whether a pose of the link is within it."""
        T = T_base_link @ self.T_link_point
        return not self.regions or any(is_within(region, T) for region in self.regions)


def is_within(region: Region, T_base_point: Array) -> bool:
    """Whether a pose (4, 4) is in a region whose axes are those of its target."""
    task = region.task
    R = region.T_base_region[:3, :3]
    if task.position:
        p = R.T @ (T_base_point[:3, 3] - region.T_base_region[:3, 3])
        if not _is_near(p, task):
            return False
    if task.rotation:
        angles = rotation_angles(R.T @ T_base_point[:3, :3], task.angles)
        slacks = zip(range(3, 6), task.rotation_slack, angles, strict=True)
        return all(not is_bound(i, s, task.angles) or abs(a) <= s + NEAR for i, s, a in slacks)
    return True


def _is_near(p: Array, task: Task) -> bool:
    """Whether a point (3,) [m] is in the box, ball or cylinder of a task."""
    slack = task.position_slack
    single = [i for i, axis in enumerate("xyz") if axis not in task.round]
    together = ["xyz".index(axis) for axis in task.round]
    if together and np.linalg.norm(p[together]) > slack[together[0]] + NEAR:
        return False
    return all(abs(p[i]) <= slack[i] + NEAR for i in single)


def rotation_angles(R: Array, angles: str) -> Array:
    """(3,) [rad] of a rotation: its rotation vector, or a, b, c of Rx(a) Ry(b) Rz(c)."""
    if angles == "euler":
        b = math.atan2(R[0, 2], math.hypot(R[0, 0], R[0, 1]))
        return np.array([math.atan2(-R[1, 2], R[2, 2]), b, math.atan2(-R[0, 1], R[0, 0])])
    x, y, z, w = quaternion_from_rotation(R)
    sine = math.hypot(x, y, z)
    return 2.0 * math.atan2(sine, w) / sine * np.array([x, y, z]) if sine else np.zeros(3)
