"""The command line of the demonstration."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DESCRIPTION = """\
See the WAM arm solved and moving. Starts a real ik_node as a process of its own, then
(1) asks /compute_ik for a dozen poses, some of them out of reach, and checks every answer;
(2) streams a figure of eight on target_pose and follows the joint_states that come back;
(3) saves pictures of the motion.
"""
EPILOG = """\
exit code: 0 if every check at the end holds, 1 if one does not or the node did not start,
2 for a wrong option, 130 after Ctrl-C. The node's log is ik_node.log beside the pictures.
"""


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
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--output", type=Path, default=Path("demo_output"), metavar="DIR", help="for the pictures")
    add(
        "--seconds", type=_number(1.0, 600.0), default=10.0, help="how long to stream (%(default)s)"
    )
    add("--rate", type=_number(10.0, 1000.0), default=100.0, help="targets a second (%(default)s)")
    add("--method", help="of the loop that follows the target, such as jd or svf+sd")
    add("--json", type=Path, metavar="FILE", help="save every figure that is printed")
    add("--quiet", action="store_true", help="print the checks at the end only")
    return Options(**vars(parser.parse_args(arguments)))


class _number:  # noqa: N801  # argparse shows the name of the type
    """A number within a range, as a type for argparse."""

    def __init__(self, least: float, most: float) -> None:
        self.least, self.most = least, most

    def __call__(self, text: str) -> float:
        value = float(text)
        if not self.least <= value <= self.most:
            raise argparse.ArgumentTypeError(f"{text} is not from {self.least:g} to {self.most:g}")
        return value
