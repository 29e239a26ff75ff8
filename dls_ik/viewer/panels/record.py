"""The button that records."""

from collections.abc import Callable
from html import escape
from typing import Any

from dls_ik.exceptions import DlsIkError
from dls_ik.viewer.session import Session

START, STOP = "Record", "Stop recording"
NAME = "dls-ik-view.csv"  # of a download
LINE = "<div style='padding:0 12px 6px;font-size:12px;color:#6b7280'>{}</div>"

Save = Callable[[bytes], str]  # returns where it went


class RecordPanel:
    """Starts a recording, and hands it over when it is stopped.

    Args:
        save: puts it where it belongs; None: it is offered as a download.
    """

    def __init__(self, gui: Any, session: Session, save: Save | None) -> None:
        self._session, self._save = session, save
        with gui.add_folder("Recording", expand_by_default=False):
            self._button = gui.add_button(START, color="gray")
            self._line = gui.add_html(LINE.format("All that the arms do, as CSV."))

        @self._button.on_click  # type: ignore[untyped-decorator]
        def _(event: Any) -> None:
            if session.is_recording:
                self.finish(event.client)
            else:
                session.start_recording()
                self._button.label = STOP
                self._say("recording ...")

    def finish(self, client: Any = None) -> None:
        """End a recording, if there is one, and hand it over."""
        content = self._session.stop_recording()
        if content is None:
            return
        self._button.label = START
        rows = content.count(b"\n") - 1
        if self._save is None:
            if client is not None:
                client.send_file_download(NAME, content, save_immediately=True)
            self._say(f"{rows} rows")
            return
        try:
            self._say(f"{rows} rows in {self._save(content)}")
        except (DlsIkError, OSError) as error:
            self._say(str(error))

    def _say(self, words: str) -> None:
        self._line.content = LINE.format(escape(words))
