"""Which requests may be tried at once, in the thread that all callbacks share."""

import threading
from contextlib import suppress

from dls_ik.ros.arm import Arm
from dls_ik.ros.errors import RequestError
from dls_ik.ros.services.call import Call

MOST = 1000  # kinds of requests that are remembered
FIRST_SOLUTION = "speed"


class Known:
    """Remembers the kinds of requests that this arm has answered.

    The first request of a kind may have to make a solver, which takes some tenths of a second; and
    only where the first solution is wanted is an early end without one no loss.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arm: Arm | None = None
        self._kinds: set[tuple[object, ...]] = set()

    def is_known(self, call: Call) -> bool:
        """Whether a request is of a kind that takes no preparation."""
        if call.arm is not self._arm or call.arm.parameters.solve_type != FIRST_SOLUTION:
            return False
        if call.is_constrained:  # for each such request a solver is made
            return False
        with self._lock, suppress(RequestError):
            return call.arm is self._arm and call.kind in self._kinds
        return False

    def remember(self, call: Call) -> None:
        """A request was answered."""
        with self._lock:
            if call.arm is not self._arm or len(self._kinds) >= MOST:
                self._arm, self._kinds = call.arm, set()
            self._kinds.add(call.kind)
