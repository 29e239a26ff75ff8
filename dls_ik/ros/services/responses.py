"""From an answer, or the reason that there is none, to a response."""

from collections.abc import Callable
from typing import Any

from moveit_msgs.srv import GetPositionIK
from rclpy.node import Node

from dls_ik.exceptions import DlsIkError
from dls_ik.printable import plain
from dls_ik.ros.logs import trace
from dls_ik.ros.services.codes import Code, RequestError, fill_error_code
from dls_ik.ros.services.inverse import Answer


class Responses:
    """Fills responses in the name of a node, from any thread."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def answered(self, answer: Callable[[], Answer], empty: Any) -> Any:
        """The response of a function, or the empty one with the reason, whatever happens."""
        try:
            response, message = answer()
            self._stamp(response)
            code = Code.SUCCESS
        except RequestError as error:
            response, code, message = empty, error.code, str(error)
        except DlsIkError as error:
            response, code, message = empty, Code.FAILURE, str(error)
        except Exception as error:  # noqa: BLE001  a client waits for an answer, and others come
            self._node.get_logger().error(trace(error))
            response, code, message = empty, Code.FAILURE, f"internal error: {error!r}"
        fill_error_code(response.error_code, code, plain(message), self._node.get_name())
        return response

    def timed_out(self, response: Any, message: str) -> Any:
        """Fill the response to a request that nothing was tried for, and that may succeed later."""
        fill_error_code(response.error_code, Code.TIMED_OUT, message, self._node.get_name())
        return response

    def _stamp(self, response: Any) -> None:
        now = self._node.get_clock().now().to_msg()
        if isinstance(response, GetPositionIK.Response):
            response.solution.joint_state.header.stamp = now
        else:
            for stamped in response.pose_stamped:
                stamped.header.stamp = now
