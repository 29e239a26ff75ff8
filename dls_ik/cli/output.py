# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Output of commands: exit codes, messages on stderr, Ctrl-C, atomic writing of files, JSON."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from dls_ik.text import escape, json_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXIT_NO_SOLUTION, EXIT_BAD_INPUT, EXIT_MISSING, EXIT_INTERRUPTED = 1, 2, 3, 130  # exit codes
STDOUT = "-"

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document in full precision."
)


def plot_option(subject: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the option --plot to a command.

    Args:
        subject: Content of the picture, for the help text.
    """
    return click.option("--plot", metavar="FILE", help=f"Draw {subject}: .png, .svg or .pdf.")


# Messages and exit codes


class MissingPartError(click.ClickException):
    """A package or a node that the command needs is not installed or not running."""

    exit_code = EXIT_MISSING


def warn(message: str) -> None:
    """Print a message as one line on stderr; control characters are escaped."""
    click.echo(f"dls-ik: {escape(message)}", err=True)


def exit_with(message: str, code: int) -> NoReturn:
    """Print a message as one line on stderr, and exit with a code."""
    warn(" ".join(message.split()))
    sys.exit(code)


def exit_interrupted(message: str = "interrupted") -> NoReturn:
    """Exit with code 130, as after Ctrl-C; the message may say which results are kept."""
    if sys.stderr.isatty():
        click.echo(err=True)  # ends the line in which the terminal shows ^C
    exit_with(message, EXIT_INTERRUPTED)


@contextmanager
def ros_imports(instead: str = "") -> Iterator[None]:
    """Convert an ImportError raised in a ``with`` block to a MissingPartError about ROS 2.

    Args:
        instead: Text about what works without ROS 2; empty: none.
    """
    try:
        yield
    except ImportError as error:
        name = error.name or error
        raise MissingPartError(
            f"ROS 2 is not available: {name} is missing; see dls-ik doctor"
            + (f"; without ROS 2: {instead}" if instead else "")
        ) from None


# Ctrl-C


@contextmanager
def _sigint_handler(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Replace the handler of SIGINT during a ``with`` block.

    Outside the main thread nothing is done, because only the main thread receives signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def defer_sigint() -> Iterator[None]:
    """Delay Ctrl-C until the end of a ``with`` block that must not be interrupted."""
    received: list[int] = []
    try:
        with _sigint_handler(lambda number, _: received.append(number)):
            yield
    finally:
        for number in received[:1]:
            signal.raise_signal(number)


@contextmanager
def record_sigint() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets; Ctrl-C also raises a KeyboardInterrupt as usual.

    The event is needed because Python drops a KeyboardInterrupt that is raised in a finalizer or in
    a callback from C.
    """
    ended = threading.Event()

    def handler(number: int, frame: Any) -> None:
        ended.set()
        signal.default_int_handler(number, frame)

    with _sigint_handler(handler):
        yield ended


# Files


def check_outputs(*paths: str | None, plot: str | None = None) -> None:
    """Check that output files can be written, so that a command fails before its computation.

    Args:
        *paths: Paths of files; None and "-" are ignored.
        plot: Path of a picture, or None.

    Raises:
        click.ClickException: If a file cannot be written, or two outputs have the same path.
        OptionError: If the suffix of the picture is not supported.
    """
    if plot == STDOUT:
        raise click.UsageError("--plot needs a file; standard output is not supported")
    if plot is not None:
        from dls_ik.plot import check_picture

        check_picture(Path(plot))
    named = [path for path in (plot, *paths) if path not in (None, STDOUT)]
    files = [Path(path).resolve() for path in named]
    for path, file in zip(named, files, strict=True):
        _refuse(path, _obstacle(file))
        if files.count(file) > 1:
            raise click.UsageError(f"two outputs have the same path {path}")


def check_new_folder(path: str) -> None:
    """Check that a folder does not exist and can be created.

    Raises:
        click.UsageError: If the folder exists, or cannot be created.
    """
    if path == STDOUT:
        raise click.UsageError("the output is a folder, which cannot go to standard output")
    target = Path(path).resolve()
    _refuse(path, "it already exists" if target.exists() else _obstacle(target))


def _refuse(path: object, reason: str | None) -> None:
    """Raise an error if a reason is given why a path cannot be written.

    Raises:
        click.UsageError: If `reason` is not empty.
    """
    if reason:
        raise click.UsageError(f"cannot write {path}: {reason}")


def _obstacle(file: Path) -> str | None:
    """Return why a file cannot be written, or None if it can."""
    if file.is_dir():
        return "it is a directory"
    if file.exists():
        return None if os.access(file, os.W_OK) else "permission denied"
    if not file.parent.is_dir():
        return f"the directory {file.parent} does not exist"
    return None if os.access(file.parent, os.W_OK | os.X_OK) else "permission denied"


def write_whole(path: str, write: Callable[[Path], object]) -> None:
    """Write a file or folder atomically: `write` creates a temporary one, which is then renamed.

    Args:
        path: Final path.
        write: Called with the temporary path.

    Raises:
        click.ClickException: If the file cannot be written; existing content is then kept.
    """
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():  # pipes and devices are written directly
            write(target)
            return
        with tempfile.TemporaryDirectory(prefix=".dls-ik-", dir=target.parent) as folder:
            part = Path(folder) / target.name
            write(part)
            if target.exists():
                part.chmod(target.stat().st_mode & 0o777)
            part.replace(target)
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from error


def write_text(path: str, text: str) -> None:
    """Write a text atomically to a file, or to standard output if `path` is "-"."""
    if path == STDOUT:
        click.echo(text, nl=False)
    else:
        write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_picture(path: str, figure: "Figure") -> None:
    """Write a matplotlib figure atomically to a file."""
    from dls_ik.plot import save_picture

    write_whole(path, lambda part: save_picture(part, figure))


def save_plot(path: str, figure: "Figure") -> None:
    """Write a matplotlib figure atomically to a file, and print the path on stderr."""
    write_picture(path, figure)
    click.echo(f"picture: {path}", err=True)


def print_json(document: Any) -> None:
    """Print dicts, lists, arrays and numbers as a JSON document; non-finite numbers become null."""
    click.echo(json_text(document))
