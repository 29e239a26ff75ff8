"""Joint constraints of a request: intervals that narrow limits, or are checked."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.se3 import FARTHEST
from dls_ik.core.types import Array
from dls_ik.errors import LimitsError
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.ros.constraints.bounds import invalid
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.services.state import driven_joints
from dls_ik.text import listing, quoted

TURN = 2.0 * math.pi


class Interval(NamedTuple):
    """Where a joint is to be [rad or m]."""

    joint: str
    lower: float
    upper: float


def checked_interval(given: Any, tree: Tree) -> Interval:
    """What a ``moveit_msgs/JointConstraint`` asks for.

    Raises:
        RequestError: an unknown joint, or numbers that are no interval.
    """
    if given.joint_name not in tree.mimic_of:
        names = listing(driven_joints(tree))
        raise invalid(
            f"joint constraint: unknown joint {quoted(given.joint_name)}; joints: {names}"
        )
    if not abs(given.position) <= FARTHEST:
        raise invalid(
            f"joint constraint of {given.joint_name!r}: the position {given.position} is not "
            f"finite, or beyond {FARTHEST:g}"
        )
    tolerances = (given.tolerance_below, given.tolerance_above)
    if not all(tolerance >= 0.0 for tolerance in tolerances):
        raise invalid(
            f"joint constraint of {given.joint_name!r}: tolerances (below, above) are numbers from "
            f"0 on, not {tolerances}"
        )
    below, above = tolerances
    return Interval(given.joint_name, given.position - below, given.position + above)


def narrowed(
    robot: RobotModel, intervals: Iterable[Interval], values: Mapping[str, float], seed: Array
) -> RobotModel:
    """The robot with its limits narrowed; intervals of joints that it has not are checked.

    Args:
        values: the state, by joint [rad or m].
        seed: (n,) of joints that turn freely the interval nearest to it counts.

    Raises:
        RequestError: an interval that nothing is left of, or that a joint stands outside of.
    """
    complete = robot.tree.values(values)
    for interval in intervals:
        drive = robot.tree.mimic_of[interval.joint]
        if drive.multiplier and drive.master in robot.joint_names:
            robot = _narrowed(robot, interval, seed)
        else:
            _check(interval, complete[interval.joint], robot.tree)
    return robot


def _narrowed(robot: RobotModel, interval: Interval, seed: Array) -> RobotModel:
    drive = robot.tree.mimic_of[interval.joint]
    ends = sorted((end - drive.offset) / drive.multiplier for end in interval[1:])
    lower, upper = np.full(robot.n, -np.inf), np.full(robot.n, np.inf)
    j = robot.joint_names.index(drive.master)
    lower[j], upper[j] = ends
    try:
        return robot.narrowed(lower, upper, near=seed)
    except LimitsError as error:
        raise RequestError(Code.NO_IK_SOLUTION, f"joint constraint: {error}") from error


def _check(interval: Interval, value: float, tree: Tree) -> None:
    name, lower, upper = interval
    away = value
    if tree.joint[name].kind == "continuous":  # the turn nearest the interval's middle
        middle = 0.5 * (lower + upper)
        away = middle + math.remainder(value - middle, TURN) if math.isfinite(middle) else middle
    if math.isfinite(away) and not lower <= away <= upper:
        raise RequestError(
            Code.NO_IK_SOLUTION,
            f"joint constraint: joint {name!r} is at {value}, outside of [{lower}, {upper}], and "
            "is none of the joints that are solved for",
        )
