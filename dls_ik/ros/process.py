"""The process around the node: rclpy, a way to start, and a way to end."""

import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
from dls_ik.errors import DlsIkError
from dls_ik.ros.application import Application
from dls_ik.ros.params import Parameters
from dls_ik.ros.params.live import LiveParameters
from dls_ik.ros.util import LogHandler, Throttle, flush_streams, on_signal
from dls_ik.servo.warm_up import use_kernels
from dls_ik.solver import announce_compilation_to

NAME = "dls_ik"
GRACE = 3.0  # [s]
WARM_UP_POLL = 0.1  # [s]
TURN = 3e-4  # [s] of a thread that another waits for: Python's 5 ms are more than a cycle has


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
        run: serves until the future is done, as :func:`serve_ik` does, which is the default.
    """
    stop = Future()
    on_signal(lambda: end(stop))
    try:
        with ros_node(args, name) as node:
            finished = (run or serve_ik)(node, stop)
    except (DlsIkError, NameValidationException, ParameterException, compat.rcl_error()) as error:
        get_logger(name).fatal(f"cannot start: {' '.join(str(error).split())}")
        return 1
    if not finished:  # a thread still compiles, and the end of the interpreter would wait for it
        flush_streams()
        os._exit(0)
    return 0


def end(stop: Future) -> None:
    """Ask the node to stop; end the process if it does not, such as in a request that takes long.

    Runs in a thread that the end of the process ends.
    """
    stop.set_result(None)
    time.sleep(GRACE)
    os._exit(0)


@contextmanager
def ros_node(args: Sequence[str] | None, name: str) -> Iterator[Node]:
    """A node, and rclpy for as long as it lives.

    Signals are left to :mod:`dls_ik.ros.util`: a handler of rclpy would take the context away
    from under whatever is just being done.
    """
    try:
        try:
            rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
            node = Node(name)
        except RuntimeError as error:
            raise StartError(f"{error}{_mend(str(error))}") from error
        handler = LogHandler(node)
        logging.getLogger("dls_ik").addHandler(handler)
        try:
            yield node
        finally:
            logging.getLogger("dls_ik").removeHandler(handler)
            node.destroy_node()
    finally:
        try_shutdown()


def _mend(reason: str) -> str:
    """Say what mends it, where that is known."""
    no_log = "failed to initialize logging" in reason or "Failed opening file" in reason
    return "; set ROS_LOG_DIR to a folder that can be written" if no_log else ""


def serve_ik(node: Node, stop: Future) -> bool:
    """Serve inverse kinematics until it is time to stop.

    Returns:
        False if that was before there was anything to serve, while kernels were compiled.
    """
    live = LiveParameters(node, Parameters())
    if not WarmUp().run(node.get_logger().info, lambda: not stop.done()):
        return False
    application = Application(node, live)
    sys.setswitchinterval(TURN)
    try:
        application.start()
        gc.freeze()  # else the collector stops the stream for 50 ms, to look at numba's objects
        spin(node, stop)
    finally:
        application.stop()
    return True


def spin(node: Node, stop: Future) -> None:
    """Run callbacks in this thread; one that fails is reported, and the others go on."""
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


class WarmUp:
    """Compiles all kernels in a thread, so that the process still receives signals."""

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)

    def run(self, announce: Callable[[str], None], wanted: Callable[[], bool]) -> bool:
        """Wait for the kernels.

        Args:
            announce: called with a line if they must be compiled.
            wanted: returns whether to go on waiting.

        Returns:
            Whether they are ready; if not, the thread still compiles, and nothing can stop it.
        """
        begin, announced = time.monotonic(), list[str]()

        def note(message: str) -> None:
            announced.append(message)
            announce(message)

        announce_compilation_to(note)
        self._thread.start()
        while self._thread.is_alive() and wanted():
            self._thread.join(WARM_UP_POLL)
        if self._error is not None:
            raise self._error
        if announced and not self._thread.is_alive():
            announce(f"kernels compiled: {time.monotonic() - begin:.0f} s")
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            use_kernels()
        except BaseException as error:  # noqa: BLE001  raised again by `run`
            self._error = error
