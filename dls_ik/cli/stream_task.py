"""What ``dls-ik stream`` is asked to send."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from dls_ik.cli.numbers import Vector
from dls_ik.cli.pose import given_pose
from dls_ik.cli.pose_file import PoseFile, read_poses

MOST_TARGETS = 10**7
FASTEST = 1e3  # [m/s, rad/s]


class Task(NamedTuple):
    """What is to be sent: a path, which may be of one pose, a twist, or a circle."""

    path: PoseFile | None
    twist: Vector
    twist_time: float  # [s]
    radius: float | None  # [m] of the circle
    period: float  # [s]
    laps: float
    plane: str

    @property
    def duration(self) -> float:
        """How long it takes [s], without waiting for the arm."""
        if self.path is not None:
            times = self.path.times
            return 0.0 if times is None else float(times[-1] - times[0])
        return self.twist_time if self.twist is not None else self.laps * self.period

    def check(self, rate: float) -> None:
        """Refuse what would never end at a rate [Hz].

        Raises:
            click.UsageError: the reason.
        """
        if not rate * self.duration <= MOST_TARGETS:
            raise click.UsageError(
                f"{self.duration:g} s at {rate:g} Hz are more than {MOST_TARGETS} targets"
            )


def read_task(pose_options: dict[str, Any], path: str | None, **motion: Any) -> Task:
    """What is asked for, read and checked.

    Args:
        pose_options: what :func:`dls_ik.cli.pose.given_pose` takes; the units are those of the
            file too.

    Raises:
        click.UsageError: nothing, or two of them.
        DlsIkError: a file without poses.
    """
    pose = given_pose(**pose_options)
    given = [pose is not None, path is not None, motion["twist"] is not None]
    if sum([*given, motion["radius"] is not None]) != 1:
        raise click.UsageError("give one of --xyz (or --matrix), --file, --twist and --circle")
    if motion["twist"] is not None and not all(abs(v) < FASTEST for v in motion["twist"]):
        raise click.UsageError(f"--twist takes six numbers within {FASTEST:g}")
    if pose is not None:
        found: PoseFile | None = PoseFile(pose[None], None, ("",))
    else:
        units = pose_options["deg"], pose_options["mm"]
        found = None if path is None else read_poses(path, *units)
    return Task(found, **motion)
