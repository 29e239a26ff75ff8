# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Expansion of xacro files to URDF text."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from dls_ik import compat
from dls_ik.errors import RobotModelError
from dls_ik.model.files import package_folders, read_file
from dls_ik.text import listing, quoted

MAX_MANIFEST_BYTES = 1024 * 1024  # maximum size of a package.xml


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
