# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Path constraints of planning requests, checked along a trajectory."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.ros.planning.setting import Setting
from dls_ik.ros.services.constraints import (
    REGION_TOLERANCE,
    JointInterval,
    LinkBound,
    orientation_bound,
    position_bound,
    read_interval,
)
from dls_ik.ros.services.request import count_constraints

# Goals have tolerances of approximately 1 mrad or 1 mm; constraints along the path that touch the
# goal must not fail because of them.
PATH_CONSTRAINT_TOLERANCE = 2e-3  # [rad or m]


class PathConstraints(NamedTuple):
    """Constraints that every configuration of a path must satisfy."""

    intervals: tuple[JointInterval, ...]
    bounds: tuple[LinkBound, ...]

    def __bool__(self) -> bool:
        """Return whether there are constraints."""
        return bool(self.intervals or self.bounds)

    def violated(self, robot: RobotModel, q: Array, setting: Setting) -> str:
        """Return the label of a constraint that q (n,) violates, or an empty text."""
        complete = robot.tree.values({**setting.context.values, **robot.named(q)})
        for name, lower, upper in self.intervals:
            if not lower - REGION_TOLERANCE <= complete[name] <= upper + REGION_TOLERANCE:
                return f"the joint constraint of {name!r}"
        for bound in self.bounds:
            T = robot.link_pose(bound.link, q, setting.context.values)
            if not bound.holds(T):
                return bound.label
        return ""

    def first_violation(self, setting: Setting, path: Array) -> tuple[int, str] | None:
        """Return the index of the first configuration (m, n) that violates a constraint, or None.

        Returns:
            Index, and the label of the constraint.
        """
        for i, q in enumerate(path):
            label = self.violated(setting.robot, q, setting)
            if label:
                return i, label
        return None


def read_path_constraints(given: Any, setting: Setting) -> PathConstraints:
    """Return the path constraints of a request.

    Raises:
        RequestError: If a constraint is not valid or not supported.
        FrameError: If a frame is unknown.
    """
    count_constraints(given)
    context, base, tree = setting.context, setting.robot.base, setting.robot.tree
    intervals = [read_interval(each, tree) for each in given.joint_constraints]
    bounds = [orientation_bound(each, context, base) for each in given.orientation_constraints]
    bounds += [position_bound(each, context, base) for each in given.position_constraints]
    return PathConstraints(
        tuple(each._replace(lower=each.lower - PATH_CONSTRAINT_TOLERANCE,
                            upper=each.upper + PATH_CONSTRAINT_TOLERANCE) for each in intervals),
        tuple(map(_widened, bounds)),
    )  # fmt: skip


def _widened(bound: LinkBound) -> LinkBound:
    """Return a constraint whose finite tolerances are larger by PATH_CONSTRAINT_TOLERANCE."""

    def wider(tolerance: Any) -> tuple[float, ...]:
        return tuple(np.asarray(tolerance, np.float64) + PATH_CONSTRAINT_TOLERANCE)

    regions = tuple(
        region._replace(
            task=replace(
                region.task,
                position_tolerance=wider(region.task.position_tolerance),
                rotation_tolerance=wider(region.task.rotation_tolerance),
            )
        )
        for region in bound.regions
    )
    return bound._replace(regions=regions)
