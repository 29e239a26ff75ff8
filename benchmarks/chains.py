"""Random reachable poses on real chains: number missed by `auto`, and time.

Poses are those of joint values uniform within the limits (+-pi where there are none), by PyKDL's
kinematics or else NumPy's, and so is the check of every answer. Each chain is solved from random
joint values within the limits, and without a seed. Missed is what `solve_batch` does not solve
with its default restarts; beyond limits and inaccurate (1e-6 m, 1e-6 rad) are answers that claim
success and are none. Times are processor time of one thread. The mean is of a batch; "call" and
the percentiles are of single calls of `solve` from Python for the first poses. Missed poses are
listed with their joint values; "most" is the largest number of restarts.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chain_list import CHAINS, TASKS, ChainRow
from benchmarks.chain_runs import CHUNK, ChainSolver, library, total
from benchmarks.common import Table, columns, finish, guarded, parser, positive
from dls_ik import DlsIkError, RobotModel

COLUMNS = columns(
    "chain; joints; task; seeds; solved [%] :.3f; missed :d; beyond limits :d; inaccurate :d; "
    "mean [us] :.1f; call [us] :.1f; median [us] :.1f; 99 % [us] :.1f; 99.9 % [us] :.1f; "
    "iterations :.1f; restarts :.2f; most :d"
)
MISSED = columns(
    "chain; seeds; sample :d; q; seed; position error [m] :.2e; rotation error [rad] :.2e"
)


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
    note = f"Poses and checks are by {library()}."
    finish(given, [table, missed] if missed.rows else [table], [note])


if __name__ == "__main__":
    guarded(main)
