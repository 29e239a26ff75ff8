# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Report of the demonstration: tables, pictures, checks, and results as JSON."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path

from rich.console import Console

from dls_ik.errors import Code
from dls_ik.model.robot import RobotModel
from dls_ik.plot import joint_bands, tip_path
from dls_ik.ros.demo.measure import (
    MAX_SOLUTION_ERROR,
    JointUse,
    PoseCheck,
    RecordedMotion,
    Tracking,
)
from dls_ik.ros.demo.obstacle import ALLOWED, MIN_DISTANCE, Encounter, draw_encounter
from dls_ik.tables import print_note, print_pairs, print_table
from dls_ik.text import json_text, scaled

MAX_LOAD_PER_CORE = 1.5  # times may be wrong if the load average per processor core is larger

# Checks. Measured times depend on the load of the machine. Therefore the checks of times do not
# decide whether the demonstration has passed. The bounds tolerate short interruptions by other
# programs; errors may exceed a bound in 1 % of the measurements.

MIN_RATE = 0.8  # minimum rate of joint states as a fraction of the requested rate
PATH_TOLERANCE = 0.002  # [m] maximum distance of the tip to the path
TARGET_TOLERANCE = 0.05  # [m] maximum distance of tip and target; corresponds to a lag of 0.15 s
ROTATION_TOLERANCE = 0.01  # [rad] maximum rotation error of the tip
FIGURE_TOLERANCE = 0.05  # [m] maximum distance of the tip to the figure if no message is delayed
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
    bound = FIGURE_TOLERANCE + tracking.jump
    yield Criterion(most <= bound, f"{figure} (at most {1e3 * bound:.3g} mm)")
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

    @property
    def is_busy(self) -> bool:
        """Whether other programs used the processor so much that measured times are unreliable."""
        return self.average is not None and self.average > MAX_LOAD_PER_CORE * self.cores

    def __str__(self) -> str:
        average = "unknown load" if self.average is None else f"load average {self.average:.1f}"
        return f"{average} on {self.cores} cores"


def machine_load() -> Load:
    """Return the number of processor cores and the load average of the last minute."""
    average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return Load(os.cpu_count() or 1, average)


# Tables


def code_name(code: int) -> str:
    """Return the name of a MoveIt error code, such as ``NO_IK_SOLUTION``; ``code N`` if unknown."""
    return Code(code).name if code in set(Code) else f"code {code}"


def print_answers(console: Console, answers: Sequence[PoseCheck]) -> None:
    """Print a table of the checked answers of the service ``compute_ik``.

    Wrong answers have the mark ``(WRONG)``.
    """
    rows = [
        [
            answer.pose.name,
            code_name(answer.code) + ("" if answer.is_right else " (WRONG)"),
            "-" if answer.q is None else f"{answer.position_error:.0e}",
            scaled(answer.round_trip, "s"),
        ]
        for answer in answers
    ]
    print_table(console, ("pose", "answer", "error [m]", "round trip"), rows, left=(0, 1))


def print_tracking(console: Console, tracking: Tracking) -> None:
    """Print a table of the errors and message times of a motion; :class:`Tracking` defines them."""
    t = tracking
    rows = [
        [name, *(scaled(value, unit) for value in (spread.median, spread.p99, spread.max))]
        for name, spread, unit in (
            ("tip to target", t.position_error, "m"),
            ("tip to path", t.path_error, "m"),
            ("rotation error", t.rotation_error, "rad"),
            ("target to joint states", t.latency, "s"),
            ("age of joint states", t.delivery, "s"),
            ("between targets", t.target_interval, "s"),
            ("between joint states", t.state_interval, "s"),
        )
    ]
    print_table(
        console, (f"tip, lag {scaled(t.lag, 's')}", "median", "99 %", "max"), rows, left=(0,)
    )


def print_criteria(console: Console, found: Sequence[Criterion]) -> None:
    """Print all checks, each with a mark.

    The mark is ``ok`` if the check holds. Otherwise it is ``~`` if the check depends on time, which
    does not decide whether the demonstration has passed, and ``NO`` if it does not.
    """
    print_pairs(console, [_marked(check) for check in found if not check.depends_on_time])
    print_note(console, "timing checks, for information only:")
    print_pairs(console, [_marked(check) for check in found if check.depends_on_time])


def _marked(check: Criterion) -> tuple[str, str]:
    failed = "~" if check.depends_on_time else "NO"
    return "ok" if check.holds else failed, check.text


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
