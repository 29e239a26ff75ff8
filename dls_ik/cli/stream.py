# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik stream``: sending of targets to a running node, and statistics of the arm's motion."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.text import Text

from dls_ik.cli import output
from dls_ik.cli.node_robot import RobotPicture, robot_to_draw
from dls_ik.cli.options import POSITIVE, SECONDS_RANGE, Vector, node_options, text_option
from dls_ik.cli.pose import ChosenPose, PoseFile, pose_options, read_poses, warn_far_poses
from dls_ik.cli.record import check_complete, recording
from dls_ik.cli.terminal import status_line, stdout_console
from dls_ik.model.rotations import inverse
from dls_ik.tables import print_pairs
from dls_ik.text import scaled

if TYPE_CHECKING:
    from dls_ik.core.types import Array
    from dls_ik.ros.client.target_publisher import StreamOutcome, TargetPublisher

MAX_TARGETS = 10**7
MAX_SPEED = 1e3  # [m/s, rad/s] bound on each component of a twist
RUN_IN_SHARE = 0.25  # duration of the motion between centre and circle, relative to a period
PLANE_AXES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}  # indices of the axes of each plane
GREEN_STATES = ("FOLLOWING", "REACHED", "JOINT_MOTION")  # states shown in green
TOPIC_SUFFIXES = (".bag", ".mcap")  # suffixes of files that contain the topics of the node


@click.command(
    epilog="Exit codes: 0 reached or finished, 1 refused or not reached, 2 bad input, 3 no "
    "node, 130 after Ctrl-C."
)
@pose_options
@click.option("--file", "path", metavar="CSV", help="File with a path of poses.")
@click.option(
    "--twist", type=float, nargs=6, metavar="VX VY VZ WX WY WZ", help="A velocity [m/s, rad/s]."
)
@click.option(
    "--for", "twist_time", type=POSITIVE, default=1.0, metavar="S", help="Duration of --twist [s]."
)
@click.option("--circle", "radius", type=POSITIVE, metavar="R", help="Circle around the tip [m].")
@click.option("--period", type=POSITIVE, default=5.0, metavar="S", help="Duration of a lap [s].")
@click.option("--laps", type=POSITIVE, default=1.0, metavar="N", help="Number of laps.")
@click.option(
    "--plane", type=click.Choice([*PLANE_AXES]), default="xy", help="Plane of the circle."
)
@text_option("--frame", metavar="LINK", help="Frame of targets; default: the root.")
@click.option(
    "--rate",
    type=click.FloatRange(1.0, 1000.0),
    default=100.0,
    metavar="HZ",
    help="Rate of the messages.",
)
@click.option(
    "--wait",
    type=SECONDS_RANGE,
    default=10.0,
    metavar="S",
    help="Timeout to reach the last pose [s].",
)
@node_options
@output.json_option
@click.option(
    "--record",
    metavar="FILE",
    help="Record the topics of the node if FILE ends in .bag or .mcap, otherwise a CSV table of "
    "its cycles.",
)
@output.plot_option("the motion")
@click.option(
    "--robot",
    metavar="ROBOT",
    help="Robot to plot or record, with base and tip of the node; default: the node's.",
)
def stream(
    pose: ChosenPose,
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
    """Send targets to a running node, and show how the arm follows them.

    A pose (--xyz or --matrix) or a path (--file) is sent until the arm reaches the last pose. A
    velocity (--twist) is sent for the duration --for. The motion of --circle starts and ends at the
    current tip pose.

    Files of poses are as for dls-ik path. Poses with times [s] are sent at these times, with
    interpolated poses in between.
    """
    plan = _read_plan(pose, path, **motion)
    if not rate * plan.duration <= MAX_TARGETS:
        raise click.UsageError(
            f"{plan.duration:g} s at {rate:g} Hz exceed the maximum of {MAX_TARGETS} targets"
        )
    if plan.path is not None:
        warn_far_poses("a target", plan.path.poses)
    if plan.radius is not None and frame:
        raise click.UsageError("--circle is in the root frame; omit --frame")
    if record == output.STDOUT:
        raise click.UsageError("--record needs a file; standard output is not supported")
    topics = record if record is not None and record.lower().endswith(TOPIC_SUFFIXES) else None
    output.check_outputs(None if topics else record, plot=plot)
    if topics is not None:
        output.check_new_folder(topics)
    with output.ros_imports():
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.client.target_publisher import TargetPublisher
    try:
        with TargetPublisher(namespace, node, patience) as publisher:
            tip = publisher.wait().tip
            drawn = None if plot is None else robot_to_draw(publisher, robot)
            with ExitStack() as stack:
                if topics is not None:
                    whose = namespace, node, patience, robot
                    recorder = stack.enter_context(recording(topics, *whose))
                outcome = _run(publisher, plan, tip, frame, rate, wait)
            found = summary(outcome)
            output.print_json(found) if as_json else print_summary(found)
            if record is not None and topics is None:
                write_record(record, outcome)
            if plot is not None and drawn is not None:
                _draw_or_keep(plot, drawn, outcome, keep=record is None)
            if topics is not None:
                check_complete(recorder, topics)
                click.echo(f"record: {topics}", err=True)
    except NOT_THERE as error:
        output.exit_with(str(error), output.EXIT_MISSING)
    _exit_if_failed(outcome)


def _run(
    publisher: TargetPublisher, plan: StreamPlan, tip: Array, frame: str, rate: float, wait: float
) -> StreamOutcome:
    """Send all targets of a plan to a node, and return the recorded motion.

    Args:
        publisher: Connection to the node.
        plan: Targets to send.
        tip: (4, 4) current tip pose, the centre of a circle.
        frame: Frame of the targets; empty for the root of the robot.
        rate: Rate of the messages [Hz].
        wait: Timeout to reach the last pose [s].
    """
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
    """Yield a function that updates a status line on stderr, to be called for each target.

    If stderr is no terminal, the function prints one line at the first call only.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        messages = iter([f"streaming at {rate:g} Hz"])

        def print_once() -> None:
            for message in messages:
                click.echo(message, err=True)

        yield print_once
        return
    begin = time.monotonic()
    with status_line(console) as show:
        yield lambda: show(lambda: _status_text(publisher, time.monotonic() - begin))


def _status_text(publisher: TargetPublisher, seconds: float) -> Text:
    """Return the status line: elapsed `seconds` [s], state, errors, and rate of the targets."""
    row = publisher.monitor.rows[-1]
    position, rotation = row.errors()
    line = Text(f"{seconds:5.1f} s ")
    line.append(f"{row.state:<19}", style="green" if row.state in GREEN_STATES else "yellow")
    if np.isfinite(position):
        line.append(f" {scaled(position, 'm', 3):>7} {scaled(rotation, 'rad', 3):>9}")
    return line.append(f" {publisher.sent / seconds:4.0f} Hz")


def _exit_if_failed(outcome: StreamOutcome) -> None:
    """Exit with an error code and a message, unless the stream succeeded."""
    if outcome.interrupted:
        output.exit_interrupted("interrupted; the arm was commanded to stop")
    if outcome.lost:
        output.exit_with("the node has stopped: no data received from it", output.EXIT_MISSING)
    if outcome.refused:
        output.exit_with(f"rejected by the node: {outcome.refused}", output.EXIT_NO_SOLUTION)
    if outcome.reached is False:
        rows = outcome.rows
        reason = rows[-1].message or "no reason given" if rows else "no data received"
        output.exit_with(f"not reached: {reason}", output.EXIT_NO_SOLUTION)


# Targets


class StreamPlan(NamedTuple):
    """Targets to send: a path of one or more poses, a twist, or a circle."""

    path: PoseFile | None
    twist: Vector
    twist_time: float  # [s]
    radius: float | None  # [m] radius of the circle
    period: float  # [s]
    laps: float
    plane: str

    @property
    def duration(self) -> float:
        """Time that it takes to send all targets [s]."""
        if self.path is not None:
            times = self.path.times
            return 0.0 if times is None else float(times[-1] - times[0])
        return self.twist_time if self.twist is not None else self.laps * self.period


def _read_plan(pose: ChosenPose, path: str | None, **motion: Any) -> StreamPlan:
    """Return the targets given by the options.

    Args:
        pose: Value of --xyz or --matrix, and the unit options.
        path: File of poses, or None.
        **motion: Options of a twist and of a circle, see :class:`StreamPlan`.

    Raises:
        click.UsageError: If not exactly one kind of target is given.
        DlsIkError: If the file does not contain poses.
    """
    twist = motion["twist"]
    given = [pose.T is not None, path is not None, twist is not None, motion["radius"] is not None]
    if sum(given) != 1:
        raise click.UsageError("give exactly one of --xyz (or --matrix), --file, --twist, --circle")
    if twist is not None and not all(abs(v) < MAX_SPEED for v in twist):
        raise click.UsageError(f"--twist needs six numbers within +-{MAX_SPEED:g}")
    found = None if path is None else read_poses(path, pose.deg, pose.mm)
    if pose.T is not None:
        found = PoseFile(pose.T[None], None, ("",))
    return StreamPlan(found, **motion)


def sampled(times: Array | None, poses: Array, rate: float) -> tuple[Array, Array]:
    """Sample a path at a constant rate; return times (m,) [s] and poses (m, 4, 4).

    Poses without times are sent one per period. Poses with times are interpolated: between two
    poses, the tip moves straight and rotates at a constant rate.

    Args:
        times: (b,) times of the poses [s], or None.
        poses: (b, 4, 4) poses of the path.
        rate: Rate of the samples [Hz].
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
    """Return times (m,) [s] and poses (m, 4, 4) on a circle around a pose.

    The motion starts and ends at rest at the centre: the radius grows from 0 before the laps and
    shrinks to 0 after the laps, each time in a quarter of a period.

    Args:
        centre: (4, 4) pose at the centre.
        radius: Radius of the circle [m].
        period: Duration of a lap [s].
        laps: Number of laps.
        plane: Plane of the circle along axes of the root frame, one of PLANE_AXES.
        rate: Rate of the samples [Hz].
    """
    first, second = PLANE_AXES[plane]
    run_in = RUN_IN_SHARE * period
    duration = laps * period + 2.0 * run_in
    times = np.append(np.arange(0.0, duration, 1.0 / rate), duration)
    share = np.clip(np.minimum(times, duration - times) / run_in, 0.0, 1.0)
    reach = radius * share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    phase = 2.0 * np.pi * times / period
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, first, 3] += reach * np.cos(phase)
    poses[:, second, 3] += reach * np.sin(phase)
    return times, poses


# Report


def summary(outcome: StreamOutcome) -> dict[str, Any]:
    """Return the statistics of a stream as a JSON document with values in [m], [rad] and [s]."""
    rows, duration = outcome.rows, outcome.end - outcome.begin
    states = Counter(row.state for row in rows)
    errors = np.array([row.errors() for row in rows]).reshape(-1, 2)
    return {
        "reached": outcome.reached,
        "refused": outcome.refused,
        "lost": outcome.lost,
        "interrupted": outcome.interrupted,
        "duration": duration,
        "sent": outcome.sent,
        "send_rate": outcome.sent / duration if duration > 0.0 else 0.0,
        "heard": len(rows),
        "heard_rate": len(rows) / duration if duration > 0.0 else 0.0,
        "position_error": _error_statistics(errors[:, 0]),
        "rotation_error": _error_statistics(errors[:, 1]),
        "states": {name: count / len(rows) for name, count in states.most_common()},
        "last_state": rows[-1].state if rows else None,
        "words": rows[-1].message if rows else "",
    }


def _error_statistics(values: Array) -> dict[str, float] | None:
    """Return mean, largest and last finite value of an error over time; None if none is finite."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    return {"mean": float(known.mean()), "largest": float(known.max()), "last": float(known[-1])}


def print_summary(found: dict[str, Any]) -> None:
    """Print the statistics of a stream, see :func:`summary`."""
    ends = {True: "reached", False: "not reached", None: "finished"}
    stops = [word for word in ("interrupted", "lost", "refused") if found[word]]
    end = stops[0] if stops else ends[found["reached"]]
    pairs = [
        (end, f"after {found['duration']:.1f} s"),
        ("sent", f"{found['sent']} targets, {found['send_rate']:.1f}/s"),
        ("received", f"{found['heard']} cycles of the node, {found['heard_rate']:.1f}/s"),
    ]
    for name, unit in (("position_error", "m"), ("rotation_error", "rad")):
        if (error := found[name]) is not None:
            figures = (scaled(error[key], unit, 3) for key in ("mean", "largest", "last"))
            pairs.append((name.replace("_", " "), "mean {}, largest {}, last {}".format(*figures)))
    if found["states"]:
        shares = (f"{name} {100.0 * share:.0f} %" for name, share in found["states"].items())
        pairs.append(("states", ", ".join(shares)))
    print_pairs(stdout_console(), pairs)


def write_record(path: str, outcome: StreamOutcome) -> None:
    """Write a CSV file with a line per cycle of the node: target, tip, errors, state, joints."""
    from dls_ik.ros.recording.tables import pose_cells, table_header

    names = sorted({name for row in outcome.rows for name in row.q})

    def write(part: Path) -> None:
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table_header(names))
            for row in outcome.rows:
                joints = [row.q.get(name, "") for name in names]
                poses = [*pose_cells(row.target), *pose_cells(row.tip)]
                errors = ["" if np.isnan(error) else error for error in row.errors()]
                t = f"{row.time - outcome.begin:.6f}"
                writer.writerow([t, row.state, *poses, *errors, *joints])

    output.write_whole(path, write)
    click.echo(f"record: {path}", err=True)


def _draw_or_keep(path: str, drawn: RobotPicture, outcome: StreamOutcome, keep: bool) -> None:
    """Draw a stream; if drawing fails and `keep` is set, write the recorded cycles as CSV."""
    try:
        draw(path, drawn, outcome)
    except Exception:
        if keep:
            write_record(f"{path}.csv", outcome)
        raise


def draw(path: str, drawn: RobotPicture, outcome: StreamOutcome) -> None:
    """Draw the path of the tip with its targets; without targets in the root frame, the joints.

    The picture starts at the first cycle in which the node reported a target.
    """
    from dls_ik.plot import joint_bands, tip_path

    rows = [row for row in outcome.rows if all(name in row.q for name in drawn.names)]
    rows = [row for row in rows if row.target is not None] or rows
    if len(rows) < 2:
        output.warn("no picture: the stream ended before two cycles of the node were received")
        return
    robot = drawn.robot
    times = [row.time - outcome.begin for row in rows]
    q = np.array([[row.q[name] for name in drawn.names] for row in rows])
    goals = [row.target for row in rows if row.target is not None]
    if len(goals) < len(rows) or rows[0].frame != robot.tree.root or len(robot.tips) > 1:
        figure = joint_bands(robot, times, q)
    else:
        roots = [inverse(robot.tree.pose(robot.base, robot.named(row))) for row in q]
        # Positions of the targets in the base frame
        places = [(T @ goal)[:3, 3] for T, goal in zip(roots, goals, strict=True)]
        figure = tip_path(robot, times, q, places)
    output.save_plot(path, figure)
