"""Report of ``dls-ik stream``: a line while it runs, then a summary, a record and a picture."""

from __future__ import annotations

import csv
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from dls_ik.cli.options import find_robot
from dls_ik.cli.output import defer_sigint, save_plot, warn, write_whole
from dls_ik.cli.terminal import print_pairs, stdout_console
from dls_ik.model.rotations import inverse, quaternion_from_rotation
from dls_ik.plot.canvas import scaled
from dls_ik.text import listing

if TYPE_CHECKING:
    from dls_ik.core.types import Array
    from dls_ik.model.robot import RobotModel
    from dls_ik.ros.client.robot import DescribedRobot
    from dls_ik.ros.client.target_publisher import StreamOutcome, TargetPublisher

LINE_PERIOD = 0.1  # [s]
GOOD = ("FOLLOWING", "REACHED", "JOINT_MOTION")
POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
POLL = 0.02  # [s]


class LiveLine:
    """One line of a terminal: time, state, errors, rate."""

    def __init__(self, console: Console, publisher: TargetPublisher) -> None:
        self._live = Live(console=console, transient=True, auto_refresh=False)
        self._publisher = publisher
        self._begin = self._last = time.monotonic()

    def __enter__(self) -> LiveLine:
        """Show the line."""
        with defer_sigint():  # rich cannot stop a display that is half started
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line."""
        self._live.stop()

    def update(self) -> None:
        """Update the line, at most every LINE_PERIOD."""
        now = time.monotonic()
        if now - self._last < LINE_PERIOD:
            return
        self._last = now
        row, seconds = self._publisher.monitor.rows[-1], now - self._begin
        position, rotation = row.errors()
        line = Text(f"{seconds:5.1f} s ")
        line.append(f"{row.state:<19}", style="green" if row.state in GOOD else "yellow")
        if np.isfinite(position):
            line.append(f" {scaled(position, 'm', 3):>7} {scaled(rotation, 'rad', 3):>9}")
        line.append(f" {self._publisher.sent / seconds:4.0f} Hz")
        line.truncate(self._live.console.width)
        self._live.update(line, refresh=True)


def summary(outcome: StreamOutcome) -> dict[str, Any]:
    """Return figures of a stream; lengths in [m], angles in [rad], times in [s]."""
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
        "position_error": _spread(errors[:, 0]),
        "rotation_error": _spread(errors[:, 1]),
        "states": {name: count / len(rows) for name, count in states.most_common()},
        "last_state": rows[-1].state if rows else None,
        "words": rows[-1].message if rows else "",
    }


def _spread(values: Array) -> dict[str, float] | None:
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    return {"mean": float(known.mean()), "largest": float(known.max()), "last": float(known[-1])}


def print_summary(found: dict[str, Any]) -> None:
    """Print the figures of :func:`summary`."""
    ends = {True: "reached", False: "not reached", None: "finished"}
    stops = [word for word in ("interrupted", "lost", "refused") if found[word]]
    end = stops[0] if stops else ends[found["reached"]]
    pairs = [
        (end, f"after {found['duration']:.1f} s"),
        ("sent", f"{found['sent']} targets, {found['send_rate']:.1f}/s"),
        ("heard", f"{found['heard']} cycles of the node, {found['heard_rate']:.1f}/s"),
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
    """Write a line for each cycle of the node: target, tip, errors, state, joints."""
    names = sorted({name for row in outcome.rows for name in row.q})
    heads = [f"{name}_{part}" for name in ("target", "tip") for part in POSE]

    def write(part: Path) -> None:
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["t", "state", *heads, "position_error", "rotation_error", *names])
            for row in outcome.rows:
                joints = [row.q.get(name, "") for name in names]
                poses = [*_numbers(row.target), *_numbers(row.tip)]
                errors = ["" if np.isnan(error) else error for error in row.errors()]
                t = f"{row.time - outcome.begin:.6f}"
                writer.writerow([t, row.state, *poses, *errors, *joints])

    write_whole(path, write)
    click.echo(f"record: {path}", err=True)


def _numbers(T: Array | None) -> list[Any]:
    if T is None:
        return [""] * len(POSE)
    return [*T[:3, 3].tolist(), *quaternion_from_rotation(T[:3, :3])]


class RobotPicture(NamedTuple):
    """Robot to draw, and the names of its joints in joint_states."""

    robot: RobotModel
    names: tuple[str, ...]  # (n,)


def robot_to_draw(publisher: TargetPublisher, named: str | None) -> RobotPicture:
    """Return the robot of the node, or one named here, with the node's base, tip and joints.

    Raises:
        ServiceMissingError, NoAnswerError: the node does not answer, or sends no joint values.
        RobotModelError: not a usable robot, or a file, which has to be named here.
    """
    from dls_ik.ros.client.robot import DescribedRobot, ForeignFileError, served_robot
    from dls_ik.ros.robot_source import subscribe_descriptions
    from dls_ik.ros.servo.outputs import arrange
    from dls_ik.ros.viewer_source import NodeParameters

    def own(base: str | None, tip: str | None) -> DescribedRobot:
        return DescribedRobot(find_robot(str(named), base, tip), None)

    texts: list[Any] = []
    subscribe_descriptions(publisher.node, texts.append)
    settings = NodeParameters(publisher.node, publisher.name)
    try:
        robot, _ = served_robot(
            lambda: settings.read(publisher.patience),
            lambda: texts[-1].data if texts else "",
            None if named is None else own,
        )
    except ForeignFileError as error:
        raise ForeignFileError(f"{error}, by --robot FILE, for the picture") from None
    joints = arrange(
        robot.joint_names, settings.current.output_joints, settings.current.output_names
    )
    called = {ours: theirs for theirs, ours in joints.robot_names.items()}
    found = RobotPicture(robot, tuple(called.get(name, name) for name in robot.joint_names))
    _wait_for_joints(publisher, found)
    return found


def _wait_for_joints(publisher: TargetPublisher, drawn: RobotPicture) -> None:
    from dls_ik.ros.client.connection import NoAnswerError

    deadline = time.monotonic() + publisher.patience
    while missing := [name for name in drawn.names if name not in publisher.monitor.q]:
        if time.monotonic() > deadline:
            topic = publisher.node.resolve_topic_name("joint_states")
            raise NoAnswerError(
                f"--plot draws the joints, and nothing comes on {topic} of {listing(missing)} "
                f"within {publisher.patience:g} s"
            )
        time.sleep(POLL)


def draw(path: str, drawn: RobotPicture, outcome: StreamOutcome) -> None:
    """Draw the tip beside its targets, or the joints where no targets were in the root frame.

    The picture begins with the first target that came back.
    """
    from dls_ik.plot import joint_bands, tip_path

    rows = [row for row in outcome.rows if all(name in row.q for name in drawn.names)]
    rows = [row for row in rows if row.target is not None] or rows
    if len(rows) < 2:
        warn("no picture: the stream ended before two cycles of the node")
        return
    robot = drawn.robot
    times = [row.time - outcome.begin for row in rows]
    q = np.array([[row.q[name] for name in drawn.names] for row in rows])
    goals = [row.target for row in rows if row.target is not None]
    if len(goals) < len(rows) or rows[0].frame != robot.tree.root or len(robot.tips) > 1:
        figure = joint_bands(robot, times, q)
    else:
        figure = tip_path(robot, times, q, _in_base(robot, q, goals))
    save_plot(path, figure)


def _in_base(robot: RobotModel, q: Array, goals: list[Array]) -> Array:
    """Return positions (k, 3) [m] in the base frame, of targets (k, 4, 4) in the root frame."""
    roots = [
        inverse(robot.tree.pose(robot.base, dict(zip(robot.joint_names, row, strict=True))))
        for row in q.tolist()
    ]
    return np.array([(T @ goal)[:3, 3] for T, goal in zip(roots, goals, strict=True)])
