"""``python -m dls_ik.ros.demo``: the WAM arm solved and moving, through a real ``ik_node``.

The node runs in a process of its own. This process is a client like any other; it checks answers by
the kinematics of another library.
"""

from pathlib import Path
from typing import NamedTuple


class Options(NamedTuple):
    """Options of the command line."""

    output: Path
    seconds: float  # of streaming
    rate: float  # [Hz] of targets and of the node's loop
    method: str | None  # of the node's loop; None: its default
    json: Path | None
    quiet: bool
