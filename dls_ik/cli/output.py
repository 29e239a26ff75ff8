"""Output of commands: files written whole or not at all, and JSON documents."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

STDOUT = "-"

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, numbers in full."
)


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


def print_json(document: Any) -> None:
    """Print a document of dicts, lists, arrays and numbers; what is not finite becomes null."""
    click.echo(json_text(document))


def json_text(document: Any) -> str:
    """The document as strict JSON that people can read too: lists of numbers in a line."""
    return _written(_plain(document), "")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _written(value: Any, indent: str) -> str:
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        inside = [f"{json.dumps(key)}: {_written(each, deeper)}" for key, each in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        inside = [_written(each, deeper) for each in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value, allow_nan=False)
    lines = f",\n{deeper}".join(inside)
    return f"{opening}\n{deeper}{lines}\n{indent}{closing}"
