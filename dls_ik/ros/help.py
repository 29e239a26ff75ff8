"""``--help`` of the nodes, and what is said to arguments that they do not take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dls_ik.ros.parameters.declare import Settings

USAGE = """\
usage: ros2 run dls_ik {program} --ros-args [-p NAME:=VALUE] [--params-file FILE] [-r FROM:=TO]
       python3 -m {module} --ros-args ...

{about}

Parameters, with their defaults:

{parameters}

For example:

{examples}
"""


def own_arguments(args: Sequence[str] | None) -> list[str]:
    """The arguments that are not for ROS: those outside of ``--ros-args ... --``."""
    found, is_ros = [], False
    for argument in sys.argv[1:] if args is None else args:
        if argument == "--ros-args":
            is_ros = True
        elif not is_ros:
            found.append(argument)
        elif argument == "--":
            is_ros = False
    return found


def answered(
    args: Sequence[str] | None,
    program: str,
    module: str,
    about: str,
    settings: type[Settings],
    examples: Sequence[str],
) -> int | None:
    """Print help where it is asked for, or what is wrong with the arguments.

    Returns:
        The exit code; None: there is a node to run.
    """
    own = own_arguments(args)
    if {"-h", "--help"} & set(own):
        words = {"program": program, "module": module, "about": about}
        lines = "\n".join(f"  {example}" for example in examples)
        text = USAGE.format(**words, parameters=_parameters(settings), examples=lines)
        sys.stdout.write(text)
        return 0
    if own:
        sys.stderr.write(
            f"{program}: it takes no argument {own[0]!r}; parameters are given as "
            f"--ros-args -p NAME:=VALUE, see {program} --help\n"
        )
        return 2
    return None


def _parameters(settings: type[Settings]) -> str:
    from dls_ik.ros.parameters.declare import declared

    entries = []
    for name, field in declared(settings).items():
        unit = f" [{field.metadata['unit']}]" if field.metadata["unit"] else ""
        default = field.default
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        text = f"{field.metadata['text']}{unit}"
        if field.metadata["choices"]:
            text += f"; one of {', '.join(field.metadata['choices'])}"
        head = f"  {name} ({shown})" if shown else f"  {name}"
        entries.append(
            f"{head}\n{fill(text, 92, initial_indent=' ' * 8, subsequent_indent=' ' * 8)}"
        )
    return "\n".join(entries)
