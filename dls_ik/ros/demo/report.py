# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Report of the demonstration: tables of 60 columns, pictures, checks, and results as JSON."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import degrees
from operator import itemgetter
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from dls_ik.core.types import Array
from dls_ik.errors import Code
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import rpy_from_rotation
from dls_ik.plot import joint_bands, tip_path
from dls_ik.ros.demo.measure import (
    MAX_SOLUTION_ERROR,
    JointUse,
    PoseCheck,
    RecordedMotion,
    Tracking,
)
from dls_ik.ros.demo.obstacle import ALLOWED, MIN_DISTANCE, Encounter, draw_encounter
from dls_ik.text import json_text

MAX_OTHER_LOAD = 0.25  # a machine is busy if other programs use more than this share of its cores

# Checks. Results that depend on time also depend on the load of the machine; therefore they do not
# decide whether the demonstration has passed. The bounds, and the 1 % of instants that may exceed
# them, tolerate stalls of the machine.

MIN_RATE = 0.8  # minimum rate of joint states as a fraction of the requested rate
PATH_TOLERANCE = 0.002  # [m] maximum distance of the tip to the path
TARGET_TOLERANCE = 0.05  # [m] maximum distance of tip and target; corresponds to a lag of 0.15 s
ROTATION_TOLERANCE = 0.01  # [rad] maximum rotation error of the tip
FIGURE_TOLERANCE = 0.05  # [m] maximum distance of the tip to the figure
MIN_HEARD = 0.8  # minimum fraction of targets sent before the last joint states arrived


@dataclass(frozen=True)
class Criterion:
    """Check of the demonstration: whether it holds, and a text that describes it.

    A check that depends on time does not decide whether the demonstration has passed.
    """

    holds: bool
    text: str
    depends_on_time: bool = False


def criteria(
    answers: Sequence[PoseCheck],
    tracking: Tracking,
    uses: Sequence[JointUse],
    encounter: Encounter,
    rate: float,
) -> list[Criterion]:
    """Return all checks of the demonstration; the checks that depend on time come last.

    Args:
        answers: Checked answers of ``compute_ik``.
        tracking: Statistics of the motion without the box.
        uses: Ranges and speeds of the joints in the motion without the box.
        encounter: Motion with the box.
        rate: Rate of the targets and of the node's control loop [Hz].
    """
    found = [
        *_answer_criteria(answers),
        *_motion_criteria(tracking, uses),
        _encounter_criterion(encounter),
    ]
    text = f"joint states arrived at {tracking.state_rate:.1f} Hz (at least {MIN_RATE * rate:g} Hz)"
    found.append(Criterion(tracking.state_rate >= MIN_RATE * rate, text, depends_on_time=True))
    for name, spread, bound, unit in (
        ("the target's path", tracking.path_error, PATH_TOLERANCE, "mm"),
        ("the moving target", tracking.position_error, TARGET_TOLERANCE, "mm"),
        ("the target's orientation", tracking.rotation_error, ROTATION_TOLERANCE, "mrad"),
    ):
        text = f"tip within {1e3 * spread.p99:.3g} {unit} of {name} in 99 % of the time"
        text = f"{text} (at most {1e3 * bound:g} {unit})"
        found.append(Criterion(spread.p99 <= bound, text, depends_on_time=True))
    error = encounter.error_after_box
    text = f"tip within {1e3 * error:.3g} mm of the figure after the box has disappeared"
    text = f"{text} (at most {1e3 * PATH_TOLERANCE:g} mm)"
    found.append(Criterion(error <= PATH_TOLERANCE, text, depends_on_time=True))
    return found


def _encounter_criterion(encounter: Encounter) -> Criterion:
    least, inside = encounter.min_box_distance, encounter.inside
    text = (
        f"the arm kept a distance of {1e3 * least:.2f} mm to the box (at least "
        f"{1e3 * MIN_DISTANCE:g} mm), while the target was inside the box for {inside:.1f} s"
    )
    return Criterion(least >= MIN_DISTANCE - ALLOWED and inside > 0.0, text)


def has_passed(found: Sequence[Criterion]) -> bool:
    """Return whether all checks hold, apart from the checks that depend on time."""
    return all(criterion.holds or criterion.depends_on_time for criterion in found)


def _answer_criteria(answers: Sequence[PoseCheck]) -> Iterator[Criterion]:
    for is_reachable, text in (
        (True, f"reachable poses solved within {MAX_SOLUTION_ERROR:g} m and {MAX_SOLUTION_ERROR:g} "
         "rad, within the "
         "joint limits"),
        (False, "unreachable poses answered with NO_IK_SOLUTION"),
    ):  # fmt: skip
        right = [answer.is_right for answer in answers if answer.pose.reachable is is_reachable]
        yield Criterion(all(right), f"{sum(right)} of {len(right)} {text}")


def _motion_criteria(tracking: Tracking, uses: Sequence[JointUse]) -> Iterator[Criterion]:
    most, heard = max(tracking.figure_error.p99, tracking.missed.p99), tracking.heard_until
    figure = f"the tip followed the whole figure within {1e3 * most:.3g} mm"
    yield Criterion(most <= FIGURE_TOLERANCE, f"{figure} (at most {1e3 * FIGURE_TOLERANCE:g} mm)")
    states = f"joint states arrived until {heard:.0%} of the targets were sent"
    yield Criterion(heard >= MIN_HEARD, f"{states} (at least {MIN_HEARD:.0%})")
    name, margin = min(((use.name, use.margin) for use in uses), key=itemgetter(1))
    if margin < 0.0:
        yield Criterion(False, f"{name} exceeded its limits by {-margin:.2g} rad")
    else:
        text = f"no joint exceeded its limits; the smallest margin is {margin:.2f} rad, of {name}"
        yield Criterion(True, text)


# Load of the machine


@dataclass(frozen=True)
class Load:
    """Load of the machine during the demonstration."""

    cores: int  # number of processor cores
    average: float | None  # load average of the last minute, including this program; None: unknown
    others: float | None  # fraction of all cores that other programs used; None: unknown

    @property
    def is_busy(self) -> bool:
        """Whether other programs used so much time that results depending on time are unreliable.

        If the time of other programs is unknown, the load average decides.
        """
        if self.others is not None:
            return self.others > MAX_OTHER_LOAD
        return self.average is not None and self.average > 1.5 * self.cores

    def __str__(self) -> str:
        known = []
        if self.others is not None:
            known.append(f"other programs used {self.others:.0%} of {self.cores} cores")
        if self.average is not None:
            known.append(f"load average {self.average:.1f}")
        return ", ".join(known) or f"{self.cores} cores, unknown load"


class LoadMeter:
    """Meter of the load of the machine since the construction of this object.

    Args:
        own: Ids of processes that count as part of this program, in addition to this process.
    """

    def __init__(self, *own: int) -> None:
        self._own = own
        self._begin = time.monotonic()
        self._before = _busy_time(), self.own_time()

    def result(self) -> Load:
        """Return the load of the machine since the construction of this object."""
        cores = os.cpu_count() or 1
        average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        busy, before = _busy_time(), self._before[0]
        if busy is None or before is None:
            return Load(cores, average, None)
        others = busy - before - (self.own_time() - self._before[1])
        elapsed = max(time.monotonic() - self._begin, 1e-9)
        return Load(cores, average, min(max(others / (elapsed * cores), 0.0), 1.0))

    def own_time(self) -> float:
        """Return the processor time [s] used so far by this process and the processes in `own`."""
        return time.process_time() + sum(map(_process_time, self._own))


def _busy_time() -> float | None:
    """Return the processor time [s] used by all programs since the boot; None if unknown.

    This includes the time that a hypervisor gave to other virtual machines (steal time).
    """
    try:
        fields = [float(word) for word in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]]
    except (OSError, ValueError):
        return None
    busy = sum(fields) - fields[3] - fields[4]  # the fields idle and iowait are excluded
    return busy / os.sysconf("SC_CLK_TCK")


def _process_time(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (float(fields[11]) + float(fields[12])) / os.sysconf("SC_CLK_TCK")


# Tables

BAR_CHARS = 16  # number of characters of a bar


def code_name(code: int) -> str:
    """Return the name of a MoveIt error code, such as ``NO_IK_SOLUTION``; ``code N`` if unknown."""
    return Code(code).name if code in set(Code) else f"code {code}"


def mark(console: Console, good: bool) -> str:
    """Return a tick if `good` is True, otherwise a cross, as rich markup."""
    signs = ("NO", "ok") if console.options.ascii_only else ("\u2717", "\u2713")
    return f"[bold green]{signs[1]}[/]" if good else f"[bold red]{signs[0]}[/]"


def answers_table(console: Console, answers: Sequence[PoseCheck], checker: str) -> Table:
    """Return a table of the answers, with two lines for each pose.

    Args:
        console: Console on which the table will be printed.
        answers: Checked answers of ``compute_ik``.
        checker: Name of the library that computed the errors.
    """
    table = _table()
    table.add_column("pose\n[dim]xyz in m, rpy in deg[/]", ratio=1)
    table.add_column("answer\n[dim]inside limits?[/]")
    table.add_column(f"error by\n[dim]{checker}[/]", justify="right")
    table.add_column("round trip\n[dim]solve[/]", justify="right")
    for answer in answers:
        sign, code = mark(console, answer.is_right), code_name(answer.code)
        table.add_row(
            f"{answer.pose.name}\n[dim]{_coordinates(answer.pose.T)}[/]",
            f"{sign} {code}\n[dim]{_inside(answer)}[/]",
            _errors(answer),
            f"{_time(answer.round_trip)}\n[dim]{_time(answer.solve_time)}[/]",
        )
    return table


def tracking_table(tracking: Tracking) -> Table:
    """Return a table of the tracking errors, which :class:`Tracking` defines."""
    t = tracking
    table = _table(f"tip, lag {_time(t.lag)}", "mean", "99 %", "max")
    for name, spread, unit in (
        ("distance to target", t.position_error, "mm"),
        ("distance to path", t.path_error, "mm"),
        ("rotation error", t.rotation_error, "mrad"),
    ):
        values = (spread.mean, spread.p99, spread.max)
        table.add_row(name, *(f"{1e3 * value:.2f} {unit}" for value in values))
    return table


def timing_table(tracking: Tracking) -> Table:
    """Return a table of the latencies of messages and of the intervals between messages."""
    t = tracking
    table = _table("latency", "median", "99 %", "max")
    for name, spread in (
        ("target to joint states", t.latency),
        ("age of joint states", t.delivery),
        ("between targets", t.target_interval),
        ("between joint states", t.state_interval),
    ):
        table.add_row(name, *map(_time, (spread.median, spread.p99, spread.max)))
    return table


def encounter_table(encounter: Encounter) -> Table:
    """Return a table of the distances of the arm to the box and of the tip to the figure."""
    table = _table("the arm and the box", "")
    table.add_row("minimum distance", f"{1e3 * encounter.min_box_distance:.2f} mm")
    table.add_row("closest link", encounter.link)
    table.add_row("time of the target in the box", f"{encounter.inside:.2f} s")
    table.add_row("tip to figure, with box", f"{1e3 * encounter.error_with_box:.0f} mm")
    table.add_row("tip to figure, after box", f"{1e3 * encounter.error_after_box:.2f} mm")
    return table


def joints_table(console: Console, uses: Sequence[JointUse]) -> Table:
    """Return a table of the ranges and speeds of the joints."""
    table = _table()
    table.add_column("joint")
    table.add_column("lower", justify="right")
    table.add_column("range used", no_wrap=True)
    table.add_column("upper")
    table.add_column("margin\n[dim]rad[/]", justify="right")
    table.add_column("speed\n[dim]max[/]", justify="right")
    for use in uses:
        table.add_row(
            use.name,
            f"{use.lower:g}",
            _bar(use, console.options.ascii_only),
            f"{use.upper:g}",
            f"{use.margin:.2f}",
            f"{use.top_speed / use.velocity:.0%}",
        )
    return table


def criteria_lines(console: Console, found: Sequence[Criterion]) -> Table:
    """Return a table of all checks with ticks and crosses.

    A check that depends on time and does not hold gets a ~ instead of a cross.
    """
    table = Table.grid(padding=(0, 1))
    for criterion in found:
        if not criterion.depends_on_time:
            table.add_row(mark(console, criterion.holds), criterion.text)
    table.add_row("", "[dim]checks that depend on time, and do not decide:[/]")
    for criterion in found:
        if criterion.depends_on_time:
            sign = mark(console, True) if criterion.holds else "[bold yellow]~[/]"
            table.add_row(sign, criterion.text)
    return table


def _table(first: str = "", *others: str) -> Table:
    """Return an empty table with a wide first column and right-aligned further columns.

    Args:
        first: Header of the first column; empty: the table has no columns yet.
        others: Headers of the further columns.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, expand=False)
    if first:
        table.add_column(first, ratio=1)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _coordinates(T: Array) -> str:
    xyz = " ".join(f"{value:.2f}" for value in T[:3, 3].round(2) + 0.0)
    return xyz + "  " + " ".join(f"{round(degrees(a))}" for a in rpy_from_rotation(T[:3, :3]))


def _inside(answer: PoseCheck) -> str:
    if answer.q is None:
        return "as expected" if answer.is_right else "unexpected"
    return "inside limits" if answer.inside_limits else "OUTSIDE limits"


def _errors(answer: PoseCheck) -> str:
    if answer.q is None:
        return "-"
    return f"{answer.position_error:.0e} m\n{answer.rotation_error:.0e} rad"


def _time(value: float) -> str:
    return f"{1e6 * value:.0f} us" if value < 5e-4 else f"{1e3 * value:.1f} ms"


def _bar(use: JointUse, is_ascii: bool) -> str:
    """Return a bar of characters for the range of a joint, with the used part of it filled."""
    if not np.isfinite(use.upper - use.lower):
        return "no limits"
    empty, full = (".", "#") if is_ascii else ("\u00b7", "\u2588")
    scale = BAR_CHARS / (use.upper - use.lower)
    first = int(np.clip((use.min_position - use.lower) * scale, 0, BAR_CHARS - 1))
    last = int(np.clip((use.max_position - use.lower) * scale, first, BAR_CHARS - 1))
    return f"{empty * first}[blue]{full * (last - first + 1)}[/]{empty * (BAR_CHARS - 1 - last)}"


# Files


def save_pictures(
    robot: RobotModel,
    motion: RecordedMotion,
    tracking: Tracking,
    encounter: Encounter,
    folder: Path,
) -> list[Path]:
    """Draw the pictures of the motions and save them as PNG files; return the files.

    Args:
        robot: Robot.
        motion: Motion without the box.
        tracking: Statistics of the motion without the box.
        encounter: Motion with the box.
        folder: Folder for the files.
    """
    following = (
        f"A figure of eight streamed to the WAM: the tip lags {1e3 * tracking.lag:.1f} ms, "
        f"{1e3 * tracking.path_error.mean:.2f} mm from the path"
    )
    inside = "The same motion in joint space, with the joint limits"
    figures = {
        "tip_path.png": tip_path(robot, motion.times, motion.q, motion.goal, following),
        "joint_positions.png": joint_bands(robot, motion.times, motion.q, inside),
        "obstacle.png": draw_encounter(encounter),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=150)
    return [folder / name for name in figures]


def save_report(
    file: Path,
    answers: Sequence[PoseCheck],
    tracking: Tracking,
    uses: Sequence[JointUse],
    encounter: Encounter,
    found: Sequence[Criterion],
    load: Load,
) -> None:
    """Write all results of the demonstration as JSON, in SI units; NaN and infinity become null.

    Args:
        file: File to write; missing folders are created.
        answers: Checked answers of ``compute_ik``.
        tracking: Statistics of the motion without the box.
        uses: Ranges and speeds of the joints in the motion without the box.
        encounter: Motion with the box.
        found: Checks.
        load: Load of the machine during the streams.
    """
    report = {
        "passed": has_passed(found),
        "load": {**asdict(load), "is_busy": load.is_busy},
        "criteria": found,
        "answers": [
            {
                **answer._asdict(),
                "pose": answer.pose.name,
                "T_base_tip": answer.pose.T,
                "reachable": answer.pose.reachable,
                "answer": code_name(answer.code),
                "right": answer.is_right,
            }
            for answer in answers
        ],
        "tracking": tracking,
        "obstacle": {
            "min_box_distance": encounter.min_box_distance,
            "link": encounter.link,
            "min_distance": MIN_DISTANCE,
            "target_inside": encounter.inside,
            "error_with_box": encounter.error_with_box,
            "error_after_box": encounter.error_after_box,
        },
        "joints": [{**asdict(use), "margin": use.margin} for use in uses],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json_text(report) + "\n")
