# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Functions that apply changes to a snapshot of a planning scene and return a new snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.model.rotations import inverse
from dls_ik.scene.message_fields import checked_name
from dls_ik.scene.operations import (
    AddObject,
    AttachObject,
    DetachObject,
    MoveObject,
    Operation,
    RemoveAttached,
    RemoveObject,
    ReplaceAllowed,
    ResetAllowed,
    SceneChange,
    SetFrame,
    SetJoints,
    SetPadding,
    SetScale,
)
from dls_ik.scene.shapes import Body, Plane
from dls_ik.scene.snapshot import AttachedBody, PlacedBody, SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.text import listing, quoted, suggest_names

MAX_PADDING = 10.0  # [m]
MIN_SCALE, MAX_SCALE = 0.01, 100.0
OBJECT_CHANGES = (AddObject, MoveObject, AttachObject)  # operations whose errors name the object


def apply_changes(
    snapshot: SceneSnapshot,
    operations: Iterable[Operation],
    pairs: Mapping[Pair, Any],
    at: Mapping[str, float] | None = None,
) -> SceneSnapshot:
    """Apply operations to a snapshot, and return the resulting new snapshot.

    Args:
        snapshot: Snapshot before the operations.
        operations: Operations, applied in order.
        pairs: Pairs of links that may touch by default; :class:`ResetAllowed` restores them.
        at: Joint positions by name [rad or m] at which the poses of links are computed. Joints that
            are missing have their positions in the snapshot.

    Raises:
        SceneError: If a link, object or frame is unknown, or a value is out of range.
        JointValueError: If a joint is unknown, or a position is not finite.
    """
    each: Operation | None = None
    try:
        for each in operations:
            snapshot = _apply(snapshot, each, pairs, at)
    except SceneError as error:
        raise SceneError(about_object(each, error)) from error
    return snapshot


def for_scene(change: SceneChange, now: SceneSnapshot) -> SceneChange:
    """Return a change without positions of unknown joints, and with notes on parts without effect.

    Unknown joints are those that the robot does not have. They are ignored, as in MoveIt, because a
    scene may describe a larger system than the robot. The notes of the returned change list the
    ignored joints, removals of objects that do not exist, and touch links that do not exist.

    Args:
        change: Change.
        now: Snapshot to which the change will be applied.
    """
    kept, notes = list[Operation](), dict.fromkeys(change.notes)
    objects, held = set(now.objects), set(now.attached)
    for given in change.operations:
        each: Operation = given
        match each:
            case SetJoints(values):
                if others := [name for name in values if name not in now.tree.joint]:
                    joints = f"the robot has no joint {listing(others)}"
                    notes[f"robot_state: {joints}; ignored"] = None
                    each = SetJoints({k: v for k, v in values.items() if k not in others})
            case AddObject(name):
                objects.add(name)
            case RemoveObject(name):
                if name and name not in objects:
                    known = listing(sorted(objects))
                    notes[f"no object {quoted(name)} to remove; known: {known}"] = None
                objects = objects - {name} if name else set()
            case AttachObject(name, touch_links=touch):
                objects.discard(name)
                held.add(name)
                if others := [other for other in touch if other not in now.tree.child_joints]:
                    notes[f"touch_links of {quoted(name)}: no link {listing(others)}"] = None
            case DetachObject(name):
                if name and name not in held:
                    known = listing(sorted(held))
                    notes[f"no attached object {quoted(name)} to detach; known: {known}"] = None
                objects |= {name} & held if name else held
                held = held - {name} if name else set()
            case RemoveAttached():
                held = set()
        kept.append(each)
    return change._replace(operations=tuple(kept), notes=tuple(notes))


def about_object(change: Operation | None, error: Exception) -> str:
    """Return the message of an error, with the name of the object that an operation changes.

    The name is added if the message does not contain it. If the operation does not change a single
    object, the message is unchanged.

    Args:
        change: Operation that caused the error.
        error: Error.
    """
    is_named = isinstance(change, OBJECT_CHANGES)
    name = quoted(getattr(change, "name", "")) if is_named else ""
    return str(error) if name in str(error) else f"object {name}: {error}"


def _apply(
    now: SceneSnapshot, change: Operation, pairs: Mapping[Pair, Any], at: Mapping[str, float] | None
) -> SceneSnapshot:
    """Apply a single operation to a snapshot, and return the resulting new snapshot.

    Args:
        now: Snapshot before the operation.
        change: Operation.
        pairs: Pairs of links that may touch by default.
        at: Joint positions by name [rad or m] that replace those of the snapshot for link poses.

    Raises:
        SceneError: If the operation is not possible.
        JointValueError: If a joint is unknown, or a position is not finite.
    """
    match change:
        case AddObject():
            return _add(now, change, at)
        case MoveObject(name, frame, T):
            before = known_object(now, name)
            moved = before._replace(T=frame_pose(now, frame, at) @ T)
            return replace(now, objects={**now.objects, name: moved})
        case RemoveObject(name):
            return replace(now, objects=_without(now.objects, name) if name else {})
        case AttachObject():
            return _attach(now, change, at)
        case DetachObject():
            return _detach(now, change, at)
        case RemoveAttached():
            return replace(now, attached={})
        case ReplaceAllowed(allowed, defaults):
            return replace(now, allowed=dict(allowed), passes=dict(defaults))
        case ResetAllowed():
            return replace(now, allowed=dict.fromkeys(pairs, True), passes={})
        case SetPadding(values):
            checked = _by_link(now, "padding", values, 0.0, MAX_PADDING)
            return replace(now, padding={**now.padding, **checked})
        case SetScale(values):
            checked = _by_link(now, "scale", values, MIN_SCALE, MAX_SCALE)
            return replace(now, scale={**now.scale, **checked})
        case SetJoints(values):
            merged = {**now.values, **{name: float(value) for name, value in values.items()}}
            now.tree.values(merged)
            return replace(now, values=merged)
        case SetFrame(name, parent, T):
            return replace(now, frames={**now.frames, name: frame_pose(now, parent, at) @ T})


def _add(now: SceneSnapshot, change: AddObject, at: Mapping[str, float] | None) -> SceneSnapshot:
    """Return a snapshot in which an object of the world is added, replaced or extended.

    Args:
        now: Snapshot before the operation.
        change: Operation.
        at: Joint positions by name [rad or m] that replace those of the snapshot for link poses.

    Raises:
        SceneError: If the name is not valid or already used, or the frame is unknown.
    """
    name = change.name
    if not checked_name(name, "an object"):
        raise SceneError("the name of an object must not be empty")
    if name in now.tree.child_joints:
        raise SceneError(f"{quoted(name)} is a link of the robot; give the object another name")
    if name in now.attached:
        link = now.attached[name].link
        raise SceneError(f"object {quoted(name)} is attached to {quoted(link)}; detach it first")
    T, before = frame_pose(now, change.frame, at) @ change.T, now.objects.get(name)
    if change.appends and before is not None:
        offset = inverse(before.T) @ T
        parts = (*before.body.parts, *((shape, offset @ pose) for shape, pose in change.parts))
        frames = {key: offset @ pose for key, pose in change.subframes.items()}
        added = PlacedBody(Body(name, parts), before.T, {**before.subframes, **frames})
    else:
        added = PlacedBody(Body(name, change.parts), T, dict(change.subframes))
    return replace(now, objects={**now.objects, name: added})


def _attach(
    now: SceneSnapshot, change: AttachObject, at: Mapping[str, float] | None
) -> SceneSnapshot:
    """Return a snapshot in which an object is attached to a link.

    Args:
        now: Snapshot before the operation.
        change: Operation.
        at: Joint positions by name [rad or m] that replace those of the snapshot for link poses.

    Raises:
        SceneError: If the link or the object is unknown, the name of the object is the name of a
            link, or a shape is a plane.
    """
    name, link = change.name, change.link
    known_links(now, [link])
    if name in now.tree.child_joints:
        raise SceneError(f"{quoted(name)} is a link of the robot; give the object another name")
    T_link = frame_pose(now, link, at)
    held = now.attached.get(name)
    before = now.objects.get(name)
    if before is None and held is not None:
        before = PlacedBody(held.body, frame_pose(now, held.link, at) @ held.T)
    if change.parts:
        T = frame_pose(now, change.frame, at) @ change.T
        if change.appends and before is not None:
            offset = inverse(before.T) @ T
            parts = (*before.body.parts, *((shape, offset @ pose) for shape, pose in change.parts))
            T = before.T
        else:
            parts = change.parts
        body = Body(name, parts)
    else:
        body, T = (known_object(now, name) if before is None else before)[:2]
    if any(isinstance(shape, Plane) for shape, _ in body.parts):
        raise SceneError(f"{quoted(name)} has a plane, which is unbounded and cannot be attached")
    touch = frozenset(change.touch_links)  # unknown links are accepted, as in MoveIt
    carried = AttachedBody(body, link, inverse(T_link) @ T, touch)
    return replace(
        now,
        objects=_without(now.objects, name),
        attached={**now.attached, name: carried},
    )


def _detach(
    now: SceneSnapshot, change: DetachObject, at: Mapping[str, float] | None
) -> SceneSnapshot:
    """Return a snapshot in which attached objects are moved to the world at their current poses.

    Args:
        now: Snapshot before the operation.
        change: Operation with the name of the object and the name of the link; an empty name stands
            for all objects or all links.
        at: Joint positions by name [rad or m] that replace those of the snapshot for link poses.
    """
    objects, attached = dict(now.objects), dict(now.attached)
    for name, held in now.attached.items():
        if change.name in ("", name) and change.link in ("", held.link):
            objects[name] = PlacedBody(held.body, frame_pose(now, held.link, at) @ held.T)
            del attached[name]
    return replace(now, objects=objects, attached=attached)


def frame_pose(now: SceneSnapshot, frame: str, at: Mapping[str, float] | None = None) -> Array:
    """Return ``T_root_frame`` (4, 4) of a link, an object, a subframe or a fixed frame.

    Args:
        now: Snapshot.
        frame: Name of the frame; "" is the root link.
        at: Joint positions by name [rad or m] at which the poses of links are computed. Joints that
            are missing have their positions in the snapshot.

    Raises:
        SceneError: If the frame is unknown.
    """
    frame = frame.removeprefix("/")
    if frame in ("", now.tree.root):
        return np.eye(4)
    if frame in now.frames:
        return now.frames[frame]
    if frame in now.tree.child_joints:
        return now.tree.pose(frame, {**now.values, **(at or {})})
    if frame in now.objects:
        return now.objects[frame].T
    name, _, inner = frame.rpartition("/")
    if name in now.objects and inner in now.objects[name].subframes:
        placed = now.objects[name]
        return placed.T @ placed.subframes[inner]
    known = [*now.tree.links, *now.objects, *now.frames]
    raise SceneError(f"unknown frame {quoted(frame)}; {suggest_names([frame], known)}")


def known_object(now: SceneSnapshot, name: str) -> PlacedBody:
    """Return the object of the world that has a given name.

    Raises:
        SceneError: If there is no such object; the message suggests similar names.
    """
    if name not in now.objects:
        where = (
            f"; it is attached to {quoted(now.attached[name].link)}" if name in now.attached else ""
        )
        known = suggest_names([name], now.objects) if now.objects else "the world has no objects"
        hint = where or f"; {known}"
        raise SceneError(f"no object {quoted(name)} in the world{hint}")
    return now.objects[name]


def known_links(now: SceneSnapshot, links: Iterable[str]) -> None:
    """Check that the robot has all given links.

    Raises:
        SceneError: If a link does not exist.
    """
    for link in links:
        if link not in now.tree.child_joints:
            hint = suggest_names([link], now.tree.links)
            raise SceneError(f"unknown link {quoted(link)}; {hint}")


def _by_link(
    now: SceneSnapshot, what: str, values: Mapping[str, float], low: float, high: float
) -> dict[str, float]:
    """Check the links and the range of values by link, and return the values as floats.

    Args:
        now: Snapshot of the scene.
        what: Name of the quantity, such as ``padding``, for error messages.
        values: Values by link.
        low: Minimum valid value.
        high: Maximum valid value.

    Raises:
        SceneError: If a link is unknown, or a value is out of range.
    """
    try:
        known_links(now, values)
    except SceneError as error:
        raise SceneError(f"{what}: {error}") from error
    for link, value in values.items():
        if not (isinstance(value, (int, float, np.number)) and low <= value <= high):
            raise SceneError(
                f"the {what} of {quoted(link)} must be from {low:g} to {high:g}; got "
                f"{quoted(value)}"
            )
    return {link: float(value) for link, value in values.items()}


def _without(bodies: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a copy of a mapping of bodies by name, without the body `name`."""
    return {each: body for each, body in bodies.items() if each != name}
