"""``~/pause`` and ``~/reset``: stopping the stream, and taking it up again."""

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from dls_ik.ros.stream.cycle import Stream
from dls_ik.servo import Controller, ServoState

PAUSE, RESET = "~/pause", "~/reset"


class Orders:
    """Passes orders on to the stream, which carries them out in its next cycle."""

    def __init__(self, node: Node, stream: Stream) -> None:
        self._stream = stream
        node.create_service(SetBool, PAUSE, self._pause)
        node.create_service(Trigger, RESET, self._reset)

    def _pause(self, request: Any, response: Any) -> Any:
        if request.data:
            words = "paused: the arm stops, and targets are passed over"
            return self._ordered(response, Controller.pause, words)
        return self._ordered(response, Controller.resume, "goes on with the next target")

    def _reset(self, request: Any, response: Any) -> Any:
        return self._ordered(response, Controller.reset, "reset: waiting for a target")

    def _ordered(self, response: Any, order: Callable[[Controller], None], words: str) -> Any:
        """Give an order, or say that there is nothing to order."""
        response.success = self._stream.has_arm
        response.message = words if response.success else ServoState.NO_ROBOT.explanation
        if response.success:
            self._stream.order(order)
        return response
