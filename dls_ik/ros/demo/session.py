"""The demonstration from start to end."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.demo.ask import Answer, IndependentCheck, answers, independent_check, poses
from dls_ik.ros.demo.node import Client, NodeProcess, node_command, now
from dls_ik.ros.demo.options import Options
from dls_ik.ros.demo.report import (
    answers_table,
    criteria_lines,
    joints_table,
    save_pictures,
    save_report,
    timing_table,
    tracking_table,
)
from dls_ik.ros.demo.stream import (
    READY,
    WINDOW,
    Recording,
    joint_uses,
    motion_of,
    starting_point,
    stream,
    targets,
)
from dls_ik.ros.demo.verdict import Criterion, Load, LoadMeter, criteria, has_passed

PATIENCE = 240.0  # [s] the very first start compiles for about 35 s, longer on a busy machine
REMINDER = 10.0  # [s]
LOGGED = re.compile(r"\[(?:INFO|WARN|ERROR|FATAL)\] \[[\d.]+\] \[[\w.]+\]: (.*)")


@dataclass(frozen=True)
class Stage:
    """What every part needs."""

    options: Options
    console: Console  # says nothing with --quiet
    robot: RobotModel
    check: IndependentCheck


def run(options: Options) -> int:
    """Do all of it; return the exit code.

    Raises:
        DlsIkError: it could not be done; the message says why.
    """
    begin = time.monotonic()
    robot = RobotModel.wam()
    console = Console(quiet=options.quiet, highlight=False)
    stage = Stage(options, console, robot, independent_check(robot))
    options.output.mkdir(parents=True, exist_ok=True)
    _headline(stage, "Starting ik_node with the WAM arm")
    with running_node(options, robot, console) as (client, pid):
        answered = _ask(stage, client)
        meter = LoadMeter(pid)
        recording = _stream(stage, client)
        load = meter.result()
    found = _report(stage, answered, recording, load)
    console.print()
    _conclude(found, load, time.monotonic() - begin)
    return 0 if has_passed(found) else 1


def _ask(stage: Stage, client: Client) -> list[Answer]:
    _headline(stage, "1  A dozen poses for /compute_ik")
    answered = list(answers(client, poses(stage.robot), stage.check))
    stage.console.print(answers_table(stage.console, answered, stage.check.name))
    stage.console.print(
        "[dim]solve: the same request to IkSolver in this process; the service carries no time. "
        f"Errors by {stage.check.name}, which knows nothing of the solver.[/]"
    )
    return answered


def _stream(stage: Stage, client: Client) -> Recording:
    options, console = stage.options, stage.console
    _headline(stage, "2  A figure of eight, streamed on target_pose")
    way = targets(stage.robot, starting_point(client), options.rate, options.seconds)
    console.print(
        f"{way.counted / options.rate:.1f} s to get there gently, then {options.seconds:g} s at "
        f"{options.rate:g} Hz that count "
    )
    recording = stream(client, way, options.rate, lambda: console.print(".", end=""))
    console.print()
    return recording


def _report(
    stage: Stage, answered: list[Answer], recording: Recording, load: Load
) -> list[Criterion]:
    """Print and save what the recording shows."""
    options, console = stage.options, stage.console
    motion, tracking = motion_of(recording, stage.check)
    uses = joint_uses(stage.robot, motion)
    console.print(tracking_table(tracking))
    console.print(timing_table(tracking))
    console.print(joints_table(console, uses))
    speed = f"speed: greatest over {WINDOW} states, of the limit"
    console.print(f"[dim]room: least distance to a limit; {speed}[/]")
    _headline(stage, "3  Pictures")
    for picture in save_pictures(stage.robot, motion, tracking, options.output):
        console.print(str(picture), soft_wrap=True)
    found = criteria(answered, tracking, uses, options.rate)
    if options.json is not None:
        save_report(options.json, answered, tracking, uses, found, load)
        console.print(str(options.json), soft_wrap=True)
    return found


def _conclude(found: list[Criterion], load: Load, seconds: float) -> None:
    console = Console(highlight=False)  # with --quiet too
    console.print(criteria_lines(console, found))
    deciding = [criterion for criterion in found if not criterion.by_the_clock]
    failed = sum(not criterion.holds for criterion in deciding)
    late = sum(criterion.by_the_clock and not criterion.holds for criterion in found)
    verdict = f"{failed} of {len(deciding)} checks failed" if failed else "all checks passed"
    if late:
        why = "a busy machine" if load.is_busy else "although the machine was not busy"
        console.print(f"[yellow]{late} by the clock did not hold[/], {why}: {load}")
    console.print(f"[bold]{verdict}[/], {seconds:.0f} s; {load}")


def _headline(stage: Stage, text: str) -> None:
    stage.console.print(f"\n[bold]{text}[/]")


@contextmanager
def running_node(
    options: Options, robot: RobotModel, console: Console
) -> Iterator[tuple[Client, int]]:
    """Start the node, and hand over a client of it once it is ready, and its process id.

    Raises:
        DlsIkError: it did not become ready, or something failed later; the end of its log is added
            to the message when the node has ended.
    """
    parameters = {"robot": "wam", "rate": options.rate, "initial_positions": list(READY)}
    if options.method is not None:
        parameters["stream_method"] = options.method
    log = options.output / "ik_node.log"

    def echo(line: str) -> None:
        if logged := LOGGED.match(line):  # the rest is in the log file
            console.print(f"[dim]ik_node: {escape(logged[1])}[/]", soft_wrap=True)

    with NodeProcess(node_command(parameters), log, echo) as node, Client(robot) as client:
        try:
            wait_until_ready(node, client, console)
            yield client, node.process.pid
            if not node.is_running:
                raise DlsIkError("the node is gone")
        except DlsIkError as error:
            client.spin_until(now() + 0.5)  # for the last lines
            if node.is_running:
                raise DlsIkError(f"{error} (its log: {log})") from error
            ending = "\n  ".join([f"{error}; ik_node ended with code {node.exit_code}", *node.tail])
            raise DlsIkError(f"{ending}\n  (its log: {log})") from error


def wait_until_ready(
    node: NodeProcess, client: Client, console: Console, patience: float = PATIENCE
) -> None:
    """Return when the service and both topics are there.

    Raises:
        DlsIkError: the node has ended, or took too long; the message says what is missing.
    """
    begin = now()
    reminder = REMINDER
    while not (client.is_served and client.is_heard):
        client.spin_until(now() + 0.05)
        waited = now() - begin
        if not node.is_running:
            raise DlsIkError("the node did not start")
        if waited > patience:
            what = "the topics target_pose and joint_states" if client.is_served else "compute_ik"
            raise DlsIkError(f"the node has not offered {what} within {patience:.0f} s")
        if waited > reminder:
            reminder += REMINDER
            console.print(f"[dim]still starting after {waited:.0f} s ...[/]")
    node.hush()
    console.print(f"ready after {now() - begin:.1f} s")
