# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Plug-ins: user-defined methods, each a function ``step(J, e, state) -> dq`` with a name.

A plug-in is defined by a file (``--plugin FILE.py``, :func:`load_plugin`), by a call of
:func:`register_method`, or by an entry point of the group ``dls_ik.methods``. The function is
either interpreted by Python or a numba kernel. Each step that the function returns is validated.
"""

from __future__ import annotations

import ctypes
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.text import quoted

ENTRY_POINT_GROUP = "dls_ik.methods"
PLUGIN_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]*")
STEP_TIMEOUT = 5.0  # [s] maximum duration of an interpreted step
WATCH_PERIOD = 0.1  # [s] time between two checks of the running steps
MEMORY = 64  # numbers that a method may keep between the steps of an attempt


class StepState(NamedTuple):
    """Third argument of a step function: state of the attempt, and limits of the robot.

    All fields are arrays or numbers, so that numba kernels accept them.
    """

    q: Array  # (n,) joint positions [rad or m]
    lower: Array  # (n,) lower limits, -inf for unlimited joints
    upper: Array  # (n,) upper limits, inf for unlimited joints
    iteration: int  # number of earlier steps of the attempt
    memory: Array  # (64,) zeros at the start of an attempt; the step function may write to it


Step = Callable[[Array, Array, StepState], Any]


class Plugin(NamedTuple):
    """A user-defined method."""

    name: str
    step: Step
    origin: str  # file, entry point or module, for messages


_PLUGINS: dict[str, Plugin] = {}
_RESERVED: set[str] = set()  # names of published methods and their parts


def reserve(names: Iterable[str]) -> None:
    """Reserve names of built-in methods; plug-ins cannot have these names."""
    _RESERVED.update(names)


def register_method(name: str, step: Step, origin: str = "") -> None:
    """Register a function as a method, and replace an earlier plug-in of the same name.

    Args:
        name: Name of the method: lower-case letters, digits and ``_``, but not the name of a
            built-in method or part.
        step: Function ``step(J, e, state) -> dq`` of the scaled Jacobian J (r, n), the scaled error
            e (r,) and a :class:`StepState`; dq is the joint motion (n,) [rad or m].
        origin: File or package of the method, for messages; by default the module of the function.

    Raises:
        MethodError: If the name is reserved or not valid, or the step is not callable.
    """
    if not isinstance(name, str) or not PLUGIN_NAME_PATTERN.fullmatch(name):
        raise MethodError(
            f"the name of a plug-in must be lower-case letters, digits and _, starting with a "
            f"letter; got {quoted(name)}"
        )
    if name in _RESERVED:
        raise MethodError(f"{quoted(name)} is a built-in method; give the plug-in another name")
    if not callable(step):
        raise MethodError(
            f"plug-in {name}: step must be a function step(J, e, state); got {step!r}"
        )
    _PLUGINS[name] = Plugin(name, step, origin or getattr(step, "__module__", "") or "a function")


def load_plugin(path: str | Path) -> tuple[str, ...]:
    """Run a Python file, register the methods that it defines, and return their names.

    The mapping ``METHODS`` in the file maps method names to functions. A file without ``METHODS``
    defines one method: the function ``step``, under the name of the file.

    Raises:
        MethodError: If the file cannot be read, raises an exception, or defines no method.
    """
    file = Path(path)
    if not file.is_file():
        raise MethodError(
            f"there is no plug-in file {quoted(str(path))}; give the path of a Python file"
        )
    module = ModuleType(f"dls_ik_plugin_{file.stem}")
    module.__file__ = str(file)
    try:
        # An import would reuse bytecode, and miss a change of the file within the same second.
        code = compile(file.read_bytes(), file, "exec")
        exec(code, module.__dict__)  # noqa: S102  the user asked to run the file
    except Exception as error:  # anything may fail in the file
        raise MethodError(f"plug-in {file.name}: {_brief(error)}") from error
    found = getattr(module, "METHODS", None)
    if found is None and hasattr(module, "step"):
        found = {file.stem.lower(): module.step}
    if not isinstance(found, dict) or not found:
        raise MethodError(
            f"plug-in {file.name} defines neither a function step(J, e, state) nor METHODS = "
            "{name: function}"
        )
    for name, step in found.items():
        register_method(name, step, file.name)
    return tuple(found)


def plugin_names() -> tuple[str, ...]:
    """Return the names of all plug-ins, including those from entry points."""
    _load_entry_points()
    return tuple(_PLUGINS)


def find_plugin(name: str) -> Plugin | None:
    """Return the plug-in of a name; None if no plug-in has this name."""
    if name not in _PLUGINS:
        _load_entry_points()
    return _PLUGINS.get(name)


@cache
def _load_entry_points() -> None:
    """Register the methods that installed packages define by entry points.

    If an entry point cannot be loaded, its method is registered too; each step of this method
    raises an error with the reason.
    """
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            step = point.load()
        except Exception as error:  # noqa: BLE001  code of another package
            step = _failing(_brief(error))
        if point.name not in _PLUGINS:
            register_method(point.name, step, point.value)


def _failing(message: str) -> Step:
    """Return a step function that raises a RuntimeError with a message."""

    def step(J: Array, e: Array, state: StepState) -> Array:
        raise RuntimeError(message)

    return step


# Steps


class StepTimeout(BaseException):
    """Exception that interrupts a step that takes too long.

    It is a BaseException, so that ``except Exception`` in a plug-in does not catch it.
    """


def checked_step(
    plugin: Plugin, J: Array, e: Array, state: StepState, timeout: float | None = None
) -> Array:
    """Run a step of a plug-in, and return the validated joint motion dq (n,) [rad or m].

    Args:
        plugin: Plug-in.
        J: (r, n) scaled Jacobian.
        e: (r,) scaled error.
        state: State of the attempt, the third argument of the step function.
        timeout: Maximum duration [s] of a step in Python (steps that are numba kernels have no
            timeout); None stands for `STEP_TIMEOUT`.

    Raises:
        MethodError: If the step raises an exception, times out, or does not return n finite
            numbers; the message gives the reason.
    """
    about = f"method {plugin.name!r} ({plugin.origin})"
    place = f"in step {state.iteration}"
    n, timeout = len(state.q), STEP_TIMEOUT if timeout is None else timeout
    try:
        if hasattr(plugin.step, "py_func"):  # a numba kernel, which cannot be interrupted
            found = plugin.step(J, e, state)
        else:
            with _deadline(timeout):
                found = plugin.step(J, e, state)
    except StepTimeout:
        raise MethodError(f"{about} takes more than {timeout:g} s {place}") from None
    except Exception as error:  # anything may fail in the function
        raise MethodError(f"{about} raises {_brief(error)} {place}") from error
    try:
        dq = np.asarray(found, np.float64)
    except (TypeError, ValueError):
        dq = np.empty(0)
    if dq.shape != (n,):
        shape = f"an array of shape {dq.shape}" if isinstance(found, np.ndarray) else quoted(found)
        raise MethodError(f"{about} returns {shape} {place}; a step must be {n} numbers")
    if not np.isfinite(dq).all():
        raise MethodError(f"{about} returns numbers that are not finite {place}")
    return dq


def _brief(error: BaseException) -> str:
    """Return the type and the first line of the message of an error, as one text."""
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Watch:
    """Watchdog thread that interrupts the steps of plug-ins in any thread at their deadlines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[int, float] = {}  # [s] monotonic time, by thread id
        self._thread: threading.Thread | None = None

    def begin(self, timeout: float) -> None:
        """Start the timeout [s] of a step in the calling thread."""
        with self._lock:
            self._deadlines[threading.get_ident()] = time.monotonic() + timeout
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="plug-ins", daemon=True)
                self._thread.start()

    def end(self) -> None:
        """Remove the deadline of the calling thread, because the step has finished."""
        with self._lock:
            self._deadlines.pop(threading.get_ident(), None)

    def _run(self) -> None:
        """Check the deadlines periodically, and raise :class:`StepTimeout` in late threads.

        The thread ends when no step has a deadline.
        """
        while True:
            time.sleep(WATCH_PERIOD)
            with self._lock:
                now = time.monotonic()
                for thread in [t for t, end in self._deadlines.items() if end < now]:
                    del self._deadlines[thread]
                    raised = ctypes.py_object(StepTimeout)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
                if not self._deadlines:
                    self._thread = None
                    return


_WATCH = _Watch()


@contextmanager
def _deadline(timeout: float) -> Iterator[None]:
    """Limit the duration of the body of a ``with`` statement to a timeout [s].

    After the timeout, :class:`StepTimeout` is raised in the body.
    """
    _WATCH.begin(timeout)
    try:
        yield
    finally:
        _WATCH.end()
