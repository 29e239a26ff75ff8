"""One chain solved many times: what was missed, what is no answer after all, how long it took.

Times are processor time of the one thread that works: of what else runs here they count nothing.
"""

import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks.chain_check import errors, forward
from benchmarks.chain_list import ChainRow
from dls_ik import IkSolver
from dls_ik.solver.batch import RESTARTS
from dls_ik.solver.rows import new_rows

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; other kinematics round differently
CHUNK = 10_000  # poses solved at a time


class Block(NamedTuple):
    """Some poses of a chain, and what they come from."""

    first: int  # number of the first one
    q: np.ndarray  # (b, n)
    Ts: np.ndarray  # (b, 4, 4)
    seeds: np.ndarray | None  # (b, n)


class Missed(NamedTuple):
    """A pose that was not solved."""

    sample: int
    q: list[float]  # that it comes from
    seed: list[float] | None
    position_error: float  # [m] of the best that was found
    rotation_error: float  # [rad]


class Outcome(NamedTuple):
    """What became of some poses."""

    poses: int
    outside_limits: int  # of the answers that claim success
    outside_tolerance: int
    seconds: float  # of processor time, on one thread
    iterations: int
    restarts: int
    most_restarts: int  # of any pose: how near the rest came to being missed
    missed: list[Missed]


class Contestant:
    """A chain, the solver, and kinematics to check it with."""

    def __init__(self, row: ChainRow) -> None:
        self.robot, self.task = row.robot(), row.task
        self.solver = IkSolver(self.robot, task=row.task)
        self.fk = forward(self.robot)

    def blocks(self, samples: int, seed: int, seeded: bool) -> Iterator[Block]:
        """Draw poses, the same ones with seeds and without."""
        poses, seeds = (np.random.default_rng([seed, k]) for k in range(2))
        for first in range(0, samples, CHUNK):
            b = min(CHUNK, samples - first)
            q = self.robot.random(poses, b)
            yield Block(first, q, self.fk(q), self.robot.random(seeds, b) if seeded else None)

    def outcome(self, block: Block) -> Outcome:
        """Solve a block twice: for its answers, and for the time that one thread takes."""
        result = self.solver.solve_batch(block.Ts, block.seeds)
        begin = time.thread_time()
        on_one_thread(self.solver, block.Ts, block.seeds)
        seconds = time.thread_time() - begin
        good, apart = result.success, errors(self.task, block.Ts, self.fk(result.q))
        beyond = ((result.q < self.robot.lower) | (result.q > self.robot.upper)).any(axis=1)
        apart_too_far = ~(apart <= TOLERANCE).all(axis=1)
        return Outcome(
            len(good),
            int((good & beyond).sum()),
            int((good & apart_too_far).sum()),
            seconds,
            int(result.iterations.sum()),
            int(result.restarts.sum()),
            int(result.restarts.max()),
            [_missed(block, i, apart[i]) for i in np.flatnonzero(~good).tolist()],
        )

    def call_times(self, block: Block, calls: int) -> np.ndarray:
        """Processor times [us] of single calls of `solve`."""
        times = []
        seeds = [None] * len(block.Ts) if block.seeds is None else block.seeds
        for T, seed in islice(zip(block.Ts, seeds, strict=True), calls):
            begin = time.thread_time()
            self.solver.solve(T, seed)
            times.append(time.thread_time() - begin)
        return 1e6 * np.array(times)


def on_one_thread(solver: IkSolver, Ts: np.ndarray, seeds: np.ndarray | None) -> None:
    """The kernel that a thread of a batch runs, without the threads."""
    seeded = seeds is not None
    starts = solver.middle if seeds is None else seeds
    rows = new_rows(len(Ts), solver.robot.n, solver.options.random_seed)
    solver.search(solver.problem, Ts[:, None], starts, 1 + RESTARTS, rows, None, seeded)


def total(outcomes: list[Outcome]) -> Outcome:
    """All blocks together."""
    *sums, most, missed = zip(*outcomes, strict=True)
    return Outcome(
        *(sum(column) for column in sums), max(most), [one for some in missed for one in some]
    )


def _missed(block: Block, i: int, apart: np.ndarray) -> Missed:
    seed = None if block.seeds is None else block.seeds[i].tolist()
    return Missed(block.first + i, block.q[i].tolist(), seed, *apart.tolist())
