"""The reason why a choice was not taken, in the page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from dls_ik.exceptions import DlsIkError

BOX = (
    "<div style='margin:2px 10px 6px;padding:5px 8px;border-radius:4px;font-size:12px;"
    "background:#fee2e2;color:#991b1b'>{}</div>"
)


class Refusal:
    """A line that is there only when something was refused."""

    def __init__(self, gui: Any) -> None:
        self._line = gui.add_html("", visible=False)

    @contextmanager
    def shown(self, undo: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Show why what is done inside is refused, and undo it in the page; else show nothing."""
        try:
            yield
        except DlsIkError as error:
            self._line.content = BOX.format(escape(str(error)))
            self._line.visible = True
            undo()
        else:
            self._line.visible = False
