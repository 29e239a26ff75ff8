"""Finished chunks: on disk, so that a run goes on after a kill, or in memory."""

from __future__ import annotations

import fcntl
import io
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik import __version__
from dls_ik.model.files import read_file
from dls_ik.reachability.chunks import Voxels
from dls_ik.reachability.grid import ReachabilityError
from dls_ik.reachability.settings import MapSettings

LOG = logging.getLogger("dls_ik")
MANIFEST = "settings.json"
LOCK = "lock"
NAME = re.compile(r"chunk-(\d+)\.npz")
MAX_BYTES = 64 * 1024 * 1024  # of a file here; a chunk has some kilobytes


class MemoryParts:
    """Keeps finished chunks in memory."""

    def __init__(self) -> None:
        self._kept: dict[int, Voxels] = {}

    def finished(self) -> set[int]:
        """Return the numbers of the finished chunks."""
        return set(self._kept)

    def keep(self, chunk: int, voxels: Voxels) -> None:
        """Keep a chunk."""
        self._kept[chunk] = voxels

    def load(self, chunk: int) -> Voxels:
        """Return a finished chunk."""
        return self._kept[chunk]


class FolderParts:
    """Keeps finished chunks in a folder, one file each, which appears only when it is whole."""

    def __init__(self, folder: Path, settings: MapSettings) -> None:
        self._folder, self._settings = folder, settings

    def finished(self) -> set[int]:
        """Return the numbers of the finished chunks."""
        names = (NAME.fullmatch(path.name) for path in self._folder.glob("chunk-*"))
        return {int(match[1]) for match in names if match}

    def remove_damaged(self) -> None:
        """Remove chunks that cannot be read, to be computed again, and log their number."""
        damaged = sum(not self._is_whole(chunk) for chunk in self.finished())
        if damaged:
            words = "chunk was" if damaged == 1 else "chunks were"
            LOG.warning("%d %s damaged in %s: computed anew", damaged, words, self._folder)

    def keep(self, chunk: int, voxels: Voxels) -> None:
        """Write a chunk to a temporary file, then rename it.

        Raises:
            ReachabilityError: it cannot be written.
        """
        path = self._path(chunk)
        part = path.with_suffix(".part")
        content = io.BytesIO()
        np.savez(content, **voxels._asdict())
        try:
            with part.open("wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise ReachabilityError(
                f"cannot write {path}: {error.strerror or error}; what was finished is kept"
            ) from error

    def load(self, chunk: int) -> Voxels:
        """Return a finished chunk.

        Raises:
            ReachabilityError: its file is damaged; it is removed, to be computed anew.
        """
        path = self._path(chunk)
        first, last = self._settings.voxels(chunk)
        try:
            with np.load(io.BytesIO(read_file(path, MAX_BYTES)), allow_pickle=False) as file:
                voxels = Voxels(**file)
            if any(array.shape != (last - first,) for array in voxels):
                raise ValueError("another number of voxels")
            return voxels
        except Exception as error:
            with suppress(OSError):
                path.unlink()
            raise ReachabilityError(
                f"{path} was damaged and is removed: the same command computes it anew"
            ) from error

    def _is_whole(self, chunk: int) -> bool:
        try:
            self.load(chunk)
        except ReachabilityError:
            return False
        return True

    def remove(self) -> None:
        """Remove the folder, its manifest last, so that an interrupted removal is recognized."""
        with suppress(OSError):
            for path in self._folder.glob("chunk-*"):
                path.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if no chunk was finished."""
        if not self.finished():
            self.remove()

    def _path(self, chunk: int) -> Path:
        return self._folder / f"chunk-{chunk:07d}.npz"


def parts_folder(store: Path) -> Path:
    """Return the folder with the chunks of an unfinished map."""
    return store.with_name(f"{store.name}.parts")


@contextmanager
def open_parts(store: Path, settings: MapSettings) -> Iterator[FolderParts]:
    """Open the finished chunks of an unfinished map, for one process at a time.

    Raises:
        ReachabilityError: they belong to another map, another process has them open, or the
            folder cannot be written.
    """
    folder = parts_folder(store)
    parts = FolderParts(folder, settings)
    with ExitStack() as stack:
        try:
            folder.mkdir(exist_ok=True)
            lock = stack.enter_context((folder / LOCK).open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _check_manifest(folder, settings)
        except BlockingIOError as error:
            raise ReachabilityError(f"another process is computing {store}") from error
        except OSError as error:
            if not (folder / MANIFEST).exists():
                parts.remove_if_empty()
            raise ReachabilityError(f"cannot write {folder}: {error.strerror}") from error
        stack.callback(parts.remove_if_empty)
        parts.remove_damaged()
        yield parts


def _check_manifest(folder: Path, settings: MapSettings) -> None:
    manifest = folder / MANIFEST
    asked = {
        **settings.as_json(),
        "voxels_per_chunk": settings.voxels_per_chunk,
        "dls_ik": __version__,
    }
    if not manifest.exists():
        part = manifest.with_suffix(".part")
        try:
            part.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")
            part.replace(manifest)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        return
    differing = differences(_read_manifest(manifest), asked)
    if differing:
        raise ReachabilityError(
            f"{folder} holds an unfinished map with other settings ({differing}): go on with "
            "those, write to another file, or remove the folder"
        )


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_file(manifest, MAX_BYTES))
    except (OSError, ValueError) as error:
        raise ReachabilityError(f"cannot read {manifest}: {error}") from error
    return found if isinstance(found, dict) else {}


def differences(found: dict[str, Any], asked: dict[str, Any]) -> str:
    """Describe the differences of two settings; empty where they agree."""
    keys = [key for key in asked if found.get(key) != asked[key]]
    return ", ".join(f"{key} {found.get(key)}, now {asked[key]}" for key in keys)
