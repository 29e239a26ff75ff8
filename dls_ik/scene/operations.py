"""Changes of a planning scene, whatever message or file they come from."""

from collections.abc import Mapping
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.scene.shapes import Shape
from dls_ik.scene.srdf import Pair

Parts = tuple[tuple[Shape, Array], ...]  # with (4, 4) T_object_shape each


class AddObject(NamedTuple):
    """An object of the world is added, in place of one of its name."""

    name: str
    parts: Parts
    frame: str  # of its pose; empty: the planning frame
    T: Array  # (4, 4) T_frame_object
    subframes: Mapping[str, Array]  # (4, 4) T_object_subframe by name
    appends: bool  # to the object of its name, where there is one


class MoveObject(NamedTuple):
    """An object of the world is moved."""

    name: str
    frame: str
    T: Array  # (4, 4) T_frame_object


class RemoveObject(NamedTuple):
    """An object of the world is removed, if it is there."""

    name: str  # empty: all


class AttachObject(NamedTuple):
    """A link carries an object from now on."""

    name: str
    link: str
    parts: Parts  # empty: those of the object of the world
    frame: str
    T: Array  # (4, 4) T_frame_object
    touch_links: tuple[str, ...]
    appends: bool


class DetachObject(NamedTuple):
    """An object is left in the world where it is, if a link carries it."""

    name: str  # empty: all that the link carries
    link: str  # empty: any


class RemoveAttached(NamedTuple):
    """All objects that links carry are removed."""


class ReplaceAllowed(NamedTuple):
    """The pairs that may touch are replaced."""

    pairs: Mapping[Pair, bool]
    defaults: Mapping[str, bool]  # by name, for pairs that are not named


class ResetAllowed(NamedTuple):
    """The pairs that may touch are those of the robot again."""


class SetPadding(NamedTuple):
    """Shapes of links are enlarged."""

    values: Mapping[str, float]  # [m] by link


class SetScale(NamedTuple):
    """Shapes of links are scaled."""

    values: Mapping[str, float]  # factors by link


class SetJoints(NamedTuple):
    """Joints stand elsewhere."""

    values: Mapping[str, float]  # [rad or m] by joint


class SetFrame(NamedTuple):
    """A frame is known by its pose."""

    name: str
    parent: str  # a frame; empty: the root link
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
    """Changes that are applied together or not at all."""

    operations: tuple[Operation, ...]
    notes: tuple[str, ...] = ()  # one line each: what was given and is not used
    source: str = ""  # of a file, its name and a colon, for messages
