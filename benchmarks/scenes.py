# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Collision checks and solutions in scenes and requests of MoveIt, written by MotionBenchMaker.

A folder has files scene*.yaml (moveit_msgs/PlanningScene) and request*.yaml (MotionPlanRequest)
with matching numbers; each subfolder is a row of the table. Goals are joint positions; joints
outside the chain have the positions of the start state. Configurations are drawn around the goals.
Times are processor times of one thread; the last column is the time of coal alone, without spheres,
called from Python for each pair. With --plan, PlanningScene.plan plans paths from start to goal
instead.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import free_solutions
from benchmarks.common import Table, columns, finish, guarded, parser, positive, robot_of
from benchmarks.pinocchio_check import PinocchioCheck
from dls_ik import PlanningScene, RobotModel
from dls_ik.core.collision import CHECK_OPEN
from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.scene.formats import read_yaml

AROUND = 0.3  # [rad or m] standard deviation
EXACT = 5  # configurations of a scene that are checked by coal alone
STEP = 0.02  # [rad or m] maximum distance of the checked configurations of a path
COLUMNS = columns(
    "folder; problems :d; pairs :d; goals free :d; open [%] :.2f; batch [us] :.1f; "
    "single [us] :.1f; distance [us] :.0f; coal alone [us] :.0f; differ :d"
)
WAYS = columns(
    "folder; requests :d; straight [%] :.0f; solved [%] :.2f; median [ms] :.1f; mean [ms] :.1f; "
    "95 % [ms] :.0f; slowest [ms] :.0f; corners :.1f"
)
CHECKED = columns(
    "answers; configurations :d; in collision :d; tip off [m] :.1e; random ones in collision [%] :d"
)


class Problem(NamedTuple):
    """Request and its scene."""

    scene: Path
    values: dict[str, float]  # joint positions of the start state
    start: Array  # (n,)
    goal: Array  # (n,)


def problems(folder: Path, robot: RobotModel) -> Iterator[Problem]:
    """Return the requests in a folder whose goal is given as joint positions.

    Raises:
        SceneError: If a file is not YAML.
    """
    for path in sorted(folder.glob("request*.y*ml")):
        (request,) = read_yaml(path.read_text(encoding="utf-8"))
        start = request["start_state"]["joint_state"]
        goal = {
            each["joint_name"]: each["position"]
            for each in request["goal_constraints"][0].get("joint_constraints", [])
        }
        if set(goal) >= set(robot.joint_names):
            values = dict(zip(start["name"], start["position"], strict=True))
            beside = {k: v for k, v in values.items() if k in robot.tree.joint}
            scene = path.with_name(path.name.replace("request", "scene"))
            ends = ([each.get(k, 0.0) for k in robot.joint_names] for each in (values, goal))
            yield Problem(scene, beside, *map(np.array, ends))


def enter(scene: PlanningScene, problem: Problem) -> Array:
    """Load the scene of a problem, and return its goal (n,).

    The problem may refer to another description of the robot: joints that this description lacks
    are dropped, and an allowed collision matrix that lacks some of the shapes is ignored.
    """
    (fields,) = read_yaml(problem.scene.read_text(encoding="utf-8"))
    matrix = fields.get("allowed_collision_matrix", {}).get("entry_names", [])
    if not set(scene.snapshot.links) <= set(matrix):
        fields.pop("allowed_collision_matrix", None)
    scene.clear()
    scene.load({**fields, "robot_state": {}})
    scene.set_joints(problem.values)
    return problem.goal


def row(
    name: str, scene: PlanningScene, given: list[Problem], samples: int, seed: int
) -> list[Any]:
    """Return the results of a folder."""
    rng, times, free, differ = np.random.default_rng(seed), [], 0, 0
    for problem in given:
        enter(scene, problem)
        snapshot, n = scene.snapshot, scene.robot.n
        q = problem.goal + rng.normal(0.0, AROUND, (samples, n))
        q[0] = problem.goal
        states = snapshot.states(q[:1])  # packs the scene
        begin = time.thread_time()
        states = snapshot.states(q[:200])
        laps = [time.thread_time()]
        colliding = [scene.in_collision(each) for each in q[:50]]
        laps.append(time.thread_time())
        for each in q[:10]:
            scene.distance(each)
        laps.append(time.thread_time())
        alone = [snapshot.in_collision_by_library(each) for each in q[:EXACT]]
        laps.append(time.thread_time())
        counts = min(samples, 200), min(samples, 50), min(samples, 10), min(samples, EXACT)
        times.append([*(np.diff([begin, *laps]) / counts), np.mean(states[:, 0] == CHECK_OPEN)])
        free += not colliding[0]
        differ += sum(a != b for a, b in zip(alone, colliding, strict=False))
    batch, single, distance, alone, share = np.mean(times, axis=0)
    microseconds = (1e6 * each for each in (batch, single, distance, alone))
    pairs = len(scene.snapshot.names)
    return [name, len(given), pairs, free, 100.0 * share, *map(float, microseconds), int(differ)]


def ways(
    name: str,
    scene: PlanningScene,
    given: list[Problem],
    repeats: int,
    check: PinocchioCheck | None,
) -> list[Any]:
    """Plan from start to goal with several seeds, and return the results of a folder."""
    times, solved, straight, corners = list[float](), 0, 0, list[int]()
    for problem in given:
        goal = enter(scene, problem)
        free = scene.path_in_collision(problem.start, goal) is None  # loads kernels and shapes
        for seed in range(repeats):
            begin = time.process_time()
            way = scene.plan(problem.start, goal, seed=seed)
            times.append(1e3 * (time.process_time() - begin))
            solved += way.success
            straight += free
            if way.success:
                corners.append(len(way.q) - 2)
            if way.success and seed == 0 and check is not None:
                check.add("ways", scene, problem.scene, problem.values, _along(way.q))
    share = 100.0 / len(times)
    figures = np.median(times), np.mean(times), np.quantile(times, 0.95), np.max(times)
    middle = float(np.mean(corners)) if corners else 0.0
    return [name, len(given), share * straight, share * solved, *map(float, figures), middle]


def _along(way: Array) -> Array:
    """Return configurations (b, n) along a path (m, n), at most STEP apart."""
    parts = [
        np.linspace(a, b, 1 + int(np.ceil(np.abs(b - a).max() / STEP)), endpoint=False)
        for a, b in pairwise(way)
    ]
    return np.vstack([*parts, way[-1:]])


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, samples=200, seed=0)
    options.add_argument("folder", type=Path, help="with scene*.yaml and request*.yaml")
    options.add_argument("--robot", required=True, help="name or file")
    options.add_argument("--base", help="first link; default: the root")
    options.add_argument("--tip", help="last link; default: the only one")
    options.add_argument("--srdf", type=Path, help="file; default: pairs found by samples")
    options.add_argument("--problems", type=positive, default=10, help="of each folder, the first")
    options.add_argument("--repeats", type=positive, default=3, help="seeds for each goal")
    options.add_argument("--only", choices=("checks", "solutions"), help="one part")
    options.add_argument("--plan", action="store_true", help="ways from start to goal")
    options.add_argument(
        "--check", choices=("pinocchio",), help="look at answers and ways by Pinocchio too"
    )
    options.add_argument("--peers", default=sys.executable, help="Python that has these packages")
    given = options.parse_args()
    robot = robot_of(given.robot, given.base, given.tip)
    scene = PlanningScene(robot, given.srdf)
    check = PinocchioCheck(Path(given.robot), given.peers) if given.check else None
    rows, several = [], list[Problem]()
    for folder in sorted({path.parent for path in given.folder.rglob("request*.y*ml")}):
        found = list(problems(folder, robot))[: given.problems]
        several += found
        if found and given.plan:
            rows.append(ways(folder.name, scene, found, given.repeats, check))
        elif found and given.only != "solutions":
            rows.append(row(folder.name, scene, found, given.samples, given.seed))
    if not several:
        raise SceneError(f"no requests with goals of {robot.name} below {given.folder}")
    about = ("ways", WAYS) if given.plan else ("collision checks", COLUMNS)
    tables = [Table(f"{about[0]} of {robot.name}", about[1], rows)] if rows else []
    if given.only != "checks" and not given.plan:
        goals = [partial(enter, scene, each) for each in several]

        def look(name: str, i: int, q: Array) -> None:
            if check is not None:
                check.add(name, scene, several[i].scene, several[i].values, q[None])

        tables.append(
            free_solutions.solved(scene, goals, given.repeats, given.seed, given.peers, look)
        )
        tables.append(free_solutions.batched(scene, goals, given.seed))
    if check is not None:
        tables.append(Table("as Pinocchio finds it", CHECKED, check.rows()))
    finish(given, tables)


if __name__ == "__main__":
    guarded(main)
