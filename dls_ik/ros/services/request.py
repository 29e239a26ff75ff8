# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""IK requests, which are read and checked once, on arrival; the messages are never modified."""

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

MAX_HANDOVER_TIME = 0.005  # [s] allowed beyond a request's timeout, for the handover of threads
MIN_TIMEOUT = 1e-9  # [s]
MAX_REQUEST_BYTES = 256 * 1024  # size of a request; hundreds of requests may be queued
MAX_ATTACHED_BYTES = 1024 * 1024  # total size of the attached objects of a request
POSE_BYTES = 72  # size of a PoseStamped without the name of its frame
MAX_LINK_CONSTRAINTS = 16  # per request; each constraint adds a tip to the chain
MAX_JOINT_CONSTRAINTS = 256
NO_GEOMETRY_NOTE = (
    "nothing was checked for collisions: the robot description has no <collision> geometry"
)
APPROXIMATE_NOTE = (
    "shapes within a few mm count as colliding without the library coal: "
    "pip install 'dls_ik[collision]'"
)


class GivenState(NamedTuple):
    """The robot state of a request."""

    positions: dict[str, float]  # [rad or m], keys: joint names
    notes: tuple[str, ...]  # texts about ignored parts, for the message of the response
    attached: tuple[Any, ...] = ()  # moveit_msgs/AttachedCollisionObject
    keeps_attached: bool = True  # False: `attached` replaces the attached objects of the scene

    def overlay(self, tree: Tree, current: Mapping[str, float]) -> dict[str, float]:
        """Return the current joint positions by name, with the positions of this state instead.

        Joints without a position are left out. For them `tree` uses 0, or the limit closest to 0.
        """
        known = {name: value for name, value in current.items() if name in tree.mimic_of}
        return {**known, **self.positions}


class IkRequest(NamedTuple):
    """A ``moveit_msgs/PositionIKRequest``, and the arm that was in use when the request arrived.

    The numbers and sizes of links, poses and constraints are checked, but not their contents.
    """

    arm: Arm
    group: Group
    links: tuple[str, ...]  # (k,) requested links; a single empty name stands for the tip
    poses: tuple[Any, ...]  # (k,) geometry_msgs/PoseStamped
    state: GivenState
    constraints: Any  # moveit_msgs/Constraints
    is_constrained: bool
    scene: PlanningScene | None  # the answer must be collision-free in this scene; None: no check
    unchecked: str  # note that a requested collision check is impossible; empty: no note
    timeout: float  # [s]
    timeout_note: str  # note that the timeout was shortened to max_timeout; empty: no note
    arrival: float  # time of arrival by perf_counter [s]

    @property
    def deadline(self) -> float:
        """Latest time of the answer [s], on the clock of perf_counter."""
        return self.arrival + self.timeout + MAX_HANDOVER_TIME

    @property
    def age(self) -> float:
        """Time since the arrival of the request [s]."""
        return time.perf_counter() - self.arrival

    @property
    def remaining(self) -> float:
        """Remaining part of the timeout [s], at least MIN_TIMEOUT."""
        return max(self.timeout - self.age, MIN_TIMEOUT)


def no_scene(tree: Tree) -> PlanningScene:
    """Raise a SceneError, because there is no scene; the default of `find_scene`."""
    raise SceneError("there is no scene")


def read_ik_request(
    message: Any, arm: Arm, find_scene: Callable[[Tree], PlanningScene] = no_scene
) -> IkRequest:
    """Read a ``moveit_msgs/PositionIKRequest`` on its arrival.

    Args:
        message: The request.
        arm: Arm in use.
        find_scene: Returns the scene of a robot, or raises a SceneError with the reason why there
            is no scene. It is called only if the answer must be collision-free.

    Raises:
        RequestError: If the group is unknown, the timeout or the state is not valid, the numbers of
            links and poses differ, constraints are not supported, the request is too large, or the
            answer must be collision-free and there is no scene.
    """
    arrival = time.perf_counter()
    group = arm.group(message.group_name)
    asked = timeout_seconds(message.timeout, group.timeout)
    timeout = min(asked, arm.parameters.max_timeout)
    note = f"the timeout of {asked:g} s was cut to the parameter max_timeout, {timeout:g} s"
    constraints = message.constraints
    is_constrained = _count_constraints(constraints) > 0
    links, poses = _links_and_poses(message)
    _check_size((message.group_name, *links), poses, constraints, is_constrained)
    scene, unchecked = _scene(message, arm, find_scene)
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


def _scene(
    message: Any, arm: Arm, find_scene: Callable[[Tree], PlanningScene]
) -> tuple[PlanningScene | None, str]:
    """Return the scene for the collision check of a request, or None if no check is requested.

    The second return value is a note if the scene has nothing that can collide.

    Raises:
        RequestError: If the answer must be collision-free, and the scene is missing or pending.
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
    """Convert a ``builtin_interfaces/Duration`` to a timeout [s]; zero means the default.

    Raises:
        RequestError: If the timeout is below zero, or has nanoseconds of a second or more.
    """
    sec, nanosec = duration.sec, duration.nanosec
    if sec < 0 or nanosec >= NANOSECONDS_PER_SECOND:
        raise RequestError(
            Code.PLANNING_FAILED,
            f"timeout has sec = {sec} and nanosec = {nanosec}; valid are sec from 0 and nanosec "
            f"from 0 to {NANOSECONDS_PER_SECOND - 1}, and 0 for the default of {default:g} s",
        )
    return sec + 1e-9 * nanosec or default


def _links_and_poses(message: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the links and poses of a request; fields have the same precedence as in move_group."""
    poses, links = message.pose_stamped_vector, message.ik_link_names
    if not poses:
        return (strip_slash(message.ik_link_name),), (message.pose_stamped,)
    if len(poses) == 1:
        return (strip_slash(links[0]) if links else "",), tuple(poses)
    if len(poses) != len(links):
        raise RequestError(
            Code.INVALID_LINK_NAME,
            f"{len(poses)} poses need as many ik_link_names, given {len(links)}",
        )
    return tuple(map(strip_slash, links)), tuple(poses)


def _count_constraints(given: Any) -> int:
    """Return the number of constraints on links.

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
            f"joints are supported, not {links} and {joints}",
        )
    return links + joints


def _check_size(
    names: Sequence[str], poses: Sequence[Any], constraints: Any, is_constrained: bool
) -> None:
    size = sum(map(len, names)) + len(constraints.name)
    size += sum(POSE_BYTES + len(pose.header.frame_id) for pose in poses)
    if is_constrained:  # checked only here, as serialization takes 50 us
        size += len(serialize_message(constraints))
    if size > MAX_REQUEST_BYTES:
        message = f"the request has {size} bytes, more than {MAX_REQUEST_BYTES}"
        raise RequestError(Code.FAILURE, message)


def read_state(tree: Tree, robot_state: Any, keeps_attached: bool = False) -> GivenState:
    """Read the ``moveit_msgs/RobotState`` of a request.

    As in move_group, `is_diff` does not matter for joint positions. Unknown joints and fixed joints
    are ignored.

    Args:
        tree: Robot.
        robot_state: The message.
        keeps_attached: Whether to return the attached objects too. They replace the attached
            objects of the scene, unless `is_diff` of the message is True.

    Raises:
        RequestError: If the numbers of names and positions differ, if a position is not finite or
            beyond +-`MAX_POSE_COORDINATE`, or if the attached objects are too large.
    """
    notes, given = [], robot_state.joint_state
    if len(given.name) != len(given.position):
        raise RequestError(
            Code.INVALID_ROBOT_STATE,
            f"robot_state has {len(given.name)} joint names and {len(given.position)} positions; "
            "give one position for each name, or neither for the current state",
        )
    pairs = zip(given.name, given.position, strict=True)
    positions = {name: value for name, value in pairs if name in tree.mimic_of}
    for name, value in positions.items():
        if not abs(value) <= MAX_POSE_COORDINATE:
            raise RequestError(
                Code.INVALID_ROBOT_STATE,
                f"robot_state gives joint {name!r} the position {value}; valid are finite numbers "
                f"from {-MAX_POSE_COORDINATE:g} to {MAX_POSE_COORDINATE:g}",
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
            f"attached objects have {size} bytes, more than {MAX_ATTACHED_BYTES}; attach them by "
            "the topic attached_collision_object",
        )
    return GivenState(positions, tuple(notes), attached, robot_state.is_diff)


def driven_joints(tree: Tree) -> list[str]:
    """Return the names of all movable joints with one position, in the URDF's order."""
    return [joint.name for joint in tree.joints if joint.name in tree.mimic_of]


def is_moved(tree: Tree, link: str, joint_names: Sequence[str]) -> bool:
    """Return whether any of the named joints moves the link."""
    mimics = (tree.mimic_of.get(joint.name) for joint in tree.path(tree.root, link))
    return any(m is not None and m.multiplier and m.master in joint_names for m in mimics)


class RobotContext(NamedTuple):
    """An arm with its joint positions in the state of a request, and the frames of TF."""

    arm: Arm
    frames: Frames
    values: Mapping[str, float]  # joint positions by name [rad or m]
    scene: PlanningScene | None = None  # scene in this state; answers must be collision-free

    def link_pose(self, link: str, base: str) -> Array:
        """Return T_base_link (4, 4) in the state of the request."""
        tree, values = self.arm.tree, self.values
        return base_from_root(tree.pose(link, values), tree, base, values)

    def pose_in_base(self, stamped: Any, base: str) -> Array:
        """Return T_base_pose (4, 4) of a ``geometry_msgs/PoseStamped``; see `Frames.pose_in_base`.

        Raises:
            FrameError: If the frame is unknown.
            PoseError: If the pose is not valid.
        """
        return self.frames.pose_in_base(stamped, self.arm.tree, base, self.values, at_stamp=True)


class IkProblem(NamedTuple):
    """Input of a solver: a target for each of its k tips, and a seed."""

    solver: IkSolver
    targets: Array  # (k, 4, 4) T_base_tip [m]
    seed: Array  # (n,) [rad or m]
    attachments: tuple[TipAttachment | None, ...]  # (k,) attachments of tips to requested links
    links: tuple[str, ...]  # requested links; a single empty name stands for the tip


def build_problem(request: IkRequest, context: RobotContext) -> IkProblem:
    """Build the IK problem of a request, without its constraints.

    Raises:
        RequestError: If a link is not valid.
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
