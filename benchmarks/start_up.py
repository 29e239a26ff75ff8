# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cold start: install, the first answers in new processes, and the node until it is ready.

Measured in an environment made for it: the requirements, then the package as `pip install .` puts
it there from the files of this checkout. Cold is with an empty folder for the kernels' machine code
(NUMBA_CACHE_DIR), warm with the folder that the cold process left; cold rows are measured once. The
installation compiles all kernels, like the first installation of a user. With --again it copies the
kernels that an earlier installation of this user has compiled.
Processor times are those of a process, its threads and its children from its start on, and wall
times hold the start of the interpreter too. The node is ready when it says so, with services up and
kernels loaded.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.processes import ROOT, Process, ros_node
from dls_ik import DlsIkError
from dls_ik.warm_up import compile_kernels

COLUMNS = columns("step; processor [s] :.2f; wall [s] :.2f; mark [s]")
PATHS = ("PYTHONPATH", "LD_LIBRARY_PATH")
BOOTSTRAPPED = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"  # set by the wheels of rclpy, which then keep PATHS
MEASURED = """
import json, resource, time
stamps = []
def stamp():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    stamps.append((sum(each.ru_utime + each.ru_stime for each in used), time.monotonic()))
{}
stamp()
print(json.dumps(stamps))
"""
NUMBA = "import numba"
FIRST_ANSWER = """
from dls_ik import IkSolver, RobotModel
robot = RobotModel.wam()
T = robot.tree.pose(robot.tip, dict.fromkeys(robot.joint_names, 0.5))
IkSolver(robot).solve(T)
"""
FURTHER_ANSWERS = f"""{FIRST_ANSWER}
stamp()
IkSolver(robot, "ctp+sd+svf").solve(T)
stamp()
from dls_ik.servo import Controller
controller = Controller(robot)
controller.follow_pose(T, 0.0)
controller.cycle(0.0, 0.01)
"""
ALL_KERNELS = f"from {compile_kernels.__module__} import compile_kernels; compile_kernels()"


class Cost(NamedTuple):
    """Time of a step [s]."""

    processor: float
    wall: float

    def and_then(self, other: "Cost") -> "Cost":
        """Add the cost of another step."""
        return Cost(self.processor + other.processor, self.wall + other.wall)


class Environment(NamedTuple):
    """A Python with the package."""

    python: Path
    folder: Path  # working directory of the processes
    packaging: Cost  # cost of the installation without requirements

    def run(self, code: str, **environment: str) -> list[Cost]:
        """Run code in a new process; return the cost up to each stamp, from the one before."""
        begin = time.monotonic()
        said = run([self.python, "-c", MEASURED.format(code)], self.folder, **environment)
        stamps = [(0.0, begin), *json.loads(said.splitlines()[-1])]
        return [Cost(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(stamps)]

    def start_node(self, **environment: str) -> Cost:
        """Run ``ik_node`` until it is ready."""
        _, _, _, *arguments = ros_node("dls_ik.ros.node", "start_up", robot="wam")
        program = str(self.python.with_name("ik_node"))
        with Process([program, *arguments], **environment) as process:
            wall = process.wait_ready()
            return Cost(process.processor_time(), wall)


def run(command: list[Path | str], folder: Path = ROOT, **environment: str) -> str:
    """Run a program and return its output.

    Raises:
        DlsIkError: If the program failed.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, **environment}
    )
    if done.returncode:
        raise DlsIkError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-500:]}")
    return done.stdout


# Environments


def current_environment() -> Environment:
    """Return the environment of this process, with the package as it is there."""
    return Environment(Path(sys.executable), ROOT, Cost(0.0, 0.0))


@contextmanager
def new_environment(*, again: bool) -> Iterator[Environment]:
    """Create an environment with the package and without ROS.

    Args:
        again: Whether to copy the kernels that this user has compiled before.

    Raises:
        DlsIkError: If an installation fails.
    """
    base = getattr(sys, "_base_executable", sys.executable)
    site = ["--system-site-packages"] if "ROS_DISTRO" in os.environ else []
    with TemporaryDirectory() as name, left_environment():
        folder, source = Path(name), Path(name, "source")
        run([base, "-m", "venv", *site, folder])
        python = folder / "bin" / "python"
        pip(python, "-r", "requirements/core.txt", "setuptools", "wheel")
        copy_sources(source)
        kept = {} if again else {"XDG_CACHE_HOME": str(folder / "cache")}
        before, begin = _processor_time_of_children(), time.monotonic()
        pip(python, "--no-build-isolation", "--no-deps", str(source), **kept)
        spent = Cost(_processor_time_of_children() - before, time.monotonic() - begin)
        yield Environment(python, folder, spent)


@contextmanager
def left_environment() -> Iterator[None]:
    """Take this checkout and the folders of this environment out of the variables of processes."""
    before = dict(os.environ)
    os.environ.pop(BOOTSTRAPPED, None)
    for variable in PATHS:
        paths = os.environ.pop(variable, "").split(os.pathsep)
        if left := [path for path in paths if path and not _is_ours(path)]:
            os.environ[variable] = os.pathsep.join(left)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _is_ours(path: str) -> bool:
    return Path(path) == ROOT or Path(sys.prefix) in Path(path).parents


def install_ros(python: Path) -> None:
    """Install rclpy and the messages if ROS 2 is not sourced."""
    if "ROS_DISTRO" not in os.environ:
        pip(python, "-r", "requirements/ros.txt")
        run([python, "underlay/build.py"])


def pip(python: Path, *what: str, **environment: str) -> None:
    """Install packages."""
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    run([*command, *what], **environment)


def copy_sources(folder: Path) -> None:
    """Copy the files of this checkout that git does not ignore."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # not one that was removed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def _processor_time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Measurement


def least(step: Callable[[], Cost], repeats: int) -> Cost:
    """Repeat a step, and return its minimum processor time and minimum wall time."""
    return Cost(*map(min, zip(*(step() for _ in range(repeats)), strict=True)))


def measure_library(
    table: Table, environment: Environment, repeats: int, *, again: bool = False
) -> None:
    """Measure the steps that need no ROS."""
    add = adder(table)
    with TemporaryDirectory() as cache:
        answer, named, cycle = environment.run(FURTHER_ANSWERS, NUMBA_CACHE_DIR=cache)
        add("first answer of IkSolver(robot).solve, cold", answer, 4.0)
        add("then first answer of ctp+sd+svf, cold", named, 8.0)
        add("then first cycle of a Controller, cold", cycle, 8.0)
        second = least(lambda: environment.run(FIRST_ANSWER, NUMBA_CACHE_DIR=cache)[0], repeats)
    with TemporaryDirectory() as cache:
        kept = {} if again else {"XDG_CACHE_HOME": cache}
        kernels = environment.run(ALL_KERNELS, NUMBA_CACHE_DIR=cache, **kept)[0]
    add(
        f"installing the package{' again' if again else ''}, and all kernels, cold",
        environment.packaging.and_then(kernels),
        8.0 if again else 35.0,
    )
    add("second process: import, robot, solver, first solve", second, 0.4)
    add("for comparison: import numba", least(lambda: environment.run(NUMBA)[0], repeats))


def measure_node(table: Table, environment: Environment, repeats: int) -> None:
    """Measure the node."""
    add = adder(table)
    with TemporaryDirectory() as cache:
        add("ik_node ready, cold", environment.start_node(NUMBA_CACHE_DIR=cache), 5.0)
        warm = least(lambda: environment.start_node(NUMBA_CACHE_DIR=cache), repeats)
        add("ik_node ready, warm", warm, 0.8)


def adder(table: Table) -> Callable[..., None]:
    """Return a function that adds a row to a table."""

    def add(step: str, cost: Cost, mark: float | None = None) -> None:
        table.rows.append((step, *cost, "-" if mark is None else f"{mark:g}"))

    return add


def main() -> None:
    """Measure, and show."""
    options = parser(__doc__, repeats=10)
    options.add_argument(
        "--here", action="store_true", help="measure this environment instead of making one"
    )
    options.add_argument(
        "--again", action="store_true", help="install with the kernels that this user compiled"
    )
    given = options.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # later processes find it, as a user's do
    table = Table(f"warm: least of {given.repeats}", COLUMNS)
    if given.here:
        measure_library(table, current_environment(), given.repeats, again=given.again)
        measure_node(table, current_environment(), given.repeats)
    else:
        with new_environment(again=given.again) as environment:
            measure_library(table, environment, given.repeats, again=given.again)
            install_ros(environment.python)
            measure_node(table, environment, given.repeats)
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
