# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Load robots by name from the Python packages robot_descriptions and example-robot-data."""

import contextlib
import os
import pkgutil
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from dls_ik.errors import RobotModelError
from dls_ik.model.files import shipped_names, shipped_urdf
from dls_ik.model.tree import Tree
from dls_ik.model.urdf import load_urdf
from dls_ik.model.xacro_files import expanded
from dls_ik.text import did_you_mean, listing, quoted

DESCRIPTION_SUFFIX = "_description"  # all names of robots in robot_descriptions end with this text
EXAMPLE_DATA = "example-robot-data"
DESCRIPTIONS_HINT = "'dls-ik[descriptions]' (downloads each robot at its first use)"
EXAMPLE_HINT = f"{EXAMPLE_DATA} (131 MB, needs no network afterwards)"
_NAME = re.compile(r"[A-Za-z0-9][\w-]*")

# By name


def named_urdf(name: str, mappings: Mapping[str, object]) -> tuple[Path | str, Path] | None:
    """Return the URDF of a robot in an installed library, and the folder that contains the URDF.

    First, the library example-robot-data is searched for ``NAME.urdf`` and ``NAME_robot.urdf``.
    Then the library robot_descriptions is searched for ``NAME_description``; at the first use of a
    robot, this library clones the Git repository with the robot's description.

    Args:
        name: Name of the robot, such as ``"panda"`` or ``"ur5e"``.
        mappings: Values of xacro arguments by name; if not empty, only robot_descriptions is
            searched.

    Returns:
        (URDF, folder): the URDF is a path, or the text to which a xacro file expands. None if no
        installed library has the robot.

    Raises:
        RobotModelError: If the description cannot be cloned or expanded, or if `mappings` is not
            empty and the description is not a xacro file.
    """
    if not _NAME.fullmatch(name):
        return None
    path = _example_urdfs().get(name)
    if path is not None and not mappings:
        return path, path.parent
    described = name.replace("-", "_") + DESCRIPTION_SUFFIX
    return described_urdf(described, mappings) if described in _installed_descriptions() else None


def named_tree(name: str) -> Tree:
    """Load a robot that comes with the package or is in an installed library.

    Args:
        name: Name of the robot; see :func:`named_urdf`.

    Raises:
        RobotModelError: If the robot is not found; the message says what to install, or suggests
            names of robots in the installed libraries.
    """
    if name in shipped_names():
        return load_urdf(shipped_urdf(name))
    if is_description(name):
        return described_tree(name)
    found = named_urdf(name, {})
    if found is None:
        raise RobotModelError(unknown_robot(name))
    return load_urdf(*found)


def unknown_robot(name: str) -> str:
    """Return the error message for a name that is not a robot of this package or of a library.

    The message suggests similar names, and libraries to install.
    """
    examples, described = _example_urdfs(), _installed_descriptions()
    theirs = {*examples, *map(_short, described)}
    hint = did_you_mean(name, [*shipped_names(), *sorted(theirs)], " ({})")
    others = f" and {len(theirs)} robots of installed libraries" if theirs else ""
    missing = [] if described else [DESCRIPTIONS_HINT]
    missing += [] if examples else [EXAMPLE_HINT]
    install = f"; for more robots pip install {' or '.join(missing)}" if missing else ""
    known = f"{listing(shipped_names())}{others}"
    return f"unknown robot {quoted(name)}{hint}; known are {known}{install}"


def _short(description: str) -> str:
    return description.removesuffix(DESCRIPTION_SUFFIX)


# The library example-robot-data


def _example_urdfs() -> dict[str, Path]:
    """Return the URDF files of the library example-robot-data by name of the robot.

    The dictionary is empty if the library is not installed. The files are found by the metadata of
    the installed package, because importing the library would require pinocchio.
    """
    try:
        installed = distribution(EXAMPLE_DATA)
    except PackageNotFoundError:
        return {}
    folder = Path(str(installed.locate_file(f"cmeel.prefix/share/{EXAMPLE_DATA}/robots")))
    files = sorted((*folder.glob("*/urdf/*.urdf"), *folder.glob("*/robots/*.urdf")))
    short = {path.stem.removesuffix("_robot"): path for path in files}
    return short | {path.stem: path for path in files}


# The library robot_descriptions


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
    urdf, folder = described_urdf(name, mappings or {})
    return load_urdf(urdf, folder)


def is_description(name: str) -> bool:
    """Return whether a name has the form of robots in robot_descriptions (``ur5e_description``).

    The result is False if a file of this name exists.
    """
    return name.endswith(DESCRIPTION_SUFFIX) and name.isidentifier() and not os.path.exists(name)


def described_urdf(name: str, mappings: Mapping[str, object]) -> tuple[Path | str, Path]:
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
        raise RobotModelError(f"robot_descriptions has no URDF or xacro file of {name}")
    path = Path(str(urdf or xacro))
    if urdf is None:
        arguments = {**getattr(module, "XACRO_ARGS", {}), **mappings}
        packages = getattr(module, "XACRO_PACKAGE_PATHS", {})
        return expanded(path, arguments, packages), path.parent
    if mappings:
        raise RobotModelError(
            f"the description of {name} is a URDF file, which has no arguments; omit the argument "
            f"{next(iter(mappings))!r}"
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
    names = _descriptions_in(library)
    if name not in names:
        word = name if name.endswith(DESCRIPTION_SUFFIX) else name + DESCRIPTION_SUFFIX
        hint = did_you_mean(word, [n for n in names if "_mj_" not in n], "; {}")
        raise RobotModelError(f"robot_descriptions has no {quoted(name)}{hint}")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # the library prints progress
            return import_module(f"robot_descriptions.{name}")
    except Exception as error:  # git and the network raise errors of many types
        reason = next(iter(str(error).strip().splitlines()[-1:]), type(error).__name__).strip()
        raise RobotModelError(
            f"robot_descriptions cannot clone {name}: {reason}; check the network, or give the "
            "path of a URDF"
        ) from error


def _installed_descriptions() -> list[str]:
    """Return the names of the robots in robot_descriptions, such as ``ur5e_description``.

    The list is empty if the library is not installed.
    """
    try:
        return _descriptions_in(import_module("robot_descriptions"))
    except ImportError:
        return []


def _descriptions_in(library: Any) -> list[str]:
    """Return the names of the robots in the imported library robot_descriptions.

    Args:
        library: The module ``robot_descriptions``.
    """
    modules: Iterable[str] = (each.name for each in pkgutil.iter_modules(library.__path__))
    return [
        each for each in modules if each.endswith(DESCRIPTION_SUFFIX) and not each.startswith("_")
    ]
