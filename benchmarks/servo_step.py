# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
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
    """A row: only the call is timed; both take a pose and a time."""

    what: str
    method: str
    limits: str
    prepare: Callable[[np.ndarray, float], Any]
    call: Callable[[np.ndarray, float], Any]


def cycle(method: str, limits: str, path: Path) -> Contestant:
    """Return the cycle of a controller."""
    controller = Controller(moving("wam7"), method, **LIMITS[limits])
    controller.seed(path.start())
    follow, run = controller.follow_pose, lambda T, now: controller.cycle(now, DT)
    return Contestant("cycle", method, limits, follow, run)


def step(method: str, path: Path) -> Contestant:
    """Return the bare step of a method."""
    servo = LocalIk(moving("wam7"), method)
    servo.reset(path.start())
    return Contestant("step", method, "velocity", nothing, lambda T, now: servo.step(T, DT))


def nothing(T: np.ndarray, now: float) -> None:
    """Do nothing, in the time that a call takes."""


def contestants(methods: Any, path: Path) -> list[Contestant]:
    """Return all rows, the reference first."""
    names = (REFERENCE, *(m for m in methods if m != REFERENCE))
    limited = [cycle(DEFAULT_METHOD, limits, path) for limits in ("acceleration", "jerk")]
    return [*(step(m, path) for m in names), *(cycle(m, "velocity", path) for m in names), *limited]


def measured(rows: list[Contestant], path: Path, repeats: int, cycles: int) -> np.ndarray:
    """Return times [us] (rows, repeats, cycles); each turn continues along the path."""
    rows = [*rows, Contestant("", "", "", nothing, nothing)]
    found = np.empty((len(rows), 1 + repeats, cycles))
    turn = SPEED / path.length
    for repeat in range(1 + repeats):
        nows = DT * (repeat * cycles + np.arange(1, cycles + 1))
        Ts = [path.pose(turn * now) for now in nows]
        for i, row in enumerate(rows):
            for k, (T, now) in enumerate(zip(Ts, nows, strict=True)):
                row.prepare(T, now)
                begin = time.thread_time_ns()
                row.call(T, now)
                found[i, repeat, k] = 1e-3 * (time.thread_time_ns() - begin)
    return found[:-1, 1:] - np.median(found[-1])  # the first turn loads


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
