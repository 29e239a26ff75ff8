# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Task stacks as YAML files, in which each task is a mapping with its kind and its fields."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dls_ik.errors import DlsIkError, OptionError
from dls_ik.model.files import read_file
from dls_ik.model.rotations import rotation_from_quaternion, rotation_from_rpy, transform
from dls_ik.solver.task import Task
from dls_ik.solver.task_stack import (
    CenterOfMassTask,
    CouplingTask,
    FrameTask,
    ObjectiveTask,
    PostureTask,
    StackTask,
    SwivelTask,
    TaskStack,
)
from dls_ik.text import did_you_mean, listing, quoted

MAX_STACK_BYTES = 2**20  # maximum size of a file
LEVELS_KEY, KIND_KEY = "levels", "kind"

Reader = Callable[[Any, str], Any]  # arguments: value, its place in the file


def load_stack(file: str | os.PathLike[str]) -> TaskStack:
    """Read a task stack from a YAML file.

    The file has one key, ``levels``: a list, the most important level first. A level is a task or a
    list of tasks. A task is a mapping with its ``kind``, a key of ``KINDS``, and the fields of the
    class of this kind, such as the angle of a :class:`dls_ik.SwivelTask`. Lengths are in [m],
    angles in [rad]. docs/redundancy.md has an example.

    Args:
        file: Path of the file.

    Raises:
        OptionError: If the file cannot be read, is not YAML, or does not describe a stack. The
            message names the file and the place in the file, such as ``levels[1].angle``.
    """
    try:
        text = read_file(Path(file), MAX_STACK_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise OptionError(f"cannot read the stack {os.fspath(file)}: {reason}") from error
    try:
        return parse_stack(_document(text))
    except DlsIkError as error:
        raise OptionError(f"{os.fspath(file)}: {error}") from error


def parse_stack(document: Any) -> TaskStack:
    """Return the task stack that a document describes.

    Args:
        document: Content of a file as for :func:`load_stack`: mappings, lists, strings, numbers.

    Raises:
        OptionError: If the document does not describe a stack; the message names the place.
    """
    if not isinstance(document, Mapping) or set(document) != {LEVELS_KEY}:
        given = listing(map(str, document)) if isinstance(document, Mapping) else quoted(document)
        raise OptionError(f"a stack must be a mapping with one key, {LEVELS_KEY!r}; got {given}")
    levels = document[LEVELS_KEY]
    if not isinstance(levels, list) or not levels:
        raise OptionError(f"{LEVELS_KEY} must be a list of tasks or lists; got {quoted(levels)}")
    return TaskStack(*(_level(each, f"{LEVELS_KEY}[{k}]") for k, each in enumerate(levels)))


def _document(text: str) -> Any:
    """Return the only document in a YAML text.

    Raises:
        OptionError: If there is not exactly one document.
        SceneError: If the text is not YAML, or has anchors, tags or repeated keys.
    """
    from dls_ik.scene.formats import read_yaml  # reads all formats of scenes; few calls need it

    documents = list(read_yaml(text))
    if len(documents) != 1:
        raise OptionError(f"the file must have one YAML document; got {len(documents)}")
    return documents[0]


def _level(given: Any, place: str) -> StackTask | list[StackTask]:
    """Return a level from its description.

    Raises:
        OptionError: If the description is not a task or a list of tasks.
    """
    if isinstance(given, list) and given:
        return [_task(each, f"{place}[{k}]") for k, each in enumerate(given)]
    return _task(given, place)


def _task(given: Any, place: str) -> StackTask:
    """Return a task from its description.

    Raises:
        OptionError: If the kind or a field is unknown or missing, or a value is not valid.
    """
    if not isinstance(given, Mapping):
        raise OptionError(
            f"{place} must be a task, a mapping such as {{kind: swivel, angle: 0.3}}, or a list of "
            f"tasks; got {quoted(given)}"
        )
    name = given.get(KIND_KEY)
    if not isinstance(name, str) or name not in KINDS:
        got = quoted(name) if KIND_KEY in given else f"the keys {listing(map(str, given))}"
        hint = did_you_mean(name, KINDS, "; {}") if isinstance(name, str) else ""
        raise OptionError(f"{place}.{KIND_KEY} must be one of {listing(KINDS)}; got {got}{hint}")
    kind, values = KINDS[name], {}
    for key, value in given.items():
        if key == KIND_KEY:
            continue
        if key not in kind.fields:
            valid = (*kind.fields, KIND_KEY)
            hint = did_you_mean(key, valid, "; {}")
            raise OptionError(
                f"{place}.{key} is not a field of a {name} task; valid: {listing(valid)}{hint}"
            )
        values[key] = kind.fields[key](value, f"{place}.{key}")
    missing = [key for key in kind.required if key not in values]
    if missing:
        raise OptionError(f"{place}.{missing[0]} is missing; a {name} task needs it")
    try:
        return kind.build(values)
    except DlsIkError as error:
        raise OptionError(f"{place}: {error}") from error


# Values


def _number(value: Any, place: str) -> float:
    """Return a number; the constructor of the task checks its range.

    Raises:
        OptionError: If the value is not a number.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise OptionError(f"{place} must be a number; got {quoted(value)}")
    return float(value)


def _numbers(*counts: int) -> Reader:
    """Return a reader of a list of numbers; without `counts`, of any length."""
    wanted = f"{' or '.join(map(str, counts))} numbers" if counts else "numbers"

    def read(value: Any, place: str) -> tuple[float, ...]:
        if not isinstance(value, list) or (counts and len(value) not in counts):
            raise OptionError(f"{place} must be a list of {wanted}; got {quoted(value)}")
        return tuple(_number(each, f"{place}[{k}]") for k, each in enumerate(value))

    return read


def _number_or(other: Reader) -> Reader:
    """Return a reader of a number, or of a list or mapping that another reader reads."""

    def read(value: Any, place: str) -> Any:
        is_other = isinstance(value, list | Mapping)
        return other(value, place) if is_other else _number(value, place)

    return read


def _by_joint(value: Any, place: str) -> dict[str, float]:
    """Return a mapping of joint names to numbers.

    Raises:
        OptionError: If the value is not such a mapping.
    """
    if not isinstance(value, Mapping) or not value:
        raise OptionError(f"{place} must be a mapping of joint names to numbers; {_got(value)}")
    return {str(name): _number(each, f"{place}.{name}") for name, each in value.items()}


def _by_joint_or_all(value: Any, place: str) -> Any:
    """Return a mapping of joint names to numbers, or a tuple with a number for each joint."""
    return _numbers()(value, place) if isinstance(value, list) else _by_joint(value, place)


def _text(value: Any, place: str) -> str:
    """Return a text; the value None, a key without a value in YAML, becomes the empty text.

    Raises:
        OptionError: If the value is neither a text nor None.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise OptionError(f"{place} must be a text; {_got(value)}")
    return value


def _name_or_none(value: Any, place: str) -> str | None:
    return None if value is None else _text(value, place)


def _pose(value: Any, place: str) -> Any:
    """Return a pose: a matrix (4, 4), or a position (3,) [m].

    Raises:
        OptionError: If the value is not a position, a matrix, or a mapping with the position and
            either roll, pitch, yaw [rad] or a quaternion x, y, z, w.
    """
    if isinstance(value, list) and len(value) == 4:
        return np.array([_numbers(4)(row, f"{place}[{k}]") for k, row in enumerate(value)])
    if isinstance(value, list):
        return np.array(_numbers(3)(value, place))
    keys = set(value) if isinstance(value, Mapping) else set()
    if keys not in ({"position"}, {"position", "rpy"}, {"position", "quaternion"}):
        raise OptionError(
            f"{place} must be a position [x, y, z], four rows of a matrix, or a mapping with "
            f"position and one of rpy and quaternion; {_got(value)}"
        )
    p = np.array(_numbers(3)(value["position"], f"{place}.position"))
    if "rpy" in keys:
        return transform(rotation_from_rpy(*_numbers(3)(value["rpy"], f"{place}.rpy")), p)
    if "quaternion" not in keys:
        return p
    quaternion = _numbers(4)(value["quaternion"], f"{place}.quaternion")
    if not abs(np.linalg.norm(quaternion) - 1.0) <= QUATERNION_TOLERANCE:
        raise OptionError(
            f"{place}.quaternion must have the norm 1 (x, y, z, w); {_got(quaternion)}"
        )
    return transform(rotation_from_quaternion(quaternion), p)


def _got(value: Any) -> str:
    return f"got {quoted(value)}"


QUATERNION_TOLERANCE = 1e-3  # maximum error of the norm, for quaternions with a few decimals


# Kinds of tasks


class TaskKind(NamedTuple):
    """Kind of tasks in a file."""

    fields: Mapping[str, Reader]  # reader of each field, by name
    build: Callable[[dict[str, Any]], StackTask]  # returns the task with the given fields
    required: tuple[str, ...] = ()  # fields without a default


def _plain(task: type[Any]) -> Callable[[dict[str, Any]], StackTask]:
    return lambda values: task(**values)


def _frame_task(values: dict[str, Any]) -> FrameTask:
    """Return a task of a frame, whose description also has the fields of its :class:`Task`."""
    own = {key: values.pop(key) for key in TIP_FIELDS if key in values}
    return FrameTask(task=Task(**own), **values)


TIP_FIELDS: dict[str, Reader] = {
    "position": _text,
    "rotation": _text,
    "frame": _text,
    "weights": _numbers(),
    "position_tolerance": _number_or(_numbers(3)),
    "rotation_tolerance": _number_or(_numbers(3)),
    "round": _text,
    "angles": _text,
}
KINDS: dict[str, TaskKind] = {
    "tip": TaskKind(TIP_FIELDS, _plain(Task)),
    "free_tip": TaskKind({}, lambda _: Task.free()),
    "frame": TaskKind(
        {
            "link": _text,
            "target": _pose,
            "reference": _name_or_none,
            "point": _numbers(3),
            "weight": _number,
            **TIP_FIELDS,
        },
        _frame_task,
        ("link", "target"),
    ),
    "posture": TaskKind(
        {"positions": _by_joint_or_all, "weights": _number_or(_by_joint)},
        _plain(PostureTask),
        ("positions",),
    ),
    "swivel": TaskKind(
        {"angle": _number, "up": _numbers(3), "weight": _number}, _plain(SwivelTask), ("angle",)
    ),
    "coupling": TaskKind(
        {"coefficients": _by_joint, "value": _number, "weight": _number},
        _plain(CouplingTask),
        ("coefficients",),
    ),
    "center_of_mass": TaskKind(
        {"position": _numbers(3), "axes": _text, "weight": _number},
        _plain(CenterOfMassTask),
        ("position",),
    ),
    "objective": TaskKind(
        {"objective": _text, "weight": _number}, _plain(ObjectiveTask), ("objective",)
    ),
}
