# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Files of recordings: MCAP files and rosbag2 folders with serialized messages."""

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from dls_ik.errors import DlsIkError
from dls_ik.ros.recording.definitions import message_definition
from dls_ik.text import listing

MCAP_SUFFIX, SQLITE_SUFFIX = ".mcap", ".db3"
CHUNK_BYTES = (
    16 * 1024
)  # size of a chunk of an MCAP file, the largest loss if the process is killed
MAX_BAG_BYTES = 2**31  # largest recording that is read into memory
BAG_VERSION: Final = 8  # version of the rosbag2 format, which ROS 2 Humble can read too
EXTRA = "pip install 'dls-ik[record]'"


class RecordingError(DlsIkError):
    """A recording that cannot be written, read or replayed; the message gives the reason."""


class RecordedMessage(NamedTuple):
    """Message of a recording."""

    topic: str
    kind: str  # type, such as "sensor_msgs/msg/JointState"
    definition: str  # definition of the type as recorded; empty: none
    time: int  # arrival time on the system clock [ns since 1970]
    data: bytes  # serialized message (CDR)


class MessageWriter(Protocol):
    """Writer of messages to a new file."""

    def add_topic(self, topic: str, kind: str, role: str) -> None:
        """Add a topic, before its first message."""

    def write(self, topic: str, time: int, sent: int, data: bytes) -> None:
        """Write a serialized message with its times of arrival and of sending [ns since 1970]."""

    def flush(self) -> None:
        """Write the buffered messages to the disk, as far as the format permits."""

    def close(self) -> None:
        """Write the index, and close the file."""


class McapWriter:
    """Writer of an MCAP file in the profile ``ros2``.

    A file that is cut off can be read up to the cut, because each chunk is complete.

    Args:
        path: File to create, or to replace.

    Raises:
        RecordingError: If the package mcap is not installed.
        OSError: If the file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        try:
            from mcap.writer import CompressionType, Writer
        except ImportError as error:
            raise RecordingError(f"an MCAP file needs the package mcap: {EXTRA}") from error
        self._file = path.open("wb")
        self._writer = Writer(self._file, CHUNK_BYTES, CompressionType.NONE)
        self._writer.start("ros2", "dls_ik")
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}

    def add_topic(self, topic: str, kind: str, role: str) -> None:
        """Add a topic with the definition of its type; RecordingInfo has the role of the topic."""
        del role
        if kind not in self._schemas:
            definition = message_definition(kind).encode()
            self._schemas[kind] = self._writer.register_schema(kind, "ros2msg", definition)
        self._channels[topic] = self._writer.register_channel(topic, "cdr", self._schemas[kind])

    def write(self, topic: str, time: int, sent: int, data: bytes) -> None:
        """Write a message; a chunk goes to the file once it has CHUNK_BYTES."""
        self._writer.add_message(self._channels[topic], time, data, sent or time)

    def flush(self) -> None:
        """Hand complete chunks to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Write the last chunk and the index, and close the file."""
        try:
            self._writer.finish()  # type: ignore[no-untyped-call]
        finally:
            self._file.close()


class SqliteWriter:
    """Writer of a rosbag2 folder in the storage format sqlite3.

    If the process is killed, the messages since the last call of `flush` are lost.

    Args:
        path: Folder to create.

    Raises:
        RecordingError: If the package rosbags is not installed.
        OSError: If the folder cannot be created.
    """

    def __init__(self, path: Path) -> None:
        try:
            from rosbags.rosbag2 import StoragePlugin, Writer
            from rosbags.typesys import Stores, get_types_from_msg, get_typestore
        except ImportError as error:
            raise RecordingError(f"a rosbag2 needs the package rosbags: {EXTRA}") from error
        self._types, self._store = get_types_from_msg, get_typestore(Stores.EMPTY)
        self._writer = Writer(path, version=BAG_VERSION, storage_plugin=StoragePlugin.SQLITE3)
        self._writer.open()
        self._connections: dict[str, Any] = {}

    def add_topic(self, topic: str, kind: str, role: str) -> None:
        """Add a topic with the definition of its type; RecordingInfo has the role of the topic."""
        del role
        definition = message_definition(kind)
        self._store.register(self._types(definition, kind))
        self._connections[topic] = self._writer.add_connection(
            topic, kind, msgdef=definition, rihs01=self._store.hash_rihs01(kind)
        )

    def write(self, topic: str, time: int, sent: int, data: bytes) -> None:
        """Write a message; `sent` is not stored, because the format has one time."""
        del sent
        with _disk_errors():
            self._writer.write(self._connections[topic], time, data)

    def flush(self) -> None:
        """Commit all messages."""
        connection = getattr(self._writer.storage, "conn", None)
        if connection is not None:
            with _disk_errors():
                connection.commit()

    def close(self) -> None:
        """Write metadata.yaml, and close the folder."""
        with _disk_errors():
            self._writer.close()


class _disk_errors:  # noqa: N801  used like a function
    """Context that converts errors of sqlite, such as a full disk, to OSError."""

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise an OSError for an error of sqlite."""
        if isinstance(error, sqlite3.Error):
            raise OSError(0, str(error)) from error


# Reading


class StoredMessages(NamedTuple):
    """Messages of a recording in the order of the file."""

    messages: list[RecordedMessage]
    damage: str  # description of the loss; empty if the file is complete


def read_messages(path: Path) -> StoredMessages:
    """Read an MCAP file, a rosbag2 folder, or the .db3 file of one.

    If a file is damaged, for example cut off, the messages before the damage are returned.

    Raises:
        RecordingError: If `path` does not exist, is not a recording, is larger than
            `MAX_BAG_BYTES`, or has no message that can be read, or if a package is missing.
    """
    files = _files(path)
    size = sum(file.stat().st_size for file in files)
    if size > MAX_BAG_BYTES:
        raise RecordingError(
            f"{path} has {size / 2**30:.1f} GiB, more than {MAX_BAG_BYTES // 2**30} GiB; "
            "split it, for example by ros2 bag convert"
        )
    messages: list[RecordedMessage] = []
    damages = []
    if path.is_dir() and not (path / "metadata.yaml").exists():
        damages.append("it was not closed: metadata.yaml is missing")
    for file in files:
        read = _read_mcap if file.suffix == MCAP_SUFFIX else _read_sqlite
        try:
            for message in read(file):
                messages.append(message)  # noqa: PERF402  keeps the messages before an error
        except OSError as error:
            raise RecordingError(f"cannot read {file}: {error.strerror or error}") from error
        except _Damage as damage:
            damages.append(f"{file.name} is damaged or cut off ({damage})")
    if damages and not messages:
        raise RecordingError(f"{path} has no message that can be read: {'; '.join(damages)}")
    return StoredMessages(messages, "; ".join(damages))


def _files(path: Path) -> list[Path]:
    """Return the data files of a recording.

    Raises:
        RecordingError: If `path` does not exist, or is not and does not contain a data file.
    """
    if not path.exists():
        raise RecordingError(f"{path} does not exist")
    if not path.is_dir():
        if path.suffix not in (MCAP_SUFFIX, SQLITE_SUFFIX):
            raise RecordingError(
                f"{path} is not a recording: expected FILE.mcap, FILE.csv, FILE.db3, or the folder "
                "of a rosbag2"
            )
        return [path]
    found = [file for file in path.iterdir() if file.suffix in (MCAP_SUFFIX, SQLITE_SUFFIX)]
    if not found:
        present = listing(sorted(file.name for file in path.iterdir()))
        raise RecordingError(
            f"the folder {path} has no .mcap and no .db3 file; its files: {present}; decompress "
            "a compressed bag by ros2 bag convert"
        )
    return sorted(found, key=lambda file: (len(file.name), file.name))


class _Damage(Exception):  # noqa: N818  ends the reading of a file, which is no error
    """End of the readable part of a file."""


def _read_mcap(file: Path) -> Iterator[RecordedMessage]:
    """Yield the messages of an MCAP file.

    Raises:
        RecordingError: If the package mcap is not installed.
        _Damage: If the file is cut off or damaged.
    """
    try:
        from mcap.exceptions import McapError
        from mcap.records import Channel, Message, Schema
        from mcap.stream_reader import StreamReader
    except ImportError as error:
        raise RecordingError(f"an MCAP file needs the package mcap: {EXTRA}") from error
    schemas: dict[int, Any] = {}
    channels: dict[int, Any] = {}
    with file.open("rb") as stream:
        records = StreamReader(stream, record_size_limit=MAX_BAG_BYTES).records
        try:
            for record in records:
                if isinstance(record, Schema):
                    schemas[record.id] = record
                elif isinstance(record, Channel):
                    channels[record.id] = record
                elif isinstance(record, Message):
                    channel = channels[record.channel_id]
                    schema = schemas[channel.schema_id]
                    data = schema.data if schema.encoding == "ros2msg" else b""
                    text = data.decode("utf-8", "replace")
                    yield RecordedMessage(
                        channel.topic, schema.name, text, record.log_time, record.data
                    )
        except (McapError, struct.error, ValueError, KeyError, MemoryError, RuntimeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise _Damage(f"at byte {stream.tell()} of {file.stat().st_size}: {reason}") from error


def _read_sqlite(file: Path) -> Iterator[RecordedMessage]:
    """Yield the messages of a .db3 file.

    Raises:
        _Damage: If the file is cut off or damaged.
    """
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True)
    try:
        definitions: dict[str, str] = {}
        with suppress(sqlite3.OperationalError):  # bags of Humble have no definitions
            rows = connection.execute(
                "SELECT topic_type, encoded_message_definition FROM message_definitions "
                "WHERE encoding = 'ros2msg'"
            )
            definitions = dict(rows)
        yield from (
            RecordedMessage(topic, kind, definitions.get(kind, ""), time, data)
            for topic, kind, time, data in connection.execute(
                "SELECT name, type, timestamp, data FROM messages JOIN topics "
                "ON topics.id = topic_id ORDER BY messages.id"
            )
        )
    except sqlite3.Error as error:
        raise _Damage(str(error)) from error
    finally:
        connection.close()
