"""The robots that come with the package, and where its data files are."""

from pathlib import Path

from dls_ik.exceptions import RobotModelError
from dls_ik.model.names import listing

PACKAGE = Path(__file__).resolve().parents[1]
URDFS = {"wam": "wam7.urdf", "planar_2r": "planar_2r.urdf", "puma560": "puma560.urdf"}


def shipped_names() -> tuple[str, ...]:
    """The names that :func:`shipped_urdf` takes."""
    return tuple(URDFS)


def shipped_urdf(name: str) -> Path:
    """The URDF file of a robot that comes with the package.

    Raises:
        RobotModelError: an unknown name; the message lists the known ones.
    """
    if name not in URDFS:
        raise RobotModelError(f"unknown robot {name!r}; shipped: {listing(URDFS)}")
    return share_file("urdf", URDFS[name])


def share_file(*parts: str) -> Path:
    """A data file such as ``share_file("config", "wam7_dh.yaml")``.

    It lies at the root of the source tree, or in ``share/dls_ik`` of the prefix that the package is
    installed in.

    Raises:
        RobotModelError: no such file; the message lists where it was looked for.
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
