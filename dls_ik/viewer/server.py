"""The server of the page: viser's, closed to other pages and to the world.

viser also offers to publish the page through a host of its own: it does not do so here.
"""

import socket
from typing import Any

import viser

from dls_ik.exceptions import DlsIkError
from dls_ik.viewer.gate import GateError, guarded

TRIED = 50  # ports that are looked at for one that is free
PORTS = 65536


class PortError(DlsIkError):
    """The page cannot be served there."""


class PageServer(viser.ViserServer):  # type: ignore[misc]
    """A viser server that is not shared, and that only its own page talks to.

    Args:
        host: a name or address of this machine.
        port: 0 for any.

    Raises:
        PortError: the port is taken, or the host is none of this machine.
        GateError: other pages cannot be kept away.
    """

    def __init__(self, host: str, port: int) -> None:
        check_port(host, port)
        try:
            with guarded(host):
                super().__init__(host=host, port=port, label="dls-ik", verbose=False)
        except GateError:
            self.stop()
            raise

    def request_share_url(self, verbose: bool = True) -> None:
        """Stay on this machine."""


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
