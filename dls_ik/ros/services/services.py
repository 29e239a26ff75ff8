"""``compute_ik`` and ``compute_fk``: every request gets an answer, whatever happens."""

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rclpy.node import Node

from dls_ik.exceptions import DlsIkError
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.parameters.solving import IGNORE
from dls_ik.ros.services.codes import Code, RequestError, fill_error_code
from dls_ik.ros.services.forward import answer_fk
from dls_ik.ros.services.inverse import Answer, answer_ik

NAMES = ("compute_ik", "compute_fk")


class Services:
    """Serves a robot that may change, or be missing.

    Args:
        arm: gives the robot at the time of a request, or raises a RequestError.
        current: gives its joint values by name.
    """

    def __init__(
        self,
        node: Node,
        arm: Callable[[], Arm],
        current: Callable[[], Mapping[str, float]],
        frames: Frames,
    ) -> None:
        self._node = node
        self._arm = arm
        self._current = current
        self._frames = frames
        self._told_of_collisions = False
        node.create_service(GetPositionIK, NAMES[0], self._ik)
        node.create_service(GetPositionFK, NAMES[1], self._fk)

    def _ik(self, request: Any, response: Any) -> Any:
        def answer(arm: Arm) -> Answer:
            self._warn_of_collisions(request.ik_request, arm)
            return answer_ik(request.ik_request, arm, self._current(), self._frames)

        return self._answered(answer, response)

    def _fk(self, request: Any, response: Any) -> Any:
        return self._answered(
            lambda arm: answer_fk(request, arm, self._current(), self._frames), response
        )

    def _answered(self, answer: Callable[[Arm], Answer], empty: Any) -> Any:
        try:
            response, message = answer(self._arm())
            self._stamp(response)
            code = Code.SUCCESS
        except RequestError as error:
            response, code, message = empty, error.code, str(error)
        except DlsIkError as error:
            response, code, message = empty, Code.FAILURE, str(error)
        except Exception as error:  # noqa: BLE001  a client waits for an answer, and others come
            self._node.get_logger().error(traceback.format_exc())
            response, code, message = empty, Code.FAILURE, f"internal error: {error!r}"
        fill_error_code(response.error_code, code, message, self._node.get_name())
        return response

    def _stamp(self, response: Any) -> None:
        now = self._node.get_clock().now().to_msg()
        if isinstance(response, GetPositionIK.Response):
            response.solution.joint_state.header.stamp = now
        else:
            for stamped in response.pose_stamped:
                stamped.header.stamp = now

    def _warn_of_collisions(self, request: Any, arm: Arm) -> None:
        if not request.avoid_collisions or self._told_of_collisions:
            return
        if arm.parameters.avoid_collisions == IGNORE:
            self._told_of_collisions = True
            self._node.get_logger().warning(
                "a request asks to avoid collisions, which this node cannot see: answered without; "
                "to refuse such requests set the parameter avoid_collisions to 'refuse'"
            )
