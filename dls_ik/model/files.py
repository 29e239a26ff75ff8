"""Files that come with the package or lie in ROS packages, and a safe way to read files."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dls_ik.errors import RobotModelError
from dls_ik.text import did_you_mean, listing, quoted

PACKAGE = Path(__file__).resolve().parents[1]
URDFS = {"wam": "wam7.urdf", "planar_2r": "planar_2r.urdf", "puma560": "puma560.urdf"}

PACKAGE_SCHEME, FILE_SCHEME = "package://", "file://"


def shipped_names() -> tuple[str, ...]:
    """List the robots that come with the package."""
    return tuple(URDFS)


def shipped_urdf(name: str) -> Path:
    """Return the URDF file of a robot that comes with the package.

    Raises:
        RobotModelError: If the name is unknown; the message lists the known names.
    """
    if name not in URDFS:
        raise RobotModelError(f"unknown robot {name!r}; shipped: {listing(URDFS)}")
    return share_file("urdf", URDFS[name])


def share_file(*parts: str) -> Path:
    """Find a data file, such as ``share_file("config", "wam7_dh.yaml")``.

    Data files are at the root of the source tree, or in ``share/dls_ik`` of the prefix in which
    the package is installed.

    Raises:
        RobotModelError: If the file does not exist; the message lists the folders that were
            searched.
    """
    candidates = [folder.joinpath(*parts) for folder in _folders()]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise RobotModelError(
        f"the data file {'/'.join(parts)} of dls_ik is missing, the installation is incomplete; "
        f"looked for: {listing(map(str, candidates))}"
    )


def _folders() -> list[Path]:
    source = PACKAGE.parent
    installed = [parent / "share" / PACKAGE.name for parent in PACKAGE.parents]
    return [source, *installed] if (source / "package.xml").is_file() else installed


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """Read a file that a user or a description names.

    Args:
        most: Greatest size [bytes].

    Raises:
        OSError: If the file cannot be read, is too large, or is not a regular file, because reading
            a pipe or a device might never end.
        ValueError: If the text is not a possible file name.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # Windows
    with open(os.open(path, flags), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most} bytes", os.fspath(path))
    return content


def package_file(address: str) -> Path:
    """Find the file of ``package://NAME/PATH``.

    Packages are looked for in ``share/NAME`` below the prefixes of AMENT_PREFIX_PATH, and in the
    folders of ROS_PACKAGE_PATH; this package is always found.

    Raises:
        RobotModelError: If the URI has another form, its package is unknown, or the package has no
            such file.
    """
    name, _, inside = address.removeprefix(PACKAGE_SCHEME).partition("/")
    if not name or not inside:
        raise RobotModelError(f"a package path is package://NAME/PATH, not {quoted(address)}")
    folders = [folder for folder in package_folders(name) if folder.is_dir()]
    for folder in folders:
        if (folder / inside).is_file():
            return folder / inside
    if name == PACKAGE.name:
        return share_file(*inside.split("/"))
    if folders:
        raise RobotModelError(f"there is no file {quoted(inside)} in {listing(map(str, folders))}")
    hint = did_you_mean(name, _known(), " ({})")
    raise RobotModelError(
        f"no package {quoted(name)}{hint}; packages are looked for in AMENT_PREFIX_PATH "
        f"({listing(_paths('AMENT_PREFIX_PATH'))}) and ROS_PACKAGE_PATH "
        f"({listing(_paths('ROS_PACKAGE_PATH'))})"
    )


def package_folders(name: str) -> Iterator[Path]:
    """Yield the folders where a package may be, the nearest overlay first."""
    for prefix in _paths("AMENT_PREFIX_PATH"):
        yield Path(prefix) / "share" / name
    for path in map(Path, _paths("ROS_PACKAGE_PATH")):
        yield from (folder for folder in (path, *path.glob(f"*/{name}")) if folder.name == name)
        yield path / name


def package_roots() -> Iterator[Path]:
    """Yield the folders in which ROS packages are installed."""
    yield from (Path(prefix) / "share" for prefix in _paths("AMENT_PREFIX_PATH"))
    yield from map(Path, _paths("ROS_PACKAGE_PATH"))


def resource_candidates(name: str, folder: Path | None) -> Iterator[Path]:
    """Yield the paths that a name in a robot description may mean.

    Args:
        name: ``package://NAME/PATH``, ``file://PATH`` or a path.
        folder: Folder of the description, to which paths are relative, and in and above which
            packages are looked for too; None: unknown.
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
    """Yield the folders of the package of ``package://NAME/PATH`` that are above a folder.

    They have a ``package.xml``.
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


def _known() -> Iterator[str]:
    """Yield the names of the packages that exist."""
    yield PACKAGE.name
    for prefix in _paths("AMENT_PREFIX_PATH"):
        yield from (folder.name for folder in (Path(prefix) / "share").glob("*/"))
    for path in _paths("ROS_PACKAGE_PATH"):
        yield from (manifest.parent.name for manifest in Path(path).glob("*/package.xml"))


def _paths(variable: str) -> list[str]:
    return [path for path in os.environ.get(variable, "").split(os.pathsep) if path]
