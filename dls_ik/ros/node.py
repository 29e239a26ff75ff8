"""The program ``ik_node``: it takes hold of streams and signals, and imports all the rest then."""

import sys
from collections.abc import Sequence

from dls_ik.core import NumbaStartError
from dls_ik.printable import plain
from dls_ik.ros.signals import hold_signals
from dls_ik.ros.standard_streams import free_streams


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM.

    Returns:
        The exit code: 0, or 1 if it was started with something that is not valid.
    """
    free_streams()
    hold_signals()
    try:
        from dls_ik.ros.process import run_process  # takes about a second
    except (ImportError, NumbaStartError) as error:
        return refuse(error)
    return run_process(args)


def refuse(error: Exception) -> int:
    """Say in a line why a program cannot be imported; return its exit code."""
    words = plain(" ".join(str(error).split()))
    print(f"cannot start: {words}", file=sys.stderr)  # noqa: T201  there is no logger yet
    return 1


if __name__ == "__main__":
    sys.exit(main())
