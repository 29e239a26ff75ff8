# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Changes of a planning scene, independent of the message or file that they come from."""

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
    frame: str  # frame of the pose; "" stands for the planning frame
    T: Array  # (4, 4) T_frame_object
    subframes: Mapping[str, Array]  # T_object_subframe (4, 4) by name
    appends: bool  # whether an existing object is extended instead of replaced


class MoveObject(NamedTuple):
    """Move an object of the world."""

    name: str
    frame: str
    T: Array  # (4, 4) T_frame_object


class RemoveObject(NamedTuple):
    """Remove an object of the world, if it exists."""

    name: str  # "" stands for all objects


class AttachObject(NamedTuple):
    """Attach an object to a link."""

    name: str
    link: str
    parts: Parts  # () stands for the shapes of the object in the world
    frame: str  # frame of the pose
    T: Array  # (4, 4) T_frame_object
    touch_links: tuple[str, ...]
    appends: bool


class DetachObject(NamedTuple):
    """Put an attached object back into the world at its current pose, if it is attached."""

    name: str  # "" stands for all objects of the link
    link: str  # "" stands for any link


class RemoveAttached(NamedTuple):
    """Remove all attached objects."""


class ReplaceAllowed(NamedTuple):
    """Replace the pairs that may touch."""

    pairs: Mapping[Pair, bool]
    defaults: Mapping[str, bool]  # values by name for pairs not in `pairs`


class ResetAllowed(NamedTuple):
    """Restore the pairs that may touch to those of the robot."""


class SetPadding(NamedTuple):
    """Enlarge the shapes of links."""

    values: Mapping[str, float]  # padding by link [m]


class SetScale(NamedTuple):
    """Scale the shapes of links."""

    values: Mapping[str, float]  # factor by link


class SetJoints(NamedTuple):
    """Set joint positions."""

    values: Mapping[str, float]  # position by joint [rad or m]


class SetFrame(NamedTuple):
    """Define a fixed frame."""

    name: str
    parent: str  # parent frame; "" stands for the root link
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
    """Changes that are applied as a whole or not at all."""

    operations: tuple[Operation, ...]
    notes: tuple[str, ...] = ()  # one line for each part that is ignored
    source: str = ""  # prefix of messages: the name of a file and a colon
