"""What can be asked of the arm: to begin again, and to fail."""

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from dls_ik.ros.sim_arm.simulation import Simulation

NOTHING = "there is no robot yet"


class Services:
    """``~/reset``, ``~/freeze`` and ``~/silence``.

    Args:
        current: the simulation in use, if there is one.
    """

    def __init__(self, node: Node, current: Callable[[], Simulation | None]) -> None:
        self._current = current
        self._logger = node.get_logger()
        node.create_service(Trigger, "~/reset", self._reset)
        node.create_service(SetBool, "~/freeze", self._freeze)
        node.create_service(SetBool, "~/silence", self._silence)

    def _reset(self, request: Any, response: Any) -> Any:
        return self._answer(response, Simulation.reset, "at the initial positions")

    def _freeze(self, request: Any, response: Any) -> Any:
        words = "the drives are stuck" if request.data else "the drives are free"
        return self._answer(response, lambda arm: arm.freeze(request.data), words)

    def _silence(self, request: Any, response: Any) -> Any:
        words = "joint states cease" if request.data else "joint states come"
        return self._answer(response, lambda arm: arm.silence(request.data), words)

    def _answer(self, response: Any, act: Callable[[Simulation], None], words: str) -> Any:
        simulation = self._current()
        response.success = simulation is not None
        response.message = words if simulation is not None else NOTHING
        if simulation is not None:
            act(simulation)
            self._logger.info(words)
        return response
