# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Operations that change a planning scene, independent of the format of messages and files.

The planning frame is the frame of the robot's root link.
"""

from collections.abc import Mapping
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.scene.shapes import Shape
from dls_ik.scene.srdf import Pair

Parts = tuple[tuple[Shape, Array], ...]  # shapes with their poses T_object_shape (4, 4)


class AddObject(NamedTuple):
    """Add an object to the world, or replace or extend the object of the same name."""

    name: str
    parts: Parts
    frame: str  # frame of the pose T; "" is the planning frame
    T: Array  # (4, 4) T_frame_object
    subframes: Mapping[str, Array]  # T_object_subframe (4, 4) by name
    appends: bool  # whether to add the shapes to an existing object instead of replacing it


class MoveObject(NamedTuple):
    """Set the pose of an object of the world."""

    name: str
    frame: str  # frame of the pose T; "" is the planning frame
    T: Array  # (4, 4) T_frame_object


class RemoveObject(NamedTuple):
    """Remove an object of the world; the operation has no effect if the object does not exist."""

    name: str  # "" stands for all objects


class AttachObject(NamedTuple):
    """Attach an object to a link of the robot, so that it moves with the link."""

    name: str
    link: str  # link that carries the object
    parts: Parts  # () stands for the shapes of the world's object of the same name
    frame: str  # frame of the pose T
    T: Array  # (4, 4) T_frame_object
    touch_links: tuple[str, ...]  # links, other than `link`, that the object may touch
    appends: bool  # whether to add the shapes to an attached object instead of replacing it


class DetachObject(NamedTuple):
    """Move an attached object into the world at its current pose.

    The operation has no effect if the object is not attached to the link.
    """

    name: str  # "" stands for all objects attached to the link
    link: str  # "" stands for any link


class RemoveAttached(NamedTuple):
    """Remove all objects that are attached to links."""


class ReplaceAllowed(NamedTuple):
    """Replace the rules about which links and objects may touch."""

    pairs: Mapping[Pair, bool]  # whether each pair may touch
    defaults: Mapping[str, bool]  # whether a link or object may touch all others, by name


class ResetAllowed(NamedTuple):
    """Restore the rules about which links may touch to those of the robot, such as its SRDF."""


class SetPadding(NamedTuple):
    """Set the padding, a distance by which the shapes of a link are enlarged on all sides."""

    values: Mapping[str, float]  # padding by link [m]


class SetScale(NamedTuple):
    """Set the factors by which the shapes of links are scaled about their origins."""

    values: Mapping[str, float]  # factor by link


class SetJoints(NamedTuple):
    """Set positions of joints of the robot."""

    values: Mapping[str, float]  # position by joint [rad or m]


class SetFrame(NamedTuple):
    """Define a frame with a fixed pose in the world, computed from the pose in a parent frame."""

    name: str  # name of the new frame
    parent: str  # name of the parent frame; "" is the root link
    T: Array  # (4, 4) T_parent_name, pose of the new frame in the parent frame


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
    """Operations that are applied together: if one of them is not possible, none is applied."""

    operations: tuple[Operation, ...]
    notes: tuple[str, ...] = ()  # a line of text for each part of the source without effect
    source: str = ""  # prefix of error messages: the name of a file and a colon
