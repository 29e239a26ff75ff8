"""A row with rclpy from wheels: the node answers, and colcon builds and tests the package."""

from __future__ import annotations

import json
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from install_matrix import arm
from install_matrix.bench import Bench, StepError
from install_matrix.library import (
    INTERPRETED,
    METHODS,
    Facts,
    check,
    install,
    make_environment,
    numbers,
)
from install_matrix.library import solve as solve_in
from install_matrix.rows import Row
from install_matrix.source import ROOT, copy_source

COLCON = "requirements/colcon.txt"
# Tests that need rclpy and messages and compile nothing; .ci/run has all of them.
TESTS = ("test/test_package.py", "test/ros/test_ros_conversions.py", "test/ros/test_underlay.py")
GRACE = 20.0  # [s] for the node to end


def try_ros(bench: Bench, row: Row, python: str, artefact: Path) -> Facts:
    """All steps of a row with ROS; what was installed.

    Raises:
        StepError: at the first step that fails; the steps are in the bench.
    """
    with bench.step("environment"):
        make_environment(bench, python)
    with bench.step("install") as words:
        install(bench, artefact, *_requirements(row))
        words.append(f"rclpy {_version(bench, 'ros-rclpy')}")
    with bench.step("messages") as words:
        shutil.copytree(ROOT / "underlay", bench.folder / "underlay")
        words.append(bench.run(bench.bin / "python", "underlay/build.py").splitlines()[-1])
    with bench.step("solve interpreted"):
        facts = solve_in(bench, METHODS[:1], compiled=False)
        if not facts.pop("ros"):
            raise StepError("rclpy was installed, but is not to be found")
    with bench.step("node and compute_ik") as words, _node(bench) as ready:
        words.append(ready)
        _ask(bench)
    with bench.step("colcon build"):
        copy_source(bench.folder / "source")
        _build(bench)
    with bench.step("colcon test") as words:
        words.append(_test(bench))
    return facts


def _requirements(row: Row) -> list[str]:
    name = "ros.txt" if row.ros == "kilted" else f"ros-{row.ros}.txt"
    files = (f"requirements/{name}", COLCON)
    return [word for file in files for word in ("-r", str(ROOT / file))]


def _version(bench: Bench, package: str) -> str:
    said = bench.run(bench.bin / "pip", "show", package)
    return next(line.split()[1] for line in said.splitlines() if line.startswith("Version:"))


@contextmanager
def _node(bench: Bench) -> Iterator[str]:
    """The node as it was installed; yields how soon it was ready."""
    process = subprocess.Popen(
        bench.line(bench.bin / "ik_node", "--ros-args", "-p", "robot:=wam"),
        cwd=bench.folder,
        env={**bench.variables, **INTERPRETED},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _wait_until_ready(process, bench.patience)
        process.send_signal(signal.SIGINT)
        if process.wait(GRACE) != 0:
            raise StepError(f"ik_node ended with {process.returncode} after Ctrl-C")
    except subprocess.TimeoutExpired:
        raise StepError(f"ik_node had not ended {GRACE:.0f} s after Ctrl-C") from None
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[str], patience: float) -> str:
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    last, deadline = "(it said nothing)", time.monotonic() + patience
    while (left := deadline - time.monotonic()) > 0.0:
        try:
            line = lines.get(timeout=left)
        except queue.Empty:
            break
        if found := re.search(r"ready after [0-9.]+ s", line):
            return found[0]
        if not line:
            raise StepError(f"ik_node ended before it was ready: {last[:300]}")
        last = line.strip() or last
    raise StepError(f"ik_node was not ready after {patience:.0f} s: {last[:300]}")


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    for line in process.stdout or ():
        lines.put(line)
    lines.put("")


def _ask(bench: Bench) -> None:
    """Call compute_ik from another process, and check the answer."""
    options = ("--timeout", "30", "--patience", "60", "--json")
    pose = numbers(arm.fk(arm.TARGET))
    said = bench.run(bench.bin / "dls-ik", "call", "--matrix", pose, *options, **INTERPRETED)
    answer = json.loads(said)
    if not answer["success"]:
        raise StepError(f"compute_ik answered {answer['code']}: {answer['message']}")
    check("compute_ik", list(answer["joints"].values()))


def _colcon(bench: Bench, *arguments: str, **variables: str) -> str:
    return bench.run(bench.bin / "colcon", "--log-base", "colcon_log", *arguments, **variables)


def _build(bench: Bench) -> None:
    _colcon(bench, "build", "--base-paths", "source", "--packages-select", "dls_ik")
    for file in ("lib/dls_ik/ik_node", "share/dls_ik/package.xml"):
        if not (bench.folder / "install" / "dls_ik" / file).exists():
            raise StepError(f"colcon build did not install {file}")


def _test(bench: Bench) -> str:
    """Run colcon test and colcon test-result; the latter's summary."""
    package = ("--base-paths", "source", "--packages-select", "dls_ik")
    _colcon(bench, "test", *package, "--pytest-args", *TESTS, **INTERPRETED)
    result = ("test-result", "--test-result-base", "build", "--all")
    summary = _colcon(bench, *result).splitlines()[-1]
    if not re.match(r"Summary: [1-9]", summary):
        raise StepError(f"colcon test ran no test: {summary}")
    return summary.removeprefix("Summary: ")
