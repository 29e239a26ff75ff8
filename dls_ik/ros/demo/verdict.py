"""Criteria for the demonstration to succeed, and how busy the machine was meanwhile."""

import os
import time
from pathlib import Path
from typing import NamedTuple

from dls_ik.ros.demo.ask import TOLERANCE, Answer
from dls_ik.ros.demo.stream import JointUse, Tracking

BUSY = 0.25  # share of the processors that others take, from which figures by the clock are theirs
STAT = Path("/proc/stat")
# What was measured by the clock tells of a busy machine as much as of the node: it does not decide.
# The bounds, and one instant in a hundred beyond them, leave room for a machine that stalls.
LEAST_RATE = 0.8  # of the rate asked for
PATH_TOLERANCE = 0.002  # [m] off the path
TARGET_TOLERANCE = 0.05  # [m] from the moving target, which needs 0.15 s for that
ROTATION_TOLERANCE = 0.01  # [rad]
FIGURE_TOLERANCE = 0.05  # [m] off the figure, whenever; late targets cut its corners
HEARD = 0.8  # of the targets, after which joint states still came


class Load(NamedTuple):
    """What other programs took meanwhile."""

    cores: int
    average: float | None  # processes that run or wait, over the last minute, our own among them
    others: float | None  # share of all processors that other programs took; None: not known

    @property
    def is_busy(self) -> bool:
        """Whether others took so much that what depends on the clock is about them."""
        if self.others is not None:
            return self.others > BUSY
        return self.average is not None and self.average > 1.5 * self.cores

    def __str__(self) -> str:
        known = []
        if self.others is not None:
            known.append(f"other programs took {self.others:.0%} of {self.cores} cores")
        if self.average is not None:
            known.append(f"load average {self.average:.1f}")
        return ", ".join(known) or f"{self.cores} cores, load unknown"


class LoadMeter:
    """Measures from its making on.

    Args:
        own: further processes, whose time is not that of other programs.
    """

    def __init__(self, *own: int) -> None:
        self._own = own
        self._begin = time.monotonic()
        self._before = _busy(), self._ours()

    def result(self) -> Load:
        """The load since."""
        cores = os.cpu_count() or 1
        average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        busy, before = _busy(), self._before[0]
        if busy is None or before is None:
            return Load(cores, average, None)
        others = busy - before - (self._ours() - self._before[1])
        elapsed = max(time.monotonic() - self._begin, 1e-9)
        return Load(cores, average, min(max(others / (elapsed * cores), 0.0), 1.0))

    def _ours(self) -> float:
        """Processor time [s] of this process and the others that belong to it."""
        return time.process_time() + sum(map(_time_of, self._own))


def _busy() -> float | None:
    """Processor time [s] of all programs and of other machines on this hardware, since the boot."""
    try:
        fields = [float(word) for word in STAT.read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # without idle, iowait


def _time_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (float(fields[11]) + float(fields[12])) / os.sysconf("SC_CLK_TCK")


class Criterion(NamedTuple):
    """One thing that has to hold, and what was found."""

    holds: bool
    text: str
    by_the_clock: bool = False


def criteria(
    answers: list[Answer], tracking: Tracking, uses: list[JointUse], rate: float
) -> list[Criterion]:
    """All that is checked, what the clock has a part in last."""
    figure = _on_figure(tracking)
    return [*_on_answers(answers), *figure, _on_joints(uses), *_on_tracking(tracking, rate)]


def has_passed(found: list[Criterion]) -> bool:
    """Whether all holds that decides about the exit code."""
    return all(criterion.holds or criterion.by_the_clock for criterion in found)


def _on_answers(answers: list[Answer]) -> list[Criterion]:
    groups = [[a for a in answers if a.pose.reachable is kind] for kind in (True, False)]
    right = [sum(answer.is_right for answer in group) for group in groups]
    whole = [len(group) for group in groups]
    return [
        Criterion(
            right[0] == whole[0],
            f"{right[0]} of {whole[0]} reachable poses solved within {TOLERANCE:g} m and "
            f"{TOLERANCE:g} rad, inside the limits",
        ),
        Criterion(
            right[1] == whole[1],
            f"{right[1]} of {whole[1]} unreachable poses refused with NO_IK_SOLUTION",
        ),
    ]


def _on_figure(tracking: Tracking) -> list[Criterion]:
    most, missed = tracking.figure_error.p99, tracking.missed.p99
    return [
        Criterion(
            max(most, missed) <= FIGURE_TOLERANCE,
            f"the tip drew the figure, all of it, within {1e3 * max(most, missed):.3g} mm "
            f"(at most {1e3 * FIGURE_TOLERANCE:g})",
        ),
        Criterion(
            tracking.heard_until >= HEARD,
            f"joint states came until {tracking.heard_until:.0%} of the targets were sent "
            f"(at least {HEARD:.0%})",
        ),
    ]


def _on_tracking(tracking: Tracking, rate: float) -> list[Criterion]:
    bounds = {
        "the target's path": (tracking.path_error.p99, PATH_TOLERANCE, "mm"),
        "the moving target": (tracking.position_error.p99, TARGET_TOLERANCE, "mm"),
        "the target's orientation": (tracking.rotation_error.p99, ROTATION_TOLERANCE, "mrad"),
    }
    return [
        Criterion(
            tracking.state_rate >= LEAST_RATE * rate,
            f"joint states came at {tracking.state_rate:.1f} Hz (at least {LEAST_RATE * rate:g})",
            by_the_clock=True,
        ),
        *(
            Criterion(
                found <= bound,
                f"tip within {1e3 * found:.3g} {unit} of {what} 99 % of the time "
                f"(at most {1e3 * bound:g})",
                by_the_clock=True,
            )
            for what, (found, bound, unit) in bounds.items()
        ),
    ]


def _on_joints(uses: list[JointUse]) -> Criterion:
    nearest = min(uses, key=lambda use: use.room)
    if nearest.room < 0.0:
        return Criterion(False, f"{nearest.name} went {-nearest.room:.2g} rad beyond its limits")
    return Criterion(
        True, f"no joint left its limits; nearest was {nearest.name} with {nearest.room:.2f} rad"
    )
