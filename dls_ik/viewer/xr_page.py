# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Web page with which a phone or headset (WebXR) becomes a device of teleoperation."""

from __future__ import annotations

import http
import json
import math
import threading
import time
from contextlib import suppress
from typing import Any

from websockets import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from dls_ik.core.types import Array
from dls_ik.errors import OptionError, PoseError
from dls_ik.model.files import share_file
from dls_ik.model.rotations import rotation_from_quaternion, transform
from dls_ik.teleop import DeviceState
from dls_ik.text import quoted
from dls_ik.viewer.server import (
    LOOPBACK_HOSTS,
    OWN_ORIGIN,
    PORTS,
    REFUSAL_BODY,
    RESPONSE_HEADERS,
    check_port,
    is_welcome,
)

PAGE_PATH, POSES_PATH = "/", "/poses"
MAX_STATE_BYTES = 2048
MAX_DEVICE_COORDINATE = 1e3  # [m]
POLICY_VIOLATION = 1008  # close code of websockets


class XrPage:
    """Page and websocket of a phone or headset; one device at a time.

    Requests from pages of other hosts are refused, as :class:`dls_ik.viewer.server.PageServer`
    does.

    Args:
        host: Name or address of this machine on which the server listens.
        port: Port as text; 0 for any unused port.

    Raises:
        OptionError: If the port is not valid.
        PortError: If the port is in use, or the host is not an address of this machine.
    """

    def __init__(self, host: str, port: str) -> None:
        if not (port.isascii() and port.isdigit() and int(port) < PORTS):
            raise OptionError(f"source must be a port from 0 to 65535; got {quoted(port)}")
        check_port(host, int(port))
        self._host = host
        self._page = share_file("config", "teleop", "page.html").read_bytes()
        self._lock = threading.Lock()  # locked while a device is connected
        self._count = 0
        self._server = serve(
            self._receive, host, int(port),
            process_request=self._respond, max_size=MAX_STATE_BYTES, compression=None,
        )  # fmt: skip
        shown = "localhost" if host in LOOPBACK_HOSTS else host
        self.name = f"http://{shown}:{self._server.socket.getsockname()[1]}"
        self._waiting = DeviceState(problem=f"waiting for a device on {self.name}")
        self._state = self._waiting
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="xr_page", daemon=True
        )
        self._thread.start()

    def read(self, now: float) -> DeviceState:
        """Return the newest state of the device.

        Args:
            now: Current time [s].
        """
        state = self._state
        return state._replace(received=now) if state.problem else state

    def close(self) -> None:
        """Stop the server; a second call has no effect."""
        self._server.shutdown()
        self._thread.join()

    def _respond(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return the page or a refusal, or None for the websocket."""
        asked = request.headers.get("Host")
        if not is_welcome(request.headers.get("Origin"), asked, self._host):
            return _response(http.HTTPStatus.FORBIDDEN, "text/plain", REFUSAL_BODY)
        if request.path == POSES_PATH:
            return None
        if request.path != PAGE_PATH:
            return _response(http.HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")
        response = _response(http.HTTPStatus.OK, "text/html; charset=utf-8", self._page)
        for name, value in RESPONSE_HEADERS.items():
            response.headers[name] = value.format(host=asked, frames=OWN_ORIGIN)
        return response

    def _receive(self, connection: ServerConnection) -> None:
        """Update the state from the messages of a connection; refuse a second connection."""
        if not self._lock.acquire(blocking=False):
            connection.close(POLICY_VIOLATION, "another device is connected; close its page")
            return
        try:
            with suppress(ConnectionClosed):
                for message in connection:
                    self._take(message)
        finally:
            self._state = self._waiting
            self._lock.release()

    def _take(self, message: Any) -> None:
        """Keep the state in a message; ignore a message that is not valid."""
        try:
            document = json.loads(message)
            T = _pose(document["p"], document["q"])
            held = frozenset(map(str, document["held"]))
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, PoseError):
            return
        self._count += 1
        self._state = DeviceState(time.monotonic(), pressed=held, pose=T, num_poses=self._count)


def _pose(p: list[float], q: list[float]) -> Array:
    """Return the pose (4, 4) of a position [m] and a quaternion x y z w.

    Raises:
        PoseError: If a value is not finite or too large, or the quaternion is zero.
        ValueError, TypeError: If the values are not three and four numbers.
    """
    x, y, z = map(float, p)
    a, b, c, d = map(float, q)
    if not all(math.isfinite(v) and abs(v) < MAX_DEVICE_COORDINATE for v in (x, y, z, a, b, c, d)):
        raise PoseError(
            f"a pose must be finite and within {MAX_DEVICE_COORDINATE:g} m; got {p}, {q}"
        )
    T = transform(rotation_from_quaternion((a, b, c, d)))
    T[:3, 3] = x, y, z
    return T


def _response(status: http.HTTPStatus, kind: str, body: bytes) -> Response:
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(body))})
    return Response(status.value, status.phrase, headers, body)
