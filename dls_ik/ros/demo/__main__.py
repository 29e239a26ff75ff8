# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Demonstration ``python -m dls_ik.ros.demo``: the WAM arm solved and moving by ``ik_node``.

The node runs in a separate process. This process is an ordinary client, and checks the answers with
the kinematics of another library. ``scripts/demo`` sets up the environment and runs the module.
"""

import importlib
import json
import math
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from math import pi
from pathlib import Path
from typing import Any, TextIO

import click
from rich.console import Console
from rich.markup import escape

from dls_ik.errors import DlsIkError
from dls_ik.model.files import share_file
from dls_ik.model.robot import RobotModel
from dls_ik.ros.client import IkClient, TargetPublisher
from dls_ik.ros.client.connection import NOT_THERE, NoAnswerError
from dls_ik.ros.demo.measure import (
    LAP,
    READY,
    SPEED_WINDOW,
    PoseCheck,
    StateRecorder,
    StreamRecording,
    ask_poses,
    demo_poses,
    evaluate,
    independent_check,
    joint_uses,
    stream,
    target_path,
)
from dls_ik.ros.demo.obstacle import (
    MIN_DISTANCE,
    STAYS,
    AppearingBox,
    box_pose,
    evaluate_encounter,
    obstacle_plan,
)
from dls_ik.ros.demo.report import (
    Criterion,
    Load,
    LoadMeter,
    answers_table,
    criteria,
    criteria_lines,
    encounter_table,
    has_passed,
    joints_table,
    save_pictures,
    save_report,
    timing_table,
    tracking_table,
)
from dls_ik.ros.util import ChildProcess, stay_alone

DEMO_START_TIMEOUT = 240.0  # [s] the first start compiles for about 35 s, longer on a busy machine
START_REMINDER_PERIOD = 10.0  # [s]
ACCELERATION = 10.0  # [rad/s^2] high, as nobody stands next to the simulated arm
PROCESS_POLL_PERIOD = 0.2  # [s]
NUM_TAIL_LINES = 8  # last lines of the log in an error message
COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")
LOGGED = re.compile(r"\[(?:INFO|WARN|ERROR|FATAL)\] \[[\d.]+\] \[[\w.]+\]: (.*)")


@dataclass
class Demonstration:
    """The demonstration: runs its parts, and reports their results.

    Raises:
        DlsIkError: If a part cannot be run; the message gives the reason.
    """

    output: Path
    seconds: float  # duration of the stream
    rate: float  # [Hz] rate of the targets and of the node's loop
    method: str | None  # method of the node's loop; None: its default
    json: Path | None
    quiet: bool

    def __post_init__(self) -> None:
        self.console = Console(quiet=self.quiet, highlight=False)
        self.robot = RobotModel.wam()
        self.check = independent_check(self.robot)
        self.plan = obstacle_plan(self.robot, 2.0 * pi * self.seconds / LAP, self.rate)

    def run(self) -> int:
        """Run the demonstration and return the exit code."""
        begin = time.monotonic()
        self.output.mkdir(parents=True, exist_ok=True)
        self._headline("Starting ik_node with the WAM arm")
        with running_node(self) as (publisher, pid):
            answers = self._ask(publisher)
            meter = LoadMeter(pid)
            recording = self._stream(publisher)
            past_box = self._stream_past_a_box(publisher)
            load = meter.result()
        found = self._report(answers, recording, past_box, load)
        self.console.print()
        _conclude(found, load, time.monotonic() - begin)
        return 0 if has_passed(found) else 1

    def _ask(self, publisher: TargetPublisher) -> list[PoseCheck]:
        self._headline("1  A dozen poses for /compute_ik")
        with IkClient(publisher.node, joint_names=self.robot.joint_names) as client:
            answers = list(ask_poses(client, self.robot, demo_poses(self.robot), self.check))
        self.console.print(answers_table(self.console, answers, self.check.name))
        self.console.print(
            "[dim]solve: the same request to IkSolver in this process; the service carries no "
            f"time. Errors by {self.check.name}, which knows nothing of the solver.[/]"
        )
        return answers

    def _stream(self, publisher: TargetPublisher) -> StreamRecording:
        console, rate, seconds = self.console, self.rate, self.seconds
        self._headline("2  A figure of eight, streamed on target_pose")
        recorder = StateRecorder(publisher.node, self.robot.joint_names)
        path = target_path(self.robot, recorder.start(), rate, seconds)
        console.print(
            f"{path.counted / rate:.1f} s to get there gently, then {seconds:g} s "
            f"at {rate:g} Hz that count "
        )
        tick = lambda: console.print(".", end="")  # noqa: E731
        recording = stream(publisher, recorder, path, self.robot.base, rate, tick)
        console.print()
        return recording

    def _stream_past_a_box(self, publisher: TargetPublisher) -> StreamRecording:
        self._headline("3  The same figure, and a box that appears in its way")
        recorder = StateRecorder(publisher.node, self.robot.joint_names)
        recorder.start()
        box = AppearingBox(publisher, self.robot.base, box_pose(self.robot))
        box.wait()
        plan = self.plan
        self.console.print(f"for {STAYS:g} s; the node keeps {1e3 * MIN_DISTANCE:g} mm from it ")
        tick = lambda: self.console.print(".", end="")  # noqa: E731
        events = box.events(plan, self.rate)
        frame, rate = self.robot.base, self.rate
        recording = stream(publisher, recorder, plan.path, frame, rate, tick, events)
        self.console.print()
        return recording

    def _report(
        self,
        answers: list[PoseCheck],
        recording: StreamRecording,
        past_box: StreamRecording,
        load: Load,
    ) -> list[Criterion]:
        """Print and save the results of the recordings, and return the checks."""
        console = self.console
        motion, tracking = evaluate(recording, self.check)
        uses = joint_uses(self.robot, motion)
        console.print(tracking_table(tracking))
        console.print(timing_table(tracking))
        console.print(joints_table(console, uses))
        speed = f"speed: greatest over {SPEED_WINDOW} states, of the limit"
        console.print(f"[dim]room: least distance to a limit; {speed}[/]")
        encounter = evaluate_encounter(past_box, self.plan, self.robot, self.check)
        console.print(encounter_table(encounter))
        self._headline("4  Pictures")
        for picture in save_pictures(self.robot, motion, tracking, encounter, self.output):
            console.print(str(picture), soft_wrap=True)
        found = criteria(answers, tracking, uses, encounter, self.rate)
        if self.json is not None:
            save_report(self.json, answers, tracking, uses, encounter, found, load)
            console.print(str(self.json), soft_wrap=True)
        return found

    def _headline(self, text: str) -> None:
        self.console.print(f"\n[bold]{text}[/]")


def _conclude(found: list[Criterion], load: Load, seconds: float) -> None:
    console = Console(highlight=False)  # printed even with --quiet
    console.print(criteria_lines(console, found))
    failed = [criterion for criterion in found if not criterion.holds]
    late = sum(criterion.by_the_clock for criterion in failed)
    if late:
        why = "a busy machine" if load.is_busy else "although the machine was not busy"
        console.print(f"[yellow]{late} by the clock did not hold[/], {why}: {load}")
    deciding = sum(not criterion.by_the_clock for criterion in found)
    wrong = len(failed) - late
    verdict = f"{wrong} of {deciding} checks failed" if wrong else "all checks passed"
    console.print(f"[bold]{verdict}[/], {seconds:.0f} s; {load}")


# Process of the node


def node_command(settings: Path) -> list[str]:
    """Return the command that runs the node with this Python interpreter and a parameter file."""
    script = Path(sys.executable).with_name("ik_node")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "dls_ik.ros.node"]
    return [*program, "--ros-args", "--params-file", str(settings)]


class NodeLog:
    """Log of a program: writes each output line to a file, and passes it to a function.

    Args:
        file: File open for writing.
        echo: Function called with each line; the attribute may be set to None later.
    """

    def __init__(self, file: TextIO, echo: Callable[[str], None]) -> None:
        self.echo: Callable[[str], None] | None = echo
        self.tail: deque[str] = deque(maxlen=NUM_TAIL_LINES)
        self._file = file

    def __call__(self, line: str) -> None:
        """Write a line of output."""
        text = COLOUR_CODES.sub("", line)
        self._file.write(text + "\n")
        self._file.flush()
        self.tail.append(text)
        if self.echo is not None:
            self.echo(text)


@contextmanager
def running_node(demo: Demonstration) -> Iterator[tuple[TargetPublisher, int]]:
    """Start the node; when it is ready, yield a client of its topics, and its process id.

    Raises:
        DlsIkError: If the node or a call in the context fails. If the node has exited, the message
            includes the last lines of its log.
    """
    parameters: dict[str, Any] = {"robot": "wam", "rate": demo.rate}
    parameters |= {"initial_positions": list(READY), "acceleration": [ACCELERATION]}
    parameters |= {"stream_avoid_collisions": "required", "min_distance": MIN_DISTANCE}
    parameters["robot_description_semantic"] = share_file("urdf", "wam7.srdf").read_text()
    if demo.method is not None:
        parameters["stream_method"] = demo.method
    settings = demo.output / "ik_node.yaml"
    settings.write_text(json.dumps({"/**": {"ros__parameters": parameters}}))
    path = demo.output / "ik_node.log"

    def echo(line: str) -> None:
        if logged := LOGGED.match(line):  # all other lines are written to the log file only
            demo.console.print(f"[dim]ik_node: {escape(logged[1])}[/]", soft_wrap=True)

    with (
        path.open("w") as file,
        ChildProcess(node_command(settings), log := NodeLog(file, echo)) as node,
        TargetPublisher(patience=PROCESS_POLL_PERIOD) as publisher,
    ):
        try:
            importlib.import_module(
                "matplotlib.backends.backend_agg"
            )  # takes long; the node starts at the same time
            wait_until_ready(node, publisher, demo.console)
            log.echo = None
            yield publisher, node.process.pid
            if not node.is_running:
                raise DlsIkError("the node is gone")
        except DlsIkError as error:
            time.sleep(0.5)  # the last lines of the log may still arrive
            if node.is_running:
                raise DlsIkError(f"{error} (its log: {path})") from error
            ending = "\n  ".join([f"{error}; ik_node ended with code {node.exit_code}", *log.tail])
            raise DlsIkError(f"{ending}\n  (its log: {path})") from error


def wait_until_ready(node: ChildProcess, publisher: TargetPublisher, console: Console) -> None:
    """Wait until the node accepts targets and has its scene.

    Raises:
        DlsIkError: If the node exits, or is not ready within `DEMO_START_TIMEOUT`.
    """
    begin, reminder = time.monotonic(), START_REMINDER_PERIOD
    while True:
        try:
            publisher.wait()
            if "targets wait" in publisher.monitor.message:
                raise NoAnswerError(publisher.monitor.message)
            break
        except NOT_THERE as error:
            waited = time.monotonic() - begin
            if not node.is_running:
                raise DlsIkError("the node did not start") from error
            if waited > DEMO_START_TIMEOUT:
                raise DlsIkError(f"not ready after {DEMO_START_TIMEOUT:.0f} s: {error}") from error
        if waited > reminder:
            reminder += START_REMINDER_PERIOD
            console.print(f"[dim]still starting after {waited:.0f} s ...[/]")
    console.print(f"ready after {time.monotonic() - begin:.1f} s")


# Command line

EPILOG = (
    "Exit code: 0 if every check at the end holds but those by the clock, which a busy machine may "
    "fail and which do not decide; 1 if one does not, or the node did not start; "
    "2 for a wrong option, 130 after Ctrl-C. The node's log is ik_node.log beside the pictures."
)


def _not_nan(context: click.Context, param: click.Parameter, value: float) -> float:
    """Return the value, or refuse NaN, which click accepts in every range."""
    if math.isnan(value):
        raise click.BadParameter("nan is no number.")
    return value


@click.command(epilog=EPILOG)
@click.option(
    "--output", type=click.Path(path_type=Path), default="demo_output", metavar="DIR",
    show_default=True, help="Folder for the pictures.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(1.0, 600.0), default=7.0, show_default=True,
    callback=_not_nan, help="Duration of the stream.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(10.0, 1000.0), default=100.0, show_default=True,
    callback=_not_nan, help="Targets per second.",
)  # fmt: skip
@click.option("--method", help="Method that follows the target, such as jd or svf+ed.")
@click.option(
    "--json", type=click.Path(path_type=Path), metavar="FILE", help="Save all figures as JSON."
)
@click.option("--quiet", is_flag=True, help="Print the checks at the end only.")
def main(**given: Any) -> None:
    """See the WAM arm solved and moving.

    Starts a real ik_node as a process of its own, asks compute_ik for a dozen poses, some of them
    out of reach, and checks every answer; streams a figure of eight on target_pose and follows the
    joint_states that come back, without and with a box on the path; saves pictures of the motion.
    """
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="replace")  # a terminal may be limited to ASCII
    stay_alone()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # also stops the node
    try:
        sys.exit(Demonstration(**given).run())
    except KeyboardInterrupt:
        code, message = 128 + signal.SIGINT, "interrupted"
    except (DlsIkError, OSError) as error:
        code, message = 1, str(error)
    print(f"demo: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main(prog_name="scripts/demo")
