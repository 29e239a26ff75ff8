"""The program ``ik_node``: it takes hold of streams and signals, and imports all the rest then."""

import sys
from collections.abc import Sequence

from dls_ik.ros.signals import hold_signals
from dls_ik.ros.standard_streams import free_streams


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM.

    Returns:
        The exit code: 0, or 1 if it was started with something that is not valid.
    """
    free_streams()
    hold_signals()
    from dls_ik.ros.process import run_process  # takes about a second

    return run_process(args)


if __name__ == "__main__":
    sys.exit(main())
