# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Comparison of solvers on goals among obstacles, which :mod:`benchmarks.scenes` reads.

The goals are solved from random seeds. A peer solves again from another seed until an exact check
finds its answer collision-free. Times are processor times, but wall-clock times for TRAC-IK, which
runs in a separate process that is restarted when it hangs. The first solve after a change of the
scene is left out, as it packs the scene for the kernels. The last column counts the answers from
one seed that the collision library finds in collision.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from benchmarks.common import Table, columns
from benchmarks.peers.arm import arm_of
from benchmarks.peers.process import Peer, PeerError
from dls_ik import IkSolver, PlanningScene, RobotModel
from dls_ik.core.collision import CHECK_FREE
from dls_ik.core.types import Array
from dls_ik.errors import RobotModelError

LIMIT = 0.1  # [s] time limit of a pose
HUNG = 5.0  # [s] a peer without an answer for this time counts as hung
TRAC_IK = "TRAC-IK, 5 ms"  # its default timeout, of benchmarks.peers
SEEDS = 2000
BATCH = 10_000
FOUND = columns(
    "solver; solved in 0.1 s [%] :.2f; median [ms] :.3f; mean [ms] :.3f; 95 % [ms] :.3f; "
    "slowest [ms] :.1f; in collision :d"
)
RATE = columns("solver; poses :d; solved [%] :.2f; each [us] :.1f; a second :.0f")
Answer = tuple[Array | None, float]  # q (n,) if there is one; the time it took [s]
Solve = Callable[[Array, Array], Answer]  # arguments: pose, and seeds (s, n) of the attempts
Enter = Callable[[], Array]  # enters a scene, and returns the goal (n,)
Look = Callable[[str, int, Array], None]  # arguments: solver, goal, and answer (n,)


def once(robot: RobotModel, scene: PlanningScene | None) -> Solve:
    """Return a solver of dls_ik that makes one call."""
    solver = IkSolver(robot, scene=scene, timeout=LIMIT)

    def solve(T: Array, seeds: Array) -> Answer:
        begin = time.process_time()
        found = solver.solve(T, seeds[0])
        return found.q if found.success else None, time.process_time() - begin

    return solve


class TracIk:
    """TRAC-IK by pytracik, in a process that is replaced when it hangs.

    Raises:
        PeerError: If pytracik is not installed.
    """

    def __init__(self, robot: RobotModel, python: str) -> None:
        self._robot, self._python, self.hung = robot, python, 0
        self._peer = self._started()

    def _started(self) -> Peer:
        peer = Peer("trac_ik", self._python, arm_of(self._robot))
        peer.described()
        return peer

    def solve(self, T: Array, seeds: Array) -> Answer:
        """Return the answer from the first seed; no answer if the process hangs."""
        try:
            found = self._peer.solve(TRAC_IK, T[None], seeds[:1], LIMIT, HUNG)
        except PeerError:
            self.hung += 1
            self._peer.close()
            self._peer = self._started()
            return None, LIMIT
        q = found.q[0] if np.isfinite(found.q[0]).all() else None
        return None if q is None else self._robot.clip(q), 1e-6 * float(found.times[0])

    def close(self) -> None:
        """Stop the process."""
        self._peer.close()


def checked(scene: PlanningScene, attempt: Solve) -> Solve:
    """Return a solver that repeats attempts until an exact check finds one collision-free."""

    def solve(T: Array, seeds: Array) -> Answer:
        spent, k = 0.0, 0
        while spent < LIMIT:
            q, lap = attempt(T, seeds[k % len(seeds) :])
            begin, k = time.process_time(), k + 1
            free = q is not None and not scene.in_collision(q)
            spent += lap + time.process_time() - begin
            if free:
                return q, spent
        return None, spent

    return solve


@contextmanager
def peers(robot: RobotModel, scene: PlanningScene, python: str) -> Iterator[dict[str, Solve]]:
    """Yield the installed solvers by name."""
    with ExitStack() as stack:
        found = {
            "dls_ik with the scene": once(robot, scene),
            "dls_ik + exact check, again and again": checked(scene, once(robot, None)),
        }
        try:
            peer = TracIk(robot, python)
        except (PeerError, RobotModelError) as reason:
            print(f"without TRAC-IK: {reason}", file=sys.stderr)
        else:
            stack.callback(peer.close)
            found["TRAC-IK 5 ms + exact check, again and again"] = checked(scene, peer.solve)
            stack.callback(lambda: peer.hung and print(f"TRAC-IK hung {peer.hung} times"))
        yield found


def solved(
    scene: PlanningScene,
    given: Sequence[Enter],
    repeats: int,
    seed: int,
    python: str = sys.executable,
    look: Look = lambda name, number, q: None,
) -> Table:
    """Solve all problems with all solvers; `python` runs TRAC-IK, `look` gets the first answers."""
    with peers(scene.robot, scene, python) as solvers:
        return _compared(scene, given, repeats, seed, solvers, look)


def _compared(
    scene: PlanningScene,
    given: Sequence[Enter],
    repeats: int,
    seed: int,
    solvers: dict[str, Solve],
    look: Look,
) -> Table:
    robot, count = scene.robot, 0
    times: dict[str, list[float]] = {name: [] for name in solvers}
    missed, wrong = dict.fromkeys(solvers, 0), dict.fromkeys(solvers, 0)
    for number, enter in enumerate(given):
        goal = enter()
        scene.contacts(goal)  # loads the kernels of open pairs, and the shapes of the library
        if scene.in_collision(goal):
            continue
        T, count = robot.fk(goal), count + 1
        for name, solve in solvers.items():
            seeds = robot.random(SEEDS, rng=np.random.default_rng([seed, count]))
            solve(T, seeds)
            for turn in range(repeats):
                q, spent = solve(T, seeds[turn:])
                times[name].append(spent)
                missed[name] += q is None or times[name][-1] > LIMIT
                if turn == 0 and q is not None:
                    wrong[name] += scene.snapshot.in_collision_by_library(q)
                    look(name, number, q)
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
        Ts = robot.fk(q[scene.snapshot.states(q)[:, 0] == CHECK_FREE][: BATCH // len(some)])
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
