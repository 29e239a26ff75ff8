# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Errors of the command on moving poses: circle, lemniscate, lines into singularities.

The WAM is simulated (2 rad/s); errors are those of the second lap. The lag is the delay that
explains most of the position error (least squares). Lines are followed back and forth with a cosine
in time and the maximum speed `speed`: one into the stretched arm at the limit of its reach, one
through a configuration with the wrist folded onto its axis (q6 = 0, q5 = -90 degrees). The second
table has the joint motion that the paths need.
"""

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.servo_runs import CORES, in_processes, moving
from dls_ik import IkSolver
from dls_ik.core.se3 import difference, moved
from dls_ik.servo import Controller

ELBOW = math.atan(0.045 / 0.55) + math.atan(
    0.045 / 0.3
)  # [rad] elbow position of the stretched WAM
MIDDLE = np.array([0.3, 0.6, 0.2, 1.6, -0.3, -0.7, 0.2])  # away from limits and singularities
STRETCHED = np.array([0.3, 0.7, 0.2, ELBOW, -0.3, -0.7, 0.2])
FOLDED = np.array([0.3, 0.6, 0.2, 1.6, -math.pi / 2, 0.0, 0.2])
LIMITS = {"velocity": {}, "acceleration": {"acceleration": 10.0}}
LIMITS["jerk"] = {"acceleration": 10.0, "jerk": 100.0}  # [rad/s^2], [rad/s^3]
LAPS = 2
COLUMNS = columns(
    "path; speed [m/s] :.2f; loop [Hz] :.0f; messages [Hz] :.0f; feed-forward; limits to; "
    "position, max [mm] :.4f; rms [mm] :.4f; rotation, max [mrad] :.4f; rms [mrad] :.4f; lag "
    "[ms] :.2f"
)
ASKED = columns(
    "path; speed [m/s] :.2f; lap [s] :.2f; poses with a solution [%] :.1f; fastest joint "
    "[rad/s] :.2f; its acceleration [rad/s^2] :.1f"
)


class Path(NamedTuple):
    """Closed path of poses."""

    hint: np.ndarray  # (n,) near which the arm is to begin
    center: np.ndarray  # (4, 4)
    offset: Callable[[float], np.ndarray]  # (6,) displacement from the center, by the phase [rad]
    length: float  # [m] for each radian of phase, where the tip is fastest

    def pose(self, phase: float) -> np.ndarray:
        """The pose (4, 4)."""
        return moved(self.center, self.offset(phase))

    def start(self) -> np.ndarray:
        """Joint values (n,) of the first pose."""
        solver = IkSolver(moving("wam7"), solve_type="distance")
        return solver.solve(self.pose(0.0), self.hint, timeout=60.0).q


def circle(phase: float) -> np.ndarray:
    """Return a circle of radius 0.1 m, perpendicular to the x axis."""
    return 0.1 * np.array([0.0, math.cos(phase) - 1.0, math.sin(phase), 0.0, 0.0, 0.0])


def lemniscate(phase: float) -> np.ndarray:
    """Return a lemniscate, 0.3 m wide, that rotates by up to 0.3 rad in both directions."""
    c, s = math.cos(phase), math.sin(phase)
    return s * np.array([0.0, 0.15, 0.15 * c, 0.0, 0.0, 0.3])


def lost(q: np.ndarray) -> np.ndarray:
    """Return the direction (6,) that no joint motion reaches: outwards, without rotation."""
    robot = moving("wam7")
    u = np.linalg.svd(robot.jacobian(q))[0][:3, -1]
    outwards = math.copysign(1.0, u @ robot.fk(q)[:3, 3])
    return np.append(outwards * u / np.linalg.norm(u), np.zeros(3))


def paths() -> dict[str, Path]:
    """Return the paths by their names."""
    robot = moving("wam7")
    middle, out, folded = (robot.fk(q) for q in (MIDDLE, STRETCHED, FOLDED))
    along, across = 0.1 * lost(STRETCHED), 0.1 * lost(FOLDED)
    bent = STRETCHED + np.array([0, 0, 0, 1.2, 0, 0, 0])
    return {
        "circle": Path(MIDDLE, middle, circle, 0.1),
        "lemniscate": Path(MIDDLE, middle, lemniscate, 0.15 * math.sqrt(2.0)),
        "elbow": Path(bent, out, lambda s: -(1.0 + math.cos(s)) * along, 0.1),
        "wrist": Path(FOLDED, folded, lambda s: math.cos(s) * across, 0.1),
    }


class Case(NamedTuple):
    """Row of the table."""

    path: str
    speed: float  # [m/s]
    rate: float  # [Hz]
    messages: float  # [Hz]
    feed_forward: bool
    limits: str


def run(case: Case) -> list[Any]:
    """Follow the path, and return the errors of the last lap."""
    robot, path = moving("wam7"), paths()[case.path]
    controller = Controller(robot, feed_forward=case.feed_forward, **LIMITS[case.limits])
    controller.seed(path.start())
    dt, turn = 1.0 / case.rate, case.speed / path.length  # [s], [rad/s]
    lap = round(2.0 * math.pi / (turn * dt))
    Ts, qs, due = [], [], 0.0
    for k in range(LAPS * lap):
        now = k * dt
        T = path.pose(turn * now)
        if now >= due - 1e-9:
            controller.follow_pose(T, now)
            due += 1.0 / case.messages
        Ts.append(T)
        qs.append(controller.cycle(now, dt).q)
    before, last = np.array(Ts[-lap - 1 : -1]), np.array(Ts[-lap:])
    velocity = (last - before)[:, :3, 3] / dt
    position, rotation, lag = errors(robot.fk(np.array(qs[-lap:])), last, velocity)
    figures = [1e3 * f(x) for x in (position, rotation) for f in (np.max, rms)]
    return [*case[:4], "yes" if case.feed_forward else "no", case.limits, *figures, 1e3 * lag]


def errors(
    Ts: np.ndarray, Ts_d: np.ndarray, velocity: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return position errors (b,) [m], rotation errors (b,) [rad], and the lag [s]."""
    left = np.array([difference(T, T_d) for T, T_d in zip(Ts, Ts_d, strict=True)])
    lag = np.sum(left[:, :3] * velocity) / np.sum(velocity * velocity)
    return np.linalg.norm(left[:, :3], axis=1), np.linalg.norm(left[:, 3:], axis=1), float(lag)


def rms(values: np.ndarray) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(values * values)))


def asked(name: str, speed: float) -> list[Any]:
    """Return the joint motion that a path needs, from the solutions of successive poses."""
    robot, path = moving("wam7"), paths()[name]
    solver, q = IkSolver(robot), path.start()
    lap = 2.0 * math.pi * path.length / speed
    count = 4000
    solved, qs = 0, [q]
    for k in range(1, count + 1):
        result = solver.solve(path.pose(2.0 * math.pi * k / count), q, timeout=10.0)
        solved += result.success
        q = result.q
        qs.append(q)
    v = np.diff(qs, axis=0) * count / lap
    a = np.diff(v, axis=0) * count / lap
    return [name, speed, lap, 100.0 * solved / count, np.abs(v).max(), np.abs(a).max()]


def cases(given: Any) -> list[Case]:
    """Return all rows."""
    grid = product(
        given.paths, given.speeds, given.rates, given.messages, (False, True), given.limits
    )
    return [Case(p, v, hz, m or hz, ff, x) for p, v, hz, m, ff, x in grid]


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, processes=CORES)
    names = tuple(paths())
    options.add_argument("--paths", nargs="+", choices=names, default=names)
    options.add_argument("--speeds", nargs="+", type=float, default=(0.1, 0.25, 0.5), help="[m/s]")
    options.add_argument("--rates", nargs="+", type=float, default=(100.0, 500.0, 1000.0))
    options.add_argument(
        "--messages", nargs="+", type=float, default=(0.0, 30.0), help="[Hz]; 0: as the loop"
    )
    options.add_argument("--limits", nargs="+", choices=tuple(LIMITS), default=tuple(LIMITS))
    given = options.parse_args()
    table = Table("the command beside the continuous reference", COLUMNS)
    table.rows.extend(in_processes(run, cases(given), given.processes, "paths"))
    needs = Table("what the paths ask of the joints", ASKED)
    needs.rows.extend(asked(name, speed) for name in given.paths for speed in given.speeds)
    finish(given, [table, needs])


if __name__ == "__main__":
    guarded(main)
