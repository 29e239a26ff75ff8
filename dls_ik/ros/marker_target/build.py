"""The marker where it is asked for, and where the library for it is installed."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from rclpy.node import Node

from dls_ik.ros.marker_target.marker import MarkerTarget
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.watch.seen import Seen
from dls_ik.servo import Controller

LIBRARY = "interactive_markers"


def build_marker(
    node: Node,
    parameters: Parameters,
    seen: Callable[[], Seen],
    store: Callable[[Any], None],
    order: Callable[[Callable[[Controller], None]], None],
) -> MarkerTarget | None:
    """The marker of a node; None where no parameter asks for it.

    Without the library there is none either, and the log says what to install. For all else see
    :class:`MarkerTarget`.
    """
    if not parameters.interactive_marker:
        return None
    try:
        library = import_module(LIBRARY)
    except ImportError:
        node.get_logger().warning(
            "there is no marker to drag in RViz: interactive_marker needs the package "
            f"{LIBRARY}: sudo apt-get install ros-$ROS_DISTRO-interactive-markers"
        )
        return None
    return MarkerTarget(node, library, seen, store, order)
