# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets among random obstacles with a collision-free path: share reached by a stream, and time.

The scenes have boxes, cylinders and spheres around the arm. A case has a start configuration and a
goal configuration; both keep `min_distance` plus 2 mm, and a long search found a path between them.
The controller starts at the first, and its target is the pose of the second. Times are durations of
the motion, not processor times.
"""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive, robot_from
from dls_ik import PlanningScene, RobotModel
from dls_ik.core.types import Array
from dls_ik.model.rotations import transform
from dls_ik.scene.joint_paths import path_pairs
from dls_ik.scene.shapes import Box, Cylinder, Shape, Sphere
from dls_ik.servo import Controller, ServoState

SPARE = 0.002  # [m] added to min_distance
WITHIN = 10.0  # [s]
NODES = 20_000  # maximum nodes of the search that proves a target reachable
COLUMNS = columns(
    "robot; targets :d; straight [%] :.0f; reached [%] :.1f; in 10 s [%] :.1f; median [s] :.1f; "
    "95 % [s] :.1f; least distance [mm] :.3f; joint motion [%] :.0f"
)


class Outcome(NamedTuple):
    """Outcome of a case."""

    is_straight: bool  # the straight joint path is free
    time: float  # [s] time of arrival at the target; infinite if not reached
    least: float  # [m] minimum distance during the motion, by spheres
    moved_joints: bool  # a joint motion was made
    state: ServoState  # final state


def random_scene(robot: RobotModel, rng: np.random.Generator, objects: int) -> PlanningScene:
    """Return a scene of objects around an arm that do not touch the links fixed to its base."""
    scene = PlanningScene(robot)
    reach = float(np.linalg.norm(robot.fk(robot.random(200, rng))[:, :3, 3], axis=1).max())
    for number in range(objects):
        way = rng.normal(size=3)
        way[2] = abs(way[2])
        centre = rng.uniform(0.35, 1.0) * reach * way / np.linalg.norm(way)
        size = rng.uniform(0.05, 0.25, 3) * reach
        shapes: list[Shape] = [Box(size), Cylinder(size[0] / 2, size[1]), Sphere(size[0] / 2)]
        scene.add(f"object {number}", shapes[rng.integers(3)], transform(translation=centre))
    return scene


def free_configuration(scene: PlanningScene, rng: np.random.Generator, distance: float) -> Array:
    """Draw a configuration (n,) in which all pairs keep a distance [m]."""
    pairs = path_pairs(scene.snapshot, distance)
    while True:
        q = scene.robot.random(rng=rng)
        if pairs.near(q) is None:
            return q


def outcome(
    controller: Controller, scene: PlanningScene, ends: tuple[Array, Array], dt: float, limit: float
) -> Outcome:
    """Move from the first configuration (n,) to the pose of the second, with a time limit [s]."""
    start, goal = ends
    robot, least, moved = controller.robot, np.inf, False
    controller.reset()
    controller.seed(start)
    controller.follow_pose(robot.fk(goal), 0.0)
    is_straight = scene.path_in_collision(start, goal) is None
    for k in range(1, round(limit / dt) + 1):
        out = controller.cycle(k * dt, dt)
        least = min(least, np.inf if out.nearest is None else out.nearest.distance)
        moved |= out.state is ServoState.JOINT_MOTION
        if out.state is ServoState.REACHED:
            return Outcome(is_straight, k * dt, least, moved, out.state)
    return Outcome(is_straight, np.inf, least, moved, out.state)


def run(robot: RobotModel, given: Any) -> list[Any]:
    """Return the results of a robot."""
    found, rng = list[Outcome](), np.random.default_rng(given.seed)
    while len(found) < given.samples:
        scene = random_scene(robot, rng, given.objects)
        controller = Controller(
            robot, scene=scene, acceleration=given.acceleration, min_distance=given.min_distance
        )
        for _ in range(given.repeats):
            distance = given.min_distance + SPARE
            ends = [free_configuration(scene, rng, distance) for _ in range(2)]
            way = scene.plan(ends[0], ends[1], min_distance=distance, max_nodes=NODES)
            if way.success:
                case = ends[0], ends[1]
                found.append(outcome(controller, scene, case, 1.0 / given.rate, given.limit))
    times = np.array([each.time for each in found])
    reached = times[np.isfinite(times)]
    share = [100.0 * np.mean(x) for x in ([e.is_straight for e in found], np.isfinite(times))]
    return [
        robot.name,
        len(found),
        *share,
        100.0 * np.mean(times <= WITHIN),
        *np.percentile(reached, (50, 95)),
        1e3 * min(each.least for each in found),
        100.0 * np.mean([each.moved_joints for each in found]),
    ]


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, samples=40, repeats=4, seed=0, rate=100.0)
    options.add_argument("robot", type=robot_from, nargs="+", help="name or file")
    options.add_argument("--objects", type=positive, default=12, help="of each scene")
    options.add_argument("--acceleration", type=float, default=5.0, help="[rad/s^2]")
    options.add_argument("--min-distance", type=float, default=0.01, help="[m]")
    options.add_argument("--limit", type=float, default=30.0, help="time for a target [s]")
    given = options.parse_args()
    rows = [run(robot, given) for robot in given.robot]
    finish(given, [Table("targets among obstacles", COLUMNS, rows)])


if __name__ == "__main__":
    guarded(main)
