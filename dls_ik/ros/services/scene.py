# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Responses of ``check_state_validity`` and ``get_planning_scene``, and scenes in given states."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, TransformStamped, Vector3
from moveit_msgs.msg import (
    AllowedCollisionEntry,
    AttachedCollisionObject,
    CollisionObject,
    ConstraintEvalResult,
    ContactInformation,
    LinkPadding,
    LinkScale,
    PlanningSceneComponents,
)
from moveit_msgs.srv import GetPlanningScene, GetStateValidity
from shape_msgs.msg import Mesh, MeshTriangle, Plane, SolidPrimitive

from dls_ik.core.types import Array
from dls_ik.errors import Code, RequestError, SceneError
from dls_ik.model.joint import TURN
from dls_ik.model.robot import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.services.constraints import (
    REGION_TOLERANCE,
    LinkBound,
    orientation_bound,
    position_bound,
    read_interval,
    rotation_angles,
)
from dls_ik.ros.services.request import RobotContext, is_moved, read_state
from dls_ik.ros.services.scene_frames import resolve_frames
from dls_ik.ros.services.whole_scene import ALL_COMPONENTS
from dls_ik.scene.changes import apply_changes
from dls_ik.scene.messages import read_messages
from dls_ik.scene.operations import Operation, RemoveAttached
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.scene_message import scene_fields
from dls_ik.scene.snapshot import Contact, SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.scene.weak_memo import kept_with_owner

MAX_REPORTED_CONTACTS = 1000  # maximum number of contacts per response
LIST_ITEMS: Mapping[str, Any] = {  # types of list items by name of the message field
    "attached_collision_objects": AttachedCollisionObject,
    "collision_objects": CollisionObject,
    "primitives": SolidPrimitive,
    "primitive_poses": Pose,
    "meshes": Mesh,
    "mesh_poses": Pose,
    "planes": Plane,
    "plane_poses": Pose,
    "subframe_poses": Pose,
    "triangles": MeshTriangle,
    "vertices": Point,
    "fixed_frame_transforms": TransformStamped,
    "entry_values": AllowedCollisionEntry,
    "link_padding": LinkPadding,
    "link_scale": LinkScale,
}
COMPONENTS = PlanningSceneComponents


# The scene in the state of a request


def scene_in_state(
    scene: PlanningScene, robot: RobotModel, context: RobotContext, attached: "Attached"
) -> PlanningScene:
    """Return the current scene, changed to the robot state of a request.

    Joints outside the chain get the positions of the state, and the attached objects of the request
    are added. The result is cached if the request has no attached objects.

    Args:
        scene: Current scene.
        robot: Robot of the chain for which the request is solved.
        context: Arm in the state of the request.
        attached: Attached objects of the request.

    Raises:
        RequestError: If an attached object is not valid.
        FrameError: If the frame of an attached object is unknown.
    """
    snapshot, names = scene.snapshot, robot.joint_names
    tree, values = snapshot.tree, context.values
    masters = {mimic.master for mimic in tree.mimic_of.values()}
    others = {
        name: value for name, value in values.items() if name in masters and name not in names
    }
    placed = _placed(snapshot, names, tuple(sorted(others.items())))
    messages, keeps = attached
    if messages:
        try:
            change = read_messages(list(messages))
            keep: list[Operation] = [] if keeps else [RemoveAttached()]
            operations = resolve_frames((*keep, *change.operations), placed, values, context.frames)
            known = {name: value for name, value in values.items() if name in tree.mimic_of}
            placed = apply_changes(placed, operations, scene.pairs, known)
        except SceneError as error:
            raise RequestError(Code.INVALID_ROBOT_STATE, f"attached objects: {error}") from error
    return scene.with_snapshot(placed)


# Attached objects of a request (moveit_msgs/AttachedCollisionObject), and whether the attached
# objects of the current scene are kept in addition.
Attached = tuple[Sequence[Any], bool]


@kept_with_owner
def _placed(
    scene: SceneSnapshot, joint_names: tuple[str, ...], others: tuple[tuple[str, float], ...]
) -> SceneSnapshot:
    return scene.with_state(joint_names, dict(others))


# check_state_validity


def answer_validity(
    request: Any,
    arm: Arm,
    scene: PlanningScene,
    current: Mapping[str, float],
    frames: Frames,
) -> Any:
    """Answer a ``check_state_validity`` request: check a state for collisions and constraints.

    Args:
        request: ``moveit_msgs/srv/GetStateValidity`` request. If it names a group, only collisions
            of links that the group moves are reported.
        arm: Arm in use.
        scene: Scene of the robot.
        current: Current joint positions by name [rad or m]; positions in the state of the request
            replace them.
        frames: Lookup of the frames of constraints.

    Returns:
        Response of the service.

    Raises:
        RequestError: If the group is unknown, or the state or a constraint is not valid.
        FrameError: If a frame is unknown.
    """
    tree, robot = arm.tree, arm.group(request.group_name).solver.robot
    state = read_state(tree, request.robot_state, keeps_attached=True)
    context = RobotContext(arm, frames, state.overlay(tree, current))
    attached = state.attached, state.keeps_attached
    snapshot = scene_in_state(scene, robot, context, attached).snapshot
    complete = tree.values(context.values)
    q = np.array([complete[name] for name in robot.joint_names])
    moved = moved_names(snapshot, robot) if request.group_name else None

    def is_relevant(names: Pair) -> bool:
        return moved is None or not moved.isdisjoint(names)

    # Contact points and depths need the collision library; without it, only pairs are known.
    found = [c for c in snapshot.contacts(q) if is_relevant(c.names)] if snapshot.exact else []
    touching = [] if snapshot.exact else list(filter(is_relevant, snapshot.touching_pairs(q)))
    is_free = not found and not touching
    results = constraint_results(request.constraints, context)
    response = GetStateValidity.Response()
    response.valid = is_free and all(each.result for each in results)
    response.contacts = [contact_message(snapshot, each) for each in found[:MAX_REPORTED_CONTACTS]]
    response.constraint_result = results
    return response


def moved_names(scene: SceneSnapshot, robot: RobotModel) -> set[str]:
    """Return the names of links that a chain moves, and of objects attached to these links.

    Args:
        scene: Scene with the attached objects.
        robot: Robot of the chain.
    """
    tree = scene.tree
    links = {link for link in tree.links if is_moved(tree, link, robot.joint_names)}
    return links | {name for name, each in scene.attached.items() if each.link in links}


def contact_message(scene: SceneSnapshot, contact: Contact) -> Any:
    """Return a contact as a ``moveit_msgs/ContactInformation`` message."""
    kinds = []
    for name in contact.names:
        if name in scene.tree.child_joints:
            kinds.append(ContactInformation.ROBOT_LINK)
        elif name in scene.attached:
            kinds.append(ContactInformation.ROBOT_ATTACHED)
        else:
            kinds.append(ContactInformation.WORLD_OBJECT)
    message = ContactInformation(
        position=Point(**dict(zip("xyz", contact.point.tolist(), strict=True))),
        normal=Vector3(**dict(zip("xyz", contact.normal.tolist(), strict=True))),
        depth=float(contact.depth),
        contact_body_1=contact.names[0],
        body_type_1=kinds[0],
        contact_body_2=contact.names[1],
        body_type_2=kinds[1],
    )
    message.header.frame_id = scene.tree.root
    return message


def constraint_results(given: Any, context: RobotContext) -> list[Any]:
    """Return a ``moveit_msgs/ConstraintEvalResult`` for each constraint, in the order of MoveIt.

    The order is: joint constraints, position constraints, orientation constraints. The `distance`
    of a result is the distance of a joint to the given position [rad or m], the distance of a point
    to the centre of the closest region [m], or the sum of the three angles between two orientations
    [rad], multiplied by the weight of the constraint.

    Args:
        given: ``moveit_msgs/Constraints``.
        context: Arm in the state to be checked.

    Raises:
        RequestError: If a constraint is not valid, or is a visibility constraint.
        FrameError: If a frame is unknown.
    """
    if given.visibility_constraints:
        raise RequestError(
            Code.INVALID_GOAL_CONSTRAINTS,
            "visibility constraints are not supported; give joint, position or orientation "
            "constraints",
        )
    root = context.arm.tree.root
    readers = (
        (position_bound, given.position_constraints),
        (orientation_bound, given.orientation_constraints),
    )
    on_links = [(read(each, context, root), each) for read, several in readers for each in several]
    return [
        *(_joint_result(each, context) for each in given.joint_constraints),
        *(_link_result(bound, each.weight, context) for bound, each in on_links),
    ]


def _joint_result(given: Any, context: RobotContext) -> Any:
    tree = context.arm.tree
    interval = read_interval(given, tree)
    deviation = tree.values(context.values)[interval.joint] - given.position
    if tree.joint[interval.joint].kind == "continuous":
        deviation = math.remainder(deviation, TURN)
    lower = -given.tolerance_below - REGION_TOLERANCE
    upper = given.tolerance_above + REGION_TOLERANCE
    is_within = lower <= deviation <= upper
    return ConstraintEvalResult(result=is_within, distance=abs(given.weight * deviation))


def _link_result(bound: LinkBound, weight: float, context: RobotContext) -> Any:
    T_link = context.link_pose(bound.link, context.arm.tree.root)
    T = T_link @ bound.T_link_point
    distances = [_distance(T, region.T_base_region, bound, region) for region in bound.regions]
    closest = min(distances, default=0.0)
    return ConstraintEvalResult(result=bool(bound.holds(T_link)), distance=abs(weight * closest))


def _distance(T: Array, T_region: Array, bound: LinkBound, region: Any) -> float:
    if not bound.is_orientation:
        return float(np.linalg.norm(T[:3, 3] - T_region[:3, 3]))
    R = T_region[:3, :3].T @ T[:3, :3]
    return float(np.abs(rotation_angles(R, region.task.angles)).sum())


# get_planning_scene


def answer_scene(request: Any, arm: Arm, scene: PlanningScene, current: Mapping[str, float]) -> Any:
    """Return the response to a ``get_planning_scene`` request, with the requested components.

    The scene has no octomap, and no colours and types of objects: these fields stay empty.

    Args:
        request: ``moveit_msgs/srv/GetPlanningScene`` request; 0 components mean all components.
        arm: Arm in use.
        scene: Current scene.
        current: Current joint positions by name [rad or m].
    """
    snapshot = scene.snapshot
    known = {name: value for name, value in current.items() if name in snapshot.tree.mimic_of}
    placed = snapshot.with_state(snapshot.joint_names, known)
    fields = scene_fields(placed, scene.robot.name)
    requested = request.components.components or ALL_COMPONENTS
    _remove_components(fields, requested)
    response = GetPlanningScene.Response()
    fill_message(response.scene, fields)
    state = response.scene.robot_state
    if requested & (COMPONENTS.ROBOT_STATE | COMPONENTS.ROBOT_STATE_ATTACHED_OBJECTS):
        state.joint_state.header.frame_id = snapshot.tree.root
    return response


def _remove_components(fields: dict[str, Any], requested: int) -> None:
    """Remove the fields of a scene message that are not requested.

    Args:
        fields: Fields of a ``moveit_msgs/PlanningScene`` by name; changed by this function.
        requested: Bits of ``moveit_msgs/PlanningSceneComponents``.
    """
    fields_of: Mapping[int, tuple[str, ...]] = {
        COMPONENTS.SCENE_SETTINGS: ("name", "robot_model_name"),
        COMPONENTS.ROBOT_STATE | COMPONENTS.ROBOT_STATE_ATTACHED_OBJECTS: ("robot_state",),
        COMPONENTS.TRANSFORMS: ("fixed_frame_transforms",),
        COMPONENTS.ALLOWED_COLLISION_MATRIX: ("allowed_collision_matrix",),
        COMPONENTS.LINK_PADDING_AND_SCALING: ("link_padding", "link_scale"),
        COMPONENTS.WORLD_OBJECT_NAMES | COMPONENTS.WORLD_OBJECT_GEOMETRY: ("world",),
    }
    for bits, names in fields_of.items():
        if not requested & bits:
            for name in names:
                del fields[name]
    if "robot_state" in fields and not requested & COMPONENTS.ROBOT_STATE_ATTACHED_OBJECTS:
        del fields["robot_state"]["attached_collision_objects"]
    if "world" in fields and not requested & COMPONENTS.WORLD_OBJECT_GEOMETRY:
        objects = fields["world"]["collision_objects"]
        fields["world"]["collision_objects"] = [{"id": each["id"]} for each in objects]


def fill_message(message: Any, fields: Mapping[str, Any]) -> Any:
    """Set the fields of a message from a mapping by field name; return the message.

    Mappings as values set the fields of nested messages.
    """
    for name, value in fields.items():
        if isinstance(value, Mapping):
            fill_message(getattr(message, name), value)
        elif name in LIST_ITEMS:
            setattr(message, name, [fill_message(LIST_ITEMS[name](), each) for each in value])
        else:
            setattr(message, name, value)
    return message
