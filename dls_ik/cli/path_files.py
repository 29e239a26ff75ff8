# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Files that ``dls-ik path`` writes: the trajectory as CSV, JSON or rosbag2, and its pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dls_ik.cli import bag, output
from dls_ik.cli.pose import PoseFile
from dls_ik.core.types import Array
from dls_ik.text import json_text

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.servo.path_timing import PathTrajectory
    from dls_ik.solver.result import IkPathResult
    from dls_ik.solver.task_stack import TaskStack

OUTPUT_KINDS = ("csv", "json", "bag")
OUTPUT_SUFFIXES = {".csv": "csv", ".json": "json", ".bag": "bag", "": "bag"}


class Trajectory(NamedTuple):
    """Given poses (b), the joint path that reaches them, and its times."""

    robot: RobotModel
    given: PoseFile
    result: IkPathResult
    t: Array  # (b,) times of the poses [s]
    source: str  # text that says how the times were determined
    stack: TaskStack | None = None
    timed: PathTrajectory | None = None  # fastest motion; None: its points are the poses
    scene: PlanningScene | None = None
    scene_files: tuple[str, ...] = ()
    whole: bool = False  # whether the path was solved as a whole

    @property
    def points(self) -> tuple[Array, Array]:
        """Times (m,) [s] and joint positions (m, n) [rad or m] of the points to write."""
        if self.timed is not None:
            return self.timed.t, self.timed.q
        return self.t, self.result.q


class TrajectoryFiles(NamedTuple):
    """Path and format of a trajectory file, and paths of its pictures."""

    path: str
    kind: str  # one of OUTPUT_KINDS
    storage: str  # one of bag.STORAGES
    pictures: tuple[str, ...]  # paths of the pictures of the joints and of the tip; () for none


def check_target(path: str, kind: str | None, storage: str, plot: str | None) -> TrajectoryFiles:
    """Check that the output files can be written, and return their paths and format.

    Args:
        path: File or folder given by --out.
        kind: Format given by --format; None selects the format by the suffix of `path`.
        storage: Storage format of a bag.
        plot: Path of a picture, or None.

    Raises:
        click.UsageError: If a file cannot be written, or its format is unknown.
    """
    kind = kind or (
        "csv" if path == output.STDOUT else OUTPUT_SUFFIXES.get(Path(path).suffix.lower())
    )
    if kind is None:
        raise click.UsageError(
            f"--out must end in .csv, .json, .bag, or have no suffix for a rosbag2; got {path}; "
            "--format overrides the suffix"
        )
    pictures: tuple[str, ...] = ()
    if plot is not None:
        joints = Path(plot)
        pictures = plot, str(joints.with_name(f"{joints.stem}-tip{joints.suffix}"))
    output.check_outputs(*pictures[1:], None if kind == "bag" else path, plot=plot)
    if kind == "bag":
        bag.require_rosbags()
        output.check_new_folder(path)
    return TrajectoryFiles(path, kind, storage, pictures)


def write_trajectory(target: TrajectoryFiles, trajectory: Trajectory, robot: str) -> dict[str, str]:
    """Write trajectory file and pictures, and return a description of each file by its path.

    Args:
        target: Paths and format of the files.
        trajectory: Trajectory to write.
        robot: Name or file of the robot, whose URDF is added to a bag.
    """
    from dls_ik.solver.trajectory import csv_text

    t, q = trajectory.points
    about = f"{target.kind}, {len(q)} points"
    if target.kind == "bag":
        topics = _topics(trajectory, robot)
        output.write_whole(target.path, lambda part: bag.write_bag(part, target.storage, topics))
        counts = ", ".join(f"{each.name} {len(each.messages)}" for each in topics if each.messages)
        about = f"a rosbag2 ({target.storage}): messages on {counts}"
    elif target.kind == "csv":
        timed = trajectory.timed
        text = csv_text(trajectory.robot, t, q) if timed is None else timed.to_csv()
        output.write_text(target.path, text)
    else:
        folder = None if target.path == output.STDOUT else Path(target.path).absolute().parent
        text = json_text(_document(trajectory, folder), indent=None)
        output.write_text(target.path, text + "\n")
    return {target.path: about, **draw_trajectory(target, trajectory)}


def _topics(trajectory: Trajectory, robot: str) -> list[bag.BagTopic]:
    """Return the topics of a bag: k JointState messages, one JointTrajectory, and the URDF."""
    from dls_ik.model.load import find_urdf

    names, (t, q) = trajectory.robot.joint_names, trajectory.points
    times = t.tolist()
    return [
        bag.states_topic(names, times, q),
        bag.plan_topic(names, times, q),
        bag.description_topic(find_urdf(robot), times[0]),
    ]


def draw_trajectory(target: TrajectoryFiles, trajectory: Trajectory) -> dict[str, str]:
    """Write the pictures of a trajectory, and return a description of each file by its path."""
    if not target.pictures:
        return {}
    from dls_ik.plot import joint_bands, path_in_space, path_title, tip_path

    robot, result, poses = trajectory.robot, trajectory.result, trajectory.given.poses
    joints, tip = target.pictures
    title, marked = "Joint positions and their limits", trajectory.t[:0]
    if trajectory.whole:
        title = path_title(result)
        marked = trajectory.t[[each.pose for each in result.reconfigurations]]
    output.write_picture(joints, joint_bands(robot, *trajectory.points, title, marked=marked))
    if trajectory.whole:
        output.write_picture(tip, path_in_space(result, poses, trajectory.scene))
        return {joints: "a picture of the joints", tip: "a picture of the path in space"}
    output.write_picture(tip, tip_path(robot, trajectory.t, result.q, poses[:, :3, 3]))
    return {joints: "a picture of the joints", tip: "a picture of the tip"}


def _document(trajectory: Trajectory, folder: Path | None) -> dict[str, Any]:
    """Return a trajectory, the errors at its poses and its reconfigurations as a JSON document.

    Args:
        trajectory: Trajectory.
        folder: Folder of the file, from which the paths of scene files start; None: absolute paths.
    """
    robot, result, timed = trajectory.robot, trajectory.result, trajectory.timed
    t, q = trajectory.points
    rates = {} if timed is None else {"velocities": timed.v, "accelerations": timed.a}
    scenes = map(os.path.abspath, trajectory.scene_files)
    return {
        "robot": robot.name,
        "base": robot.base,
        "tip": robot.tip,
        "times": trajectory.source,
        "joint_names": robot.joint_names,
        "t": t,
        "positions": q,
        **rates,
        "success": result.success,
        "status": [*map(str, result.statuses)],
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
        "reconfigurations": [
            {"t": trajectory.t[each.pose], "pose": each.pose, "explanation": each.explanation}
            for each in result.reconfigurations
        ],
        "scene": [each if folder is None else os.path.relpath(each, folder) for each in scenes],
    }
