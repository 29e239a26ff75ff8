"""``~/pause`` and ``~/reset``: stopping the stream, and taking it up again."""

from typing import Any

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from dls_ik.ros.stream.cycle import Stream
from dls_ik.servo import ServoState

PAUSE, RESET = "~/pause", "~/reset"


class Orders:
    """Passes orders on to the stream, which carries them out in its next cycle."""

    def __init__(self, node: Node, stream: Stream) -> None:
        self._stream = stream
        node.create_service(SetBool, PAUSE, self._pause)
        node.create_service(Trigger, RESET, self._reset)

    def _pause(self, request: Any, response: Any) -> Any:
        if request.data:
            self._stream.order(lambda controller: controller.pause())
            return self._answered(response, "paused: the arm stops, and targets are passed over")
        self._stream.order(lambda controller: controller.resume())
        return self._answered(response, "goes on with the next target")

    def _reset(self, request: Any, response: Any) -> Any:
        self._stream.order(lambda controller: controller.reset())
        return self._answered(response, "reset: waiting for a target")

    def _answered(self, response: Any, message: str) -> Any:
        response.success = self._stream.has_arm
        response.message = message if response.success else ServoState.NO_ROBOT.explanation
        return response
