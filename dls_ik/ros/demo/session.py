"""The demonstration from start to end: the node's process, the two parts, the report."""

import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape

from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.child import ChildProcess
from dls_ik.ros.client import IkClient, TargetPublisher
from dls_ik.ros.client.connection import NOT_THERE
from dls_ik.ros.demo import Options
from dls_ik.ros.demo.poses import (
    IndependentCheck,
    PoseCheck,
    ask_poses,
    demo_poses,
    independent_check,
)
from dls_ik.ros.demo.report import (
    Criterion,
    Load,
    answers_table,
    criteria,
    criteria_lines,
    has_passed,
    joints_table,
    save_pictures,
    save_report,
    timing_table,
    tracking_table,
)
from dls_ik.ros.demo.stream import (
    READY,
    SPEED_WINDOW,
    StateRecorder,
    StreamRecording,
    evaluate,
    joint_uses,
    stream,
    target_path,
)

PATIENCE = 240.0  # [s] the first start compiles for about 35 s, longer on a busy machine
REMINDER = 10.0  # [s]
POLL = 0.2  # [s]
TAIL = 8  # lines of the log
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LOGGED = re.compile(r"\[(?:INFO|WARN|ERROR|FATAL)\] \[[\d.]+\] \[[\w.]+\]: (.*)")


class Demonstration:
    """The two parts and their report."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.console = Console(quiet=options.quiet, highlight=False)
        self.robot = RobotModel.wam()
        self.check: IndependentCheck = independent_check(self.robot)

    def ask(self, publisher: TargetPublisher) -> list[PoseCheck]:
        """Ask for all poses and print the answers.

        Raises:
            DlsIkError: no answer came; as all methods here.
        """
        self.headline("1  A dozen poses for /compute_ik")
        with IkClient(publisher.node, joint_names=self.robot.joint_names) as client:
            poses = demo_poses(self.robot)
            answers = list(ask_poses(client, self.robot, poses, self.check))
        self.console.print(answers_table(self.console, answers, self.check.name))
        self.console.print(
            "[dim]solve: the same request to IkSolver in this process; the service carries no "
            f"time. Errors by {self.check.name}, which knows nothing of the solver.[/]"
        )
        return answers

    def stream(self, publisher: TargetPublisher) -> StreamRecording:
        """Stream the figure of eight."""
        options, console = self.options, self.console
        self.headline("2  A figure of eight, streamed on target_pose")
        recorder = StateRecorder(publisher.node, self.robot.joint_names)
        path = target_path(self.robot, recorder.start(), options.rate, options.seconds)
        console.print(
            f"{path.counted / options.rate:.1f} s to get there gently, then {options.seconds:g} s "
            f"at {options.rate:g} Hz that count "
        )
        recording = stream(
            publisher, recorder, path, self.robot.base, options.rate,
            lambda: console.print(".", end=""),
        )  # fmt: skip
        console.print()
        return recording

    def report(
        self, answers: list[PoseCheck], recording: StreamRecording, load: Load
    ) -> list[Criterion]:
        """Print and save the figures of the recording."""
        options, console = self.options, self.console
        motion, tracking = evaluate(recording, self.check)
        uses = joint_uses(self.robot, motion)
        console.print(tracking_table(tracking))
        console.print(timing_table(tracking))
        console.print(joints_table(console, uses))
        speed = f"speed: greatest over {SPEED_WINDOW} states, of the limit"
        console.print(f"[dim]room: least distance to a limit; {speed}[/]")
        self.headline("3  Pictures")
        for picture in save_pictures(self.robot, motion, tracking, options.output):
            console.print(str(picture), soft_wrap=True)
        found = criteria(answers, tracking, uses, options.rate)
        if options.json is not None:
            save_report(options.json, answers, tracking, uses, found, load)
            console.print(str(options.json), soft_wrap=True)
        return found

    def headline(self, text: str) -> None:
        """Print the title of a part."""
        self.console.print(f"\n[bold]{text}[/]")


def run(options: Options) -> int:
    """Run the demonstration; return the exit code.

    Raises:
        DlsIkError: it could not be done, with the reason.
    """
    begin = time.monotonic()
    demo = Demonstration(options)
    options.output.mkdir(parents=True, exist_ok=True)
    demo.headline("Starting ik_node with the WAM arm")
    with running_node(options, demo.console) as (publisher, pid):
        answers = demo.ask(publisher)
        meter = LoadMeter(pid)
        recording = demo.stream(publisher)
        load = meter.result()
    found = demo.report(answers, recording, load)
    demo.console.print()
    _conclude(found, load, time.monotonic() - begin)
    return 0 if has_passed(found) else 1


def _conclude(found: list[Criterion], load: Load, seconds: float) -> None:
    console = Console(highlight=False)  # with --quiet too
    console.print(criteria_lines(console, found))
    deciding = [criterion for criterion in found if not criterion.by_the_clock]
    failed = sum(not criterion.holds for criterion in deciding)
    late = sum(criterion.by_the_clock and not criterion.holds for criterion in found)
    if late:
        why = "a busy machine" if load.is_busy else "although the machine was not busy"
        console.print(f"[yellow]{late} by the clock did not hold[/], {why}: {load}")
    verdict = f"{failed} of {len(deciding)} checks failed" if failed else "all checks passed"
    console.print(f"[bold]{verdict}[/], {seconds:.0f} s; {load}")


# The node's process


def node_command(parameters: dict[str, Any]) -> list[str]:
    """Return the command that runs the node of this Python with parameters."""
    script = Path(sys.executable).with_name("ik_node")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "dls_ik.ros.node"]
    settings = [f"{name}:={value}" for name, value in parameters.items()]
    return [*program, "--ros-args", *(word for setting in settings for word in ("-p", setting))]


class NodeLog:
    """Takes the lines that a program prints: into a file, and to the console for a while.

    Args:
        file: open for writing.
        echo: called with each line until it is set to None.
    """

    def __init__(self, file: TextIO, echo: Callable[[str], None]) -> None:
        self.echo: Callable[[str], None] | None = echo
        self.tail: deque[str] = deque(maxlen=TAIL)
        self._file = file

    def __call__(self, line: str) -> None:
        """Take a line."""
        text = COLOURS.sub("", line)
        self._file.write(text + "\n")
        self._file.flush()
        self.tail.append(text)
        if self.echo is not None:
            self.echo(text)


@contextmanager
def running_node(options: Options, console: Console) -> Iterator[tuple[TargetPublisher, int]]:
    """Start the node; hand over a client of its topics once it is ready, and its process id.

    Raises:
        DlsIkError: it did not become ready, or something failed later; the message ends with the
            last lines of the node's log if the node has ended.
    """
    parameters = {"robot": "wam", "rate": options.rate, "initial_positions": list(READY)}
    if options.method is not None:
        parameters["stream_method"] = options.method
    path = options.output / "ik_node.log"

    def echo(line: str) -> None:
        if logged := LOGGED.match(line):  # other lines are in the log only
            console.print(f"[dim]ik_node: {escape(logged[1])}[/]", soft_wrap=True)

    with (
        path.open("w") as file,
        ChildProcess(node_command(parameters), log := NodeLog(file, echo)) as node,
        TargetPublisher(patience=POLL) as publisher,
    ):
        try:
            wait_until_ready(node, publisher, console)
            log.echo = None
            yield publisher, node.process.pid
            if not node.is_running:
                raise DlsIkError("the node is gone")
        except DlsIkError as error:
            time.sleep(0.5)  # for the last lines
            if node.is_running:
                raise DlsIkError(f"{error} (its log: {path})") from error
            ending = "\n  ".join([f"{error}; ik_node ended with code {node.exit_code}", *log.tail])
            raise DlsIkError(f"{ending}\n  (its log: {path})") from error


def wait_until_ready(
    node: ChildProcess, publisher: TargetPublisher, console: Console, patience: float = PATIENCE
) -> None:
    """Wait until the node takes targets and reports the tip.

    Raises:
        DlsIkError: the node has ended, or took too long.
    """
    begin = time.monotonic()
    reminder = REMINDER
    while True:
        try:
            publisher.wait()
            break
        except NOT_THERE as error:
            waited = time.monotonic() - begin
            if not node.is_running:
                raise DlsIkError("the node did not start") from error
            if waited > patience:
                raise DlsIkError(f"not ready after {patience:.0f} s: {error}") from error
        if waited > reminder:
            reminder += REMINDER
            console.print(f"[dim]still starting after {waited:.0f} s ...[/]")
    console.print(f"ready after {time.monotonic() - begin:.1f} s")


# The load of the machine


class LoadMeter:
    """Measures the load from its construction on.

    Args:
        own: other processes that do not count as other programs.
    """

    def __init__(self, *own: int) -> None:
        self._own = own
        self._begin = time.monotonic()
        self._before = _busy_time(), self.own_time()

    def result(self) -> Load:
        """Return the load since then."""
        cores = os.cpu_count() or 1
        average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        busy, before = _busy_time(), self._before[0]
        if busy is None or before is None:
            return Load(cores, average, None)
        others = busy - before - (self.own_time() - self._before[1])
        elapsed = max(time.monotonic() - self._begin, 1e-9)
        return Load(cores, average, min(max(others / (elapsed * cores), 0.0), 1.0))

    def own_time(self) -> float:
        """Return the processor time [s] of this process and its own others."""
        return time.process_time() + sum(map(_process_time, self._own))


def _busy_time() -> float | None:
    """Return the processor time [s] of all programs and other machines here, since the boot."""
    try:
        fields = [float(word) for word in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]]
    except (OSError, ValueError):
        return None
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # without idle, iowait


def _process_time(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (float(fields[11]) + float(fields[12])) / os.sysconf("SC_CLK_TCK")
