# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A million poses in one batch: poses a second, on one thread and on all cores, and the memory.

Random reachable poses without seeds. Memory is the peak of the process during the batch, less its
size before (with the poses) and less the arrays of the answer.
"""

import time
from pathlib import Path

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, thread_counts
from dls_ik import IkBatchResult, IkSolver, RobotModel

MIB = 2.0**20
CHUNK = 10_000  # poses made at a time, so that making them leaves no peak
COLUMNS = columns(
    "threads :d; solved [%] :.4f; time [s] :.2f; poses a second :.0f; as a multiple of one thread "
    ":.2f; poses [MiB] :.1f; answer [MiB] :.1f; peak above both [MiB] :.1f"
)


def poses(robot: RobotModel, b: int, rng: np.random.Generator) -> np.ndarray:
    """Return random reachable poses (b, 4, 4)."""
    Ts = np.empty((b, 4, 4))
    for first in range(0, b, CHUNK):
        part = Ts[first : first + CHUNK]
        part[:] = robot.fk(robot.random(len(part), rng))
    return Ts


def memory(field: str) -> float:
    """Return a field of this process's status, such as VmRSS or its peak VmHWM [MiB]."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024.0
    raise KeyError(field)


def size_of(result: IkBatchResult) -> float:
    """Return the size of the arrays of a result [MiB]."""
    values = (getattr(result, name) for name in result.__dataclass_fields__)
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray)) / MIB


def main() -> None:
    """Measure and show."""
    given = parser(__doc__, robot="wam", samples=1_000_000, seed=0).parse_args()
    solver, rng = IkSolver(given.robot), np.random.default_rng(given.seed)
    solver.solve_batch(poses(given.robot, 1000, rng))  # loads the kernels
    Ts = poses(given.robot, given.samples, rng)
    table = Table(f"{given.samples} random poses of {given.robot.name} in one batch", COLUMNS)
    for threads in thread_counts():
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew, see proc(5)
        before, begin = memory("VmRSS"), time.perf_counter()
        result = solver.solve_batch(Ts, threads=threads)
        seconds, answer = time.perf_counter() - begin, size_of(result)
        above = memory("VmHWM") - before - answer
        one = table.rows[0][2] if table.rows else seconds
        rates = given.samples / seconds, one / seconds
        solved = 100.0 * float(result.success.mean())
        table.rows.append((threads, solved, seconds, *rates, Ts.nbytes / MIB, answer, above))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
