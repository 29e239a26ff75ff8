# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Paths of poses solved as a whole: published problems, and random lines.

FOLDER has checkouts of the repositories jstmn/cppflow (13 problems of the papers TORM and CppFlow),
KavrakiLab/vamp (their robots) and uwgraphics/IKLink, named `cppflow`, `vamp` and `IKLink`; those
that are missing are skipped. A path is valid if the tip is within 0.1 mm and 0.1 deg of all poses,
joints move by at most 7 deg or 2 cm between poses, and no configuration or straight joint motion
collides.

Without FOLDER, random lines, arcs and polylines are solved for six arms, or for the robots that
``--robot`` names. The tables have the number of paths that are followed to the end, the number of
other paths for which an exhaustive search finds a continuous joint path
(:mod:`benchmarks.random_paths`), and the joint motion compared with that of KDL and TRAC-IK, which
solve pose by pose (:mod:`benchmarks.stepwise_paths`). Times are processor times.
"""

import csv
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, robot_from
from benchmarks.random_paths import COMPLETENESS, arms, completeness_row, reachable_paths
from benchmarks.stepwise_paths import joint_motion, motion_table
from dls_ik import IkPathResult, IkSolver, PlanningScene, RobotModel
from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.pose import matrices
from dls_ik.model.rotations import transform
from dls_ik.scene.formats import read_yaml

MAX_POSITION_ERROR, MAX_ROTATION_ERROR = 1e-4, np.radians(0.1)  # [m], [rad]
MAX_STEPS = {"revolute": float(np.radians(7.0)), "prismatic": 0.02}  # [rad], [m]
# Problems of the CppFlow paper; the repository contains further problems
PROBLEMS = (
    "fetch_arm__hello", "fetch_arm__circle", "fetch_arm__rot_yz2", "fetch_arm__s",
    "fetch_arm__square", "fetch__circle", "fetch__hello", "fetch__rot_yz2", "fetch__s",
    "fetch__square", "panda__1cube", "panda__2cubes", "panda__flappy_bird",
)  # fmt: skip
ROBOTS = {  # for each name in the problem files: folder in vamp/resources, base link, tip link
    "panda": ("panda", "panda_link0", "panda_hand"),
    "fetch": ("fetch", "base_link", "gripper_link"),
    "fetch_arm": ("fetch", "torso_lift_link", "gripper_link"),
}
RANDOM_STEP = 0.2  # [rad or m] maximum joint step between poses of random paths
COLUMNS = columns(
    "path; joints :d; poses :d; valid; reconfigurations :d; motion [rad or m] :.2f; "
    "time [s] :.3f; processor time [s] :.3f"
)


class PathProblem(NamedTuple):
    """Poses (b, 4, 4) in the frame of the base, with the scene around the arm."""

    scene: PlanningScene
    poses: Array


def read_problem(folder: Path, name: str) -> PathProblem:
    """Return the scene of a CppFlow problem, and its poses in the frame of the base.

    Args:
        folder: Folder with the checkouts.
        name: Name of the problem.

    Raises:
        DlsIkError: If a file is missing or not valid.
    """
    home, robots = folder / "cppflow" / "cppflow", folder / "vamp" / "resources"
    (given,) = read_yaml((home / "problems" / f"{name}.yaml").read_text(encoding="utf-8"))
    directory, base, tip = ROBOTS[given["robot"]]
    robot = RobotModel.from_urdf(robots / directory / f"{directory}.urdf", base=base, tip=tip)
    root = robot.tree.root
    offset = np.array(given["path_xyz_offset"], float)
    if given["path_offset_frame"] != "world":
        frame = RobotModel.from_urdf(
            robots / directory / f"{directory}.urdf", base=root, tip=given["path_offset_frame"]
        )
        offset += frame.fk(np.zeros(frame.n))[:3, 3]
    with (home / "paths" / f"{given['path_name']}.csv").open(encoding="utf-8") as file:
        rows = np.array([[float(x) for x in row] for row in list(csv.reader(file))[1:]])
    poses = matrices(rows[:, 1:4] + offset, rows[:, [5, 6, 7, 4]])
    poses[:, :3, :3] = poses[:, :3, :3] @ np.array(given["path_R_offset"], float)
    if base != root:
        fixed = RobotModel.from_urdf(robots / directory / f"{directory}.urdf", base=root, tip=base)
        poses = np.linalg.inv(fixed.fk(np.zeros(fixed.n))) @ poses
    scene = PlanningScene(
        robot, robots / directory / f"{directory}.srdf", allow=[robots / directory]
    )
    for number, fields in enumerate(given.get("obstacles") or []):
        box = {key: value for part in fields for key, value in part.items()}
        place = np.array([box[c] for c in "xyz"]) + given["obstacle_xyz_offset"]
        scene.add_box(f"box {number}", [box[f"size_{c}"] for c in "xyz"], transform(None, place))
    return PathProblem(scene, np.ascontiguousarray(poses))


def read_iklink(folder: Path) -> tuple[RobotModel, Array]:
    """Read the robot and the poses (b, 4, 4) of IKLink's trajectory."""
    home = folder / "IKLink"
    robot = RobotModel.from_urdf(
        home / "configs" / "urdfs" / "panda.urdf", base="world", tip="panda_hand"
    )
    (path,) = (home / "input_trajectories").glob("*.csv")
    with path.open(encoding="utf-8") as file:
        rows = np.array([[float(x) for x in row] for row in list(csv.reader(file))[1:]])
    return robot, matrices(rows[:, 1:4], rows[:, 4:8])


def is_valid(problem: PathProblem, result: IkPathResult) -> bool:
    """Return whether a path meets the criteria of a valid path in the module docstring."""
    robot, scene, q = problem.scene.robot, problem.scene, result.q
    if not (result.success.all() and robot.within_limits(q).all()):
        return False
    errors = np.array([difference(a, b) for a, b in zip(problem.poses, robot.fk(q), strict=True)])
    largest = np.array([MAX_STEPS["revolute" if u == "rad" else "prismatic"] for u in robot.units])
    return bool(
        np.linalg.norm(errors[:, :3], axis=1).max() <= MAX_POSITION_ERROR
        and np.linalg.norm(errors[:, 3:], axis=1).max() <= MAX_ROTATION_ERROR
        and (np.abs(np.diff(q, axis=0)) <= largest + 1e-9).all()
        and not scene.in_collision(q).any()
        and all(scene.path_in_collision(a, b) is None for a, b in pairwise(q))
    )


def path_row(
    name: str, solver: IkSolver, poses: Array, problem: PathProblem | None, repeats: int
) -> list[Any]:
    """Return the table row of a path that is solved `repeats` times; times are the smallest."""
    times, steps = list[tuple[float, float]](), MAX_STEPS if problem is not None else 0.5
    for _ in range(repeats):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        result = solver.solve_path(poses, max_joint_step=steps, whole=True)
        times.append((time.perf_counter() - begin, time.process_time() - begin_cpu))
    valid = "-" if problem is None else "yes" if is_valid(problem, result) else "no"
    jumps, motion = len(result.reconfigurations), joint_motion(result.q[result.success])
    wall, cpu = np.array(times).min(axis=0).tolist()
    return [name, solver.robot.n, len(poses), valid, jumps, motion, wall, cpu]


def main() -> None:
    """Measure the selected paths and print the tables."""
    options = parser(__doc__, samples=1000, repeats=2, seed=0)
    options.add_argument("folder", type=Path, nargs="?", help="folder with the checkouts")
    options.add_argument(
        "--robot", type=robot_from, action="append", help="robot of random paths; may be repeated"
    )
    options.add_argument("--python", default=sys.executable, help="interpreter with pytracik")
    options.add_argument(
        "--problem", action="append", help="CppFlow problem; may be repeated; default: all 13"
    )
    given = options.parse_args()
    tables = list[Table]()
    if given.folder is not None:
        table = Table("Published paths", COLUMNS)
        if (given.folder / "cppflow").is_dir():
            for name in given.problem or PROBLEMS:
                problem = read_problem(given.folder, name)
                solver = IkSolver(problem.scene.robot, scene=problem.scene)
                table.rows.append(path_row(name, solver, problem.poses, problem, given.repeats))
        if (given.folder / "IKLink").is_dir() and given.problem is None:
            robot, poses = read_iklink(given.folder)
            table.rows.append(path_row("IKLink", IkSolver(robot), poses, None, given.repeats))
        if not table.rows:
            raise DlsIkError(
                f"{given.folder} has no folder cppflow or IKLink: check out the repositories "
                "jstmn/cppflow, KavrakiLab/vamp and uwgraphics/IKLink there"
            )
        tables.append(table)
    if given.folder is None or given.robot:
        robots = given.robot or arms()
        count = -(-given.samples // len(robots))
        paths = [reachable_paths(robot, count, given.seed) for robot in robots]
        rows = [completeness_row(r, p, RANDOM_STEP) for r, p in zip(robots, paths, strict=True)]
        tables.append(Table("Random lines, arcs and polylines", COMPLETENESS, rows))
        tables.append(motion_table(robots, paths, RANDOM_STEP, given.python))
    finish(given, tables)


if __name__ == "__main__":
    guarded(main)
