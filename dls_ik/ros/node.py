"""The program ``ik_node``: it takes hold of streams and signals, and imports all the rest then."""

import sys
from collections.abc import Callable, Sequence

from dls_ik.core import NumbaStartError
from dls_ik.ros.help import answered, own_arguments
from dls_ik.ros.signals import hold_signals
from dls_ik.ros.standard_streams import free_streams
from dls_ik.text import escape


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; see :func:`start`."""
    return start(args, _answered, _imported)


def start(
    args: Sequence[str] | None,
    answered: Callable[[Sequence[str] | None], int | None],
    imported: Callable[[], Callable[[Sequence[str] | None], int]],
) -> int:
    """Run a program of this package until SIGINT or SIGTERM.

    Args:
        answered: prints help if it is asked for, or refuses arguments; None: goes on.
        imported: imports what runs, which takes about a second, and returns it.

    Returns:
        The exit code: 0, 1 if it was started with something that is not valid, or 2 for an argument
        that is not one of ROS.
    """
    try:
        code = answered(args)
        if code is not None:
            return code
        free_streams()
        hold_signals()
        run = imported()
    except (ImportError, NumbaStartError) as error:
        words = escape(" ".join(str(error).split()))
        print(f"cannot start: {words}", file=sys.stderr)  # noqa: T201  there is no logger yet
        return 1
    return run(args)


def _imported() -> Callable[[Sequence[str] | None], int]:
    from dls_ik.ros.process import run_process

    return run_process


def _answered(args: Sequence[str] | None) -> int | None:
    if not own_arguments(args):
        return None
    from dls_ik.ros.parameters import Parameters

    return answered(
        args,
        "ik_node",
        "dls_ik.ros.node",
        "Answers compute_ik and compute_fk, and follows targets on target_pose, target_twist and\n"
        "target_trajectory, of a robot that is named, described, or comes on robot_description.",
        Parameters,
        (
            "ros2 run dls_ik ik_node --ros-args -p robot:=wam",
            "ros2 run dls_ik ik_node --ros-args -p robot:=arm.urdf -p tip:=tool0",
            "ros2 run dls_ik ik_node --ros-args --params-file arm.yaml -r __ns:=/left",
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
