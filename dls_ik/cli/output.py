"""Output of commands: exit codes, messages on stderr, Ctrl-C, whole files, JSON."""

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

NO_SOLUTION, BAD_INPUT, MISSING, INTERRUPTED = 1, 2, 3, 130  # exit codes
STDOUT = "-"

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, numbers in full."
)


def plot_option(subject: str) -> Callable[[Any], Any]:
    """Give a command --plot as `plot`; `subject` says what is drawn."""
    return click.option("--plot", metavar="FILE", help=f"Draw {subject} there: .png, .svg or .pdf.")


# Messages and exit codes


class MissingPartError(click.ClickException):
    """Something has to be installed or started first; the message names it."""

    exit_code = MISSING


def warn(message: str) -> None:
    """Print one line on stderr; control characters are escaped."""
    click.echo(f"dls-ik: {escape(message)}", err=True)


def exit_with(message: str, code: int) -> NoReturn:
    """End with one line on stderr."""
    warn(" ".join(message.split()))
    sys.exit(code)


def exit_interrupted(message: str = "interrupted") -> NoReturn:
    """End as after Ctrl-C; the message says what is kept."""
    if sys.stderr.isatty():
        click.echo(err=True)  # ends the line of the terminal's ^C
    exit_with(message, INTERRUPTED)


@contextmanager
def ros_imports() -> Iterator[None]:
    """Turn a failed import of a package of ROS 2 into a MissingPartError."""
    try:
        yield
    except ImportError as error:
        name = error.name or error
        raise MissingPartError(f"ROS 2 is not here: {name} is missing; see dls-ik doctor") from None


# Ctrl-C


@contextmanager
def _sigint_handler(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Replace the handler of SIGINT; only the main thread receives signals."""
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
    """Delay Ctrl-C to the end of the block, which must not be left half done."""
    received: list[int] = []
    try:
        with _sigint_handler(lambda number, _: received.append(number)):
            yield
    finally:
        for number in received[:1]:
            signal.raise_signal(number)


@contextmanager
def record_sigint() -> Iterator[threading.Event]:
    """Set an event at Ctrl-C, besides the KeyboardInterrupt.

    Python drops a KeyboardInterrupt that is raised in a finalizer or in a callback from C.
    """
    ended = threading.Event()

    def handler(number: int, frame: Any) -> None:
        ended.set()
        signal.default_int_handler(number, frame)

    with _sigint_handler(handler):
        yield ended


# Files


def check_outputs(*paths: str | None, plot: str | None = None) -> None:
    """Refuse files and a picture that could not be written later, and two outputs in one file.

    Raises:
        click.ClickException: If the file cannot be written.
        OptionError: If the suffix is not supported.
    """
    if plot == STDOUT:
        raise click.UsageError("--plot takes a file, not standard output")
    if plot is not None:
        from dls_ik.plot import check_picture

        check_picture(Path(plot))
    named = [path for path in (plot, *paths) if path not in (None, STDOUT)]
    files = [Path(path).resolve() for path in named]
    for path, file in zip(named, files, strict=True):
        _refuse(path, _obstacle(file))
        if files.count(file) > 1:
            raise click.UsageError(f"two outputs would be written to {path}")


def check_new_folder(path: str) -> None:
    """Refuse a folder that exists already, or cannot be made."""
    if path == STDOUT:
        raise click.UsageError("a folder is written, which cannot go to standard output")
    target = Path(path).resolve()
    _refuse(path, "it is there already" if target.exists() else _obstacle(target))


def _refuse(path: object, reason: str | None) -> None:
    if reason:
        raise click.UsageError(f"cannot write {path}: {reason}")


def _obstacle(file: Path) -> str | None:
    """Return why a file cannot be written, or None."""
    if file.is_dir():
        return "it is a directory"
    if file.exists():
        return None if os.access(file, os.W_OK) else "permission denied"
    if not file.parent.is_dir():
        return f"there is no directory {file.parent}"
    return None if os.access(file.parent, os.W_OK | os.X_OK) else "permission denied"


def write_whole(path: str, write: Callable[[Path], object]) -> None:
    """Let `write` make a file or folder beside `path`, then move it there in one step.

    Raises:
        click.ClickException: If the file cannot be written; its old contents are kept.
    """
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():  # a pipe or a device
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
    """Write a text file whole, or to standard output."""
    if path == STDOUT:
        click.echo(text, nl=False)
    else:
        write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_picture(path: str, figure: "Figure") -> None:
    """Write a picture whole."""
    from dls_ik.plot import save_picture

    write_whole(path, lambda part: save_picture(part, figure))


def save_plot(path: str, figure: "Figure") -> None:
    """Write a picture whole, and say so on stderr."""
    write_picture(path, figure)
    click.echo(f"picture: {path}", err=True)


def print_json(document: Any) -> None:
    """Print a document of dicts, lists, arrays and numbers; non-finite numbers become null."""
    click.echo(json_text(document))
