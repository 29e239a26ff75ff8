# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Action servers with threads of their own instead of an rclpy executor, and their goals."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node

from dls_ik import compat
from dls_ik.ros.receiver import MessageReceiver, Reply
from dls_ik.ros.util import Throttle, trace

MAX_ACTIVE_GOALS = 8  # maximum number of goals that are planned or executed at the same time
MAX_REQUESTS = 16  # maximum number of planning requests that wait or are being answered
NUM_PLANNING_THREADS = 2  # number of planning requests that are answered at the same time
SERVICE_QUEUE_DEPTH = 100  # number of requests that the middleware queues
CANCEL_TIMEOUT = 1.0  # [s] maximum time until the status of a cancelled goal is "canceling"
CLOSE_TIMEOUT = 1.0  # [s] time in which goals end when the node exits
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6  # values of action_msgs/GoalStatus


class Outcome(NamedTuple):
    """End of a goal: its final status, and the result message for the client."""

    status: int  # SUCCEEDED, ABORTED or CANCELED
    result: Any
    words: str = ""  # reason for the log; empty: nothing is logged


class Goal:
    """Accepted goal of an action.

    Args:
        handle: Goal handle of rclpy.
        closing: Event that is set when the node exits.
    """

    def __init__(self, handle: Any, closing: threading.Event) -> None:
        self._handle, self._closing = handle, closing
        self._news = threading.Event()
        self._is_cancelled = False

    @property
    def request(self) -> Any:
        """Goal message of the client."""
        return self._handle.request

    @property
    def is_cancelled(self) -> bool:
        """Whether the client has cancelled the goal, or the node exits."""
        return self._is_cancelled or self._closing.is_set()

    def cancel(self) -> None:
        """Record that the client has cancelled the goal, and end a wait; usable in any thread."""
        self._is_cancelled = True
        self._news.set()

    def notify(self) -> None:
        """End the current wait, or the next wait if none is in progress; callable in any thread."""
        self._news.set()

    def wait(self, timeout: float) -> None:
        """Wait until :meth:`notify` or :meth:`cancel` is called, for at most `timeout` [s]."""
        self._news.wait(timeout)
        self._news.clear()

    def publish_feedback(self, message: Any) -> None:
        """Publish a feedback message of the action."""
        self._handle.publish_feedback(message)

    def set_status(self, status: int) -> None:
        """Set the final status of the goal.

        The action protocol permits the status "canceled" only after "canceling", which the thread
        for messages sets after :meth:`cancel` returns. This method waits for "canceling" for at
        most CANCEL_TIMEOUT, and not at all if the node exits; without "canceling", the final status
        is "aborted".
        """
        if status == CANCELED:
            timeout = 0.0 if self._closing.is_set() else CANCEL_TIMEOUT
            end = time.monotonic() + timeout
            while not self._handle.is_cancel_requested and time.monotonic() < end:
                time.sleep(1e-3)
            if self._handle.is_cancel_requested:
                self._handle.canceled()
                return
        if status == SUCCEEDED:
            self._handle.succeed()
        else:
            self._handle.abort()


# Function that plans or executes a goal in a thread of its own, and returns the end of the goal.
RunGoal = Callable[[Goal], Outcome]


class GoalServer:
    """Action servers of a node, with one thread for their messages and a thread for each goal.

    The thread for messages has its own wait set, so that actions do not slow the executor of the
    node, the servo loop or the services.

    Args:
        node: ROS node of the actions.
        log: Log for rejected goals.
    """

    def __init__(self, node: Node, log: Throttle) -> None:
        self._node, self._log = node, log
        self._receiver = MessageReceiver(node, log)
        self._closing = threading.Event()
        self._goals: dict[bytes, Goal] = {}
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(MAX_ACTIVE_GOALS, "goal")
        self._requests = 0  # planning requests that wait or are being answered
        self._planner = ThreadPoolExecutor(NUM_PLANNING_THREADS, "plan")
        self._thread = threading.Thread(target=self._receiver.serve, name="actions", daemon=True)

    def serve(self, kind: Any, name: str, run: RunGoal) -> None:
        """Create an action server.

        Args:
            kind: Action type.
            name: Name of the action.
            run: Function that plans or executes a goal.
        """
        server: Any = ActionServer(
            self._node,
            kind,
            name,
            _never,
            callback_group=self._receiver,
            goal_callback=partial(self._admit, name),
            handle_accepted_callback=lambda handle: self._begin(server, handle, run),
            cancel_callback=self._cancel,
        )
        self._receiver.use_waitable(server)

    def serve_requests(
        self, kind: Any, name: str, answer: Callable[[Any], Any], full: Callable[[], Any]
    ) -> None:
        """Create a service whose requests take long and are answered in the planning threads.

        Args:
            kind: Service type.
            name: Name of the service.
            answer: Function that returns the response to a request; it must not raise errors.
            full: Function that returns the response if MAX_REQUESTS requests are in progress.
        """

        def work(request: Any, reply: Reply) -> None:
            try:
                reply(answer(request))
            except Exception as error:  # noqa: BLE001  the client may be gone
                if not self._closing.is_set():
                    self._log.failed(name, f"a request of {name} could not be answered", error)
            finally:
                with self._lock:
                    self._requests -= 1

        def receive(request: Any, reply: Reply) -> None:
            with self._lock:
                is_full = self._requests >= MAX_REQUESTS
                self._requests += not is_full
            if is_full:
                reply(full())
            else:
                self._planner.submit(work, request, reply)

        self._receiver.create_service(kind, name, receive, SERVICE_QUEUE_DEPTH)

    def start(self) -> None:
        """Start the thread that receives goals."""
        self._thread.start()

    def close(self) -> None:
        """Cancel all goals, and stop receiving goals."""
        self._closing.set()
        with self._lock:
            goals = list(self._goals.values())
        for goal in goals:
            goal.notify()
        end = time.monotonic() + CLOSE_TIMEOUT
        while self._goals and time.monotonic() < end:
            time.sleep(0.01)
        self._receiver.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._planner.shutdown(wait=False, cancel_futures=True)
        if self._thread.is_alive():
            self._thread.join()

    def _admit(self, name: str, request: Any) -> GoalResponse:
        if len(self._goals) < MAX_ACTIVE_GOALS and not self._closing.is_set():
            return GoalResponse.ACCEPT
        self._log.warn(
            name,
            f"a goal of {name} is rejected: {len(self._goals)} goals are in progress, the maximum; "
            "cancel them, or wait for their results",
        )
        return GoalResponse.REJECT

    def _begin(self, server: ActionServer, handle: Any, run: RunGoal) -> None:
        key, goal = bytes(handle.goal_id.uuid), Goal(handle, self._closing)
        with self._lock:
            self._goals[key] = goal
        compat.begin_goal(handle)
        self._executor.submit(self._run, server, handle, goal, run)

    def _cancel(self, handle: Any) -> CancelResponse:
        goal = self._goals.get(bytes(handle.goal_id.uuid))
        if goal is None:
            return CancelResponse.REJECT
        goal.cancel()
        return CancelResponse.ACCEPT

    def _run(self, server: ActionServer, handle: Any, goal: Goal, run: RunGoal) -> None:
        try:
            outcome = run(goal)
            if outcome.words:
                self._log.warn(outcome.words, outcome.words)
            goal.set_status(outcome.status)
            compat.send_result(server, handle, outcome.result)
        except Exception as error:  # noqa: BLE001  other goals must still be served
            if not self._closing.is_set():
                self._node.get_logger().error(trace(error))
                with suppress(Exception):  # the status may be final already
                    goal.set_status(ABORTED)
                with suppress(Exception):  # the client may be gone
                    compat.send_result(server, handle, server.action_type.Result())
        finally:
            with self._lock:
                self._goals.pop(bytes(handle.goal_id.uuid), None)


def _never(handle: Any) -> Any:
    """Raise an error; rclpy requires this callback, but :class:`GoalServer` runs goals itself."""
    raise AssertionError(f"rclpy ran the goal {handle.goal_id}, which GoalServer runs")
