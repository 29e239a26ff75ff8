"""Random reachable poses on real chains: how many `auto` misses, how long it takes.

Poses are those of joint values uniform within the limits (+-pi where there are none), by PyKDL's
kinematics or else NumPy's, and so is the check of every answer. Each chain is solved from random
joint values within the limits, and without a seed. Missed is what `solve_batch` does not solve
with its default restarts; outside the limits or the tolerance (1e-6 m, 1e-6 rad) is an answer that
claims success and is not one. The mean is of a batch on one thread; "by solve" are times of single
calls from Python, of the first poses only. What was missed is listed with its joint values.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from benchmarks.chain_check import errors, forward
from benchmarks.chain_list import CHAINS, TASKS, ChainRow
from benchmarks.common import Column, Table, finish, guarded, parser, positive
from benchmarks.machine import machine
from dls_ik import IkSolver
from dls_ik.solver.batch import RESTARTS, new_rows

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; other kinematics round differently
CHUNK = 10_000  # poses solved at a time
COLUMNS = [
    Column("chain"),
    Column("joints"),
    Column("task"),
    Column("seeds"),
    Column("solved [%]", ".3f"),
    Column("missed", "d"),
    Column("outside limits", "d"),
    Column("outside tolerance", "d"),
    Column("mean [us]", ".1f"),
    Column("by solve: mean [us]", ".1f"),
    Column("median [us]", ".1f"),
    Column("99 % [us]", ".1f"),
    Column("99.9 % [us]", ".1f"),
    Column("iterations", ".1f"),
    Column("restarts", ".2f"),
]
MISSED = [
    Column("chain"),
    Column("seeds"),
    Column("sample", "d"),
    Column("q", ""),
    Column("seed", ""),
    Column("position error [m]", ".2e"),
    Column("rotation error [rad]", ".2e"),
]


class Block(NamedTuple):
    """Some poses of a chain, and what they come from."""

    first: int  # number of the first one
    q: np.ndarray  # (b, n)
    Ts: np.ndarray  # (b, 4, 4)
    seeds: np.ndarray | None  # (b, n)


class Outcome(NamedTuple):
    """What became of one block."""

    faults: np.ndarray  # (3,) counts: missed, outside limits, outside tolerance
    seconds: float  # on one thread
    effort: np.ndarray  # (2,) sums of iterations and restarts
    missed: list[list[Any]]  # rows of the table MISSED, without the first two


def on_one_thread(solver: IkSolver, Ts: np.ndarray, seeds: np.ndarray | None) -> None:
    """The kernel that a thread of a batch runs, without the threads."""
    if seeds is None:
        lower, upper = solver.robot.finite_limits()
        seeds = np.tile(0.5 * (lower + upper), (len(Ts), 1))
    rows = new_rows(len(Ts), solver.robot.n, solver.options.random_seed)
    solver.search(solver.problem, Ts[:, None], seeds, 1 + RESTARTS, rows)


def blocks(row: ChainRow, samples: int, seed: int, seeded: bool) -> Iterator[Block]:
    """Draw poses, the same ones with seeds and without."""
    robot, fk = row.robot(), forward(row.robot())[1]
    poses, seeds = (np.random.default_rng([seed, k]) for k in range(2))
    for first in range(0, samples, CHUNK):
        b = min(CHUNK, samples - first)
        q = robot.random(poses, b)
        yield Block(first, q, fk(q), robot.random(seeds, b) if seeded else None)


def outcome(row: ChainRow, solver: IkSolver, block: Block) -> Outcome:
    """Solve a block twice: for its answers, and for the time that one thread takes."""
    result = solver.solve_batch(block.Ts, block.seeds)
    begin = time.perf_counter()
    on_one_thread(solver, block.Ts, block.seeds)
    seconds = time.perf_counter() - begin
    q, good = result.q, result.success
    apart = errors(row.task, block.Ts, forward(solver.robot)[1](q))
    beyond = (q < solver.robot.lower) | (q > solver.robot.upper)
    faults = [~good, good & beyond.any(axis=1), good & ~(apart <= TOLERANCE).all(axis=1)]
    missed = [
        [
            block.first + i,
            block.q[i].tolist(),
            None if block.seeds is None else block.seeds[i].tolist(),
            *apart[i].tolist(),
        ]
        for i in np.flatnonzero(~good).tolist()
    ]
    effort = np.array([result.iterations.sum(), result.restarts.sum()])
    return Outcome(np.array(faults).sum(axis=1), seconds, effort, missed)


def call_times(solver: IkSolver, block: Block, calls: int) -> np.ndarray:
    """Times [us] of single calls of `solve`."""
    times = []
    seeds = [None] * len(block.Ts) if block.seeds is None else block.seeds
    for T, seed in islice(zip(block.Ts, seeds, strict=True), calls):
        begin = time.perf_counter()
        solver.solve(T, seed)
        times.append(time.perf_counter() - begin)
    return 1e6 * np.array(times)


def measured(row: ChainRow, given: argparse.Namespace, seeded: bool) -> tuple[list, list]:
    """One row of the table, and rows of what was missed."""
    solver = IkSolver(row.robot(), task=row.task)
    first = next(blocks(row, min(CHUNK, given.samples), given.seed, seeded))
    call_times(solver, first, 10)  # loads what is to be loaded
    times = call_times(solver, first, given.calls)
    done = [outcome(row, solver, b) for b in blocks(row, given.samples, given.seed, seeded)]
    faults = sum(one.faults for one in done)
    mean = 1e6 * sum(one.seconds for one in done) / given.samples
    tail = np.percentile(times, (50, 99, 99.9)).tolist()
    effort = (sum(one.effort for one in done) / given.samples).tolist()
    seeds = "random" if seeded else "none"
    solved = 100.0 * (1.0 - faults[0] / given.samples)
    about = [row.name, joints(solver), TASKS[row.task], seeds]
    figures = [solved, *faults.tolist(), mean, float(times.mean()), *tail, *effort]
    missed = [[row.name, seeds, *each] for one in done for each in one.missed]
    return [*about, *figures], missed


def joints(solver: IkSolver) -> str:
    """How many, and how many of them are prismatic or turn without end: `8 (1 P, 2 C)`."""
    robot = solver.robot
    kinds = {"P": robot.chain.prismatic.sum(), "C": robot.continuous.sum()}
    special = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    return f"{robot.n} ({special})" if special else str(robot.n)


def chosen(names: list[str]) -> list[ChainRow]:
    """The chains of these names, all for none."""
    known = {row.name: row for row in CHAINS}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"unknown chains {', '.join(unknown)}; known: {', '.join(known)}")
    return [known[name] for name in names] or list(CHAINS)


def main() -> None:
    """Solve, and show."""
    options = parser(__doc__)
    options.add_argument("chains", nargs="*", help="names, see --list; default: all of them")
    options.add_argument("--list", action="store_true", help="list the chains and stop")
    options.add_argument("--samples", type=positive, default=10_000, help="poses of each chain")
    options.add_argument("--calls", type=positive, default=5000, help="of them by `solve`")
    options.add_argument("--seed", type=int, default=0, help="of the random poses and seeds")
    options.add_argument("--missed", metavar="FILE", help="write what is missed as it is found")
    given, before = options.parse_args(), machine()
    rows = chosen(given.chains)
    if given.list:
        for row in rows:
            print(f"{row.name:24}{TASKS[row.task]:10}{row.file}")
        return
    table = Table(f"{given.samples} random poses of each chain, seed {given.seed}", COLUMNS)
    missed = Table("Missed", MISSED)
    for row in rows:
        for seeded in (True, False):
            figures, rest = measured(row, given, seeded)
            table.rows.append(figures)
            missed.rows.extend(rest)
            print(f"{row.name}: {figures[3]} seeds, {len(rest)} missed", file=sys.stderr)
            if given.missed:
                names = [column.name for column in MISSED]
                found = [dict(zip(names, each, strict=True)) for each in missed.rows]
                with open(given.missed, "w") as file:
                    json.dump(found, file, indent=1)
    finish(given.json, before, [table, missed] if missed.rows else [table])


if __name__ == "__main__":
    guarded(main)
