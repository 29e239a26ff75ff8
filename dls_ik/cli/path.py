"""``dls-ik path``: a file of poses to a joint trajectory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console

from dls_ik.cli.exits import NO_SOLUTION, say
from dls_ik.cli.joints import joint_vector
from dls_ik.cli.options import (
    ROBOT,
    find_robot,
    robot_options,
    settings_option,
    task_of,
    task_option,
)
from dls_ik.cli.output import STDOUT, json_option, print_json
from dls_ik.cli.pose import doubt_distance, unit_options
from dls_ik.cli.pose_file import PoseFile, read_poses
from dls_ik.cli.terminal import Bars, print_pairs, stdout_console
from dls_ik.cli.trajectory_file import KINDS, STORAGES, Output, checked_output, written

if TYPE_CHECKING:
    from dls_ik.cli.trajectory import Trajectory
    from dls_ik.model.robot import RobotModel

EPILOG = (
    "POSES is a CSV file with the header x,y,z,qx,qy,qz,qw or x,y,z,roll,pitch,yaw, and t for "
    f"times [s]; or a JSON list of 4x4 matrices; or - for standard input. {ROBOT} Exit codes: 0 "
    "written, 1 a pose is not reached and nothing is written, 2 bad input."
)
NOTHING = "nothing is written; --approximate goes as near as can be"


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
    "--format", "kind", type=click.Choice(KINDS), help="What FILE is, whatever its ending says."
)
@click.option(
    "--storage", type=click.Choice(STORAGES), default="sqlite3", show_default=True, help="Of a bag."
)
@click.option(
    "--rate",
    type=click.FloatRange(1e-6, 1e6),
    metavar="HZ",
    help="Poses a second, whatever the file says. Default: column t, else as fast as can be.",
)
@click.option(
    "--seed", metavar="VALUES", multiple=True, help="Where to begin (0.1,0.2 or j1=0.1) [rad or m]."
)
@click.option(
    "--method", default="auto", show_default=True, metavar="NAME", help="See docs/methods.md."
)
@task_option
@click.option(
    "--max-joint-step",
    type=click.FloatRange(1e-9),
    metavar="X",
    default=0.5,
    show_default=True,
    help="Larger changes of a joint are said [rad or m].",
)
@unit_options
@click.option("--approximate", is_flag=True, help="Go as near as can be to poses not reached.")
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
    **asked: Any,
) -> None:
    """Turn a file of poses into a joint trajectory, as CSV, JSON or a rosbag2."""
    if as_json and out == STDOUT:
        raise click.UsageError("--json prints a summary: give --out a file, not -")
    output = checked_output(out, kind, storage, plot)
    jump = asked["max_joint_step"]
    given = read_poses(poses, deg, mm)
    if plot is not None and len(given.poses) < 2:
        raise click.UsageError("--plot draws a path of two poses or more")
    model = find_robot(robot, base, tip)
    doubt_distance("a pose", given.poses, model)
    trajectory = _solved(model, given, approximate, deg, **asked)
    from dls_ik.cli.trajectory import summary

    facts = summary(trajectory, jump)
    is_refused = bool(facts["missed"]) and not approximate
    for line in [*_reasons(facts), *([NOTHING] if is_refused else _complaints(facts, jump))]:
        say(line)
    _say(facts, output, [] if is_refused else written(output, trajectory), as_json)
    sys.exit(NO_SOLUTION if is_refused else 0)


def _solved(
    robot: RobotModel,
    given: PoseFile,
    approximate: bool,
    deg: bool,
    rate: float | None,
    seed: tuple[str, ...],
    method: str,
    task: str,
    max_joint_step: float,
    settings: dict[str, Any],
) -> Trajectory:
    from dls_ik.cli.trajectory import Trajectory, solved_path, timed
    from dls_ik.solver.solver import IkSolver

    solver = IkSolver(robot, method, **settings, approximate=approximate)
    start = joint_vector(robot, seed, "--seed", deg)[0] if seed else None
    with Bars(Console(stderr=True)) as bars:
        show = bars.counter("poses")
        result = solved_path(solver, given.poses, start, task_of(task), max_joint_step, show)
    return Trajectory(robot, given, result, timed(robot, result.q, given.times, rate))


def _say(facts: dict[str, Any], output: Output, lines: list[str], as_json: bool) -> None:
    if as_json:
        print_json({**facts, "written": [line.partition(":")[0] for line in lines]})
    elif lines and output.path != STDOUT:
        _show_summary(facts, lines)


def _show_summary(facts: dict[str, Any], written: list[str]) -> None:
    """Print the summary for people."""
    from dls_ik.cli.trajectory import FASTEST

    step, room = facts["largest_step"], facts["nearest_limit"]
    free = not np.isfinite(room["value"])
    share = facts["largest_share_of_velocity_limit"]
    is_fastest = facts["times"] == FASTEST
    print_pairs(
        stdout_console(),
        [
            ("poses", f"{facts['poses']}, {facts['reached']} reached"),
            ("error", f"{facts['position_error']:.2g} m, {facts['rotation_error']:.2g} rad"),
            ("largest step", _shown(step)),
            ("nearest limit", "none" if free else _shown(room)),
            ("duration", f"{facts['duration']:.4g} s, {facts['times']}"),
            *([] if is_fastest else [("fastest", f"{100.0 * share:.3g} % of a velocity limit")]),
            *[("wrote", line) for line in written],
        ],
    )


def _shown(extreme: dict[str, Any]) -> str:
    where = f"{extreme['joint']}, {extreme['place']}"
    return f"{extreme['value']:.4g} {extreme['unit']} ({where})"


def _complaints(facts: dict[str, Any], jump: float, most: int = 10) -> list[str]:
    """Lines for what a robot may not follow, at most so many of a kind."""
    far = [
        f"{each['place']}: {each['joint']} moves by {each['change']:.3g} {each['unit']}, more than "
        f"{jump:g}: the tip does not go straight there"
        for each in facts["jumps"]
    ]
    fast = [f"{place}: faster than a velocity limit" for place in facts["too_fast"]]
    return [*_some(far, most), *_some(fast, most)]


def _reasons(facts: dict[str, Any], most: int = 10) -> list[str]:
    """Lines for the poses that are not reached."""
    return _some(
        [
            f"{each['place']}: {each['status']}, the nearest found is {each['position_error']:.3g} "
            f"m and {each['rotation_error']:.3g} rad off"
            for each in facts["missed"]
        ],
        most,
    )


def _some(lines: list[str], most: int) -> list[str]:
    if len(lines) <= most + 1:
        return lines
    return [*lines[:most], f"and {len(lines) - most} more such lines"]
