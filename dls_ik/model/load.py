# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Loading of robots by name, file, ROS package URI or description; expansion of xacro files."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from dls_ik.errors import RobotModelError
from dls_ik.model.descriptions import (
    described_tree,
    described_urdf,
    is_description,
    named_urdf,
    unknown_robot,
)
from dls_ik.model.dh import load_dh
from dls_ik.model.files import (
    PACKAGE_SCHEME,
    package_file,
    shipped_names,
    shipped_urdf,
)
from dls_ik.model.tree import Tree
from dls_ik.model.urdf import load_urdf
from dls_ik.model.xacro_files import expanded
from dls_ik.text import did_you_mean, quoted

FILE_ENDINGS = (".urdf", ".xml", ".xacro", ".yaml", ".yml")
VALID = "the path of a URDF, xacro or DH file (.yaml), or package://NAME/PATH"
_BEGIN = re.compile(r"\s[A-Za-z_][\w.-]*:=")
_ARGUMENT = re.compile(r"\s*([A-Za-z_][\w.-]*):=('[^']*'|\"[^\"]*\"|[^\s'\"]\S*|)(?=\s|$)")


def split_arguments(given: str) -> tuple[str, dict[str, str]]:
    """Split a text such as ``arm.xacro name:=ur5`` into a robot name and xacro arguments.

    Values that contain spaces must be in quotes: ``arm.xacro title:='my arm'``.

    Raises:
        RobotModelError: If a word after the first xacro argument is not a xacro argument.
    """
    begin = _BEGIN.search(given)
    if begin is None:
        return given, {}
    arguments, at, text = {}, begin.start(), given.rstrip()
    while at < len(text):
        match = _ARGUMENT.match(text, at)
        if match is None:
            raise RobotModelError(
                "xacro arguments must be NAME:=VALUE, with quotes around values with spaces; got "
                f"{quoted(text[at:].strip())}"
            )
        value = match[2]
        arguments[match[1]] = value[1:-1] if value[:1] in ("'", '"') else value
        at = match.end()
    return given[: begin.start()].rstrip(), arguments


def robot_file(given: str) -> Path:
    """Return the path of the file that describes a robot.

    Args:
        given: Name of a robot that comes with this package, path of a URDF, xacro or DH file, or
            ``package://NAME/PATH``.

    Raises:
        RobotModelError: If no file is found; the message suggests similar names.
    """
    if given.startswith(PACKAGE_SCHEME):
        return package_file(given)
    if given in shipped_names():
        return shipped_urdf(given)
    try:
        path = Path(given).expanduser()
    except RuntimeError:  # unknown user in ~USER
        path = Path(given)
    if os.path.isfile(path):
        return path
    if os.sep in given or given.lower().endswith(FILE_ENDINGS):
        hint = did_you_mean(path.name, _robot_files_in(path.parent), " ({})")
        raise RobotModelError(f"there is no file {quoted(given)}{hint}")
    raise RobotModelError(f"{unknown_robot(given)}; or give {VALID}")


def find_tree(given: str) -> Tree:
    """Load a robot by name or path, and return the tree of its links and joints.

    Args:
        given: Name or path of a robot as for :func:`robot_file`, or name of a robot in an installed
            library (:mod:`dls_ik.model.descriptions`). xacro arguments may follow the name; see
            :func:`split_arguments`.

    Raises:
        RobotModelError: If the file is not found, does not describe a usable robot, or needs xacro
            and xacro is not installed, or if a given xacro argument does not exist.
    """
    name, arguments = split_arguments(given)
    if is_description(name):
        return described_tree(name, arguments)
    found = _named(name, arguments)
    if found is not None:
        return load_urdf(*found)
    path = robot_file(name)
    urdf = _urdf_of(path, arguments)
    return load_dh(path) if urdf is None else load_urdf(urdf, path.parent)


def read_tree(source: str | os.PathLike[str], mappings: Mapping[str, object] | None) -> Tree:
    """Read a URDF file, a xacro file or a URDF text, and return the tree of links and joints.

    Args:
        source: Path of a URDF file, path of a xacro file that ends in ``.xacro``, or URDF text.
        mappings: Values of the arguments of a xacro file by name, or None.

    Raises:
        RobotModelError: If the description cannot be read (see :func:`load_urdf` and
            :func:`expanded`), or if `mappings` is not empty and the source is not a xacro file.
    """
    is_path = isinstance(source, os.PathLike) or not str(source).lstrip().startswith("<")
    if is_path and isinstance(source, (str, os.PathLike)):
        path = Path(source).expanduser()
        if path.suffix.lower() == ".xacro" and path.is_file():
            return load_urdf(expanded(path, mappings or {}), path.parent)
    if mappings:
        raise RobotModelError(
            f"mappings such as {next(iter(mappings))!r} need a file that ends in .xacro; got "
            f"{quoted(source, 60)}"
        )
    return load_urdf(source)


def find_urdf(given: str) -> Path | str | None:
    """Find the URDF of a robot that is given by name or path.

    Args:
        given: Name or path of a robot, and xacro arguments, as for :func:`find_tree`.

    Returns:
        Path of a URDF file, or URDF text to which a xacro file expands; None for a DH file, which
        has no URDF.

    Raises:
        RobotModelError: If there is no such robot, or a xacro file cannot be expanded.
    """
    name, arguments = split_arguments(given)
    if is_description(name):
        return described_urdf(name, arguments)[0]
    found = _named(name, arguments)
    if found is not None:
        return found[0]
    return _urdf_of(robot_file(name), arguments)


def _urdf_of(path: Path, arguments: Mapping[str, str]) -> Path | str | None:
    """Return the URDF of a robot file: its path, or the text to which a xacro file expands.

    A DH file (``.yaml``) has no URDF, so the result is None.

    Args:
        path: Robot file.
        arguments: xacro arguments by name.

    Raises:
        RobotModelError: If arguments are given for a file that is not a xacro file, or xacro fails.
    """
    ending = path.suffix.lower()
    if arguments and ending != ".xacro":
        raise RobotModelError(
            f"arguments such as {next(iter(arguments))}:= need a xacro file; got "
            f"{quoted(str(path))}"
        )
    if ending in (".yaml", ".yml"):
        return None
    return expanded(path, arguments) if ending == ".xacro" else path


def _named(name: str, arguments: Mapping[str, str]) -> tuple[Path | str, Path] | None:
    """Return the URDF of a robot in an installed library, and the folder of the URDF.

    Return None if no library has the robot, if it comes with this package, or if a file has the
    name.

    Args:
        name: Name of the robot.
        arguments: Values of xacro arguments by name.
    """
    is_ours = name in shipped_names() or os.path.exists(name)
    return None if is_ours else named_urdf(name, arguments)


def _robot_files_in(folder: Path) -> list[str]:
    """Return the names of the URDF, xacro and DH files in a folder; empty if it is unreadable."""
    try:
        return [each.name for each in folder.iterdir() if each.suffix in FILE_ENDINGS]
    except (OSError, ValueError):
        return []
