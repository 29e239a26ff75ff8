"""A service of another node, called from threads that may wait."""

import time
from typing import Any

from rclpy.node import Node
from rclpy.qos import qos_profile_services_default

from dls_ik.ros.client.asking import first_answered
from dls_ik.ros.client.errors import NoAnswerError, ServiceMissingError

POLL = 0.05  # [s]
PATIENCE = 5.0  # [s] for an answer


class Service:
    """One service; the node's callbacks run in another thread than the one that calls it."""

    def __init__(self, node: Node, kind: Any, name: str) -> None:
        self._node = node
        self._client = node.create_client(kind, name, qos_profile=qos_profile_services_default)
        self._kind = kind
        self.name = node.resolve_service_name(name)

    @property
    def is_served(self) -> bool:
        """Whether there is anybody to answer."""
        return bool(self._client.service_is_ready())

    def close(self) -> None:
        """Leave the ROS graph."""
        self._node.destroy_client(self._client)

    def call(self, wait: float = 0.0, **fields: Any) -> Any:
        """The response to a request with these fields, of a service that may come within a time.

        It is sent anew where no answer comes: that the service does twice what is asked for does
        no harm.

        Raises:
            ServiceMissingError: nobody serves it.
            NoAnswerError: it did not answer.
        """
        deadline = time.monotonic() + wait
        while not self.is_served:
            if time.monotonic() >= deadline:
                after = f" after {wait:g} s" if wait else ""
                raise ServiceMissingError(f"there is no service {self.name}{after}")
            time.sleep(POLL)
        request = self._kind.Request(**fields)
        future = first_answered(
            lambda: self._client.call_async(request), lambda: self.is_served, PATIENCE
        )
        if future is None:
            raise NoAnswerError(f"{self.name} did not answer within {PATIENCE:g} s")
        return future.result()
