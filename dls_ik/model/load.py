"""Robots by shipped name, file or path in a ROS package; expansion of xacro files."""

import os
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from dls_ik.errors import RobotModelError
from dls_ik.model.dh import load_dh
from dls_ik.model.files import PACKAGE_SCHEME, package_file, shipped_names, shipped_urdf
from dls_ik.model.tree import Tree
from dls_ik.model.urdf import load_urdf
from dls_ik.text import did_you_mean, listing, quoted

FILE_ENDINGS = (".urdf", ".xml", ".xacro", ".yaml", ".yml")
VALID = "a URDF, xacro or DH file (.yaml), package://NAME/PATH"
_BEGIN = re.compile(r"\s[A-Za-z_][\w.-]*:=")
_ARGUMENT = re.compile(r"\s*([A-Za-z_][\w.-]*):=('[^']*'|\"[^\"]*\"|[^\s'\"]\S*|)(?=\s|$)")


def split_arguments(given: str) -> tuple[str, dict[str, str]]:
    """Split ``arm.xacro name:=ur5`` into the name of a robot and the arguments of xacro.

    Values with spaces are quoted: ``arm.xacro title:='my arm'``.

    Raises:
        RobotModelError: text that is not an argument, between or behind the arguments.
    """
    begin = _BEGIN.search(given)
    if begin is None:
        return given, {}
    arguments, at, text = {}, begin.start(), given.rstrip()
    while at < len(text):
        match = _ARGUMENT.match(text, at)
        if match is None:
            raise RobotModelError(
                f"arguments of xacro are NAME:=VALUE, with quotes where a value has spaces, not "
                f"{quoted(text[at:].strip())}"
            )
        value = match[2]
        arguments[match[1]] = value[1:-1] if value[:1] in ("'", '"') else value
        at = match.end()
    return given[: begin.start()].rstrip(), arguments


def robot_file(given: str) -> Path:
    """Find the file that describes a robot.

    Args:
        given: The name of a shipped robot, the path of a URDF, xacro or DH file, or
            ``package://NAME/PATH``.

    Raises:
        RobotModelError: not found; the message names valid forms and similar names.
    """
    if given.startswith(PACKAGE_SCHEME):
        return package_file(given)
    if given in shipped_names():
        return shipped_urdf(given)
    try:
        path = Path(given).expanduser()
    except RuntimeError:  # no user of that name
        path = Path(given)
    if os.path.isfile(path):
        return path
    if os.sep in given or given.lower().endswith(FILE_ENDINGS):
        hint = did_you_mean(path.name, _beside(path), " ({})")
        raise RobotModelError(f"there is no file {quoted(given)}{hint}")
    hint = did_you_mean(given, shipped_names(), " ({})")
    raise RobotModelError(
        f"unknown robot {quoted(given)}{hint}; it is one of {listing(shipped_names())}, {VALID}"
    )


def find_tree(given: str) -> Tree:
    """Read the links and joints of a robot, named as for :func:`robot_file`.

    Arguments may follow a xacro file, see :func:`split_arguments`.

    Raises:
        RobotModelError: not found, not a usable robot, or xacro is not installed; arguments that
            the file does not take.
    """
    name, arguments = split_arguments(given)
    path = robot_file(name)
    urdf = _urdf_of(path, arguments)
    return load_dh(path) if urdf is None else load_urdf(urdf, path.parent)


def find_urdf(given: str) -> Path | str | None:
    """Find the URDF of a robot, named as for :func:`find_tree`: a file, or expanded text.

    Returns None for a DH file, which has no shapes.

    Raises:
        RobotModelError: there is no such robot, or xacro is not installed.
    """
    name, arguments = split_arguments(given)
    return _urdf_of(robot_file(name), arguments)


def _urdf_of(path: Path, arguments: Mapping[str, str]) -> Path | str | None:
    ending = path.suffix.lower()
    if arguments and ending != ".xacro":
        raise RobotModelError(
            f"arguments such as {next(iter(arguments))}:= are for xacro files, and "
            f"{quoted(str(path))} is not one"
        )
    if ending in (".yaml", ".yml"):
        return None
    return expanded(path, arguments) if ending == ".xacro" else path


def _beside(path: Path) -> list[str]:
    """List the robot files in the folder of a missing one."""
    try:
        return [each.name for each in path.parent.iterdir() if each.suffix in FILE_ENDINGS]
    except (OSError, ValueError):
        return []


def expanded(path: Path, arguments: Mapping[str, str]) -> str:
    """Expand a xacro file to URDF text.

    xacro evaluates expressions of the file, includes other files and reads the environment: the
    file has to be trusted. No text from the network is expanded.

    Args:
        arguments: Values of its ``<xacro:arg>`` by name.

    Raises:
        RobotModelError: xacro is not installed or refuses the file, or the file does not take an
            argument.
    """
    shown = quoted(str(path))
    try:
        xacro: Any = import_module("xacro")
    except ImportError as error:
        raise RobotModelError(
            f"{shown} needs xacro: `pip install xacro`, or source ROS 2 with ros-DISTRO-xacro"
        ) from error
    given = _Arguments(arguments)
    try:
        document = xacro.process_file(str(path), mappings=given)
    except Exception as error:  # the library raises whatever it meets
        hint = ""
        if "Undefined substitution argument" in str(error):
            hint = f"; arguments are given as '{path.name} NAME:=VALUE'"
        raise RobotModelError(f"xacro cannot expand {shown}: {error}{hint}") from error
    unknown = sorted(set(arguments) - given.asked)
    if unknown:
        takes = f"it takes {listing(sorted(given.asked))}" if given.asked else "it has none"
        raise RobotModelError(f"{shown} has no argument {listing(map(quoted, unknown))}; {takes}")
    return str(document.toxml())


class _Arguments(dict[str, str]):
    """Arguments that record the names which xacro asks for: it ignores unknown ones."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)
