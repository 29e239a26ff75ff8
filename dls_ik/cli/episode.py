# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik episode``: end-effector poses of a LeRobot data set to joint positions, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from dls_ik.cli import lerobot, output
from dls_ik.cli.options import (
    ROBOT_HELP,
    ChosenRobot,
    ChosenScene,
    robot_options,
    scene_options,
    seed_option,
    start_values,
)
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.text import listing

EPILOG = (
    f"DATASET is a folder of LeRobot (v2.1 or v3.0) or a Parquet file. {ROBOT_HELP} Exit codes: 0 "
    "written, 1 nothing written because of gaps, 2 bad input, 3 pyarrow is missing."
)
TO_JOINTS, TO_POSES = "joints", "poses"
MAX_PRINTED_GAPS = 20


class GapsFoundError(Exception):
    """Ends a conversion without output, because of gaps."""


@click.command(epilog=EPILOG, short_help="Convert poses of a data set to joints, and back.")
@robot_options
@click.argument("dataset")
@click.option(
    "--to", type=click.Choice([TO_JOINTS, TO_POSES]), required=True, help="Form of the output."
)
@click.option("--out", required=True, metavar="NEW", help="Folder or Parquet file to create.")
@click.option(
    "--feature",
    "features",
    multiple=True,
    default=("observation.state", "action"),
    metavar="NAME",
    help="Feature to convert; may be repeated.",
)
@click.option("--names", metavar="NAMES", help="Names of the columns, if the data set has none.")
@click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="JOINT=COLUMN",
    help="Column of a joint whose name differs in the data set; may be repeated.",
)
@click.option("--deg", is_flag=True, help="Revolute joints of data set and --seed are in degrees.")
@seed_option
@scene_options
@click.option(
    "--tolerance",
    type=click.FloatRange(1e-12, 1.0),
    default=1e-6,
    metavar="X",
    help="Maximum error of a frame [m, rad].",
)
@click.option(
    "--max-joint-step",
    type=click.FloatRange(1e-9),
    default=0.5,
    metavar="X",
    help="Larger joint changes between frames are gaps [rad or m].",
)
@click.option("--whole", is_flag=True, help="Solve each episode as a whole: minimum jumps.")
@click.option("--approximate", is_flag=True, help="Write the closest configurations in gaps.")
@output.json_option
def episode(
    chosen: ChosenRobot,
    dataset: str,
    to: str,
    out: str,
    features: tuple[str, ...],
    names: str | None,
    mapped: tuple[str, ...],
    deg: bool,
    seed: tuple[str, ...],
    around: ChosenScene,
    approximate: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Convert features of a data set between joint positions and end-effector poses.

    Other columns, such as those of a gripper, are copied. Gaps, which are poses that are not
    reached and jumps of a joint, are reported with their episode and frames.
    """
    output.check_new_folder(out)
    if not Path(dataset).exists():
        raise click.UsageError(f"{dataset} does not exist; give a folder or a Parquet file")
    robot = chosen.read()
    conversion = EpisodeConversion(
        robot,
        names=[] if names is None else [name.strip() for name in names.split(",")],
        called=_read_map(robot, mapped),
        degrees=deg,
        seed=start_values(robot, seed, deg),
        options={**settings, "scene": around.read(robot)},
    )
    convert = conversion.to_joints if to == TO_JOINTS else conversion.to_poses

    def write(part: Path) -> None:
        lerobot.convert_dataset(Path(dataset), part, features, convert)
        if conversion.gaps and not approximate:
            raise GapsFoundError

    try:
        output.write_whole(out, write)
        written = True
    except GapsFoundError:
        written = False
    _report(conversion, out if written else "", as_json)
    sys.exit(0 if written else output.EXIT_NO_SOLUTION)


class EpisodeConversion:
    """Conversion of the values of a data set.

    Args:
        robot: Robot.
        names: Names of the columns, if the data set has none.
        called: Name in the data set by joint name of the robot, for joints whose names differ.
        degrees: Whether revolute joints of the data set are in degrees.
        seed: (n,) joint positions close to the first frame of each episode [rad or m], or None.
        options: Keywords of :func:`dls_ik.solver.episodes.episode_joints`.

    Attributes:
        gaps: Gaps as documents.
        frames: Number of converted frames of all features.
        episodes: Indices of the episodes.
        errors: Largest position error [m] and rotation error [rad] outside gaps.
    """

    def __init__(
        self,
        robot: RobotModel,
        *,
        names: list[str],
        called: dict[str, str],
        degrees: bool,
        seed: Array | None,
        options: dict[str, Any],
    ) -> None:
        self._robot, self._names, self._called, self._seed = robot, names, called, seed
        revolute = np.array([unit == "rad" for unit in robot.units])
        self._scale = np.where(revolute & degrees, np.degrees(1.0), 1.0)  # (n,)
        self._options = options
        self._starts: dict[int, Array] = {}  # first joint positions by episode
        self.gaps: list[dict[str, Any]] = []
        self.frames, self.episodes = 0, set[int]()
        self.errors = np.zeros(2)

    def to_poses(
        self, feature: str, index: int, values: Array, names: list[str]
    ) -> lerobot.Converted:
        """Return the end-effector poses of joint positions, and the columns that are no joints."""
        names = self._named(feature, names, values)
        columns = lerobot.joint_columns(feature, names, self._robot, self._called)
        q = values[:, columns] / self._scale
        self._count(index, values)
        bad = np.flatnonzero(~np.isfinite(q).all(axis=1))
        for i in bad:
            self._add_gap(feature, index, int(i), int(i), "joint positions are not finite")
        q[bad] = 0.0
        poses = lerobot.pose_values(self._robot.fk(q))
        poses[bad] = np.nan
        others = [i for i in range(len(names)) if i not in columns]
        kept = [names[i] for i in others]
        return lerobot.Converted(
            np.hstack([poses, values[:, others]]), [*lerobot.POSE_NAMES, *kept]
        )

    def to_joints(
        self, feature: str, index: int, values: Array, names: list[str]
    ) -> lerobot.Converted:
        """Return the joint positions of end-effector poses, and the columns that are no pose."""
        from dls_ik.solver.episodes import episode_joints

        names = self._named(feature, names, values)
        columns = lerobot.pose_columns(feature, names)
        seed = self._starts.get(index, self._seed)
        found = episode_joints(self._robot, columns.poses(values), seed, **self._options)
        self._starts.setdefault(index, found.q[0])
        self._count(index, values)
        in_gap = np.zeros(len(values), bool)
        for gap in found.gaps:
            in_gap[gap.first : gap.last + 1] = True
            self._add_gap(feature, index, *gap)
        good = [found.position_error[~in_gap], found.rotation_error[~in_gap]]
        self.errors = np.maximum(self.errors, np.max(good, axis=1, initial=0.0))
        used = {*columns.position, *columns.rotation}
        others = [i for i in range(len(names)) if i not in used]
        joints = [self._called.get(name, name) for name in self._robot.joint_names]
        suffix = lerobot.JOINT_SUFFIX
        return lerobot.Converted(
            np.hstack([found.q * self._scale, values[:, others]]),
            [*(f"{n.removesuffix(suffix)}{suffix}" for n in joints), *(names[i] for i in others)],
        )

    def _named(self, feature: str, names: list[str], values: Array) -> list[str]:
        """Return the names of the columns.

        Raises:
            DatasetError: If their number is not that of the values.
        """
        names = self._names or names
        if names and len(names) != values.shape[1]:
            raise lerobot.DatasetError(
                f"{feature} has {values.shape[1]} columns, but {len(names)} names: {listing(names)}"
            )
        return names

    def _count(self, index: int, values: Array) -> None:
        self.frames += len(values)
        self.episodes.add(index)

    def _add_gap(self, feature: str, index: int, first: int, last: int, reason: str) -> None:
        self.gaps.append(
            {"feature": feature, "episode": index, "first": first, "last": last, "reason": reason}
        )


def _read_map(robot: RobotModel, given: tuple[str, ...]) -> dict[str, str]:
    """Return the names of joints in the data set by their names in the robot.

    Raises:
        click.UsageError: If a joint is unknown, or a value has no ``=``.
    """
    pairs = [word.partition("=") for each in given for word in each.split(",")]
    for joint, _, column in pairs:
        if joint not in robot.joint_names or not column:
            raise click.UsageError(
                f"--map needs JOINT=COLUMN with a joint of {robot.name}: "
                f"{listing(robot.joint_names)}; got {joint}={column}"
            )
    return {joint: column for joint, _, column in pairs}


def _report(conversion: EpisodeConversion, written: str, as_json: bool) -> None:
    """Print the gaps on stderr, and the result."""
    for gap in conversion.gaps[:MAX_PRINTED_GAPS]:
        frames = f"frame {gap['first']}"
        if gap["last"] > gap["first"]:
            frames = f"frames {gap['first']} to {gap['last']}"
        output.warn(f"{gap['feature']}, episode {gap['episode']}, {frames}: {gap['reason']}")
    if (left := len(conversion.gaps) - MAX_PRINTED_GAPS) > 0:
        output.warn(f"and {left} more gaps")
    if not written:
        output.warn("nothing is written; --approximate writes the closest configurations in gaps")
    facts = {
        "episodes": len(conversion.episodes),
        "frames": conversion.frames,
        "position_error": conversion.errors[0],
        "rotation_error": conversion.errors[1],
        "gaps": conversion.gaps,
        "written": written,
    }
    if as_json:
        output.print_json(facts)
    elif written:
        click.echo(
            f"{facts['episodes']} episodes, {facts['frames']} frames, {len(conversion.gaps)} gaps, "
            f"errors up to {conversion.errors[0]:.2g} m and {conversion.errors[1]:.2g} rad: "
            f"{written}"
        )
