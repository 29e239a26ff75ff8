"""``dls-ik path``: a file of poses to a joint trajectory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from dls_ik.cli.options import (
    ROBOT,
    find_robot,
    joint_vector,
    method_option,
    parse_task,
    robot_options,
    settings_option,
    task_option,
)
from dls_ik.cli.output import (
    NO_SOLUTION,
    STDOUT,
    MissingPartError,
    check_new_folder,
    check_plot,
    check_writable,
    json_option,
    print_json,
    warn,
    write_text,
    write_whole,
)
from dls_ik.cli.pose import PoseFile, read_poses, unit_options, warn_far_poses
from dls_ik.cli.terminal import ProgressBars, print_pairs, stdout_console
from dls_ik.text import json_text

if TYPE_CHECKING:
    from dls_ik.cli.trajectory import Trajectory
    from dls_ik.model.robot import RobotModel

EPILOG = (
    "POSES is a CSV file with the header x,y,z,qx,qy,qz,qw or x,y,z,roll,pitch,yaw, and t for "
    f"times [s]; or a JSON list of 4x4 matrices; or - for standard input. {ROBOT} Exit codes: 0 "
    "written, 1 a pose is not reached and nothing is written, 2 bad input."
)
KINDS = ("csv", "json", "bag")
STORAGES = ("sqlite3", "mcap")
SUFFIXES = {".csv": "csv", ".json": "json", ".bag": "bag", "": "bag"}
MAX_LINES = 10  # of a kind on stderr


@click.command(epilog=EPILOG, short_help="Turn poses into a joint trajectory.")
@robot_options
@click.argument("poses")
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    help="FILE.csv, FILE.json, or a folder (FILE.bag) for a rosbag2; - for standard output.",
)
@click.option(
    "--format", "kind", type=click.Choice(KINDS), help="Format of FILE, whatever its suffix."
)
@click.option("--storage", type=click.Choice(STORAGES), default="sqlite3", help="Format of a bag.")
@click.option(
    "--rate",
    type=click.FloatRange(1e-6, 1e6),
    metavar="HZ",
    help="Poses a second, whatever the file says. Default: column t, else as fast as allowed.",
)
@click.option(
    "--seed", metavar="VALUES", multiple=True, help="Where to begin (0.1,0.2 or j1=0.1) [rad or m]."
)
@method_option
@task_option
@click.option(
    "--max-joint-step",
    type=click.FloatRange(1e-9),
    metavar="X",
    default=0.5,
    help="Report larger changes of a joint [rad or m].",
)
@unit_options
@click.option("--approximate", is_flag=True, help="Go as near as possible to poses not reached.")
@settings_option
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw the joints there, and the tip in FILE-tip: .png, .svg, .pdf.",
)
@json_option
def path(
    robot: str,
    base: str | None,
    tip: str | None,
    poses: str,
    out: str,
    kind: str | None,
    storage: str,
    plot: str | None,
    as_json: bool,
    approximate: bool,
    deg: bool,
    mm: bool,
    max_joint_step: float,
    **asked: Any,
) -> None:
    """Turn a file of poses into a joint trajectory, as CSV, JSON or a rosbag2."""
    if as_json and out == STDOUT:
        raise click.UsageError("--json prints a summary: give --out a file, not -")
    output = _check_output(out, kind, storage, plot)
    given = read_poses(poses, deg, mm)
    if plot is not None and len(given.poses) < 2:
        raise click.UsageError("--plot draws a path of two poses or more")
    model = find_robot(robot, base, tip)
    warn_far_poses("a pose", given.poses, model)
    trajectory = _solve(model, given, approximate, deg, max_joint_step, **asked)
    from dls_ik.cli.trajectory import summary

    facts = summary(trajectory, max_joint_step)
    is_refused = bool(facts["missed"]) and not approximate
    _warn_of(facts, max_joint_step, is_refused)
    files = {} if is_refused else _write(output, trajectory)
    if as_json:
        print_json({**facts, "written": list(files)})
    elif files and out != STDOUT:
        _print_summary(facts, files)
    sys.exit(NO_SOLUTION if is_refused else 0)


def _solve(
    robot: RobotModel,
    given: PoseFile,
    approximate: bool,
    deg: bool,
    max_joint_step: float,
    rate: float | None,
    seed: tuple[str, ...],
    method: str,
    task: str,
    settings: dict[str, Any],
) -> Trajectory:
    from dls_ik.cli.trajectory import Trajectory, path_times, solve_along
    from dls_ik.solver.solver import IkSolver

    solver = IkSolver(robot, method, **settings, approximate=approximate)
    start = joint_vector(robot, seed, "--seed", deg)[0] if seed else None
    with ProgressBars() as bars:
        progress = bars.counter("poses")
        result = solve_along(solver, given.poses, start, parse_task(task), max_joint_step, progress)
    return Trajectory(robot, given, result, path_times(robot, result.q, given.times, rate))


# Files


class TrajectoryOutput(NamedTuple):
    """File of a trajectory, and its pictures."""

    path: str
    kind: str  # one of KINDS
    storage: str  # one of STORAGES
    pictures: tuple[str, ...]  # of the joints and of the tip


def _check_output(path: str, kind: str | None, storage: str, plot: str | None) -> TrajectoryOutput:
    """Refuse files that could not be written later.

    Raises:
        click.ClickException, DlsIkError: the reason.
    """
    kind = kind or ("csv" if path == STDOUT else SUFFIXES.get(Path(path).suffix.lower()))
    if kind is None:
        raise click.UsageError(
            f"--out ends in .csv, .json, or in .bag or nothing for a rosbag2, not {path}; "
            f"--format overrides it"
        )
    pictures: tuple[str, ...] = ()
    if plot is not None:
        check_plot(plot)
        joints = Path(plot)
        pictures = plot, str(joints.with_name(f"{joints.stem}-tip{joints.suffix}"))
    check_writable(*pictures, None if kind == "bag" else path)
    if kind == "bag":
        _require_rosbags()
        check_new_folder(path)
    return TrajectoryOutput(path, kind, storage, pictures)


def _require_rosbags() -> None:
    try:
        import rosbags.rosbag2  # noqa: F401
    except ImportError as error:
        raise MissingPartError("a rosbag2 needs rosbags: pip install 'dls-ik[bag]'") from error


def _write(output: TrajectoryOutput, trajectory: Trajectory) -> dict[str, str]:
    """Write all files; return a description of each."""
    from dls_ik.cli.trajectory import PLAN, STATES, csv_text, document, write_bag

    count = len(trajectory.q)
    about = f"{output.kind}, {count} points"
    if output.kind == "bag":
        write_whole(output.path, lambda part: write_bag(part, trajectory, output.storage))
        about = f"a rosbag2 ({output.storage}): {STATES} {count} messages, {PLAN} 1"
    elif output.kind == "csv":
        write_text(output.path, csv_text(trajectory))
    else:
        write_text(output.path, json_text(document(trajectory), indent=None) + "\n")
    return {output.path: about, **_draw(output, trajectory)}


def _draw(output: TrajectoryOutput, trajectory: Trajectory) -> dict[str, str]:
    """Save the pictures; return a description of each."""
    if not output.pictures:
        return {}
    from dls_ik.plot import joint_bands, save_picture, tip_path

    robot, t, q = trajectory.robot, trajectory.timing.t, trajectory.q
    joints, tip = output.pictures
    bands = joint_bands(robot, t, q)
    write_whole(joints, lambda part: save_picture(part, bands))
    line = tip_path(robot, t, q, trajectory.given.poses[:, :3, 3])
    write_whole(tip, lambda part: save_picture(part, line))
    return {joints: "a picture of the joints", tip: "a picture of the tip"}


# Summary


def _print_summary(facts: dict[str, Any], files: dict[str, str]) -> None:
    from dls_ik.cli.trajectory import FASTEST

    margin = facts["nearest_limit"]
    pairs = [
        ("poses", f"{facts['poses']}, {facts['reached']} reached"),
        ("error", f"{facts['position_error']:.2g} m, {facts['rotation_error']:.2g} rad"),
        ("largest step", _entry(facts["largest_step"])),
        ("nearest limit", _entry(margin) if np.isfinite(margin["value"]) else "none"),
        ("duration", f"{facts['duration']:.4g} s, {facts['times']}"),
    ]
    if facts["times"] != FASTEST:
        share = 100.0 * facts["largest_share_of_velocity_limit"]
        pairs.append(("fastest", f"{share:.3g} % of a velocity limit"))
    pairs += [("wrote", f"{name}: {about}") for name, about in files.items()]
    print_pairs(stdout_console(), pairs)


def _entry(facts: dict[str, Any]) -> str:
    return f"{facts['value']:.4g} {facts['unit']} ({facts['joint']}, {facts['place']})"


def _warn_of(facts: dict[str, Any], max_joint_step: float, is_refused: bool) -> None:
    """Warn of poses not reached, or of motions that a robot may not follow."""
    _warn_some(
        f"{each['place']}: {each['status']}, the nearest found is {each['position_error']:.3g} "
        f"m and {each['rotation_error']:.3g} rad off"
        for each in facts["missed"]
    )
    if is_refused:
        warn("nothing is written; --approximate goes as near as possible")
        return
    _warn_some(
        f"{each['place']}: {each['joint']} moves by {each['change']:.3g} {each['unit']}, more than "
        f"{max_joint_step:g}: the tip does not go straight there"
        for each in facts["jumps"]
    )
    _warn_some(f"{place}: faster than a velocity limit" for place in facts["too_fast"])


def _warn_some(lines: Any) -> None:
    lines = list(lines)
    shown = lines if len(lines) <= MAX_LINES + 1 else lines[:MAX_LINES]
    for line in shown:
        warn(line)
    if len(shown) < len(lines):
        warn(f"and {len(lines) - len(shown)} more such lines")
