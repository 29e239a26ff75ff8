# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Service servers: ``compute_ik``, ``compute_fk`` and services about the planning scene.

One thread receives all requests. It tries to solve a ``compute_ik`` request itself for up to one
millisecond, which is enough for nearly all requests and faster than passing the request to another
thread. Worker threads solve the remaining requests in turns; the kernels release the GIL. A
watchdog thread answers a request if the worker thread of the request misses the deadline.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any

from moveit_msgs.srv import (
    ApplyPlanningScene,
    GetPlanningScene,
    GetPositionFK,
    GetPositionIK,
    GetStateValidity,
)
from rclpy.node import Node

from dls_ik.core.jit import MissingKernelError
from dls_ik.errors import Code, DlsIkError, code_of
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.receiver import MessageReceiver, Reply
from dls_ik.ros.services.answers import FastPathCache, Solution, answer_fk, ik_slices
from dls_ik.ros.services.executor import BoundedExecutor
from dls_ik.ros.services.request import IkRequest, read_ik_request
from dls_ik.ros.services.scene import answer_scene, answer_validity
from dls_ik.ros.services.scene_monitor import PlanningSceneMonitor
from dls_ik.ros.services.whole_scene import SCENE_SERVICE
from dls_ik.ros.util import Throttle, trace
from dls_ik.solver.calls import finished
from dls_ik.text import escape

IK_SERVICES = ("compute_ik", "compute_fk")
VALIDITY_SERVICE, APPLY_SERVICE = "check_state_validity", "apply_planning_scene"
FAST_PATH_TIMEOUT = 0.001  # [s] maximum solver time in the receiving thread
# Number of requests and responses that the middleware queues: the minimum for compute_ik and
# compute_fk, and the number for each service about the scene.
MIN_QUEUE_DEPTH = 1000
SCENE_QUEUE_DEPTH = 100
QUEUE_FULL, TOO_SLOW = "too many requests are queued", "the check takes longer than max_timeout"


class ServiceServer:
    """Servers of all services for the arm in use.

    Args:
        node: ROS node.
        arm: Function that returns the arm in use, or raises a RequestError if there is none.
        current: Function that returns the joint positions of an arm by name [rad or m].
        frames: Lookup of frames.
        parameters: Parameters of the node.
        scenes: Planning scene of the robot in use.
    """

    def __init__(
        self,
        node: Node,
        arm: Callable[[], Arm],
        current: Callable[[Arm], Mapping[str, float]],
        frames: Frames,
        parameters: Parameters,
        scenes: PlanningSceneMonitor,
    ) -> None:
        self._node, self._scenes = node, scenes
        self._arm, self._current, self._frames = arm, current, frames
        self._log = Throttle(node)
        self._executor = BoundedExecutor(parameters.service_threads, parameters.service_queue)
        self._fast_path = FastPathCache()
        self._max_timeout = parameters.max_timeout
        self._closed = False
        depth = max(MIN_QUEUE_DEPTH, parameters.service_queue)
        self._receiver = MessageReceiver(node, self._log)
        self._receiver.create_service(GetPositionIK, IK_SERVICES[0], self._ik, depth)
        self._receiver.create_service(GetPositionFK, IK_SERVICES[1], self._fk, depth)
        others = GetStateValidity, GetPlanningScene, ApplyPlanningScene
        receive = self._validity, self._scene, self._apply_scene
        names = VALIDITY_SERVICE, SCENE_SERVICE, APPLY_SERVICE
        for kind, name, take in zip(others, names, receive, strict=True):
            self._receiver.create_service(kind, name, take, SCENE_QUEUE_DEPTH)
        self._thread = threading.Thread(target=self._receiver.serve, name="services", daemon=True)

    def start(self) -> None:
        """Start the thread that receives and answers requests."""
        self._thread.start()

    def close(self) -> None:
        """Stop receiving requests; requests that are being solved may get no answer."""
        self._closed = True
        self._receiver.close()
        self._executor.close()
        if self._thread.is_alive():
            self._thread.join()

    def _fk(self, request: Any, reply: Reply) -> None:
        self._send(reply, self._answer_fk(request))

    def _answer_fk(self, request: Any) -> Any:
        try:
            arm = self._arm()
            solution = answer_fk(request, arm, self._current(arm), self._frames)
        except Exception as error:  # noqa: BLE001  the client needs an answer
            return self._failed(GetPositionFK.Response(), error)
        now = self._node.get_clock().now().to_msg()
        for stamped in solution.response.pose_stamped:
            stamped.header.stamp = now
        return self._succeeded(solution)

    def _ik(self, message: Any, reply: Reply) -> None:
        try:
            request = read_ik_request(message.ik_request, self._arm(), self._scenes.scene)
        except Exception as error:  # noqa: BLE001  the client needs an answer
            self._send(reply, self._failed(GetPositionIK.Response(), error))
            return
        if request.unchecked:
            self._log.once("unchecked", f"a request has avoid_collisions, but {request.unchecked}")
        response = None
        if not self._executor.waiting and self._fast_path.is_known(request):
            response = self._try_at_once(request)
        if response is None and not self._submit(request, reply):
            waiting, bound = self._executor.waiting, self._executor.bound
            response = self._timed_out(
                f"{waiting} requests are already queued, and the parameter service_queue is "
                f"{bound}; send the request again later"
            )
        if response is not None:
            self._send(reply, response)

    def _try_at_once(self, request: IkRequest) -> Any | None:
        """Try to solve a request in this thread, within FAST_PATH_TIMEOUT.

        Returns:
            Response; None if the time was too short.
        """
        start = time.perf_counter()
        response = finished(self._slices(request, FAST_PATH_TIMEOUT))
        was_cut = (
            request.timeout > FAST_PATH_TIMEOUT and time.perf_counter() - start > FAST_PATH_TIMEOUT
        )
        return None if was_cut and response.error_code.val == Code.NO_IK_SOLUTION else response

    def _submit(self, request: IkRequest, reply: Reply) -> bool:
        """Queue a request for the worker threads; return False if the queue is full."""
        give_up, cut = partial(self._give_up, request, reply), partial(self._cut, request, reply)
        return self._executor.submit(self._work(request, reply), request.deadline, give_up, cut)

    def _work(self, request: IkRequest, reply: Reply) -> Iterator[None]:
        """Solve a request within the rest of its timeout, as a job in slices; send the answer."""
        if time.perf_counter() > request.deadline:
            self._give_up(request, reply)
            return
        response = yield from self._slices(request, request.timeout)
        if response.error_code.val == Code.SUCCESS:
            self._fast_path.remember(request)
        self._send(reply, response)

    def _give_up(self, request: IkRequest, reply: Reply) -> None:
        """Answer a request that no worker thread has started to solve by the request's deadline."""
        busy, others = self._executor.running, self._executor.waiting
        within = f"within the timeout of {request.timeout:.3g} s"
        if busy < self._executor.threads:
            message = (
                f"the solver did not start {within}, although a thread was free, because other "
                "programs use the processor; use a longer timeout"
            )
        else:
            message = (
                f"no thread was free {within}: {busy} requests are being solved, {others} others "
                f"are queued, and the parameter service_threads is {self._executor.threads}; use a "
                "longer timeout or more service_threads"
            )
        self._send(reply, self._timed_out(message))

    def _cut(self, request: IkRequest, reply: Reply) -> None:
        """Answer a request whose worker thread has missed the deadline and is still computing."""
        message = (
            f"no solution was found within the timeout of {request.timeout:.3g} s, because the "
            "preparation takes longer, for example of bounds on the reach or of attached objects; "
            "send the request again later, when the preparation is complete"
        )
        if request.timeout_note:
            message = f"{message}; {request.timeout_note}"
        self._send(reply, self._with_code(GetPositionIK.Response(), Code.NO_IK_SOLUTION, message))

    def _slices(self, request: IkRequest, max_duration: float) -> Generator[None, None, Any]:
        """Solve a request in slices, as a generator that returns the response.

        Args:
            request: Request.
            max_duration: Maximum time [s]; the time until the timeout of the request limits it too.
        """
        try:
            current = self._current(request.arm)
            timeout = min(request.remaining, max_duration)
            solution = yield from ik_slices(request, current, self._frames, timeout)
        except Exception as error:  # noqa: BLE001  the client needs an answer
            return self._failed(GetPositionIK.Response(), error, request.timeout_note)
        now = self._node.get_clock().now().to_msg()
        solution.response.solution.joint_state.header.stamp = now
        return self._succeeded(solution)

    def _succeeded(self, solution: Solution) -> Any:
        return self._with_code(solution.response, Code.SUCCESS, solution.message)

    def _timed_out(self, message: str) -> Any:
        return self._with_code(GetPositionIK.Response(), Code.TIMED_OUT, message)

    def _failed(self, empty: Any, error: Exception, note: str = "") -> Any:
        """Return a response with the code and the message of an error.

        Args:
            empty: Response to fill.
            error: Error that was raised while the request was answered.
            note: Text that is appended to the message if the code is NO_IK_SOLUTION.
        """
        if isinstance(error, MissingKernelError):
            return self._with_code(empty, Code.TIMED_OUT, str(error))
        if not isinstance(error, DlsIkError):
            self._node.get_logger().error(trace(error))
            return self._with_code(empty, Code.FAILURE, f"internal error: {error!r}")
        code = code_of(error)
        message = f"{error}; {note}" if note and code is Code.NO_IK_SOLUTION else str(error)
        return self._with_code(empty, code, message)

    def _with_code(self, response: Any, code: Code, message: str) -> Any:
        error_code = response.error_code
        error_code.val = int(code)
        if hasattr(error_code, "message"):  # missing on Humble
            error_code.message, error_code.source = escape(message), self._node.get_name()
        return response

    def _send(self, reply: Reply, response: Any) -> None:
        try:
            reply(response)
        except Exception as error:  # noqa: BLE001  the client may be gone; others are waiting
            if not self._closed:
                self._log.failed("reply", "cannot send an answer", error)

    # Services about the scene

    def _validity(self, request: Any, reply: Reply) -> None:
        deadline = time.perf_counter() + self._max_timeout

        def invalid(reason: str) -> None:
            self._log.warn(
                VALIDITY_SERVICE,
                f"{VALIDITY_SERVICE} answers valid = false without a check: {reason}",
            )
            self._send(reply, GetStateValidity.Response(valid=False))

        def work() -> Iterator[None]:
            try:
                arm = self._arm()
                given = arm, self._scenes.scene(arm.tree), self._current(arm), self._frames
                response = answer_validity(request, *given)
            except DlsIkError as error:
                invalid(str(error))
            except Exception as error:  # noqa: BLE001  the client needs an answer
                self._node.get_logger().error(trace(error))
                invalid(f"internal error: {error!r}")
            else:
                self._send(reply, response)
            yield from ()

        full, slow = partial(invalid, QUEUE_FULL), partial(invalid, TOO_SLOW)
        if not self._executor.submit(work(), deadline, full, slow):
            invalid(QUEUE_FULL)

    def _scene(self, request: Any, reply: Reply) -> None:
        def answer() -> Any:
            arm = self._arm()
            scene = self._scenes.scene(arm.tree)
            return answer_scene(request, arm, scene, self._current(arm))

        self._in_order(answer, reply, GetPlanningScene.Response(), SCENE_SERVICE)

    def _apply_scene(self, request: Any, reply: Reply) -> None:
        name = self._node.resolve_service_name(APPLY_SERVICE)

        def answer() -> Any:
            is_taken = self._scenes.change(request.scene, name, at_once=True)
            return ApplyPlanningScene.Response(success=is_taken)

        self._in_order(answer, reply, ApplyPlanningScene.Response(success=False), APPLY_SERVICE)

    def _in_order(self, answer: Callable[[], Any], reply: Reply, empty: Any, name: str) -> None:
        """Answer a request in the thread of the scene, after all changes that arrived before.

        Args:
            answer: Function that returns the response.
            reply: Function that sends the response.
            empty: Response to send if `answer` raises an error, or if the queue is full.
            name: Name of the service, for log messages.
        """

        def work() -> None:
            try:
                response = answer()
            except Exception as error:  # noqa: BLE001  the client needs an answer
                response = empty
                if isinstance(error, DlsIkError):
                    self._log.warn(name, f"cannot answer a request of {name}: {error}")
                else:
                    self._node.get_logger().error(trace(error))
            self._send(reply, response)

        if not self._scenes.submit(work):
            self._log.warn(
                name, f"a request of {name} is refused: {QUEUE_FULL}; send it again later"
            )
            self._send(reply, empty)
