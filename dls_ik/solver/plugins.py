"""Methods of the user's own at run time: a function ``step(J, e, state) -> dq``, by name.

A plug-in is a file (``--plugin FILE.py``, :func:`load_plugin`), a function
(:func:`register_method`), or an entry point of the group ``dls_ik.methods``. It is interpreted, or
compiled if it is a kernel of numba. Its result is checked after every step.
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

GROUP = "dls_ik.methods"
NAME = re.compile(r"[a-z][a-z0-9_]*")
SLOWEST_STEP = 5.0  # [s] after which a step that is interpreted counts as one that never ends
LOOK = 0.1  # [s] between looks at steps that are made
MEMORY = 64  # numbers that a method may keep between the steps of an attempt


class StepState(NamedTuple):
    """The arguments of a step besides J and e; arrays and numbers only, as numba takes them."""

    q: Array  # (n,) [rad or m]
    lower: Array  # (n,) -inf without a limit
    upper: Array  # (n,)
    iteration: int  # from 0 in every attempt
    memory: Array  # (64,) zeros at the start of an attempt, then as the method leaves it


Step = Callable[[Array, Array, StepState], Any]


class Plugin(NamedTuple):
    """A method of the user's own."""

    name: str
    step: Step
    origin: str  # file, entry point or module


_PLUGINS: dict[str, Plugin] = {}
_RESERVED: set[str] = set()  # names of published methods and their parts


def reserve(names: Iterable[str]) -> None:
    """Refuse plug-ins by these names."""
    _RESERVED.update(names)


def register_method(name: str, step: Step, origin: str = "") -> None:
    """Make a function a method by this name, in place of an earlier plug-in of that name.

    Args:
        name: lower-case letters, digits and ``_``; not that of a published method or part.
        step: ``step(J, e, state) -> dq`` of the scaled Jacobian (r, n), the scaled error (r,) and
            a :class:`StepState`; dq (n,) [rad or m].
        origin: of messages; default: the module of the function.

    Raises:
        MethodError: If the name is taken or not valid, or the step is not callable.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise MethodError(
            f"the name of a plug-in is lower-case letters, digits and _, not {quoted(name)}"
        )
    if name in _RESERVED:
        raise MethodError(f"{quoted(name)} is a published method; a plug-in needs another name")
    if not callable(step):
        raise MethodError(f"plug-in {name}: step is a function step(J, e, state), not {step!r}")
    _PLUGINS[name] = Plugin(name, step, origin or getattr(step, "__module__", "") or "a function")


def load_plugin(path: str | Path) -> tuple[str, ...]:
    """Run a Python file and register its methods; return their names.

    ``METHODS`` of the file maps names to functions; without it the function ``step`` is a method
    by the name of the file.

    Raises:
        MethodError: If the file cannot be read, raises an exception, or defines no method.
    """
    file = Path(path)
    if not file.is_file():
        raise MethodError(f"there is no plug-in {quoted(str(path))}")
    module = ModuleType(f"dls_ik_plugin_{file.stem}")
    module.__file__ = str(file)
    try:
        # Not imported: Python would keep it compiled, and miss a change within the same second.
        code = compile(file.read_bytes(), file, "exec")
        exec(code, module.__dict__)  # noqa: S102  it is what the user asks for
    except Exception as error:  # whatever the file does
        raise MethodError(f"plug-in {file.name}: {_brief(error)}") from error
    found = getattr(module, "METHODS", None)
    if found is None and hasattr(module, "step"):
        found = {file.stem.lower(): module.step}
    if not isinstance(found, dict) or not found:
        raise MethodError(
            f"plug-in {file.name} has neither a function step(J, e, state) nor METHODS = {{name: "
            "function}"
        )
    for name, step in found.items():
        register_method(name, step, file.name)
    return tuple(found)


def plugin_names() -> tuple[str, ...]:
    """Return the names of all plug-ins, entry points included."""
    _load_entry_points()
    return tuple(_PLUGINS)


def find_plugin(name: str) -> Plugin | None:
    """Return the plug-in of a name, if there is one."""
    if name not in _PLUGINS:
        _load_entry_points()
    return _PLUGINS.get(name)


@cache
def _load_entry_points() -> None:
    """Register the methods of installed packages; one that cannot be loaded fails when it steps."""
    for point in entry_points(group=GROUP):
        try:
            step = point.load()
        except Exception as error:  # noqa: BLE001  of a package that is not ours
            step = _failing(_brief(error))
        if point.name not in _PLUGINS:
            register_method(point.name, step, point.value)


def _failing(message: str) -> Step:
    def step(J: Array, e: Array, state: StepState) -> Array:
        raise RuntimeError(message)

    return step


# Steps


class StepTimeout(BaseException):
    """Raised in a step that takes too long; no plug-in catches it by accident."""


def checked_step(
    plugin: Plugin, J: Array, e: Array, state: StepState, longest: float | None = None
) -> Array:
    """Return the step dq (n,) of a plug-in.

    Args:
        longest: time that it may take if it is interpreted [s]; default: SLOWEST_STEP.

    Raises:
        MethodError: If the step raises an exception, does not end, or does not return n finite
            numbers; the message says which.
    """
    about = f"method {plugin.name!r} ({plugin.origin})"
    place = f"in step {state.iteration}"
    n, longest = len(state.q), SLOWEST_STEP if longest is None else longest
    try:
        if hasattr(plugin.step, "py_func"):  # numba's: its first call compiles, none can be stopped
            found = plugin.step(J, e, state)
        else:
            with _deadline(longest):
                found = plugin.step(J, e, state)
    except StepTimeout:
        raise MethodError(f"{about} takes more than {longest:g} s {place}") from None
    except Exception as error:  # whatever the function does
        raise MethodError(f"{about} raises {_brief(error)} {place}") from error
    try:
        dq = np.asarray(found, np.float64)
    except (TypeError, ValueError):
        dq = np.empty(0)
    if dq.shape != (n,):
        shape = f"an array of shape {dq.shape}" if isinstance(found, np.ndarray) else quoted(found)
        raise MethodError(f"{about} returns {shape} {place}; a step is {n} numbers")
    if not np.isfinite(dq).all():
        raise MethodError(f"{about} returns numbers that are not finite {place}")
    return dq


def _brief(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Watch:
    """A thread that interrupts interpreted steps which take too long, of all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[int, float] = {}  # [s] of steps, by thread
        self._thread: threading.Thread | None = None

    def begin(self, longest: float) -> None:
        with self._lock:
            self._ends[threading.get_ident()] = time.monotonic() + longest
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="plug-ins", daemon=True)
                self._thread.start()

    def end(self) -> None:
        with self._lock:
            self._ends.pop(threading.get_ident(), None)

    def _run(self) -> None:
        while True:
            time.sleep(LOOK)
            with self._lock:
                now = time.monotonic()
                for thread in [t for t, end in self._ends.items() if end < now]:
                    del self._ends[thread]
                    raised = ctypes.py_object(StepTimeout)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
                if not self._ends:
                    self._thread = None
                    return


_WATCH = _Watch()


@contextmanager
def _deadline(longest: float) -> Iterator[None]:
    _WATCH.begin(longest)
    try:
        yield
    finally:
        _WATCH.end()
