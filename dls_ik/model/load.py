# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Loading of robots by name, file, ROS package URI or description; expansion of xacro files."""

import contextlib
import os
import pkgutil
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from dls_ik import compat
from dls_ik.errors import RobotModelError
from dls_ik.model.dh import load_dh
from dls_ik.model.files import (
    PACKAGE_SCHEME,
    package_file,
    package_folders,
    read_file,
    shipped_names,
    shipped_urdf,
)
from dls_ik.model.tree import Tree
from dls_ik.model.urdf import load_urdf
from dls_ik.text import did_you_mean, listing, quoted

FILE_ENDINGS = (".urdf", ".xml", ".xacro", ".yaml", ".yml")
VALID = (
    "a URDF, xacro or DH file (.yaml), package://NAME/PATH, NAME_description of robot_descriptions"
)
DESCRIPTION_SUFFIX = "_description"  # end of all names of robots in the library robot_descriptions
MAX_MANIFEST_BYTES = 1024 * 1024  # maximum size of a package.xml
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
    hint = did_you_mean(given, shipped_names(), " ({})")
    raise RobotModelError(
        f"unknown robot {quoted(given)}{hint}; give one of {listing(shipped_names())}, or {VALID}"
    )


def find_tree(given: str) -> Tree:
    """Load a robot by name or path, and return the tree of its links and joints.

    Args:
        given: Name or path of a robot as for :func:`robot_file`, or name of a robot in the library
            robot_descriptions. xacro arguments may follow the name; see :func:`split_arguments`.

    Raises:
        RobotModelError: If the file is not found, does not describe a usable robot, or needs xacro
            and xacro is not installed, or if a given xacro argument does not exist.
    """
    name, arguments = split_arguments(given)
    if _is_description(name):
        return described_tree(name, arguments)
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
    if _is_description(name):
        return _described(name, arguments)[0]
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


def _robot_files_in(folder: Path) -> list[str]:
    """Return the names of the URDF, xacro and DH files in a folder; empty if it is unreadable."""
    try:
        return [each.name for each in folder.iterdir() if each.suffix in FILE_ENDINGS]
    except (OSError, ValueError):
        return []


def expanded(
    path: Path, arguments: Mapping[str, object], packages: Mapping[str, str] | None = None
) -> str:
    """Return the URDF text to which a xacro file expands.

    xacro evaluates expressions in the file, includes other files and reads the environment.
    Therefore the file must be trusted.

    ``$(find NAME)`` in the file finds the packages in `packages`, the package that contains the
    file, packages next to this package, and packages in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH.

    Args:
        path: xacro file.
        arguments: Values of ``<xacro:arg>`` elements by name.
        packages: Folders of additional ROS packages by name.

    Raises:
        RobotModelError: If xacro is not installed or fails, or the file lacks a given argument.
    """
    shown = quoted(str(path))
    try:
        xacro: Any = import_module("xacro")
    except ImportError as error:
        raise RobotModelError(
            f"{shown} needs xacro: `pip install xacro`, or source ROS 2 with ros-DISTRO-xacro"
        ) from error
    given = _Arguments(
        {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in arguments.items()}
    )

    def find(name: str) -> str:
        return (packages or {}).get(name) or _package_of(path, name)

    try:
        with compat.xacro_packages(find):
            document = xacro.process_file(str(path), mappings=given)
    except Exception as error:  # xacro raises errors of many types
        hint = ""
        if "Undefined substitution argument" in str(error):
            hint = f"; give arguments as '{path.name} NAME:=VALUE'"
        raise RobotModelError(f"xacro cannot expand {shown}: {error}{hint}") from error
    unknown = sorted(set(arguments) - given.asked)
    if unknown:
        takes = f"arguments: {listing(sorted(given.asked))}" if given.asked else "it has none"
        raise RobotModelError(f"{shown} has no argument {listing(map(quoted, unknown))}; {takes}")
    return str(document.toxml())


def _package_of(path: Path, name: str) -> str:
    """Return the folder of the ROS package with a given name.

    The package is searched above the file `path`, next to the package that contains the file, and
    in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH.

    Raises:
        RobotModelError: If the package is not found.
    """
    for folder in path.resolve().parents:
        if (folder / "package.xml").is_file():
            for each in (folder, folder.parent / name):
                if _package_name(each) == name:
                    return str(each)
    for folder in package_folders(name):
        if folder.is_dir():
            return str(folder)
    raise RobotModelError(
        f"there is no package {quoted(name)} above the file, next to the package of the file, or "
        "in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH"
    )


def _package_name(folder: Path) -> str:
    """Return the name in the ``package.xml`` of a folder; "" if it has no readable package.xml."""
    try:
        text = read_file(folder / "package.xml", MAX_MANIFEST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    match = re.search(r"<name>\s*([^<\s]+)\s*</name>", text)
    return match[1] if match else ""


class _Arguments(dict[str, str]):
    """Values of xacro arguments by name; records the names that xacro looks up.

    xacro ignores arguments that a file does not declare. The caller finds such arguments, because
    xacro never looks up their names.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()  # names that xacro has looked up

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


# Robots of the library robot_descriptions


def described_tree(name: str, mappings: Mapping[str, object] | None = None) -> Tree:
    """Load a robot from the library robot_descriptions, and return the tree of links and joints.

    At the first use of a robot, the library clones the Git repository with its description.

    Args:
        name: Name of the robot in the library, such as ``"so_arm101_description"``.
        mappings: Values of xacro arguments by name, if the description is a xacro file.

    Raises:
        RobotModelError: If robot_descriptions is not installed, does not have the robot or has no
            URDF of the robot, if the repository cannot be cloned, or if the URDF is not valid.
    """
    urdf, folder = _described(name, mappings or {})
    return load_urdf(urdf, folder)


def _is_description(name: str) -> bool:
    """Return whether a name may be one of robot_descriptions, such as ``ur5e_description``.

    The name of an existing file is not a name of robot_descriptions.
    """
    return name.endswith(DESCRIPTION_SUFFIX) and name.isidentifier() and not os.path.exists(name)


def _described(name: str, mappings: Mapping[str, object]) -> tuple[Path | str, Path]:
    """Return the URDF of a robot in robot_descriptions, and the folder that contains the URDF.

    The URDF is returned as a path, or as the text to which a xacro file expands.

    Args:
        name: Name of the robot in the library.
        mappings: Values of xacro arguments by name.

    Raises:
        RobotModelError: If the library has no URDF or xacro file of the robot, or if `mappings` is
            not empty and the description is not a xacro file.
    """
    module = _description_module(name)
    urdf, xacro = getattr(module, "URDF_PATH", None), getattr(module, "XACRO_PATH", None)
    if urdf is None and xacro is None:
        raise RobotModelError(f"{name} of robot_descriptions has no URDF")
    path = Path(str(urdf or xacro))
    if urdf is None:
        arguments = {**getattr(module, "XACRO_ARGS", {}), **mappings}
        packages = getattr(module, "XACRO_PACKAGE_PATHS", {})
        return expanded(path, arguments, packages), path.parent
    if mappings:
        raise RobotModelError(
            f"{name} is a plain URDF without arguments; got {next(iter(mappings))!r}"
        )
    return path, path.parent


def _description_module(name: str) -> Any:
    """Import and return the module of a robot in the library robot_descriptions.

    The first import of the module clones the Git repository with the description of the robot.

    Raises:
        RobotModelError: If robot_descriptions is not installed, does not have the robot, or cannot
            clone the repository.
    """
    try:
        library: Any = import_module("robot_descriptions")
    except ImportError as error:
        raise RobotModelError(
            f"{quoted(name)} needs robot_descriptions: pip install 'dls-ik[descriptions]'"
        ) from error
    modules = [each.name for each in pkgutil.iter_modules(library.__path__)]
    names = [
        each for each in modules if each.endswith(DESCRIPTION_SUFFIX) and not each.startswith("_")
    ]
    if name not in names:
        word = name if name.endswith(DESCRIPTION_SUFFIX) else name + DESCRIPTION_SUFFIX
        hint = did_you_mean(word, [n for n in names if "_mj_" not in n], "; {}")
        raise RobotModelError(f"robot_descriptions has no {quoted(name)}{hint}")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # the library prints progress
            return import_module(f"robot_descriptions.{name}")
    except Exception as error:  # git and the network raise errors of many types
        reason = next(iter(str(error).strip().splitlines()[-1:]), type(error).__name__).strip()
        raise RobotModelError(f"robot_descriptions cannot clone {name}: {reason}") from error
