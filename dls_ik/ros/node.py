# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Program ``ik_node``; sets up output streams and signal handlers before its slow imports."""

import gc
import sys
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any, NamedTuple

from dls_ik.core import NumbaStartError
from dls_ik.ros.util import free_streams, hold_signals
from dls_ik.text import escape

IK_NODE_NAME = "dls_ik"
USAGE = """\
usage: ros2 run dls_ik {program} --ros-args [-p NAME:=VALUE] [--params-file FILE] [-r FROM:=TO]
       python3 -m {module} --ros-args ...

{about}

Parameters, with their defaults:

{parameters}

For example:

{examples}
"""


class Program(NamedTuple):
    """Program that runs a node; its functions contain the slow imports."""

    name: str  # name of the executable
    module: str  # name of the module that runs the program
    about: str  # description for --help
    examples: tuple[str, ...]  # example commands for --help
    load_parameters: Callable[[], type[Any]]  # returns the class with the parameters
    load_run: Callable[[], Callable[[Sequence[str] | None], int]]  # returns the function to run

    def start(self, args: Sequence[str] | None) -> int:
        """Run the node until SIGINT or SIGTERM arrives, or print help if requested.

        Args:
            args: Command line arguments; None: those of the process.

        Returns:
            Exit code: 0; 1 if the start fails; 2 if an argument is neither a ROS argument nor a
            request for help.
        """
        try:
            own = own_arguments(args)
            if own:
                return self._answer(own)
            free_streams()
            hold_signals()
            run = self.load_run()
        except (ImportError, NumbaStartError) as error:
            message = escape(" ".join(str(error).split()))
            print(f"cannot start: {message}", file=sys.stderr)  # noqa: T201  no logger exists yet
            return 1
        return run(args)

    def _answer(self, own: Sequence[str]) -> int:
        """Answer arguments that are not ROS arguments; return the exit code.

        Print help if the arguments contain ``-h`` or ``--help``; otherwise print an error.
        """
        if not {"-h", "--help"} & set(own):
            sys.stderr.write(
                f"{self.name}: unknown argument {own[0]!r}; give parameters as "
                f"--ros-args -p NAME:=VALUE; see {self.name} --help\n"
            )
            return 2
        text = USAGE.format(
            program=self.name,
            module=self.module,
            about=self.about,
            parameters=_describe(self.load_parameters()),
            examples="\n".join(f"  {example}" for example in self.examples),
        )
        sys.stdout.write(text)
        return 0


def own_arguments(args: Sequence[str] | None) -> list[str]:
    """Return the command line arguments that are not between ``--ros-args`` and ``--``.

    Args:
        args: All arguments; None: those of the process.
    """
    found, is_ros = [], False
    for argument in sys.argv[1:] if args is None else args:
        if argument == "--ros-args":
            is_ros = True
        elif not is_ros:
            found.append(argument)
        elif argument == "--":
            is_ros = False
    return found


def _describe(parameters: type[Any]) -> str:
    from dls_ik.ros.declare import declared, yaml_number

    entries = []
    for name, field in declared(parameters).items():
        about, default = field.metadata, field.default
        shown = yaml_number(default) if isinstance(default, float) else str(default)
        if isinstance(default, tuple):
            shown = ",".join(map(str, default))
        text = f"{about['text']} [{about['unit']}]" if about["unit"] else about["text"]
        if about["choices"]:
            text += f"; one of {', '.join(about['choices'])}"
        head = f"  {name} ({shown})" if shown else f"  {name}"
        indent = " " * 8
        entries.append(f"{head}\n{fill(text, 92, initial_indent=indent, subsequent_indent=indent)}")
    return "\n".join(entries)


def _load_parameters() -> type[Any]:
    from dls_ik.ros.params import Parameters

    return Parameters


def _load_run() -> Callable[[Sequence[str] | None], int]:
    gc.disable()  # saves a tenth of the start-up time; the ready node enables it
    from dls_ik.ros.application import serve_ik
    from dls_ik.ros.compatibility import choose_variant
    from dls_ik.ros.process import run_process

    return lambda args: run_process(args, IK_NODE_NAME, serve_ik, choose_variant)


IK_NODE = Program(
    "ik_node",
    "dls_ik.ros.node",
    "Answers compute_ik and compute_fk, and follows targets on target_pose, target_twist and\n"
    "target_trajectory. A parameter or the topic robot_description selects the robot.",
    (
        "ros2 run dls_ik ik_node --ros-args -p robot:=wam",
        "ros2 run dls_ik ik_node --ros-args -p preset:=ur5e",
        "ros2 run dls_ik ik_node --ros-args -p robot:=arm.urdf -p tip:=tool0",
        "ros2 run dls_ik ik_node --ros-args -p preset:=panda -p compatibility:=moveit_servo",
        "ros2 run dls_ik ik_node --ros-args --params-file arm.yaml -r __ns:=/left",
    ),
    _load_parameters,
    _load_run,
)


def main(args: Sequence[str] | None = None) -> int:
    """Run the program ``ik_node``, and return its exit code; see :meth:`Program.start`."""
    return IK_NODE.start(args)


if __name__ == "__main__":
    sys.exit(main())
