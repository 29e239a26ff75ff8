# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reproducible sdist: `release_sdist.py FILE.tar.gz` repacks it so equal files give equal bytes.

Members are sorted, without owners, with the modes of a umask of 022 and times no later than
SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member without properties that depend on the machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = EPOCH
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    member.pax_headers = {}
    return member


def packed(path: Path) -> bytes:
    """Return the archive uncompressed, with plain members sorted by name."""
    buffer = io.BytesIO()
    with (
        tarfile.open(path) as old,
        tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            new.addfile(plain(member), old.extractfile(member) if member.isfile() else None)
    return buffer.getvalue()


def main() -> None:
    """Replace the file."""
    path = Path(sys.argv[1])
    content = packed(path)
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, EPOCH) as compressed:
        compressed.write(content)


if __name__ == "__main__":
    main()
