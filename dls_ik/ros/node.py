"""The program ``ik_node``: it sets up streams and signals before it imports everything else."""

import sys
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

from dls_ik.core import NumbaStartError
from dls_ik.ros.util import free_streams, hold_signals
from dls_ik.text import escape

USAGE = """\
usage: ros2 run dls_ik {program} --ros-args [-p NAME:=VALUE] [--params-file FILE] [-r FROM:=TO]
       python3 -m {module} --ros-args ...

{about}

Parameters, with their defaults:

{parameters}

For example:

{examples}
"""
ABOUT = """\
Answers compute_ik and compute_fk, and follows targets on target_pose, target_twist and
target_trajectory, of a robot that is named, described, or comes on robot_description."""
EXAMPLES = (
    "ros2 run dls_ik ik_node --ros-args -p robot:=wam",
    "ros2 run dls_ik ik_node --ros-args -p robot:=arm.urdf -p tip:=tool0",
    "ros2 run dls_ik ik_node --ros-args --params-file arm.yaml -r __ns:=/left",
)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; see :func:`start`."""
    return start(args, _print_help, _import)


def start(
    args: Sequence[str] | None,
    print_help: Callable[[Sequence[str] | None], int | None],
    import_run: Callable[[], Callable[[Sequence[str] | None], int]],
) -> int:
    """Run a program of this package until SIGINT or SIGTERM.

    Args:
        print_help: prints help or refuses arguments, and returns an exit code; None: go on.
        import_run: imports the function that runs the node, which takes a second, and returns it.

    Returns:
        The exit code: 0, 1 for a start with something that is not valid, or 2 for an argument
        that is not one of ROS.
    """
    try:
        code = print_help(args)
        if code is not None:
            return code
        free_streams()
        hold_signals()
        run = import_run()
    except (ImportError, NumbaStartError) as error:
        message = escape(" ".join(str(error).split()))
        print(f"cannot start: {message}", file=sys.stderr)  # noqa: T201  there is no logger yet
        return 1
    return run(args)


def own_arguments(args: Sequence[str] | None) -> list[str]:
    """Return the arguments that are not for ROS: those outside of ``--ros-args ... --``."""
    found, is_ros = [], False
    for argument in sys.argv[1:] if args is None else args:
        if argument == "--ros-args":
            is_ros = True
        elif not is_ros:
            found.append(argument)
        elif argument == "--":
            is_ros = False
    return found


def answer_help(
    args: Sequence[str] | None,
    program: str,
    module: str,
    about: str,
    parameters: type[Any],
    examples: Sequence[str],
) -> int | None:
    """Print help if the arguments ask for it, or an error if some are not for ROS.

    Args:
        parameters: the class that declares them, see :mod:`dls_ik.ros.params.declare`.

    Returns:
        The exit code; None: there is a node to run.
    """
    own = own_arguments(args)
    if {"-h", "--help"} & set(own):
        text = USAGE.format(
            program=program,
            module=module,
            about=about,
            parameters=_describe(parameters),
            examples="\n".join(f"  {example}" for example in examples),
        )
        sys.stdout.write(text)
        return 0
    if own:
        sys.stderr.write(
            f"{program}: it takes no argument {own[0]!r}; parameters are given as "
            f"--ros-args -p NAME:=VALUE, see {program} --help\n"
        )
        return 2
    return None


def _describe(parameters: type[Any]) -> str:
    from dls_ik.ros.params.declare import declared

    entries = []
    for name, field in declared(parameters).items():
        about, default = field.metadata, field.default
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        text = f"{about['text']} [{about['unit']}]" if about["unit"] else about["text"]
        if about["choices"]:
            text += f"; one of {', '.join(about['choices'])}"
        head = f"  {name} ({shown})" if shown else f"  {name}"
        indent = " " * 8
        entries.append(f"{head}\n{fill(text, 92, initial_indent=indent, subsequent_indent=indent)}")
    return "\n".join(entries)


def _import() -> Callable[[Sequence[str] | None], int]:
    from dls_ik.ros.process import run_process

    return run_process


def _print_help(args: Sequence[str] | None) -> int | None:
    if not own_arguments(args):
        return None
    from dls_ik.ros.params import Parameters

    return answer_help(args, "ik_node", "dls_ik.ros.node", ABOUT, Parameters, EXAMPLES)


if __name__ == "__main__":
    sys.exit(main())
