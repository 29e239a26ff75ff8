"""The command and its server: ports, how it ends."""

import socket
import subprocess
import sys

import pytest
from viewer import pages

pytest.importorskip("viser")

from dls_ik.cli.main import main
from dls_ik.viewer.server import PageServer, PortError, check_port


@pytest.fixture(scope="module")
def taken():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.fixture(scope="module")
def server():
    made = PageServer("127.0.0.1", 0)
    yield made
    made.stop()


def test_a_port_in_use_is_one_line_with_one_that_is_free(taken):
    ended = pages.run("--port", taken, "--no-browser")
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"dls-ik: cannot listen on 127.0.0.1 port {taken}: ")
    free = int(line.rpartition(" ")[2])
    assert line.endswith(f"; free is {free}: --port {free}")
    check_port("127.0.0.1", free)


def test_a_host_that_is_not_this_one_is_refused():
    with pytest.raises(PortError, match=r"--host nobody\.invalid is no name"):
        check_port("nobody.invalid", 0)
    with pytest.raises(PortError, match=r"cannot listen on 192\.0\.2\.1 port 8080"):
        check_port("192.0.2.1", 8080)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "nobody"),
        (["wam", "--method", "nonsense"], "unknown method 'nonsense'"),
        (["wam", "--method", "jp,dls,sdls"], "--method takes one method or two, not 3"),
        (["wam", "--method", "kdl_lma"], "follows no target"),
        (["wam", "--rate", "0"], "--rate"),
        (["wam", "--record", "/nowhere/at/all.csv"], "cannot write /nowhere/at/all.csv"),
        (["wam", "--tip", "nobody"], "unknown tip link 'nobody'"),
    ],
)
def test_bad_input_is_one_line(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["view", "--no-browser", "--port", "0", *arguments])
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert said in complaint


def test_without_viser_a_line_says_what_to_install(tmp_path):
    (tmp_path / "viser.py").write_text("raise ImportError('gone', name='viser')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    code += "from dls_ik.cli.main import main; main(['view', '--no-browser'])"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=pages.environment(),
        capture_output=True,
        text=True,
        timeout=pages.LONG,
        check=False,
    )
    assert ended.returncode == 3
    assert ended.stderr == "dls-ik: viser is missing: pip install 'dls-ik[viewer]'\n"


def test_the_page_is_not_published(server):
    assert server.request_share_url() is None


def test_it_says_where_it_is_and_ends_in_a_line():
    with pages.view("puma560") as process:
        port = process.url.rpartition(":")[2]
        assert process.stdout.readline() == (
            f"from another machine: ssh -L {port}:localhost:{port} HOST, then the same URL\n"
        )
    assert process.returncode == 130
    assert process.complained == "dls-ik: ended\n"
