"""Who can write the machine code that this user's processes will run."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def others_can_write(folder: Path) -> str:
    """Why others could put files of theirs into a folder; empty where they cannot.

    Groups are trusted: many systems give each user one of his own.
    """
    if not hasattr(os, "geteuid"):  # not POSIX
        return ""
    for path in (folder, *folder.parents):
        about = path.stat()
        if about.st_uid not in (0, os.geteuid()):
            return f"{path} belongs to another user"
        keeps_owners = path != folder and about.st_mode & stat.S_ISVTX
        if about.st_mode & stat.S_IWOTH and not keeps_owners:
            return f"all users can write {path}"
    return ""
