"""The whole scene of another node, such as move_group, whose topics have later changes only."""

import math
import time
from collections.abc import Callable
from typing import Any

from moveit_msgs.srv import GetPlanningScene
from rclpy.node import Node

from dls_ik.ros.subscriptions import call_every
from dls_ik.ros.util import Throttle

WHOLE = "get_planning_scene"  # service of move_group, beside its topic
ASK_PERIOD = 1.0  # [s] between looks for move_group
ANSWER = 10.0  # [s] for a whole scene to come
MAX_LATER = 1000  # changes that are heard while a whole scene is on its way


class WholeScene:
    """Asks another node for its whole scene, as topics have later changes only.

    Args:
        topic: On which its scene is published; the service is beside it.
        change: Applies a message later, with where it came from.
        has_own: This node has such a service too.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        log: Throttle,
        change: Callable[[Any, str], None],
        has_own: bool = True,
    ) -> None:
        beside = topic.rpartition("/")
        self._name = node.resolve_service_name("".join(beside[:2]) + WHOLE)
        self._log, self._change = log, change
        self._node = node
        self._due = -math.inf  # [s] from when to ask
        self._answer: Any = None  # a future, while it is waited for
        self._asked = 0.0  # [s]
        self._later: list[Callable[[], None]] = []  # changes heard since then
        own = node.resolve_service_name(WHOLE)
        if has_own and self._name == own:
            log.once(
                "own scene",
                f"the scene of move_group is asked for on {own}, which is this node's own service: "
                f"remap it, -r {WHOLE}:=dls_ik/{WHOLE}; until then only changes are heard",
            )
            return
        self._client = node.create_client(GetPlanningScene, self._name)
        call_every(node, ASK_PERIOD, self._ask)

    def ask_anew(self, after: float = 0.0) -> None:
        """Ask when there is somebody to ask, and a time [s] is over; from any thread."""
        self._due = time.monotonic() + after

    def note(self, change: Callable[[], None]) -> None:
        """Repeat a change after an answer that is on its way, as that may be older."""
        if self._answer is None:
            return
        if len(self._later) < MAX_LATER:
            self._later.append(change)
        else:
            self.ask_anew()

    def _ask(self) -> None:
        now = time.monotonic()
        if self._answer is not None:
            if now - self._asked < ANSWER:
                return
            self._client.remove_pending_request(self._answer)  # who was asked is gone
            self._answer, self._later = None, []
            self.ask_anew()
        if self._due <= now and self._client.service_is_ready():
            self._due = math.inf
            request = GetPlanningScene.Request()
            request.components.components = 1023  # all
            self._asked, self._answer = now, self._client.call_async(request)
            self._answer.add_done_callback(self._take)

    def _take(self, answer: Any) -> None:
        if answer is not self._answer:
            return  # it was given up
        self._answer, later, self._later = None, self._later, []
        try:
            scene = answer.result().scene
        except Exception as error:  # noqa: BLE001  it is asked again
            self.ask_anew()
            self._log.failed("whole scene", f"no scene from {self._name}", error)
            return
        self._change(scene, self._name)
        for change in later:
            change()
