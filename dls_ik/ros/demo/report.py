"""Tables that fit 60 columns, pictures of the motion, and a JSON file of every figure."""

import json
import math
from math import degrees
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot import joint_bands, tip_path
from dls_ik.ros.demo.ask import Answer
from dls_ik.ros.demo.node import code_name
from dls_ik.ros.demo.stream import JointUse, Motion, Spread, Tracking
from dls_ik.ros.demo.verdict import Criterion, Load, has_passed

BAR = 16  # characters


def is_plain(console: Console) -> bool:
    """Whether only ASCII can be shown."""
    return console.options.ascii_only


def mark(console: Console, good: bool) -> str:
    """A tick or a cross."""
    signs = ("NO", "ok") if is_plain(console) else ("\u2717", "\u2713")
    return f"[bold green]{signs[1]}[/]" if good else f"[bold red]{signs[0]}[/]"


def answers_table(console: Console, answers: list[Answer], checker: str) -> Table:
    """Two lines for each pose."""
    table = _table()
    table.add_column("pose\n[dim]xyz in m, rpy in deg[/]", ratio=1)
    table.add_column("answer\n[dim]inside limits?[/]")
    table.add_column(f"error by\n[dim]{checker}[/]", justify="right")
    table.add_column("round trip\n[dim]solve[/]", justify="right")
    for answer in answers:
        table.add_row(
            f"{answer.pose.name}\n[dim]{_coordinates(answer.pose.T)}[/]",
            f"{mark(console, answer.is_right)} {code_name(answer.code)}\n[dim]{_inside(answer)}[/]",
            _errors(answer),
            f"{_time(answer.round_trip)}\n[dim]{_time(answer.solve_time)}[/]",
        )
    return table


def tracking_table(tracking: Tracking) -> Table:
    """The figures of the stream; what they are, :class:`Tracking` says."""
    t = tracking
    table = _spread_table(f"tip, {_time(t.lag)} behind", "mean")
    for name, errors, words in (
        ("to the moving target", t.position_error, _length),
        ("to the target's path", t.path_error, _length),
        ("rotation error", t.rotation_error, _angle),
    ):
        table.add_row(name, words(errors.mean), words(errors.p99), words(errors.max))
    return table


def timing_table(tracking: Tracking) -> Table:
    """How long messages take, and how regularly they come."""
    t = tracking
    table = _spread_table("latency", "median")
    for name, times in (
        ("target to joint states", t.latency),
        ("  of it, since computed", t.delivery),
        ("between targets", t.target_interval),
        ("between joint states", t.state_interval),
    ):
        table.add_row(name, _time(times.median), _time(times.p99), _time(times.max))
    return table


def _spread_table(title: str, middle: str) -> Table:
    table = _table()
    table.add_column(title, ratio=1)
    for name in (middle, "99 %", "max"):
        table.add_column(name, justify="right")
    return table


def joints_table(console: Console, uses: list[JointUse]) -> Table:
    """How near each joint came to its limits."""
    table = _table()
    table.add_column("joint")
    table.add_column("lower", justify="right")
    table.add_column("range used", no_wrap=True)
    table.add_column("upper")
    table.add_column("room\n[dim]rad[/]", justify="right")
    table.add_column("speed\n[dim]max[/]", justify="right")
    for use in uses:
        table.add_row(
            use.name,
            f"{use.lower:g}",
            _bar(use, is_plain(console)),
            f"{use.upper:g}",
            f"{use.room:.2f}",
            f"{use.top_speed / use.velocity:.0%}",
        )
    return table


def criteria_lines(console: Console, criteria: list[Criterion]) -> Table:
    """Every check with a tick or a cross; those that the clock has a part in apart, with a ~."""
    table = Table.grid(padding=(0, 1))
    for criterion in criteria:
        if not criterion.by_the_clock:
            table.add_row(mark(console, criterion.holds), criterion.text)
    table.add_row("", "[dim]by the clock, which does not decide:[/]")
    for criterion in criteria:
        if criterion.by_the_clock:
            sign = mark(console, True) if criterion.holds else "[bold yellow]~[/]"
            table.add_row(sign, criterion.text)
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, expand=False)


def _coordinates(T: Array) -> str:
    xyz = " ".join(f"{value:.2f}" for value in T[:3, 3].round(2) + 0.0)
    roll = np.arctan2(T[2, 1], T[2, 2])
    pitch = np.arctan2(-T[2, 0], np.hypot(T[2, 1], T[2, 2]))
    yaw = np.arctan2(T[1, 0], T[0, 0])
    return xyz + "  " + " ".join(f"{round(degrees(angle))}" for angle in (roll, pitch, yaw))


def _inside(answer: Answer) -> str:
    if answer.q is None:
        return "as expected" if answer.is_right else "unexpected"
    return "inside limits" if answer.inside else "OUTSIDE limits"


def _errors(answer: Answer) -> str:
    if answer.q is None:
        return "-"
    return f"{answer.position_error:.0e} m\n{answer.rotation_error:.0e} rad"


def _time(value: float) -> str:
    return f"{1e6 * value:.0f} us" if value < 5e-4 else f"{1e3 * value:.1f} ms"


def _length(value: float) -> str:
    return f"{1e3 * value:.2f} mm"


def _angle(value: float) -> str:
    return f"{1e3 * value:.2f} mrad"


def _bar(use: JointUse, plain: bool) -> str:
    """The band between the limits, with the part that was used filled."""
    if not np.isfinite(use.upper - use.lower):
        return "no limits"
    empty, full = (".", "#") if plain else ("\u00b7", "\u2588")
    scale = BAR / (use.upper - use.lower)
    first = int(np.clip((use.least - use.lower) * scale, 0, BAR - 1))
    last = int(np.clip((use.greatest - use.lower) * scale, first, BAR - 1))
    return f"{empty * first}[blue]{full * (last - first + 1)}[/]{empty * (BAR - 1 - last)}"


def save_pictures(
    robot: RobotModel, motion: Motion, tracking: Tracking, folder: Path
) -> list[Path]:
    """Draw and save them; return where."""
    following = (
        f"A figure of eight streamed to the WAM: the tip is {1e3 * tracking.lag:.1f} ms behind "
        f"and {1e3 * tracking.path_error.mean:.2f} mm off the path"
    )
    inside = "The same motion, joint by joint, and the limits of each"
    figures: dict[str, Figure] = {
        "tip_path.png": tip_path(robot, motion.times, motion.q, motion.goal, following),
        "joint_positions.png": joint_bands(robot, motion.times, motion.q, inside),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=150)
    return [folder / name for name in figures]


def save_report(
    file: Path,
    answers: list[Answer],
    tracking: Tracking,
    uses: list[JointUse],
    criteria: list[Criterion],
    load: Load,
) -> None:
    """Write them as JSON, in SI units; what is not a number is null."""
    report = {
        "passed": has_passed(criteria),
        "load": {**load._asdict(), "is_busy": load.is_busy},
        "criteria": [criterion._asdict() for criterion in criteria],
        "answers": [_answer(answer) for answer in answers],
        "tracking": {
            name: value._asdict() if isinstance(value, Spread) else value
            for name, value in tracking._asdict().items()
        },
        "joints": [{**use._asdict(), "room": use.room} for use in uses],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(_finite(report), indent=2, allow_nan=False) + "\n")


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "pose": answer.pose.name,
        "T_base_tip": answer.pose.T.tolist(),
        "reachable": answer.pose.reachable,
        "code": answer.code,
        "answer": code_name(answer.code),
        "right": answer.is_right,
        "q": None if answer.q is None else answer.q.tolist(),
        "position_error": answer.position_error,
        "rotation_error": answer.rotation_error,
        "inside_limits": answer.inside,
        "round_trip": answer.round_trip,
        "solve_time": answer.solve_time,
    }


def _finite(value: Any) -> Any:
    """The same with null for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
