# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reduction of the size of a virtual environment: remove unused files, store equal files once.

Wheels cannot contain links, so the wheels of ROS 2 have one library under three names, and OpenSSL
seven times; some wheels also contain their tests. All file names stay in place for pip, which
replaces and removes each name independently.
"""

import hashlib
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SMALLEST = 65536  # [B] minimum size of a file that is replaced by a link
TESTED = ("matplotlib", "numba", "numpy")  # packages with tests that nothing else imports


def large_files(folder: Path) -> Iterator[Path]:
    """Yield the large files that are not symbolic links."""
    for path in sorted(folder.rglob("*")):
        if not path.is_symlink() and path.is_file() and path.stat().st_size >= SMALLEST:
            yield path


def equal_files(folder: Path) -> list[list[Path]]:
    """Return the groups of at least two files with equal content and mode."""
    by_size, by_content = defaultdict(list), defaultdict(list)
    for path in large_files(folder):
        by_size[path.stat().st_size, path.stat().st_mode].append(path)
    for key, paths in by_size.items():
        for path in paths if len(paths) > 1 else ():
            by_content[key, hashlib.sha256(path.read_bytes()).digest()].append(path)
    return [paths for paths in by_content.values() if len(paths) > 1]


def link_equal_files(folder: Path) -> None:
    """Replace all but the first of equal files by hard links to the first."""
    for first, *others in equal_files(folder):
        for path in others:
            if not path.samefile(first):
                link = path.with_name(f"{path.name}.link")
                link.unlink(missing_ok=True)
                os.link(first, link)
                link.replace(path)


def remove_tests(site_packages: Path) -> None:
    """Remove the tests that are part of installed packages."""
    for package in TESTED:
        for tests in sorted((site_packages / package).rglob("tests")):
            shutil.rmtree(tests, ignore_errors=True)


def main(prefix: str) -> None:
    """Reduce the size of the environment at a prefix."""
    for site_packages in Path(prefix, "lib").glob("python3*/site-packages"):
        remove_tests(site_packages)
    link_equal_files(Path(prefix))


if __name__ == "__main__":
    main(sys.argv[1])
