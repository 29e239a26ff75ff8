# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Responses of ``compute_ik`` and ``compute_fk``, computed from a request and the arm's state."""

import threading
import time
from collections.abc import Generator, Mapping
from typing import Any, NamedTuple
from weakref import ref

from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK

from dls_ik.errors import Code, RequestError
from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, pose_from_matrix, quaternion_note, strip_slash
from dls_ik.ros.services.constrained import solve_constrained
from dls_ik.ros.services.request import (
    APPROXIMATE_NOTE,
    MIN_TIMEOUT,
    IkProblem,
    IkRequest,
    RobotContext,
    build_problem,
    driven_joints,
    read_state,
)
from dls_ik.ros.services.scene import scene_in_state
from dls_ik.solver import IkResult, Status
from dls_ik.solver.calls import pose_slices
from dls_ik.solver.solver import CLEARANCE_SOLVE_TYPE
from dls_ik.solver.task import too_few_joints
from dls_ik.text import listing, quoted, scaled

MAX_FK_LINKS = 1000  # maximum number of links per request, unless the robot has more links
POSITION_ONLY = (
    "add an orientation constraint with three tolerances of pi if only the position matters"
)


class Solution(NamedTuple):
    """Response of a successful request without its error code, and a message for the client."""

    response: Any
    message: str


def ik_slices(
    request: IkRequest, current: Mapping[str, float], frames: Frames, timeout: float
) -> Generator[None, None, Solution]:
    """Solve a ``compute_ik`` request in slices; the generator yields approximately every 10 ms.

    Args:
        request: Request.
        current: Current joint positions by name [rad or m]; positions in the state of the request
            replace them.
        frames: Lookup of the frames of poses.
        timeout: Maximum time for the preparations and the solver [s].

    Returns:
        Response with the joint positions, and a message for the client.

    Raises:
        RequestError: If the request is not valid, or if no solution is found.
        FrameError: If a frame is unknown.
        PoseError: If a pose is not valid.
    """
    arm, state, start = request.arm, request.state, time.perf_counter()
    context = RobotContext(arm, frames, state.overlay(arm.tree, current))
    problem = build_problem(request, context)
    if request.scene is not None:
        robot, attached = problem.solver.robot, (state.attached, state.keeps_attached)
        scene = scene_in_state(request.scene, robot, context, attached)
        context = context._replace(scene=scene)
    remaining = max(timeout - (time.perf_counter() - start), MIN_TIMEOUT)
    if request.is_constrained:
        solving = solve_constrained(problem, request.constraints, context, remaining)
    else:
        solving = _solve(problem, context, remaining)
    result, note = yield from solving
    note = _join(note, request.unchecked)
    note = _join(note, *request.state.notes, _normalization_note(request))
    if not result.success:
        if request.scene is not None and not request.scene.snapshot.exact:
            note = _join(note, APPROXIMATE_NOTE)
        raise RequestError(Code.NO_IK_SOLUTION, _join(failure_words(result), note))
    found = problem.solver.robot.named(result.q)
    response = _ik_response(arm.tree, {**context.values, **found})
    return Solution(response, _join(_success(result), note))


def _solve(
    problem: IkProblem, context: RobotContext, timeout: float
) -> Generator[None, None, tuple[IkResult, str]]:
    """Solve a problem without constraints in slices.

    Returns:
        Result, and a note for the client: a hint if the solver fails because the chain has too few
        joints for a full pose, otherwise an empty text.
    """
    solver, given = problem.solver, (problem.targets[None], problem.seed[None])
    search = solver.search
    if context.scene is not None:
        search = search.within(context.scene.snapshot)
        if context.arm.parameters.solve_type == CLEARANCE_SOLVE_TYPE:
            search = search.wanting(CLEARANCE_SOLVE_TYPE, None, None)
    result = yield from pose_slices(search, *given, True, timeout, time.perf_counter())
    few = "" if result.success else too_few_joints(solver.robot, None)
    return result, f"{few}: {POSITION_ONLY}" if few else ""


def _normalization_note(request: IkRequest) -> str:
    given = request.constraints.orientation_constraints
    return quaternion_note([stamped.pose for stamped in request.poses] + list(given))


def _ik_response(tree: Tree, values: Mapping[str, float]) -> Any:
    """Return a response with the positions of all movable joints, in the order of the URDF.

    Args:
        tree: Robot.
        values: Joint positions by name [rad or m].
    """
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


def failure_words(result: IkResult) -> str:
    """Return why a result is not a solution, for the message of a response."""
    reason, time_spent = result.status.explanation, f"solver time {scaled(result.duration, 's', 3)}"
    if result.pair_in_the_way is not None:
        pair = " and ".join(map(quoted, result.pair_in_the_way))
        return f"{reason}, most often of {pair}; {time_spent}"
    if result.status is Status.OUTSIDE_LIMITS:
        return f"{reason}; {time_spent}"
    return f"{reason}; {time_spent}; closest configuration: {_errors(result)} away"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def answer_fk(request: Any, arm: Arm, current: Mapping[str, float], frames: Frames) -> Solution:
    """Answer a ``compute_fk`` request with the poses of links.

    The poses are in the frame of the request's header; an empty frame is the root of the robot.

    Args:
        request: ``moveit_msgs/srv/GetPositionFK`` request. If it names no links, the pose of the
            tip that follows targets is computed.
        arm: Arm in use.
        current: Current joint positions by name [rad or m]; positions in the state of the request
            replace them.
        frames: Lookup of the frame of the poses.

    Raises:
        RequestError: If a link is unknown, or the state is not valid.
        FrameError: If the frame is unknown.
    """
    tree = arm.tree
    names = list(request.fk_link_names) or [arm.robot.tip]
    links = [strip_slash(link) for link in names]
    _check_links(links, tree)
    state = read_state(tree, request.robot_state)
    values = state.overlay(tree, current)
    frame = strip_slash(request.header.frame_id) or tree.root
    T_frame_root = inverse(frames.T_root_frame(frame, tree, values, request.header.stamp))
    poses = {link: T_frame_root @ tree.pose(link, values) for link in set(links)}
    response = GetPositionFK.Response(fk_link_names=names)
    for link in links:
        stamped = PoseStamped(pose=pose_from_matrix(poses[link]))
        stamped.header.frame_id = frame
        response.pose_stamped.append(stamped)
    count = f"{len(links)} pose{'s'[: len(links) != 1]}"
    return Solution(response, _join(f"{count} in {quoted(frame)}", *state.notes))


def _check_links(links: list[str], tree: Tree) -> None:
    most = max(MAX_FK_LINKS, len(tree.links))
    if len(links) > most:
        message = f"a request may have at most {most} links; got {len(links)}"
        raise RequestError(Code.INVALID_LINK_NAME, message)
    unknown = [link for link in dict.fromkeys(links) if link not in tree.child_joints]
    if unknown:
        message = f"unknown link {listing(map(quoted, unknown))}; links: {listing(tree.links)}"
        raise RequestError(Code.INVALID_LINK_NAME, message)


MAX_KINDS = 1000  # maximum number of kinds of requests in the cache
FIRST_SOLUTION = "speed"  # value of the parameter solve_type that returns the first solution


class FastPathCache:
    """Cache of the kinds of requests that the receiving thread may try to solve immediately.

    Requests of the same kind use the same solver and scene. A worker thread solves the first
    request of a kind, because the request may need a new solver, which takes a few tenths of a
    second. Worker threads also solve all requests if the parameter solve_type is not `speed`,
    because the receiving thread stops early and would lose intermediate results. The cache has only
    weak references to solvers and scenes, because a changing scene is replaced by a new snapshot
    many times a second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arm: ref[Arm] | None = None
        self._kinds: set[tuple[object, ...]] = set()

    def is_known(self, request: IkRequest) -> bool:
        """Return whether a request can be solved immediately, because its solver is prepared."""
        if request.arm.parameters.solve_type != FIRST_SOLUTION:
            return False
        if request.is_constrained or request.state.attached:  # both need a new solver per request
            return False
        # The scene poses of links that are moved by joints outside the chain take 7 ms to compute.
        if request.scene is not None and _has_outside_joints(request):
            return False
        with self._lock:
            return self._is_of_arm(request) and _kind(request) in self._kinds

    def remember(self, request: IkRequest) -> None:
        """Add the kind of a request that was solved, so that its solver is prepared."""
        with self._lock:
            if not self._is_of_arm(request) or len(self._kinds) >= MAX_KINDS:
                self._arm, self._kinds = ref(request.arm), set()
            self._kinds.add(_kind(request))

    def _is_of_arm(self, request: IkRequest) -> bool:
        return self._arm is not None and self._arm() is request.arm


def _has_outside_joints(request: IkRequest) -> bool:
    masters = {mimic.master for mimic in request.arm.tree.mimic_of.values()}
    return len(masters) > len(request.group.solver.robot.joint_names)


def _kind(request: IkRequest) -> tuple[object, ...]:
    """Return the kind of a request, as a tuple that is equal for all requests of this kind."""
    scene = None if request.scene is None else ref(request.scene.snapshot)
    return ref(request.group.solver), request.links, request.is_constrained, scene
