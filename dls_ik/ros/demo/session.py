"""The demonstration from start to end."""

import time
from dataclasses import dataclass

from rich.console import Console

from dls_ik.model.robot import RobotModel
from dls_ik.ros.demo import path, tables
from dls_ik.ros.demo.ask import Answer, answers
from dls_ik.ros.demo.check import Check, independent_check
from dls_ik.ros.demo.client import Client
from dls_ik.ros.demo.load import Load, LoadMeter
from dls_ik.ros.demo.options import Options
from dls_ik.ros.demo.pictures import save_pictures
from dls_ik.ros.demo.poses import poses
from dls_ik.ros.demo.report import save_report
from dls_ik.ros.demo.starting import running_node
from dls_ik.ros.demo.stream import Recording, starting_point, stream
from dls_ik.ros.demo.tracking import WINDOW, joint_uses, motion_of
from dls_ik.ros.demo.verdict import Criterion, criteria, has_passed


@dataclass(frozen=True)
class Stage:
    """What every part needs."""

    options: Options
    console: Console  # says nothing with --quiet
    robot: RobotModel
    check: Check


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
    stage.console.print(tables.answers_table(stage.console, answered, stage.check.name))
    stage.console.print(
        "[dim]solve: the same request to IkSolver in this process; the service carries no time. "
        f"Errors by {stage.check.name}, which knows nothing of the solver.[/]"
    )
    return answered


def _stream(stage: Stage, client: Client) -> Recording:
    options, console = stage.options, stage.console
    _headline(stage, "2  A figure of eight, streamed on target_pose")
    way = path.targets(stage.robot, starting_point(client), options.rate, options.seconds)
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
    console.print(tables.tracking_table(tracking))
    console.print(tables.timing_table(tracking))
    console.print(tables.joints_table(console, uses))
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
    console.print(tables.criteria_lines(console, found))
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
