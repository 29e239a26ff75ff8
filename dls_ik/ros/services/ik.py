"""The responses of ``compute_ik`` and ``compute_fk``: functions of request, robot and state."""

import time
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK

from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.ros.arm import Arm
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.frames import Frames, pose_from_matrix, quaternion_note, strip_slash
from dls_ik.ros.params import REFUSE
from dls_ik.ros.services.constrained import solve_constrained
from dls_ik.ros.services.request import (
    IkProblem,
    IkRequest,
    RobotContext,
    build_problem,
    driven_joints,
    read_ik_request,
    read_state,
)
from dls_ik.solver import IkResult, Status
from dls_ik.solver.calls import finished, pose_slices
from dls_ik.solver.task import too_few_joints
from dls_ik.text import listing, quoted

MAX_LINKS = 1000  # of a request for compute_fk, for robots that have fewer
POSITION_ONLY = "an orientation constraint with three tolerances of pi asks for the position only"


class Solution(NamedTuple):
    """A response without its code, and the message to the code."""

    response: Any
    message: str


def answer_ik(message: Any, arm: Arm, current: Mapping[str, float], frames: Frames) -> Solution:
    """Solve a ``moveit_msgs/PositionIKRequest``; see :func:`ik_slices`."""
    request = read_ik_request(message, arm)
    return finished(ik_slices(request, current, frames, request.timeout))


def ik_slices(
    request: IkRequest, current: Mapping[str, float], frames: Frames, timeout: float
) -> Generator[None, None, Solution]:
    """Solve a request within a time [s], and yield about every 10 ms.

    Args:
        current: joint positions by name [rad or m], which the state of the request overlays.

    Raises:
        RequestError: a request that is not valid, or has no solution.
        FrameError, PoseError: a frame or a pose that is not valid.
    """
    arm = request.arm
    if request.avoid_collisions and arm.parameters.avoid_collisions == REFUSE:
        raise RequestError(
            Code.NO_IK_SOLUTION,
            "this node cannot see collisions, and its parameter avoid_collisions is 'refuse'",
        )
    context = RobotContext(arm, frames, request.state.overlay(arm.tree, current))
    problem = build_problem(request, context)
    if request.is_constrained:
        solving = solve_constrained(problem, request.constraints, context, timeout)
    else:
        solving = _solve(problem, timeout)
    result, note = yield from solving
    note = _join(note, *request.state.notes, _normalization_note(request))
    if not result.success:
        raise RequestError(Code.NO_IK_SOLUTION, _join(_failure(result), note))
    found = zip(problem.solver.robot.joint_names, result.q.tolist(), strict=True)
    response = _ik_response(arm.tree, {**context.values, **dict(found)})
    return Solution(response, _join(_success(result), note))


def _solve(problem: IkProblem, timeout: float) -> Generator[None, None, tuple[IkResult, str]]:
    """Solve without constraints; the second result is a note on a failure."""
    solver, given = problem.solver, (problem.targets[None], problem.seed[None])
    result = yield from pose_slices(solver.search, *given, True, timeout, time.perf_counter())
    few = "" if result.success else too_few_joints(solver.robot, None)
    return result, f"{few}: {POSITION_ONLY}" if few else ""


def _normalization_note(request: IkRequest) -> str:
    given = request.constraints.orientation_constraints
    return quaternion_note([stamped.pose for stamped in request.poses] + list(given))


def _ik_response(tree: Tree, values: Mapping[str, float]) -> Any:
    """Fill a response with all joints that one value moves, in the order of the model."""
    response = GetPositionIK.Response()
    complete = tree.values(values)
    solution = response.solution.joint_state
    solution.header.frame_id = tree.root
    solution.name = driven_joints(tree)
    solution.position = [complete[name] for name in solution.name]
    return response


def _errors(result: IkResult) -> str:
    return f"{result.position_error:.2g} m and {result.rotation_error:.2g} rad"


def _success(result: IkResult) -> str:
    return f"solved to {_errors(result)} in {1e3 * result.duration:.3g} ms"


def _failure(result: IkResult) -> str:
    where = "" if result.status is Status.OUTSIDE_LIMITS else f"; nearest: {_errors(result)}"
    return f"{result.status.explanation}, tried for {1e3 * result.duration:.3g} ms{where}"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def answer_fk(request: Any, arm: Arm, current: Mapping[str, float], frames: Frames) -> Solution:
    """Compute poses of links in the frame of the header; an empty frame is the root.

    Args:
        request: ``moveit_msgs/srv/GetPositionFK`` request; without links: the tip that follows
            targets.
        current: joint positions by name [rad or m], which the state of the request overlays.

    Raises:
        RequestError: unknown links, or a state that is not valid.
        FrameError: an unknown frame.
    """
    tree = arm.tree
    asked = list(request.fk_link_names) or [arm.robot.tip]
    links = [strip_slash(link) for link in asked]
    _check_links(links, tree)
    state = read_state(tree, request.robot_state)
    values = state.overlay(tree, current)
    frame = strip_slash(request.header.frame_id) or tree.root
    T_frame_root = inverse(frames.T_root_frame(frame, tree, values, request.header.stamp))
    poses = {link: T_frame_root @ tree.pose(link, values) for link in set(links)}
    response = GetPositionFK.Response(fk_link_names=asked)
    for link in links:
        stamped = PoseStamped(pose=pose_from_matrix(poses[link]))
        stamped.header.frame_id = frame
        response.pose_stamped.append(stamped)
    return Solution(response, _join(f"{len(links)} poses in {quoted(frame)}", *state.notes))


def _check_links(links: list[str], tree: Tree) -> None:
    most = max(MAX_LINKS, len(tree.links))
    if len(links) > most:
        message = f"at most {most} links in a request, given {len(links)}"
        raise RequestError(Code.INVALID_LINK_NAME, message)
    unknown = [link for link in dict.fromkeys(links) if link not in tree.child_joints]
    if unknown:
        message = f"unknown link {listing(map(quoted, unknown))}; links: {listing(tree.links)}"
        raise RequestError(Code.INVALID_LINK_NAME, message)
