"""``python -m dls_ik.ros.demo``; ``scripts/demo`` sets up what it needs and runs it."""

import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any

from dls_ik.errors import DlsIkError
from dls_ik.ros.child import stay_alone
from dls_ik.ros.demo.options import parse_options

INTERRUPTED = 128 + signal.SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; return the exit code."""
    options = parse_options(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may know ASCII only
    stay_alone()
    signal.signal(signal.SIGTERM, _end)
    try:
        from dls_ik.ros.demo.session import run

        return run(options)
    except ImportError as error:
        return _failed(f"{error.name or error} is missing: scripts/demo sets it up")
    except (DlsIkError, OSError) as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        _failed("interrupted")
        return INTERRUPTED


def _end(number: int, frame: Any) -> None:
    """Leave the contexts, which ends the node."""
    raise SystemExit(128 + number)


def _failed(message: str) -> int:
    print(f"demo: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
