"""Time of one cycle of the controller, by method and by limits.

All controllers follow the same stream of poses on the WAM at 1 kHz, a circle of 0.1 m at 0.25 m/s,
each a block of cycles in turns. Beside a cycle is the bare step of the method (`LocalIk.step`).
It is the processor time of the thread, of each call alone, less that of an empty one; ratios are of
medians to `jd` in the same turn.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive, quartiles, spread
from benchmarks.servo_runs import moving
from benchmarks.tracking import LIMITS, Path, paths
from dls_ik.servo import DEFAULT_METHOD, Controller, LocalIk

REFERENCE = "jd"
METHODS = (
    REFERENCE, "auto", "ed", "svf", "svf+sd", "sd", "odls", "jc+ed", "ctp", "ctp+sd", DEFAULT_METHOD
)  # fmt: skip
DT, SPEED = 1e-3, 0.25  # [s], [m/s]
COLUMNS = columns("part; method; limits to; median [us] :.1f; 99 % [us] :.1f; as a multiple of jd")


class Contestant(NamedTuple):
    """A row: the call takes a pose and a time."""

    what: str
    method: str
    limits: str
    call: Callable[[np.ndarray, float], Any]


def controller_cycle(method: str, limits: str, path: Path) -> Contestant:
    """Return the cycle of a controller; setting its target is not timed."""
    controller = Controller(moving("wam7"), method, **LIMITS[limits])
    controller.seed(path.start())
    return Contestant("cycle", method, limits, timed_cycle(controller))


def timed_cycle(controller: Controller) -> Callable[[np.ndarray, float], float]:
    """Return a function that sets a target and returns the time of the cycle [us]."""

    def call(T: np.ndarray, now: float) -> float:
        controller.follow_pose(T, now)
        begin = time.thread_time_ns()
        controller.cycle(now, DT)
        return 1e-3 * (time.thread_time_ns() - begin)

    return call


def servo_step(method: str, path: Path) -> Contestant:
    """Return the bare step of a method."""
    servo = LocalIk(moving("wam7"), method)
    servo.reset(path.start())

    def call(T: np.ndarray, now: float) -> float:
        begin = time.thread_time_ns()
        servo.step(T, DT)
        return 1e-3 * (time.thread_time_ns() - begin)

    return Contestant("step", method, "velocity", call)


def contestants(methods: Any, path: Path) -> list[Contestant]:
    """Return all rows, the reference first."""
    rest = [m for m in methods if m != REFERENCE]
    steps = [servo_step(m, path) for m in (REFERENCE, *rest)]
    cycles = [controller_cycle(m, "velocity", path) for m in (REFERENCE, *rest)]
    limited = [controller_cycle(DEFAULT_METHOD, x, path) for x in ("acceleration", "jerk")]
    return steps + cycles + limited


def empty_call(count: int = 2000) -> float:
    """Return the time of an empty call [us]."""
    found = []
    for _ in range(count):
        begin = time.thread_time_ns()
        found.append(1e-3 * (time.thread_time_ns() - begin))
    return float(np.median(found))


def measured(rows: list[Contestant], path: Path, repeats: int, cycles: int) -> np.ndarray:
    """Return times [us] (rows, repeats, cycles); each turn continues along the path."""
    found = np.empty((len(rows), 1 + repeats, cycles))
    turn = SPEED / path.length
    for repeat in range(1 + repeats):
        nows = DT * (repeat * cycles + np.arange(1, cycles + 1))
        Ts = [path.pose(turn * now) for now in nows]
        for i, row in enumerate(rows):
            found[i, repeat] = [row.call(T, now) for T, now in zip(Ts, nows, strict=True)]
    return found[:, 1:] - empty_call()  # the first loads


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, repeats=20)
    options.add_argument("--methods", nargs="+", default=METHODS)
    options.add_argument("--cycles", type=positive, default=250, help="of a turn")
    given = options.parse_args()
    path = paths()["circle"]
    rows = contestants(given.methods, path)
    found = measured(rows, path, given.repeats, given.cycles)
    reference = {
        row.what: np.median(times, axis=1)
        for row, times in zip(rows, found, strict=True)
        if row.method == REFERENCE
    }
    table = Table(f"{given.repeats} turns of {given.cycles} cycles, WAM", COLUMNS)
    for row, times in zip(rows, found, strict=True):
        medians = np.median(times, axis=1)
        ratio = spread(medians / reference[row.what])
        table.rows.append([*row[:3], quartiles(times)[0], float(np.percentile(times, 99)), ratio])
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
