"""The command line of the demonstration."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

EPILOG = (
    "Exit code: 0 if every check at the end holds but those by the clock, which a busy machine may "
    "fail and which do not decide; 1 if one does not, or the node did not start; "
    "2 for a wrong option, 130 after Ctrl-C. The node's log is ik_node.log beside the pictures."
)


class Options(NamedTuple):
    """What a person can choose."""

    output: Path
    seconds: float  # of streaming
    rate: float  # [Hz] of targets and of the node's loop
    method: str | None  # of the node's loop; None: its own default
    json: Path | None
    quiet: bool


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line; leaves the program after ``--help`` or a wrong option."""
    try:
        found = _options.main(arguments, prog_name="scripts/demo", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    if not isinstance(found, Options):  # the help was shown
        raise SystemExit(0)
    return found


def _no_nan(context: click.Context, param: click.Parameter, value: float) -> float:
    """Refuse nan, which is in every range of click's."""
    if math.isnan(value):
        raise click.BadParameter("nan is no number.")
    return value


@click.command(epilog=EPILOG)
@click.option(
    "--output", type=click.Path(path_type=Path), default="demo_output", metavar="DIR",
    show_default=True, help="For the pictures.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(1.0, 600.0), default=10.0, show_default=True,
    callback=_no_nan, help="How long to stream.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(10.0, 1000.0), default=100.0, show_default=True,
    callback=_no_nan, help="Targets a second.",
)  # fmt: skip
@click.option("--method", help="Of the loop that follows the target, such as jd or svf+ed.")
@click.option(
    "--json", type=click.Path(path_type=Path), metavar="FILE",
    help="Save every figure that is printed.",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="Print the checks at the end only.")
def _options(**given: Any) -> Options:
    """See the WAM arm solved and moving.

    Starts a real ik_node as a process of its own, asks compute_ik for a dozen poses, some of them
    out of reach, and checks every answer; streams a figure of eight on target_pose and follows the
    joint_states that come back; saves pictures of the motion.
    """
    return Options(**given)
