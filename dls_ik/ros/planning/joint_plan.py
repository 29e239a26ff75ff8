# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Service ``plan_kinematic_path``: motions to joint and pose goals around obstacles."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from moveit_msgs.msg import MotionPlanResponse

from dls_ik.core.types import Array
from dls_ik.errors import Code, DlsIkError, RequestError
from dls_ik.ros.planning.goals import checked_goals, goal_configurations, goal_link
from dls_ik.ros.planning.messages import (
    dense_times,
    limit_link_speed,
    start_message,
    trajectory_from_spline,
)
from dls_ik.ros.planning.path_constraints import PathConstraints, read_path_constraints
from dls_ik.ros.planning.setting import Setting, Sources, read_scaling, read_setting
from dls_ik.scene.joint_paths import path_limits, plan_path
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.servo.spline_timing import time_segments
from dls_ik.text import listing, quoted

MAX_ATTEMPTS = 8  # maximum number of searches with other random numbers
DEFAULT_PLANNING_TIME = 5.0  # [s] planning time if a request has none, as in move_group
CONSTRAINT_INTERVAL = 0.02  # [s] time between the configurations at which constraints are checked


class PlannedTrajectory(NamedTuple):
    """Planned motion, and how long planning took [s]."""

    setting: Setting
    spline: JointSpline
    duration: float


class SearchEnd(NamedTuple):
    """Conditions under which a search for a path ends without a result."""

    deadline: float  # [s] time of time.perf_counter
    is_cancelled: Callable[[], bool]


def plan_motion_request(
    request: Any,
    sources: Sources,
    max_timeout: float,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> PlannedTrajectory:
    """Plan a motion to a goal of a ``moveit_msgs/MotionPlanRequest``.

    Alternative goals are tried in their order. The fields `workspace_parameters`, `pipeline_id`,
    `planner_id`, `trajectory_constraints` and `reference_trajectories` have no effect.

    Args:
        request: Request message.
        sources: Objects of the node.
        max_timeout: Maximum planning time [s].
        is_cancelled: Function that returns whether to end the search for a path.

    Raises:
        RequestError: If the request is not valid, or no motion is found; the message is the reason
            for the first goal.
        FrameError: If a frame is unknown.
    """
    begin = time.perf_counter()
    allowed = _planning_time(request.allowed_planning_time, max_timeout)
    goals = checked_goals(request.goal_constraints)
    failure: DlsIkError | None = None
    for goal in goals:
        try:
            limits = SearchEnd(begin + allowed, is_cancelled)
            setting, spline = _plan_goal(request, goal, sources, limits)
        except DlsIkError as error:
            failure = failure or error
            continue
        return PlannedTrajectory(setting, spline, time.perf_counter() - begin)
    raise failure or RequestError(Code.PLANNING_FAILED, "no goal was planned")


def _planning_time(given: float, max_timeout: float) -> float:
    if not 0.0 <= given < math.inf:
        raise RequestError(
            Code.PLANNING_FAILED,
            f"allowed_planning_time must be at least 0 s, and finite; got {given}; 0 means "
            f"{DEFAULT_PLANNING_TIME:g} s",
        )
    return min(given or DEFAULT_PLANNING_TIME, max_timeout)


def _plan_goal(
    request: Any, goal: Any, sources: Sources, end: SearchEnd
) -> tuple[Setting, JointSpline]:
    setting = read_setting(
        sources, request.group_name, goal_link(goal), request.start_state, read_scaling(request)
    )
    constraints = read_path_constraints(request.path_constraints, setting)
    _check_start(constraints, setting)
    remaining = max(end.deadline - time.perf_counter(), 1e-3)
    configurations = goal_configurations(setting, goal, remaining)
    if constraints:
        configurations = _satisfying(constraints, setting, configurations)
    spline = _search(setting, configurations, constraints, request.num_planning_attempts, end)
    link = request.cartesian_speed_limited_link
    if request.max_cartesian_speed > 0.0:
        pose = link_pose_function(setting, link)
        spline = limit_link_speed(spline, pose, request.max_cartesian_speed)
    return setting, spline


def link_pose_function(setting: Setting, link: str) -> Any:
    """Return a function from joint positions (n,) to T_base_link (4, 4); "" names the first tip.

    Raises:
        RequestError: If the link is unknown.
    """
    robot, values = setting.robot, setting.context.values
    name = link.removeprefix("/") or robot.tips[0]
    if name not in robot.tree.child_joints:
        raise RequestError(
            Code.INVALID_LINK_NAME,
            f"cartesian_speed_limited_link {quoted(link)} is unknown; links: "
            f"{listing(robot.tree.links)}",
        )
    return lambda q: robot.link_pose(name, q, values)


def _check_start(constraints: PathConstraints, setting: Setting) -> None:
    label = constraints.violated(setting.robot, setting.start, setting) if constraints else ""
    if label:
        raise RequestError(
            Code.START_STATE_VIOLATES_PATH_CONSTRAINTS,
            f"the start violates {label} of the path; move the arm, or change the constraint",
        )


def _satisfying(constraints: PathConstraints, setting: Setting, goals: Array) -> Array:
    labels = [constraints.violated(setting.robot, q, setting) for q in goals]
    kept = goals[np.array([not label for label in labels], bool)]
    if not len(kept):
        raise RequestError(
            Code.GOAL_VIOLATES_PATH_CONSTRAINTS, f"the goal violates {labels[0]} of the path"
        )
    return kept


def _search(
    setting: Setting, goals: Array, constraints: PathConstraints, attempts: int, end: SearchEnd
) -> JointSpline:
    """Return a timed path to one of several goals (g, n).

    Path constraints are checked along each path that is found; if they are violated, other goals
    and other random numbers are tried.

    Raises:
        RequestError: If no path is found.
    """
    wanted = min(max(attempts, 1), MAX_ATTEMPTS) if constraints else 1
    violation = ""
    choices = [goals] if not constraints else [goal[None] for goal in goals]
    for seed in range(wanted):
        for some in choices:
            if end.is_cancelled():
                raise RequestError(Code.PREEMPTED, "planning was cancelled")
            remaining = end.deadline - time.perf_counter()
            if remaining <= 0.0:
                raise RequestError(
                    Code.TIMED_OUT,
                    violation or "no path was found within allowed_planning_time; allow more time",
                )
            spline = time_segments(_path(setting, some, seed, end), setting.limits, setting.pairs())
            if not constraints:
                return spline
            times = dense_times(spline, CONSTRAINT_INTERVAL)
            found = constraints.first_violation(
                setting, np.array([spline.at(t)[0] for t in times.tolist()])
            )
            if found is None:
                return spline
            violation = (
                f"the path found violates {found[1]} after {times[found[0]]:.3g} s of "
                f"{spline.duration:.3g} s; path constraints are checked, but the search does not "
                "follow them: give a closer goal, or a Cartesian path"
            )
    raise RequestError(Code.PLANNING_FAILED, violation)


def _path(setting: Setting, goals: Array, seed: int, end: SearchEnd) -> Array:
    """Return a collision-free path (m, n) to one of several goals (g, n).

    Raises:
        RequestError: If there is no such path, or it is not found.
    """
    world, pairs = setting.world, setting.pairs()
    if world is None or pairs is None:
        return np.array([setting.start, goals[0]])
    limits = path_limits(setting.robot, setting.start, goals, seed=seed)
    remaining = end.deadline - time.perf_counter()
    limits = limits._replace(timeout=remaining, is_cancelled=end.is_cancelled)
    path = plan_path(world, setting.start, goals, limits, pairs)
    if path.success:
        return path.q
    names = path.names
    blocked = f"{names[0]!r} and {names[1]!r} block it" if names else "the search reached a limit"
    raise RequestError(
        Code.PLANNING_FAILED,
        f"no collision-free path to the goal was found; {blocked} (margin "
        f"{setting.min_distance:g} m)",
    )


def answer_plan(plan: PlannedTrajectory, request: Any) -> Any:
    """Return a ``moveit_msgs/MotionPlanResponse`` without its error code."""
    return MotionPlanResponse(
        trajectory_start=start_message(plan.setting),
        group_name=request.group_name,
        trajectory=trajectory_from_spline(plan.spline, plan.setting),
        planning_time=plan.duration,
    )
