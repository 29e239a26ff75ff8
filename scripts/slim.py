# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Make a virtual environment smaller: remove what nothing in it reads, store equal files once.

Wheels know no links, so those of ROS 2 bring one library under three names, and OpenSSL seven
times; and some wheels bring their own tests. The files stay where pip expects them: it replaces
and removes each name of a file for itself.
"""

import hashlib
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SMALLEST = 65536  # [B] of a file that is worth a link
TESTED = ("matplotlib", "numba", "numpy")  # packages with tests that nothing else imports


def large_files(folder: Path) -> Iterator[Path]:
    """Yield the files, without links, that are worth a link."""
    for path in sorted(folder.rglob("*")):
        if not path.is_symlink() and path.is_file() and path.stat().st_size >= SMALLEST:
            yield path


def equal_files(folder: Path) -> list[list[Path]]:
    """Return the lists of two and more files of the same content and mode."""
    by_size, by_content = defaultdict(list), defaultdict(list)
    for path in large_files(folder):
        by_size[path.stat().st_size, path.stat().st_mode].append(path)
    for key, paths in by_size.items():
        for path in paths if len(paths) > 1 else ():
            by_content[key, hashlib.sha256(path.read_bytes()).digest()].append(path)
    return [paths for paths in by_content.values() if len(paths) > 1]


def link_equal_files(folder: Path) -> None:
    """Replace all but the first of equal files by hard links to it."""
    for first, *others in equal_files(folder):
        for path in others:
            if not path.samefile(first):
                link = path.with_name(f"{path.name}.link")
                link.unlink(missing_ok=True)
                os.link(first, link)
                link.replace(path)


def remove_tests(site_packages: Path) -> None:
    """Remove the tests that packages bring of themselves."""
    for package in TESTED:
        for tests in sorted((site_packages / package).rglob("tests")):
            shutil.rmtree(tests, ignore_errors=True)


def main(prefix: str) -> None:
    """Make the environment at a prefix smaller."""
    for site_packages in Path(prefix, "lib").glob("python3*/site-packages"):
        remove_tests(site_packages)
    link_equal_files(Path(prefix))


if __name__ == "__main__":
    main(sys.argv[1])
