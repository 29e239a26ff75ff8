"""Private members of libraries, reached from here only; test/test_compat.py has a test for each.

A library may change them in any release. Importing this module imports none of the libraries.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast


def parameter_overrides(node: Any) -> Mapping[str, Any]:
    """Return the parameters that an rclpy node was started with, by name; rclpy has no public list.

    Args:
        node: of :class:`rclpy.node.Node`.
    """
    overrides: Mapping[str, Any] = node._parameter_overrides
    return overrides


def rcl_error() -> type[Exception]:
    """Return the exception that rcl raises, such as on a topic of two types; rclpy hides it."""
    # imported by name, so that kernels, which use this module too, do not depend on rclpy
    rcl = import_module("rclpy.impl.implementation_singleton").rclpy_implementation
    error: type[Exception] = rcl.RCLError
    return error


def intercept_responses(
    service: Any, dispatch: Callable[[Any, Any], None]
) -> Callable[[Any, Any], None]:
    """Have an rclpy service pass each result to a function instead of sending it.

    rclpy calls ``send_response`` of the service with the result of its callback and the header of
    the request, from Humble to Kilted. The callback itself does not see the header.

    Args:
        service: of :class:`rclpy.service.Service`.
        dispatch: called with the result of the callback, and the header.

    Returns:
        The function that sends a response, with the header that it answers.
    """
    send: Callable[[Any, Any], None] = service.send_response
    service.send_response = dispatch
    return send


ProcessRequest = Callable[[Any, Any], Any]  # connection, request -> response; None: go on


@contextmanager
def wrap_websocket_requests(
    wrap: Callable[[ProcessRequest], ProcessRequest],
) -> Iterator[Callable[[], int]]:
    """Put a check in front of the requests of websocket servers that are started meanwhile.

    viser 1.1 starts its server by ``websockets.asyncio.server.serve``, which it looks up at the
    call, with a process_request of its own; it offers no place for another one.

    Yields:
        A function that counts the servers.
    """
    from websockets.asyncio import server

    serve: Any = server.serve
    count = 0

    def serve_wrapped(*given: Any, process_request: ProcessRequest, **options: Any) -> Any:
        nonlocal count
        count += 1
        return serve(*given, process_request=wrap(process_request), **options)

    server.serve = serve_wrapped  # type: ignore[misc, assignment]
    try:
        yield lambda: count
    finally:
        server.serve = serve  # type: ignore[misc]


# numba --------------------------------------------------------------------------------------------

COUNTED = {"_nrt": True}  # options of njit: references to arrays are counted, whoever calls
UNCOUNTED = {"_nrt": False}


def numba_cache() -> type:
    """Return numba's cache of a function, with files that a subclass can replace.

    Its folder is the first that can be written: beside the sources, of the user, or set by
    NUMBA_CACHE_DIR. Without one, kernels beside the sources are read.
    """
    from numba.core.caching import CompileResultCacheImpl, FunctionCache

    user_provided, in_tree, *others = CompileResultCacheImpl._locator_classes

    class ReadOnlyLocator(in_tree):  # type: ignore[misc,valid-type]
        """The folder beside the sources, not writable."""

        def ensure_cache_path(self) -> None:
            if not os.path.isdir(self.get_cache_path()):
                raise FileNotFoundError

    class CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (user_provided, in_tree, *others, ReadOnlyLocator)

    class NumbaCache(FunctionCache):  # type: ignore[misc]
        _impl_class = CacheImpl

        @property
        def name(self) -> str:
            """The kernel's part of the names of its files."""
            return cast(str, self._impl.filename_base)

        def keep_in(self, files: Any) -> None:
            """Load from and save to other files: an object with ``load``, ``save``, ``flush``."""
            self._cache_file = files

    return NumbaCache


def numba_serialize(data: Any) -> bytes:
    """Serialise the data of a compiled kernel, for ``pickle.loads``."""
    from numba.core.serialize import dumps

    return cast(bytes, dumps(data))


def set_numba_cache(compiled: Any, make: Callable[[], Any]) -> None:
    """Give a compiled function another cache; a function that is not compiled stays as it is."""
    if hasattr(compiled, "_cache"):  # not where NUMBA_DISABLE_JIT is set
        compiled._cache = make()


def numba_cache_folder(compiled: Any) -> str | None:
    """Return the folder of a compiled function's cache; None for one in memory."""
    return cast("str | None", getattr(getattr(compiled, "_cache", None), "cache_path", None))


def to_fixed_tuple() -> Any:
    """Return numba's intrinsic that makes a tuple of an array's first entries in a kernel."""
    from numba.np.unsafe.ndarray import to_fixed_tuple

    return to_fixed_tuple


def on_numba_compilation(tell: Callable[[Any], None]) -> None:
    """Call `tell` with each function of numba whose compilation begins.

    Functions that are loaded from the cache are not told.
    """
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            tell(event.data["dispatcher"])

        def on_end(self, event: Any) -> None:
            """Nothing to tell."""

    event.register("numba:compile", Listener())
