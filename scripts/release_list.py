# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Sorted list of the files of a wheel or sdist, one per line: `release_list.py FILE`."""

from __future__ import annotations

import sys
import tarfile
import zipfile


def names(path: str) -> list[str]:
    """Return the files, without the top folder of an sdist."""
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as archive:
            return sorted(archive.namelist())
    with tarfile.open(path) as archive:
        files = [member.name for member in archive.getmembers() if member.isfile()]
    return sorted(name.partition("/")[2] for name in files)


if __name__ == "__main__":
    print("\n".join(names(sys.argv[1])))
