# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots from Denavit-Hartenberg rows, given in code or in a YAML file."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import RobotModelError
from dls_ik.model.files import read_file
from dls_ik.model.joint import DRIVEN_KINDS, Joint
from dls_ik.model.rotations import rotation_about, transform
from dls_ik.model.tree import Tree
from dls_ik.text import listing, quoted

MAX_DH_BYTES = 32 * 1024  # maximum size of a YAML file
MAX_DH_ROWS = 500
MAX_DH_DEPTH = 20  # maximum nesting depth of lists and mappings in a YAML file


class DhRow(NamedTuple):
    """DH parameters of one joint in the standard convention: T = Rz(theta) Tz(d) Tx(a) Rx(alpha).

    The position of a revolute or continuous joint is added to theta, that of a prismatic joint to
    d. A revolute or prismatic joint needs both limits; a continuous joint has no limits.
    """

    a: float = 0.0  # [m]
    alpha: float = 0.0  # [rad]
    d: float = 0.0  # [m]
    theta: float = 0.0  # [rad]
    kind: str = "revolute"  # "revolute", "continuous" or "prismatic"
    lower: float = -math.inf  # [rad or m]
    upper: float = math.inf  # [rad or m]
    velocity: float = math.inf  # [rad/s or m/s]
    name: str = ""  # "" stands for joint1, joint2, ...


def tree_from_dh(
    rows: Iterable[DhRow | Mapping[str, Any] | Sequence[Any]],
    name: str = "robot",
    base: str = "base",
    tip: str = "tip",
) -> Tree:
    """Build the tree of a serial arm from DH rows.

    The child link of a joint named ``x`` is named ``x_link``. The axis of the joint is the z axis
    of this link's frame. A fixed joint connects the child link of the last joint to the tip.

    Args:
        rows: DH rows in order from base to tip. A row is a :class:`DhRow`, a mapping with the
            fields of a DhRow, or a list or tuple with the first values of a DhRow.
        name: Name of the robot.
        base: Name of the base link.
        tip: Name of the tip link.

    Raises:
        RobotModelError: If a row is not valid, or a joint is not usable, for example because its
            limits are missing. The message gives the number of the row, or the name of the joint.
    """
    try:
        numbered = enumerate(rows, start=1)
    except TypeError as error:  # not an iterable, or an array without dimensions
        message = f"DH rows must be a sequence of mappings or lists; got {quoted(rows)}"
        raise RobotModelError(message) from error
    checked = []
    for number, row in numbered:
        if number > MAX_DH_ROWS:
            raise RobotModelError(f"there are more than {MAX_DH_ROWS} DH rows")
        checked.append(_row(row, number))
    if not checked:
        raise RobotModelError("DH rows must have at least one row, one for each joint; got none")
    joints: list[Joint] = []
    parent, origin = base, np.eye(4)
    for row in checked:
        limits = row.lower, row.upper, row.velocity
        child = f"{row.name}_link"
        joints.append(Joint(row.name, row.kind, parent, child, origin, np.eye(3)[2], *limits))
        parent, origin = child, _transform(row)
    joints.append(Joint(f"{tip}_fixed", "fixed", parent, tip, origin))
    links = (base, *(joint.child for joint in joints))
    return Tree(name, links, tuple(joints))


def _transform(row: DhRow) -> Array:
    """Return the (4, 4) transform [m] of a DH row at joint position 0."""
    x, _, z = np.eye(3)
    turned = transform(rotation_about(z, row.theta), row.d * z)
    return turned @ transform(rotation_about(x, row.alpha), row.a * x)


def _row(given: DhRow | Mapping[str, Any] | Sequence[Any], number: int) -> DhRow:
    """Validate a DH row, and return it with a name.

    Args:
        given: Row given by the caller.
        number: Number of the row, counted from 1; also used in the name of a row without a name.

    Raises:
        RobotModelError: If the row is not valid; the message gives the number of the row.
    """
    row = given._asdict() if isinstance(given, DhRow) else given
    if isinstance(row, (list, tuple, np.ndarray)) and 0 < len(row) <= len(DhRow._fields):
        row = dict(zip(DhRow._fields, row, strict=False))
    if not isinstance(row, Mapping):
        raise RobotModelError(
            f"row {number}: must be a mapping, or a list of 1 to {len(DhRow._fields)} values "
            f"({', '.join(DhRow._fields)}); got {quoted(given)}"
        )
    _refuse_unknown(row, DhRow._fields, f"row {number}")
    checked = DhRow(**{key: _value(value, key, f"row {number}") for key, value in row.items()})
    checked = checked._replace(name=checked.name or f"joint{number}")
    if checked.kind not in DRIVEN_KINDS:
        raise RobotModelError(
            f"row {number}: unknown kind {checked.kind!r}; known: {listing(DRIVEN_KINDS)}"
        )
    return checked


def _value(value: Any, key: str, where: str) -> Any:
    """Convert the value of one field of a DH row to text or a number.

    Args:
        value: Value given by the caller.
        key: Name of the field.
        where: Start of the error message, which names the row.

    Raises:
        RobotModelError: If the value is not valid for this field.
    """
    if key in ("kind", "name"):
        return _text(value, f"{where}: {key}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    may_be_infinite = key in ("lower", "upper", "velocity")
    if math.isnan(number) or (math.isinf(number) and not may_be_infinite):
        raise RobotModelError(f"{where}: {key} must be a number; got {quoted(value)}")
    return number


def _text(value: Any, key: str) -> str:
    """Convert the value of a field to text.

    Args:
        value: Value given by the caller.
        key: Name of the field, for the error message.

    Raises:
        RobotModelError: If Python cannot convert the value to text.
    """
    try:
        return str(value)
    except (ValueError, RecursionError) as error:  # str rejects integers of thousands of digits
        raise RobotModelError(f"{key} must be a name; got {quoted(value)}") from error


def _refuse_unknown(given: Mapping[Any, Any], known: tuple[str, ...], where: str) -> None:
    """Check that all keys of a mapping are known.

    Args:
        given: Mapping to check.
        known: Known keys.
        where: Start of the error message, which names the row or the file.

    Raises:
        RobotModelError: If a key is unknown.
    """
    unknown = [quoted(key) for key in given if key not in known]
    if unknown:
        raise RobotModelError(f"{where}: unknown {listing(unknown)}; known: {listing(known)}")


def load_dh(path: str | os.PathLike[str]) -> Tree:
    """Build the tree of a serial arm from a YAML file with DH rows.

    The file contains a mapping with the key ``rows``, and optionally ``name``, ``base`` and
    ``tip``. The values are the arguments of :func:`tree_from_dh`.

    Raises:
        RobotModelError: If the file cannot be read, is not YAML, has unknown keys, or does not
            describe a usable robot.
    """
    shown = quoted(os.fspath(path))
    document = _yaml(Path(path), shown)
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise RobotModelError(f"{shown}: must be a mapping with a list 'rows'")
    _refuse_unknown(document, ("rows", "name", "base", "tip"), shown)
    rows = document.pop("rows")
    try:
        names = {key: _text(name, key) for key, name in document.items() if name is not None}
        return tree_from_dh(rows, **names)
    except RobotModelError as error:
        raise RobotModelError(f"{shown}: {error}") from error


def _yaml(path: Path, shown: str) -> object:
    """Return the parsed content of a YAML file.

    Args:
        path: Path of the file.
        shown: Path of the file for error messages.

    Raises:
        RobotModelError: If the file cannot be read, is not YAML, is nested too deep, or has an
            anchor (``&name``) on a list or mapping.
    """
    import yaml

    try:
        text = read_file(path, MAX_DH_BYTES)
        _refuse_references(yaml.parse(text, yaml.SafeLoader), shown)
        return yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join((getattr(error, "strerror", None) or str(error)).split())
        raise RobotModelError(f"cannot read the DH file {shown}: {reason}") from error


def _refuse_references(events: Iterable[Any], shown: str) -> None:
    """Check that a YAML document is not nested too deep and has no anchors of lists or mappings.

    A short document with aliases (``*name``) of such anchors could expand to very many values.

    Args:
        events: Events of the YAML parser for the document.
        shown: Path of the file for error messages.

    Raises:
        RobotModelError: If a list or mapping has an anchor, or the nesting is too deep.
    """
    depth = 0
    for event in events:
        kind = type(event).__name__
        if kind.endswith("StartEvent") and getattr(event, "anchor", None) is not None:
            line = event.start_mark.line + 1
            raise RobotModelError(
                f"{shown}, line {line}: anchors of lists and mappings are not supported"
            )
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > MAX_DH_DEPTH:
            raise RobotModelError(f"{shown}: nested deeper than {MAX_DH_DEPTH} levels")
