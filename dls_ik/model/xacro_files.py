# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Expand xacro files (XML macros for robot descriptions) to URDF text."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from dls_ik import compat
from dls_ik.errors import RobotModelError
from dls_ik.model.files import package_folders, read_file
from dls_ik.text import listing, quoted

MAX_MANIFEST_BYTES = 1024 * 1024  # maximum size of a package.xml; larger files are not read


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
        RobotModelError: If xacro is not installed or fails, or if the file has no argument of a
            given name.
    """
    shown = quoted(str(path))
    try:
        xacro: Any = import_module("xacro")
    except ImportError as error:
        raise RobotModelError(
            f"{shown} needs xacro, which is not installed: pip install xacro, or install the "
            "package ros-DISTRO-xacro and source ROS 2"
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
        takes = f"valid arguments: {listing(sorted(given.asked))}" if given.asked else "it has none"
        raise RobotModelError(f"{shown} has no argument {listing(map(quoted, unknown))}; {takes}")
    return str(document.toxml())


def _package_of(path: Path, name: str) -> str:
    """Return the folder of the ROS package with a given name.

    The folder is one of the parent folders of the file `path`, or next to the package that contains
    the file, or in one of the folders of the environment variables AMENT_PREFIX_PATH and
    ROS_PACKAGE_PATH.

    Args:
        path: xacro file that refers to the package.
        name: Name of the package.

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
        f"cannot find the ROS package {quoted(name)}: it is not in a parent folder of the file, "
        "next to the package that contains the file, or in AMENT_PREFIX_PATH or ROS_PACKAGE_PATH"
    )


def _package_name(folder: Path) -> str:
    """Return the ROS package name in the ``package.xml`` of a folder; "" without a name."""
    try:
        text = read_file(folder / "package.xml", MAX_MANIFEST_BYTES).decode(errors="replace")
    except OSError:
        return ""
    match = re.search(r"<name>\s*([^<\s]+)\s*</name>", text)
    return match[1] if match else ""


class _Arguments(dict[str, str]):
    """Dictionary of xacro arguments that records the names that xacro looks up, in `asked`.

    xacro silently ignores arguments that a file does not declare, and does not look up their names.
    Therefore the caller can find such arguments by means of `asked`.
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
