"""A robot by what a person calls it: a shipped name, a file, or a path in a ROS package."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from dls_ik.exceptions import RobotModelError
from dls_ik.model.dh import load_dh
from dls_ik.model.names import listing, quoted
from dls_ik.model.packages import PACKAGE_SCHEME, package_file
from dls_ik.model.shipped import shipped_names, shipped_urdf
from dls_ik.model.tree import Tree
from dls_ik.model.urdf import load_urdf
from dls_ik.model.xacro import expanded

FILE_ENDINGS = (".urdf", ".xml", ".xacro", ".yaml", ".yml")
VALID = "a URDF, xacro or DH file (.yaml), package://NAME/PATH"


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
    path = Path(given).expanduser()
    if _is_file(path):
        return path
    if os.sep in given or given.lower().endswith(FILE_ENDINGS):
        raise RobotModelError(f"there is no file {quoted(given)}{_like(path.name, _beside(path))}")
    raise RobotModelError(
        f"unknown robot {quoted(given)}{_like(given, shipped_names())}; it is one of "
        f"{listing(shipped_names())}, {VALID}"
    )


def read_tree(path: Path) -> Tree:
    """The links and joints that a URDF, xacro or DH file describes, as its ending says.

    Raises:
        RobotModelError: not a usable robot, or xacro is not installed.
    """
    ending = path.suffix.lower()
    if ending in (".yaml", ".yml"):
        return load_dh(path)
    return load_urdf(expanded(path) if ending == ".xacro" else path)


def find_tree(given: str) -> Tree:
    """The links and joints of a robot that is given as :func:`robot_file` takes it."""
    return read_tree(robot_file(given))


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
    close = get_close_matches(given, list(known))
    return f" (did you mean {' or '.join(close)}?)" if close else ""
