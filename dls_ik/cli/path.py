# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik path``: solution and timing of a file of poses, written as a joint trajectory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dls_ik.cli import bag, output
from dls_ik.cli.options import (
    ROBOT_HELP,
    ChosenRobot,
    ChosenScene,
    method_option,
    parse_task,
    robot_options,
    scene_options,
    seed_option,
    settings_option,
    start_values,
    task_option,
)
from dls_ik.cli.path_files import (
    OUTPUT_KINDS,
    Trajectory,
    check_target,
    draw_trajectory,
    write_trajectory,
)
from dls_ik.cli.pose import PoseFile, read_poses, unit_options, warn_far_poses
from dls_ik.cli.redundancy import ChosenRedundancy, level_facts, redundancy_options
from dls_ik.cli.terminal import ProgressBars, stdout_console
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.tables import print_pairs
from dls_ik.text import short

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.solver.result import IkPathResult
    from dls_ik.solver.solver import IkSolver
    from dls_ik.solver.task import Task
    from dls_ik.solver.task_stack import TaskStack

EPILOG = (
    "POSES is a CSV file with the header x,y,z,qx,qy,qz,qw or x,y,z,roll,pitch,yaw, and t for "
    f"times [s]; or a JSON list of 4x4 matrices; or - for standard input. {ROBOT_HELP} Exit codes: "
    "0 written; 1 nothing written, as a pose is not reached or is in collision; 2 bad input."
)
MAX_LINES = 10  # maximum number of warnings of one kind
MAX_STARTS = 8  # maximum number of solutions of the first pose from which a path is started
FASTEST = "as fast as the velocity limits allow"


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
    "--format",
    "kind",
    type=click.Choice(OUTPUT_KINDS),
    help="Format of FILE, instead of by its suffix.",
)
@click.option(
    "--storage", type=click.Choice(bag.STORAGES), default="sqlite3", help="Format of a bag."
)
@click.option(
    "--rate",
    type=click.FloatRange(1e-6, 1e6),
    metavar="HZ",
    help="Poses per second, instead of column t. Default: column t, else as fast as allowed.",
)
@seed_option
@method_option
@task_option
@redundancy_options
@scene_options
@click.option(
    "--max-joint-step",
    type=click.FloatRange(1e-9),
    metavar="X",
    default=0.5,
    help="Report joint changes above X [rad or m].",
)
@click.option(
    "--whole",
    is_flag=True,
    help="Solve the path as a whole: minimum reconfigurations, then minimum joint motion.",
)
@click.option(
    "--acceleration",
    type=click.FloatRange(1e-6),
    metavar="A",
    help="Write the fastest motion on the lines between the poses with joint accelerations up to A "
    "[rad/s^2 or m/s^2] and velocity limits. It has more points, velocities and accelerations.",
)
@click.option(
    "--jerk",
    type=click.FloatRange(1e-6),
    metavar="J",
    help="With --acceleration: joint jerks up to J [rad/s^3 or m/s^3].",
)
@click.option(
    "--tip-speed",
    type=click.FloatRange(1e-6),
    metavar="V",
    help="With --acceleration: a speed of the tip up to V [m/s].",
)
@unit_options
@click.option("--approximate", is_flag=True, help="Accept the closest configurations.")
@settings_option
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw the joints, and the tip in FILE-tip: .png, .svg, .pdf.",
)
@output.json_option
def path(
    chosen: ChosenRobot,
    poses: str,
    out: str,
    kind: str | None,
    storage: str,
    rate: float | None,
    seed: tuple[str, ...],
    method: str,
    task: str,
    freedom: ChosenRedundancy,
    around: ChosenScene,
    max_joint_step: float,
    whole: bool,
    acceleration: float | None,
    jerk: float | None,
    tip_speed: float | None,
    deg: bool,
    mm: bool,
    approximate: bool,
    settings: dict[str, Any],
    plot: str | None,
    as_json: bool,
) -> None:
    """Turn a file of poses into a joint trajectory, as CSV, JSON or a rosbag2."""
    if as_json and out == output.STDOUT:
        raise click.UsageError("--json prints a summary to standard output; give a file as --out")
    target = check_target(out, kind, storage, plot)
    given = read_poses(poses, deg, mm)
    timing = _timing_options(acceleration, jerk, tip_speed)
    _check_times(timing, rate, given)
    if plot is not None and len(given.poses) < 2:
        raise click.UsageError("--plot needs a path of at least 2 poses")
    robot = chosen.read()
    warn_far_poses("a pose", given.poses, robot)
    from dls_ik.solver.solver import IkSolver

    scene = around.read(robot)
    start = start_values(robot, seed, deg)
    stack = freedom.read_stack(robot, task, deg)
    arm, settings = freedom.freeze(robot, start, deg), freedom.with_weights(robot, settings)
    solver = IkSolver(arm, method, scene=scene, **settings, approximate=approximate)
    wanted = parse_task(task) if stack is None else stack
    with ProgressBars() as bars:
        limits: Any = {"max_joint_step": max_joint_step, "progress": bars.counter("poses")}
        if whole:
            result = solver.solve_path(given.poses, start, wanted, whole=True, **limits)
        else:
            result = solve_along(solver, given.poses, start, wanted, **limits)
    if timing and np.isinf(robot.velocity).any():
        rate = 1.0  # only for pictures of a path that cannot be timed
    times = _path_times(robot, result.q, given.times, rate)
    trajectory = Trajectory(
        robot, given, result, *times, stack, scene=scene, scene_files=around.files, whole=whole
    )
    facts = _summary(trajectory, max_joint_step)
    is_refused = bool(facts["missed"] or facts["collisions"]) and not approximate
    _warn_of(facts, max_joint_step, is_refused)
    if timing and not is_refused:
        trajectory, is_refused = _timed(solver, trajectory, timing)
        facts = _summary(trajectory, max_joint_step)
    if is_refused:
        files = draw_trajectory(target, trajectory) if whole else {}
        for name, about in files.items():
            output.warn(f"wrote {name}: {about}")
    else:
        files = write_trajectory(target, trajectory, chosen.name)
    if as_json:
        output.print_json({**facts, "written": list(files)})
    elif not is_refused and out != output.STDOUT:
        _print_summary(facts, files)
    sys.exit(output.EXIT_NO_SOLUTION if is_refused else 0)


# Solve and time


def solve_along(
    solver: IkSolver,
    poses: Array,
    seed: Array | None,
    task: Task | TaskStack | None,
    max_joint_step: float,
    progress: Callable[[int, int], None],
) -> IkPathResult:
    """Solve successive poses (b, 4, 4), each starting from the solution of the previous pose.

    If no seed is given and the path has missed poses, collisions or jumps, the path is solved again
    from further solutions of the first pose, and the best result is returned.

    Args:
        solver: Solver.
        poses: (b, 4, 4) poses to reach.
        seed: (n,) start configuration [rad or m], or None.
        task: Components of the pose that are solved, or a stack; None for the whole pose.
        max_joint_step: Maximum joint change between two poses [rad or m]; a larger change is a
            jump.
        progress: Called with the number of solved poses and the number of all poses.
    """
    limits: Any = {"max_joint_step": max_joint_step, "progress": progress}
    best = solver.solve_path(poses, seed, task, **limits)
    if seed is not None or not any(_flaws(best)):
        return best
    for start in solver.solve_all(poses[0], MAX_STARTS, task=task):
        other = solver.solve_path(poses, start, task, **limits)
        best = min(best, other, key=_flaws)
        if not any(_flaws(best)):
            break
    return best


def _flaws(result: IkPathResult) -> tuple[int, int, int]:
    """Return the numbers of missed poses, collisions and jumps of a solved path, for comparison.

    A pose for which the closest configuration was accepted counts as missed too.
    """
    touching = sum(each is not None for each in result.contacts)
    return int(np.count_nonzero(result.status)), touching, int(result.jumps.sum())


def _path_times(
    robot: RobotModel, q: Array, given: Array | None, rate: float | None
) -> tuple[Array, str]:
    """Return the times (b,) [s] of a joint path, and a text that says how they were determined.

    Args:
        robot: Robot with velocity limits.
        q: (b, n) joint path [rad or m].
        given: (b,) times in the file of poses [s], or None.
        rate: Poses per second [Hz], which overrides `given`, or None.

    Raises:
        OptionError: If neither times nor a rate are given, and a moving joint has no velocity
            limit.
    """
    from dls_ik.solver.trajectory import path_times

    if rate is not None:
        return path_times(robot, q, rate=rate), f"at {rate:g} Hz"
    if given is not None:
        return given, "column t"
    try:
        return path_times(robot, q), FASTEST
    except OptionError as error:
        reason = str(error).partition(";")[0]
        raise OptionError(f"{reason}; give --rate or a column t") from error


def _timing_options(
    acceleration: float | None, jerk: float | None, tip_speed: float | None
) -> dict[str, Any]:
    """Return options of :func:`dls_ik.time_path`; empty if --acceleration is not given.

    Raises:
        click.UsageError: If --jerk or --tip-speed is given without --acceleration.
    """
    limits = {"acceleration": acceleration, "jerk": jerk, "max_linear_speed": tip_speed}
    given = {name: value for name, value in limits.items() if value is not None}
    if given and acceleration is None:
        name = "--jerk" if jerk is not None else "--tip-speed"
        raise click.UsageError(f"{name} needs --acceleration, the limit of the joint accelerations")
    return given


def _check_times(timing: dict[str, Any], rate: float | None, given: PoseFile) -> None:
    """Check that the times of the path are not given if the fastest motion is requested.

    Raises:
        click.UsageError: If --acceleration is given together with --rate or a column t.
    """
    if timing and (rate is not None or given.times is not None):
        which = "column t" if rate is None else "--rate"
        raise click.UsageError(f"--acceleration computes the times of the poses; leave out {which}")


def _timed(
    solver: IkSolver, trajectory: Trajectory, timing: dict[str, Any]
) -> tuple[Trajectory, bool]:
    """Return the fastest trajectory on the lines between the poses, and whether it is refused.

    A path with reconfigurations is refused with a warning, because it leaves the lines.

    Raises:
        DlsIkError: If the tip cannot stay on the lines.
    """
    from dls_ik.servo.path_timing import time_path

    if trajectory.result.reconfigurations:
        output.warn(
            "nothing is written: a path with reconfigurations leaves the lines between its poses; "
            "leave out --acceleration, or time each section of the path"
        )
        return trajectory, True
    timed = time_path(solver, trajectory.given.poses, trajectory.result, **timing)
    limits = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in timing.items())
    return trajectory._replace(timed=timed, source=f"fastest with {limits}"), False


# Summary


def _summary(trajectory: Trajectory, max_step: float) -> dict[str, Any]:
    """Return the statistics of a trajectory as a JSON document.

    Args:
        trajectory: Trajectory.
        max_step: Joint changes between two poses above this value are jumps [rad or m].
    """
    robot, result, t, timed = trajectory.robot, trajectory.result, trajectory.t, trajectory.timed
    places, q, stack = trajectory.given.places, result.q, trajectory.stack
    missed = _missed_facts(result, places)
    steps = np.abs(np.diff(q, axis=0, prepend=q[:1]))  # (b, n) joint changes; the first row is 0
    margins = np.minimum(q - robot.lower, robot.upper - q)
    rates = steps[1:] / np.diff(t)[:, None]
    if timed is not None:
        rates = np.abs(timed.v)
    share = (rates / robot.velocity).max(axis=1, initial=0.0)  # 1 is at a velocity limit
    jumps = np.flatnonzero((steps > max_step).any(axis=1))

    def about(index: np.intp) -> dict[str, str]:
        """Return unit, joint and place in the file for a flat index into an array (b, n)."""
        i, j = divmod(int(index), robot.n)
        return {"unit": robot.units[j], "joint": robot.joint_names[j], "place": places[i]}

    return {
        "robot": robot.name,
        "poses": len(places),
        "reached": len(places) - len(missed),
        "missed": missed,
        "collisions": [
            {"place": places[i], "share_of_way": each.time, "pair": each.names}
            for i, each in enumerate(result.contacts)
            if each is not None
        ],
        "position_error": result.position_error.max(),
        "rotation_error": result.rotation_error.max(),
        "largest_step": {"value": steps.max(), **about(steps.argmax())},
        "nearest_limit": {"value": margins.min(), **about(margins.argmin())},
        "jumps": [
            {"change": steps[i].max(), **about(i * robot.n + steps[i].argmax())} for i in jumps
        ],
        "reconfigurations": _reconfiguration_facts(result, places),
        "min_reconfigurations": result.min_reconfigurations,
        "fraction": result.fraction,
        "duration": t[-1] - t[0] if timed is None else timed.duration,
        "times": trajectory.source,
        "largest_share_of_velocity_limit": share.max(initial=0.0),
        "too_fast": []
        if timed is not None
        else [places[i + 1] for i in np.flatnonzero(share > 1.0 + 1e-6)],
        "seconds_to_solve": result.duration,
        **({} if stack is None else {"levels": level_facts(stack, _largest(result.level_errors))}),
    }


def _missed_facts(result: IkPathResult, places: Sequence[str]) -> list[dict[str, Any]]:
    """Return place, status and errors of each missed pose."""
    return [
        {
            "place": places[i],
            "status": str(result[i].status),
            "position_error": result.position_error[i],
            "rotation_error": result.rotation_error[i],
            "pair_in_the_way": result[i].pair_in_the_way,
        }
        for i in np.flatnonzero(result.status).tolist()
    ]


def _reconfiguration_facts(result: IkPathResult, places: Sequence[str]) -> list[dict[str, Any]]:
    """Return place and reason of each reconfiguration."""
    return [
        {
            "place": places[each.pose],
            "last_place": places[each.last],
            "reason": each.reason,
            "names": each.names,
            "explanation": each.explanation,
        }
        for each in result.reconfigurations
    ]


def _largest(errors: Array) -> list[float]:
    """Return the largest of the errors (b, l) of each level; NaN for levels of objectives."""
    found = ([x for x in column if not np.isnan(x)] for column in errors.T.tolist())
    return [max(column, default=np.nan) for column in found]


def _print_summary(facts: dict[str, Any], files: dict[str, str]) -> None:
    """Print the statistics of a trajectory, and a description of each written file."""
    margin = facts["nearest_limit"]
    pairs = [
        ("poses", f"{facts['poses']}, {facts['reached']} reached"),
        ("error", f"{facts['position_error']:.2g} m, {facts['rotation_error']:.2g} rad"),
        *((f"level {k}", _level_text(each)) for k, each in enumerate(facts.get("levels", ()), 1)),
        ("largest step", _value_text(facts["largest_step"])),
        ("closest limit", _value_text(margin) if np.isfinite(margin["value"]) else "none"),
        ("duration", f"{facts['duration']:.4g} s, {facts['times']}"),
    ]
    if facts["times"] != FASTEST:
        share = 100.0 * facts["largest_share_of_velocity_limit"]
        pairs.append(("fastest", f"{share:.3g} % of a velocity limit"))
    pairs += [("wrote", f"{name}: {about}") for name, about in files.items()]
    print_pairs(stdout_console(), pairs)


def _level_text(level: dict[str, Any]) -> str:
    """Return the largest error and the tasks of a level as text; objectives have no error."""
    error = level["error"]
    return f"up to {short(error)}: {level['tasks']}" if np.isfinite(error) else level["tasks"]


def _value_text(facts: dict[str, Any]) -> str:
    """Return a value with its unit, joint and place in the file as text."""
    return f"{facts['value']:.4g} {facts['unit']} ({facts['joint']}, {facts['place']})"


def _warn_of(facts: dict[str, Any], max_joint_step: float, is_refused: bool) -> None:
    """Warn of missed poses, collisions, jumps, and motions that exceed a velocity limit.

    Args:
        facts: Statistics of the trajectory.
        max_joint_step: Joint changes above this value are jumps [rad or m].
        is_refused: Whether nothing is written, because a pose is missed or in collision.
    """
    _warn_briefly(f"{each['place']}: {each['status']}, {_reason(each)}" for each in facts["missed"])
    _warn_briefly(
        f"{each['place']}: {' - '.join(each['pair'])} collide on the straight joint path to this "
        f"pose, at {each['share_of_way']:.0%}"
        for each in facts["collisions"]
    )
    if is_refused:
        output.warn("nothing is written; --approximate uses the closest configurations instead")
        return
    _warn_briefly(
        f"{each['place']}: {each['joint']} moves by {each['change']:.3g} {each['unit']}, more than "
        f"{max_joint_step:g}: the tip does not move straight to this pose"
        for each in facts["jumps"]
    )
    _warn_briefly(
        f"{each['place']}: the arm reconfigures before this pose; after {each['last_place']}, "
        f"{each['explanation']}"
        for each in facts["reconfigurations"]
    )
    _warn_briefly(f"{place}: faster than a velocity limit" for place in facts["too_fast"])


def _reason(missed: dict[str, Any]) -> str:
    """Return a text that explains why a pose is missed."""
    if missed["pair_in_the_way"]:
        return f"most frequent collision: {' - '.join(missed['pair_in_the_way'])}"
    position, rotation = missed["position_error"], missed["rotation_error"]
    return f"the closest configuration is off by {position:.3g} m and {rotation:.3g} rad"


def _warn_briefly(lines: Any) -> None:
    """Print the first `MAX_LINES` warnings of one kind, and the number of the omitted warnings."""
    lines = list(lines)
    shown = lines if len(lines) <= MAX_LINES + 1 else lines[:MAX_LINES]
    for line in shown:
        output.warn(line)
    if len(shown) < len(lines):
        output.warn(f"and {len(lines) - len(shown)} more of these warnings")
