# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Storage of finished chunks, so that an interrupted computation can be resumed."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik import __version__
from dls_ik.chunks.executors import Result, Work, dask_cluster, local_threads, run_chunks
from dls_ik.core.jit import fcntl
from dls_ik.errors import ChunkError
from dls_ik.model.files import read_file

Progress = Callable[[int, int], None]  # arguments: finished chunks, all chunks

LOG = logging.getLogger("dls_ik")
MANIFEST = "settings.json"
LOCK_NAME = "lock"
CHUNK_NAME = re.compile(r"chunk-(\d+)\.npz")
MAX_PART_BYTES = 64 * 1024 * 1024  # maximum size of the file of a chunk, typically a few kilobytes


class FolderParts:
    """Folder with a file for each finished chunk of a computation.

    Args:
        folder: The folder.
        columns: Names of the arrays of a chunk.
        length: Returns the number of rows of a chunk, the length of each of its arrays.
    """

    def __init__(self, folder: Path, columns: Sequence[str], length: Callable[[int], int]) -> None:
        self._folder, self._columns, self._length = folder, columns, length

    def finished(self) -> set[int]:
        """Return the numbers of the finished chunks."""
        names = (CHUNK_NAME.fullmatch(path.name) for path in self._folder.glob("chunk-*"))
        return {int(match[1]) for match in names if match}

    def remove_damaged(self) -> None:
        """Remove the files of chunks that cannot be read, so that the chunks are computed again."""
        damaged = sum(not self._is_whole(chunk) for chunk in self.finished())
        if damaged:
            words = "chunk was" if damaged == 1 else "chunks were"
            LOG.warning("%d %s damaged in %s: computed again", damaged, words, self._folder)

    def keep(self, chunk: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the results of a chunk to a file; an interruption leaves no incomplete file.

        Args:
            chunk: Number of the chunk.
            arrays: Arrays by name, all of the length of the chunk.

        Raises:
            ChunkError: If the file cannot be written.
        """
        path = self._path(chunk)
        part = path.with_suffix(".part")
        content, named = io.BytesIO(), dict[str, Any](arrays)
        np.savez(content, **named)
        try:
            with part.open("wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise ChunkError(
                f"cannot write {path}: {error.strerror or error}; finished chunks are kept"
            ) from error

    def load(self, chunk: int) -> dict[str, NDArray[Any]]:
        """Return the arrays of a finished chunk by name.

        A damaged file is removed, so that the next call computes the chunk again.

        Raises:
            ChunkError: If the file is damaged.
        """
        path = self._path(chunk)
        try:
            with np.load(io.BytesIO(read_file(path, MAX_PART_BYTES)), allow_pickle=False) as file:
                arrays = dict(file)
            if set(arrays) != set(self._columns):
                raise ValueError("wrong names of arrays")
            if any(array.shape[:1] != (self._length(chunk),) for array in arrays.values()):
                raise ValueError("wrong number of rows")
            return arrays
        except Exception as error:
            with suppress(OSError):
                path.unlink()
            raise ChunkError(
                f"{path} was damaged and has been removed; run the same command to compute it again"
            ) from error

    def _is_whole(self, chunk: int) -> bool:
        try:
            self.load(chunk)
        except ChunkError:
            return False
        return True

    def remove(self) -> None:
        """Remove the files of the chunks, then the rest of the folder.

        In this order, the manifest with the settings remains if the removal is interrupted.
        """
        with suppress(OSError):
            for path in self._folder.glob("chunk-*"):
                path.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if it contains no finished chunk."""
        if not self.finished():
            self.remove()

    def _path(self, chunk: int) -> Path:
        return self._folder / f"chunk-{chunk:07d}.npz"


def parts_folder(store: Path) -> Path:
    """Return the folder for the finished chunks of results that will be written to `store`."""
    return store.with_name(f"{store.name}.parts")


@contextmanager
def open_parts(
    store: Path,
    settings: Mapping[str, Any],
    columns: Sequence[str],
    length: Callable[[int], int],
    subject: str,
) -> Iterator[FolderParts]:
    """Yield the folder of the finished chunks of a computation, locked against other processes.

    At the end of the ``with`` block, the folder is removed if it contains no finished chunk.

    Args:
        store: Path to which the complete results will be written.
        settings: Settings of the computation, as JSON types; chunks are used again only by a
            computation with the same settings and the same version of this package.
        columns: Names of the arrays of a chunk.
        length: Returns the number of rows of a chunk.
        subject: Name of the results in messages, such as "map".

    Raises:
        ChunkError: If the chunks belong to results with other settings, another process uses the
            folder, or the folder cannot be written.
    """
    folder = parts_folder(store)
    parts = FolderParts(folder, columns, length)
    with ExitStack() as stack:
        try:
            folder.mkdir(exist_ok=True)
            lock = stack.enter_context((folder / LOCK_NAME).open("a"))
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _check_manifest(folder, {**settings, "dls_ik": __version__}, subject)
        except BlockingIOError as error:
            raise ChunkError(f"another process is computing {store}") from error
        except OSError as error:
            if not (folder / MANIFEST).exists():
                parts.remove_if_empty()
            raise ChunkError(f"cannot write {folder}: {error.strerror}") from error
        stack.callback(parts.remove_if_empty)
        parts.remove_damaged()
        yield parts


def _check_manifest(folder: Path, asked: dict[str, Any], subject: str) -> None:
    manifest = folder / MANIFEST
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
        raise ChunkError(
            f"{folder} holds an unfinished {subject} with other settings ({differing}): use these "
            "settings, write to another file, or remove the folder"
        )


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_file(manifest, MAX_PART_BYTES))
    except (OSError, ValueError) as error:
        raise ChunkError(f"cannot read {manifest}: {error}") from error
    return found if isinstance(found, dict) else {}


def differences(found: dict[str, Any], asked: dict[str, Any]) -> str:
    """Describe the differences between stored and requested settings; "" if they agree."""
    keys = [key for key in asked if found.get(key) != asked[key]]
    return ", ".join(f"{key} {found.get(key)}, now {asked[key]}" for key in keys)


def solve_missing(
    work: Work[Result],
    total: int,
    finished: Collection[int],
    keep: Callable[[int, Result], None],
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Solve the chunks that are not finished yet, and pass each result to `keep`.

    Args:
        work: Job, and the function that solves one of its chunks.
        total: Number of all chunks.
        finished: Numbers of the finished chunks.
        keep: Called with the number and the results of a chunk.
        scheduler: Address of a Dask scheduler; None uses the threads of this machine.
        progress: Called with the number of finished chunks and the number of all chunks.
    """
    count = len(finished)

    def keep_and_count(chunk: int, result: Result) -> None:
        nonlocal count
        keep(chunk, result)
        count += 1
        if progress is not None:
            progress(count, total)

    if progress is not None:
        progress(count, total)
    # The order is random, so that the first chunks are a fair sample for the remaining time.
    order: list[int] = np.random.default_rng(0).permutation(total).tolist()
    missing = [chunk for chunk in order if chunk not in finished]
    if missing:
        with local_threads() if scheduler is None else dask_cluster(scheduler) as (executor, depth):
            run_chunks(work, missing, executor, depth, keep_and_count)
