# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik record``: recording of the topics of a running node."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dls_ik.cli import output
from dls_ik.cli.node_robot import own_robot, own_robot_option
from dls_ik.cli.options import POSITIVE, node_options
from dls_ik.cli.terminal import stdout_console
from dls_ik.tables import print_pairs

if TYPE_CHECKING:
    from dls_ik.ros.recording.files import MessageWriter
    from dls_ik.ros.recording.recorder import Recorder

FORMAT_OF_SUFFIX = {".mcap": "mcap", ".csv": "csv", ".bag": "sqlite3", "": "sqlite3"}
END_CHECK_PERIOD = 0.1  # [s] period of the check whether the recording has ended


@click.command(
    epilog="FILE.mcap, FILE.csv, or a folder (FILE.bag) for a rosbag2. Exit codes: 0 recorded, 2 "
    "bad input or a full disk, 3 no node.",
)
@click.argument("file")
@click.option(
    "--for", "duration", type=POSITIVE, metavar="S", help="Duration [s]. Default: until Ctrl-C."
)
@node_options
@own_robot_option
@output.json_option
def record(
    file: str,
    duration: float | None,
    namespace: str,
    node: str,
    patience: float,
    robot: str | None,
    as_json: bool,
) -> None:
    """Record targets, joint states, commands, scene and status of a running node until Ctrl-C."""
    path = Path(file)
    if path.suffix.lower() not in FORMAT_OF_SUFFIX:
        raise click.UsageError(
            f"FILE must end in .mcap, .csv, .bag, or have no suffix for a rosbag2; got {file}"
        )
    output.check_new_folder(file)
    with output.ros_imports():
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.recording.topics import full_name
    try:
        with recording(file, namespace, node, patience, robot) as recorder:
            name = full_name(namespace, node)
            click.echo(f"recording {name} to {file}; Ctrl-C ends it", err=True)
            _wait(recorder, duration)
    except NOT_THERE as error:
        output.exit_with(str(error), output.EXIT_MISSING)
    _report(recorder, file, as_json)


@contextmanager
def recording(
    file: str, namespace: str, node: str, patience: float, robot: str | None
) -> Iterator[Recorder]:
    """Record the topics of a running node to a file while a ``with`` block runs.

    Args:
        file: Path of the file; its suffix is one of `FORMAT_OF_SUFFIX`.
        namespace: Namespace of the node.
        node: Name of the node.
        patience: Timeout to find the node [s].
        robot: Name or file of the robot; None stands for the robot of the node.

    Yields:
        Recorder, which is closed at the end of the block.

    Raises:
        ServiceMissingError, NoAnswerError: If the node does not exist or does not answer.
        RecordingError, OSError: If the file cannot be opened.
    """
    from dls_ik.ros.recording.recorder import Recorder
    from dls_ik.ros.recording.running_node import RunningNode

    with RunningNode(namespace, node, patience, own_robot(robot)) as source:
        recorder = Recorder(source, lambda: _writer(Path(file)))
        try:
            if missing := recorder.start():
                output.warn(f"the recording has no robot: {missing}; --robot FILE adds it")
            yield recorder
        finally:
            with output.defer_sigint():
                _close(recorder)


def _writer(path: Path) -> MessageWriter:
    """Return the writer for the suffix of a path."""
    from dls_ik.ros.recording.files import McapWriter, SqliteWriter
    from dls_ik.ros.recording.tables import CsvWriter

    writers: dict[str, Callable[[Path], MessageWriter]] = {
        "mcap": McapWriter, "csv": CsvWriter, "sqlite3": SqliteWriter,
    }  # fmt: skip
    return writers[FORMAT_OF_SUFFIX[path.suffix.lower()]](path)


def _wait(recorder: Recorder, duration: float | None) -> None:
    """Wait until the duration [s] is over, Ctrl-C or SIGTERM, or an error of the recording."""
    end = float("inf") if duration is None else time.monotonic() + duration
    with _ended_by_signals() as ended:
        while recorder.error is None and time.monotonic() < end and not ended.is_set():
            ended.wait(min(END_CHECK_PERIOD, max(end - time.monotonic(), 0.0)))


@contextmanager
def _ended_by_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set, so that the file is closed properly."""
    ended = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield ended
        return
    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.signal(number, lambda *_: ended.set()) for number in numbers]
    try:
        yield ended
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _close(recorder: Recorder) -> None:
    """Close the file; keep the first error of the recording."""
    try:
        recorder.close()
    except OSError as error:
        recorder.error = recorder.error or error


def _report(recorder: Recorder, file: str, as_json: bool) -> None:
    """Print the number of messages by topic; exit with an error if the recording is incomplete."""
    counts = {topic: count for topic, count in sorted(recorder.counts.items()) if count}
    for topic, kind in recorder.skipped.items():
        output.warn(f"{topic} is not recorded: {kind} is not installed")
    if as_json:
        output.print_json({"file": file, "duration": recorder.last, "messages": counts})
    else:
        pairs = [(topic, str(count)) for topic, count in counts.items()]
        print_pairs(stdout_console(), [("duration", f"{recorder.last:.1f} s"), *pairs])
    check_complete(recorder, file)


def check_complete(recorder: Recorder, file: str) -> None:
    """Exit with an error if a recording ended because of an error, such as a full disk."""
    if recorder.error is not None:
        reason = recorder.error.strerror or recorder.error
        output.exit_with(
            f"cannot write {file}: {reason}; the first {recorder.last:.1f} s are recorded",
            output.EXIT_BAD_INPUT,
        )
