"""A request for ``compute_ik`` on its way to an answer."""

import time
from typing import Any

from builtin_interfaces.msg import Duration

from dls_ik.ros.arm import Arm
from dls_ik.ros.constraints.solve import are_given
from dls_ik.ros.conversions import seconds

HOP = 0.005  # [s] that a change of threads may take; it makes no request late
SHORTEST = 1e-9  # [s] as 0 asks for the default


class Call:
    """A request with the arm that was in use when it came, on which it is answered.

    Its timeout counts from its arrival.

    Args:
        request: ``moveit_msgs/PositionIKRequest``; its timeout is written.
        empty: the response where there is no answer.

    Raises:
        RequestError: a group or a timeout that is not valid.
    """

    def __init__(self, request: Any, empty: Any, arm: Arm) -> None:
        self.request, self.empty, self.arm = request, empty, arm
        self._arrived = time.perf_counter()
        self.timeout = seconds(request.timeout, arm.group(request.group_name).timeout)  # [s]

    @property
    def waited(self) -> float:
        """Time since it arrived [s]."""
        return time.perf_counter() - self._arrived

    @property
    def is_late(self) -> bool:
        """Whether its timeout was over before its turn came."""
        return self.waited > self.timeout + HOP

    @property
    def is_constrained(self) -> bool:
        """Whether it has constraints."""
        return are_given(self.request.constraints)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What requests have in common that are answered with the same solver."""
        request = self.request
        return (
            request.group_name,
            request.ik_link_name,
            tuple(request.ik_link_names),
            len(request.pose_stamped_vector),
            self.is_constrained,
        )

    def allow(self, longest: float) -> None:
        """Let the request ask for what is left of its timeout, and not for more than this [s]."""
        left = max(min(self.timeout - self.waited, longest), SHORTEST)
        whole = int(left)
        self.request.timeout = Duration(sec=whole, nanosec=int(1e9 * (left - whole)) or 1)
