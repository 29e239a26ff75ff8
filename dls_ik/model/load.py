"""Robots by shipped name, file, path in a ROS package or description; expansion of xacro files."""

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
DESCRIPTION = "_description"  # end of the names of robot_descriptions
MAX_MANIFEST = 1024 * 1024  # bytes of a package.xml
_BEGIN = re.compile(r"\s[A-Za-z_][\w.-]*:=")
_ARGUMENT = re.compile(r"\s*([A-Za-z_][\w.-]*):=('[^']*'|\"[^\"]*\"|[^\s'\"]\S*|)(?=\s|$)")


def split_arguments(given: str) -> tuple[str, dict[str, str]]:
    """Split ``arm.xacro name:=ur5`` into the name of a robot and the arguments of xacro.

    Values with spaces are quoted: ``arm.xacro title:='my arm'``.

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
        RobotModelError: If no robot is found; the message names valid forms and similar names.
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
        RobotModelError: If the file is not found, is not a usable robot, needs xacro and xacro is
            not installed, or does not take an argument.
    """
    name, arguments = split_arguments(given)
    if _is_description(name):
        return described_tree(name, arguments)
    path = robot_file(name)
    urdf = _urdf_of(path, arguments)
    return load_dh(path) if urdf is None else load_urdf(urdf, path.parent)


def read_tree(source: str | os.PathLike[str], mappings: Mapping[str, object] | None) -> Tree:
    """Read a URDF as :func:`load_urdf`, or a file that ends in ``.xacro``.

    Args:
        mappings: Values of the arguments of a xacro file.

    Raises:
        RobotModelError: If :func:`load_urdf` or :func:`expanded` raises it, or arguments belong to
            another file.
    """
    is_path = isinstance(source, os.PathLike) or not str(source).lstrip().startswith("<")
    if is_path and isinstance(source, (str, os.PathLike)):
        path = Path(source).expanduser()
        if path.suffix.lower() == ".xacro" and path.is_file():
            return load_urdf(expanded(path, mappings or {}), path.parent)
    if mappings:
        raise RobotModelError(
            f"mappings such as {next(iter(mappings))!r} are for files that end in .xacro, and "
            f"{quoted(source, 60)} is not one"
        )
    return load_urdf(source)


def find_urdf(given: str) -> Path | str | None:
    """Find the URDF of a robot, named as for :func:`find_tree`: a file, or expanded text.

    Returns None for a DH file, which has no shapes.

    Raises:
        RobotModelError: If there is no such robot, or xacro is not installed.
    """
    name, arguments = split_arguments(given)
    if _is_description(name):
        return _described(name, arguments)[0]
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


def expanded(
    path: Path, arguments: Mapping[str, object], packages: Mapping[str, str] | None = None
) -> str:
    """Expand a xacro file to URDF text.

    xacro evaluates expressions of the file, includes other files and reads the environment: the
    file has to be trusted. No text from the network is expanded.

    ``$(find NAME)`` finds the package that the file is in, those beside it, and those of
    AMENT_PREFIX_PATH and ROS_PACKAGE_PATH.

    Args:
        arguments: Values of its ``<xacro:arg>`` by name.
        packages: Folders of further packages by name.

    Raises:
        RobotModelError: If xacro is not installed or fails, or the file does not take an argument.
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


def _package_of(path: Path, name: str) -> str:
    """Find a package above a file, beside the one that it is in, or where ROS has it.

    Raises:
        RobotModelError: If no folder contains the file.
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
        f"there is no package {quoted(name)} above the file, beside the package that it is in, nor "
        "in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH"
    )


def _package_name(folder: Path) -> str:
    """Return the name in the manifest of a package, or '' where there is none."""
    try:
        text = read_file(folder / "package.xml", MAX_MANIFEST).decode(errors="replace")
    except OSError:
        return ""
    match = re.search(r"<name>\s*([^<\s]+)\s*</name>", text)
    return match[1] if match else ""


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


# Descriptions


def described_tree(name: str, mappings: Mapping[str, object] | None = None) -> Tree:
    """Read a robot of the library robot_descriptions, which clones it at its first use.

    Args:
        name: Such as ``"so_arm101_description"``.
        mappings: Values of arguments, where the description is a xacro file.

    Raises:
        RobotModelError: If robot_descriptions is not installed, has no such robot or no URDF of it,
            or cannot clone it, or :func:`read_tree` raises it.
    """
    urdf, folder = _described(name, mappings or {})
    return load_urdf(urdf, folder)


def _is_description(name: str) -> bool:
    return name.endswith(DESCRIPTION) and name.isidentifier() and not os.path.exists(name)


def _described(name: str, mappings: Mapping[str, object]) -> tuple[Path | str, Path]:
    """Return the URDF of a description, a file or expanded text, and its folder."""
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
            f"{name} takes no arguments such as {next(iter(mappings))!r}: it is a URDF"
        )
    return path, path.parent


def _description_module(name: str) -> Any:
    """Import a module of robot_descriptions, and clone what it describes."""
    try:
        library: Any = import_module("robot_descriptions")
    except ImportError as error:
        raise RobotModelError(
            f"{quoted(name)} needs robot_descriptions: pip install 'dls-ik[descriptions]'"
        ) from error
    modules = [each.name for each in pkgutil.iter_modules(library.__path__)]
    names = [each for each in modules if each.endswith(DESCRIPTION) and not each.startswith("_")]
    if name not in names:
        word = name if name.endswith(DESCRIPTION) else name + DESCRIPTION
        hint = did_you_mean(word, [n for n in names if "_mj_" not in n], "; {}")
        raise RobotModelError(f"robot_descriptions has no {quoted(name)}{hint}")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # where it says that it clones
            return import_module(f"robot_descriptions.{name}")
    except Exception as error:  # of git, or of the network
        reason = next(iter(str(error).strip().splitlines()[-1:]), type(error).__name__).strip()
        raise RobotModelError(f"robot_descriptions cannot clone {name}: {reason}") from error
