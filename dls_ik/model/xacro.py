"""xacro files, expanded by the library of that name where it is installed."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from dls_ik.exceptions import RobotModelError
from dls_ik.model.names import listing, quoted


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
