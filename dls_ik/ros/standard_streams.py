"""Standard streams that can never stop the arm, whatever becomes of who reads them.

A terminal that is held with Ctrl-S, a session over a network that is cut, a launch file that is
suspended: once their buffers are full, a write would wait, and rclpy logs while it holds the
interpreter, so that no thread would go on. A line that finds no room is dropped instead.
"""

import os
import stat
import sys
from contextlib import suppress

INPUT, OUTPUTS = 0, (1, 2)


def free_streams() -> None:
    """Let no write to standard output or error wait; call this before files are opened.

    Streams that were closed become the null device: the next socket would take their numbers, and
    the log would be written into it.
    """
    for number in (INPUT, *OUTPUTS):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this
    for number in OUTPUTS:
        with suppress(OSError):  # such as nobody at the other end: then no write waits
            _let_go(number)


def flush_streams() -> None:
    """Write out what is kept back, as far as there is room."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _let_go(number: int) -> None:
    mode = os.fstat(number).st_mode
    if stat.S_ISSOCK(mode):
        os.set_blocking(number, False)
    elif stat.S_ISFIFO(mode) or os.isatty(number):
        # opened anew, as the shell that started us may write there too, and rely on waiting
        ways = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
        anew = os.open(f"/proc/self/fd/{number}", ways)
        os.dup2(anew, number)
        os.close(anew)
