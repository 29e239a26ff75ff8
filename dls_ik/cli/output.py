"""Files that are checked before the work begins, and written whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

STDOUT = "-"


def check_writable(paths: list[str]) -> None:
    """Refuse what could not be written later, and two outputs in one file.

    Raises:
        click.ClickException: the reason.
    """
    files = [Path(path).resolve() for path in paths if path != STDOUT]
    for path, file in zip((p for p in paths if p != STDOUT), files, strict=True):
        reason = _obstacle(file)
        if reason:
            raise click.UsageError(f"cannot write {path}: {reason}")
        if files.count(file) > 1:
            raise click.UsageError(f"two outputs would be written to {path}")


def write_whole(path: str, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it in its place in one move.

    Raises:
        click.ClickException: the file cannot be written; what was there before still is.
    """
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():  # a pipe or a device
            write(target)
        else:
            _replace(target, write)
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from error


def check_new_folder(path: str) -> None:
    """Refuse a folder that is there already, or cannot be made.

    Raises:
        click.ClickException: the reason.
    """
    if path == STDOUT:
        raise click.UsageError("a folder is written, which cannot go to standard output")
    target = Path(path).resolve()
    reason = "it is there already" if target.exists() else _obstacle(target)
    if reason:
        raise click.UsageError(f"cannot write {path}: {reason}")


def write_folder(path: str, write: Callable[[Path], object]) -> None:
    """Let `write` make a folder beside `path`, then put it in its place in one move.

    Raises:
        click.ClickException: it cannot be written; then nothing is there.
    """
    target = Path(path).resolve()
    try:
        with tempfile.TemporaryDirectory(prefix=".dls-ik-", dir=target.parent) as folder:
            part = Path(folder) / target.name
            write(part)
            part.rename(target)
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from error


def write_text(path: str, text: str) -> None:
    """Write a text file whole, or to standard output.

    Raises:
        click.ClickException: as :func:`write_whole`.
    """
    if path == STDOUT:
        click.echo(text, nl=False)
    else:
        write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def _replace(target: Path, write: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory(prefix=".dls-ik-", dir=target.parent) as folder:
        part = Path(folder) / target.name
        write(part)
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)


def _obstacle(file: Path) -> str | None:
    """Why it cannot be written, if so."""
    if file.is_dir():
        return "it is a directory"
    if file.exists():
        return None if os.access(file, os.W_OK) else "permission denied"
    if not file.parent.is_dir():
        return f"there is no directory {file.parent}"
    return None if os.access(file.parent, os.W_OK | os.X_OK) else "permission denied"
