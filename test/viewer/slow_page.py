# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Client of viser's server that sends values as a person does, and applies messages late."""

import threading
import time
from contextlib import suppress

import msgspec
import viser
import zstandard
from viser import _messages as messages
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

SOON = 600.0  # [s] only a dead server takes longer
CAMERA = messages.ViewerCameraMessage(
    wxyz=(1.0, 0.0, 0.0, 0.0),
    position=(1.0, 1.0, 1.0),
    fov=1.0,
    near=0.1,
    far=10.0,
    image_height=600,
    image_width=800,
    look_at=(0.0, 0.0, 0.0),
    up_direction=(0.0, 0.0, 1.0),
)  # fmt: skip  without a camera viser ignores a client


class SlowPage:
    """Page that draws no frame until its errors are requested."""

    def __init__(self, port):
        self._socket = connect(
            f"ws://localhost:{port}", subprotocols=[f"viser-v{viser.__version__}"], max_size=None
        )
        self._arrived = threading.Condition()
        self._messages = []
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()
        self._send(CAMERA)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._thread.join()

    def wait_for(self, matches):
        """Wait for the first message so far, or later, that matches; return it."""
        seen, deadline = 0, time.monotonic() + SOON
        with self._arrived:
            while True:
                new, seen = self._messages[seen:], len(self._messages)
                for message in new:
                    if matches(message):
                        return message
                left = deadline - time.monotonic()
                assert left > 0.0, f"no such message within {SOON} s"
                self._arrived.wait(left)

    def find(self, label):
        """Wait for the widget with a label; return its uuid."""
        return self.wait_for(lambda m: m.get("props", {}).get("label") == label)["uuid"]

    def give(self, uuid, value):
        """Send a value for a widget, as a person does."""
        self._send(messages.GuiUpdateMessage(uuid, {"value": value}))

    def errors(self):
        """Return the updates that viser's page would refuse if one frame applied all messages.

        The page first applies the messages that add or remove widgets, then all updates.
        """
        with self._arrived:
            batch = list(self._messages)
        there, updates = set(), []
        for message in batch:
            kind = message["type"]
            if kind == "GuiUpdateMessage":
                updates.append(message)
            elif kind in ("GuiRemoveMessage", "GuiPanelRemoveMessage"):
                there.discard(message["uuid"])
            elif kind.startswith("Gui") and "props" in message:
                there.add(message["uuid"])
        return [sorted(each["updates"]) for each in updates if each["uuid"] not in there]

    def _send(self, message):
        self._socket.send(msgspec.msgpack.encode(message.as_serializable_dict()))

    def _receive(self):
        with suppress(ConnectionClosed):
            while True:
                window = self._socket.recv()
                size = int.from_bytes(window[8:16], "little")
                content = zstandard.ZstdDecompressor().decompress(window[16 : 16 + size])
                with self._arrived:
                    self._messages += msgspec.msgpack.decode(content)["messages"]
                    self._arrived.notify_all()
