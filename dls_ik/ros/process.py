"""The process of a node: rclpy, start, signals and end."""

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
from dls_ik.ros.live_parameters import LiveParameters
from dls_ik.ros.params import Parameters
from dls_ik.ros.util import LogHandler, Throttle, flush_streams, on_signal
from dls_ik.servo.warm_up import use_kernels
from dls_ik.solver import announce_compilation_to

NAME = "dls_ik"
STOP_TIMEOUT = 3.0  # [s]
WARM_UP_POLL = 0.1  # [s]
SWITCH_INTERVAL = 3e-4  # [s] between threads; Python's 5 ms are more than a cycle takes


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
