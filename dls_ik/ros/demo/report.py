# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Report of the demonstration: tables, pictures and checks."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from dls_ik.errors import Code
from dls_ik.model.robot import RobotModel
from dls_ik.plot import joint_bands, tip_path
from dls_ik.ros.demo.measure import MAX_SOLUTION_ERROR, PoseCheck, RecordedMotion, Tracking
from dls_ik.ros.demo.obstacle import MIN_DISTANCE, ROUNDING, Encounter, draw_encounter
from dls_ik.tables import print_note, print_pairs, print_table
from dls_ik.text import scaled

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
    answers: Sequence[PoseCheck], tracking: Tracking, encounter: Encounter, rate: float
) -> list[Criterion]:
    """Return all checks of the demonstration; the checks that depend on time come last.

    Args:
        answers: Checked answers of ``compute_ik``.
        tracking: Statistics of the motion without the box.
        encounter: Motion with the box.
        rate: Rate of the targets and of the node's control loop [Hz].
    """
    return [
        *_answer_criteria(answers),
        *_motion_criteria(tracking),
        _encounter_criterion(encounter),
        *_time_criteria(tracking, encounter, rate),
    ]


def _time_criteria(tracking: Tracking, encounter: Encounter, rate: float) -> Iterator[Criterion]:
    text = f"joint states arrived at {tracking.state_rate:.1f} Hz (at least {MIN_RATE * rate:g} Hz)"
    yield Criterion(tracking.state_rate >= MIN_RATE * rate, text, depends_on_time=True)
    share = "in 99 % of the time"
    for name, error, bound, unit in (
        (f"the target's path {share}", tracking.path_error.p99, PATH_TOLERANCE, "mm"),
        (f"the moving target {share}", tracking.position_error.p99, TARGET_TOLERANCE, "mm"),
        (f"the target's orientation {share}", tracking.rotation_error.p99, ROTATION_TOLERANCE,
         "mrad"),
        ("the figure after the box has disappeared", encounter.error_after_box, PATH_TOLERANCE,
         "mm"),
    ):  # fmt: skip
        text = f"tip within {1e3 * error:.3g} {unit} of {name} (at most {1e3 * bound:g} {unit})"
        yield Criterion(error <= bound, text, depends_on_time=True)


def _encounter_criterion(encounter: Encounter) -> Criterion:
    distance, inside = float(encounter.distance[encounter.closest]), encounter.inside
    text = (
        f"the tip kept a distance of {1e3 * distance:.2f} mm to the box (at least "
        f"{1e3 * MIN_DISTANCE:g} mm), while the target was inside the box for {inside:.1f} s"
    )
    return Criterion(distance >= MIN_DISTANCE - ROUNDING and inside > 0.0, text)


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


def _motion_criteria(tracking: Tracking) -> Iterator[Criterion]:
    error, heard, margin = tracking.figure_error, tracking.heard_until, tracking.limit_margin
    figure = f"the tip followed the whole figure within {1e3 * error:.3g} mm"
    bound = FIGURE_TOLERANCE + tracking.jump
    yield Criterion(error <= bound, f"{figure} (at most {1e3 * bound:.3g} mm)")
    states = f"joint states arrived until {heard:.0%} of the targets were sent"
    yield Criterion(heard >= MIN_HEARD, f"{states} (at least {MIN_HEARD:.0%})")
    text = f"all joints within their limits; the smallest margin is {margin:.2g} rad"
    yield Criterion(margin >= 0.0, text)


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


# Pictures


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
        "obstacle.png": draw_encounter(encounter, robot),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=150)
    return [folder / name for name in figures]
