"""The program ``ik_sim_arm``: it sets up streams and signals before it imports everything else."""

import sys
from collections.abc import Callable, Sequence

from dls_ik.ros.node import answer_help, own_arguments, start

NAME = "sim_arm"


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; see :func:`dls_ik.ros.node.start`."""
    return start(args, _print_help, _import)


def _import() -> Callable[[Sequence[str] | None], int]:
    from dls_ik.ros.process import run_process
    from dls_ik.ros.sim_arm.application import serve_arm

    return lambda args: run_process(args, NAME, serve_arm)


def _print_help(args: Sequence[str] | None) -> int | None:
    if not own_arguments(args):
        return None
    from dls_ik.ros.sim_arm.simulation import SimArmParameters

    return answer_help(
        args,
        "ik_sim_arm",
        "dls_ik.ros.sim_arm.node",
        "Simulates an arm: it takes commands and publishes joint_states.",
        SimArmParameters,
        (
            "ros2 run dls_ik ik_sim_arm --ros-args -p robot:=wam -p delay:=0.05",
            "ros2 run dls_ik ik_sim_arm --ros-args -p joint_names:=[j1,j2]",
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
