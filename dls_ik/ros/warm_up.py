"""The kernels made ready in a thread, while the node listens to signals."""

import threading
import time
from collections.abc import Callable

from dls_ik.servo.warm_up import use_kernels
from dls_ik.solver import announce_compilation_to

POLL = 0.1  # [s]


class WarmUp:
    """Uses a solver and a servo once, in a thread, so that the process still hears signals."""

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)

    def run(self, announce: Callable[[str], None], wanted: Callable[[], bool]) -> bool:
        """Wait for the kernels.

        Args:
            announce: takes a line if they must be compiled.
            wanted: says whether to wait on.

        Returns:
            Whether they are ready; else the thread still compiles, and nothing can stop it.
        """
        begin, said = time.monotonic(), list[str]()

        def say(words: str) -> None:
            said.append(words)
            announce(words)

        announce_compilation_to(say)
        self._thread.start()
        while self._thread.is_alive() and wanted():
            self._thread.join(POLL)
        if self._error is not None:
            raise self._error
        if said and not self._thread.is_alive():
            announce(f"kernels compiled: {time.monotonic() - begin:.0f} s")
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            use_kernels()
        except BaseException as error:  # noqa: BLE001  raised again by `run`
            self._error = error
