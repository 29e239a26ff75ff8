# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Streams among obstacles: minimum distance, stops at a wall, sliding, and the time of a cycle.

- Random runs: poses, twists and trajectories are sent to arms among boxes, balls and cylinders,
  with all limits enabled, varying loop times, late cycles and pauses. An exact library computes
  the distances at the closest commands of a run and at some other commands.
- Wall: the arm moves to a wall at 0.5 m/s with 5 rad/s^2.
- Slide: a target is dragged below the top of a table and along it. Errors are measured along the
  top. A joint reverses if its velocity goes from 1 % of its limit to -1 %, or back.
- Edge: a target is dragged below the top, past the edge of the table, and back behind the edge.
  Errors are measured perpendicular to the normal of the closest points.
- Cycle: processor time of a cycle, and its ratio to the same stream without a scene.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive
from benchmarks.servo_limits import LATE, Path
from benchmarks.servo_runs import CORES, VELOCITY, in_processes, moving
from dls_ik import PlanningScene, RobotModel
from dls_ik.core.types import Array
from dls_ik.errors import HeldError
from dls_ik.model.rotations import rotation_from_rpy, rotation_from_z, transform
from dls_ik.model.tree import Tree
from dls_ik.scene.shapes import Body, Box, Capsule, Cylinder, Shape, Sphere
from dls_ik.servo import Controller, ServoState

ARMS = ("wam7", "fr3", "ur5e", "two_wams")
MIN_DISTANCE = 0.01  # [m]
STEPS = 1500  # cycles of one run
OBJECTS = 15
JERKY = 0.4  # share of runs with a limit of jerk
CHECKED = 8  # commands of a run that the exact library checks, in addition to the closest
RADIUS = 0.05  # [m] link radius of arms without geometry
RUNS = columns(
    "arm; runs :d; cycles :d; least distance [mm] :.4f; limits passed [relative] :.1e; slowed or "
    "turned [%] :.1f; held up [%] :.1f; worst run :d"
)
WALL = columns(
    "rate [Hz] :.0f; jerk; fastest [m/s] :.2f; least distance less min_distance [mm] :.3f; at rest "
    "[mm] :.3f"
)
SLIDE = columns(
    "table; along it [m/s] :.2f; largest error along it [mm] :.3f; turns of joints :d; "
    "without it :d; least distance [mm] :.3f"
)
EDGE = columns(
    "past an edge and back [m/s] :.2f; error across the normal: median [mm] :.3f; 95 % [mm] :.2f; "
    "largest [mm] :.1f; at the end [mm] :.3f; turns of joints :d; without it :d; "
    "least distance [mm] :.3f"
)
CYCLE = columns(
    "cycle; median [us] :.0f; 99 % [us] :.0f; median as a multiple of that without a scene :.2f"
)


def bodies_of(tree: Tree) -> dict[str, Body]:
    """Return capsules from joint to joint for the links of a robot without geometry."""
    bodies = {}
    for link in tree.links:
        below = tree.child_joints[link]
        way = below[0].origin[:3, 3] if below else np.zeros(3)
        length = float(np.linalg.norm(way))
        shape: Shape = Sphere(RADIUS)
        T = np.eye(4)
        if length > RADIUS:
            shape, T = Capsule(RADIUS, length), transform(rotation_from_z(way / length), 0.5 * way)
        bodies[link] = Body(link, ((shape, T),))
    return bodies


def arm(name: str) -> tuple[RobotModel, PlanningScene]:
    """Return an arm and its scene without objects."""
    robot = moving(name, tip="left_wam_tip" if name == "two_wams" else None)
    bodies = None if "wam" in name else bodies_of(robot.tree)
    return robot, PlanningScene(robot, bodies=bodies)


def clearance(scene: PlanningScene, q: Array) -> float:
    """Return the minimum distance of a configuration (n,) by the exact library [m]."""
    closest = scene.distance(q)
    return np.inf if closest is None else closest.distance


def fill(scene: PlanningScene, rng: np.random.Generator, q: Array, count: int = OBJECTS) -> None:
    """Add random objects that keep the required distance to the arm at a configuration (n,)."""
    made = 0
    while made < count:
        size, place = rng.uniform(0.05, 0.3, 3), rng.uniform((-1.0, -1.0, -0.7), (1.0, 1.0, 1.3))
        shapes: tuple[Shape, ...] = (Box(size), Sphere(size[0]), Cylinder(0.5 * size[0], size[1]))
        T = transform(rotation_from_rpy(*rng.uniform(-3.0, 3.0, 3)), place)
        name = f"object{made}"
        scene.add(name, shapes[rng.integers(3)], T)
        near = scene.snapshot.clearance(q, within=2.0 * MIN_DISTANCE)
        if any(name in pair for pair in near):
            scene.remove(name)
        else:
            made += 1


def free_start(
    scene: PlanningScene, rng: np.random.Generator, other: RobotModel | None = None
) -> Array:
    """Return a configuration (n,) that keeps all distances, and place joints outside the chain."""
    while True:
        if other is not None:
            scene.set_joints(other.named(other.random(rng=rng)))
        q = scene.robot.random(rng=rng)
        if clearance(scene, q) > MIN_DISTANCE:
            return q


class Run(NamedTuple):
    """Result of one run."""

    arm: str
    least: float  # [m]
    excess: float  # maximum excess over a limit, relative to the limit
    turned: float  # share of cycles
    blocked: float
    seed: int


def run(task: tuple[str, int, int]) -> Run:
    """Simulate one run of an arm, a seed and a number of cycles."""
    name, seed, steps = task
    rng = np.random.default_rng(seed)
    robot, scene = arm(name)
    beside = name == "two_wams"
    right = RobotModel.from_tree(robot.tree, tip="right_wam_tip") if beside else None
    q = free_start(scene, rng, right)
    fill(scene, rng, q)
    jerky = bool(rng.random() < JERKY)
    acceleration = float(rng.choice([2.0, 5.0, 20.0]))
    jerk = acceleration * float(rng.choice([10.0, 50.0])) if jerky else np.inf
    controller = Controller(
        robot, scene=scene, when_stuck="hold", acceleration=acceleration, jerk=jerk
    )
    controller.seed(q)
    period = float(rng.choice([2e-3, 5e-3, 1e-2]))
    path, now, excess, T = Path(robot, controller.options, q), 0.0, 0.0, robot.fk(q)
    looked, states, nearest = [q], [], (np.inf, q)
    for i in range(steps):
        dt = period * rng.uniform(0.3, 1.25 if jerky else 2.0)
        if rng.random() < LATE / 10:
            elapsed, dt = period * 10.0 ** rng.uniform(-1, 2), min(dt, period)
            stop = controller.stop_path(period)
            controller.resume_at(elapsed, period)
            now += elapsed
            between = stop.at(np.array([0.5 * elapsed, elapsed]))[0]
            excess = max(excess, path.goes(between[1], elapsed).max())
            looked.append(between[0])
        now += dt
        T = _act(controller, rng, now, T)
        out = controller.cycle(now, dt)
        excess = max(excess, path.goes(out.q, dt).max())
        states.append(out.state)
        if out.nearest is not None and out.nearest.distance < nearest[0]:
            nearest = out.nearest.distance, out.q
        if i % (steps // CHECKED) == 0:
            looked.append(out.q)
    least = min(clearance(scene, each) for each in (*looked, nearest[1]))
    turned = np.mean([s in (ServoState.NEAR_COLLISION, ServoState.BLOCKED) for s in states])
    blocked = np.mean([s is ServoState.BLOCKED for s in states])
    return Run(name, least, excess, float(turned), float(blocked), seed)


def _act(controller: Controller, rng: np.random.Generator, now: float, T: Array) -> Array:
    """Send a random input or nothing; return the last pose of the stream."""
    robot, choice = controller.robot, rng.random()
    if controller.hold_reason:
        if choice < 0.02:
            controller.resume()
        return T
    try:
        if choice < 0.008:
            T = robot.fk(robot.random(rng=rng))
            controller.follow_pose(T, now)
        elif choice < 0.2:
            T = T.copy()
            T[:3, 3] += rng.normal(0.0, 3e-3, 3)
            controller.follow_pose(T, now)
        elif choice < 0.203:
            controller.follow_twist(rng.normal(0.0, rng.choice([0.1, 1.0]), 6), now)
        elif choice < 0.2035:
            Ts = np.array([robot.fk(robot.random(rng=rng)) for _ in range(4)])
            controller.follow_trajectory(Ts, rng.uniform(0.1, 1.0), now)
        elif choice < 0.204:
            controller.pause()
    except HeldError:
        pass
    return T


def wall(rate: float, jerk: float = np.inf) -> list[Any]:
    """Move to a wall at 0.5 m/s, and return the table row."""
    robot = moving("wam7")
    scene = PlanningScene(robot)
    scene.add_box("wall", [0.1, 2.0, 2.0], transform(translation=np.array([0.85, 0.0, 0.3])))
    q = np.array([0.0, 0.0, 0.0, 2.3, 0.0, 0.4, 0.0])
    controller = Controller(robot, scene=scene, acceleration=5.0, jerk=jerk, when_stuck="hold")
    controller.seed(q)
    fastest, least, before, dt = 0.0, np.inf, robot.fk(q)[0, 3], 1.0 / rate
    for i in range(round(3.0 * rate)):
        controller.follow_twist([0.5, 0.0, 0.0, 0.0, 0.0, 0.0], i * dt, R=np.eye(3))
        out = controller.cycle((i + 1) * dt, dt)
        x = robot.fk(out.q)[0, 3]
        fastest, before = max(fastest, (x - before) / dt), x
        if out.nearest is not None and out.nearest.distance < 0.02:
            least = min(least, clearance(scene, out.q))
    kept = clearance(scene, out.q)
    words = "-" if np.isinf(jerk) else f"{jerk:g}"
    return [rate, words, fastest, 1e3 * (least - MIN_DISTANCE), 1e3 * (kept - MIN_DISTANCE)]


def slide(speed: float, behind: bool, rate: float = 200.0) -> list[Any]:
    """Drag a target below the top of a table and along it, and return the table row."""
    turns, errors, least = [], np.zeros(0), np.inf
    for with_table in (True, False):
        robot = moving("wam7")
        scene = PlanningScene(robot)
        q = np.array([0.0, 0.7, 0.0, 1.9, 0.0, 0.5, 0.0])
        T = robot.fk(q)
        top = T[2, 3] - 0.03
        if with_table:
            scene.add_box(
                "table", [1.0, 1.2, 0.04], transform(translation=np.array([0.9, 0.0, top - 0.02]))
            )
        controller = Controller(
            robot, scene=scene, acceleration=10.0, when_stuck="hold", feed_forward=True
        )
        controller.seed(q)
        start, dt, found, rates = T[:3, 3].copy(), 1.0 / rate, [], []
        for i in range(round(4.0 * rate)):
            t = i * dt
            ahead = 0.2 * np.sin(speed / 0.2 * max(t - 1.0, 0.0))
            depth = min(0.1 * t, 0.08) * behind
            T[:3, 3] = start + np.array([0.0, ahead, -0.02 * (not behind) - depth])
            controller.follow_pose(T, t)
            out = controller.cycle(t + dt, dt)
            if t > 2.0:
                T_d = T if out.T_d is None else out.T_d
                found.append(robot.fk(out.q)[:2, 3] - T_d[:2, 3])
            rates.append(out.velocity)
            if with_table and i % 20 == 0:
                least = min(least, clearance(scene, out.q))
        turns.append(sum(_turns(v) for v in np.array(rates).T))
        if with_table:
            errors = np.linalg.norm(found, axis=1)
    words = "8 cm behind its top" if behind else "beside its top"
    return [words, speed, 1e3 * errors.max(), *turns, 1e3 * least]


def edge(speed: float, rate: float = 200.0) -> list[Any]:
    """Drag a target below a table top, past the edge and back; return the table row."""
    turns, errors, least, dt = [], list[float](), np.inf, 1.0 / rate
    for with_table in (True, False):
        robot = moving("wam7")
        scene = PlanningScene(robot)
        q = np.array([0.0, 0.7, 0.0, 1.9, 0.0, 0.5, 0.0])
        T = robot.fk(q)
        if with_table:
            centre = np.array([0.9, -0.45, T[2, 3] - 0.05])
            scene.add_box("table", [1.0, 1.2, 0.04], transform(translation=centre))
        controller = Controller(
            robot, scene=scene, acceleration=10.0, when_stuck="hold", feed_forward=True
        )
        controller.seed(q)
        start, rates = T[:3, 3].copy(), []
        for i in range(round((1.0 + 0.6 / speed) * rate)):
            t = i * dt
            way = max(speed * (t - 1.0), 0.0)  # 0.3 m outwards and back
            moved = np.array([0.0, min(way, 0.6 - way), -min(0.1 * t, 0.08)])
            T[:3, 3] = start + moved
            controller.follow_pose(T, t)
            out = controller.cycle(t + dt, dt)
            rates.append(out.velocity)
            near = out.nearest
            if near is not None and near.distance < 1.25 * MIN_DISTANCE:
                left = robot.fk(out.q)[:3, 3] - (T if out.T_d is None else out.T_d)[:3, 3]
                across = left - near.normal * (near.normal @ left)
                errors.append(float(np.linalg.norm(across)))
            if with_table and i % 20 == 0:
                least = min(least, clearance(scene, out.q))
        turns.append(sum(_turns(v) for v in np.array(rates).T))
    share = [1e3 * x for x in (*np.percentile(errors, (50, 95, 100)), errors[-1], least)]
    return [speed, *share[:4], *turns, share[4]]


def _turns(v: Array) -> int:
    """Return the number of sign changes of a velocity (k,), between 1 % and -1 % of its limit."""
    large = v[np.abs(v) > 0.01 * VELOCITY]
    return int(np.sum(large[1:] * large[:-1] < 0.0))


def cycle_times(count: int, seed: int = 1) -> list[list[Any]]:
    """Measure cycles with 20 objects and without, and return the table rows."""
    rng = np.random.default_rng(seed)
    robot, scene = arm("wam7")
    q = free_start(scene, rng)
    fill(scene, rng, q, 20)
    rows: list[list[Any]] = []
    for words, given in (("without a scene", None), ("20 objects", scene)):
        controller = Controller(robot, scene=given, acceleration=10.0, when_stuck="hold")
        controller.seed(q)
        inputs, T, times = np.random.default_rng(seed), robot.fk(q), list[float]()
        for i in range(count):
            T = T.copy()
            if i % 400 == 0:
                T = robot.fk(robot.random(rng=inputs))
            controller.follow_pose(T, 5e-3 * i)
            begin = time.thread_time()
            controller.cycle(5e-3 * (i + 1), 5e-3)
            times.append(1e6 * (time.thread_time() - begin))
        middle, most = np.percentile(times[20:], (50, 99))
        rows.append([words, middle, most, middle / (rows[0][1] if rows else middle)])
    return rows


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, seed=0, processes=CORES)
    options.add_argument("--cycles", type=positive, default=10_000_000, help="of all random runs")
    given = options.parse_args()
    per_arm = -(-given.cycles // (STEPS * len(ARMS)))
    tasks = [(name, given.seed + i, STEPS) for i in range(per_arm) for name in ARMS]
    found = in_processes(run, tasks, given.processes, f"{len(tasks) * STEPS} cycles")
    table = Table(f"least distance, min_distance = {1e3 * MIN_DISTANCE:g} mm", RUNS)
    for name in ARMS:
        runs = [f for f in found if f.arm == name]
        worst = min(runs, key=lambda r: r.least)
        shares = [100.0 * float(np.mean([getattr(r, x) for r in runs])) for x in Run._fields[3:5]]
        excess = max(0.0, *(r.excess for r in runs))
        figures = [len(runs), len(runs) * STEPS, 1e3 * worst.least, excess, *shares, worst.seed]
        table.rows.append([name, *figures])
    walls = Table("a wall at 0.5 m/s, 5 rad/s^2", WALL)
    walls.rows += [wall(rate) for rate in (100.0, 200.0, 500.0)] + [wall(500.0, 100.0)]
    slides = Table("a target dragged along a table", SLIDE)
    slides.rows += [slide(speed, True) for speed in (0.05, 0.1, 0.2)]
    edges = Table("a target dragged past the edge of a table", EDGE)
    edges.rows += [edge(speed) for speed in (0.05, 0.1, 0.2)]
    cycles = Table("one cycle of the WAM", CYCLE, cycle_times(4000))
    finish(given, [table, walls, slides, edges, cycles], ["`--seed` of a worst run repeats it"])


if __name__ == "__main__":
    guarded(main)
