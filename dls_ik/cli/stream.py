"""``dls-ik stream``: targets for a running node, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from dls_ik.cli.exits import MISSING, NO_SOLUTION, interrupted, leave
from dls_ik.cli.options import Vector
from dls_ik.cli.output import STDOUT, check_writable, json_option, print_json
from dls_ik.cli.pose import FORMS, doubt_distance, given_pose, pose_options
from dls_ik.cli.pose_file import PoseFile, read_poses

if TYPE_CHECKING:
    from dls_ik.cli.stream_report import Drawn
    from dls_ik.core.types import Array
    from dls_ik.ros.client.streamer import Outcome, Streamer

PLANES = ("xy", "xz", "yz")
ABOVE_ZERO = click.FloatRange(0.0, min_open=True)
MOST_TARGETS = 10**7
FASTEST = 1e3  # [m/s, rad/s]
RUN_IN = 0.25  # of a period, to come to the circle, and as long to come back
AXES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}


@click.command(
    epilog="Exit codes: 0 reached or finished, 1 refused or not reached, 2 bad input, 3 nobody "
    "there, 130 after Ctrl-C."
)
@pose_options
@click.option("--file", "path", metavar="CSV", help="A path of poses, one a line.")
@click.option(
    "--twist", type=float, nargs=6, metavar="VX VY VZ WX WY WZ", help="A velocity [m/s, rad/s]."
)
@click.option(
    "--for",
    "twist_time",
    type=ABOVE_ZERO,
    default=1.0,
    metavar="S",
    show_default=True,
    help="So long [s].",
)
@click.option("--circle", "radius", type=ABOVE_ZERO, metavar="R", help="Around the tip [m].")
@click.option(
    "--period", type=ABOVE_ZERO, default=5.0, metavar="S", show_default=True, help="Of a lap [s]."
)
@click.option(
    "--laps", type=ABOVE_ZERO, default=1.0, metavar="N", show_default=True, help="Of the circle."
)
@click.option(
    "--plane", type=click.Choice(PLANES), default="xy", show_default=True, help="Of the circle."
)
@click.option("--frame", default="", metavar="LINK", help="Frame of targets; default: the root.")
@click.option(
    "--rate", type=click.FloatRange(1.0, 1000.0), default=100.0, metavar="HZ",
    help="Of the messages.", show_default=True,
)  # fmt: skip
@click.option(
    "--wait", type=click.FloatRange(0.0), default=10.0, metavar="S",
    help="For the arm to reach the last pose [s].", show_default=True,
)  # fmt: skip
@click.option("--namespace", default="", metavar="NAME", help="Of the node.")
@click.option("--node", default="dls_ik", metavar="NAME", help="Of the node.", show_default=True)
@click.option(
    "--patience",
    type=click.FloatRange(0.0),
    default=5.0,
    metavar="S",
    show_default=True,
    help="For it to be found [s].",
)
@json_option
@click.option("--record", metavar="FILE", help="Write what came back there, as CSV.")
@click.option("--plot", metavar="FILE", help="Draw it there: .png, .svg or .pdf.")
@click.option(
    "--robot",
    metavar="ROBOT",
    help="That is drawn, from the node's base to its tip; default: the node's.",
)
def stream(
    path: str | None,
    frame: str,
    rate: float,
    wait: float,
    namespace: str,
    node: str,
    patience: float,
    as_json: bool,
    record: str | None,
    plot: str | None,
    robot: str | None,
    **motion: Any,
) -> None:
    """Send targets to a running node, and show how it follows them.

    A pose (--xyz or --matrix) and a path (--file) are sent until the arm is there, a velocity
    (--twist) for a time. --circle begins and ends where the tip is.

    Files of poses are as for dls-ik path; with times [s] the poses are sent at these, and more in
    between.
    """
    task = _read_task({form: motion.pop(form) for form in FORMS}, path, **motion)
    task.check(rate)
    if task.path is not None:
        doubt_distance("a target", task.path.poses)
    if task.radius is not None and frame:
        raise click.UsageError("--circle is in the root frame, without --frame")
    _check_outputs(record, plot)
    try:
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.client.streamer import Streamer
    except ImportError as error:
        leave(f"ROS 2 is not here: {error.name or error} is missing; see dls-ik doctor", MISSING)
    from dls_ik.cli.stream_report import robot_to_draw

    try:
        with Streamer(namespace, node, patience) as streamer:
            first = streamer.wait()
            drawn = None if plot is None else robot_to_draw(streamer, robot)
            outcome = _run(streamer, task, first.tip, frame, rate, wait)
            _report(outcome, as_json, record, plot, drawn)
    except NOT_THERE as error:
        leave(str(error), MISSING)
    _end(outcome)


def _check_outputs(record: str | None, plot: str | None) -> None:
    """Refuse before the arm moves what could not be written after it."""
    if plot is not None:
        from dls_ik.plot import check_picture

        check_picture(Path(plot))
    if record == STDOUT:
        raise click.UsageError("--record takes a file, not standard output")
    check_writable([path for path in (record, plot) if path is not None])


def _run(
    streamer: Streamer, task: Task, tip: Array, frame: str, rate: float, wait: float
) -> Outcome:
    from dls_ik.ros.client.streamer import stream_poses, stream_twist

    with _line(streamer, rate) as tell:
        if task.twist is not None:
            return stream_twist(streamer, task.twist, frame, rate, task.twist_time, tell)
        if task.path is not None:
            times, poses = sampled(task.path.times, task.path.poses, rate)
        else:
            lap = task.radius or 0.0, task.period, task.laps, task.plane
            times, poses = circle(tip, *lap, rate)
        return stream_poses(streamer, times, poses, frame, rate, wait, tell)


@contextmanager
def _line(streamer: Streamer, rate: float) -> Iterator[Callable[[], None]]:
    """A line on stderr that tells of the stream, where that is a terminal."""
    from rich.console import Console

    from dls_ik.cli.stream_report import LiveLine

    console = Console(stderr=True)
    if not console.is_terminal:
        words = iter([f"streaming at {rate:g} Hz"])  # with the first message

        def say_once() -> None:
            for each in words:
                click.echo(each, err=True)

        yield say_once
        return
    with LiveLine(console, streamer) as line:
        yield line.update


def _report(
    outcome: Outcome, as_json: bool, record: str | None, plot: str | None, drawn: Drawn | None
) -> None:
    from dls_ik.cli.stream_report import draw, print_summary, summary, write_record

    found = summary(outcome)
    print_json(found) if as_json else print_summary(found)
    if record is not None:
        write_record(record, outcome)
    if plot is not None and drawn is not None:
        try:
            draw(plot, drawn, outcome)
        except Exception:
            if record is None:  # what was measured is not lost with the picture
                write_record(f"{plot}.csv", outcome)
            raise


def _end(outcome: Outcome) -> None:
    if outcome.interrupted:
        interrupted("interrupted; the arm was told to stop")
    if outcome.lost:
        leave("the node has gone: nothing comes from it any more", MISSING)
    if outcome.refused:
        leave(f"the node refuses: {outcome.refused}", NO_SOLUTION)
    if outcome.reached is False:
        words = outcome.rows[-1].words or "no word of it" if outcome.rows else "nothing came back"
        leave(f"not reached: {words}", NO_SOLUTION)


class Task(NamedTuple):
    """What is to be sent: a path, which may be of one pose, a twist, or a circle."""

    path: PoseFile | None
    twist: Vector
    twist_time: float  # [s]
    radius: float | None  # [m] of the circle
    period: float  # [s]
    laps: float
    plane: str

    @property
    def duration(self) -> float:
        """How long it takes [s], without waiting for the arm."""
        if self.path is not None:
            times = self.path.times
            return 0.0 if times is None else float(times[-1] - times[0])
        return self.twist_time if self.twist is not None else self.laps * self.period

    def check(self, rate: float) -> None:
        """Refuse what would never end at a rate [Hz].

        Raises:
            click.UsageError: the reason.
        """
        if not rate * self.duration <= MOST_TARGETS:
            raise click.UsageError(
                f"{self.duration:g} s at {rate:g} Hz are more than {MOST_TARGETS} targets"
            )


def _read_task(pose_options: dict[str, Any], path: str | None, **motion: Any) -> Task:
    """What is asked for, read and checked.

    Args:
        pose_options: what :func:`dls_ik.cli.pose.given_pose` takes; the units are those of the
            file too.

    Raises:
        click.UsageError: nothing, or two of them.
        DlsIkError: a file without poses.
    """
    pose = given_pose(**pose_options)
    given = [pose is not None, path is not None, motion["twist"] is not None]
    if sum([*given, motion["radius"] is not None]) != 1:
        raise click.UsageError("give one of --xyz (or --matrix), --file, --twist and --circle")
    if motion["twist"] is not None and not all(abs(v) < FASTEST for v in motion["twist"]):
        raise click.UsageError(f"--twist takes six numbers within {FASTEST:g}")
    if pose is not None:
        found: PoseFile | None = PoseFile(pose[None], None, ("",))
    else:
        units = pose_options["deg"], pose_options["mm"]
        found = None if path is None else read_poses(path, *units)
    return Task(found, **motion)


def sampled(times: Array | None, poses: Array, rate: float) -> tuple[Array, Array]:
    """Times (m,) [s] and poses (m, 4, 4), one every 1 / rate [Hz].

    Poses without times are taken as they are; between timed ones the tip goes straight and turns
    evenly.
    """
    if times is None:
        return np.arange(len(poses)) / rate, poses
    from dls_ik.core.se3 import difference, moved

    times = times - times[0]
    moments = np.append(np.arange(0.0, times[-1], 1.0 / rate), times[-1])
    before = np.clip(np.searchsorted(times, moments, side="right") - 1, 0, max(len(times) - 2, 0))
    ways = [difference(poses[k], poses[k + 1]) for k in range(len(poses) - 1)]
    result = [
        moved(poses[k], ways[k] * (t - times[k]) / (times[k + 1] - times[k])) if ways else poses[0]
        for t, k in zip(moments, before, strict=True)
    ]
    return moments, np.array(result)


def circle(
    centre: Array, radius: float, period: float, laps: float, plane: str, rate: float
) -> tuple[Array, Array]:
    """Times (m,) [s] and poses (m, 4, 4) around a pose, in a plane of its frame.

    It begins and ends at the centre, at rest: the radius grows before the laps, and shrinks after
    them, in a quarter of a period.
    """
    first, second = AXES[plane]
    run_in = RUN_IN * period
    duration = laps * period + 2.0 * run_in
    times = np.append(np.arange(0.0, duration, 1.0 / rate), duration)
    share = np.clip(np.minimum(times, duration - times) / run_in, 0.0, 1.0)
    reach = radius * share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    phase = 2.0 * np.pi * times / period
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, first, 3] += reach * np.cos(phase)
    poses[:, second, 3] += reach * np.sin(phase)
    return times, poses
