"""The server of the page: viser's, closed to other pages and to the world.

viser 1.1 asks no one who connects where he comes from: any page in the same browser could drive
what is shown here. So a browser that says it shows a page of another host is sent away. Who gives
no origin is no browser, and could say anything. viser also offers to publish the page through a
host of its own: it does not do so here.
"""

import socket
from typing import Any
from urllib.parse import urlsplit

import viser
from viser.infra import WebsockClientConnection

from dls_ik.exceptions import DlsIkError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY = ("0.0.0.0", "::", "")
TRIED = 50  # ports that are looked at for one that is free
PORTS = 65536
FOREIGN = 1008  # close code: a policy is violated


class PortError(DlsIkError):
    """The page cannot be served there."""


class PageServer(viser.ViserServer):  # type: ignore[misc]
    """A viser server that is not shared, and that only its own page talks to.

    Args:
        host: a name or address of this machine.
        port: 0 for any.

    Raises:
        PortError: the port is taken, or the host is none of this machine.
    """

    def __init__(self, host: str, port: int) -> None:
        check_port(host, port)
        super().__init__(host=host, port=port, label="dls-ik", verbose=False)

        @self._websock_server.on_client_connect  # type: ignore[untyped-decorator]
        async def _(client: WebsockClientConnection) -> None:
            connection = self._websock_server._live_connections[client.client_id]
            headers = connection.request.headers
            if not is_welcome(headers.get("Origin"), headers.get("Host"), host):
                await connection.close(FOREIGN, "this page is of another host")

    def request_share_url(self, verbose: bool = True) -> None:
        """Stay on this machine."""


def is_welcome(origin: str | None, asked: str | None, host: str) -> bool:
    """Whether a connection may come from a page of an origin.

    Args:
        origin: what the browser says where its page is from; None: not a browser.
        asked: the host that it thinks it connects to.
        host: where the server listens: only from there, and from this machine through any port,
            such as one that SSH forwards; where it listens everywhere, from the host asked.
    """
    if origin is None:
        return True
    name = urlsplit(origin).hostname
    if name in LOOPBACK or name == host:
        return True
    return host in ANY and name is not None and name == urlsplit(f"//{asked}").hostname


def check_port(host: str, port: int) -> None:
    """Say in a line why a port cannot be had; viser would take another one without a word.

    Raises:
        PortError: with one that is free.
    """
    reason = _obstacle(host, port)
    if reason is None:
        return
    if isinstance(reason, socket.gaierror):
        raise PortError(f"--host {host} is no name or address that is known here")
    free = next(
        (p for p in range(port + 1, min(port + TRIED, PORTS)) if _obstacle(host, p) is None), None
    )
    hint = f"; free is {free}: --port {free}" if free else ""
    raise PortError(f"cannot listen on {host} port {port}: {(reason.strerror or '').lower()}{hint}")


def _obstacle(host: str, port: int) -> OSError | None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def theme(server: Any, title: str) -> None:
    """How the page looks."""
    server.gui.configure_theme(
        control_width="medium", show_logo=False, show_share_button=False, brand_color=(37, 99, 235)
    )
    server.gui.set_panel_label(title)
