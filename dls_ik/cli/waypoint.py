# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik waypoint``: named joint positions of an arm in a YAML file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

from dls_ik.cli import output
from dls_ik.cli.node_robot import own_robot, own_robot_option
from dls_ik.cli.options import Command, node_options
from dls_ik.cli.pose import pose_facts
from dls_ik.errors import DlsIkError
from dls_ik.text import did_you_mean, listing, quoted

DEFAULT_FILE = "waypoints.yaml"
MAX_WAYPOINT_NAME = 100


class WaypointError(DlsIkError):
    """A file of waypoints that is not valid, or a waypoint that is not in it."""


def file_option(command: Command) -> Command:
    """Add --file to a command."""
    return click.option(
        "--file", default=DEFAULT_FILE, metavar="FILE", help="File of waypoints (YAML)."
    )(command)


@click.group(
    epilog="Exit codes: 0 done, 1 refused by the node, 2 bad input, 3 no node, 130 Ctrl-C."
)
def waypoint() -> None:
    """Save the current positions of an arm under a name, and move the arm there."""


@waypoint.command()
@click.argument("name")
@file_option
@click.option("--replace", is_flag=True, help="Replace a waypoint of this name.")
@node_options
@own_robot_option
def save(name: str, file: str, replace: bool, **node: Any) -> None:
    """Save the current joint positions and tip pose of a node's arm under NAME."""
    if not name.strip() or not name.isprintable() or len(name) > MAX_WAYPOINT_NAME:
        raise click.UsageError(
            f"NAME must have 1 to {MAX_WAYPOINT_NAME} printable characters; got {quoted(name)}"
        )
    waypoints = read_waypoints(file, new=True)
    if name in waypoints and not replace:
        raise click.UsageError(f"{file} has a waypoint {quoted(name)}; --replace replaces it")
    with _connected(**node) as source:
        robot, positions = source.described.robot, source.positions()
        T = robot.fk(np.array(list(positions.values())))
    facts = pose_facts(T)
    waypoints[name] = {
        "robot": robot.name,
        "saved": datetime.now().astimezone().isoformat(timespec="seconds"),
        "joints": positions,
        "base": robot.base,
        "tip": robot.tip,
        "xyz": facts["xyz"],
        "quat": [float(x) for x in facts["quat"]],
    }
    write_waypoints(file, waypoints)
    click.echo(f"saved {name} to {file}", err=True)


@waypoint.command()
@click.argument("name")
@file_option
@node_options
@own_robot_option
def go(name: str, file: str, **node: Any) -> None:
    """Move the arm to the joint positions of waypoint NAME, within limits, around obstacles."""
    joints = find_waypoint(read_waypoints(file), name, file)["joints"]
    with output.ros_imports():
        from dls_ik.ros.recording.joint_motion import JointMotion, MotionRefusedError
    try:
        with _connected(**node) as source:
            names = source.message_names
            if sorted(names) != sorted(joints):
                raise WaypointError(
                    f"waypoint {quoted(name)} is of another robot: it has the joints "
                    f"{listing(joints)}; the node has {listing(names)}"
                )
            remark = JointMotion(source).move_to(np.array([joints[each] for each in names]))
    except MotionRefusedError as error:
        output.exit_with(f"refused by the node: {error}", output.EXIT_NO_SOLUTION)
    except KeyboardInterrupt:
        output.exit_interrupted("interrupted; the arm stops")
    click.echo(f"at {name}" + (f"; {remark}" if remark else ""), err=True)


@waypoint.command("list")
@file_option
@output.json_option
def show(file: str, as_json: bool) -> None:
    """List the waypoints of a file."""
    waypoints = read_waypoints(file)
    if as_json:
        output.print_json(waypoints)
        return
    for name, each in waypoints.items():
        values = ", ".join(f"{joint} {value:.4g}" for joint, value in each["joints"].items())
        click.echo(f"{name}: {values}")


@waypoint.command()
@click.argument("name")
@file_option
def delete(name: str, file: str) -> None:
    """Delete waypoint NAME."""
    waypoints = read_waypoints(file)
    find_waypoint(waypoints, name, file)
    del waypoints[name]
    write_waypoints(file, waypoints)


@contextmanager
def _connected(namespace: str, node: str, patience: float, robot: str | None) -> Iterator[Any]:
    """Yield a connection to a node; exit if there is no node, or the node does not answer."""
    with output.ros_imports():
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.recording.running_node import RunningNode
    try:
        with RunningNode(namespace, node, patience, own_robot(robot)) as source:
            yield source
    except NOT_THERE as error:
        output.exit_with(str(error), output.EXIT_MISSING)


def find_waypoint(waypoints: dict[str, Any], name: str, file: str) -> dict[str, Any]:
    """Return a waypoint of a file.

    Raises:
        WaypointError: If the file has no waypoint of this name.
    """
    if name not in waypoints:
        hint = did_you_mean(name, waypoints) or f"waypoints: {listing(waypoints)}"
        raise WaypointError(f"{file} has no waypoint {quoted(name)}; {hint}")
    found: dict[str, Any] = waypoints[name]
    return found


def read_waypoints(file: str, new: bool = False) -> dict[str, Any]:
    """Return the waypoints of a file by name.

    Args:
        file: Path of the file.
        new: Whether a missing file counts as a file without waypoints; otherwise it is an error.

    Raises:
        WaypointError: If the file cannot be read, or is no file of waypoints.
    """
    import yaml

    if new and not Path(file).exists():
        return {}
    try:
        content = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise WaypointError(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WaypointError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    waypoints = content.get("waypoints") if isinstance(content, dict) else None
    if not isinstance(waypoints, dict):
        raise WaypointError(f"{file} must have 'waypoints', a mapping from names to waypoints")
    for name, each in waypoints.items():
        joints = each.get("joints") if isinstance(each, dict) else None
        if not isinstance(joints, dict) or not joints or not _are_finite(joints.values()):
            raise WaypointError(
                f"{file}: waypoint {quoted(name)} must have 'joints', a mapping from joint names "
                "to positions [rad or m]"
            )
    return waypoints


def _are_finite(values: Any) -> bool:
    """Return whether all values are finite numbers."""
    return all(type(value) in (int, float) and np.isfinite(value) for value in values)


def write_waypoints(file: str, waypoints: dict[str, Any]) -> None:
    """Write waypoints to a file, whole or not at all."""
    import yaml

    text = yaml.safe_dump({"waypoints": waypoints}, sort_keys=False, allow_unicode=True)
    output.write_text(file, text)
