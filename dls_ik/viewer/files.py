# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Panels of the page that open and save files.

They open paths to replay, and save recordings, pictures of the scene and plotted curves.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from dls_ik.errors import DlsIkError
from dls_ik.viewer.inputs import Input
from dls_ik.viewer.panels import DIMMED, RefusalLine
from dls_ik.viewer.replay import read_path
from dls_ik.viewer.session import Session

REPLAY_LINE = "A joint path of <code>dls-ik path</code> (CSV, JSON), or a recording of this page."
FILE_LINE_HTML = f"<div style='padding:0 12px 6px;font-size:12px;color:{DIMMED}'>{{}}</div>"
SEEK_STEP = 0.01  # [s] step of the time slider of a replay


class ReplayPanel:
    """Panel that opens a recorded path, replays it instead of the arms, and jumps to a time."""

    def __init__(self, server: Any, session: Session) -> None:
        self._session = session
        self._shown: Any = None
        gui = server.gui
        can_place = session.sources[0].can_place
        with gui.add_folder("Replay", expand_by_default=False, visible=can_place):
            self._refusal = RefusalLine(gui)
            self._line = gui.add_html(FILE_LINE_HTML.format(REPLAY_LINE))
            upload = gui.add_upload_button("Open a file", color="gray", mime_type=".csv,.json")
            time = gui.add_slider(
                "Time [s]", min=0.0, max=1.0, step=SEEK_STEP, initial_value=0.0, visible=False
            )
            self._time = Input(server, time, self._time_now, session.seek)
            self._stop = gui.add_button("Stop the replay", visible=False)
        upload.on_upload(self._open)
        self._stop.on_click(lambda _: session.show_path(None))

    def update(self) -> None:
        """Show the name and description of the replayed path, and the current replay time."""
        path = self._session.replay
        if path is not self._shown:
            self._shown = path
            is_shown = path is not None
            self._time.handle.visible = self._stop.visible = is_shown
            if path is not None:
                self._time.handle.max = max(path.duration, 2 * SEEK_STEP)
                self._line.content = FILE_LINE_HTML.format(escape(f"{path.name}: {path.message}"))
            else:
                self._line.content = FILE_LINE_HTML.format(REPLAY_LINE)
        self._time.update()

    def _time_now(self) -> float | None:
        """Return the time since the start of the replay [s], or None if no path is replayed."""
        if self._session.replay is None:
            return None
        return float(np.clip(self._session.replay_time, 0.0, self._time.handle.max))

    def _open(self, event: Any) -> None:
        with self._refusal.shown():
            file = event.target.value
            self._session.show_path(read_path(self._session.robot, file.name, file.content))


START_RECORDING, STOP_RECORDING = "Record", "Stop recording"
DOWNLOAD_NAME = "dls-ik-view.csv"

Save = Callable[[bytes], str]  # argument: content of a file; result: name of the written file


class RecordPanel:
    """Panel that starts and stops a recording; the recording is saved to a file or downloaded.

    Args:
        save: Writes the content to a file and returns its name; None offers a download instead.
    """

    def __init__(self, gui: Any, session: Session, save: Save | None) -> None:
        self._session, self._save = session, save
        with gui.add_folder("Recording", expand_by_default=False):
            self._button = gui.add_button(START_RECORDING, color="gray")
            self._line = gui.add_html(
                FILE_LINE_HTML.format("Records the motion of all arms as CSV.")
            )
        self._button.on_click(self._start_or_finish)

    def _start_or_finish(self, event: Any) -> None:
        if self._session.is_recording:
            self.finish(event.client)
            return
        self._session.start_recording()
        self._button.label = STOP_RECORDING
        self._say("recording ...")

    def finish(self, client: Any = None) -> None:
        """Stop the recording, if there is one, and save it or offer it as a download."""
        content = self._session.stop_recording()
        if content is None:
            return
        self._button.label = START_RECORDING
        rows = content.count(b"\n") - 1
        message = f"{rows} rows"
        try:
            if self._save is not None:
                message = f"{message} in {self._save(content)}"
            elif client is not None:
                client.send_file_download(DOWNLOAD_NAME, content, save_immediately=True)
        except (DlsIkError, OSError) as error:
            message = str(error)
        self._say(message)

    def _say(self, message: str) -> None:
        self._line.content = FILE_LINE_HTML.format(escape(message))


PICTURE_NAME, CURVES_NAME = "dls-ik-scene.png", "dls-ik-curves.csv"
RENDER_TIMEOUT = 120.0  # [s] software rendering may take seconds; a hidden tab never answers


class ExportPanel:
    """Panel that offers downloads of the current view of the scene (PNG) and the curves (CSV)."""

    def __init__(self, gui: Any, session: Session) -> None:
        self._session = session
        with gui.add_folder("Export", expand_by_default=False):
            picture = gui.add_button("Scene as PNG", color="gray")
            curves = gui.add_button("Curves as CSV", color="gray")
            self._line = gui.add_html(FILE_LINE_HTML.format("View of the scene; plotted curves."))
        picture.on_click(self._send_picture)
        curves.on_click(self._send_curves)

    def _send_picture(self, event: Any) -> None:
        camera = event.client.camera
        size = camera.image_height, camera.image_width
        try:
            rendered = event.client.get_render(
                *size, transport_format="png", timeout=RENDER_TIMEOUT
            )
        except TimeoutError:
            self._line.content = FILE_LINE_HTML.format(
                "the browser sent no picture before the timeout"
            )
            return
        content = png(rendered)
        event.client.send_file_download(PICTURE_NAME, content, save_immediately=True)
        self._line.content = FILE_LINE_HTML.format(f"{PICTURE_NAME}: {size[1]} x {size[0]}")

    def _send_curves(self, event: Any) -> None:
        names = [source.name for source in self._session.sources]
        if self._session.replay is not None:
            names = [self._session.replay.name]
        content = self._session.history.table(names)
        event.client.send_file_download(CURVES_NAME, content, save_immediately=True)
        self._line.content = FILE_LINE_HTML.format(
            f"{CURVES_NAME}: {content.count(bytes([10])) - 1} rows"
        )


def png(image: Any) -> bytes:
    """Convert an image to the content of a PNG file.

    Args:
        image: Array (height, width, 3) for RGB or (height, width, 4) for RGBA of bytes.
    """
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.asarray(image, np.uint8)).save(file, "PNG")
    return file.getvalue()
