"""Private members of libraries, reached from here only; test/test_compat.py has a test for each."""

from collections.abc import Callable, Mapping
from typing import Any


def parameter_overrides(node: Any) -> Mapping[str, Any]:
    """Return the parameters that an rclpy node was started with, by name; rclpy has no public list.

    Args:
        node: of :class:`rclpy.node.Node`.
    """
    overrides: Mapping[str, Any] = node._parameter_overrides
    return overrides


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
