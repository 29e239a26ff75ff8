"""The solvers that are compared, each as a function of a block of poses."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kdl import TIMEOUT, Kdl, KdlSolver
from dls_ik import IkSolver, RobotModel
from dls_ik.solver.batch import RESTARTS, new_rows

NAMES = ("dls_ik solve", "dls_ik solve_batch", "dls_ik batch, one thread")


class Poses(NamedTuple):
    """A block of poses and seeds, as both libraries want them."""

    Ts: np.ndarray  # (b, 4, 4)
    frames: list[Any]
    seeds: np.ndarray  # (b, n)
    seed_joints: list[Any]


class Answers(NamedTuple):
    """What one solver made of one block."""

    q: Sequence[Any]
    times: np.ndarray  # [us] of each pose, or of the mean one
    iterations: float | None  # mean
    restarts: float  # mean


Run = Callable[[Poses], Answers]


def poses(kdl: Kdl, rng: np.random.Generator, b: int) -> Poses:
    """Draw a block."""
    bounds = kdl.robot.finite_limits()
    frames = [kdl.frame(q) for q in rng.uniform(*bounds, (b, kdl.robot.n))]
    seeds = rng.uniform(*bounds, (b, kdl.robot.n))
    Ts = np.array([kdl.matrix(frame) for frame in frames])
    return Poses(Ts, frames, seeds, [kdl.joints(q) for q in seeds])


def by_solve(solver: IkSolver, block: Poses) -> Answers:
    """One call for each pose."""
    times, results = [], []
    for T, seed in zip(block.Ts, block.seeds, strict=True):
        begin = time.perf_counter()
        results.append(solver.solve(T, seed))
        times.append(time.perf_counter() - begin)
    means = np.mean([(r.iterations, r.restarts) for r in results], axis=0)
    return Answers([r.q for r in results], 1e6 * np.array(times), *means.tolist())


def by_batch(solver: IkSolver, block: Poses) -> Answers:
    """One call for all poses."""
    begin = time.perf_counter()
    result = solver.solve_batch(block.Ts, block.seeds)
    mean = (time.perf_counter() - begin) / len(block.Ts)
    return Answers(
        result.q, np.array([1e6 * mean]), result.iterations.mean(), result.restarts.mean()
    )


def by_one_thread(solver: IkSolver, block: Poses) -> Answers:
    """The kernel that a thread of a batch runs."""
    begin = time.perf_counter()
    rows = new_rows(len(block.Ts), solver.robot.n, solver.options.random_seed)
    solver.search(solver.problem, block.Ts[:, None], block.seeds, 1 + RESTARTS, rows)
    mean = (time.perf_counter() - begin) / len(block.Ts)
    attempts, iterations = rows.counts.mean(axis=0)
    return Answers(rows.best, np.array([1e6 * mean]), iterations, attempts - 1.0)


def by_kdl(solver: KdlSolver, kdl: Kdl, block: Poses) -> Answers:
    """One call of CartToJnt for each pose and restart."""
    times, restarts, found = [], 0, [kdl.joints(seed) for seed in block.seeds]
    for frame, seed, out in zip(block.frames, block.seed_joints, found, strict=True):
        begin = time.perf_counter()
        restarts += solver.solve(frame, seed, out)
        times.append(time.perf_counter() - begin)
    return Answers(
        [kdl.unwound(q) for q in found], 1e6 * np.array(times), None, restarts / len(found)
    )


def runs(robot: RobotModel, kdl: Kdl, rng: np.random.Generator) -> dict[str, Run]:
    """All solvers by name; the first one is the reference."""
    solver = IkSolver(robot, timeout=TIMEOUT)
    ours = zip(NAMES, (by_solve, by_batch, by_one_thread), strict=True)
    return {
        **{name: (lambda block, f=function: f(solver, block)) for name, function in ours},
        **{
            peer.name: (lambda block, peer=peer: by_kdl(peer, kdl, block))
            for peer in kdl.solvers(rng)
        },
    }
