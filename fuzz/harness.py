"""The tests' own requests and surroundings of a stream, which ROS targets begin with."""

import sys
from pathlib import Path

TEST = Path(__file__).resolve().parents[1] / "test"


def find_harness() -> None:
    """Let the modules of test and test/ros be imported."""
    for folder in (TEST / "ros", TEST):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
