"""Solvers side by side on goals among obstacles, as :mod:`benchmarks.scenes` reads them.

Poses of the goals from random seeds. A peer solves again from another seed until an exact check
finds the answer free. Times are processor time. The first solve after a change of the scene, which
packs it for the kernels in some milliseconds, is left out. The last column counts answers that the
library alone finds in collision, of one seed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.common import Table, columns
from benchmarks.peers.arm import BASE, TIP, arm_of
from dls_ik import IkSolver, PlanningScene, RobotModel
from dls_ik.core.collision import FREE
from dls_ik.core.types import Array
from dls_ik.model.rotations import quaternion_from_rotation

LIMIT = 0.1  # [s] for a pose
PEER_TIMEOUT = 0.005  # [s] TRAC-IK's default
SEEDS = 2000
BATCH = 10_000
FOUND = columns(
    "solver; solved in 0.1 s [%] :.2f; median [ms] :.3f; mean [ms] :.3f; 95 % [ms] :.3f; "
    "slowest [ms] :.1f; in collision :d"
)
RATE = columns("solver; poses :d; solved [%] :.2f; each [us] :.1f; a second :.0f")
Solve = Callable[[Array, Array], Array | None]  # of a pose, with seeds (s, n) for its attempts
Enter = Callable[[], Array]  # enters a scene, and returns the goal (n,)


def once(robot: RobotModel, scene: PlanningScene | None) -> Solve:
    """Return a solve of dls_ik."""
    solver = IkSolver(robot, scene=scene, timeout=LIMIT)

    def solve(T: Array, seeds: Array) -> Array | None:
        found = solver.solve(T, seeds[0])
        return found.q if found.success else None

    return solve


def trac_ik(robot: RobotModel) -> Solve:
    """Return TRAC-IK with its default timeout, by pytracik."""
    pytracik = import_module("pytracik")
    arm, kind = arm_of(robot), pytracik.SolveType.Speed
    solver = pytracik.TRAC_IK(BASE, TIP, arm.urdf(), PEER_TIMEOUT, 1e-6, kind)

    def solve(T: Array, seeds: Array) -> Array | None:
        pose = (*T[:3, 3].tolist(), *quaternion_from_rotation(T[:3, :3]))
        found = pytracik.ik(solver, seeds[0], *pose)
        return robot.clip(np.array(found[1:])) if found[0] >= 0 else None

    return solve


def checked(scene: PlanningScene, attempt: Solve) -> Solve:
    """Return a solver that tries again until an exact check finds the answer free."""

    def solve(T: Array, seeds: Array) -> Array | None:
        end, k = time.process_time() + LIMIT, 0
        while time.process_time() < end:
            q = attempt(T, seeds[k % len(seeds) :])
            k += 1
            if q is not None and not scene.in_collision(q):
                return q
        return None

    return solve


def peers(robot: RobotModel, scene: PlanningScene) -> Iterator[tuple[str, Solve]]:
    """Yield the solvers that are installed."""
    yield "dls_ik with the scene", once(robot, scene)
    yield "dls_ik + exact check, again and again", checked(scene, once(robot, None))
    if find_spec("pytracik") is not None:
        yield "TRAC-IK 5 ms + exact check, again and again", checked(scene, trac_ik(robot))


def solved(scene: PlanningScene, given: Sequence[Enter], repeats: int, seed: int) -> Table:
    """Solve all problems by all solvers."""
    robot, count = scene.robot, 0
    solvers = dict(peers(robot, scene))
    times: dict[str, list[float]] = {name: [] for name in solvers}
    missed, wrong = dict.fromkeys(solvers, 0), dict.fromkeys(solvers, 0)
    for enter in given:
        goal = enter()
        scene.contacts(goal)  # loads the kernels of open pairs, and the shapes of the library
        if scene.in_collision(goal):
            continue
        T, count = robot.fk(goal), count + 1
        for name, solve in solvers.items():
            seeds = robot.random(SEEDS, rng=np.random.default_rng([seed, count]))
            solve(T, seeds)
            for turn in range(repeats):
                begin = time.process_time()
                q = solve(T, seeds[turn:])
                times[name].append(time.process_time() - begin)
                missed[name] += q is None or times[name][-1] > LIMIT
                if turn == 0 and q is not None:
                    wrong[name] += scene.snapshot.in_collision_by_library(q)
    table = Table(f"{count} goals that are free, {repeats} seeds each", FOUND)
    for name, each in times.items():
        ms, share = 1e3 * np.array(each), 100.0 * (1.0 - missed[name] / max(1, len(each)))
        figures = np.median(ms), ms.mean(), np.quantile(ms, 0.95), ms.max()
        table.rows.append([name, share, *map(float, figures), wrong[name]])
    return table


def batched(scene: PlanningScene, given: Sequence[Enter], seed: int) -> Table:
    """Solve for the poses of random free configurations in a few of the scenes, on one core."""
    robot, rng = scene.robot, np.random.default_rng(seed)
    solvers = {"dls_ik with the scene": IkSolver(robot, scene=scene), "without": IkSolver(robot)}
    some = given[:: max(1, len(given) // 7)][:7]
    rows: dict[str, list[Any]] = {name: [0, 0, 0.0] for name in solvers}
    for enter in some:
        enter()
        q = robot.random(8 * BATCH // len(some), rng=rng)
        Ts = robot.fk(q[scene.snapshot.states(q)[:, 0] == FREE][: BATCH // len(some)])
        for name, solver in solvers.items():
            solver.solve_batch(Ts[:10], threads=1)
            begin = time.process_time()
            found = solver.solve_batch(Ts, threads=1)
            more = len(Ts), int(found.success.sum()), time.process_time() - begin
            rows[name] = [a + b for a, b in zip(rows[name], more, strict=True)]
    table = Table(f"poses of free configurations in {len(some)} scenes, in batches", RATE)
    for name, (count, right, spent) in rows.items():
        each = spent / max(1, count)
        table.rows.append([name, count, 100.0 * right / max(1, count), 1e6 * each, 1.0 / each])
    return table
