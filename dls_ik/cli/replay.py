# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik replay``: replay of recorded targets or joint positions to a running node."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dls_ik.cli import output
from dls_ik.cli.node_robot import own_robot, own_robot_option
from dls_ik.cli.options import node_options

if TYPE_CHECKING:
    from dls_ik.ros.client.target_publisher import StreamOutcome
    from dls_ik.ros.recording.recording import Recording
    from dls_ik.ros.recording.running_node import RunningNode

OF_TARGETS = "targets"
OF_JOINTS = "joints"


@click.command(
    epilog="FILE is a recording of dls-ik record or stream --record, or another MCAP file or "
    "rosbag2. Exit codes: 0 replayed, 1 refused by the node, 2 bad input, 3 no node, 130 Ctrl-C.",
)
@click.argument("file")
@click.option(
    "--what",
    type=click.Choice([OF_TARGETS, OF_JOINTS]),
    default=None,
    help="What is replayed. Default: targets if there are any.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 100.0),
    default=1.0,
    metavar="X",
    help="Speed, relative to the recording.",
)
@click.option("--loop", is_flag=True, help="Repeat until Ctrl-C.")
@click.option("--no-start", is_flag=True, help="Do not move to the first recorded positions.")
@click.option("--force", is_flag=True, help="Replay a recording of another robot.")
@node_options
@own_robot_option
@output.json_option
def replay(
    file: str,
    what: str | None,
    speed: float,
    loop: bool,
    no_start: bool,
    force: bool,
    namespace: str,
    node: str,
    patience: float,
    robot: str | None,
    as_json: bool,
) -> None:
    """Move to the first recorded joint positions, then replay the targets or joint positions."""
    with output.ros_imports():
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.recording.joint_motion import MotionRefusedError
        from dls_ik.ros.recording.recording import read_recording
        from dls_ik.ros.recording.running_node import RunningNode
    recording = read_recording(Path(file))
    what = what or (OF_TARGETS if recording.targets else OF_JOINTS)
    if what == OF_TARGETS and not recording.targets:
        raise click.UsageError(f"{file} has no targets; --what joints replays joint positions")
    for note in recording.notes:
        output.warn(f"{file}: {note}")
    passes = 0
    try:
        with RunningNode(namespace, node, patience, own_robot(robot)) as source:
            if not force:
                recording.check_robot(source.message_names, source.described.robot)
            go = _no_motion if no_start else _starter(source, recording, what)
            prepare = _prepare_targets if what == OF_TARGETS else _prepare_joints
            run = prepare(source, recording, speed)
            try:
                while loop or not passes:
                    del source.monitor.rows[:-1]  # a pass reads only its own rows
                    go()
                    report = run()
                    passes += 1
            except KeyboardInterrupt:
                output.exit_interrupted(f"interrupted after {passes} passes; the arm stops")
    except NOT_THERE as error:
        output.exit_with(str(error), output.EXIT_MISSING)
    except MotionRefusedError as error:
        output.exit_with(f"refused by the node: {error}", output.EXIT_NO_SOLUTION)
    if as_json:
        output.print_json({"file": file, "what": what, "passes": passes, **report})
    else:
        click.echo(", ".join(f"{key} {value}" for key, value in report.items() if value != ""))


def _no_motion() -> None:
    """Stay at the current positions."""


def _starter(source: RunningNode, recording: Recording, what: str) -> Callable[[], None]:
    """Return a function that moves the arm to the first recorded positions.

    The function uses actions of the node only if the arm is not at these positions yet, so that a
    node without actions is sufficient otherwise.
    """
    from dls_ik.ros.recording.joint_motion import JointMotion, is_at

    if not recording.has_joints(source.message_names):
        output.warn(
            "the recording has no positions of the joints of the node; the arm moves to the first "
            "target at its limits"
        )
        return _no_motion
    t = recording.targets[0].time if what == OF_TARGETS else float(recording.times[0])
    q = recording.positions_at(t, source.message_names)
    connect = cache(lambda: JointMotion(source))

    def go() -> None:
        if is_at(source, q):
            return
        if remark := connect().move_to(q):
            output.warn(f"the motion to the start is {remark}")

    return go


def _prepare_targets(
    source: RunningNode, recording: Recording, speed: float
) -> Callable[[], dict[str, Any]]:
    """Return a function that sends all targets once, and returns a report."""
    from dls_ik.ros.recording.joint_motion import MotionRefusedError
    from dls_ik.ros.recording.replay import TargetReplayer, match_topics, schedule

    replayer = TargetReplayer(source, match_topics(recording, source))
    targets = schedule(recording.targets, speed, source.parameters.target_timeout)
    source.wait_for_tip()

    def run() -> dict[str, Any]:
        outcome = replayer.run(targets, lambda: None)
        if outcome.interrupted:
            raise KeyboardInterrupt
        if outcome.lost:
            output.exit_with("the node has stopped: no data received", output.EXIT_MISSING)
        if outcome.refused:
            raise MotionRefusedError(outcome.refused)
        return _stream_report(outcome)

    return run


def _stream_report(outcome: StreamOutcome) -> dict[str, Any]:
    """Return number of targets, duration [s], final state and reason as a document."""
    last = outcome.rows[-1] if outcome.rows else None
    return {
        "sent": outcome.sent,
        "duration": round(outcome.end - outcome.begin, 3),
        "state": "" if last is None else last.state,
        "message": "" if last is None else last.message,
    }


def _prepare_joints(
    source: RunningNode, recording: Recording, speed: float
) -> Callable[[], dict[str, Any]]:
    """Return a function that moves along the recorded joint positions, and returns a report."""
    from dls_ik.ros.recording.joint_motion import JointMotion
    from dls_ik.ros.recording.replay import joint_trajectory

    motion = JointMotion(source)
    spline, factor = joint_trajectory(recording, source.message_names, speed, motion.limits)
    if factor > 1.0:
        output.warn(
            f"the replay is slower than --speed {speed:g} by the factor {factor:.3g}, to keep the "
            "limits of the node"
        )

    def run() -> dict[str, Any]:
        motion.follow(spline)
        return {"points": len(spline.times), "duration": round(spline.duration, 3)}

    return run
