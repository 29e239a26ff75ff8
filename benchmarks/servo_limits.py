# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Maximum violation of any limit by the simulated controller, over many random cycles.

Each run uses a shipped robot or a random arm of one to eight joints, with random limits, options
and loop times. The inputs are poses within and out of reach, streams of poses, twists,
trajectories, jumps, pauses and starts outside the limits, in random order. The loop time varies,
and sometimes a cycle is late, after the arm continued along the stop of the last command; its
position then counts as a command. Violations are relative to the limit, for positions to the range;
a joint that starts outside its limits may not move farther out. Velocity, acceleration and jerk are
divided differences of the commands over their due times.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive
from benchmarks.servo_runs import CORES, in_processes, moving
from dls_ik import RobotModel
from dls_ik.servo import Controller

SHIPPED = (
    "wam7", "puma560", "planar_2r", "ur10e", "fr3", "iiwa14", "irb140", "stanford", "cobra600"
)  # fmt: skip
METHODS = (None, None, None, "auto", "jd", "svf", "odls")
STEPS = 2000  # cycles of one run
JERKY = 0.3  # share of runs with a limit of jerk
LATE = 0.03  # share of cycles
COLUMNS = columns(
    "limits of; runs :d; cycles :d; position / range :.1e; velocity / limit :.1e; "
    "acceleration / limit :.1e; jerk / limit :.1e; worst run :d"
)


class Run(NamedTuple):
    """Result of one run."""

    kind: str  # its limits
    worst: np.ndarray  # (4,) position, velocity, acceleration, jerk, relative to the limit
    seed: int


def random_arm(rng: np.random.Generator) -> RobotModel:
    """Return an arm of one to eight joints, some prismatic, some continuous."""
    rows = []
    for _ in range(rng.integers(1, 9)):
        kind = rng.choice(["revolute", "revolute", "revolute", "prismatic", "continuous"])
        row = {"a": rng.uniform(-0.5, 0.5), "alpha": rng.uniform(-2, 2), "d": rng.uniform(0, 0.4)}
        row |= {"kind": str(kind), "velocity": float(rng.choice([0.5, 2.0, 6.0]))}
        if kind != "continuous":
            lower = rng.uniform(-3.0, 0.5)
            row |= {"lower": lower, "upper": lower + rng.uniform(0.1, 4.0)}
        rows.append(row)
    return RobotModel.from_dh(rows)


def controller_for(robot: RobotModel, rng: np.random.Generator, jerky: bool) -> Controller:
    """Return a controller with random limits and options."""
    options: dict[str, Any] = {
        "when_stuck": rng.choice(["hold", "joint_motion"], p=[0.9, 0.1]).item(),
        "feed_forward": bool(rng.integers(2)),
        "twist_lookahead": float(rng.choice([0.001, 0.02, 0.5])),
        "target_timeout": float(rng.choice([0.05, 0.25, 2.0])),
    }
    if jerky or rng.random() < 0.7:
        options["acceleration"] = float(rng.choice([0.5, 2.0, 10.0, 100.0]))
    if jerky:
        options["jerk"] = options["acceleration"] * float(rng.choice([2.0, 10.0, 50.0]))
    method = METHODS[rng.integers(len(METHODS))]
    return Controller(robot, method, **options)


def act(controller: Controller, rng: np.random.Generator, now: float, T: np.ndarray) -> np.ndarray:
    """Send the controller a random input or nothing, and return the last pose of the stream."""
    robot, choice = controller.robot, rng.random()
    if choice < 0.004:  # a jump, now and then beyond reach
        T = robot.fk(robot.random(rng=rng))
        T[:3, 3] *= rng.choice([1.0, 1.0, 3.0])
        controller.follow_pose(T, now)
    elif choice < 0.3:  # the next of a stream
        T = T.copy()
        T[:3, 3] += rng.normal(0.0, rng.choice([1e-3, 1e-2]), 3)
        controller.follow_pose(T, now, age=rng.uniform(0.0, 0.02))
    elif choice < 0.302:
        controller.follow_twist(rng.normal(0.0, rng.choice([0.1, 1.0, 100.0]), 6), now)
    elif choice < 0.303:
        Ts = np.array([robot.fk(robot.random(rng=rng)) for _ in range(5)])
        controller.follow_trajectory(Ts, rng.uniform(0.01, 1.0), now)
    elif choice < 0.304:
        controller.pause() if rng.random() < 0.3 else controller.refuse("a test")
    return T


def begin(controller: Controller, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Start at random joint positions, sometimes outside the limits; return them and the pose."""
    robot = controller.robot
    q = robot.random(rng=rng)
    if rng.random() < 0.2:
        q = q + rng.normal(0.0, 0.5, robot.n)
    controller.reset()
    controller.seed(q)
    return q, robot.fk(q)


def run(seed: int) -> Run:
    """Simulate one run."""
    rng = np.random.default_rng(seed)
    shipped = rng.random() < 0.5
    robot = moving(str(rng.choice(SHIPPED)), 2.0) if shipped else random_arm(rng)
    jerky = rng.random() < JERKY
    controller = controller_for(robot, rng, jerky)
    options = controller.options
    period = float(rng.choice([1e-3, 2e-3, 1e-2, 2e-2]))
    now, worst = 0.0, np.full(4, -math.inf)
    q, T = begin(controller, rng)
    path = Path(robot, options, q)
    for i in range(1, STEPS + 1):
        if i % 500 == 0:
            q, T = begin(controller, rng)
            path = Path(robot, options, q)
        dt = period * rng.uniform(0.3, 1.25 if jerky else 3.0)
        if rng.random() < LATE:
            elapsed, dt = period * 10.0 ** rng.uniform(-1, 2), min(dt, period)
            stop = controller.stop_path(period)
            controller.resume_at(elapsed, period)
            now += elapsed
            worst = np.maximum(worst, path.goes(stop.at(np.array([elapsed]))[0][0], elapsed))
        now += dt
        if controller.hold_reason and rng.random() < 0.02:
            controller.resume()
        if not controller.hold_reason:
            T = act(controller, rng, now, T)
        out = controller.cycle(now, dt)
        worst = np.maximum(worst, path.goes(out.q, dt))
    kind = "velocity"
    if np.isfinite(options.acceleration):
        kind = "velocity, acceleration, jerk" if jerky else "velocity, acceleration"
    return Run(kind, worst, seed)


class Path:
    """Checker of each command against the limits and the previous commands."""

    def __init__(self, robot: RobotModel, options: Any, q: np.ndarray) -> None:
        self._robot, self._options = robot, options
        self._extent = np.where(robot.limited, robot.upper - robot.lower, 1.0)
        self._differences = [q, np.zeros_like(q), np.zeros_like(q)]  # of order 0, 1, 2
        self._steps: tuple[float, float] | None = None  # [s] the last two; None: at rest before

    def goes(self, q: np.ndarray, dt: float) -> np.ndarray:
        """Return the excess (4,) of `q` over each limit after `dt` [s], relative to the limit."""
        robot, options = self._robot, self._options
        before, v, a = self._differences
        over = np.maximum(q - np.maximum(robot.upper, before), np.minimum(robot.lower, before) - q)
        last, first = self._steps or (dt, dt)
        new = (q - before) / dt
        change = 2.0 * (new - v) / (dt + last)
        bend = 3.0 * (change - a) / (dt + last + first)
        # Without a limit of jerk a velocity holds for a cycle, and may change by A dt for the next.
        A = options.acceleration
        if np.isinf(options.jerk):
            A = A * max(1.0, 2.0 * dt / (dt + last))
        self._differences, self._steps = [q, new, change], (dt, last)
        return np.array(
            [
                (over / self._extent).max(),
                (np.abs(new) / robot.velocity).max() - 1.0,
                (np.abs(change) / A).max() - 1.0,
                (np.abs(bend) / options.jerk).max() - 1.0,
            ]
        )


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, seed=0, processes=CORES)
    options.add_argument("--cycles", type=positive, default=10_000_000, help="of all runs")
    given = options.parse_args()
    count = -(-given.cycles // STEPS)
    seeds = range(given.seed, given.seed + count)
    found = in_processes(run, seeds, given.processes, f"{count * STEPS} cycles")
    table = Table(f"largest violation in {count} runs of {STEPS} cycles; 0 is none", COLUMNS)
    for kind in sorted({f.kind for f in found}, key=len):
        runs = [f for f in found if f.kind == kind]
        worst = np.array([f.worst for f in runs])
        limited = 2 + kind.count(",")
        most = [max(0.0, float(x)) for x in worst.max(axis=0)[:limited]] + [None] * (4 - limited)
        at = runs[int(worst[:, :limited].max(axis=1).argmax())].seed
        table.rows.append([kind, len(runs), len(runs) * STEPS, *most, at])
    finish(given, [table], ["`--seed` of a worst run and `--cycles 1` repeat it"])


if __name__ == "__main__":
    guarded(main)
