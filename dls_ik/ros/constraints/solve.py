"""Solve the problem of a request within its constraints."""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import ChainError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.constraints.bounds import Bound, Place, invalid, orientation_bound, position_bound
from dls_ik.ros.constraints.joints import checked_interval, narrowed
from dls_ik.ros.constraints.stages import (
    Goal,
    Point,
    build_stages,
    goals_of,
    list_points,
    others_of,
    solve_stages,
)
from dls_ik.ros.frames import Frames
from dls_ik.ros.services.problem import Problem
from dls_ik.solver import IkResult, IkSolver
from dls_ik.text import listing

MOST_LINKS = 16  # constraints on links; each is one more tip
MOST_JOINTS = 256
RELAXED = "the orientation is not the one of the pose, but within its constraint"


class Constrained(NamedTuple):
    """A result, and what is to be said about it."""

    result: IkResult
    note: str


def are_given(constraints: Any) -> bool:
    """Whether a ``moveit_msgs/Constraints`` has any."""
    kinds = ("joint", "position", "orientation", "visibility")
    return any(getattr(constraints, f"{kind}_constraints") for kind in kinds)


def solve_constrained(
    problem: Problem, given: Any, arm: Arm, values: Mapping[str, float], frames: Frames
) -> Generator[None, None, Constrained]:
    """Solve within ``moveit_msgs/Constraints``, in slices.

    Args:
        values: the state of the request, by joint [rad or m].

    Raises:
        RequestError: constraints that are not valid, or that cannot be met.
    """
    check_amounts(given)
    tree, robot = arm.tree, problem.solver.robot
    place = Place(arm, frames, values, robot.base)
    intervals = [checked_interval(each, tree) for each in given.joint_constraints]
    bounds = [orientation_bound(each, place) for each in given.orientation_constraints]
    bounds += [position_bound(each, place) for each in given.position_constraints]
    goals = goals_of(problem, bounds, tree)
    points = list_points(others_of(bounds, goals, tree), goals, robot.joint_names, place)
    stages = build_stages(problem, goals, points)
    robot = narrowed(_with_tips(robot, goals, points, values), intervals, values, problem.seed)
    make = partial(IkSolver, robot, problem.solver.method, **arm.parameters.solver_options())
    result, stage = yield from solve_stages(make, stages, problem.seed, problem.timeout)
    if result.success:
        return Constrained(result, RELAXED if stage.is_relaxed else "")
    return Constrained(result, _unmet(robot, result.q, points, values))


def check_amounts(given: Any) -> None:
    """Refuse ``moveit_msgs/Constraints`` of a kind or a number that is not solved for.

    Raises:
        RequestError: with what is.
    """
    if given.visibility_constraints:
        raise invalid(
            "visibility constraints are not solved for: whether something is seen depends on "
            "obstacles, which this node does not know; give joint, position or orientation "
            "constraints"
        )
    links = len(given.position_constraints) + len(given.orientation_constraints)
    if links > MOST_LINKS or len(given.joint_constraints) > MOST_JOINTS:
        raise invalid(
            f"at most {MOST_LINKS} constraints on links and {MOST_JOINTS} on joints, not {links} "
            f"and {len(given.joint_constraints)}"
        )


def _with_tips(
    robot: RobotModel, goals: Sequence[Goal], points: Sequence[Point], values: Mapping[str, float]
) -> RobotModel:
    """The robot with a tip for each link whose orientation is let go of, and for each point."""
    for goal in goals:
        if goal.is_relaxed:
            robot = robot.with_tip(robot.tips[goal.tip], goal.T_tip_link, values)
    for _, bound in points:
        robot = _with_point(robot, bound, values)
    return robot


def _with_point(robot: RobotModel, bound: Bound, values: Mapping[str, float]) -> RobotModel:
    try:
        return robot.with_tip(bound.link, bound.T_link_point, values)
    except ChainError as error:
        raise invalid(f"{bound.words} cannot be solved for: {error}") from error


def _unmet(
    robot: RobotModel, q: Array, points: Sequence[Point], values: Mapping[str, float]
) -> str:
    """Which constraints do not hold where the search came nearest."""
    if not np.isfinite(q).all():
        return ""
    unmet = [
        bound.words
        for _, bound in points
        if not bound.holds(robot.link_pose(bound.link, q, values))
    ]
    return f"not met there: {listing(unmet)}" if unmet else ""
