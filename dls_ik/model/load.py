"""A robot by what a person calls it: a shipped name, a file, or a path in a ROS package."""

import os
import re
from collections.abc import Iterable, Mapping
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
    """The name of a robot, and the arguments of xacro behind it, as in ``arm.xacro name:=ur5``.

    Values with spaces are quoted: ``arm.xacro title:='my arm'``.

    Raises:
        RobotModelError: something else stands between or behind the arguments.
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
        arguments[match[1]] = _unquoted(match[2])
        at = match.end()
    return given[: begin.start()].rstrip(), arguments


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') else value


def robot_file(given: str) -> Path:
    """The file that describes a robot.

    Args:
        given: The name of a shipped robot, the path of a URDF, xacro or DH file, or
            ``package://NAME/PATH``.

    Raises:
        RobotModelError: there is none; the message names what is valid, and what is like it.
    """
    if given.startswith(PACKAGE_SCHEME):
        return package_file(given)
    if given in shipped_names():
        return shipped_urdf(given)
    try:
        path = Path(given).expanduser()
    except RuntimeError:  # nobody has that name here
        path = Path(given)
    if _is_file(path):
        return path
    if os.sep in given or given.lower().endswith(FILE_ENDINGS):
        raise RobotModelError(f"there is no file {quoted(given)}{_like(path.name, _beside(path))}")
    raise RobotModelError(
        f"unknown robot {quoted(given)}{_like(given, shipped_names())}; it is one of "
        f"{listing(shipped_names())}, {VALID}"
    )


def read_tree(path: Path, arguments: Mapping[str, str] | None = None) -> Tree:
    """The links and joints that a URDF, xacro or DH file describes, as its ending says.

    Args:
        arguments: of a xacro file, by name.

    Raises:
        RobotModelError: not a usable robot, or xacro is not installed; arguments that the file
            does not take.
    """
    urdf = _urdf_of(path, arguments or {})
    return load_dh(path) if urdf is None else load_urdf(urdf)


def find_tree(given: str) -> Tree:
    """The links and joints of a robot, given as :func:`robot_file` takes it.

    Behind a xacro file arguments may follow, see :func:`split_arguments`.
    """
    name, arguments = split_arguments(given)
    return read_tree(robot_file(name), arguments)


def find_urdf(given: str) -> Path | str | None:
    """The URDF of a robot that is given as :func:`find_tree` takes it: a file, or expanded text.

    None of a DH file, which has no shapes.

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
            f"{quoted(str(path))} is none"
        )
    if ending in (".yaml", ".yml"):
        return None
    return expanded(path, arguments) if ending == ".xacro" else path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no name that a file could have
        return False


def _beside(path: Path) -> list[str]:
    """Robot files in the folder in which one is missing, as they would be given."""
    try:
        return [each.name for each in path.parent.iterdir() if each.suffix in FILE_ENDINGS]
    except (OSError, ValueError):
        return []


def _like(given: str, known: Iterable[str]) -> str:
    alike = did_you_mean(given, known)
    return f" ({alike})" if alike else ""


def expanded(path: Path, arguments: Mapping[str, str] | None = None) -> str:
    """The URDF text that a xacro file stands for.

    xacro evaluates expressions of the file, includes what other files it likes and looks up the
    environment: the file has to be trusted. Nothing that comes over the network gets here.

    Args:
        arguments: values of its ``<xacro:arg>`` by name.

    Raises:
        RobotModelError: xacro is not installed, does not take the file, or the file does not take
            an argument.
    """
    shown = quoted(str(path))
    try:
        xacro: Any = import_module("xacro")
    except ImportError as error:
        raise RobotModelError(
            f"{shown} needs xacro: `pip install xacro`, or source ROS 2 with ros-DISTRO-xacro"
        ) from error
    given = _Arguments(arguments or {})
    try:
        document = xacro.process_file(str(path), mappings=given)
    except Exception as error:  # the library raises whatever it meets
        hint = ""
        if "Undefined substitution argument" in str(error):
            hint = f"; arguments are given as '{path.name} NAME:=VALUE'"
        raise RobotModelError(f"xacro cannot expand {shown}: {error}{hint}") from error
    unknown = sorted(set(arguments or {}) - given.asked)
    if unknown:
        takes = f"it takes {listing(sorted(given.asked))}" if given.asked else "it takes none"
        raise RobotModelError(f"{shown} has no argument {listing(map(quoted, unknown))}; {takes}")
    return str(document.toxml())


class _Arguments(dict[str, str]):
    """Arguments that note for which of them xacro looks: it passes over those it does not know."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)
