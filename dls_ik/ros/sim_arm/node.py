# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Program ``ik_sim_arm``; sets up output streams and signal handlers before its slow imports."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from dls_ik.ros.node import Program, own_arguments

SIM_ARM_NODE_NAME = "sim_arm"
PHYSICS = "--physics"


def _load_parameters() -> type[Any]:
    from dls_ik.ros.sim_arm.arm import SimArmParameters

    return SimArmParameters


def _load_run() -> Callable[[Sequence[str] | None], int]:
    from dls_ik.ros.process import run_process
    from dls_ik.ros.sim_arm.application import serve_arm

    return lambda args: run_process(args, SIM_ARM_NODE_NAME, serve_arm)


IK_SIM_ARM = Program(
    "ik_sim_arm",
    "dls_ik.ros.sim_arm.node",
    "Simulates an arm: receives joint commands and publishes joint_states. With --physics, also\n"
    "simulates masses, efforts and contacts in MuJoCo.",
    (
        "ros2 run dls_ik ik_sim_arm --ros-args -p robot:=wam -p delay:=0.05",
        "ros2 run dls_ik ik_sim_arm --ros-args -p joint_names:=[j1,j2]",
        "ros2 run dls_ik ik_sim_arm --physics --ros-args -p robot:=wam -p scene:=cell.yaml",
    ),
    _load_parameters,
    _load_run,
)


def main(args: Sequence[str] | None = None) -> int:
    """Run the program ``ik_sim_arm``, and return its exit code.

    The option ``--physics`` sets the parameter `physics`; :meth:`dls_ik.ros.node.Program.start`
    describes all other arguments.
    """
    given = sys.argv[1:] if args is None else list(args)
    if PHYSICS in own_arguments(given):
        others = [each for each in given if each != PHYSICS]
        args = ["--ros-args", "-p", "physics:=true", "--", *others]
    return IK_SIM_ARM.start(args)


if __name__ == "__main__":
    sys.exit(main())
