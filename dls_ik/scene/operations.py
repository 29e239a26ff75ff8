# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Operations that change a planning scene, independent of the format of messages and files."""

from collections.abc import Mapping
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.scene.shapes import Shape
from dls_ik.scene.srdf import Pair

Parts = tuple[tuple[Shape, Array], ...]  # shapes, each with T_object_shape (4, 4)


class AddObject(NamedTuple):
    """Add an object to the world, or replace or extend the object of the same name."""

    name: str
    parts: Parts
    frame: str  # frame of the pose T; "" is the planning frame
    T: Array  # (4, 4) T_frame_object
    subframes: Mapping[str, Array]  # T_object_subframe (4, 4) by name
    appends: bool  # whether to add the shapes to an existing object instead of replacing it


class MoveObject(NamedTuple):
    """Move an object of the world."""

    name: str
    frame: str  # frame of the pose T; "" is the planning frame
    T: Array  # (4, 4) T_frame_object


class RemoveObject(NamedTuple):
    """Remove an object of the world, if it exists."""

    name: str  # "": all objects


class AttachObject(NamedTuple):
    """Attach an object to a link."""

    name: str
    link: str  # link that carries the object
    parts: Parts  # (): the shapes of the object of this name in the world
    frame: str  # frame of the pose T
    T: Array  # (4, 4) T_frame_object
    touch_links: tuple[str, ...]  # further links that the object may touch
    appends: bool  # whether to add the shapes to an attached object instead of replacing it


class DetachObject(NamedTuple):
    """Move an attached object into the world at its current pose; no effect if not attached."""

    name: str  # "": all objects attached to the link
    link: str  # "": any link


class RemoveAttached(NamedTuple):
    """Remove all attached objects."""


class ReplaceAllowed(NamedTuple):
    """Replace the rules about which links and objects may touch."""

    pairs: Mapping[Pair, bool]  # whether each pair may touch
    defaults: Mapping[str, bool]  # whether a link or object may touch all others


class ResetAllowed(NamedTuple):
    """Restore the pairs that may touch to the pairs given for the robot, for example by an SRDF."""


class SetPadding(NamedTuple):
    """Set the padding that enlarges the shapes of links."""

    values: Mapping[str, float]  # padding by link [m]


class SetScale(NamedTuple):
    """Set the factors by which the shapes of links are scaled."""

    values: Mapping[str, float]  # factor by link


class SetJoints(NamedTuple):
    """Set joint positions."""

    values: Mapping[str, float]  # position by joint [rad or m]


class SetFrame(NamedTuple):
    """Define a frame that is fixed in its parent frame."""

    name: str
    parent: str  # parent frame; "" is the root link
    T: Array  # (4, 4) T_parent_name


Operation = (
    AddObject
    | MoveObject
    | RemoveObject
    | AttachObject
    | DetachObject
    | RemoveAttached
    | ReplaceAllowed
    | ResetAllowed
    | SetPadding
    | SetScale
    | SetJoints
    | SetFrame
)


class SceneChange(NamedTuple):
    """Operations of which either all or none are applied."""

    operations: tuple[Operation, ...]
    notes: tuple[str, ...] = ()  # one line for each ignored part of the source
    source: str = ""  # prefix of error messages: the name of a file and a colon
