"""Buttons for the presets, and what to watch."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from dls_ik.viewer.panels.refusal import Refusal
from dls_ik.viewer.presets.preset import Preset
from dls_ik.viewer.session import Session

WATCH = "<div style='padding:0 12px 6px;font-size:12.5px;line-height:1.35'>{}</div>"
IDLE = "The target moves by itself; what there is to see is said here."
STOP = "Stop"


class PresetPanel:
    """A button for each preset, and one to stop.

    Args:
        changed: called when a preset has begun, with its methods.
    """

    def __init__(
        self,
        gui: Any,
        session: Session,
        presets: Sequence[Preset],
        changed: Callable[[], None],
    ) -> None:
        self._session, self._changed = session, changed
        self._playing: Preset | None = None
        with gui.add_folder("Presets", visible=bool(presets)):
            self._refusal = Refusal(gui)
            for preset in presets:
                self._connect(gui.add_button(preset.title, color="gray"), preset)
            self._watch = gui.add_html(WATCH.format(IDLE))
            self._stop = gui.add_button(STOP, visible=False)

        @self._stop.on_click  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            session.stop()

    def update(self) -> None:
        """Show what is played now."""
        playing = self._session.preset
        if playing is self._playing:
            return
        self._playing = playing
        self._stop.visible = playing is not None
        words = IDLE if playing is None else f"<b>Watch:</b> {escape(playing.watch)}"
        self._watch.content = WATCH.format(words)

    def _connect(self, button: Any, preset: Preset) -> None:
        @button.on_click  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            with self._refusal.shown():
                self._session.play(preset)
                self._changed()
                self.update()
