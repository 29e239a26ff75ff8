# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Readers and writers of scene files: YAML of MoveIt messages, and MoveIt's ``.scene`` format."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import PoseError, SceneError
from dls_ik.model.files import read_file
from dls_ik.model.rotations import quaternion_from_rotation, rotation_from_quaternion, transform
from dls_ik.scene.collada import MAX_TRIANGLES
from dls_ik.scene.message_fields import PRIMITIVE_CONE, read_primitive
from dls_ik.scene.messages import read_messages
from dls_ik.scene.operations import AddObject, RemoveObject, SceneChange
from dls_ik.scene.shape_table import MESSAGE_KINDS, ShapeKind, kind_of, moveit_parts, sizes_of
from dls_ik.scene.shapes import Body, Mesh, MeshLibrary, Plane, Shape, checked_pose
from dls_ik.text import listing, quoted

MAX_SCENE_BYTES = 64 * 1024 * 1024
MAX_YAML_BYTES = 16 * 1024 * 1024
MAX_NESTING = 30  # maximum nesting depth of lists and mappings in YAML
TEXT_SOURCE = "the text"  # name for a source that is not a file, in error messages
SCENE_SUFFIXES = (".scene", ".yaml", ".yml", ".json")


def read_scene(
    source: Any,
    *,
    folder: str | os.PathLike[str] | None = None,
    allow: Iterable[str | os.PathLike[str]] = (),
) -> SceneChange:
    """Read a scene or a change of a scene; the source need not be trusted.

    Args:
        source: Path of a file (``.scene``, or YAML with one or more documents); text of such a
            file; a message moveit_msgs/PlanningScene, PlanningSceneWorld, CollisionObject or
            AttachedCollisionObject; a mapping with the same fields as a message; or a sequence of
            messages or mappings.
        folder: Folder to which relative paths of mesh files refer. None stands for the folder of
            the file; if the source is not a file, the folder is unknown in this case.
        allow: Folders from which meshes may be read, in addition to `folder` and ROS packages.

    Raises:
        SceneError: If the file cannot be read, or the scene is not valid; the message names the
            object or the line.
    """
    where = None if folder is None else Path(folder)
    if not isinstance(source, (str, os.PathLike)):
        return read_messages(source, MeshLibrary(where, tuple(allow)))
    shown = TEXT_SOURCE
    if not (isinstance(source, str) and "\n" in source):
        path, shown = Path(source), quoted(os.fspath(source))
        if path.suffix.lower() not in SCENE_SUFFIXES:
            raise SceneError(
                f"{shown} is not a scene file; valid endings: {listing(SCENE_SUFFIXES)}"
            )
        where = path.parent if where is None else where
        try:
            source = read_file(path, MAX_SCENE_BYTES).decode("utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            raise SceneError(f"cannot read {shown}: {reason}") from error
    try:
        change = _read_text(source, MeshLibrary(where, tuple(allow)))
    except SceneError as error:
        raise SceneError(f"{shown}: {error}") from error
    return change._replace(source="" if shown == TEXT_SOURCE else f"{shown}: ")


def _read_text(text: str, meshes: MeshLibrary) -> SceneChange:
    """Return the change that a text in the ``.scene`` format or in YAML describes.

    Args:
        text: Text.
        meshes: Reader of the mesh files that the text names.

    Raises:
        SceneError: If the text is empty, or does not describe a scene.
    """
    if not text.strip():
        raise SceneError("it is empty")
    if _is_scene_text(text):
        return read_scene_text(text)
    documents = [each for each in read_yaml(text) if each is not None]
    if not documents:
        raise SceneError("it has no document")
    return read_messages(documents, meshes)


# YAML


def read_yaml(text: str) -> Iterator[Any]:
    """Yield the documents of a YAML text as Python objects.

    A document consists of mappings, lists, strings, numbers, booleans and nulls.

    Raises:
        SceneError: If the text is not YAML, is too long, has anchors, aliases or tags, or is nested
            too deep; the message gives the line.
    """
    import yaml

    if len(text) > MAX_YAML_BYTES:
        raise SceneError(f"the YAML text is longer than {MAX_YAML_BYTES} characters")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from _documents(yaml.parse(text, Loader=loader))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        reason = getattr(error, "problem", None) or str(error)
        there = "" if mark is None else "".join(text.splitlines()[mark.line : mark.line + 1])
        if there.lstrip(" ").startswith("\t"):
            reason = "it is indented by tabs; use spaces"
        raise SceneError(f"{line}not YAML: {' '.join(str(reason).split())}") from error


def _documents(events: Iterable[Any]) -> Iterator[Any]:
    """Yield the documents that the events of a YAML parser describe, as Python objects.

    Raises:
        SceneError: If the document has an anchor, an alias, a tag, a key that is repeated or not a
            scalar, or is nested too deep.
    """
    # Mappings and lists whose end has not been read, from the outermost inward. The list with each
    # of them holds the key whose value has not been read, if any.
    open_ones: list[tuple[Any, list[Any]]] = []
    for event in events:
        kind = type(event).__name__
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None:
            raise SceneError(f"line {line}: anchors and aliases are not supported")
        if getattr(event, "tag", None) not in (None, "!"):
            raise SceneError(f"line {line}: tags such as {quoted(event.tag)} are not supported")
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if len(open_ones) >= MAX_NESTING:
                raise SceneError(f"line {line}: nested deeper than {MAX_NESTING} levels")
            open_ones.append(({} if kind.startswith("M") else [], []))
            continue
        if kind == "ScalarEvent":
            value = _scalar(event.value) if event.implicit[0] else event.value
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            value, _ = open_ones.pop()
        else:
            continue
        if not open_ones:
            yield value
            continue
        container, keys = open_ones[-1]
        if isinstance(container, list):
            container.append(value)
        elif keys:
            container[keys.pop()] = value
        elif isinstance(value, (dict, list)) or value in container:
            raise SceneError(f"line {line}: not a key, or a repeated key: {quoted(value, 60)}")
        else:
            keys.append(value)


YAML_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "true": True, "false": False,
    ".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf, ".nan": math.nan,
}  # fmt: skip


def _scalar(word: str) -> Any:
    """Return the value of an unquoted YAML scalar: a number, boolean, null or string."""
    if word.lower() in YAML_WORDS:
        return YAML_WORDS[word.lower()]
    if word[:1] not in "+-.0123456789" or "_" in word:
        return word
    is_integer = word.lstrip("+-").isdigit()
    try:
        return int(word) if is_integer else float(word)
    except ValueError:
        return word


# MoveIt's .scene format


def _is_scene_text(text: str) -> bool:
    """Return whether a text has MoveIt's ``.scene`` format.

    In this format, the first line that is not empty after line 1 starts an object (``* NAME``) or
    ends the file (``.``).
    """
    lines = (line.strip() for line in text.splitlines()[1:])
    first = next((line for line in lines if line), "")
    return first == "." or first.startswith("* ")


class _Words:
    """Reader that returns the words of a text in ``.scene`` format one after another."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.at = 0  # index of the next line
        self.words: list[str] = []  # unread words of the current line, in reverse order

    def word(self) -> str:
        """Return the next word.

        Raises:
            SceneError: If there are no more words.
        """
        while not self.words:
            if self.at == len(self.lines):
                raise self.error("the text ends without a final '.'")
            self.words = self.lines[self.at].split()[::-1]
            self.at += 1
        return self.words.pop()

    def rest(self) -> str:
        """Return the remaining words of the current line, which form the name of an object.

        Raises:
            SceneError: If there is no name, or the name is not printable.
        """
        name = " ".join(reversed(self.words))
        self.words = []
        if not name or not name.isprintable():
            raise self.error(f"the name of an object must be printable; got {quoted(name)}")
        return name

    def numbers(self, count: int) -> list[float]:
        """Return the next `count` words as numbers.

        Raises:
            SceneError: If a word is not a number.
        """
        words = [self.word() for _ in range(count)]
        try:
            return [float(word) for word in words]
        except ValueError:
            raise self.error(f"expected {count} numbers; got {quoted(' '.join(words))}") from None

    def count(self) -> int:
        """Return the next word as an integer of at least 0 with at most 7 digits.

        Raises:
            SceneError: If the word is not an integer in this range.
        """
        word = self.word()
        if not (word.isascii() and word.isdigit() and len(word) < 8):
            raise self.error(f"expected a count; got {quoted(word)}")
        return int(word)

    def pose(self) -> Array:
        """Return the pose (4, 4) [m] that the next seven words describe.

        The words are a position x y z and a quaternion x y z w.

        Raises:
            SceneError: If the words are not numbers, or the numbers are not a valid pose.
        """
        values = self.numbers(7)
        try:
            T = transform(rotation_from_quaternion(values[3:]), np.array(values[:3]))
            return checked_pose(T, "the pose")
        except (PoseError, SceneError) as error:
            raise self.error(str(error)) from None

    def error(self, message: str) -> SceneError:
        """Return an error with a message and the number of the current line."""
        return SceneError(f"line {self.at}: {message}")


def read_scene_text(text: str) -> SceneChange:
    """Read a text in the older or newer version of MoveIt's ``.scene`` format.

    Only the newer version has poses and subframes of objects. Colours are ignored.

    Returns:
        A change that replaces all objects of the world by those in the text.

    Raises:
        SceneError: If the text has another format, or a shape is not valid; the message gives the
            line.
    """
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if i and line.startswith("*")), None)
    # The name of an object is followed by a pose (newer version) or by a count (older version).
    has_poses = first is not None and len(lines) > first + 1 and " " in lines[first + 1].strip()
    words = _Words(text)
    words.at = 1  # the first line is the name of the scene
    operations: list[Any] = [RemoveObject("")]
    names: set[str] = set()
    while (marker := words.word()) == "*":
        name = words.rest()
        T = words.pose() if has_poses else np.eye(4)
        parts = []
        for _ in range(words.count()):
            shape = _shape_of_text(words)
            parts.append((shape, words.pose()))
            words.numbers(4)  # colour
        frames = {words.word(): words.pose() for _ in range(words.count())} if has_poses else {}
        if not parts:
            raise words.error(f"object {quoted(name)} has no shapes")
        operations.append(AddObject(name, tuple(parts), "", T, frames, name in names))
        names.add(name)
    if marker != ".":
        raise words.error(f"expected '* NAME' or '.'; got {quoted(marker)}")
    return SceneChange(tuple(operations))


def _shape_of_text(words: _Words) -> Shape:
    """Read the next words of a ``.scene`` text as a shape, and return the shape.

    Raises:
        SceneError: If the shape is unknown or not valid.
    """
    kind = words.word()
    readers: dict[str, Callable[[], Shape]] = {
        **{kind.name: partial(_shape_of_sizes, kind, words) for kind in MESSAGE_KINDS.values()},
        "cone": lambda: read_primitive(
            {"type": PRIMITIVE_CONE, "dimensions": words.numbers(2)[::-1]}
        ),
        "plane": lambda: _plane_of_text(words),
        "mesh": lambda: _mesh_of_text(words),
    }
    if kind not in readers:
        raise words.error(f"unknown shape {quoted(kind)}; known shapes: {listing(readers)}")
    try:
        return readers[kind]()
    except SceneError as error:
        raise error if str(error).startswith("line ") else words.error(str(error)) from None


def _shape_of_sizes(kind: ShapeKind, words: _Words) -> Shape:
    """Read the next words of a ``.scene`` text as the sizes of a shape, and return the shape."""
    return kind.make(*words.numbers(len(kind.sizes)))


def _plane_of_text(words: _Words) -> Plane:
    """Read the next words of a ``.scene`` text as a plane, and return the plane.

    The words are the coefficients a, b, c, d of the plane a x + b y + c z + d = 0.
    """
    a, b, c, d = words.numbers(4)
    length = math.hypot(a, b, c)
    return Plane(np.array([a, b, c]), -d / length if length > 0.0 else 0.0)


def _mesh_of_text(words: _Words) -> Mesh:
    """Read the next words of a ``.scene`` text as a mesh, and return the mesh.

    Raises:
        SceneError: If the mesh is not valid.
    """
    vertices, triangles = words.count(), words.count()
    if max(vertices // 3, triangles) > MAX_TRIANGLES:
        raise words.error(
            f"a mesh may have at most {MAX_TRIANGLES} triangles and {3 * MAX_TRIANGLES} vertices"
        )
    points = np.reshape(words.numbers(3 * vertices), (-1, 3))
    corners = np.reshape([words.count() for _ in range(3 * triangles)], (-1, 3))
    return Mesh(points, corners)


# Writer of MoveIt's .scene format


def scene_text(
    objects: Mapping[str, tuple[Body, Array] | tuple[Body, Array, Mapping[str, Array]]],
    name: str = "scene",
    has_poses: bool = True,
) -> str:
    """Return the objects of the world as text in MoveIt's ``.scene`` format.

    Args:
        objects: For each object, by its name: the body, ``T_root_body`` (4, 4), and optionally a
            mapping from subframe names to ``T_body_subframe`` (4, 4).
        name: Name of the scene.
        has_poses: Whether to write the newer format, with poses and subframes of objects. If False,
            the format is that of versions before MoveIt 1.1 and MoveIt 2.

    Raises:
        SceneError: If the name of a subframe is not a single word, or a shape is not supported.
    """
    lines = [" ".join(name.split()) or "scene"]
    for key, (body, T, *rest) in objects.items():
        lines += [f"* {key}", *(_pose_lines(T) if has_poses else [])]
        parts = [part for each in body.parts for part in moveit_parts(*each)]
        lines.append(str(len(parts)))
        for shape, T_part in parts:
            lines += [*_shape_lines(shape), *_pose_lines(T_part if has_poses else T @ T_part)]
            lines.append("0 0 0 0")
        subframes = rest[0] if rest else {}
        lines += [str(len(subframes))] if has_poses else []
        for frame, T_frame in subframes.items() if has_poses else ():
            if len(frame.split()) != 1:
                raise SceneError(
                    f"object {quoted(key)}: the name of subframe {quoted(frame)} must be one word"
                )
            lines += [frame, *_pose_lines(T_frame)]
    return "\n".join([*lines, ".", ""])


def _row(values: Iterable[float]) -> str:
    """Return numbers as text in full precision, separated by spaces."""
    return " ".join(repr(float(value)) for value in values)


def _pose_lines(T: Array) -> list[str]:
    """Return a pose (4, 4) as two lines of text: position x y z, and quaternion x y z w."""
    return [_row(T[:3, 3]), _row(quaternion_from_rotation(T[:3, :3]))]


def _shape_lines(shape: Shape) -> list[str]:
    """Return the lines of text that describe a shape in MoveIt's ``.scene`` format.

    Raises:
        SceneError: If the format does not support the shape.
    """
    if isinstance(shape, Plane):
        return ["plane", _row([*shape.normal, -shape.offset])]
    if isinstance(shape, Mesh):
        lines = ["mesh", f"{len(shape.vertices)} {len(shape.triangles)}"]
        lines += [_row(vertex) for vertex in shape.vertices]
        return lines + [" ".join(map(str, corners)) for corners in shape.triangles.tolist()]
    kind = kind_of(shape)
    if kind.primitive is None:
        raise SceneError(f"a {type(shape).__name__} cannot be written")  # the caller splits it
    return [kind.name, _row(sizes_of(shape))]
