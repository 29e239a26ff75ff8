# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Program ``python -m dls_ik.ros.demo``, which demonstrates ``ik_node`` with the WAM arm.

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

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.files import share_file
from dls_ik.model.robot import RobotModel
from dls_ik.ros.client import IkClient, TargetPublisher
from dls_ik.ros.client.connection import NOT_THERE, NoAnswerError
from dls_ik.ros.client.target_publisher import UNKNOWN_STATE
from dls_ik.ros.demo.measure import (
    LAP,
    READY,
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
    criteria,
    has_passed,
    machine_load,
    print_answers,
    print_criteria,
    print_tracking,
    save_pictures,
    save_report,
)
from dls_ik.ros.util import ChildProcess, stay_alone
from dls_ik.servo.state import ServoState
from dls_ik.tables import print_heading, print_note

RECEIPT_TIMEOUT = 60.0  # [s] maximum time until the node receives the first target
DEMO_START_TIMEOUT = 240.0  # [s] the first start compiles for about 35 s, longer on a busy machine
START_REMINDER_PERIOD = 10.0  # [s] time between messages that the node is still starting
ACCELERATION = 10.0  # [rad/s^2] high, as nobody stands next to the simulated arm
PROCESS_POLL_PERIOD = 0.2  # [s] time between checks whether the node is ready
NUM_TAIL_LINES = 8  # number of last lines of the node's log in an error message
COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")
LOGGED = re.compile(r"\[(?:INFO|WARN|ERROR|FATAL)\] \[[\d.]+\] \[[\w.]+\]: (.*)")


@dataclass
class Demonstration:
    """Demonstration of the node: requests poses, streams targets, and reports the results."""

    output: Path  # folder for the pictures and the node's log
    seconds: float  # [s] duration of the evaluated stream
    rate: float  # [Hz] rate of the targets and of the node's control loop
    method: str | None  # method of the node's control loop; None: default method of the node
    json: Path | None  # file for all results; None: no file
    quiet: bool  # whether only the checks are printed

    def __post_init__(self) -> None:
        self.console = Console(quiet=self.quiet, highlight=False)
        self.robot = RobotModel.wam()
        self.check = independent_check(self.robot)
        self.plan = obstacle_plan(self.robot, 2.0 * pi * self.seconds / LAP, self.rate)

    def run(self) -> int:
        """Run the demonstration; return the exit code, 0 if it has passed and 1 otherwise.

        Raises:
            DlsIkError: If the node fails; the message gives the reason.
        """
        begin = time.monotonic()
        self.output.mkdir(parents=True, exist_ok=True)
        print_heading(self.console, "Starting ik_node with the WAM arm")
        with running_node(self) as publisher:
            box = AppearingBox(publisher, self.robot.base, box_pose(self.robot))
            answers = self._ask(publisher)
            recording = self._stream(publisher)
            past_box = self._stream_past(box, publisher)
            load = machine_load()
        found = self._report(answers, recording, past_box, load)
        self.console.print()
        _conclude(found, load, time.monotonic() - begin)
        return 0 if has_passed(found) else 1

    def _ask(self, publisher: TargetPublisher) -> list[PoseCheck]:
        print_heading(self.console, "1  A dozen poses for /compute_ik")
        with IkClient(publisher.node, joint_names=self.robot.joint_names) as client:
            answers = list(ask_poses(client, self.robot, demo_poses(self.robot), self.check))
        print_answers(self.console, answers)
        words = f"error: position error, computed by {self.check.name} instead of the solver"
        print_note(self.console, words)
        return answers

    def _stream(self, publisher: TargetPublisher) -> StreamRecording:
        console, rate, seconds = self.console, self.rate, self.seconds
        print_heading(self.console, "2  A figure of eight, streamed on target_pose")
        recorder = StateRecorder(publisher.node, self.robot.joint_names)
        path = target_path(self.robot, recorder.start(), rate, seconds)
        console.print(
            f"{path.first_evaluated / rate:.1f} s to approach the figure slowly, then {seconds:g} "
            f"s at {rate:g} Hz that are evaluated "
        )
        self._await_receipt(publisher, path.poses[0])
        tick = lambda: console.print(".", end="")  # noqa: E731
        recording = stream(publisher, recorder, path, self.robot.base, rate, tick)
        console.print()
        return recording

    def _await_receipt(self, publisher: TargetPublisher, T: Array) -> None:
        """Send a target (4, 4) until the node has received one; DDS may drop the first targets.

        Raises:
            NoAnswerError: If the node has received no target within `RECEIPT_TIMEOUT`.
        """
        deadline = time.monotonic() + RECEIPT_TIMEOUT
        while publisher.monitor.state in (UNKNOWN_STATE, ServoState.WAITING.name):
            if time.monotonic() > deadline:
                raise NoAnswerError(f"the node received no target within {RECEIPT_TIMEOUT:g} s")
            publisher.send_pose(T, self.robot.base)
            time.sleep(1.0 / self.rate)

    def _stream_past(self, box: AppearingBox, publisher: TargetPublisher) -> StreamRecording:
        print_heading(self.console, "3  The same figure of eight, with a box that appears on it")
        recorder = StateRecorder(publisher.node, self.robot.joint_names)
        recorder.start()
        box.wait()
        plan = self.plan
        self.console.print(
            f"the box appears for {STAYS:g} s; the node keeps a distance of "
            f"{1e3 * MIN_DISTANCE:g} mm "
        )
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
        """Print and save all results; return the checks.

        Args:
            answers: Checked answers of ``compute_ik``.
            recording: Recording of the stream without the box.
            past_box: Recording of the stream with the box.
            load: Load of the machine during the streams.
        """
        console = self.console
        motion, tracking = evaluate(recording, self.check)
        uses = joint_uses(self.robot, motion)
        print_tracking(console, tracking)
        encounter = evaluate_encounter(past_box, self.plan, self.robot, self.check)
        print_heading(self.console, "4  Pictures")
        for picture in save_pictures(self.robot, motion, tracking, encounter, self.output):
            console.print(str(picture), soft_wrap=True)
        found = criteria(answers, tracking, uses, encounter, self.rate)
        if self.json is not None:
            save_report(self.json, answers, tracking, uses, encounter, found, load)
            console.print(str(self.json), soft_wrap=True)
        return found


def _conclude(found: list[Criterion], load: Load, seconds: float) -> None:
    console = Console(highlight=False)  # printed even with --quiet
    print_criteria(console, found)
    failed = [criterion for criterion in found if not criterion.holds]
    late = sum(criterion.depends_on_time for criterion in failed)
    if late:
        why = "the machine was busy" if load.is_busy else "although the machine was not busy"
        console.print(
            f"[yellow]{late} of the checks that depend on time did not hold[/]; {why}: {load}"
        )
    deciding = sum(not criterion.depends_on_time for criterion in found)
    wrong = len(failed) - late
    verdict = f"{wrong} of {deciding} checks failed" if wrong else "all checks passed"
    console.print(f"[bold]{verdict}[/], {seconds:.0f} s; {load}")


# Process of the node


def node_command(settings: Path) -> list[str]:
    """Return the command that runs ``ik_node`` with this Python interpreter.

    Args:
        settings: ROS parameter file of the node.
    """
    script = Path(sys.executable).with_name("ik_node")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "dls_ik.ros.node"]
    return [*program, "--ros-args", "--params-file", str(settings)]


class NodeLog:
    """Log of a program: writes each output line to a file, and passes the line to a function.

    Args:
        file: File open for writing.
        echo: Function that is called with each line. The attribute `echo` may be set to None later.
    """

    def __init__(self, file: TextIO, echo: Callable[[str], None]) -> None:
        self.echo: Callable[[str], None] | None = echo
        self.tail: deque[str] = deque(maxlen=NUM_TAIL_LINES)
        self._file = file

    def __call__(self, line: str) -> None:
        """Write a line of output to the file, without colours, and pass it to `echo`."""
        text = COLOUR_CODES.sub("", line)
        self._file.write(text + "\n")
        self._file.flush()
        self.tail.append(text)
        if self.echo is not None:
            self.echo(text)


@contextmanager
def running_node(demo: Demonstration) -> Iterator[TargetPublisher]:
    """Start the node of a demonstration for a ``with`` block, and stop it at the end of the block.

    The block starts when the node is ready; its value is a publisher of targets for the node.

    Args:
        demo: Demonstration; its rate, method and output folder are used.

    Raises:
        DlsIkError: If the node fails, or if the block raises this error. The message names the log
            file of the node, and includes the last lines of the log if the node has exited.
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
        if logged := LOGGED.match(line):  # other output is written to the log file only
            demo.console.print(f"[dim]ik_node: {escape(logged[1])}[/]", soft_wrap=True)

    with (
        path.open("w") as file,
        ChildProcess(node_command(settings), log := NodeLog(file, echo)) as node,
        TargetPublisher(patience=PROCESS_POLL_PERIOD) as publisher,
    ):
        try:
            # Matplotlib is imported here because the import takes long and the node starts anyway.
            importlib.import_module("matplotlib.backends.backend_agg")
            wait_until_ready(node, publisher, demo.console)
            log.echo = None
            yield publisher
            if not node.is_running:
                raise DlsIkError("the node has exited before the demonstration was complete")
        except DlsIkError as error:
            time.sleep(0.5)  # the last lines of the log may still arrive
            if node.is_running:
                raise DlsIkError(f"{error} (log of the node: {path})") from error
            ending = "\n  ".join([f"{error}; ik_node exited with code {node.exit_code}", *log.tail])
            raise DlsIkError(f"{ending}\n  (log of the node: {path})") from error


def wait_until_ready(node: ChildProcess, publisher: TargetPublisher, console: Console) -> None:
    """Wait until the node accepts targets and has built its planning scene.

    Args:
        node: Process of the node.
        publisher: Publisher of targets for the node.
        console: Console for messages about the progress.

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
                raise DlsIkError(
                    f"the node was not ready after {DEMO_START_TIMEOUT:.0f} s: {error}"
                ) from error
        if waited > reminder:
            reminder += START_REMINDER_PERIOD
            console.print(f"[dim]the node is still starting after {waited:.0f} s ...[/]")
    console.print(f"node ready after {time.monotonic() - begin:.1f} s")


# Command line

EPILOG = (
    "Exit code: 0 if all checks hold, where checks that depend on time are ignored, because they "
    "may fail on a busy machine; 1 if another check fails, or if the node does not start; 2 for a "
    "wrong option; 130 after Ctrl-C. The log of the node is ik_node.log in the folder of the "
    "pictures."
)


def _not_nan(context: click.Context, param: click.Parameter, value: float) -> float:
    """Return the value of an option; refuse NaN, which click accepts in every range.

    Raises:
        click.BadParameter: If the value is NaN.
    """
    if math.isnan(value):
        raise click.BadParameter("must be a number; got nan.")
    return value


@click.command(epilog=EPILOG)
@click.option(
    "--output", type=click.Path(path_type=Path), default="demo_output", metavar="DIR",
    show_default=True, help="Folder for the pictures and the log of the node.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(1.0, 600.0), default=7.0, show_default=True,
    callback=_not_nan, help="Duration of the evaluated stream [s].",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(10.0, 1000.0), default=100.0, show_default=True,
    callback=_not_nan, help="Rate of the targets and of the node's control loop [Hz].",
)  # fmt: skip
@click.option("--method", help="Method that the node uses for the stream, such as jd or svf+ed.")
@click.option(
    "--json", type=click.Path(path_type=Path), metavar="FILE", help="Save all results as JSON."
)
@click.option("--quiet", is_flag=True, help="Print only the checks at the end.")
def main(**given: Any) -> None:
    """Demonstrate ik_node with the WAM arm.

    Starts ik_node as a separate process. Requests a dozen poses from compute_ik, some of them out
    of reach, and checks all answers. Streams a figure of eight on target_pose and evaluates the
    joint_states of the node, first without and then with a box on the path. Saves pictures of the
    motion.
    """
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="replace")  # a terminal may be limited to ASCII
    stay_alone()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # exit stops the node
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
