# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""IK requests, which are read and checked once, when they arrive; messages are never modified."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.serialization import serialize_message

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import Code, RequestError, SceneError, ScenePendingError
from dls_ik.model.tree import Tree
from dls_ik.ros.arm import Arm, Group, TipAttachment
from dls_ik.ros.frames import Frames, base_from_root, strip_slash
from dls_ik.ros.params import COLLISIONS_ALWAYS, COLLISIONS_IGNORED
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.solver import IkSolver
from dls_ik.solver.trajectory import NANOSECONDS_PER_SECOND
from dls_ik.text import listing, quoted

MAX_HANDOVER_TIME = 0.005  # [s] added to the timeout of a request, for the change of threads
MIN_TIMEOUT = 1e-9  # [s] minimum solver timeout
MAX_REQUEST_BYTES = 256 * 1024  # maximum size of a request; hundreds of requests may be queued
MAX_ATTACHED_BYTES = 1024 * 1024  # maximum total size of the attached objects of a request
POSE_BYTES = 72  # size of a PoseStamped without the name of its frame
MAX_LINK_CONSTRAINTS = 16  # maximum number per request; each constraint adds a tip to the chain
MAX_JOINT_CONSTRAINTS = 256
NO_GEOMETRY_NOTE = (
    "nothing was checked for collisions: the robot description has no <collision> geometry"
)
APPROXIMATE_NOTE = (
    "shapes within a few mm count as colliding without the library coal: "
    "pip install 'dls_ik[collision]'"
)


class GivenState(NamedTuple):
    """Robot state of a request: joint positions and attached objects."""

    positions: dict[str, float]  # given positions by joint name [rad or m]
    notes: tuple[str, ...]  # texts about ignored fields, for the message of the response
    attached: tuple[Any, ...] = ()  # moveit_msgs/AttachedCollisionObject messages
    keeps_attached: bool = True  # False: `attached` replaces the attached objects of the scene

    def overlay(self, tree: Tree, current: Mapping[str, float]) -> dict[str, float]:
        """Return joint positions by name [rad or m]: those of this state, otherwise current ones.

        Joints without a given or current position are left out. The methods of `tree` assume 0 for
        these joints, or the limit closest to 0.
        """
        known = {name: value for name, value in current.items() if name in tree.mimic_of}
        return {**known, **self.positions}


class IkRequest(NamedTuple):
    """Contents of a ``moveit_msgs/PositionIKRequest``, and the arm in use when it arrived.

    The numbers and sizes of links, poses and constraints have been checked, but not whether links
    and frames exist and poses are valid.
    """

    arm: Arm
    group: Group
    links: tuple[str, ...]  # (k,) requested links; a single empty name stands for the tip
    poses: tuple[Any, ...]  # (k,) geometry_msgs/PoseStamped
    state: GivenState
    constraints: Any  # moveit_msgs/Constraints
    is_constrained: bool  # whether there are constraints
    scene: PlanningScene | None  # scene for the collision check; None: no check
    unchecked: str  # note that a requested collision check is impossible; empty: no note
    timeout: float  # [s] maximum time until the answer
    timeout_note: str  # note that the timeout was shortened to max_timeout; empty: no note
    arrival: float  # time of arrival on the clock of perf_counter [s]

    @property
    def deadline(self) -> float:
        """Time by which the request must be answered, on the clock of perf_counter [s]."""
        return self.arrival + self.timeout + MAX_HANDOVER_TIME

    @property
    def age(self) -> float:
        """Time since the arrival of the request [s]."""
        return time.perf_counter() - self.arrival

    @property
    def remaining(self) -> float:
        """Time until the timeout of the request [s], at least MIN_TIMEOUT."""
        return max(self.timeout - self.age, MIN_TIMEOUT)


def no_scene(tree: Tree) -> PlanningScene:
    """Raise a SceneError, because there is no scene.

    This is the default of the argument `find_scene` of :func:`read_ik_request`.
    """
    raise SceneError("there is no scene")


def read_ik_request(
    message: Any, arm: Arm, find_scene: Callable[[Tree], PlanningScene] = no_scene
) -> IkRequest:
    """Return the checked contents of a ``moveit_msgs/PositionIKRequest`` that has just arrived.

    Args:
        message: Request message.
        arm: Arm in use.
        find_scene: Function that returns the scene of a robot, or raises a SceneError with the
            reason why there is no scene. It is called only if the answer must be collision-free.

    Raises:
        RequestError: If the group is unknown, the timeout or the state is not valid, the numbers of
            links and poses differ, constraints are not supported, the request is too large, or the
            answer must be collision-free and there is no scene.
    """
    arrival = time.perf_counter()
    group = arm.group(message.group_name)
    asked = timeout_seconds(message.timeout, group.timeout)
    timeout = min(asked, arm.parameters.max_timeout)
    note = f"the timeout of {asked:g} s was shortened to the parameter max_timeout, {timeout:g} s"
    constraints = message.constraints
    is_constrained = count_constraints(constraints) > 0
    links, poses = _links_and_poses(message)
    _check_size((message.group_name, *links), poses, constraints, is_constrained)
    scene, unchecked = request_scene(message, arm, find_scene)
    return IkRequest(
        arm=arm,
        group=group,
        links=links,
        poses=poses,
        state=read_state(arm.tree, message.robot_state, keeps_attached=scene is not None),
        constraints=constraints,
        is_constrained=is_constrained,
        scene=scene,
        unchecked=unchecked,
        timeout=timeout,
        timeout_note=note if asked > timeout else "",
        arrival=arrival,
    )


def request_scene(
    message: Any, arm: Arm, find_scene: Callable[[Tree], PlanningScene]
) -> tuple[PlanningScene | None, str]:
    """Return the scene for the collision check of a request, and a note.

    Args:
        message: Request with the fields `avoid_collisions` and `robot_state`.
        arm: Arm in use.
        find_scene: See :func:`read_ik_request`.

    Returns:
        Scene, or None if no check is requested or no shape can collide; and a note for the client
        if the robot has no collision geometry, otherwise an empty text.

    Raises:
        RequestError: If a check is requested, and the scene is missing or still being built.
    """
    mode = arm.parameters.avoid_collisions
    if mode == COLLISIONS_IGNORED or not (message.avoid_collisions or mode == COLLISIONS_ALWAYS):
        return None, ""
    try:
        scene = find_scene(arm.tree)
    except ScenePendingError as error:
        words = f"collisions cannot be checked yet: {error}; send the request again"
        raise RequestError(Code.TIMED_OUT, words) from error
    except SceneError as error:
        raise RequestError(
            Code.COLLISION_CHECKING_UNAVAILABLE,
            f"collisions cannot be checked: {error}; to solve without checks, send the request "
            f"without avoid_collisions, or set the parameter avoid_collisions to "
            f"{COLLISIONS_IGNORED}",
        ) from error
    now = scene.snapshot
    if now.links:
        return scene, ""
    carries = now.attached or message.robot_state.attached_collision_objects
    return scene if carries else None, NO_GEOMETRY_NOTE


def timeout_seconds(duration: Any, default: float) -> float:
    """Return a ``builtin_interfaces/Duration`` as a timeout [s].

    Args:
        duration: Message.
        default: Timeout that replaces a duration of 0 [s].

    Raises:
        RequestError: If `sec` is negative, or `nanosec` is a second or more.
    """
    sec, nanosec = duration.sec, duration.nanosec
    if sec < 0 or nanosec >= NANOSECONDS_PER_SECOND:
        raise RequestError(
            Code.PLANNING_FAILED,
            "timeout must have a sec of at least 0 and a nanosec of at most "
            f"{NANOSECONDS_PER_SECOND - 1}; got sec = {sec} and nanosec = {nanosec}; 0 means the "
            f"default of {default:g} s",
        )
    return sec + 1e-9 * nanosec or default


def _links_and_poses(message: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the k link names and k poses (PoseStamped) of a request.

    They are read from `pose_stamped_vector` and `ik_link_names` if these have poses, otherwise from
    `pose_stamped` and `ik_link_name`, as in move_group.

    Raises:
        RequestError: If the numbers of links and poses differ.
    """
    poses, links = message.pose_stamped_vector, message.ik_link_names
    if not poses:
        return (strip_slash(message.ik_link_name),), (message.pose_stamped,)
    if len(poses) == 1:
        return (strip_slash(links[0]) if links else "",), tuple(poses)
    if len(poses) != len(links):
        raise RequestError(
            Code.INVALID_LINK_NAME,
            f"{len(poses)} poses need as many ik_link_names; got {len(links)}",
        )
    return tuple(map(strip_slash, links)), tuple(poses)


def count_constraints(given: Any) -> int:
    """Return the number of constraints on links and joints of ``moveit_msgs/Constraints``.

    Raises:
        RequestError: If a kind of constraint is not supported, or if there are too many.
    """
    if given.visibility_constraints:
        raise RequestError(
            Code.INVALID_GOAL_CONSTRAINTS,
            "visibility constraints are not supported; give joint, position or orientation "
            "constraints",
        )
    links = len(given.position_constraints) + len(given.orientation_constraints)
    joints = len(given.joint_constraints)
    if links > MAX_LINK_CONSTRAINTS or joints > MAX_JOINT_CONSTRAINTS:
        raise RequestError(
            Code.INVALID_GOAL_CONSTRAINTS,
            f"at most {MAX_LINK_CONSTRAINTS} constraints on links and {MAX_JOINT_CONSTRAINTS} on "
            f"joints are supported; got {links} and {joints}",
        )
    return links + joints


def _check_size(
    names: Sequence[str], poses: Sequence[Any], constraints: Any, is_constrained: bool
) -> None:
    size = sum(map(len, names)) + len(constraints.name)
    size += sum(POSE_BYTES + len(pose.header.frame_id) for pose in poses)
    if is_constrained:  # not done for all requests, because serialization takes 50 us
        size += len(serialize_message(constraints))
    if size > MAX_REQUEST_BYTES:
        message = f"a request may have at most {MAX_REQUEST_BYTES} bytes; got {size}"
        raise RequestError(Code.FAILURE, message)


def read_state(tree: Tree, robot_state: Any, keeps_attached: bool = False) -> GivenState:
    """Return the checked contents of the ``moveit_msgs/RobotState`` of a request.

    As in move_group, the field `is_diff` has no effect on joint positions. Fixed joints are
    ignored; unknown joints are ignored, and a note names them.

    Args:
        tree: Robot.
        robot_state: State message.
        keeps_attached: Whether to include the attached objects of the message; if False, they are
            ignored, and a note says so.

    Raises:
        RequestError: If the numbers of names and positions differ, if a position is not finite or
            outside +-`MAX_POSE_COORDINATE`, or if the attached objects are too large.
    """
    notes, given = [], robot_state.joint_state
    if len(given.name) != len(given.position):
        raise RequestError(
            Code.INVALID_ROBOT_STATE,
            f"robot_state has {len(given.name)} joint names and {len(given.position)} positions; "
            "give one position for each name, or no names and positions for the current state",
        )
    pairs = zip(given.name, given.position, strict=True)
    positions = {name: value for name, value in pairs if name in tree.mimic_of}
    for name, value in positions.items():
        if not abs(value) <= MAX_POSE_COORDINATE:
            raise RequestError(
                Code.INVALID_ROBOT_STATE,
                f"the position of joint {name!r} in robot_state must be from "
                f"{-MAX_POSE_COORDINATE:g} to {MAX_POSE_COORDINATE:g}; got {value}",
            )
    if len(positions) < len(given.name):
        unknown = [name for name in given.name if name not in tree.joint]
        if unknown:
            notes.append(
                f"unknown joints in robot_state are ignored: {listing(map(quoted, unknown), 3)}"
            )
    if robot_state.multi_dof_joint_state.joint_names:
        notes.append("joints with several degrees of freedom are ignored")
    attached = tuple(robot_state.attached_collision_objects)
    if not attached:
        return GivenState(positions, tuple(notes))
    if not keeps_attached:
        notes.append("attached objects are ignored")
        return GivenState(positions, tuple(notes))
    size = sum(len(serialize_message(each)) for each in attached)
    if size > MAX_ATTACHED_BYTES:
        raise RequestError(
            Code.INVALID_ROBOT_STATE,
            f"attached objects of a request may have at most {MAX_ATTACHED_BYTES} bytes; got "
            f"{size}; attach large objects by the topic attached_collision_object",
        )
    return GivenState(positions, tuple(notes), attached, robot_state.is_diff)


def driven_joints(tree: Tree) -> list[str]:
    """Return the names of all movable joints with one degree of freedom, in URDF order."""
    return [joint.name for joint in tree.joints if joint.name in tree.mimic_of]


def is_moved(tree: Tree, link: str, joint_names: Sequence[str]) -> bool:
    """Return whether any of the named joints moves a link, directly or through mimic joints."""
    mimics = (tree.mimic_of.get(joint.name) for joint in tree.path(tree.root, link))
    return any(m is not None and m.multiplier and m.master in joint_names for m in mimics)


class RobotContext(NamedTuple):
    """Arm in the state of a request: joint positions, lookup of frames, and scene."""

    arm: Arm
    frames: Frames
    values: Mapping[str, float]  # joint positions by name [rad or m]
    scene: PlanningScene | None = None  # scene in this state; None: no collision check

    def link_pose(self, link: str, base: str) -> Array:
        """Return the pose ``T_base_link`` (4, 4) of a link in the state of the request."""
        tree, values = self.arm.tree, self.values
        return base_from_root(tree.pose(link, values), tree, base, values)

    def pose_in_base(self, stamped: Any, base: str) -> Array:
        """Return a ``geometry_msgs/PoseStamped`` as a pose ``T_base_pose`` (4, 4).

        Frames are looked up by :meth:`dls_ik.ros.frames.Frames.pose_in_base`.

        Raises:
            FrameError: If the frame is unknown.
            PoseError: If the pose is not valid.
        """
        return self.frames.pose_in_base(stamped, self.arm.tree, base, self.values, at_stamp=True)


class IkProblem(NamedTuple):
    """IK problem of a request: a solver, a target for each of its k tips, and a seed."""

    solver: IkSolver
    targets: Array  # (k, 4, 4) T_base_tip [m]
    seed: Array  # (n,) start configuration [rad or m]
    attachments: tuple[TipAttachment | None, ...]  # (k,) attachments of tips to requested links
    links: tuple[str, ...]  # requested links; a single empty name means the tip


def build_problem(request: IkRequest, context: RobotContext) -> IkProblem:
    """Return the IK problem of a request, without the constraints of the request.

    Raises:
        RequestError: If a link is unknown, or is not moved by the chain.
        FrameError: If a frame is unknown.
        PoseError: If a pose is not valid.
    """
    arm = request.arm
    solver, attachments = arm.ik_chain(request.group, request.links)
    robot = solver.robot

    def target(tip: str, attachment: TipAttachment | None) -> Array:
        if attachment is None:
            return context.link_pose(tip, robot.base)
        T_base_link = context.pose_in_base(request.poses[attachment.link_index], robot.base)
        return T_base_link @ attachment.T_link_tip

    targets = [target(*pair) for pair in zip(robot.tips, attachments, strict=True)]
    complete = arm.tree.values(context.values)
    seed = np.array([complete[name] for name in robot.joint_names], np.float64)
    return IkProblem(solver, np.array(targets), seed, attachments, request.links)
