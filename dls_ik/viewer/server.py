"""The server of the page: viser's, closed to other pages and to the world.

viser also offers to publish the page through a host of its own: it does not do so here.

viser 1.1 asks no one who connects where he comes from: any page in the same browser could drive
what is shown here. A browser says in `Origin` which page connects, and in `Host` whom it thinks it
talks to. Both have to be this machine: a page of another host has another `Origin`, and a name of
somebody else's that was pointed at this machine's address (DNS rebinding) is in both. Who is no
browser may say anything, and is let in. It is asked before a connection is one, and before a file
is sent.
"""

import contextlib
import http
import re
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

import viser
from websockets import Headers
from websockets.asyncio import server as websockets_server
from websockets.http11 import Request, Response

from dls_ik.errors import DlsIkError

TRIED = 50  # ports that are looked at for one that is free
PORTS = 65536

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY = ("0.0.0.0", "::", "")  # noqa: S104  only where --host says so
ASKED = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]+)?")
REFUSED = "dls-ik: this page is not for pages and names of other hosts: open the printed address\n"
# The page of viser connects to any server that its own address names (?websocket=), and runs what
# that one sends: so it may connect to nobody else, and be shown inside of no other page.
HEADERS = {
    "Content-Security-Policy": "connect-src 'self' ws://{asked} data: blob:; "
    "frame-ancestors 'self'; form-action 'none'; base-uri 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

ProcessRequest = Callable[[Any, Request], Response | None]


class GateError(DlsIkError):
    """The server cannot be guarded, so it is not to be used."""


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


def is_welcome(origin: str | None, asked: str | None, host: str) -> bool:
    """Whether a connection may be had.

    Args:
        origin: what the browser says where its page is from; None: not a browser, or no page yet.
        asked: the host and port that it thinks it talks to.
        host: where the server listens.
    """
    match = ASKED.fullmatch(asked.lower()) if asked else None
    if match is None or not _is_ours(match["name"].strip("[]"), host):
        return False
    return origin is None or origin.lower() == f"http://{asked}".lower()


@contextlib.contextmanager
def guarded(host: str) -> Iterator[None]:
    """Put the gate in front of a server that viser starts meanwhile, which offers no place for it.

    Raises:
        GateError: viser started none that could be guarded.
    """
    serve: Any = websockets_server.serve
    guards = 0

    def serve_guarded(*given: Any, process_request: ProcessRequest, **options: Any) -> Any:
        nonlocal guards
        guards += 1
        return serve(*given, process_request=_gate(process_request, host), **options)

    websockets_server.serve = serve_guarded  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        websockets_server.serve = serve  # type: ignore[misc]
    if not guards:
        raise GateError("this viser cannot be kept from other pages: pip install viser==1.1.1")


def _gate(answer: ProcessRequest, host: str) -> ProcessRequest:
    """What answers requests for those who are welcome; None is a connection that is opened."""

    def process(connection: Any, request: Request) -> Response | None:
        asked = request.headers.get("Host")
        if not is_welcome(request.headers.get("Origin"), asked, host):
            return _refusal()
        response = answer(connection, request)
        if response is not None:
            for name, value in HEADERS.items():
                response.headers[name] = value.format(asked=asked)
        return response

    return process


def _refusal() -> Response:
    body = REFUSED.encode()
    headers = Headers({"Content-Type": "text/plain", "Content-Length": str(len(body))})
    return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", headers, body)


def _is_ours(name: str, host: str) -> bool:
    """Whether a name can only mean this machine, at an address where the server listens."""
    if name in LOOPBACK or name == host.lower():
        return True
    return host not in LOOPBACK and (name in _own_names() or (host in ANY and _is_address(name)))


def _own_names() -> tuple[str, ...]:
    name = socket.gethostname().lower()
    return name, f"{name}.local"


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
