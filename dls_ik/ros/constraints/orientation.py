"""Orientation constraints of a request."""

from typing import Any

import numpy as np
from geometry_msgs.msg import Pose

from dls_ik.model.rigid import inverse
from dls_ik.ros.constraints.bound import Bound, Region
from dls_ik.ros.constraints.place import Place, invalid
from dls_ik.ros.conversions import matrix_from_pose
from dls_ik.solver.slack import is_bound
from dls_ik.solver.task import Task

ANGLES = ("euler", "vector")  # by the number of the parameterization


def orientation_bound(given: Any, place: Place) -> Bound:
    """What a ``moveit_msgs/OrientationConstraint`` asks for.

    Euler angles are those of the link against the orientation given. The rotation vector of the
    same difference is along the axes of the header's frame, as move_group has it.

    Raises:
        RequestError: an unknown link or frame, a quaternion or tolerances that are not valid.
    """
    words = f"orientation constraint of link {given.link_name[:80]!r}"
    link = place.checked_link(given.link_name, words)
    task = _task(given, words)
    T_base_given = place.pose(given.header, Pose(orientation=given.orientation), words)
    T_link_axes = np.eye(4)
    if task.angles == "vector":
        T_link_axes = inverse(matrix_from_pose(Pose(orientation=given.orientation)))
    region = Region(T_base_given @ T_link_axes, task)
    bounds = (is_bound(i + 3, slack, task.angles) for i, slack in enumerate(task.rotation_slack))
    regions = (region,) if any(bounds) else ()
    return Bound(words, link, T_link_axes, regions, is_orientation=True)


def _task(given: Any, words: str) -> Task:
    tolerances = tuple(getattr(given, f"absolute_{axis}_axis_tolerance") for axis in "xyz")
    if not all(tolerance >= 0.0 for tolerance in tolerances):
        raise invalid(f"{words}: tolerances are angles from 0 on [rad], not {tolerances}")
    if given.parameterization >= len(ANGLES):
        raise invalid(
            f"{words}: the parameterization is 0 (XYZ Euler angles) or 1 (rotation vector), not "
            f"{given.parameterization}"
        )
    angles = ANGLES[given.parameterization]
    return Task(position="", rotation_slack=tolerances, frame="target", angles=angles)
