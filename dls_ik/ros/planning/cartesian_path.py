# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Service ``compute_cartesian_path``: motions of a link on straight lines between poses."""

import math
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetCartesianPath

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.errors import Code, PoseError, RequestError
from dls_ik.model.rotations import inverse
from dls_ik.ros.planning.joint_plan import link_pose_function
from dls_ik.ros.planning.messages import (
    limit_link_speed,
    start_message,
    trajectory_from_spline,
)
from dls_ik.ros.planning.path_constraints import read_path_constraints
from dls_ik.ros.planning.setting import Setting, Sources, read_scaling, read_setting
from dls_ik.servo.spline_timing import time_dense_path
from dls_ik.solver import IkSolver
from dls_ik.solver.result import IkPathResult
from dls_ik.text import listing, quoted

MAX_WAYPOINTS = 10_000  # maximum number of waypoints of a request
MAX_PATH_POSES = 20_000  # maximum number of poses of the path, after interpolation
# A step of max_step [m] turns by at most this angle per metre [rad/m], as in MoveIt.
TURN_PER_STEP = 3.5
# Maximum change of a joint between two poses [rad or m], if no threshold is given. Larger changes
# are jumps to another branch of solutions, which no motion along the line can reach.
DEFAULT_JUMP = 0.5
# A path with a failure is solved again as a whole, if it has at most this number of poses, and
# within this time [s].
MAX_WHOLE_POSES, WHOLE_PATH_TIMEOUT = 2000, 2.0


class CartesianPath(NamedTuple):
    """Path of joint positions along a line of poses, and why it ends before the last pose."""

    path: Array  # (m, n) joint positions, from the start [rad or m]
    fraction: float  # share of the poses that the path passes
    reason: str  # empty if the path is complete


def answer_cartesian_path(request: Any, sources: Sources) -> tuple[Any, str]:
    """Answer a ``moveit_msgs/srv/GetCartesianPath`` request.

    Returns:
        Response without its error code, and a message: the fraction, and the reason if it is below
        1.

    Raises:
        RequestError: If the request is not valid.
        FrameError: If a frame is unknown.
    """
    waypoints = request.waypoints
    if not 0 < len(waypoints) <= MAX_WAYPOINTS:
        raise RequestError(
            Code.FAILURE,
            f"a path must have from 1 to {MAX_WAYPOINTS} waypoints; got {len(waypoints)}",
        )
    if not 0.0 < request.max_step < math.inf:
        raise RequestError(
            Code.FAILURE,
            f"max_step must be above 0 m, and finite; got {request.max_step}; it is the largest "
            "distance between two poses of the path",
        )
    _check_thresholds(request)
    setting = read_setting(
        sources,
        request.group_name,
        request.link_name.removeprefix("/"),
        request.start_state,
        read_scaling(request),
        request.avoid_collisions,
    )
    constraints = read_path_constraints(request.path_constraints, setting)
    poses = _interpolated(setting, request)
    found = _solve(setting, poses, request)
    if constraints:
        violation = constraints.first_violation(setting, found.path)
        if violation is not None:
            i, label = violation
            found = _cut(found, i, len(poses), f"the path would violate {label}")
    spline = time_dense_path(found.path, setting.limits)
    if request.max_cartesian_speed > 0.0:
        pose = link_pose_function(setting, request.cartesian_speed_limited_link)
        spline = limit_link_speed(spline, pose, request.max_cartesian_speed)
    response = GetCartesianPath.Response(
        start_state=start_message(setting),
        solution=trajectory_from_spline(spline, setting),
        fraction=found.fraction,
    )
    return response, _words(found, spline.duration, setting)


def _words(found: CartesianPath, duration: float, setting: Setting) -> str:
    words = f"fraction {found.fraction:.3g}, {duration:.3g} s"
    parts = (words, found.reason, *setting.notes)
    return "; ".join(part for part in parts if part)


def _check_thresholds(request: Any) -> None:
    fields = (
        "jump_threshold",
        "prismatic_jump_threshold",
        "revolute_jump_threshold",
        "max_cartesian_speed",
    )
    for field in fields:
        value = getattr(request, field)
        if not math.isfinite(value):
            raise RequestError(
                Code.FAILURE, f"{field} must be a finite number, 0 for no limit; got {value}"
            )


def plan_line(setting: Setting, T_base_link: Array, max_step: float) -> CartesianPath:
    """Return the path along which a link moves on a straight line, and turns about one axis.

    Args:
        setting: Setting of the motion, whose chain moves the link.
        T_base_link: (4, 4) pose at the end of the line.
        max_step: Largest distance between two poses of the path [m].

    Raises:
        RequestError: If the line has too many poses.
    """
    poses = [_start_pose(setting)]
    _extend(poses, T_base_link, max_step)
    settings = GetCartesianPath.Request()
    return _solve(setting, np.array(poses), settings)


def _interpolated(setting: Setting, request: Any) -> Array:
    """Return the poses T_base_link (m, 4, 4) of the path, from the start of the link.

    Successive poses are at most `max_step` apart, and turned by at most TURN_PER_STEP per metre of
    `max_step`.
    """
    poses, base = [_start_pose(setting)], setting.robot.base
    for i, pose in enumerate(request.waypoints):
        try:
            T = setting.context.pose_in_base(PoseStamped(header=request.header, pose=pose), base)
        except PoseError as error:
            raise RequestError(Code.GOAL_STATE_INVALID, f"waypoint {i}: {error}") from error
        _extend(poses, T, request.max_step)
    return np.array(poses)


def _start_pose(setting: Setting) -> Array:
    """Return the pose T_base_link (4, 4) of the link of a path at its start.

    Raises:
        RequestError: If the path has no link, because the group has several tips.
    """
    solver, attachments = setting.chain
    tip = next(i for i, each in enumerate(attachments) if each is not None)
    attachment = attachments[tip]
    if attachment is None or sum(each is not None for each in attachments) > 1:
        raise RequestError(
            Code.INVALID_LINK_NAME,
            "the group has several tips; give link_name, one of "
            f"{listing(map(quoted, solver.robot.tips))}",
        )
    T_tip_link = inverse(attachment.T_link_tip)
    T: Array = solver.robot.link_pose(solver.robot.tips[tip], setting.start) @ T_tip_link
    return T


def _extend(poses: list[Array], T: Array, max_step: float) -> None:
    """Append poses on the line from the last pose to T (4, 4), and T itself.

    Raises:
        RequestError: If there are too many poses.
    """
    V = difference(poses[-1], T)
    steps = max(
        float(np.linalg.norm(V[:3])) / max_step,
        float(np.linalg.norm(V[3:])) / (TURN_PER_STEP * max_step),
    )
    if len(poses) + steps > MAX_PATH_POSES:
        raise RequestError(
            Code.FAILURE,
            f"the path has more than {MAX_PATH_POSES} poses with max_step = {max_step:g} m; use a "
            "larger max_step",
        )
    count = max(math.ceil(steps - 1e-9), 1)
    start = poses[-1]
    poses += [moved(start, V * (k / count)) for k in range(1, count)]
    poses.append(T)


def _solve(setting: Setting, poses: Array, request: Any) -> CartesianPath:
    """Return the path along poses T_base_link (m, 4, 4), up to the first failure or jump."""
    solver, attachments = setting.chain
    targets = np.empty((len(poses), len(solver.robot.tips), 4, 4))
    for i, (tip, each) in enumerate(zip(solver.robot.tips, attachments, strict=True)):
        still = setting.context.link_pose(tip, solver.robot.base)
        targets[:, i] = still if each is None else poses @ each.T_link_tip
    options = setting.context.arm.parameters.solver_options()
    options.pop("joint_weights", None)
    in_scene = IkSolver(solver.robot, solver.method, scene=setting.context.scene, **options)
    largest = _jump_limits(setting, request)
    step = max(float(largest[np.isfinite(largest)].min(initial=DEFAULT_JUMP)), 1e-6)
    result = solve_cartesian(in_scene, targets[1:], setting.start, step)
    found = _first_part(setting, result, largest, first_row=0)
    if found.reason and len(targets) <= MAX_WHOLE_POSES:
        result = solve_whole_cartesian(in_scene, targets, setting.start, step)
        whole = _first_part(setting, result, largest, first_row=1)
        reasons = [str(each) for each in result.reconfigurations]
        if whole.reason and reasons:
            whole = whole._replace(reason=reasons[0])
        found = whole if whole.fraction > found.fraction or not whole.reason else found
    return _without_relative_jump(found, len(poses), request.jump_threshold)


def solve_cartesian(
    solver: IkSolver, targets: Array, start: Array, max_joint_step: float
) -> IkPathResult:
    """Solve the poses of a path in order, each from the solution of the pose before it.

    Every Cartesian path of the node is first solved by this function.

    Args:
        solver: Solver of the chain, with the scene if collisions are avoided.
        targets: (b, k, 4, 4) T_base_tip of each tip.
        start: (n,) joint positions before the first pose [rad or m].
        max_joint_step: Largest change of a joint between two poses [rad or m].
    """
    return solver.solve_path(_of_tips(solver, targets), start, max_joint_step=max_joint_step)


def solve_whole_cartesian(
    solver: IkSolver, targets: Array, start: Array, max_joint_step: float
) -> IkPathResult:
    """Solve the poses of a path together, with the configuration of the first pose given.

    Paths that :func:`solve_cartesian` does not solve to their end are solved by this function.

    Args:
        solver: Solver of the chain, with the scene if collisions are avoided.
        targets: (b, k, 4, 4) T_base_tip of each tip, from the pose at `start`.
        start: (n,) joint positions at the first pose [rad or m].
        max_joint_step: Largest change of a joint between two poses [rad or m].
    """
    return solver.solve_path(
        _of_tips(solver, targets),
        start,
        max_joint_step=max_joint_step,
        whole=True,
        timeout=WHOLE_PATH_TIMEOUT,
    )


def _of_tips(solver: IkSolver, targets: Array) -> Array:
    """Return poses (b, k, 4, 4) in the shape for `solve_path`, (b, 4, 4) for a single tip."""
    return targets[:, 0] if len(solver.robot.tips) == 1 else targets


def _first_part(
    setting: Setting, result: IkPathResult, largest: Array, first_row: int
) -> CartesianPath:
    """Return the path from the start to the first pose that is missed or reached by a jump.

    Args:
        setting: Setting of the path.
        result: Result of the solver.
        largest: (n,) largest change of each joint between two poses [rad or m].
        first_row: Row of the result with the first pose after the start.
    """
    path = np.vstack([setting.start, result.q[first_row:]])
    count, reason = _reached(setting, result, path, largest, first_row)
    whole = CartesianPath(path, 1.0, "")
    return _cut(whole, count, len(path), reason) if reason else whole


def _jump_limits(setting: Setting, request: Any) -> Array:
    """Return the largest change of each joint between two poses (n,) [rad or m].

    Thresholds of 0 mean no threshold, as in MoveIt.
    """
    robot = setting.robot
    thresholds = {
        True: request.prismatic_jump_threshold,
        False: request.revolute_jump_threshold,
    }
    kinds = [robot.tree.joint[name].kind == "prismatic" for name in robot.joint_names]
    return np.array([thresholds[kind] if thresholds[kind] > 0.0 else np.inf for kind in kinds])


def _reached(
    setting: Setting, result: IkPathResult, path: Array, largest: Array, first_row: int
) -> tuple[int, str]:
    """Return the number of configurations before the first break of a path, and its reason.

    Args:
        setting: Setting of the path.
        result: Result of the solver.
        path: (b + 1, n) start and answers of the solver for all poses after it [rad or m].
        largest: (n,) largest change of each joint between two poses [rad or m].
        first_row: Row of the result with the first pose after the start.
    """
    change = np.abs(np.diff(path, axis=0))
    over = change > np.where(np.isfinite(largest), largest, DEFAULT_JUMP)
    contacts = result.contacts or (None,) * len(result.q)
    first = None if setting.world is None else setting.world.path_in_collision(path[0], path[1])
    for i in range(len(change)):
        row = i + first_row
        pair = result.pairs_in_the_way[row] if len(result.pairs_in_the_way) else None
        contact = first if i == 0 else contacts[row]
        names = pair if contact is None else contact.names
        if names is not None:
            return i + 1, f"pose {i + 1}: {names[0]!r} and {names[1]!r} would collide"
        if not result.success[row]:
            explanation = result[row].status.explanation
            return i + 1, f"pose {i + 1}: {explanation}"
        if over[i].any() or result.jumps[row]:
            j = int((change[i] / np.where(np.isfinite(largest), largest, DEFAULT_JUMP)).argmax())
            return i + 1, (
                f"pose {i + 1}: joint {setting.robot.joint_names[j]!r} would jump by "
                f"{change[i, j]:.3g} {setting.robot.units[j]}"
            )
    return len(path), ""


def _cut(found: CartesianPath, count: int, poses: int, reason: str) -> CartesianPath:
    """Return the first `count` configurations, at least the start, of a path of `poses` poses."""
    kept = max(min(count, len(found.path)), 1)
    return CartesianPath(found.path[:kept], (kept - 1) / max(poses - 1, 1), reason)


def _without_relative_jump(found: CartesianPath, poses: int, factor: float) -> CartesianPath:
    """Return a path up to its first step that exceeds a multiple of the mean step, as in MoveIt.

    Args:
        found: Path.
        poses: Number of poses of the complete path.
        factor: `jump_threshold` of the request; 0 or less: no check.
    """
    steps = np.abs(np.diff(found.path, axis=0)).sum(axis=1)
    if not factor > 0.0 or len(steps) < 2:
        return found
    jumps = np.flatnonzero(steps > factor * steps.mean())
    if not len(jumps):
        return found
    i = int(jumps[0]) + 1
    words = (
        f"pose {i}: the joints would move by {steps[i - 1]:.3g}, more than jump_threshold = "
        f"{factor:g} times the mean"
    )
    return _cut(found, i, poses, words)
