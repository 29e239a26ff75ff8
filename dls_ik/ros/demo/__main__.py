"""The command line of the demonstration; ``scripts/demo`` sets up what it needs and runs it."""

import math
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

from dls_ik.errors import DlsIkError
from dls_ik.ros.child import stay_alone
from dls_ik.ros.demo import Options

INTERRUPTED = 128 + signal.SIGINT
EPILOG = (
    "Exit code: 0 if every check at the end holds but those by the clock, which a busy machine may "
    "fail and which do not decide; 1 if one does not, or the node did not start; "
    "2 for a wrong option, 130 after Ctrl-C. The node's log is ik_node.log beside the pictures."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; return the exit code."""
    options = parse_options(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may know ASCII only
    stay_alone()
    signal.signal(signal.SIGTERM, _exit)
    try:
        from dls_ik.ros.demo.session import run

        return run(options)
    except ImportError as error:
        return _fail(f"{error.name or error} is missing: scripts/demo sets it up")
    except (DlsIkError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted")
        return INTERRUPTED


def _exit(number: int, frame: Any) -> None:
    """Leave all contexts, which ends the node."""
    raise SystemExit(128 + number)


def _fail(message: str) -> int:
    print(f"demo: {message}", file=sys.stderr)
    return 1


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line; exit after ``--help`` or a wrong option."""
    try:
        found = _options.main(arguments, prog_name="scripts/demo", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    if not isinstance(found, Options):  # --help
        raise SystemExit(0)
    return found


def _not_nan(context: click.Context, param: click.Parameter, value: float) -> float:
    """Refuse nan, which every range of click contains."""
    if math.isnan(value):
        raise click.BadParameter("nan is no number.")
    return value


@click.command(epilog=EPILOG)
@click.option(
    "--output", type=click.Path(path_type=Path), default="demo_output", metavar="DIR",
    show_default=True, help="Folder for the pictures.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(1.0, 600.0), default=10.0, show_default=True,
    callback=_not_nan, help="Duration of the stream.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(10.0, 1000.0), default=100.0, show_default=True,
    callback=_not_nan, help="Targets per second.",
)  # fmt: skip
@click.option("--method", help="Method that follows the target, such as jd or svf+ed.")
@click.option(
    "--json", type=click.Path(path_type=Path), metavar="FILE", help="Save all figures as JSON."
)
@click.option("--quiet", is_flag=True, help="Print the checks at the end only.")
def _options(**given: Any) -> Options:
    """See the WAM arm solved and moving.

    Starts a real ik_node as a process of its own, asks compute_ik for a dozen poses, some of them
    out of reach, and checks every answer; streams a figure of eight on target_pose and follows the
    joint_states that come back; saves pictures of the motion.
    """
    return Options(**given)


if __name__ == "__main__":
    sys.exit(main())
