"""Buttons that stop the arms, and begin anew."""

from collections.abc import Callable, Sequence
from typing import Any

from dls_ik.servo.state import ServoState
from dls_ik.viewer.panels.refusal import Refusal
from dls_ik.viewer.session import Seen, Session

PAUSE, RESUME = "Pause", "Go on"


class OrderPanel:
    """Reset, and for an arm elsewhere pause.

    Args:
        cleared: called after a reset.
    """

    def __init__(self, gui: Any, session: Session, cleared: Callable[[], None]) -> None:
        self._refusal = Refusal(gui)
        is_remote = session.sources[0].is_remote
        self._pause = gui.add_button(PAUSE, color="gray", visible=is_remote)
        reset = gui.add_button("Reset", color="gray")

        @self._pause.on_click  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            with self._refusal.shown():
                session.pause(self._pause.label == PAUSE)

        @reset.on_click  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            with self._refusal.shown():
                session.reset()
            cleared()

    def update(self, seen: Sequence[Seen]) -> None:
        """Offer to go on where an arm is paused."""
        is_paused = any(arm.sample.state == ServoState.PAUSED.name for arm in seen)
        label = RESUME if is_paused else PAUSE
        if self._pause.label != label:
            self._pause.label = label
