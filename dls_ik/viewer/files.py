"""Where the files are that a URDF names."""

import os
from collections.abc import Iterator
from pathlib import Path

PACKAGE, FILE = "package://", "file://"


def find_file(name: str, beside: Path) -> Path | None:
    """The file that a URDF means by a name, if there is one.

    ``package://NAME/...`` is looked for in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH, in the folders
    above the URDF, and beside it.

    Args:
        beside: The folder of the URDF.
    """
    if name.startswith(PACKAGE):
        package, _, inside = name.removeprefix(PACKAGE).partition("/")
        candidates = _in_package(package, inside, beside)
    else:
        candidates = iter([beside / name.removeprefix(FILE)])
    return next((path for path in candidates if path.is_file()), None)


def _in_package(package: str, inside: str, beside: Path) -> Iterator[Path]:
    for prefix in _paths("AMENT_PREFIX_PATH"):
        yield prefix / "share" / package / inside
    for folder in _paths("ROS_PACKAGE_PATH"):
        yield folder / package / inside
        if folder.name == package:
            yield folder / inside
    for above in (beside, *beside.parents):
        yield above / package / inside
        if above.name == package:
            yield above / inside
    yield beside / inside


def _paths(variable: str) -> list[Path]:
    return [Path(path) for path in os.environ.get(variable, "").split(os.pathsep) if path]
