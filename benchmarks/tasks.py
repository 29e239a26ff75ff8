# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Task stacks: exactness of the priorities, residuals beside an exact QP solver, and times.

1. The tip of the WAM keeps its pose while the elbow moves through its feasible swivel angles at 500
   Hz. Errors are computed from the commands. The end of the range is also found by the solver.
2. Random stacks of three levels with bounds on each joint, beside daqp, which solves level by level
   in a basis of the null space of the levels above. The residuals of a stack are compared up to the
   first level that daqp fails on. A stack counts as worse if its first level that differs from daqp
   by more than 1e-7 has the larger residual. Every stack has its own random numbers, from the seed
   and its number: `--only-stacks --first-stack 20000 --stacks 20000` continues a run of the first
   20000 stacks.
3. Processor times of single calls from Python, in turns. A ratio of a cycle is to the cycle without
   a stack in the same turn, a ratio of `solve_levels` to all calls of daqp for the same stack.
4. Two WAMs carry an object, whose path leads one of them to its joint limits and out of its reach
   (benchmarks/carry.py).
5. With ``--peers``, other packages: a tip that shall stay, and a posture that pulls at it. Each
   package runs in an environment of its own, see :mod:`benchmarks.teleop`.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.carry import CARRIED
from benchmarks.carry import rows as carry_rows
from benchmarks.common import Table, columns, finish, guarded, parser, positive, quartiles, spread
from benchmarks.peers.arm import arm_of, errors
from benchmarks.servo_peers.adapters import PEERS
from benchmarks.servo_peers.environment import SERVO_PEERS, pythons, run
from benchmarks.servo_peers.job import ServoJob, ServoRun
from benchmarks.servo_runs import moving
from benchmarks.servo_step import Contestant, measured
from benchmarks.tracking import paths
from dls_ik import DlsIkError, IkSolver, PostureTask, RobotModel, SwivelTask, Task, TaskStack
from dls_ik.core.hierarchy import Bounds, solve_levels
from dls_ik.core.se3 import difference
from dls_ik.core.types import Chain
from dls_ik.model.chain import tip_poses
from dls_ik.servo import Controller, ServoOutput
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.stack_problem import build_stack

DT, ACCELERATION = 2e-3, 5.0  # [s], [rad/s^2]
BENT = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])  # [rad]
SWIVEL_SPEED = 0.5  # [rad/s] speed of the desired swivel angle
MAX_SWIVEL_LAG = 0.6  # [rad] largest lag of an elbow that has not stopped
SOLVER_STEP = 0.02  # [rad] step between two swivel angles of the solver
RESIDUAL_TOLERANCE = 1e-7
DAQP_TOLERANCE = 1e-11
BOUND_TOLERANCE = 1e-9  # maximum excess of a daqp result over a bound
PEER_CYCLES = 5000
POSTURE_COSTS = (1e-3, 1e-2, 1e-1)  # posture costs of other packages; the cost of the tip is 1
POSTURE_STEP = np.array(
    [0.5, -0.2, 0.4, 0.3, -0.3, 0.2, 0.5]
)  # [rad] the posture is BENT plus this step
POSTURE_PEERS = ["dls_ik", "pink", "mink", "placo", "OInK", "embodik"]
MOVED = columns(
    "pose; cycles :d; range [rad] :.3f; of the solver [rad] :.3f; smallest singular value "
    ":.3f; position error, max [m] :.1e; 99 % [m] :.1e; rotation error, max [rad] :.1e; 99 % [rad] "
    ":.1e; at rest [m] :.1e; [rad] :.1e"
)
COMPARED = columns(
    "joints :d; first stack :d; stacks :d; daqp failed on :d; worse than daqp :d; better :d; "
    "residual, largest difference :.1e; level 1 changed by 2 and 3 :.1e; violation of bounds :.1e; "
    "stopped early :d"
)
TIMES = columns("call; median [us] :.1f; 99 % [us] :.1f; ratio")
POSTURES = columns(
    "package; cost of the posture :g; tip moved by posture [m] :.1e; [rad] :.1e; during the motion "
    "[m] :.1e; distance from the posture [rad] :.3f; largest acceleration / limit :.1f; a cycle, "
    "median [us] :.0f"
)


# Swivel angles


@cache
def elbow_chain(robot: RobotModel) -> Chain:
    """Return a chain whose three tips are shoulder, elbow and wrist."""
    return build_stack(robot, TaskStack(Task(), SwivelTask(0.0)), SolverOptions()).params.points


def swivel(robot: RobotModel, q: np.ndarray) -> float:
    """Return the swivel angle [rad] of the elbow at q (n,); 0 is up."""
    shoulder, elbow, wrist = tip_poses(elbow_chain(robot), q[None])[0, :, :3, 3]
    axis = (wrist - shoulder) / np.linalg.norm(wrist - shoulder)
    up = np.array([0.0, 0.0, 1.0])
    return math.atan2(
        axis @ np.cross(up, elbow - shoulder), np.cross(axis, up) @ np.cross(axis, elbow - shoulder)
    )


def turned(angle: float, near: float) -> float:
    """Return an angle plus the whole turns that bring it within half a turn of `near`."""
    return near + math.remainder(angle - near, math.tau)


def solver_end(robot: RobotModel, q: np.ndarray, side: float) -> float:
    """Return the last swivel angle [rad] on one side that the solver reaches, at most a turn away.

    Each call starts at the answer before.
    """
    T, solver = robot.fk(q), IkSolver(robot, timeout=1.0)
    first = last = swivel(robot, q)
    while abs(last - first) < math.tau:
        stack = TaskStack(Task(), SwivelTask(last + side * SOLVER_STEP))
        result = solver.solve(T, q, task=stack)
        reached = turned(swivel(robot, result.q), last)
        is_far = np.abs(result.q - q).max() > 1.0  # another branch
        if not result.success or is_far or side * (reached - last) < 1e-6:
            break
        q, last = result.q, reached
    return last


def swivel_row(name: str, robot: RobotModel, q: np.ndarray) -> list[Any]:
    """Return the errors of the tip while the elbow moves to both ends of its range."""
    first = swivel(robot, q)
    stack = TaskStack(Task(), SwivelTask(first))
    controller = Controller(robot, task=stack, acceleration=ACCELERATION)
    controller.seed(q)
    controller.follow_pose(robot.fk(q), 0.0)
    outputs, rest, ends = [], [], []
    for side in (1.0, -1.0):
        ends.append(move_elbow(controller, ends[-1] if ends else first, side, first, outputs))
        rest.append(errors_at(robot, outputs[-1].q, robot.fk(q)))
    found = solver_end(robot, q, 1.0) - solver_end(robot, q, -1.0)
    position, rotation = np.array([errors_at(robot, out.q, robot.fk(q)) for out in outputs]).T
    least = min(out.least_singular_value for out in outputs)
    tops = position.max(), most(position), rotation.max(), most(rotation), *np.max(rest, axis=0)
    return [name, len(outputs), ends[0] - ends[1], found, least, *map(float, tops)]


def move_elbow(
    controller: Controller, angle: float, side: float, first: float, outputs: list[ServoOutput]
) -> float:
    """Move the elbow until it stops or is a turn away from the first angle; return its angle [rad].

    Args:
        controller: Follows a pose that does not move.
        angle: Swivel angle before [rad].
        side: 1 for increasing angles, -1 for decreasing angles.
        first: First swivel angle of both motions [rad].
        outputs: List to which the outputs of the cycles are added.
    """
    desired, is_ahead = angle, True
    while is_ahead or controller.moves:
        is_ahead = abs(desired - angle) < MAX_SWIVEL_LAG and abs(desired - first) < math.tau
        if is_ahead:
            desired += side * SWIVEL_SPEED * DT
            controller.set_swivel(desired)
        outputs.append(controller.cycle(DT * (len(outputs) + 1), DT))
        angle = turned(swivel(controller.robot, outputs[-1].q), angle)
    return angle


def errors_at(robot: RobotModel, q: np.ndarray, T: np.ndarray) -> tuple[float, float]:
    """Return the position error [m] and the rotation error [rad] of the tip at q (n,)."""
    e = difference(robot.fk(q), T)
    return float(np.linalg.norm(e[:3])), float(np.linalg.norm(e[3:]))


def most(values: np.ndarray) -> float:
    """Return the 99th percentile."""
    return float(np.percentile(values, 99))


# Random stacks


class Stack(NamedTuple):
    """Rows and bounds of a random stack; x = 0 is within the bounds."""

    A: np.ndarray  # (m, n)
    b: np.ndarray  # (m,)
    ends: np.ndarray  # (l,) index after the last row of each level
    low: np.ndarray  # (n,)
    high: np.ndarray  # (n,)

    def solve(self, levels: int | None = None) -> tuple[np.ndarray, bool]:
        """Return the solution (n,) of the first levels, and whether it is optimal."""
        n, ends = self.A.shape[1], self.ends[:levels]
        x, last = np.zeros(n), ends[-1]
        bounds = Bounds(np.eye(n), self.low, self.high)
        return x, bool(solve_levels(self.A[:last], self.b[:last], ends, bounds, x))

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """Return the norms (l,) of the residuals of all levels."""
        return np.array(
            [np.linalg.norm(part) for part in np.split(self.A @ x - self.b, self.ends[:-1])]
        )


def random_stack(rng: np.random.Generator, n: int, sizes: Sequence[int] = ()) -> Stack:
    """Return a random stack for n joints.

    Without `sizes`, there are three levels of 1 to 5 rows, in a third of the stacks with a row that
    depends on levels above, and one joint is fixed.
    """
    rows = np.array(sizes) if len(sizes) else rng.integers(1, 6, size=3)
    ends = np.cumsum(rows)
    A, b = rng.normal(size=(ends[-1], n)), rng.normal(size=ends[-1])
    low, high = -rng.uniform(0.0, 0.5, n), rng.uniform(0.0, 0.5, n)
    if not len(sizes):
        if rng.random() < 0.3:
            A[-1] = A[0] - A[ends[0]]
        if rng.random() < 0.3:
            b *= 0.1
        joint = rng.integers(n)
        low[joint] = high[joint] = 0.0
    return Stack(A, b, ends, low, high)


def exact(daqp: Any, stack: Stack) -> tuple[list[float], float]:
    """Return the residuals of the levels until daqp fails, and its processor time [us].

    The regularisation of a level is removed by a second call, which starts at the result of the
    first one and is not part of the time. A result beyond the bounds counts as a failure.
    """
    A, b, ends, low, high = stack
    n, start, norms, taken = A.shape[1], 0, [], 0.0
    x, Z = np.zeros(n), np.eye(n)
    for end in ends:
        G = A[start:end] @ Z
        for is_first in (True, False) if Z.shape[1] else ():
            left = b[start:end] - A[start:end] @ x
            H = G.T @ G + DAQP_TOLERANCE * np.eye(Z.shape[1])
            room, rows = (high - x, low - x), np.ascontiguousarray(Z)
            begin = time.thread_time_ns()
            y, _, flag, _ = daqp.solve(
                H, -G.T @ left, rows, *room, np.zeros(n, np.int32),
                primal_tol=DAQP_TOLERANCE, dual_tol=DAQP_TOLERANCE,
            )  # fmt: skip
            taken += is_first * 1e-3 * (time.thread_time_ns() - begin)
            x = x + Z @ y
            if flag <= 0 or max((x - high).max(), (low - x).max()) > BOUND_TOLERANCE:
                return norms, taken
        _, s, Vt = np.linalg.svd(G)
        Z = Z @ Vt[(s > 1e-9).sum() :].T
        norms.append(float(np.linalg.norm(A[start:end] @ x - b[start:end])))
        start = end
    return norms, taken


def number(text: str) -> int:
    """Return a whole number of at least 0, for argparse."""
    return positive(text) if int(text) else 0


def compared_row(daqp: Any, n: int, stacks: range, seed: int) -> list[Any]:
    """Return the comparison of random stacks for n joints; without daqp its columns are None.

    Args:
        daqp: The module, or None.
        n: Number of joints.
        stacks: Numbers of the stacks. A stack depends on its number, n and the seed only.
        seed: Seed of all stacks.
    """
    failed = worse = better = early = 0
    largest = changed = outside = 0.0
    for number in stacks:
        stack = random_stack(np.random.default_rng([seed, n, number]), n)
        x, is_optimal = stack.solve()
        early += not is_optimal
        outside = max(outside, float((stack.low - x).max()), float((x - stack.high).max()))
        first = stack.A[: stack.ends[0]]
        changed = max(changed, float(np.abs(first @ (x - stack.solve(1)[0])).max()))
        if daqp is None:
            continue
        norms, _ = exact(daqp, stack)
        failed += len(norms) < len(stack.ends)
        excess = stack.residuals(x)[: len(norms)] - norms
        largest = max(largest, float(np.abs(excess).max(initial=0.0)))
        wrong = excess[np.abs(excess) > RESIDUAL_TOLERANCE]
        worse += len(wrong) > 0 and wrong[0] > 0.0
        better += len(wrong) > 0 and wrong[0] < 0.0
    of_daqp = [failed, worse, better, largest] if daqp is not None else [None] * 4
    return [n, stacks.start, len(stacks), *of_daqp, changed, outside, early]


# Times


def level_rows(daqp: Any, repeats: int, seed: int) -> Iterator[list[Any]]:
    """Yield times of `solve_levels` for random stacks, whose bounds are partly active."""
    for n, sizes, of in ((7, (6, 1, 7), "3 levels"), (14, (12, 14), "2 levels")):
        rng = np.random.default_rng(seed)
        stacks = [random_stack(rng, n, sizes) for _ in range(100)]
        for share, where in ((0.01, "no bound active"), (0.3, "bounds active")):
            scaled = [stack._replace(b=share * stack.b) for stack in stacks]
            bounds = [Bounds(np.eye(n), stack.low, stack.high) for stack in scaled]
            found, ratios = [], []
            for _ in range(repeats):
                ours, theirs = [], []
                for stack, bound in zip(scaled, bounds, strict=True):
                    x = np.zeros(n)
                    begin = time.thread_time_ns()
                    solve_levels(stack.A, stack.b, stack.ends, bound, x)
                    ours.append(1e-3 * (time.thread_time_ns() - begin))
                    if daqp is not None:
                        theirs.append(exact(daqp, stack)[1])
                found += ours
                ratios.append(np.median(ours) / np.median(theirs) if theirs else math.nan)
            ratio = spread(ratios) if daqp is not None else None
            yield [
                f"solve_levels, {n} joints, {of}, {where}",
                quartiles(found)[0], float(np.percentile(found, 99)), ratio,
            ]  # fmt: skip


def cycle_rows(repeats: int, cycles: int) -> Iterator[list[Any]]:
    """Yield times of a cycle of a controller on a circle, with and without a stack."""
    robot, path = moving("wam7"), paths()["circle"]
    stacks = {
        "Controller.cycle without a stack": None,
        "with a posture": TaskStack(Task(), PostureTask(BENT)),
        "with a swivel angle": TaskStack(Task(), SwivelTask(0.0)),
        "with a swivel angle, then a posture": TaskStack(
            Task(), SwivelTask(0.0), PostureTask(BENT)
        ),
    }
    rows = []
    for name, stack in stacks.items():
        controller = Controller(robot, task=stack, acceleration=ACCELERATION)
        controller.seed(path.start())
        rows.append(Contestant("cycle", name, "", controller.follow_pose, cycle_of(controller)))
    found = measured(rows, path, repeats, cycles)
    alone = np.median(found[0], axis=1)
    for row, times in zip(rows, found, strict=True):
        ratio = spread(np.median(times, axis=1) / alone)
        yield [row.method, quartiles(times)[0], float(np.percentile(times, 99)), ratio]


def cycle_of(controller: Controller) -> Callable[[np.ndarray, float], Any]:
    """Return a call that makes the cycle of a controller at a time."""
    return lambda T, now: controller.cycle(now, 1e-3)


# Other packages


def posture_job(robot: RobotModel, cost: float) -> ServoJob:
    """Return a tip that shall stay while a posture pulls at it."""
    T = np.tile(robot.fk(BENT), (1, PEER_CYCLES, 1, 1, 1))
    has_arrived = np.ones((1, PEER_CYCLES, 1), bool)
    limit = np.full(robot.n, ACCELERATION)
    arm, start, posture = arm_of(robot), BENT[None], BENT + POSTURE_STEP
    return ServoJob(arm, robot.velocity, limit, DT, start, T, has_arrived, posture, cost)


def posture_row(name: str, cost: float, job: ServoJob, found: ServoRun) -> list[Any]:
    """Return errors of the tip, distance from the posture, smoothness and time."""
    q = found.q[0]
    position, rotation = errors(job.arm.fk(q), job.targets[0, :, 0])
    v = np.diff(np.vstack([BENT, BENT, q]), axis=0) / DT
    acceleration = np.abs(np.diff(v, axis=0)).max() / DT / ACCELERATION
    end = float(np.linalg.norm(q[-1] - job.posture))
    moved = float(position[-1]), float(rotation[-1]), float(position.max())
    time = 1e6 * float(np.median(found.time))
    return [name, None if np.isnan(cost) else cost, *moved, end, float(acceleration), time]


def posture_rows(folder: Path) -> tuple[list[list[Any]], list[str]]:
    """Return the rows of all packages, and notes on their settings."""
    robot, rows, notes = moving("wam7"), [], []
    for name, python in pythons(POSTURE_PEERS, folder):
        for cost in POSTURE_COSTS if PEERS[name].weighs_posture else (np.nan,):
            job = posture_job(robot, cost)
            try:
                found = run(name, python, job)
            except DlsIkError as error:
                notes.append(str(error))
                break
            rows.append(posture_row(name, cost, job, found))
    return rows, notes


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, repeats=20, seed=0)
    options.add_argument(
        "--stacks", type=positive, default=1000, help="random stacks for each number of joints"
    )
    options.add_argument(
        "--first-stack", type=number, default=0, help="number of the first random stack"
    )
    options.add_argument(
        "--only-stacks", action="store_true", help="compare random stacks and nothing else"
    )
    options.add_argument(
        "--poses", type=positive, default=5, help="of the tip, for the swivel angle"
    )
    options.add_argument("--cycles", type=positive, default=250, help="of a turn")
    options.add_argument("--carried", type=positive, default=4000, help="cycles with an object")
    options.add_argument(
        "--peers", action="store_true", help="also other packages, installed into --environment"
    )
    options.add_argument("--environment", type=Path, default=SERVO_PEERS, metavar="DIR")
    given = options.parse_args()
    try:
        daqp: Any = import_module("daqp")
    except ImportError:
        daqp = None
    numbers = range(given.first_stack, given.first_stack + given.stacks)
    stacks = [compared_row(daqp, n, numbers, given.seed) for n in (7, 14)]
    notes = [] if daqp is not None else ["daqp is not installed: nothing to compare with"]
    compared = Table("Random stacks of three levels with bounds", COMPARED, stacks)
    if given.only_stacks:
        finish(given, [compared], notes)
        return
    robot, rng = RobotModel.wam(), np.random.default_rng(given.seed)
    starts = {"bent": BENT}
    while len(starts) < given.poses:
        starts[f"random {len(starts)}"] = 0.7 * robot.random(rng=rng)
    swivels = [swivel_row(name, robot, q) for name, q in starts.items()]
    times = [*level_rows(daqp, given.repeats, given.seed), *cycle_rows(given.repeats, given.cycles)]
    tables = [
        Table("Elbow through its range of swivel angles, tip at rest, 500 Hz", MOVED, swivels),
        compared,
        Table("Processor times", TIMES, times),
        Table(
            "Two WAMs carry an object, 14 joints, 2 levels, 500 Hz",
            CARRIED,
            carry_rows(given.carried),
        ),
    ]
    if given.peers:
        rows, more = posture_rows(given.environment)
        tables.append(Table("A posture pulls at a tip that shall stay", POSTURES, rows))
        notes += more
    finish(given, tables, notes)


if __name__ == "__main__":
    guarded(main)
