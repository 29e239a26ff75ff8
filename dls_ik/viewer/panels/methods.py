"""Which methods move the arms, and their parameters."""

from collections.abc import Callable
from typing import Any

from dls_ik.viewer.panels.parameters import ParameterPanel
from dls_ik.viewer.panels.refusal import Refusal
from dls_ik.viewer.session import Session

NONE = "none"
LETTERS = ("A", "B")


class MethodPanel:
    """Two lists of methods, and sliders for what they have.

    Args:
        changed: called when there is another number of arms, or another method.
    """

    def __init__(self, gui: Any, session: Session, changed: Callable[[], None]) -> None:
        self._gui, self._session, self._changed = gui, session, changed
        self._lists: list[Any] = []
        self._was_current = True
        with gui.add_folder("Methods"):
            self._refusal = Refusal(gui)
            first = session.sources[0]
            if first.methods:
                self._add_list("Method A", tuple(first.methods), self._use_first)
            if session.can_compare:
                self._add_list("Method B", (NONE, *_rivals(session)), self._use_second)
            self._folder = gui.add_folder("Parameters", expand_by_default=False)
            self._parameters: list[ParameterPanel] = []
        self.update()

    def update(self) -> None:
        """Show what the session has."""
        sources = self._session.sources
        shown = [source.method for source in sources] + [NONE]
        values = shown[: len(self._lists)] if sources[0].methods else shown[1:]
        for handle, value in zip(self._lists, values, strict=False):
            if value not in handle.options:
                handle.options = (*handle.options, value)
            if handle.value != value:
                handle.value = value
        self._renew_parameters()

    def follow(self) -> None:
        """Show what others changed, once it lasts for two looks."""
        if not self._session.sources[0].is_remote:
            return
        was_current, self._was_current = self._was_current, self._is_current
        if not was_current and not self._was_current:
            self.update()

    @property
    def _is_current(self) -> bool:
        same = not self._lists or self._lists[0].value == self._session.sources[0].method
        return same and all(panel.is_current for panel in self._parameters)

    def _renew_parameters(self) -> None:
        for panel in self._parameters:
            panel.remove()
        sources = self._session.sources
        with self._folder:
            self._parameters = [
                ParameterPanel(self._gui, source, letter, self._refusal)
                for letter, source in zip(LETTERS, sources, strict=False)
                if source.parameters
            ]
        self._folder.visible = bool(self._parameters)

    def _add_list(self, label: str, names: tuple[str, ...], use: Callable[[str], None]) -> None:
        handle = self._gui.add_dropdown(label, names)
        self._lists.append(handle)

        @handle.on_update  # type: ignore[untyped-decorator]
        def _(event: Any) -> None:
            if event.client is not None:  # by a person
                with self._refusal.shown(self.update):
                    use(handle.value)
                    self.update()
                    self._changed()

    def _use_first(self, method: str) -> None:
        self._session.sources[0].use(method)

    def _use_second(self, method: str) -> None:
        self._session.compare(None if method == NONE else method)


def _rivals(session: Session) -> tuple[str, ...]:
    from dls_ik.viewer.local import LocalSource  # the second arm is always one of these

    return LocalSource.methods
