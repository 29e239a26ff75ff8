"""xacro files, expanded by the library of that name where it is installed."""

from importlib import import_module
from pathlib import Path
from typing import Any

from dls_ik.exceptions import RobotModelError
from dls_ik.model.names import quoted


def expanded(path: Path) -> str:
    """The URDF text that a xacro file stands for.

    xacro evaluates expressions of the file, includes what other files it likes and looks up the
    environment: the file has to be trusted. Nothing that comes over the network gets here.

    Raises:
        RobotModelError: xacro is not installed, or does not take the file.
    """
    shown = quoted(str(path))
    try:
        xacro: Any = import_module("xacro")
    except ImportError as error:
        raise RobotModelError(
            f"{shown} needs xacro: `pip install xacro`, or source ROS 2 with ros-DISTRO-xacro"
        ) from error
    try:
        document = xacro.process_file(str(path))
    except Exception as error:  # the library raises whatever it meets
        raise RobotModelError(f"xacro cannot expand {shown}: {error}") from error
    return str(document.toxml())
