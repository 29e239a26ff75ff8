"""A thread that does one thing at a fixed rate; a timer of rclpy takes twice the processor time."""

import threading
import time
from collections.abc import Callable

from dls_ik.ros.logs import Throttle


class Loop:
    """Acts on absolute deadlines; those that a stall made it miss are left out."""

    def __init__(self, rate: float, act: Callable[[], None], log: Throttle) -> None:
        self._period = 1.0 / rate  # [s]
        self._act, self._log = act, log
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        deadline = time.monotonic()
        while not self._ended.wait(max(0.0, deadline - time.monotonic())):
            try:
                self._act()
            except Exception as error:  # noqa: BLE001  whatever it is, the next cycle may do
                self._log.failed("fault", "a cycle failed", error)
            deadline = max(deadline + self._period, time.monotonic())
