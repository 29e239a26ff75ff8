# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The command and its server: ports, shutdown, and access to the page."""

import contextlib
import gzip
import http.client
import socket
import time

import msgspec
import numpy as np
import pytest
from programs import LONG, run_python
from viewer import pages

viser = pytest.importorskip("viser")

from viser import _messages as messages
from websockets.asyncio import server as websockets_server
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from dls_ik.cli.main import main
from dls_ik.viewer.server import GateError, PageServer, PortError, check_port, guarded, is_welcome

SUBPROTOCOL = f"viser-v{viser.__version__}"
HERE = socket.gethostname().lower()
FILES = (
    "/../../../../../../../../etc/passwd",
    "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
    "/..\\..\\..\\..\\..\\..\\..\\..\\etc\\passwd",
    "//etc/passwd",
    "/%00",
    "/index.html/../../_viser.py",
)


@pytest.fixture(scope="module")
def server():
    made = PageServer("127.0.0.1", 0)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def port(server):
    return server.get_port()


# Command


@pytest.fixture(scope="module")
def taken():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def complaint_of(capsys, *arguments):
    """Return the line with the error, and the output."""
    with pytest.raises(SystemExit) as ended:
        main(["view", "--no-browser", *map(str, arguments)])
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1, told.err
    return told.err.rstrip("\n"), told.out


def test_port_in_use_error_suggests_a_free_port(taken, capsys):
    line, shown = complaint_of(capsys, "--port", taken)
    assert shown == ""
    assert line.startswith(f"dls-ik: cannot listen on 127.0.0.1 port {taken}: ")
    free = int(line.rpartition(" ")[2])
    assert line.endswith(f"; port {free} is free: --port {free}")
    check_port("127.0.0.1", free)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nobody", "nobody"),
        ("wam --method nonsense", "unknown method 'nonsense'"),
        ("wam --method jp,dls,sd,svf,ctp", "--method must be at most 4 methods; got 5"),
        ("wam --method kdl_lma", "follows no target"),
        ("wam --rate 0", "--rate"),
        ("wam --record /nowhere/at/all.csv", "cannot write /nowhere/at/all.csv"),
        ("wam --tip nobody", "unknown tip link 'nobody'"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(arguments, said, capsys):
    assert said in complaint_of(capsys, "--port", 0, *arguments.split())[0]


def test_host_of_another_machine_is_refused():
    with pytest.raises(PortError, match=r"--host.*nobody\.invalid"):
        check_port("nobody.invalid", 0)
    with pytest.raises(PortError, match=r"192\.0\.2\.1 port 8080"):
        check_port("192.0.2.1", 8080)


def test_missing_viser_error_gives_the_install_command(tmp_path):
    (tmp_path / "viser.py").write_text("raise ImportError('gone', name='viser')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    code += "from dls_ik.cli.main import main; main(['view', '--no-browser'])"
    ended = run_python("-c", code)
    assert ended.returncode == 3
    assert ended.stderr == "dls-ik: viser is missing: pip install 'dls-ik[viewer]'\n"


def test_view_command_prints_its_url_and_one_line_at_exit():
    with pages.view("puma560") as process:
        port = process.url.rpartition(":")[2]
        assert process.stdout.readline() == (
            f"from another machine: ssh -L {port}:localhost:{port} HOST, then the same URL\n"
        )
    assert process.returncode == 130
    assert process.complained == "dls-ik: stopped\n"


# Requests of clients that send any header


def get(port, path="/", **headers):
    """Return status, headers in lower case, and body of a request with the given headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    with contextlib.closing(connection):
        is_encoded = "Accept-Encoding" in headers
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=is_encoded)
        for name, value in {"Host": f"localhost:{port}", **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()


def open_socket(port, origin, host="localhost"):
    """Open a websocket on this machine with `host` in its header."""
    way = socket.create_connection(("127.0.0.1", port), timeout=LONG)
    url = f"ws://{host}:{port}"
    return connect(url, sock=way, origin=origin, subprotocols=[SUBPROTOCOL], proxy=None)


def drag(x):
    """Return the message of a page that drags the target."""
    moved = messages.TransformControlsUpdateMessage(
        name="/target", wxyz=(1.0, 0.0, 0.0, 0.0), position=(x, 0.0, 0.0)
    )
    return msgspec.msgpack.encode(moved.as_serializable_dict())


@pytest.mark.parametrize(
    ("origin", "asked", "host", "welcome"),
    [
        (None, "localhost:8080", "127.0.0.1", True),
        ("http://localhost:8080", "localhost:8080", "127.0.0.1", True),
        ("http://localhost", "localhost", "127.0.0.1", True),
        ("http://LOCALHOST:9999", "localhost:9999", "127.0.0.1", True),
        ("http://[::1]:8080", "[::1]:8080", "::1", True),
        ("http://arm.lab:8080", "arm.lab:8080", "arm.lab", True),
        (f"http://{HERE}:8080", f"{HERE}:8080", "0.0.0.0", True),
        ("http://192.0.2.7:8080", "192.0.2.7:8080", "0.0.0.0", True),
        ("http://[2001:db8::7]:8080", "[2001:db8::7]:8080", "::", True),
        # Pages of other hosts
        ("http://evil.example", "localhost:8080", "127.0.0.1", False),
        ("http://localhost:3000", "localhost:8080", "127.0.0.1", False),
        ("http://localhost.evil.example", "localhost:8080", "127.0.0.1", False),
        ("http://localhost:8080@evil.example", "localhost:8080", "127.0.0.1", False),
        ("http://evil.example", "192.0.2.7:8080", "0.0.0.0", False),
        ("null", "localhost:8080", "127.0.0.1", False),
        ("", "localhost:8080", "127.0.0.1", False),
        ("http://[", "localhost:8080", "127.0.0.1", False),
        # Foreign names that resolve to this machine
        ("http://evil.example:8080", "evil.example:8080", "127.0.0.1", False),
        ("http://evil.example:8080", "evil.example:8080", "0.0.0.0", False),
        ("http://evil.example:8080", "evil.example:8080", "arm.lab", False),
        (f"http://{HERE}.evil.example", f"{HERE}.evil.example", "0.0.0.0", False),
        ("http://192.0.2.7:8080", "192.0.2.7:8080", "127.0.0.1", False),
        (None, "evil.example:8080", "0.0.0.0", False),
        (None, "evil.example@localhost", "127.0.0.1", False),
        (None, "[", "127.0.0.1", False),
        (None, "", "127.0.0.1", False),
        (None, None, "127.0.0.1", False),
    ],
)
def test_is_welcome_accepts_only_pages_and_names_of_this_machine(origin, asked, host, welcome):
    assert is_welcome(origin, asked, host) is welcome


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://evil.example", "localhost"),
        ("http://localhost:3000", "localhost"),
        ("null", "localhost"),
        ("http://evil.example:{port}", "evil.example"),  # name that resolves to this machine
    ],
)
def test_websocket_accepts_its_own_page_and_no_foreign_origin(server, port, origin, host):
    assert server.request_share_url() is None, "it is not published"
    with open_socket(port, f"http://localhost:{port}") as own:
        assert own.recv(timeout=LONG)
    with pytest.raises(InvalidStatus) as refused:
        open_socket(port, origin.format(port=port), host)
    assert refused.value.response.status_code == 403
    assert b"other hosts" in refused.value.response.body


def test_messages_in_the_handshake_of_a_foreign_page_are_ignored(server, port):
    target = server.scene.add_transform_controls("/target")
    seen = []
    target.on_update(lambda _: seen.append(float(target.position[0])))
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    asks = (
        "GET / HTTP/1.1\r\nHost: localhost:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\nOrigin: http://evil.example\r\n\r\n"
    ).format(port=port)
    dragged = drag(1.0)
    frame = bytes([0x82, 0x80 | 126, *len(dragged).to_bytes(2, "big"), 0, 0, 0, 0]) + dragged
    # Sent with the handshake, so that the message arrives before the connection is closed
    for _ in range(5):
        way = socket.create_connection(("127.0.0.1", port), timeout=LONG)
        with way, contextlib.suppress(ConnectionError):
            way.sendall(asks.encode() + 20 * frame)
            while way.recv(65536):
                pass
    with open_socket(port, f"http://localhost:{port}") as own:
        own.send(drag(2.0))
        deadline = time.monotonic() + LONG
        while not seen and time.monotonic() < deadline:
            time.sleep(0.01)
    assert seen == [2.0]
    np.testing.assert_array_equal(target.position, [2.0, 0.0, 0.0])


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example"])
def test_files_are_refused_for_foreign_host_names(port, host):
    status, _, body = get(port, Host=host)
    assert status == 403
    assert body.startswith(b"dls-ik: ")


@pytest.mark.parametrize("path", FILES)
def test_files_outside_the_page_are_not_served(port, path):
    status, _, body = get(port, path)
    assert status in (400, 404, 500)
    assert b"root:" not in body
    assert b"import" not in body


def test_content_policy_allows_connections_to_the_own_server_only(port):
    status, headers, body = get(port)
    assert status == 200
    assert b"<html" in body[:2000]
    policy = dict(part.split(maxsplit=1) for part in headers["content-security-policy"].split("; "))
    assert policy["connect-src"] == f"'self' ws://localhost:{port} data: blob:"
    assert policy["frame-ancestors"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"


def test_the_title_of_the_page_is_that_of_the_server():
    server = PageServer("127.0.0.1", 0, title="dls-ik: <arm>")
    try:
        for encoding, decode in (("identity", bytes), ("gzip", gzip.decompress)):
            headers = {"Accept-Encoding": encoding}
            _, found, body = get(server.get_port(), **headers)
            assert int(found["content-length"]) == len(body)
            assert b"<title>dls-ik: &lt;arm&gt;</title>" in decode(body)
    finally:
        server.stop()


def test_server_that_bypasses_the_access_check_is_refused():
    serve = websockets_server.serve
    with pytest.raises(GateError, match=r"pip install viser==\d"), guarded("127.0.0.1"):
        pass  # stands for a viser that starts its server in another way
    assert websockets_server.serve is serve
