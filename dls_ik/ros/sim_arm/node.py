"""The program ``ik_sim_arm``: it takes hold of the signals first, and imports all the rest then."""

import sys
from collections.abc import Sequence

from dls_ik.core import NumbaStartError
from dls_ik.ros.node import refuse
from dls_ik.ros.signals import hold_signals
from dls_ik.ros.standard_streams import free_streams

NAME = "sim_arm"


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM.

    Returns:
        The exit code: 0, or 1 if it was started with something that is not valid.
    """
    free_streams()
    hold_signals()
    try:
        from dls_ik.ros.process import run_process  # takes about a second
        from dls_ik.ros.sim_arm.application import serve_arm
    except (ImportError, NumbaStartError) as error:
        return refuse(error)
    return run_process(args, NAME, serve_arm)


if __name__ == "__main__":
    sys.exit(main())
