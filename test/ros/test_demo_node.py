# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The demonstration starts the real node, and never leaves one behind."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="needs rich")
pytest.importorskip("matplotlib", reason="needs matplotlib")

import dls_ik
from dls_ik.ros.demo.__main__ import NodeLog
from dls_ik.ros.util import ChildProcess


def python(code, take):
    return ChildProcess([sys.executable, "-c", code], take)


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_node_log_writes_all_lines_without_colours_and_keeps_the_last(tmp_path):
    lines = []
    code = "print('\\033[31mcolour\\033[0m'); [print(i) for i in range(20)]; raise SystemExit(3)"
    with (tmp_path / "log").open("w") as file, python(code, NodeLog(file, lines.append)) as process:
        wait_for(lambda: not process.is_running)
        wait_for(lambda: len(lines) == 21)
    assert process.exit_code == 3
    assert lines[0] == "colour"
    assert (tmp_path / "log").read_text().splitlines() == lines
    log = NodeLog(io.StringIO(), lines.append)
    log.echo = None
    for line in lines:
        log(line)
    assert len(lines) == 21
    assert list(log.tail) == [str(i) for i in range(12, 20)]


def test_processes_ignoring_sigint_and_sigterm_are_killed_on_failure(monkeypatch):
    monkeypatch.setattr(
        "dls_ik.ros.util.SIGNAL_TIMEOUTS",
        {signal.SIGINT: 0.2, signal.SIGTERM: 0.2, signal.SIGKILL: 5.0},
    )
    ignore = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; "
    both = "import os; os.write(1, b'%d\\n' % (os.fork() or os.getpid())); "  # a line in one piece
    code = ignore + both + "time.sleep(99)"
    lines = []

    def fail_while_it_runs():
        with python(code, lines.append):
            wait_for(lambda: len(lines) == 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_it_runs()
    wait_for(lambda: not any(is_alive(int(pid)) for pid in lines))


# The whole


def start_demo(folder, *words):
    source = str(Path(dls_ik.__file__).parents[1])
    search = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    domain = str(
        1 + (int(os.environ["ROS_DOMAIN_ID"]) + 50) % 100
    )  # domain without nodes of other tests
    settings = {"PYTHONPATH": search, "ROS_DOMAIN_ID": domain, "COLUMNS": "80"}
    return subprocess.Popen(
        [sys.executable, "-m", "dls_ik.ros.demo", "--output", str(folder), *words],
        cwd=folder,
        env={**os.environ, **settings, "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def child_of(pid):
    """The process that another one started, None if there is none."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            return int(entry.name)
    return None


@pytest.mark.ros
@pytest.mark.slow
def test_demo_passes_all_checks_and_writes_its_files(tmp_path):
    demo = start_demo(tmp_path, "--seconds", "2", "--json", "figures.json")
    output, errors = demo.communicate(timeout=300)
    assert demo.returncode == 0, output + errors  # also on a busy machine
    assert errors == ""
    assert "NO_IK_SOLUTION" in output
    report = json.loads((tmp_path / "figures.json").read_text())
    assert "WRONG" not in output
    assert report["passed"]
    assert "all checks passed" in output
    assert "load average" in output
    assert len(report["answers"]) == 12
    assert report["tracking"]["targets"] == 200
    for name in ("tip_path.png", "joint_positions.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "ik_node.log").is_file()


@pytest.mark.ros
def test_failed_node_start_reports_the_error_of_the_node(tmp_path):
    demo = start_demo(tmp_path, "--method", "bogus", "--quiet")
    output, errors = demo.communicate(timeout=300)
    assert demo.returncode == 1
    assert output == ""
    assert errors.startswith("demo: the node did not start; ik_node exited with code 1")
    assert "unknown method 'bogus'" in errors


@pytest.mark.ros
def test_an_interrupted_demonstration_leaves_no_node(tmp_path):
    demo = start_demo(tmp_path)
    wait_for(lambda: child_of(demo.pid) is not None, 60.0)
    node = child_of(demo.pid)
    time.sleep(0.5)
    demo.send_signal(signal.SIGTERM)
    _, errors = demo.communicate(timeout=300)
    assert demo.returncode == 143
    assert "Traceback" not in errors
    assert not is_alive(node)
