# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Process of a node: start, signals and stop; and parameters that change while the node runs."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import Field
from typing import Any, Generic, NamedTuple

import rclpy
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.utilities import try_shutdown

from dls_ik import compat
from dls_ik.errors import DlsIkError, RobotModelError
from dls_ik.model.files import share_file
from dls_ik.ros.declare import NUMBERS, TEXTS, ParameterSetT, checked, declared
from dls_ik.ros.endpoints import entity_words
from dls_ik.ros.util import LogHandler, Throttle, flush_streams, on_signal
from dls_ik.solver import announce_compilation_to
from dls_ik.text import suggest_names
from dls_ik.warm_up import NODE_USES, use_kernels

FORCED_EXIT_TIMEOUT = 4.8  # [s] time between SIGINT and a forced exit; ros2 launch waits for 5 s
WARM_UP_POLL_PERIOD = 0.1  # [s] period of checks whether the kernels are ready

# Environment variables that name a profile for Fast DDS, and files in the working directory that
# Fast DDS reads as a profile.
PROFILE_VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
PROFILE_FILES = ("DEFAULT_FASTDDS_PROFILES.xml", "DEFAULT_FASTRTPS_PROFILES.xml")

# Parameter that rclpy declares in every node.
SIM_TIME = "use_sim_time"
RCLPY_PARAMETERS = ("qos_overrides.", "start_type_description_service", SIM_TIME)


class StartError(DlsIkError):
    """Error that is raised if rclpy cannot create a node from the command line."""


class NodeVariant(NamedTuple):
    """Default name and additional remappings of a node."""

    name: str
    rules: tuple[str, ...] = ()  # command line arguments, such as -r FROM:=TO


# Function that returns the variant of a node from its default name and the given parameters.
ChooseVariant = Callable[[str, Mapping[str, Any]], NodeVariant]


def run_process(
    args: Sequence[str] | None,
    name: str,
    run: Callable[[Node, Future], bool],
    choose: ChooseVariant | None = None,
) -> int:
    """Run a node until SIGINT or SIGTERM arrives; return the exit code.

    Args:
        args: Command line arguments for rclpy.
        name: Default name of the node.
        run: Function that runs the node until the future is done. It returns False if a thread is
            still compiling kernels; otherwise True.
        choose: Function that returns the variant of the node; None: always the same variant.
    """
    stop = Future()
    on_signal(lambda: stop_process(stop))
    try:
        with ros_node(args, name, choose) as node:
            finished = run(node, stop)
    except (DlsIkError, NameValidationException, ParameterException, compat.rcl_error()) as error:
        get_logger(name).fatal(f"cannot start: {' '.join(str(error).split())}")
        return 1
    if not finished:  # a normal exit would wait for the compiling thread
        flush_streams()
        os._exit(0)
    return 0


def stop_process(stop: Future) -> None:
    """Stop the node; if the process still runs after FORCED_EXIT_TIMEOUT, exit the process.

    This function blocks and must be called in a daemon thread.

    Args:
        stop: Future that stops the node when it is done.
    """
    stop.set_result(None)
    time.sleep(FORCED_EXIT_TIMEOUT)
    os._exit(0)


@contextmanager
def ros_node(
    args: Sequence[str] | None, name: str, choose: ChooseVariant | None = None
) -> Iterator[Node]:
    """Initialise rclpy and create a node as a context; destroy the node at the end.

    rclpy installs no signal handlers, because they would shut rclpy down while callbacks still use
    it. :mod:`dls_ik.ros.util` handles signals instead.

    Args:
        args: Command line arguments for rclpy.
        name: Default name of the node.
        choose: Function that returns the variant of the node; None: always the same variant.

    Raises:
        StartError: If rclpy cannot create the node.
    """
    with fastdds_profile():
        try:
            try:
                rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
                node = ParameterNode(name) if choose is None else _variant_node(name, choose)
            except RuntimeError as error:
                raise StartError(f"{error}{_remedy(str(error))}") from error
            compat.index_source_files()
            handler = LogHandler(node)
            logging.getLogger("dls_ik").addHandler(handler)
            try:
                yield node
            finally:
                logging.getLogger("dls_ik").removeHandler(handler)
                node.destroy_node()
        finally:
            try_shutdown()


def _variant_node(name: str, choose: ChooseVariant) -> "ParameterNode":
    """Create a node, and replace it until its name and remappings match its parameters.

    A node must exist before its parameters are known, and parameters may depend on the name of the
    node, so that up to three nodes are created.

    Raises:
        StartError: If the parameters of the node under its new name select the default name.
    """
    node, variant = ParameterNode(name), NodeVariant(name)
    while (wanted := choose(name, given_values(node))) != variant:
        node.destroy_node()
        if wanted.name == name:
            raise StartError(
                f"the parameters of node {name!r} select a node with the name {variant.name!r}, to "
                "which they do not apply; give them on the command line, or under /** in the file"
            )
        variant = wanted
        rules = ["--ros-args", *variant.rules] if variant.rules else None
        node = ParameterNode(variant.name, cli_args=rules)
    return node


@contextmanager
def fastdds_profile() -> Iterator[None]:
    """Select config/fastdds_profile.xml for Fast DDS in the context, unless a profile is given.

    Only with this profile can nodes with another DDS implementation connect to all topics. If the
    environment variable for the profile is set to an empty text, Fast DDS uses its own defaults.
    Other middlewares ignore the variable.
    """
    is_given = any(name in os.environ for name in PROFILE_VARIABLES)
    if is_given or any(map(os.path.exists, PROFILE_FILES)):
        yield
        return
    with suppress(RobotModelError):  # an incomplete installation has no profile
        os.environ[PROFILE_VARIABLES[0]] = str(share_file("config", "fastdds_profile.xml"))
    try:
        yield
    finally:
        os.environ.pop(PROFILE_VARIABLES[0], None)


def _remedy(reason: str) -> str:
    """Return a hint how to fix the error with this message; empty if the error is not known."""
    no_log = "failed to initialize logging" in reason or "Failed opening file" in reason
    return "; set ROS_LOG_DIR to a folder that can be written" if no_log else ""


def spin(node: Node, stop: Future) -> None:
    """Run the callbacks of a node until `stop` is done; log exceptions of callbacks."""
    log = Throttle(node)
    executor = NamingExecutor(context=node.context)
    executor.add_node(node)
    while node.context.ok() and not stop.done():
        _spin_until(stop, executor, log)
    executor.shutdown()


class NamingExecutor(SingleThreadedExecutor):
    """Executor that knows the topic, service or timer of the last callback."""

    last: tuple[Any, Any] = (None, None)  # entity and node of the last callback

    def wait_for_ready_callbacks(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Return the next task with its entity and node, as rclpy's executor; store the two."""
        self.last = (None, None)
        task, entity, node = super().wait_for_ready_callbacks(*args, **kwargs)
        self.last = (entity, node)
        return task, entity, node

    def last_words(self) -> str:
        """Return a description of the topic, service or timer of the last callback."""
        entity, node = self.last
        return "of rclpy" if entity is None else entity_words(node, entity)


def _spin_until(stop: Future, executor: NamingExecutor, log: Throttle) -> None:
    try:
        executor.spin_until_future_complete(stop)
    except ExternalShutdownException:
        pass
    except Exception as error:  # noqa: BLE001  for example rclpy, for a parameter of an unknown type
        whose = executor.last_words()
        log.failed(f"callback {whose}", f"a callback failed: {whose}", error)


def warm_up(
    announce: Callable[[str], None],
    wanted: Callable[[], bool],
    uses: Sequence[Callable[[], None]] = NODE_USES,
) -> bool:
    """Load or compile kernels in a thread, and wait for it; signals are still handled meanwhile.

    Args:
        announce: Function that is called with a log line if a kernel must be compiled.
        wanted: Function that returns whether to continue to wait for the thread.
        uses: Functions that together call all kernels that are needed.

    Returns:
        Whether the kernels are ready; False if the thread, which cannot be stopped, is still
        compiling.
    """
    start, announced, errors = time.monotonic(), list[str](), list[BaseException]()

    def note(message: str) -> None:
        announced.append(message)
        announce(message)

    def compile_all() -> None:
        try:
            use_kernels(uses)
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    announce_compilation_to(note)
    thread = threading.Thread(target=compile_all, name="warm-up", daemon=True)
    thread.start()
    while thread.is_alive() and wanted():
        thread.join(WARM_UP_POLL_PERIOD)
    if errors:
        raise errors[0]
    is_ready = not thread.is_alive()
    if announced and is_ready:
        announce(f"kernels compiled: {time.monotonic() - start:.0f} s")
    return is_ready


# Parameters of a running node


class ParameterNode(Node):
    """Node that refuses old names of renamed parameters; the message gives the new names."""

    check_names: Callable[[Sequence[str]], None] = staticmethod(lambda names: None)

    def set_parameters_atomically(self, parameter_list: list[Any]) -> SetParametersResult:
        """Set all given parameters, or none if one is refused.

        The parameter services of rclpy call this method.
        """
        try:
            self.check_names([each.name for each in parameter_list])
        except DlsIkError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return super().set_parameters_atomically(parameter_list)


def given_values(node: Node) -> dict[str, Any]:
    """Return the values of the parameters that were given at the start of a node, by name.

    Parameters with an empty value are left out.
    """
    given = {
        name: getattr(each, "value", None)
        for name, each in compat.parameter_overrides(node).items()
    }
    return {name: value for name, value in given.items() if value is not None}


class LiveParameters(Generic[ParameterSetT]):
    """Declared parameters of a running node, with the current values.

    A change is refused as a whole if one of the values is not valid.

    Args:
        node: Node for which the parameters are declared.
        defaults: Default values, for parameters that were not given at the start of the node.

    Attributes:
        current: Current values.

    Raises:
        DlsIkError: If a value that was given at the start of the node is not valid.
        rclpy.exceptions.ParameterException: If rclpy refuses a value that was given at the start.
    """

    def __init__(self, node: Node, defaults: ParameterSetT) -> None:
        self._node = node
        self._apply: Callable[[ParameterSetT], None] | None = None
        self._given = compat.parameter_overrides(node)
        _fix_clock(node)
        fixed = declared(type(defaults))
        defaults.check_names(list(self._given))
        if isinstance(node, ParameterNode):
            node.check_names = defaults.check_names
        given = {
            name: self._declare(name, field, getattr(defaults, field.name))
            for name, field in fixed.items()
        }
        dynamic = defaults.dynamic_fields(given)
        given |= {
            name: self._declare(name, field, field.default) for name, field in dynamic.items()
        }
        self._declared = fixed | dynamic
        self.current = defaults.changed(given)
        self._warn_of_unknown_names()

    def on_change(self, apply: Callable[[ParameterSetT], None]) -> None:
        """Start to accept changes of parameters.

        Args:
            apply: Function that is called with the changed parameters; it raises a DlsIkError to
                refuse the change.
        """
        self._apply = apply
        self._node.add_on_set_parameters_callback(self._set)

    def _declare(self, name: str, field: "Field[Any]", default: Any) -> Any:
        if field.type == NUMBERS:
            default = list(default)
        elif field.type == TEXTS:
            default = ",".join(default)
        # rclpy gives None for null or an empty list in YAML; the default is used then.
        given = getattr(self._given.get(name), "value", None)
        is_empty = name in self._given and given is None
        if given is not None:
            checked(name, field, given)  # errors of rclpy do not list valid values
        value = self._node.declare_parameter(name, default, descriptor(field), is_empty).value
        if default == [] and len(value) == 0:  # rclpy declares an empty list as bytes
            self._node.set_parameters([Parameter(name, Parameter.Type.DOUBLE_ARRAY, [])])
        return value

    def _set(self, changes: Sequence[Any]) -> SetParametersResult:
        ours = {change.name: change.value for change in changes if change.name in self._declared}
        try:
            candidate = self.current.changed(ours)
            if self._apply is not None and candidate != self.current:
                self._apply(candidate)
        except DlsIkError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self.current = candidate
        return SetParametersResult(successful=True)

    def _warn_of_unknown_names(self) -> None:
        """Log a warning about given parameters with unknown names, which rclpy silently ignores."""
        known = self._declared
        ignored = (*RCLPY_PARAMETERS, *self.current.foreign_prefixes())
        given = (name for name in self._given if not name.startswith(ignored))
        unknown = [name for name in given if name not in known]
        if unknown:
            self._node.get_logger().warning(
                f"unknown parameter {', '.join(map(repr, unknown))} is ignored; "
                f"{suggest_names(unknown, known)}"
            )


def _fix_clock(node: Node) -> None:
    """Make the parameter ``use_sim_time`` read-only.

    A change would select another clock, by which the ages of previous stamps would be wrong.
    """
    about = ParameterDescriptor(
        name=SIM_TIME,
        type=Parameter.Type.BOOL.value,
        description="use the simulated time on /clock",
        read_only=True,
    )
    node.set_descriptor(SIM_TIME, about)


def descriptor(field: "Field[Any]") -> ParameterDescriptor:
    """Return the ROS descriptor of the parameter that a field declares.

    If values of two types are valid, such as integers for a float, or a string for a list of names,
    the descriptor allows any type, and the function in ``READERS`` refuses invalid types.
    """
    about = field.metadata
    unit = f" [{about['unit']}]" if about["unit"] else ""
    message = ParameterDescriptor(
        description=about["text"] + unit,
        read_only=about["read_only"],
        dynamic_typing=field.type in (float, NUMBERS, TEXTS),
    )
    notes = [f"one of: {', '.join(about['choices'])}"] if about["choices"] else []
    if field.type == TEXTS:
        notes.append("a string with commas between names, or a string array")
    message.additional_constraints = "; ".join(notes)
    if about["range"] and field.type is int:
        first, last = map(int, about["range"])
        message.integer_range = [IntegerRange(from_value=first, to_value=last)]
    elif about["range"]:
        low, high = map(float, about["range"])
        message.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return message
