"""A million poses in one batch: poses a second, on one thread and on all cores, and the memory.

Random reachable poses without seeds. Memory is the peak of the process during the batch, less what
it had before (the poses among it) and less the arrays of the answer: what the solver itself takes.
"""

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import (
    Table,
    columns,
    finish,
    guarded,
    machine,
    parser,
    positive,
    robot_from,
    thread_counts,
)
from dls_ik import IkBatchResult, IkSolver, RobotModel

MIB = 2.0**20
CHUNK = 10_000  # poses made at a time, so that making them leaves no peak
COLUMNS = columns(
    "threads :d; solved [%] :.4f; time [s] :.2f; poses a second :.0f; as a multiple of one "
    "thread :.2f; poses [MiB] :.1f; answer [MiB] :.1f; peak above both [MiB] :.1f"
)


class Batch(NamedTuple):
    """What a batch took."""

    solved: float  # [%]
    seconds: float
    answer: float  # [MiB]
    above: float  # [MiB]


def poses(robot: RobotModel, b: int, rng: np.random.Generator) -> np.ndarray:
    """(b, 4, 4)."""
    Ts = np.empty((b, 4, 4))
    for first in range(0, b, CHUNK):
        part = Ts[first : first + CHUNK]
        part[:] = robot.fk(robot.random(rng, len(part)))
    return Ts


def memory(field: str) -> float:
    """A field of this process's status, such as VmRSS or its peak VmHWM [MiB]."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024.0
    raise KeyError(field)


def forget_peak() -> None:
    """Let VmHWM begin anew (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def solved(solver: IkSolver, Ts: np.ndarray, threads: int) -> Batch:
    """Solve all poses on so many threads."""
    forget_peak()
    before, begin = memory("VmRSS"), time.perf_counter()
    result = solver.solve_batch(Ts, threads=threads)
    seconds = time.perf_counter() - begin
    answer = _size(result)
    above = memory("VmHWM") - before - answer
    return Batch(100.0 * float(result.success.mean()), seconds, answer, above)


def main() -> None:
    """Measure, and show."""
    options = parser(__doc__)
    options.add_argument("--robot", type=robot_from, default="wam", help="a name or a URDF file")
    options.add_argument("--samples", type=positive, default=1_000_000, help="poses")
    options.add_argument("--seed", type=int, default=0, help="of the random poses")
    given, before = options.parse_args(), machine()
    solver, rng = IkSolver(given.robot), np.random.default_rng(given.seed)
    solver.solve_batch(poses(given.robot, 1000, rng))  # loads the kernels
    Ts = poses(given.robot, given.samples, rng)
    table = Table(f"{given.samples} random poses of {given.robot.name} in one batch", COLUMNS)
    first = None
    for threads in thread_counts():
        batch = solved(solver, Ts, threads)
        first = first or batch.seconds
        rates = given.samples / batch.seconds, first / batch.seconds
        sizes = Ts.nbytes / MIB, batch.answer, batch.above
        table.rows.append((threads, batch.solved, batch.seconds, *rates, *sizes))
    finish(given.json, before, [table])


def _size(result: IkBatchResult) -> float:
    """Bytes of the arrays of a result [MiB]."""
    values: list[Any] = [getattr(result, name) for name in result.__dataclass_fields__]
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray)) / MIB


if __name__ == "__main__":
    guarded(main)
