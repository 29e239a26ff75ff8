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
DESCRIPTION_SUFFIX = "_description"  # suffix of the names in robot_descriptions
MAX_MANIFEST_BYTES = 1024 * 1024  # maximum size of a package.xml
_BEGIN = re.compile(r"\s[A-Za-z_][\w.-]*:=")
_ARGUMENT = re.compile(r"\s*([A-Za-z_][\w.-]*):=('[^']*'|\"[^\"]*\"|[^\s'\"]\S*|)(?=\s|$)")


def split_arguments(given: str) -> tuple[str, dict[str, str]]:
    """Split a text such as ``arm.xacro name:=ur5`` into a robot name and xacro arguments.

    Values that contain spaces must be in quotes: ``arm.xacro title:='my arm'``.

    Raises:
        RobotModelError: If the text contains words that are not xacro arguments.
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
    """Return the file that describes a robot.

    Args:
        given: Name of a shipped robot, path of a URDF, xacro or DH file, or
            ``package://NAME/PATH``.

    Raises:
        RobotModelError: If no file is found; the message lists valid forms and similar names.
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
    """Return the tree of a robot.

    Args:
        given: Name of a robot as for :func:`robot_file`, or of a description in the library
            robot_descriptions. xacro arguments may follow the name; see :func:`split_arguments`.

    Raises:
        RobotModelError: If the file is not found, does not describe a usable robot, has no such
            argument, or needs xacro and xacro is not installed.
    """
    name, arguments = split_arguments(given)
    if _is_description(name):
        return described_tree(name, arguments)
    path = robot_file(name)
    urdf = _urdf_of(path, arguments)
    return load_dh(path) if urdf is None else load_urdf(urdf, path.parent)


def read_tree(source: str | os.PathLike[str], mappings: Mapping[str, object] | None) -> Tree:
    """Return the tree of a robot given as a URDF file, a xacro file or the text of a URDF.

    Args:
        source: Path of a URDF, or of a xacro file that ends in ``.xacro``; or text of a URDF.
        mappings: Arguments of a xacro file by name.

    Raises:
        RobotModelError: If the description cannot be read (see :func:`load_urdf` and
            :func:`expanded`), or there are mappings and the file is not a xacro file.
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
    """Return the URDF of a robot: the path of the file, or the text of an expanded xacro file.

    Args:
        given: Name of a robot as for :func:`find_tree`.

    Returns:
        Path or text; None for a DH file, which has no URDF.

    Raises:
        RobotModelError: If there is no such robot, or xacro is not installed.
    """
    name, arguments = split_arguments(given)
    if _is_description(name):
        return _described(name, arguments)[0]
    return _urdf_of(robot_file(name), arguments)


def _urdf_of(path: Path, arguments: Mapping[str, str]) -> Path | str | None:
    """Return the path of a URDF file, the expanded text of a xacro file, or None for a DH file.

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
    """Return the names of the robot files in a folder."""
    try:
        return [each.name for each in folder.iterdir() if each.suffix in FILE_ENDINGS]
    except (OSError, ValueError):
        return []


def expanded(
    path: Path, arguments: Mapping[str, object], packages: Mapping[str, str] | None = None
) -> str:
    """Return the URDF text to which a xacro file expands.

    xacro evaluates expressions in the file, includes other files and reads the environment, so the
    file must be trusted. Text received over the network is never expanded.

    ``$(find NAME)`` finds the package that contains the file, packages next to that package, and
    packages in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH.

    Args:
        path: File.
        arguments: Values of ``<xacro:arg>`` by name.
        packages: Folders of further packages by name.

    Raises:
        RobotModelError: If xacro is not installed or fails, or the file has no such argument.
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
    """Return the folder of a package by its name.

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
    """Return the package name in the ``package.xml`` of a folder, or "" without such a file."""
    try:
        text = read_file(folder / "package.xml", MAX_MANIFEST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    match = re.search(r"<name>\s*([^<\s]+)\s*</name>", text)
    return match[1] if match else ""


class _Arguments(dict[str, str]):
    """xacro arguments that record the names that xacro looks up.

    xacro ignores unknown arguments; an argument that is never looked up is unknown.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


# Descriptions


def described_tree(name: str, mappings: Mapping[str, object] | None = None) -> Tree:
    """Return the tree of a robot from the library robot_descriptions.

    The library clones the repository of a description when the description is first used.

    Args:
        name: Name such as ``"so_arm101_description"``.
        mappings: Arguments of the description, if the description is a xacro file.

    Raises:
        RobotModelError: If robot_descriptions is not installed, has no such robot, has no URDF of
            the robot, or cannot clone the description, or the URDF cannot be read.
    """
    urdf, folder = _described(name, mappings or {})
    return load_urdf(urdf, folder)


def _is_description(name: str) -> bool:
    """Return whether a name has the form of a description name and is not an existing file."""
    return name.endswith(DESCRIPTION_SUFFIX) and name.isidentifier() and not os.path.exists(name)


def _described(name: str, mappings: Mapping[str, object]) -> tuple[Path | str, Path]:
    """Return the URDF of a description, as a path or as expanded text, and the folder of the file.

    Raises:
        RobotModelError: If there is no such URDF, or arguments are given for a plain URDF.
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
    """Import the module of a description, which clones the description, and return the module.

    Raises:
        RobotModelError: If robot_descriptions is not installed, or does not have the description,
            or cannot clone the description.
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
