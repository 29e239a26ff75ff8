"""Private members of libraries, reached from here only; test/test_compat.py has a test for each."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


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
