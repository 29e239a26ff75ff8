"""``compute_ik`` and ``compute_fk``: every request gets an answer, whatever happens.

Requests for ``compute_ik`` are tried at once for a moment, which is enough for nearly all of them,
and cheaper than a change of threads. Those that take longer go on in threads of their own, where
they take turns; other callbacks run meanwhile, as kernels run without the GIL.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any

from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rclpy.node import Node

from dls_ik.ros.arm import Arm
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.frames import Frames
from dls_ik.ros.params.ik_node import IGNORE, Parameters
from dls_ik.ros.services.call import Call
from dls_ik.ros.services.executor import BoundedExecutor, DeferredService, Reply
from dls_ik.ros.services.forward import answer_fk
from dls_ik.ros.services.inverse import Answer, ik_slices
from dls_ik.ros.services.known import Known
from dls_ik.ros.services.responses import Responses
from dls_ik.ros.util import Throttle
from dls_ik.solver.single import finished

NAMES = ("compute_ik", "compute_fk")
MOMENT = 0.001  # [s]
DEPTH = 1000  # requests and responses that the middleware keeps at least


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
        current: Callable[[Arm], Mapping[str, float]],
        frames: Frames,
        parameters: Parameters,
    ) -> None:
        self._arm, self._current, self._frames = arm, current, frames
        self._log = Throttle(node)
        self._responses = Responses(node)
        self._executor = BoundedExecutor(parameters.service_threads, parameters.service_queue)
        self._known = Known()
        self._closed = False
        depth = max(DEPTH, parameters.service_queue)
        DeferredService(node, GetPositionIK, NAMES[0], self._ik, depth)
        node.create_service(GetPositionFK, NAMES[1], self._fk)

    def close(self) -> None:
        """Begin with no more requests; answers that come later may find nothing to be sent by."""
        self._closed = True
        self._executor.close()

    def _fk(self, request: Any, response: Any) -> Any:
        def answer() -> Answer:
            arm = self._arm()
            return answer_fk(request, arm, self._current(arm), self._frames)

        return self._responses.answered(answer, response)

    def _ik(self, request: Any, empty: Any, reply: Reply) -> None:
        try:
            call = Call(request.ik_request, empty, self._arm())
        except Exception as error:  # noqa: BLE001  a client waits for an answer
            self._send(reply, self._responses.answered(partial(_refuse, error), empty))
            return
        self._warn_of_collisions(call)
        response = None
        if not self._executor.waiting and self._known.is_known(call):
            response = self._at_once(call)
        if response is None and not self._submit(call, reply):
            waiting, bound = self._executor.waiting, self._executor.bound
            response = self._responses.timed_out(
                empty,
                f"{waiting} requests wait already, and the parameter service_queue is {bound}: "
                "ask again later",
            )
        if response is not None:
            self._send(reply, response)

    def _at_once(self, call: Call) -> Any | None:
        """The answer that is found in a moment; None if it takes longer."""
        begin = time.perf_counter()
        response = finished(self._slices(call, MOMENT))
        was_short = call.timeout > MOMENT and time.perf_counter() - begin > MOMENT
        return None if was_short and response.error_code.val == Code.NO_IK_SOLUTION else response

    def _submit(self, call: Call, reply: Reply) -> bool:
        """Have a request answered in a thread; return whether there is room in the queue."""
        give_up = partial(self._give_up, call, reply)
        return self._executor.submit(self._work(call, reply), call.deadline, give_up)

    def _work(self, call: Call, reply: Reply) -> Iterator[None]:
        if call.is_late:
            self._give_up(call, reply)
            return
        response = yield from self._slices(call, call.timeout)
        if response.error_code.val == Code.SUCCESS:
            self._known.remember(call)
        self._send(reply, response)

    def _give_up(self, call: Call, reply: Reply) -> None:
        words = (
            f"the request waited {call.waited:.3g} s for its turn, longer than its timeout of "
            f"{call.timeout:.3g} s; {self._executor.waiting} requests wait, service_queue is "
            f"{self._executor.bound}"
        )
        self._send(reply, self._responses.timed_out(call.empty, words))

    def _slices(self, call: Call, longest: float) -> Generator[None, None, Any]:
        call.allow(longest)
        return self._responses.slices(self._answer(call), call.empty)

    def _answer(self, call: Call) -> Generator[None, None, Answer]:
        current = self._current(call.arm)
        try:
            return (yield from ik_slices(call.request, call.arm, current, self._frames))
        except RequestError as error:
            if not call.note or error.code is not Code.NO_IK_SOLUTION:
                raise
            raise RequestError(error.code, f"{error}; {call.note}") from error

    def _send(self, reply: Reply, response: Any) -> None:
        try:
            reply(response)
        except Exception as error:  # noqa: BLE001  the node ends, or the client is gone; others wait
            if not self._closed:
                self._log.failed("reply", "an answer was not sent", error)

    def _warn_of_collisions(self, call: Call) -> None:
        if call.request.avoid_collisions and call.arm.parameters.avoid_collisions == IGNORE:
            self._log.once(
                "collisions",
                "a request asks to avoid collisions, which this node cannot see: answered without; "
                "to refuse such requests set the parameter avoid_collisions to 'refuse'",
            )


def _refuse(error: Exception) -> Answer:
    raise error
