# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Goal constraints of planning requests, read as goal configurations."""

import math
from copy import copy
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped
from moveit_msgs.msg import OrientationConstraint

from dls_ik.core.types import Array
from dls_ik.errors import Code, RequestError
from dls_ik.model.joint import TURN
from dls_ik.ros.planning.setting import Setting
from dls_ik.ros.services.answers import failure_words
from dls_ik.ros.services.constrained import solve_constrained
from dls_ik.ros.services.constraints import invalid, position_bound, read_interval
from dls_ik.ros.services.request import IkProblem, count_constraints
from dls_ik.solver import IkSolver
from dls_ik.solver.calls import finished
from dls_ik.solver.task import Task
from dls_ik.text import listing, quoted

MAX_GOAL_SETS = 16  # maximum number of alternative goals of a request
MAX_IK_GOALS = 12  # maximum number of IK solutions of a pose that are goals of a path
NO_GOAL = (
    "goal_constraints must contain joint constraints, or a position and an orientation constraint "
    "of one link; got none"
)


def goal_link(constraints: Any) -> str:
    """Return the link of the pose constraints of a goal; empty if there are only joint constraints.

    Raises:
        RequestError: If pose constraints are on several links.
    """
    poses = [*constraints.position_constraints, *constraints.orientation_constraints]
    links = list(dict.fromkeys(each.link_name.removeprefix("/") for each in poses))
    if len(links) > 1:
        raise invalid(f"pose constraints of a goal must be on one link; got {listing(links)}")
    if links and not links[0]:
        raise invalid("a pose constraint has no link_name; give the link of the goal")
    return links[0] if links else ""


def checked_goals(goals: Any) -> list[Any]:
    """Return the alternative goals of a request, after checking their number and kinds.

    Raises:
        RequestError: If there are no goals or too many, or a kind of constraint is not supported.
    """
    given = list(goals)
    if not 0 < len(given) <= MAX_GOAL_SETS or not all(map(count_constraints, given)):
        if len(given) > MAX_GOAL_SETS:
            raise invalid(
                f"at most {MAX_GOAL_SETS} alternative goals are supported; got {len(given)}"
            )
        raise invalid(NO_GOAL)
    return given


def goal_configurations(setting: Setting, constraints: Any, timeout: float) -> Array:
    """Return goal configurations (g, n) that satisfy the constraints of a goal [rad or m].

    Args:
        setting: Setting of the motion, whose chain moves the link of the goal.
        constraints: ``moveit_msgs/Constraints``.
        timeout: Maximum time of the solver [s].

    Raises:
        RequestError: If the constraints are not valid, or cannot be satisfied.
        FrameError: If a frame is unknown.
    """
    if goal_link(constraints):
        return _pose_goals(setting, constraints, timeout)
    return _joint_goal(setting, constraints)[None]


def _joint_goal(setting: Setting, constraints: Any) -> Array:
    robot, q = setting.robot, setting.start.copy()
    for given in constraints.joint_constraints:
        name, lower, upper = read_interval(given, robot.tree)
        if name not in robot.joint_names:
            raise invalid(
                f"joint {quoted(name)} is not one of the group; its joints are "
                f"{listing(robot.joint_names)}"
            )
        j = robot.joint_names.index(name)
        wanted = given.position
        if robot.tree.joint[name].kind == "continuous":
            turns = TURN * round((q[j] - wanted) / TURN)
            wanted, lower, upper = wanted + turns, lower + turns, upper + turns
        lower, upper = max(lower, robot.lower[j]), min(upper, robot.upper[j])
        if lower > upper:
            raise RequestError(
                Code.GOAL_STATE_INVALID,
                f"the goal of joint {name!r}, {given.position:.4g}, is outside its limits from "
                f"{robot.lower[j]:.4g} to {robot.upper[j]:.4g} [{robot.units[j]}]",
            )
        q[j] = min(max(wanted, lower), upper)
    pair = None if setting.world is None else setting.world.colliding_pair(q)
    if pair is not None:
        raise RequestError(
            Code.GOAL_IN_COLLISION, f"{pair[0]!r} and {pair[1]!r} collide at the goal"
        )
    return q


def _pose_goals(setting: Setting, constraints: Any, timeout: float) -> Array:
    solver, attachments = setting.chain
    link, context = goal_link(constraints), setting.context
    T_base_link, given = goal_pose(setting, constraints)
    targets = np.array([
        context.link_pose(tip, solver.robot.base)
        if attachment is None
        else T_base_link @ attachment.T_link_tip
        for tip, attachment in zip(solver.robot.tips, attachments, strict=True)
    ])  # fmt: skip
    exact = _solver_in_scene(setting)
    if given is None:  # only the orientation matters
        task = [Task(position="")] * len(targets)
        result = exact.solve(targets, setting.start, timeout=timeout, task=task)
    else:
        problem = IkProblem(solver, targets, setting.start, attachments, (link,))
        result, _ = finished(solve_constrained(problem, given, context, timeout))
    if not result.success:
        raise RequestError(
            Code.NO_IK_SOLUTION, f"no configuration for the goal: {failure_words(result)}"
        )
    goals = result.q[None]
    has_joints = bool(constraints.joint_constraints)
    is_full_pose = given is constraints and not has_joints
    if is_full_pose and setting.world is not None:
        goals = np.vstack([goals, exact.solve_all(targets, MAX_IK_GOALS, setting.start).q])
    return goals


def goal_pose(setting: Setting, constraints: Any) -> tuple[Array, Any | None]:
    """Return the pose in the middle of a goal, and the constraints with which to solve for it.

    Args:
        setting: Setting of the motion.
        constraints: ``moveit_msgs/Constraints`` with constraints on the pose of one link.

    Returns:
        T_base_link (4, 4), and the constraints; None if there is no position constraint.

    Raises:
        RequestError: If a constraint is not valid.
        FrameError: If a frame is unknown.
    """
    context, base, link = setting.context, setting.robot.base, goal_link(constraints)
    positions, orientations = constraints.position_constraints, constraints.orientation_constraints
    if len(positions) > 1 or len(orientations) > 1:
        raise invalid(
            "a goal may have one position and one orientation constraint; got "
            f"{len(positions)} and {len(orientations)}"
        )
    T = context.link_pose(link, base).copy()
    if orientations:
        given = orientations[0]
        stamped = PoseStamped(header=given.header, pose=Pose(orientation=given.orientation))
        T[:3, :3] = context.pose_in_base(stamped, base)[:3, :3]
    if not positions:
        return T, None
    bound = position_bound(positions[0], context, base)
    T[:3, 3] = bound.regions[0].T_base_region[:3, 3] - T[:3, :3] @ bound.T_link_point[:3, 3]
    if orientations:
        return T, constraints
    free = OrientationConstraint(link_name=link)
    free.absolute_x_axis_tolerance = free.absolute_y_axis_tolerance = math.pi
    free.absolute_z_axis_tolerance = math.pi
    relaxed = copy(constraints)
    relaxed.orientation_constraints = [free]
    return T, relaxed


def _solver_in_scene(setting: Setting) -> IkSolver:
    solver = setting.chain.solver
    options = setting.context.arm.parameters.service_options(solver.method)
    return IkSolver(solver.robot, solver.method, scene=setting.context.scene, **options)
