"""From an answer, or the reason that there is none, to a response."""

from collections.abc import Callable, Generator
from typing import Any

from moveit_msgs.srv import GetPositionIK
from rclpy.node import Node

from dls_ik.errors import DlsIkError
from dls_ik.ros.errors import Code, code_of, fill_error_code
from dls_ik.ros.services.inverse import Answer
from dls_ik.ros.util import trace
from dls_ik.text import escape


class Responses:
    """Fills responses in the name of a node, from any thread."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def answered(self, answer: Callable[[], Answer], empty: Any) -> Any:
        """The response of a function, or the empty one with the reason, whatever happens."""
        try:
            return self._success(*answer())
        except Exception as error:  # noqa: BLE001  a client waits for an answer, and others come
            return self._failure(error, empty)

    def slices(
        self, answer: Generator[None, None, Answer], empty: Any
    ) -> Generator[None, None, Any]:
        """As :meth:`answered`, of a generator."""
        try:
            return self._success(*(yield from answer))
        except Exception as error:  # noqa: BLE001  as above
            return self._failure(error, empty)

    def _success(self, response: Any, message: str) -> Any:
        self._stamp(response)
        return self._with_code(response, Code.SUCCESS, message)

    def _failure(self, error: Exception, empty: Any) -> Any:
        if isinstance(error, DlsIkError):
            return self._with_code(empty, code_of(error), str(error))
        self._node.get_logger().error(trace(error))
        return self._with_code(empty, Code.FAILURE, f"internal error: {error!r}")

    def _with_code(self, response: Any, code: Code, message: str) -> Any:
        fill_error_code(response.error_code, code, escape(message), self._node.get_name())
        return response

    def timed_out(self, response: Any, message: str) -> Any:
        """Fill the response to a request that nothing was tried for, and that may succeed later."""
        return self._with_code(response, Code.TIMED_OUT, message)

    def _stamp(self, response: Any) -> None:
        now = self._node.get_clock().now().to_msg()
        if isinstance(response, GetPositionIK.Response):
            response.solution.joint_state.header.stamp = now
        else:
            for stamped in response.pose_stamped:
                stamped.header.stamp = now
