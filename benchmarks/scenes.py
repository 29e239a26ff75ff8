"""Collision checks and solutions in scenes and requests of MoveIt, as MotionBenchMaker writes them.

A folder has files scene*.yaml (moveit_msgs/PlanningScene) and request*.yaml (MotionPlanRequest) of
the same number; folders below it are rows of the table. Goals are joint values; joints beside the
chain stand as in the start state. Configurations are drawn around the goals. Times are processor
times of one thread; the last is of coal alone, without spheres, called from Python for each pair.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import free_solutions
from benchmarks.common import Table, columns, finish, guarded, parser, positive, robot_from
from dls_ik import PlanningScene, RobotModel
from dls_ik.core.collision import OPEN
from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.scene.formats import read_yaml

AROUND = 0.3  # [rad or m] standard deviation
EXACT = 5  # configurations of a scene that are checked by coal alone
COLUMNS = columns(
    "folder; problems :d; pairs :d; goals free :d; open [%] :.2f; batch [us] :.1f; "
    "single [us] :.1f; distance [us] :.0f; coal alone [us] :.0f; differ :d"
)


class Problem(NamedTuple):
    """A request, and the scene it is for."""

    scene: Path
    values: dict[str, float]  # of the start state, by joint
    goal: Array  # (n,)


def problems(folder: Path, robot: RobotModel) -> Iterator[Problem]:
    """Read the requests of a folder that have a goal of joint values.

    Raises:
        SceneError: a file that is not YAML.
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
            yield Problem(scene, beside, np.array([goal[name] for name in robot.joint_names]))


def enter(scene: PlanningScene, problem: Problem) -> Array:
    """Load the scene of a problem; return its goal (n,)."""
    scene.clear()
    scene.load(problem.scene)
    scene.set_joints(problem.values)
    return problem.goal


def row(
    name: str, scene: PlanningScene, given: list[Problem], samples: int, seed: int
) -> list[Any]:
    """Return the figures of a folder."""
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
        times.append([*(np.diff([begin, *laps]) / counts), np.mean(states[:, 0] == OPEN)])
        free += not colliding[0]
        differ += sum(a != b for a, b in zip(alone, colliding, strict=False))
    batch, single, distance, alone, share = np.mean(times, axis=0)
    microseconds = (1e6 * each for each in (batch, single, distance, alone))
    pairs = len(scene.snapshot.names)
    return [name, len(given), pairs, free, 100.0 * share, *map(float, microseconds), int(differ)]


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, samples=200, seed=0)
    options.add_argument("folder", type=Path, help="with scene*.yaml and request*.yaml")
    options.add_argument("--robot", type=robot_from, required=True, help="name or file")
    options.add_argument("--srdf", type=Path, help="file; default: pairs found by samples")
    options.add_argument("--problems", type=int, default=10, help="of each folder, the first ones")
    options.add_argument("--repeats", type=positive, default=3, help="seeds for each goal")
    options.add_argument("--only", choices=("checks", "solutions"), help="one part")
    options.add_argument("--peers", default=sys.executable, help="Python that has pytracik")
    given = options.parse_args()
    scene = PlanningScene(given.robot, given.srdf)
    rows, several = [], list[Problem]()
    for folder in sorted({path.parent for path in given.folder.rglob("request*.y*ml")}):
        found = list(problems(folder, given.robot))[: given.problems]
        several += found
        if found and given.only != "solutions":
            rows.append(row(folder.name, scene, found, given.samples, given.seed))
    if not several:
        raise SceneError(f"no requests with goals of {given.robot.name} below {given.folder}")
    tables = [Table(f"collision checks of {given.robot.name}", COLUMNS, rows)] if rows else []
    if given.only != "checks":
        goals = [partial(enter, scene, each) for each in several]
        tables.append(free_solutions.solved(scene, goals, given.repeats, given.seed, given.peers))
        tables.append(free_solutions.batched(scene, goals, given.seed))
    finish(given, tables)


if __name__ == "__main__":
    guarded(main)
