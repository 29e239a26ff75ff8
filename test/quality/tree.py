"""A copy of the tree, whose files may be wrong for a while."""

import filecmp
import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def files(root: Path) -> list[str]:
    """What git knows, or would take, and is there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def copied(root: Path, to: Path) -> Path:
    """Bring a copy up to date; what has not changed keeps its compiled kernels."""
    names = files(root)
    for name in names:
        if not (to / name).is_file() or not filecmp.cmp(root / name, to / name, shallow=False):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    for stale in {str(p.relative_to(to)) for p in to.rglob("*.py")} - set(names):
        (to / stale).unlink()
    return to


@contextmanager
def written(path: Path, code: str) -> Iterator[None]:
    """Put other code in a file; leave it as it was, also for those who look at times."""
    aside = path.with_suffix(".aside")
    shutil.copy2(path, aside)
    try:
        path.write_text(code)
        _forget(path)
        yield
    finally:
        shutil.move(aside, path)
        _forget(path)


def _forget(path: Path) -> None:
    """A cached module is known by seconds and size, which two mutants may share."""
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
