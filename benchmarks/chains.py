# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Random reachable poses on real chains: number missed by `auto`, and time.

docs/lab/chains.md describes the columns. "Beyond limits" and "inaccurate" (1e-6 m, 1e-6 rad) count
answers that wrongly claim success. Missed poses are listed with their joint positions.
"""

import argparse
import sys
import time
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks.chain_list import CHAINS, POINTING, POSITION, TASKS, ChainRow
from benchmarks.common import Table, columns, finish, guarded, parser, positive
from benchmarks.peers.arm import arm_of
from benchmarks.peers.arm import errors as pose_errors
from dls_ik import DlsIkError, IkSolver, RobotModel, Task
from dls_ik.solver.calls import BATCH_RESTARTS

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; other kinematics round differently

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


class Poses(NamedTuple):
    """Random poses of a chain, and their joint positions."""

    q: np.ndarray  # (b, n)
    Ts: np.ndarray  # (b, 4, 4)
    seeds: np.ndarray | None  # (b, n)


class ChainSolver:
    """Chain with its solver and with NumPy kinematics for the check."""

    def __init__(self, row: ChainRow) -> None:
        self.robot, self.task = row.robot(), row.task
        self.solver = IkSolver(self.robot, task=row.task)
        self.fk = arm_of(self.robot).fk

    def poses(self, count: int, seed: int, seeded: bool) -> Poses:
        """Draw random poses, which are the same with seeds and without."""
        qs, seeds = (self.robot.random(count, np.random.default_rng([seed, k])) for k in range(2))
        return Poses(qs, self.fk(qs), seeds if seeded else None)

    def seconds_on_one_thread(self, poses: Poses) -> float:
        """Return the processor time of a batch on one thread [s]."""
        search, count = self.solver.search, len(poses.Ts)
        starts = search.middle if poses.seeds is None else poses.seeds
        rows = search.new_rows(count)
        begin = time.thread_time()
        search.attempt(poses.Ts[:, None], starts, 1 + BATCH_RESTARTS, rows, poses.seeds is not None)
        return time.thread_time() - begin

    def call_times(self, poses: Poses, calls: int) -> np.ndarray:
        """Return processor times [us] of single calls of `solve`."""
        times = []
        seeds = [None] * len(poses.Ts) if poses.seeds is None else poses.seeds
        for T, seed in islice(zip(poses.Ts, seeds, strict=True), calls):
            begin = time.thread_time()
            self.solver.solve(T, seed)
            times.append(time.thread_time() - begin)
        return 1e6 * np.array(times)


def measured(row: ChainRow, given: argparse.Namespace, seeded: bool) -> tuple[list, list]:
    """Return one row of the table, and the rows of missed poses."""
    chain, seeds = ChainSolver(row), "random" if seeded else "none"
    poses = chain.poses(given.samples, given.seed, seeded)
    chain.call_times(poses, 10)  # loads the kernels
    times = chain.call_times(poses, given.calls)
    result = chain.solver.solve_batch(poses.Ts, poses.seeds)
    good, apart = result.success, errors(row.task, poses.Ts, chain.fk(result.q))
    beyond = ((result.q < chain.robot.lower) | (result.q > chain.robot.upper)).any(axis=1)
    inaccurate = ~(apart <= TOLERANCE).all(axis=1)
    counts = (int(which.sum()) for which in (~good, good & beyond, good & inaccurate))
    figures = [
        *(row.name, joints(chain.robot), TASKS[row.task], seeds),
        *(100.0 * float(good.mean()), *counts),
        1e6 * chain.seconds_on_one_thread(poses) / given.samples,
        *(float(times.mean()), *np.percentile(times, (50, 99, 99.9)).tolist()),
        *(float(result.iterations.mean()), float(result.restarts.mean())),
        int(result.restarts.max()),
    ]
    missed = []
    for i in np.flatnonzero(~good).tolist():
        seed = None if poses.seeds is None else poses.seeds[i].tolist()
        missed.append([row.name, seeds, i, poses.q[i].tolist(), seed, *apart[i].tolist()])
    return figures, missed


def joints(robot: RobotModel) -> str:
    """Return the numbers of joints, prismatic and continuous joints, such as `8 (1 P, 3 C)`."""
    kinds = {"P": robot.chain.prismatic.sum(), "C": robot.continuous.sum()}
    special = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    return f"{robot.n} ({special})" if special else str(robot.n)


def chosen(names: list[str]) -> list[ChainRow]:
    """Return the chains with the given names, or all chains if no names are given.

    Raises:
        DlsIkError: If a name is unknown; the message lists the known names.
    """
    known = {row.name: row for row in CHAINS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DlsIkError(f"no chain {', '.join(unknown)}; there are: {'; '.join(known)}")
    return [known[name] for name in names] or list(CHAINS)


def main() -> None:
    """Solve for all poses, and print the tables."""
    options = parser(__doc__, samples=10_000, seed=0)
    options.add_argument("chains", nargs="*", help="names, see --list; default: all of them")
    options.add_argument("--list", action="store_true", help="list the chains and stop")
    options.add_argument("--calls", type=positive, default=5000, help="how many of them by `solve`")
    given = options.parse_args()
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
    finish(given, [table, missed] if missed.rows else [table])


if __name__ == "__main__":
    guarded(main)
