"""The checkout's files, and the wheel and the sdist that are made of them."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from install_matrix.bench import Bench, StepError

ROOT = Path(__file__).resolve().parents[2]
BUILD_TOOLS = "requirements/release.txt"


class Artefacts(NamedTuple):
    """What is installed in the rows."""

    wheel: Path
    sdist: Path


def copy_source(target: Path) -> None:
    """Copy what git knows, and what it would take, as it stands in the work tree."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def build_artefacts(bench: Bench, python: str) -> Artefacts:
    """Build the sdist, the wheel, and the wheel of the sdist, which must be of the same files.

    Raises:
        StepError: if one cannot be built, or they differ.
    """
    with bench.step("build tools"):
        bench.run(python, "-m", "venv", "venv")
        bench.run(bench.bin / "pip", "install", "--no-input", "-r", ROOT / BUILD_TOOLS)
    with bench.step("wheel and sdist") as words:
        copy_source(bench.folder / "source")
        build = (bench.bin / "python", "-m", "build", "--no-isolation")
        bench.run(*build, "--sdist", "--wheel", "--outdir", "built", "source")
        found = find_artefacts(bench.folder / "built")
        with tarfile.open(found.sdist) as archive:
            archive.extractall(bench.folder / "unpacked", filter="data")
        (inner,) = (bench.folder / "unpacked").iterdir()
        bench.run(*build, "--wheel", "--outdir", "again", inner)
        _compare(found.wheel, _one(bench.folder / "again", "whl"))
        words.append(f"{found.wheel.name}, the same from the sdist")
    return found


def find_artefacts(folder: Path) -> Artefacts:
    """The one wheel and the one sdist of a folder.

    Raises:
        StepError: if there are none, or several.
    """
    return Artefacts(_one(folder, "whl"), _one(folder, "tar.gz"))


def _one(folder: Path, suffix: str) -> Path:
    found = sorted(folder.glob(f"*.{suffix}"))
    if len(found) != 1:
        raise StepError(f"{len(found)} files *.{suffix} in {folder.name}, not one")
    return found[0]


def _compare(wheel: Path, again: Path) -> None:
    one, other = _sums(wheel), _sums(again)
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    if names:
        raise StepError(f"the sdist makes another wheel: {', '.join(names[:5])}")


def _sums(wheel: Path) -> dict[str, int]:
    """The checksum of each file of a wheel, but for the list of its files."""
    with zipfile.ZipFile(wheel) as archive:
        return {i.filename: i.CRC for i in archive.infolist() if not i.filename.endswith("RECORD")}
