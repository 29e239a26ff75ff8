# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cache files with results of long computations, valid until the source files change."""

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from dls_ik.model.files import PACKAGE_FOLDER
from dls_ik.shared_kernels import write_atomically


def read_kept(path: str, sources: tuple[str, ...]) -> bytes | None:
    """Return the content of a cache file written by :func:`write_kept`.

    Args:
        path: Path of the file.
        sources: Source files of this package whose code computes the content.

    Returns:
        The content; None if the file is missing or damaged, or if a source file has changed since
        the file was written.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return None
    return content[32:] if _stamp(sources, content[32:]) == content[:32] else None


def write_kept(path: str, sources: tuple[str, ...], content: bytes) -> None:
    """Write a cache file for :func:`read_kept`.

    The file is written atomically. Errors are ignored, because the content can be computed again.

    Args:
        path: Path of the file.
        sources: Source files of this package whose code computes the content.
        content: Content.
    """
    with suppress(OSError):
        write_atomically(Path(path), _stamp(sources, content) + content)


def remove_oldest(folder: str, prefix: str, max_files: int) -> None:
    """Remove the oldest cache files of a kind. Errors are ignored.

    Args:
        folder: Folder of the files.
        prefix: First characters of the names of the files.
        max_files: Number of files that remain at most.
    """
    with suppress(OSError):
        with os.scandir(folder) as entries:
            ages = [(e.stat().st_mtime, e.path) for e in entries if e.name.startswith(prefix)]
        for _, path in sorted(ages, reverse=True)[max_files:]:
            os.unlink(path)


def _stamp(sources: tuple[str, ...], content: bytes) -> bytes:
    """Return the digest (32 bytes) of a content and of the source files that compute it."""
    return hashlib.sha256(_digest(sources) + content).digest()


@cache
def _digest(sources: tuple[str, ...]) -> bytes:
    """Return the digest (32 bytes) of the text of source files of this package."""
    digest = hashlib.sha256()
    for name in sources:
        digest.update((PACKAGE_FOLDER / name).read_bytes())
    return digest.digest()
