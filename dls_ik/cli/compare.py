# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik compare``: step-by-step comparison of methods, at one target and along a path."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dls_ik.cli import output
from dls_ik.cli.options import (
    ROBOT_HELP,
    TASK_CHOICES,
    ChosenRobot,
    parse_task,
    plugin_option,
    robot_options,
    seed_option,
    settings_option,
    start_values,
)
from dls_ik.cli.pose import read_poses, unit_options, warn_far_poses
from dls_ik.cli.redundancy import ChosenRedundancy, redundancy_options, tip_task
from dls_ik.cli.terminal import figure, print_method_table, stdout_console
from dls_ik.solver.method import KDL_METHODS
from dls_ik.tables import print_note
from dls_ik.text import did_you_mean, short

if TYPE_CHECKING:
    from dls_ik.core.types import Array
    from dls_ik.model.robot import RobotModel
    from dls_ik.solver.comparison import PathComparison
    from dls_ik.solver.hard_paths import PosePath
    from dls_ik.solver.task import Task

PATHS = ("singularity", "reach")
DEFAULT_METHODS = "jp,dls,svf,sd,ctp+sd+svf"
DEFAULT_RATE = 100.0  # [Hz] poses per second for a file without times
EPILOG = (
    f"PATH is {PATHS[0]}: past a singularity of the arm and back, or to the edge of its reach if "
    f"there is no such path; {PATHS[1]}: out of reach and back; or a file of poses as for dls-ik "
    "path. Methods make one step for each target, without the limits of a controller. "
    f"{ROBOT_HELP} Exit codes: 0 done, 2 bad input."
)


@click.command(epilog=EPILOG, short_help="Compare methods step by step through a singularity.")
@robot_options
@click.option(
    "--method",
    "methods",
    metavar="A,B,...",
    default=DEFAULT_METHODS,
    help="Methods; see dls-ik methods.",
)
@click.option(
    "--path", "path_name", metavar="PATH", default=PATHS[0], help="Name or file of a path."
)
@click.option(
    "--rate",
    type=click.FloatRange(1e-3, 1e6),
    metavar="HZ",
    help="Poses of a file per second, instead of its column t.  [default: column t, else 100]",
)
@seed_option
@click.option(
    "--task",
    type=click.Choice(TASK_CHOICES),
    help="Target, as for solve.  [default: the pose; the position if the tip cannot move in all "
    "six directions]",
)
@redundancy_options
@unit_options
@plugin_option
@settings_option
@output.plot_option("error, joint speed, condition number and distance to the limits")
@output.json_option
def compare(
    chosen: ChosenRobot,
    methods: str,
    path_name: str,
    rate: float | None,
    seed: tuple[str, ...],
    task: str | None,
    freedom: ChosenRedundancy,
    deg: bool,
    mm: bool,
    settings: dict[str, Any],
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare methods step by step: toward one target, and along a path through a singularity."""
    output.check_outputs(plot=plot)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--method is empty; give one or more methods, such as jp,svf")
    stepless = [name for name in names if name.lower() in KDL_METHODS]
    if stepless:
        raise click.UsageError(
            f"{stepless[0]} has no single steps; use dls-ik solve or study to compare it"
        )
    if path_name in PATHS and (rate is not None or seed):
        raise click.UsageError("--rate and --seed need a file of poses as --path")
    if freedom.weights and not freedom.posture:
        raise click.UsageError(
            "--weights has no effect without --posture, because bare steps have no joint weights; "
            "dls-ik view ROBOT --weights shows motion with them"
        )
    robot = chosen.read()
    start = start_values(robot, seed, deg)
    frozen = freedom.frozen_positions(robot, start, deg)
    if frozen:
        moving = np.array([name not in frozen for name in robot.joint_names])
        robot = robot.locked(frozen)
        start = None if start is None else start[moving]
    from dls_ik.solver.comparison import compare_on_path
    from dls_ik.solver.hard_paths import default_task

    wanted = default_task(robot) if task is None else parse_task(task)
    stack = freedom.read_stack(robot, "position" if wanted and task is None else task, deg)
    wanted = tip_task(stack, wanted)
    path = _path(robot, wanted, path_name, rate, start, deg, mm)
    asked = wanted if stack is None else stack
    found = compare_on_path(robot, names, path, asked, **settings)
    if plot is not None:
        from dls_ik.plot import path_comparison

        output.save_plot(plot, path_comparison(found))
    output.print_json(_document(found)) if as_json else _print(found)


def _path(
    robot: RobotModel,
    task: Task | None,
    name: str,
    rate: float | None,
    start: Array | None,
    deg: bool,
    mm: bool,
) -> PosePath:
    """Return the built-in path called `name`, or the path in the file `name`.

    Raises:
        click.UsageError: If the name is unknown, or the file has fewer than two poses.
        PoseError: If the file cannot be read.
    """
    from dls_ik.solver.hard_paths import PosePath, reach_path, singular_path

    if name in PATHS:
        return singular_path(robot, task) if name == PATHS[0] else reach_path(robot, task)
    if name.isidentifier():
        hint = did_you_mean(name, PATHS) or f"give {', '.join(PATHS)} or a file of poses"
        raise click.UsageError(f"--path: unknown path {name!r}; {hint}")
    given = read_poses(name, deg, mm)
    if len(given.poses) < 2:
        raise click.UsageError(f"--path: a path must have at least 2 poses; {name} has one")
    warn_far_poses("a pose", given.poses, robot)
    dt = 1.0 / (rate or DEFAULT_RATE)
    if rate is None and given.times is not None:
        dt = _time_step(name, given.times)
    start = _start(robot, task, given.poses[0], start)
    return PosePath(f"along {name}", given.poses, dt, start)


def _time_step(name: str, t: Array) -> float:
    """Return the constant step [s] between the times t (b,) [s] of a path.

    Args:
        name: Name of the file, for the message.
        t: (b,) increasing times [s].

    Raises:
        click.UsageError: If the times are not evenly spaced.
    """
    steps = np.diff(t)
    dt = float(np.mean(steps))
    if np.abs(steps - dt).max() > 1e-3 * dt:
        raise click.UsageError(f"--path: the times in {name} are not evenly spaced; give --rate")
    return dt


def _start(robot: RobotModel, task: Task | None, T: Array, seed: Array | None) -> Array:
    """Return the start configuration (n,) of a path [rad or m].

    Args:
        robot: Robot that follows the path.
        task: Components of the pose that are solved; None for all.
        T: (4, 4) first pose of the path.
        seed: (n,) start configuration given by --seed; None solves the first pose instead.

    Raises:
        click.UsageError: If the solver does not reach the first pose.
    """
    if seed is not None:
        return seed
    from dls_ik.solver.solver import IkSolver

    found = IkSolver(robot, task=task).solve(T)
    if not found.success:
        raise click.UsageError(f"--path: the first pose is not reached: {found.status.explanation}")
    return found.q


def _document(found: PathComparison) -> dict[str, Any]:
    """Return the results of a comparison as a JSON document."""
    path, robot = found.path, found.robot
    return {
        "robot": robot.name,
        "path": path.about,
        "targets": len(path.Ts),
        "dt": path.dt,
        "start": robot.named(path.start),
        "first_counted": path.first_counted,
        "methods": [{"method": name, **peak._asdict()} for name, peak in found.peaks().items()],
    }


def _print(found: PathComparison) -> None:
    """Print the results of a comparison as a table with one row per method."""
    units = sorted(set(found.robot.units), reverse=True)
    unit, speed = " or ".join(units), " or ".join(f"{each}/s" for each in units)
    headings = (
        "method", "steps", f"fastest [{speed}]", "error [mm]", "rms [mm]", "condition",
        f"to limit [{unit}]",
    )  # fmt: skip
    lower = max(len(peak.levels) for peak in found.peaks().values())
    rows = [
        [
            name,
            "-" if peak.iterations is None else str(peak.iterations),
            short(peak.fastest_joint, 3),
            short(1e3 * peak.largest_error, 3),
            short(1e3 * peak.rms_error, 3),
            short(peak.condition, 3),
            figure(peak.margin, 2) if math.isfinite(peak.margin) else "none",
            *map(short, peak.levels[1:]),
        ]
        for name, peak in found.peaks().items()
    ]
    console, path = stdout_console(), found.path
    about = f"{found.robot.name} {path.about}: {len(path.Ts)} targets, {1.0 / path.dt:g} per second"
    console.print(about, style="bold", markup=False, soft_wrap=True)
    lower_headings = (f"level {k}" for k in range(2, lower + 1))
    print_method_table(console, (*headings, *lower_headings), rows)
    lap = ", both of the second lap" if path.first_counted else ""
    console.print()
    print_note(
        console,
        "steps: from the first to the farthest pose, - if over 250; fastest: "
        f"largest joint velocity along the path; error: largest position error{lap}; condition: "
        "largest condition number; to limit: smallest distance to a limit, negative beyond it"
        + ("; level: root mean square of the error of a lower level" if lower else ""),
    )
