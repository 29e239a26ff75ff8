"""The node, which gives the arm in use to the services and to the stream, and its process."""

import gc
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import rclpy
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.utilities import try_shutdown

from dls_ik import compat
from dls_ik.errors import DlsIkError, RobotModelError
from dls_ik.model.robot import RobotModel
from dls_ik.ros import STARTED
from dls_ik.ros.arm import Arm
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.frames import Frames, tf2_lookup
from dls_ik.ros.live_parameters import LiveParameters
from dls_ik.ros.params import Parameters
from dls_ik.ros.robot_source import DescriptionTopic, robot_from_parameters
from dls_ik.ros.services.executor import LatestOnlyExecutor
from dls_ik.ros.services.server import NAMES, ServiceServer
from dls_ik.ros.servo.loop import ServoLoop
from dls_ik.ros.subscriptions import TypeMonitor
from dls_ik.ros.util import LogHandler, Throttle, flush_streams, on_signal, trace
from dls_ik.servo.controller import use_kernels
from dls_ik.solver import announce_compilation_to
from dls_ik.text import listing

NO_ROBOT = "there is no robot yet"
NAME = "dls_ik"
STOP_TIMEOUT = 3.0  # [s]
WARM_UP_POLL = 0.1  # [s]
SWITCH_INTERVAL = 3e-4  # [s] between threads; Python's 5 ms are more than a cycle takes


class Application:
    """One arm at a time, which is replaced as a whole, with its parameters.

    A robot from the topic is prepared in a thread of its own, and then replaces the previous robot
    at once; requests that arrived earlier are answered with the previous one.
    """

    def __init__(self, node: Node, live: LiveParameters[Parameters]) -> None:
        self._node = node
        self._live = live
        self._parameters = live.current  # in effect, or soon
        self._arm: Arm | None = None
        self._swap = threading.Lock()  # held where the arm or the parameters change
        self._builder = LatestOnlyExecutor(self._fault)
        self._description: DescriptionTopic | None = None  # where the node waits for robots
        self._executor = ThreadPoolExecutor(1, "planner")
        frames = Frames(tf2_lookup(node))
        self._loop = ServoLoop(node, live.current, frames)
        current = self._loop.cycle.current
        self._services = ServiceServer(node, self.arm, current, frames, live.current)
        TypeMonitor(node)
        live.on_change(self._change)

    def start(self) -> None:
        """Start the stream with the robot of the parameters, or wait for one on the topic.

        A robot of the parameters that is not usable is logged, and the node waits for another one.

        Raises:
            DlsIkError: a parameter that does not fit the robot.
        """
        self._loop.start()
        reason = ""
        try:
            robot = robot_from_parameters(self._live.current)
        except RobotModelError as error:
            reason, robot = str(error), None
        if robot is None:
            self._wait_for_robot(reason)
        else:
            self._use(Arm(robot, self._parameters, self._executor))

    def stop(self) -> None:
        """Stop the services and the stream."""
        self._builder.close()
        self._services.close()
        self._loop.stop()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def arm(self) -> Arm:
        """Return the arm in use.

        Raises:
            RequestError: there is no arm; with the reason.
        """
        if self._arm is None:
            reason = "" if self._description is None else self._description.reason
            words = f"there is no robot: {reason}" if reason else NO_ROBOT
            raise RequestError(Code.FAILURE, words)
        return self._arm

    def _wait_for_robot(self, reason: str) -> None:
        self._description = DescriptionTopic(
            self._node,
            self._live.current,
            self._take,
            lambda: self._arm is not None,
            reason,
            self._builder.submit,
        )
        self._description.remind()

    def _take(self, robot: RobotModel) -> None:
        """Use a robot from the topic; runs in the builder's thread."""
        arm = Arm(robot, self._parameters, self._executor)
        with self._swap:
            if arm.parameters is not self._parameters:  # changed in the meantime
                arm = arm.changed(self._parameters)
            self._use(arm)

    def _fault(self, error: Exception) -> None:
        if self._description is not None:
            self._description.reason = f"internal error: {error!r}"
        self._node.get_logger().error(trace(error))

    def _change(self, parameters: Parameters) -> None:
        with self._swap:
            if self._arm is not None:
                self._use(self._arm.changed(parameters))
            self._parameters = parameters

    def _use(self, arm: Arm) -> None:
        is_new = self._arm is None or self._arm.robot is not arm.robot
        self._loop.use(arm)
        self._arm = arm
        if is_new:
            self._announce(arm)

    def _announce(self, arm: Arm) -> None:
        robot, node = arm.robot, self._node
        services = " and ".join(map(node.resolve_service_name, NAMES))
        groups = f" for {', '.join(arm.parameters.groups)}" if arm.parameters.groups else ""
        node.get_logger().info(
            f"ready after {time.monotonic() - STARTED:.1f} s: {robot.name}, {robot.base} to "
            f"{robot.tip}, joints {listing(robot.joint_names)}; {services} by "
            f"{arm.solver.method}{groups}; targets on {self._loop.target_topics} by "
            f"{arm.controller.method} at {arm.parameters.rate:g} Hz to "
            f"{' and '.join(self._loop.topics)}"
        )
        pairs = zip(robot.joint_names, robot.velocity, strict=True)
        unlimited = [name for name, velocity in pairs if not math.isfinite(velocity)]
        if unlimited:
            node.get_logger().warning(
                f"no velocity limit is given for {listing(unlimited)}: targets are followed "
                "without one; give it as <limit velocity=...> in the robot description"
            )


# The process


class StartError(DlsIkError):
    """A command line that rclpy cannot make a node from."""


def run_process(
    args: Sequence[str] | None,
    name: str = NAME,
    run: Callable[[Node, Future], bool] | None = None,
) -> int:
    """Run a node until a signal; return the exit code.

    Args:
        name: of the node.
        run: serves until the future is done; default: :func:`serve_ik`.
    """
    stop = Future()
    on_signal(lambda: end(stop))
    try:
        with ros_node(args, name) as node:
            finished = (run or serve_ik)(node, stop)
    except (DlsIkError, NameValidationException, ParameterException, compat.rcl_error()) as error:
        get_logger(name).fatal(f"cannot start: {' '.join(str(error).split())}")
        return 1
    if not finished:  # a thread still compiles; a normal exit would wait for it
        flush_streams()
        os._exit(0)
    return 0


def end(stop: Future) -> None:
    """Ask the node to stop; end the process if it does not in time, as during a long request.

    Runs in a thread that ends with the process.
    """
    stop.set_result(None)
    time.sleep(STOP_TIMEOUT)
    os._exit(0)


@contextmanager
def ros_node(args: Sequence[str] | None, name: str) -> Iterator[Node]:
    """Make a node, with rclpy initialised while it lives.

    Signals are left to :mod:`dls_ik.ros.util`: a handler of rclpy would shut the context down while
    callbacks use it.
    """
    try:
        try:
            rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
            node = Node(name)
        except RuntimeError as error:
            raise StartError(f"{error}{_remedy(str(error))}") from error
        handler = LogHandler(node)
        logging.getLogger("dls_ik").addHandler(handler)
        try:
            yield node
        finally:
            logging.getLogger("dls_ik").removeHandler(handler)
            node.destroy_node()
    finally:
        try_shutdown()


def _remedy(reason: str) -> str:
    """Return a remedy for a known reason, to add to the message."""
    no_log = "failed to initialize logging" in reason or "Failed opening file" in reason
    return "; set ROS_LOG_DIR to a folder that can be written" if no_log else ""


def serve_ik(node: Node, stop: Future) -> bool:
    """Serve inverse kinematics until it is time to stop.

    Returns:
        False if it was stopped while kernels were compiled; a thread still compiles them.
    """
    live = LiveParameters(node, Parameters())
    if not warm_up(node.get_logger().info, lambda: not stop.done()):
        return False
    application = Application(node, live)
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        application.start()
        gc.freeze()  # the collector would stop the stream for 50 ms to look at numba's objects
        spin(node, stop)
    finally:
        application.stop()
    return True


def spin(node: Node, stop: Future) -> None:
    """Run callbacks in this thread; log one that fails, and continue."""
    log = Throttle(node)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while node.context.ok() and not stop.done():
        _spin_until(stop, executor, log)
    executor.shutdown()


def _spin_until(stop: Future, executor: SingleThreadedExecutor, log: Throttle) -> None:
    try:
        executor.spin_until_future_complete(stop)
    except ExternalShutdownException:
        pass
    except Exception as error:  # noqa: BLE001  such as rclpy on a parameter of an unknown type
        log.failed("callback", "a callback failed", error)


def warm_up(announce: Callable[[str], None], wanted: Callable[[], bool]) -> bool:
    """Compile all kernels in a thread, so that the process still receives signals.

    Args:
        announce: called with a line if they must be compiled.
        wanted: returns whether to go on waiting.

    Returns:
        True if they are ready; else the thread still compiles, and nothing can stop it.
    """
    begin, announced, errors = time.monotonic(), list[str](), list[BaseException]()

    def note(message: str) -> None:
        announced.append(message)
        announce(message)

    def compile_all() -> None:
        try:
            use_kernels()
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    announce_compilation_to(note)
    thread = threading.Thread(target=compile_all, name="warm-up", daemon=True)
    thread.start()
    while thread.is_alive() and wanted():
        thread.join(WARM_UP_POLL)
    if errors:
        raise errors[0]
    is_ready = not thread.is_alive()
    if announced and is_ready:
        announce(f"kernels compiled: {time.monotonic() - begin:.0f} s")
    return is_ready
