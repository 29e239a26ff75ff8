"""``dls-ik stream``: targets for a running node, and how it follows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from dls_ik.cli.options import POSITIVE, SECONDS, Vector, text_option
from dls_ik.cli.output import (
    MISSING,
    NO_SOLUTION,
    STDOUT,
    check_plot,
    check_writable,
    exit_interrupted,
    exit_with,
    json_option,
    plot_option,
    print_json,
    ros_imports,
)
from dls_ik.cli.pose import (
    POSE_OPTIONS,
    PoseFile,
    given_pose,
    pose_options,
    read_poses,
    warn_far_poses,
)

if TYPE_CHECKING:
    from dls_ik.cli.stream_report import RobotPicture
    from dls_ik.core.types import Array
    from dls_ik.ros.client.target_publisher import StreamOutcome, TargetPublisher

MAX_TARGETS = 10**7
MAX_SPEED = 1e3  # [m/s, rad/s]
RUN_IN = 0.25  # of a period, from the centre to the circle, and back
PLANES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}  # axes


@click.command(
    epilog="Exit codes: 0 reached or finished, 1 refused or not reached, 2 bad input, 3 no "
    "node, 130 after Ctrl-C."
)
@pose_options
@click.option("--file", "path", metavar="CSV", help="A path of poses, one a line.")
@click.option(
    "--twist", type=float, nargs=6, metavar="VX VY VZ WX WY WZ", help="A velocity [m/s, rad/s]."
)
@click.option(
    "--for", "twist_time", type=POSITIVE, default=1.0, metavar="S", help="Duration of --twist [s]."
)
@click.option("--circle", "radius", type=POSITIVE, metavar="R", help="Circle around the tip [m].")
@click.option("--period", type=POSITIVE, default=5.0, metavar="S", help="Time of a lap [s].")
@click.option("--laps", type=POSITIVE, default=1.0, metavar="N", help="Number of laps.")
@click.option("--plane", type=click.Choice([*PLANES]), default="xy", help="Plane of the circle.")
@text_option("--frame", metavar="LINK", help="Frame of targets; default: the root.")
@click.option(
    "--rate",
    type=click.FloatRange(1.0, 1000.0),
    default=100.0,
    metavar="HZ",
    help="Rate of the messages.",
)
@click.option(
    "--wait", type=SECONDS, default=10.0, metavar="S", help="Time to reach the last pose [s]."
)
@text_option("--namespace", metavar="NAME", help="Namespace of the node.")
@click.option("--node", default="dls_ik", metavar="NAME", help="Name of the node.")
@click.option("--patience", type=SECONDS, default=5.0, metavar="S", help="Time to find it [s].")
@json_option
@click.option("--record", metavar="FILE", help="Write the answers of the node there, as CSV.")
@plot_option("it")
@click.option(
    "--robot",
    metavar="ROBOT",
    help="To draw, from the node's base to its tip; default: the node's.",
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
    plot_path: str | None,
    robot: str | None,
    **motion: Any,
) -> None:
    """Send targets to a running node, and show how it follows them.

    A pose (--xyz or --matrix) and a path (--file) are sent until the arm is there, a velocity
    (--twist) for a time. --circle begins and ends where the tip is.

    Files of poses are as for dls-ik path; with times [s] the poses are sent at these, and more in
    between.
    """
    plan = _read_plan({name: motion.pop(name) for name in POSE_OPTIONS}, path, **motion)
    plan.check(rate)
    if plan.path is not None:
        warn_far_poses("a target", plan.path.poses)
    if plan.radius is not None and frame:
        raise click.UsageError("--circle is in the root frame, without --frame")
    check_plot(plot_path)
    if record == STDOUT:
        raise click.UsageError("--record takes a file, not standard output")
    check_writable(record, plot_path)
    with ros_imports():
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.client.target_publisher import TargetPublisher
    from dls_ik.cli.stream_report import robot_to_draw

    try:
        with TargetPublisher(namespace, node, patience) as publisher:
            first = publisher.wait()
            drawn = None if plot_path is None else robot_to_draw(publisher, robot)
            outcome = _run(publisher, plan, first.tip, frame, rate, wait)
            _report(outcome, as_json, record, plot_path, drawn)
    except NOT_THERE as error:
        exit_with(str(error), MISSING)
    _end(outcome)


def _run(
    publisher: TargetPublisher, plan: StreamPlan, tip: Array, frame: str, rate: float, wait: float
) -> StreamOutcome:
    from dls_ik.ros.client.target_publisher import stream_poses, stream_twist

    with _live_line(publisher, rate) as update:
        if plan.twist is not None:
            return stream_twist(publisher, plan.twist, frame, rate, plan.twist_time, update)
        if plan.path is not None:
            times, poses = sampled(plan.path.times, plan.path.poses, rate)
        else:
            lap = plan.radius or 0.0, plan.period, plan.laps, plan.plane
            times, poses = circle(tip, *lap, rate)
        return stream_poses(publisher, times, poses, frame, rate, wait, update)


@contextmanager
def _live_line(publisher: TargetPublisher, rate: float) -> Iterator[Callable[[], None]]:
    """Show the stream in a line on stderr, where that is a terminal."""
    from rich.console import Console

    from dls_ik.cli.stream_report import LiveLine

    console = Console(stderr=True)
    if console.is_terminal:
        with LiveLine(console, publisher) as line:
            yield line.update
        return
    messages = iter([f"streaming at {rate:g} Hz"])

    def print_once() -> None:
        for message in messages:
            click.echo(message, err=True)

    yield print_once  # called with the first target


def _report(
    outcome: StreamOutcome,
    as_json: bool,
    record: str | None,
    plot_path: str | None,
    drawn: RobotPicture | None,
) -> None:
    from dls_ik.cli.stream_report import draw, print_summary, summary, write_record

    found = summary(outcome)
    print_json(found) if as_json else print_summary(found)
    if record is not None:
        write_record(record, outcome)
    if plot_path is not None and drawn is not None:
        try:
            draw(plot_path, drawn, outcome)
        except Exception:
            if record is None:  # keep the measurements when drawing fails
                write_record(f"{plot_path}.csv", outcome)
            raise


def _end(outcome: StreamOutcome) -> None:
    if outcome.interrupted:
        exit_interrupted("interrupted; the arm was told to stop")
    if outcome.lost:
        exit_with("the node has gone: nothing comes from it any more", MISSING)
    if outcome.refused:
        exit_with(f"the node refuses: {outcome.refused}", NO_SOLUTION)
    if outcome.reached is False:
        rows = outcome.rows
        reason = rows[-1].message or "no reason given" if rows else "nothing came back"
        exit_with(f"not reached: {reason}", NO_SOLUTION)


# Targets


class StreamPlan(NamedTuple):
    """Targets to send: a path, which may be of one pose, a twist, or a circle."""

    path: PoseFile | None
    twist: Vector
    twist_time: float  # [s]
    radius: float | None  # [m] of the circle
    period: float  # [s]
    laps: float
    plane: str

    @property
    def duration(self) -> float:
        """Time to send all [s]."""
        if self.path is not None:
            times = self.path.times
            return 0.0 if times is None else float(times[-1] - times[0])
        return self.twist_time if self.twist is not None else self.laps * self.period

    def check(self, rate: float) -> None:
        """Refuse a plan of too many targets at a rate [Hz].

        Raises:
            click.UsageError: the reason.
        """
        if not rate * self.duration <= MAX_TARGETS:
            raise click.UsageError(
                f"{self.duration:g} s at {rate:g} Hz are more than {MAX_TARGETS} targets"
            )


def _read_plan(pose_options: dict[str, Any], path: str | None, **motion: Any) -> StreamPlan:
    """Return the plan of the options.

    Args:
        pose_options: arguments of :func:`dls_ik.cli.pose.given_pose`; the units are those of the
            file too.

    Raises:
        click.UsageError: not exactly one kind of target.
        DlsIkError: a file without poses.
    """
    pose = given_pose(**pose_options)
    given = [pose is not None, path is not None, motion["twist"] is not None]
    if sum([*given, motion["radius"] is not None]) != 1:
        raise click.UsageError("give one of --xyz (or --matrix), --file, --twist and --circle")
    if motion["twist"] is not None and not all(abs(v) < MAX_SPEED for v in motion["twist"]):
        raise click.UsageError(f"--twist takes six numbers within {MAX_SPEED:g}")
    if pose is not None:
        found: PoseFile | None = PoseFile(pose[None], None, ("",))
    else:
        units = pose_options["deg"], pose_options["mm"]
        found = None if path is None else read_poses(path, *units)
    return StreamPlan(found, **motion)


def sampled(times: Array | None, poses: Array, rate: float) -> tuple[Array, Array]:
    """Return times (m,) [s] and poses (m, 4, 4), one every 1 / rate [Hz].

    Poses without times are taken as they are. Timed ones are interpolated: the tip goes straight
    and turns at a constant rate.
    """
    if times is None:
        return np.arange(len(poses)) / rate, poses
    from dls_ik.core.se3 import difference, moved

    times = times - times[0]
    moments = np.append(np.arange(0.0, times[-1], 1.0 / rate), times[-1])
    before = np.clip(np.searchsorted(times, moments, side="right") - 1, 0, max(len(times) - 2, 0))
    twists = [difference(poses[k], poses[k + 1]) for k in range(len(poses) - 1)]
    result = [
        moved(poses[k], twists[k] * (t - times[k]) / (times[k + 1] - times[k]))
        if twists
        else poses[0]
        for t, k in zip(moments, before, strict=True)
    ]
    return moments, np.array(result)


def circle(
    centre: Array, radius: float, period: float, laps: float, plane: str, rate: float
) -> tuple[Array, Array]:
    """Return times (m,) [s] and poses (m, 4, 4) on a circle around a pose, in a plane of its frame.

    It begins and ends at rest at the centre: the radius grows before the laps, and shrinks after
    them, in a quarter of a period each.
    """
    first, second = PLANES[plane]
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
