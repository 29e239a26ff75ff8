"""``~/pause`` and ``~/reset``, and warnings of others that would move the same arm."""

from collections.abc import Iterable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from dls_ik.ros.servo.cycle import Action, ServoCycle
from dls_ik.ros.servo.targets import TOPICS
from dls_ik.ros.subscriptions import CHECK_PERIOD
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller, ServoState

PAUSE, RESET = "~/pause", "~/reset"
KILLED = "one that was killed is forgotten after a while"


class ControlServices:
    """Services to pause, resume and reset the controller in its next cycle."""

    def __init__(self, node: Node, cycle: ServoCycle) -> None:
        self._cycle = cycle
        node.create_service(SetBool, PAUSE, self._pause)
        node.create_service(Trigger, RESET, self._reset)

    def _pause(self, request: Any, response: Any) -> Any:
        if request.data:
            words = "paused: the arm stops, and targets are passed over"
            return self._submit(response, Controller.pause, words)
        return self._submit(response, Controller.resume, "continues with the next target")

    def _reset(self, request: Any, response: Any) -> Any:
        return self._submit(response, Controller.reset, "reset: waiting for a target")

    def _submit(self, response: Any, action: Action, words: str) -> Any:
        """Submit an action, or answer that there is no arm."""
        response.success = self._cycle.has_arm
        response.message = words if response.success else ServoState.NO_ROBOT.explanation
        if response.success:
            self._cycle.submit(action)
        return response


class ConflictMonitor:
    """Warns of other nodes of the same name, and of other publishers of commands or targets.

    Args:
        topics: of the commands that no other node is to publish.
    """

    def __init__(self, node: Node, log: Throttle, topics: Iterable[str]) -> None:
        self._node, self._log, self._topics = node, log, tuple(topics)
        self._counts: dict[str, int] = {}  # as reported last
        node.create_timer(CHECK_PERIOD, self._check, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _check(self) -> None:
        node = self._node
        name = node.get_fully_qualified_name()
        own = node.get_name(), node.get_namespace()
        count = node.get_node_names_and_namespaces().count(own)
        self._report(
            f"nodes are called {name}",
            count,
            "each moves the arm, and either may answer a request; give them names or namespaces "
            "of their own",
        )
        for topic in self._topics:
            others = node.count_publishers(topic) - max(1, count)
            what = f"publishers send commands on {topic}"
            self._report(what, others + 1, "the arm gets them all")
        for topic in map(node.resolve_topic_name, TOPICS):
            count = node.count_publishers(topic)
            if count > 1:
                words = f"{count} publishers on {topic}: the newest target counts"
                self._log.once(words, words)

    def _report(self, what: str, count: int, consequence: str) -> None:
        """Warn when there are several, and log when that is over."""
        before, self._counts[what] = self._counts.get(what, 1), count
        logger = self._node.get_logger()
        if count > max(1, before):
            logger.warning(f"{count} {what}: {consequence} ({KILLED})")
        elif count <= 1 < before:
            logger.info(f"no longer several {what}")
