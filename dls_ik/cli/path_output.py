"""Where ``dls-ik path`` writes to: what kind of file it is, and whether it can be written."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from dls_ik.cli.document import json_text
from dls_ik.cli.group import MissingPartError
from dls_ik.cli.output import (
    STDOUT,
    check_new_folder,
    check_writable,
    write_folder,
    write_text,
    write_whole,
)

if TYPE_CHECKING:
    from dls_ik.cli.trajectory import Trajectory

KINDS = ("csv", "json", "bag")
STORAGES = ("sqlite3", "mcap")
ENDINGS = {".csv": "csv", ".json": "json", ".bag": "bag", "": "bag"}


class Output(NamedTuple):
    """A trajectory's file, and the pictures of it."""

    path: str
    kind: str  # one of KINDS
    storage: str  # one of STORAGES
    plot: str | None

    @property
    def pictures(self) -> tuple[str, ...]:
        """Files of the joints and of the tip."""
        if self.plot is None:
            return ()
        joints = Path(self.plot)
        return self.plot, str(joints.with_name(f"{joints.stem}-tip{joints.suffix}"))


def checked_output(path: str, kind: str | None, storage: str, plot: str | None) -> Output:
    """Refuse before the work begins what could not be written after it.

    Raises:
        click.ClickException, DlsIkError: the reason.
    """
    found = kind or ("csv" if path == STDOUT else ENDINGS.get(Path(path).suffix.lower()))
    if found is None:
        raise click.UsageError(
            f"--out ends in .csv, .json, or in .bag or nothing for a rosbag2, not {path}; "
            f"--format says it otherwise"
        )
    output = Output(path, found, storage, plot)
    if plot is not None:
        _check_pictures(plot)
    check_writable([*output.pictures, *([path] if found != "bag" else [])])
    if found == "bag":
        _require_rosbags()
        check_new_folder(path)
    return output


def written(output: Output, trajectory: Trajectory) -> list[str]:
    """Write all of it; return a line about each file."""
    count = len(trajectory.q)
    if output.kind == "bag":
        from dls_ik.cli.bag import PLAN, STATES, write_bag

        write_folder(output.path, lambda part: write_bag(part, trajectory, output.storage))
        about = f"a rosbag2 ({output.storage}): {STATES} {count} messages, {PLAN} 1"
    else:
        write_text(output.path, _text(output.kind, trajectory))
        about = f"{output.kind}, {count} points"
    return [f"{output.path}: {about}", *_drawn(output, trajectory)]


def _text(kind: str, trajectory: Trajectory) -> str:
    from dls_ik.cli.trajectory import csv_text, document

    return csv_text(trajectory) if kind == "csv" else json_text(document(trajectory)) + "\n"


def _drawn(output: Output, trajectory: Trajectory) -> list[str]:
    """Save the pictures that are asked for; two poses make one, one makes none."""
    if not output.pictures:
        return []
    from dls_ik.plot import joint_bands, save_picture, tip_path

    robot, t, q = trajectory.robot, trajectory.timing.t, trajectory.q
    goals = trajectory.given.poses[:, :3, 3]
    figures = joint_bands(robot, t, q), tip_path(robot, t, q, goals)
    for path, figure in zip(output.pictures, figures, strict=True):
        write_whole(path, partial(save_picture, figure=figure))
    shown = zip(output.pictures, ("joints", "tip"), strict=True)
    return [f"{path}: a picture of the {what}" for path, what in shown]


def _check_pictures(plot: str) -> None:
    from dls_ik.plot import check_picture

    if plot == STDOUT:
        raise click.UsageError("--plot takes a file, not standard output")
    check_picture(Path(plot))


def _require_rosbags() -> None:
    try:
        import rosbags.rosbag2  # noqa: F401
    except ImportError as error:
        raise MissingPartError("a rosbag2 needs rosbags: pip install 'dls-ik[bag]'") from error
