"""Random reachable poses on real chains: number missed by `auto`, and time.

Poses are those of joint values uniform within the limits (+-pi where there are none), by products
of the joints' matrices in NumPy, and so is the check of every answer. Each chain is solved from
random joint values within the limits, and without a seed. Missed is what `solve_batch` does not
solve with its default restarts; beyond limits and inaccurate (1e-6 m, 1e-6 rad) are answers that
claim success and are none. Times are processor time of one thread. The mean is of a batch; "call"
and the percentiles are of single calls of `solve` from Python for the first poses. Missed poses
are listed with their joint values; "most" is the largest number of restarts.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.chain_list import CHAINS, POINTING, POSITION, TASKS, ChainRow
from benchmarks.common import Table, columns, finish, guarded, parser, positive
from benchmarks.peers.arm import arm_of
from benchmarks.peers.arm import errors as pose_errors
from dls_ik import DlsIkError, IkSolver, RobotModel, Task
from dls_ik.solver.batch import RESTARTS
from dls_ik.solver.search import new_rows

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; other kinematics round differently
CHUNK = 10_000  # poses solved at a time

COLUMNS = columns(
    "chain; joints; task; seeds; solved [%] :.3f; missed :d; beyond limits :d; inaccurate :d; "
    "mean [us] :.1f; call [us] :.1f; median [us] :.1f; 99 % [us] :.1f; 99.9 % [us] :.1f; "
    "iterations :.1f; restarts :.2f; most :d"
)
MISSED = columns(
    "chain; seeds; sample :d; q; seed; position error [m] :.2e; rotation error [rad] :.2e"
)


def errors(task: Task, wanted: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Return the errors (b, 2) [m], [rad] of poses (b, 4, 4), by the task of a chain."""
    position = np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=1)
    if task == POSITION:
        return np.column_stack([position, np.zeros(len(position))])
    if task == POINTING:
        u, v = reached[:, :3, 2], wanted[:, :3, 2]
        sine, cosine = np.linalg.norm(np.cross(u, v), axis=1), (u * v).sum(axis=1)
        return np.column_stack([position, np.arctan2(sine, cosine)])
    return np.column_stack(pose_errors(reached, wanted))


class Block(NamedTuple):
    """Some poses of a chain, with their joint values."""

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
    """Result for some poses."""

    poses: int
    outside_limits: int  # of the answers that claim success
    outside_tolerance: int
    seconds: float  # of processor time, on one thread
    iterations: int
    restarts: int
    most_restarts: int  # of any pose: how near the rest came to being missed
    missed: list[Missed]


class ChainSolver:
    """A chain, the solver, and kinematics in NumPy to check it with."""

    def __init__(self, row: ChainRow) -> None:
        self.robot, self.task = row.robot(), row.task
        self.solver = IkSolver(self.robot, task=row.task)
        self.fk = arm_of(self.robot).fk

    def blocks(self, samples: int, seed: int, seeded: bool) -> Iterator[Block]:
        """Draw poses, the same ones with seeds and without."""
        poses, seeds = (np.random.default_rng([seed, k]) for k in range(2))
        for first in range(0, samples, CHUNK):
            b = min(CHUNK, samples - first)
            q = self.robot.random(poses, b)
            yield Block(first, q, self.fk(q), self.robot.random(seeds, b) if seeded else None)

    def outcome(self, block: Block) -> Outcome:
        """Solve a block twice: for its answers, and for the time of one thread."""
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
    """Run the kernel that a thread of a batch runs."""
    seeded = seeds is not None
    starts = solver.search.middle if seeds is None else seeds
    rows = new_rows(len(Ts), solver.robot.n, solver.options.random_seed)
    solver.search.attempt(Ts[:, None], starts, 1 + RESTARTS, rows, seeded)


def total(outcomes: list[Outcome]) -> Outcome:
    """Add up all blocks."""
    *sums, most, missed = zip(*outcomes, strict=True)
    return Outcome(
        *(sum(column) for column in sums), max(most), [one for some in missed for one in some]
    )


def _missed(block: Block, i: int, apart: np.ndarray) -> Missed:
    seed = None if block.seeds is None else block.seeds[i].tolist()
    return Missed(block.first + i, block.q[i].tolist(), seed, *apart.tolist())


def measured(row: ChainRow, given: argparse.Namespace, seeded: bool) -> tuple[list, list]:
    """Return one row of the table, and rows of the missed poses."""
    chain = ChainSolver(row)
    first = next(chain.blocks(min(CHUNK, given.samples), given.seed, seeded))
    chain.call_times(first, 10)  # loads what is to be loaded
    times = chain.call_times(first, given.calls)
    blocks = chain.blocks(given.samples, given.seed, seeded)
    found, seeds = total([chain.outcome(block) for block in blocks]), "random" if seeded else "none"
    counts = (len(found.missed), found.outside_limits, found.outside_tolerance)
    figures = [
        *(row.name, joints(chain.robot), TASKS[row.task], seeds),
        *(100.0 * (1.0 - counts[0] / found.poses), *counts),
        1e6 * found.seconds / found.poses,
        *(float(times.mean()), *np.percentile(times, (50, 99, 99.9)).tolist()),
        *(found.iterations / found.poses, found.restarts / found.poses, found.most_restarts),
    ]
    return figures, [[row.name, seeds, *one] for one in found.missed]


def joints(robot: RobotModel) -> str:
    """Return the number of joints, of prismatic and of continuous ones: `8 (1 P, 3 C)`."""
    kinds = {"P": robot.chain.prismatic.sum(), "C": robot.continuous.sum()}
    special = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    return f"{robot.n} ({special})" if special else str(robot.n)


def chosen(names: list[str]) -> list[ChainRow]:
    """Return the chains of these names; all without names.

    Raises:
        DlsIkError: an unknown name; the message lists the known ones.
    """
    known = {row.name: row for row in CHAINS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DlsIkError(f"no chain {', '.join(unknown)}; there are: {'; '.join(known)}")
    return [known[name] for name in names] or list(CHAINS)


def options() -> argparse.ArgumentParser:
    """Return the options."""
    result = parser(__doc__, samples=10_000, seed=0)
    result.add_argument("chains", nargs="*", help="names, see --list; default: all of them")
    result.add_argument("--list", action="store_true", help="list the chains and stop")
    result.add_argument("--calls", type=positive, default=5000, help="how many of them by `solve`")
    result.add_argument("--missed", metavar="FILE", help="write what is missed as it is found")
    return result


def noted(path: str, missed: Table) -> None:
    """Write the poses missed so far."""
    names = [column.name for column in missed.columns]
    rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in missed.rows]
    Path(path).write_text(json.dumps(rows, indent=1) + "\n")


def main() -> None:
    """Solve, and show."""
    given = options().parse_args()
    rows = chosen(given.chains)
    if given.list:
        for row in rows:
            print(f"{row.name:24}{TASKS[row.task]:10}{row.file}")
        return
    for row in rows:
        row.robot()  # a missing file is reported before anything is measured
    table = Table(f"{given.samples} random poses of each chain, seed {given.seed}", COLUMNS)
    missed = Table("Missed", MISSED)
    for row, seeded in ((row, seeded) for row in rows for seeded in (True, False)):
        figures, rest = measured(row, given, seeded)
        table.rows.append(figures)
        missed.rows.extend(rest)
        print(f"{row.name}, {figures[3]} seeds: {len(rest)} missed", file=sys.stderr)
        if given.missed:
            noted(given.missed, missed)
    finish(given, [table, missed] if missed.rows else [table])


if __name__ == "__main__":
    guarded(main)
