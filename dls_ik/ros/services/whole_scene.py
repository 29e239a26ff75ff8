# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Client that requests the whole planning scene of another node, such as move_group."""

import math
import time
from collections.abc import Callable
from typing import Any

from moveit_msgs.srv import GetPlanningScene
from rclpy.node import Node

from dls_ik.ros.subscriptions import call_every
from dls_ik.ros.util import Throttle

SCENE_SERVICE = "get_planning_scene"  # service of move_group, in the namespace of its scene topic
ALL_COMPONENTS = 1023  # bits of moveit_msgs/PlanningSceneComponents
REQUEST_CHECK_PERIOD = 1.0  # [s] period of checks whether a request is due and the service exists
ANSWER_TIMEOUT = 10.0  # [s] maximum time until the answer to a request arrives
MAX_REPEATED_CHANGES = 1000  # maximum number of changes that are applied again after an answer


class WholeScene:
    """Client that requests the whole scene of another node.

    The scene topic of the other node contains only changes; therefore the whole scene is requested
    from its service ``get_planning_scene`` at the start, and when changes were lost.

    Args:
        node: ROS node of the client.
        topic: Scene topic of the other node; the service is in the same namespace.
        log: Log of the client.
        change: Function that queues a received scene, called with the message and the name of the
            service.
        has_own: Whether this node itself offers a service ``get_planning_scene``.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        log: Throttle,
        change: Callable[[Any, str], None],
        has_own: bool = True,
    ) -> None:
        namespace = "".join(topic.rpartition("/")[:2])
        self._name = node.resolve_service_name(namespace + SCENE_SERVICE)
        self._log, self._change = log, change
        self._due = -math.inf  # [s] steady time from which the next request may be sent
        self._answer: Any = None  # future of the pending request; None: no request is pending
        self._request_time = 0.0  # [s] steady time at which the pending request was sent
        self._later: list[Callable[[], None]] = []  # changes received since the pending request
        own = node.resolve_service_name(SCENE_SERVICE)
        if has_own and self._name == own:
            log.once(
                "own scene",
                f"cannot request the scene of move_group, because {own} is also the service of "
                f"this node; remap the service of this node, -r {SCENE_SERVICE}:=dls_ik/"
                f"{SCENE_SERVICE}; until then, only changes are received",
            )
            return
        self._client = node.create_client(GetPlanningScene, self._name)
        call_every(node, REQUEST_CHECK_PERIOD, self._request)

    def request_again(self, after: float = 0.0) -> None:
        """Request the whole scene again when a time [s] has passed and the service is available.

        Any thread may call this.
        """
        self._due = time.monotonic() + after

    def note_change(self, change: Callable[[], None]) -> None:
        """Apply a change again after the answer to a pending request.

        The answer may describe the scene before the change. If no request is pending, do nothing.

        Args:
            change: Function that applies the change.
        """
        if self._answer is None:
            return
        if len(self._later) < MAX_REPEATED_CHANGES:
            self._later.append(change)
        else:
            self.request_again()

    def _request(self) -> None:
        now = time.monotonic()
        if self._answer is not None:
            if now - self._request_time < ANSWER_TIMEOUT:
                return
            self._client.remove_pending_request(self._answer)
            self._answer, self._later = None, []
            self.request_again()
        if self._due <= now and self._client.service_is_ready():
            self._due = math.inf
            request = GetPlanningScene.Request()
            request.components.components = ALL_COMPONENTS
            self._request_time, self._answer = now, self._client.call_async(request)
            self._answer.add_done_callback(self._take)

    def _take(self, answer: Any) -> None:
        if answer is not self._answer:
            return  # the request of this answer has timed out
        self._answer, later, self._later = None, self._later, []
        try:
            scene = answer.result().scene
        except Exception as error:  # noqa: BLE001  the scene is requested again
            self.request_again()
            self._log.failed("whole scene", f"{self._name} returned no scene", error)
            return
        self._change(scene, self._name)
        for change in later:
            change()
