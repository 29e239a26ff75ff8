"""Robots from Denavit-Hartenberg rows, in code or in a YAML file."""

import math
import os
from collections.abc import Iterable, Mapping
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

MAX_BYTES = 32 * 1024
MAX_ROWS = 500
MAX_DEPTH = 20


class DhRow(NamedTuple):
    """One joint by the standard convention: T = Rz(theta) Tz(d) Tx(a) Rx(alpha).

    The joint's value is added to theta, or to d of a prismatic joint. A revolute or prismatic joint
    needs both limits; a continuous one has none.
    """

    a: float = 0.0  # [m]
    alpha: float = 0.0  # [rad]
    d: float = 0.0  # [m]
    theta: float = 0.0  # [rad]
    kind: str = "revolute"  # or "continuous" or "prismatic"
    lower: float = -math.inf  # [rad or m]
    upper: float = math.inf  # [rad or m]
    velocity: float = math.inf  # [rad/s or m/s]
    name: str = ""  # by default joint1, joint2, ...


def tree_from_dh(
    rows: Iterable[DhRow | Mapping[str, Any]],
    name: str = "robot",
    base: str = "base",
    tip: str = "tip",
) -> Tree:
    """Build a serial arm from its rows, base to tip.

    The link below joint ``x`` is ``x_link``; its frame has the joint's axis as z. The last row
    leads to the tip.

    Raises:
        RobotModelError: If a row is wrong (the message gives its number), or a joint is not usable.
    """
    try:
        numbered = enumerate(rows, start=1)
    except TypeError as error:  # also arrays without dimensions, which look iterable
        message = f"DH rows are a sequence of mappings, given {quoted(rows)}"
        raise RobotModelError(message) from error
    checked = []
    for number, row in numbered:
        if number > MAX_ROWS:
            raise RobotModelError(f"more than {MAX_ROWS} DH rows")
        checked.append(_row(row, number))
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
    """Compute the (4, 4) transform of a row at value 0."""
    x, _, z = np.eye(3)
    turned = transform(rotation_about(z, row.theta), row.d * z)
    return turned @ transform(rotation_about(x, row.alpha), row.a * x)


def _row(given: DhRow | Mapping[str, Any], number: int) -> DhRow:
    row = given._asdict() if isinstance(given, DhRow) else given
    if not isinstance(row, Mapping):
        raise RobotModelError(f"row {number}: expected a mapping, given {quoted(given)}")
    _refuse_unknown(row, DhRow._fields, f"row {number}")
    checked = DhRow(**{key: _value(value, key, f"row {number}") for key, value in row.items()})
    checked = checked._replace(name=checked.name or f"joint{number}")
    if checked.kind not in DRIVEN_KINDS:
        raise RobotModelError(
            f"row {number}: unknown kind {checked.kind!r}; known: {listing(DRIVEN_KINDS)}"
        )
    return checked


def _value(value: Any, key: str, where: str) -> Any:
    if key in ("kind", "name"):
        return _text(value, f"{where}: {key}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    may_be_infinite = key in ("lower", "upper", "velocity")
    if math.isnan(number) or (math.isinf(number) and not may_be_infinite):
        raise RobotModelError(f"{where}: {key} is not a number: {quoted(value)}")
    return number


def _text(value: Any, key: str) -> str:
    try:
        return str(value)
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits
        raise RobotModelError(f"{key} is not a name: {quoted(value)}") from error


def _refuse_unknown(given: Mapping[Any, Any], known: tuple[str, ...], where: str) -> None:
    unknown = [quoted(key) for key in given if key not in known]
    if unknown:
        raise RobotModelError(f"{where}: unknown {listing(unknown)}; known: {listing(known)}")


def load_dh(path: str | os.PathLike[str]) -> Tree:
    """Read a YAML file with ``rows``, and optionally ``name``, ``base`` and ``tip``.

    Raises:
        RobotModelError: If the file does not exist, is not YAML, has unknown keys, or has rows of
            an unusable robot.
    """
    shown = quoted(os.fspath(path))
    document = _yaml(Path(path), shown)
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise RobotModelError(f"{shown}: expected a mapping with a list of 'rows'")
    _refuse_unknown(document, ("rows", "name", "base", "tip"), shown)
    rows = document.pop("rows")
    try:
        names = {key: _text(name, key) for key, name in document.items() if name is not None}
        return tree_from_dh(rows, **names)
    except RobotModelError as error:
        raise RobotModelError(f"{shown}: {error}") from error


def _yaml(path: Path, shown: str) -> object:
    import yaml

    try:
        text = read_file(path, MAX_BYTES)
        _refuse_references(yaml.parse(text, yaml.SafeLoader), shown)
        return yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join((getattr(error, "strerror", None) or str(error)).split())
        raise RobotModelError(f"cannot read the DH file {shown}: {reason}") from error


def _refuse_references(events: Iterable[Any], shown: str) -> None:
    """Refuse references to lists and mappings, by which a few bytes stand for many values."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        if kind.endswith("StartEvent") and getattr(event, "anchor", None) is not None:
            line = event.start_mark.line + 1
            raise RobotModelError(f"{shown}, line {line}: no list or mapping is taken by reference")
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > MAX_DEPTH:
            raise RobotModelError(f"{shown}: nested more than {MAX_DEPTH} deep")
