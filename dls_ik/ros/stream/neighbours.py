"""Others on the network that would move the same arm."""

from collections.abc import Iterable

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

LOOK_OUT = 1.0  # [s] between looks
KILLED = "one that was killed is forgotten after a while"


class Neighbours:
    """Says when a node of the same name comes, or another publisher of commands, and when it goes.

    Args:
        topics: of the commands that nobody else is to publish.
    """

    def __init__(self, node: Node, topics: Iterable[str]) -> None:
        self._node, self._topics = node, tuple(topics)
        self._counts: dict[str, int] = {}
        node.create_timer(LOOK_OUT, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _look(self) -> None:
        node = self._node
        name = node.get_fully_qualified_name()
        own = node.get_name(), node.get_namespace()
        count = node.get_node_names_and_namespaces().count(own)
        self._note(
            f"nodes are called {name}",
            count,
            "each moves the arm, and either may answer a request; give them names or namespaces "
            "of their own",
        )
        for topic in self._topics:
            others = node.count_publishers(topic) - max(1, count)
            self._note(f"publishers send commands on {topic}", others + 1, "the arm gets them all")

    def _note(self, what: str, count: int, consequence: str) -> None:
        """Say that there are several, when that begins and when it is over."""
        before, self._counts[what] = self._counts.get(what, 1), count
        logger = self._node.get_logger()
        if count > max(1, before):
            logger.warning(f"{count} {what}: {consequence} ({KILLED})")
        elif count <= 1 < before:
            logger.info(f"no longer several {what}")
