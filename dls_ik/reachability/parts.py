"""Finished chunks: on disk, so that a run goes on after a kill, or in memory."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik import __version__
from dls_ik.reachability.chunk import Voxels
from dls_ik.reachability.error import ReachabilityError
from dls_ik.reachability.settings import Settings

MANIFEST = "settings.json"
LOCK = "lock"
NAME = re.compile(r"chunk-(\d+)\.npz")


class MemoryParts:
    """Chunks of a run that leaves no file behind."""

    def __init__(self) -> None:
        self._kept: dict[int, Voxels] = {}

    def finished(self) -> set[int]:
        """Numbers of the chunks that are kept."""
        return set(self._kept)

    def keep(self, chunk: int, voxels: Voxels) -> None:
        """Keep a chunk."""
        self._kept[chunk] = voxels

    def load(self, chunk: int) -> Voxels:
        """A chunk that is kept."""
        return self._kept[chunk]


class FolderParts:
    """Chunks in a folder, a file each, whose names appear only once they are whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def finished(self) -> set[int]:
        """Numbers of the chunks that are kept."""
        names = (NAME.fullmatch(path.name) for path in self._folder.glob("chunk-*"))
        return {int(match[1]) for match in names if match}

    def keep(self, chunk: int, voxels: Voxels) -> None:
        """Write a chunk beside its place, then move it there.

        Raises:
            ReachabilityError: it cannot be written.
        """
        path = self._path(chunk)
        part = path.with_suffix(".part")
        try:
            with part.open("wb") as file:
                np.savez(file, **voxels._asdict())
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            raise ReachabilityError(
                f"cannot write {path}: {error.strerror or error}; what was finished is kept"
            ) from error

    def load(self, chunk: int) -> Voxels:
        """A chunk that is kept.

        Raises:
            ReachabilityError: its file is damaged; it is removed, to be computed anew.
        """
        path = self._path(chunk)
        try:
            with np.load(path, allow_pickle=False) as file:
                return Voxels(**file)
        except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
            path.unlink(missing_ok=True)
            raise ReachabilityError(
                f"{path} was damaged and is removed: the same command computes it anew"
            ) from error

    def remove(self) -> None:
        """Remove the folder, its manifest last: without one it is nobody's."""
        for path in self._folder.glob("chunk-*"):
            path.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, chunk: int) -> Path:
        return self._folder / f"chunk-{chunk:07d}.npz"


def parts_folder(store: Path) -> Path:
    """Where the chunks of an unfinished map are."""
    return store.with_name(f"{store.name}.parts")


@contextmanager
def open_parts(store: Path, settings: Settings) -> Iterator[FolderParts]:
    """The chunks that are finished so far of the map to be stored there, for one process at a time.

    Raises:
        ReachabilityError: they are of another map, another process works on them, or the folder
            cannot be written.
    """
    folder = parts_folder(store)
    try:
        folder.mkdir(exist_ok=True)
        with (folder / LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _check_manifest(folder, settings)
            parts = FolderParts(folder)
            try:
                yield parts
            finally:
                if not parts.finished():
                    parts.remove()
    except BlockingIOError as error:
        raise ReachabilityError(f"another process is computing {store}") from error
    except (FileExistsError, PermissionError) as error:
        raise ReachabilityError(f"cannot write {folder}: {error.strerror}") from error


def _check_manifest(folder: Path, settings: Settings) -> None:
    manifest = folder / MANIFEST
    asked = {
        **settings.as_json(),
        "voxels_per_chunk": settings.voxels_per_chunk,
        "dls_ik": __version__,
    }
    if not manifest.exists():
        part = manifest.with_suffix(".part")
        part.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")
        part.replace(manifest)
        return
    differing = differences(_read_manifest(manifest), asked)
    if differing:
        raise ReachabilityError(
            f"{folder} holds an unfinished map with other settings ({differing}): go on with "
            "those, write to another file, or remove the folder"
        )


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReachabilityError(f"cannot read {manifest}: {error}") from error
    return found if isinstance(found, dict) else {}


def differences(found: dict[str, Any], asked: dict[str, Any]) -> str:
    """What two settings differ in, in words; empty where they agree."""
    keys = [key for key in asked if found.get(key) != asked[key]]
    return ", ".join(f"{key} {found.get(key)}, now {asked[key]}" for key in keys)
