"""The answer to ``compute_ik``: a function of the request, the robot and its state."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from moveit_msgs.srv import GetPositionIK

from dls_ik.core.types import Array
from dls_ik.exceptions import PoseError
from dls_ik.ros.arm import Arm
from dls_ik.ros.conversions import seconds
from dls_ik.ros.frames import Frames
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.parameters.solving import REFUSE
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.ros.services.state import driven_joints, overlaid
from dls_ik.solver import IkResult, IkSolver, Status


class Answer(NamedTuple):
    """A response without its code, and the words to the code."""

    response: Any
    message: str


class Wanted(NamedTuple):
    """Which link goes where."""

    link: str  # empty: the tip
    pose: Any  # geometry_msgs/PoseStamped


def answer_ik(request: Any, arm: Arm, current: Mapping[str, float], frames: Frames) -> Answer:
    """Solve a ``moveit_msgs/PositionIKRequest``.

    Args:
        current: the joint values that the state of the request overlays.

    Raises:
        RequestError: a request that is not valid, or has no solution.
    """
    _check_group(request.group_name, arm.parameters)
    _check_wishes(request, arm.parameters)
    timeout = seconds(request.timeout, arm.parameters.timeout)
    wanted = _wanted(request)
    solver, T_link_tip = arm.reach(wanted.link)
    state = overlaid(arm.tree, current, request.robot_state.joint_state)
    T_root_tip = frames.pose_in_root(wanted.pose, arm.tree, state.values) @ T_link_tip
    T_base_tip = arm.base_from_root(T_root_tip, solver.robot.base, state.values)
    complete = arm.tree.values(state.values)
    seed = np.array([complete[name] for name in solver.robot.joint_names])
    result = _solved(solver, T_base_tip, seed, timeout)
    if not result.success:
        raise RequestError(Code.NO_IK_SOLUTION, _join(_failure(result), state.note))
    found = dict(zip(solver.robot.joint_names, result.q.tolist(), strict=True))
    return Answer(_response(arm, {**state.values, **found}), _join(_success(result), state.note))


def _solved(solver: IkSolver, T_base_tip: Array, seed: Array, timeout: float) -> IkResult:
    try:
        return solver.solve(T_base_tip, seed, timeout)
    except PoseError as error:  # beyond what is finite in practice
        raise RequestError(Code.GOAL_STATE_INVALID, str(error)) from error


def _check_group(name: str, parameters: Parameters) -> None:
    valid = parameters.group_name
    if name and valid and name not in valid:
        raise RequestError(
            Code.INVALID_GROUP_NAME, f"unknown group {name!r}; known: {', '.join(valid)}"
        )


def _check_wishes(request: Any, parameters: Parameters) -> None:
    """Refuse what this node cannot do, rather than seem to have done it."""
    if request.avoid_collisions and parameters.avoid_collisions == REFUSE:
        raise RequestError(
            Code.NO_IK_SOLUTION,
            "this node cannot see collisions, and its parameter avoid_collisions is 'refuse'",
        )
    given = request.constraints
    kinds = ("joint", "position", "orientation", "visibility")
    present = [kind for kind in kinds if getattr(given, f"{kind}_constraints")]
    if present:
        raise RequestError(
            Code.INVALID_GOAL_CONSTRAINTS,
            f"constraints are not solved for; given: {', '.join(present)}",
        )


def _wanted(request: Any) -> Wanted:
    """Which of the poses and links in a request are meant, as move_group has it."""
    poses, links = request.pose_stamped_vector, request.ik_link_names
    if not poses:
        return Wanted(request.ik_link_name, request.pose_stamped)
    if len(poses) == 1:
        return Wanted(links[0] if links else "", poses[0])
    if len(poses) != len(links):
        raise RequestError(
            Code.INVALID_LINK_NAME,
            f"{len(poses)} poses need as many ik_link_names, given {len(links)}",
        )
    raise RequestError(
        Code.NO_IK_SOLUTION, f"one pose at a time can be solved for, given {len(poses)}"
    )


def _response(arm: Arm, values: Mapping[str, float]) -> Any:
    """All joints that one value moves, in the order of the model."""
    response = GetPositionIK.Response()
    complete = arm.tree.values(values)
    solution = response.solution.joint_state
    solution.header.frame_id = arm.tree.root
    solution.name = driven_joints(arm.tree)
    solution.position = [complete[name] for name in solution.name]
    return response


def _errors(result: IkResult) -> str:
    return f"{result.position_error:.2g} m and {result.rotation_error:.2g} rad"


def _success(result: IkResult) -> str:
    return f"solved to {_errors(result)} in {1e3 * result.duration:.3g} ms"


def _failure(result: IkResult) -> str:
    where = "" if result.status is Status.OUTSIDE_LIMITS else f"; nearest: {_errors(result)}"
    return f"{result.status.explanation}, tried for {1e3 * result.duration:.3g} ms{where}"


def _join(message: str, note: str) -> str:
    return f"{message}; {note}" if note else message
