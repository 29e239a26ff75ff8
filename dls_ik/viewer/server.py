# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Server of the page, based on viser, that rejects requests from pages of other hosts.

viser 1.1 lets any page in the same browser connect to the server and change what the viewer shows.
A browser sends the host of the requesting page in the header `Origin`, and the host to which the
browser connects in the header `Host`. This server accepts a request only if both headers name this
machine. It thus rejects pages of other hosts, which `Origin` names, and foreign names that resolve
to the address of this machine (DNS rebinding), which both headers contain. A client that is not a
browser can send any header, so such clients are not rejected. Every connection and every request
for a file is checked. viser's feature that publishes a page on the internet is disabled.
"""

import contextlib
import gzip
import http
import re
import socket
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from ipaddress import ip_address
from typing import Any

import rich
import viser
from websockets import Headers
from websockets.http11 import Request, Response

from dls_ik.compat import ProcessRequest, wrap_websocket_requests
from dls_ik.errors import DlsIkError

TRIED_PORTS = 50
PORTS = 65536
BRAND = (37, 99, 235)
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
WILDCARD_BIND_HOSTS = ("0.0.0.0", "::", "")  # noqa: S104  the server listens there only on request
HOST_HEADER = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]+)?")
OWN_ORIGIN = "'self'"  # only pages of this server may embed the page
NOTEBOOKS = f"{OWN_ORIGIN} http://localhost:* http://127.0.0.1:* vscode-webview:"
REFUSAL_BODY = (
    b"dls-ik: this page is not for pages and names of other hosts: open the printed address\n"
)
# The page of viser connects to any server that the parameter ?websocket= of its address names, and
# executes messages of that server. This policy allows connections to our server only, and allows
# only the pages {frames} to embed the page.
RESPONSE_HEADERS = {
    "Content-Security-Policy": "connect-src 'self' ws://{host} data: blob:; "
    "frame-ancestors {frames}; form-action 'none'; base-uri 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class GateError(DlsIkError):
    """A server that cannot be used, because its requests cannot be checked."""


class PortError(DlsIkError):
    """A host and port on which the page cannot be served."""


class PageServer(viser.ViserServer):  # type: ignore[misc]
    """Server of viser that rejects requests from the pages of other web sites.

    Args:
        host: Name or address of this machine on which the server listens.
        port: Port; 0 for any unused port.
        frames: Sources of the pages that may embed this page, as in the directive `frame-ancestors`
            of the HTTP header Content-Security-Policy.
        title: Title in the tab of the browser.

    Raises:
        PortError: If the port is in use, or the host is not an address of this machine.
        GateError: If the check of requests cannot be installed in viser.
    """

    def __init__(
        self, host: str, port: int, frames: str = OWN_ORIGIN, title: str = "dls-ik"
    ) -> None:
        check_port(host, port)
        try:
            with guarded(host, frames, title):
                super().__init__(host=host, port=port, label="dls-ik", verbose=False)
        except GateError:
            self.stop()
            raise

    def request_share_url(self, verbose: bool = True) -> None:
        """Do nothing; the method of viser would publish the page on the internet."""


def open_server(host: str, port: int, title: str, is_framed: bool = False) -> PageServer:
    """Start a web server with an empty page.

    Args:
        host: Name or address of this machine on which the server listens.
        port: Port; 0 for any unused port.
        title: Title of the page's panel and of the browser tab.
        is_framed: Whether a notebook on this machine may embed the page.

    Raises:
        PortError: If the port is in use, or the host is not an address of this machine.
        GateError: If the check of requests cannot be installed in viser.
    """
    rich.get_console().quiet = True  # suppresses viser's table of addresses
    server = PageServer(host, port, NOTEBOOKS if is_framed else OWN_ORIGIN, title)
    set_theme(server.gui, is_dark=False)
    server.gui.set_panel_label(title)
    return server


def set_theme(gui: Any, is_dark: bool) -> None:
    """Use dark or light colours, and hide the logo and the share button of viser.

    Args:
        gui: Graphical user interface of the viser server, for all clients (browsers), or of one
            client.
        is_dark: Whether the colours are dark.
    """
    gui.configure_theme(
        control_width="medium",
        dark_mode=is_dark,
        show_logo=False,
        show_share_button=False,
        brand_color=BRAND,
    )


def check_port(host: str, port: int) -> None:
    """Check that a port is unused; viser itself would silently use another port.

    Raises:
        PortError: If the port is in use or the host is unknown; the message names an unused port.
    """
    reason = _bind_error(host, port)
    if reason is None:
        return
    if isinstance(reason, socket.gaierror):
        raise PortError(f"--host must be a name or address of this machine; got {host}")
    others = range(port + 1, min(port + TRIED_PORTS, PORTS))
    free = next((other for other in others if _bind_error(host, other) is None), None)
    hint = f"; port {free} is free: --port {free}" if free else ""
    raise PortError(f"cannot listen on {host} port {port}: {(reason.strerror or '').lower()}{hint}")


def _bind_error(host: str, port: int) -> OSError | None:
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


@contextlib.contextmanager
def guarded(host: str, frames: str = OWN_ORIGIN, title: str = "dls-ik") -> Iterator[None]:
    """Install a check of requests in the viser server that is started in the ``with`` block.

    The server rejects a request if the headers Host and Origin do not match the page, see
    :func:`is_welcome`. It also adds security headers to its responses, and replaces the title of
    the page.

    Args:
        host: Name or address on which the server listens.
        frames: Sources of the pages that may embed this page, as in the directive `frame-ancestors`
            of the HTTP header Content-Security-Policy.
        title: Title in the tab of the browser.

    Raises:
        GateError: If no server was started in the block in which the check could be installed.
    """

    def wrap(process_request: ProcessRequest) -> ProcessRequest:
        def process(connection: Any, request: Request) -> Response | None:
            asked = request.headers.get("Host")
            if not is_welcome(request.headers.get("Origin"), asked, host):
                headers = Headers(
                    {"Content-Type": "text/plain", "Content-Length": str(len(REFUSAL_BODY))}
                )
                return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", headers, REFUSAL_BODY)
            response: Response | None = process_request(connection, request)
            if response is not None:  # the request is for a file, not for a websocket
                _set_title(response, title)
                for name, value in RESPONSE_HEADERS.items():
                    response.headers[name] = value.format(host=asked, frames=frames)
            return response

        return process

    with wrap_websocket_requests(wrap) as count:
        yield
    if not count():
        raise GateError(
            "requests to this version of viser cannot be checked: pip install viser==1.1.1"
        )


VISER_TITLE = b"<title>Viser</title>"  # replaced in the page, because viser has no option for it


def _set_title(response: Response, title: str) -> None:
    """Replace the title in the HTML of a response; do nothing if the response is another file."""
    headers = response.headers
    if headers.get("Content-Type", "").startswith("text/html"):
        is_gzipped = headers.get("Content-Encoding") == "gzip"
        response.body = titled_page(bytes(response.body), is_gzipped, title)
        del headers["Content-Length"]
        headers["Content-Length"] = str(len(response.body))


@lru_cache(maxsize=4)
def titled_page(page: bytes, is_gzipped: bool, title: str) -> bytes:
    """Replace the title in the HTML of viser's page, and return the HTML.

    Args:
        page: HTML of the page.
        is_gzipped: Whether `page` and the result are compressed by gzip.
        title: New title of the browser tab.
    """
    html = gzip.decompress(page) if is_gzipped else page
    html = html.replace(VISER_TITLE, f"<title>{escape(title)}</title>".encode(), 1)
    return gzip.compress(html) if is_gzipped else html


def is_welcome(origin: str | None, asked: str | None, host: str) -> bool:
    """Return whether the server accepts a request, given two of its headers.

    Args:
        origin: Header `Origin`; None if no page made the request, as for the first request of a
            browser, or if the client is not a browser.
        asked: Header `Host`: host and port to which the client connects.
        host: Host on which the server listens.
    """
    match = HOST_HEADER.fullmatch(asked.lower()) if asked else None
    if match is None or not _is_this_machine(match["name"].strip("[]"), host):
        return False
    return origin is None or origin.lower() == f"http://{asked}".lower()


def _is_this_machine(name: str, host: str) -> bool:
    """Return whether a host name can only stand for this machine.

    Args:
        name: Host name or address that a client connects to.
        host: Host on which the server listens.
    """
    if name in LOOPBACK_HOSTS or name == host.lower():
        return True
    if host in LOOPBACK_HOSTS:
        return False
    own = socket.gethostname().lower()
    return name in (own, f"{own}.local") or (host in WILDCARD_BIND_HOSTS and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
