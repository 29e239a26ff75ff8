"""Where the files are that a URDF names."""

from collections.abc import Iterable, Iterator
from os.path import normpath
from pathlib import Path

from dls_ik.model.files import PACKAGE_SCHEME, package_folders, package_roots

FILE = "file://"


def find_file(name: str, beside: Path) -> Path | None:
    """The file that a URDF means by a name, if there is one.

    ``package://NAME/...`` is looked for in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH, in the folders
    above the URDF, and beside it.

    Args:
        beside: The folder of the URDF.
    """
    if name.startswith(PACKAGE_SCHEME):
        package, _, inside = name.removeprefix(PACKAGE_SCHEME).partition("/")
        candidates = _in_package(package, inside, beside)
    else:
        candidates = iter([beside / name.removeprefix(FILE)])
    return _first_file(candidates)


def find_installed_file(name: str) -> Path | None:
    """The file that a URDF of somebody else's means, if it is in a ROS package of this machine."""
    roots = [normpath(root) for root in package_roots()]
    if name.startswith(PACKAGE_SCHEME):
        package, _, inside = name.removeprefix(PACKAGE_SCHEME).partition("/")
        candidates = [folder / inside for folder in package_folders(package)]
    else:
        candidates = [Path(name.removeprefix(FILE))]
    named = [Path(normpath(path)) for path in candidates]
    return _first_file(path for path in named if any(path.is_relative_to(root) for root in roots))


def _first_file(candidates: Iterable[Path]) -> Path | None:
    try:
        return next((path for path in candidates if path.is_file()), None)
    except (OSError, ValueError):  # no name that a file could have
        return None


def _in_package(package: str, inside: str, beside: Path) -> Iterator[Path]:
    yield from (folder / inside for folder in package_folders(package))
    for above in (beside, *beside.parents):
        yield above / package / inside
        if above.name == package:
            yield above / inside
    yield beside / inside
