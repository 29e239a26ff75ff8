# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Folder of the user with compiled kernels, which installations of equal sources share.

:mod:`dls_ik.warm_up` writes each kernel that it compiles in advance into this folder, and copies
kernels from it instead of compiling them again, for example when the same version is installed
again by pip or colcon. Other processes never read the folder. The folder may be missing, damaged,
full or read-only: kernels are then compiled.
"""

import hashlib
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

MAX_SIZE = 256_000_000  # size of the folder [bytes], above which the oldest kernels are removed
SUFFIX = ".nbc"


def others_can_write(folder: Path) -> str:
    """Return why other users could write files into a folder, or "" if they cannot.

    Write access of groups is accepted, because many systems give each user a group of their own.

    Args:
        folder: Existing folder.

    Raises:
        OSError: If the folder does not exist.
    """
    if not hasattr(os, "geteuid"):  # files have no POSIX owners and modes on this system
        return ""
    for path in (folder, *folder.parents):
        about = path.stat()
        if about.st_uid not in (0, os.geteuid()):
            return f"{path} belongs to another user"
        keeps_owners = path != folder and about.st_mode & stat.S_ISVTX
        if about.st_mode & stat.S_IWOTH and not keeps_owners:
            return f"all users can write {path}"
    return ""


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file; if that fails, an existing file is kept, and no incomplete file is left.

    Raises:
        OSError: If the file cannot be written.
    """
    part = path.with_suffix(f".{secrets.token_hex(8)}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def shared_folder() -> Path | None:
    """Return ``$XDG_CACHE_HOME/dls_ik/kernels``, by default in ``~/.cache``; None without a home.

    The folder need not exist.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        cache = Path(os.path.expanduser("~"), ".cache")
    return cache / "dls_ik" / "kernels" if cache.is_absolute() else None


class SharedKernels:
    """Compiled kernels in a folder of the user.

    A file is named by the kernel and by a stamp: a hash of everything on which the machine code of
    the kernel depends. Its content is that of a cache file, which the reader verifies.
    """

    def __init__(self, folder: Path) -> None:
        """Initialise the kernels.

        Args:
            folder: Existing folder.
        """
        self.folder = folder

    def read(self, kernel: str, stamp: bytes) -> bytes | None:
        """Return the content of a file, and mark the file as used; None if it cannot be read.

        Args:
            kernel: Name of the kernel.
            stamp: Stamp of the kernel.
        """
        path = self.path(kernel, stamp)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):
            os.utime(path)
        return content

    def write(self, kernel: str, stamp: bytes, content: bytes) -> None:
        """Write a file atomically; do nothing if that is impossible, for example on a full disk.

        Args:
            kernel: Name of the kernel.
            stamp: Stamp of the kernel.
            content: Content of the cache file of the kernel.
        """
        with suppress(OSError):
            write_atomically(self.path(kernel, stamp), content)

    def path(self, kernel: str, stamp: bytes) -> Path:
        """Return the path of the file of a kernel.

        Args:
            kernel: Name of the kernel.
            stamp: Stamp of the kernel.
        """
        number = hashlib.sha256(stamp).hexdigest()[:32]
        return self.folder / f"{kernel}.{number}{SUFFIX}"

    def trim(self, max_size: int = MAX_SIZE) -> None:
        """Remove the files that have not been used for the longest time.

        Files that cannot be removed are ignored. Interrupted writes count as files.

        Args:
            max_size: Size of the folder [bytes] that remains at most.
        """
        files = []
        with suppress(OSError):
            for path in self.folder.iterdir():
                with suppress(OSError):
                    about = path.stat()
                    if path.suffix in (SUFFIX, ".part") and stat.S_ISREG(about.st_mode):
                        files.append((about.st_mtime, about.st_size, path))
        size = 0
        for _, its_size, path in sorted(files, reverse=True):
            size += its_size
            if size > max_size:
                with suppress(OSError):
                    path.unlink()


def open_shared_kernels() -> SharedKernels | None:
    """Return the kernels in :func:`shared_folder`, which is made if it is missing.

    None is returned if the folder cannot be made, or if another user can write into it.
    """
    folder = shared_folder()
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder.resolve()
        return None if others_can_write(folder) else SharedKernels(folder)
    except (OSError, RuntimeError):  # RuntimeError: a circle of symbolic links
        return None
