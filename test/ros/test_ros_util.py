# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of standard output and error of a process, decoupled from their readers."""

import os
import pty
import socket
import subprocess
import sys

FREE = "from dls_ik.ros.util import free_streams; free_streams(); import os;"
FLOOD = FREE + "[os.write(2, b'x' * 1000) for _ in range(100_000)]"


def run(code, **streams):
    return subprocess.run([sys.executable, "-c", code], timeout=120.0, **streams).returncode


def flooded(stream):
    """Whether a write that finds no room fails at once; it would else wait for ever."""
    code = f"try:\n {FLOOD}\nexcept BlockingIOError: os._exit(7)"
    return run(code.replace("\n ", "\n  "), stdout=stream, stderr=stream) == 7


def test_writing_to_a_full_pipe_does_not_block():
    reader, writer = os.pipe()
    assert flooded(writer)
    assert os.get_blocking(writer), "whoever shares the pipe goes on as before"
    os.close(reader)
    os.close(writer)


def test_writing_to_a_held_terminal_does_not_block():
    master, terminal = pty.openpty()
    assert flooded(terminal)
    assert os.get_blocking(terminal)
    os.close(master)
    os.close(terminal)


def test_writing_to_a_full_socket_does_not_block():
    here, there = socket.socketpair()
    with here, there:
        assert flooded(there)


def test_process_continues_after_the_reader_closed_the_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    assert run(FREE + "os._exit(3)", stderr=writer) == 3
    os.close(writer)


def test_closed_streams_become_the_null_device():
    closed, numbers = "<&- >&- 2>&-", (0, 1, 2)
    code = f"assert {{os.readlink(f'/proc/self/fd/{{n}}') for n in {numbers}}} == {{os.devnull}}"
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", FREE + code]
    assert subprocess.run(command, timeout=120.0).returncode == 0


def test_output_redirected_to_a_file_is_written_completely(tmp_path):
    with (tmp_path / "log").open("w+") as file:
        assert (
            run(FREE + "os.write(2, b'one '); os.write(1, b'two')", stdout=file, stderr=file) == 0
        )
        assert (tmp_path / "log").read_text() == "one two"
