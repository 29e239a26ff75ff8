# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Data files of this package, files in ROS packages, and bounded reading of files."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dls_ik.errors import RobotModelError
from dls_ik.text import did_you_mean, listing, quoted

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
URDFS = {"wam": "wam7.urdf", "planar_2r": "planar_2r.urdf", "puma560": "puma560.urdf"}

PACKAGE_SCHEME, FILE_SCHEME = "package://", "file://"


def shipped_names() -> tuple[str, ...]:
    """Return the names of the robots that come with the package."""
    return tuple(URDFS)


def shipped_urdf(name: str) -> Path:
    """Return the URDF file of a robot that comes with the package.

    Raises:
        RobotModelError: If the name is unknown; the message lists the known names.
    """
    if name not in URDFS:
        raise RobotModelError(f"unknown robot {name!r}; shipped robots: {listing(URDFS)}")
    return share_file("urdf", URDFS[name])


def share_file(*parts: str) -> Path:
    """Return the path of a data file, such as ``share_file("config", "wam7_dh.yaml")``.

    Data files are in the root of the source tree, or in ``share/dls_ik`` below the installation
    prefix.

    Raises:
        RobotModelError: If the file does not exist; the message lists the searched folders.
    """
    candidates = [folder.joinpath(*parts) for folder in _folders()]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise RobotModelError(
        f"data file {'/'.join(parts)} of dls_ik is missing: the installation is incomplete; "
        f"searched: {listing(map(str, candidates))}"
    )


def _folders() -> list[Path]:
    """Return the folders in which :func:`share_file` searches data files of this package."""
    source = PACKAGE_FOLDER.parent
    installed = [parent / "share" / PACKAGE_FOLDER.name for parent in PACKAGE_FOLDER.parents]
    return [source, *installed] if (source / "package.xml").is_file() else installed


def read_file(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Return the content of a regular file of bounded size.

    The path may come from a user or a robot description. Pipes and devices are rejected, because
    reading from a pipe or device might never end.

    Args:
        path: Path of the file.
        max_bytes: Maximum size of the file [bytes].

    Raises:
        OSError: If the file cannot be read, is too large, or is not a regular file.
        ValueError: If the path is not a possible file name.
    """
    # O_NONBLOCK does not exist on Windows; O_BINARY exists on Windows only.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", os.fspath(path))
    return content


def package_file(address: str) -> Path:
    """Return the path of the existing file to which a URI ``package://NAME/PATH`` refers.

    Packages are searched in ``share/NAME`` below the prefixes of AMENT_PREFIX_PATH, and in the
    folders of ROS_PACKAGE_PATH. Files of the package dls_ik are always found.

    Raises:
        RobotModelError: If the URI has another form, its package is unknown, or the package has no
            such file.
    """
    name, _, inside = address.removeprefix(PACKAGE_SCHEME).partition("/")
    if not name or not inside:
        raise RobotModelError(f"a package URI must be package://NAME/PATH; got {quoted(address)}")
    folders = [folder for folder in package_folders(name) if folder.is_dir()]
    for folder in folders:
        if (folder / inside).is_file():
            return folder / inside
    if name == PACKAGE_FOLDER.name:
        return share_file(*inside.split("/"))
    if folders:
        raise RobotModelError(f"there is no file {quoted(inside)} in {listing(map(str, folders))}")
    hint = did_you_mean(name, _package_names(), " ({})")
    raise RobotModelError(
        f"no package {quoted(name)}{hint}; searched AMENT_PREFIX_PATH "
        f"({listing(_paths('AMENT_PREFIX_PATH'))}) and ROS_PACKAGE_PATH "
        f"({listing(_paths('ROS_PACKAGE_PATH'))})"
    )


def package_folders(name: str) -> Iterator[Path]:
    """Yield the folders, existing or not, in which a ROS package with a given name may be.

    The folders are in the order of AMENT_PREFIX_PATH and then of ROS_PACKAGE_PATH. Both variables
    list the top overlay first.
    """
    for prefix in _paths("AMENT_PREFIX_PATH"):
        yield Path(prefix) / "share" / name
    for path in map(Path, _paths("ROS_PACKAGE_PATH")):
        yield from (folder for folder in (path, *path.glob(f"*/{name}")) if folder.name == name)
        yield path / name


def package_roots() -> Iterator[Path]:
    """Yield the folders of AMENT_PREFIX_PATH and ROS_PACKAGE_PATH that contain ROS packages."""
    yield from (Path(prefix) / "share" for prefix in _paths("AMENT_PREFIX_PATH"))
    yield from map(Path, _paths("ROS_PACKAGE_PATH"))


def resource_candidates(name: str, folder: Path | None) -> Iterator[Path]:
    """Yield the paths, existing or not, to which a file name in a robot description may refer.

    Args:
        name: ``package://NAME/PATH``, ``file://PATH`` or a path.
        folder: Folder of the robot description, or None if unknown. Relative paths refer to this
            folder. Packages are searched in AMENT_PREFIX_PATH, in ROS_PACKAGE_PATH, in this folder
            and in its parent folders.
    """
    if not name.startswith(PACKAGE_SCHEME):
        yield (folder or Path()) / name.removeprefix(FILE_SCHEME)
        return
    package, _, inside = name.removeprefix(PACKAGE_SCHEME).partition("/")
    yield from (root / inside for root in package_folders(package))
    if folder is None:
        return
    for above in (folder, *folder.parents):
        yield above / package / inside
        if above.name == package:
            yield above / inside
    yield folder / inside


def resource_packages(name: str, folder: Path) -> Iterator[Path]:
    """Yield the folders of the ROS package NAME of a resource name ``package://NAME/PATH``.

    The package is searched next to, in and above a given folder. Only folders that contain a
    ``package.xml`` are yielded.

    Args:
        name: Resource name; names with another scheme yield no folder.
        folder: Given folder.
    """
    if not name.startswith(PACKAGE_SCHEME):
        return
    package = name.removeprefix(PACKAGE_SCHEME).partition("/")[0]
    if package in ("", ".", ".."):
        return
    for above in (folder, *folder.parents):
        for found in (above, above / package):
            if found.name == package and (found / "package.xml").is_file():
                yield found


def _package_names() -> Iterator[str]:
    """Yield ``dls_ik`` and the names of all packages in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH."""
    yield PACKAGE_FOLDER.name
    for prefix in _paths("AMENT_PREFIX_PATH"):
        yield from (folder.name for folder in (Path(prefix) / "share").glob("*/"))
    for path in _paths("ROS_PACKAGE_PATH"):
        yield from (manifest.parent.name for manifest in Path(path).glob("*/package.xml"))


def _paths(variable: str) -> list[str]:
    """Return the folders that an environment variable such as AMENT_PREFIX_PATH lists."""
    return [path for path in os.environ.get(variable, "").split(os.pathsep) if path]
