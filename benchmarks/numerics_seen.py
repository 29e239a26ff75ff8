"""What steps and short solves of one solver show, counted."""

import sys

import numpy as np

from benchmarks.chain_check import Forward, errors
from benchmarks.numerics_bounds import bound_of
from dls_ik import IkBatchResult, IkSolver, RobotModel, Status, Task
from dls_ik.core.search import FARTHEST_VALUE, MOST_TURNS

Array = np.ndarray
ROUNDING = 1e-9  # of a bound
TOLERANCE = 1.001e-6  # [m, rad] of a success
TURN = 2.0 * np.pi
EPSILON = float(np.finfo(float).eps)


class Seen:
    """The counts of one method, and its longest step."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self.steps = self.solves = self.solved = self.exceptions = 0
        self.longest, self.what, self.share = 0.0, "-", None  # type: float, str, float | None
        self.not_finite = self.too_long = self.outside = self.refused = self.violations = 0

    def look(
        self, one: IkSolver, few: IkSolver, truth: Forward, q: Array, Ts: Array, share: int
    ) -> None:
        """A step of `one` from each of q (b, n) toward Ts (b, 4, 4); of every so many `few`."""
        try:
            self._steps(one, q, Ts)
            self._solves(few, q[::share].copy(), Ts[::share].copy(), truth)
        except Exception as error:  # noqa: BLE001 - what the run is for
            self.exceptions += 1
            print(f"{one.method}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    def _steps(self, solver: IkSolver, q: Array, Ts: Array) -> None:
        result = solver.solve_batch(Ts, q, threads=self.threads)
        dq = _moved(solver, q, result.q)
        self.steps += len(q)
        self.longest = max(self.longest, float(np.nanmax(np.linalg.norm(dq, axis=1))))
        self.not_finite += _not_finite(result)
        self.refused += int((result.status == Status.REFUSED).sum())
        if solver.keeps_limits:
            self.outside += int((~_inside(solver.robot, result.q)).sum())
        self._bounds(solver, q, dq, Ts)

    def _bounds(self, solver: IkSolver, q: Array, dq: Array, Ts: Array) -> None:
        bound = bound_of(solver.method, solver.options, solver.robot.n)
        if bound is None:
            return
        is_gain = "gain" in bound.what
        e = _scaled_errors(solver, _start(solver, q), Ts) if is_gain else np.zeros(len(dq))
        size = np.abs(dq).max(axis=1) if bound.largest else np.linalg.norm(dq, axis=1)
        lost = 4.0 * EPSILON * np.linalg.norm(q, axis=1)  # digits, and turns with them
        share = (size - lost) / np.maximum(bound.most(e), 1e-300)
        self.what, self.share = bound.what, max(self.share or 0.0, float(share.max()))
        self.too_long += int((share > 1.0 + ROUNDING).sum())

    def _solves(self, solver: IkSolver, q: Array, Ts: Array, truth: Forward) -> None:
        result = solver.solve_batch(Ts, q, threads=self.threads)
        success = result.status == Status.SUCCESS
        denied = np.zeros(len(q), np.bool_)
        if success.any():
            left = errors(Task.pose(), Ts[success], truth(result.q[success]))
            rounding = 8.0 * EPSILON * (1.0 + np.abs(result.q[success]).max(axis=1))
            denied[success] = (left > TOLERANCE + rounding[:, None]).any(axis=1)
        outside = ~_inside(solver.robot, result.q) & (success | solver.keeps_limits)
        refused = result.status == Status.REFUSED
        self.solves += len(q)
        self.solved += int(success.sum())
        self.violations += _not_finite(result) + int((denied | outside | refused).sum())


def _moved(solver: IkSolver, q: Array, reached: Array) -> Array:
    """(b, n) how far a step went; an answer that is a turn nearer to a far seed went no farther."""
    dq = np.asarray(reached - _start(solver, q))
    if "kdl" in solver.method:
        return dq
    return np.where(_turns(solver, q) != 0.0, dq - TURN * np.round(dq / TURN), dq)


def _start(solver: IkSolver, q: Array) -> Array:
    """Where a solver begins: without turns that cost digits, inside limits that it keeps."""
    if "kdl" in solver.method:
        return q
    start = np.clip(q, -FARTHEST_VALUE, FARTHEST_VALUE) - TURN * _turns(solver, q)
    return solver.robot.clip(start) if solver.keeps_limits else start


def _turns(solver: IkSolver, q: Array) -> Array:
    """(b, n) whole turns that a solver takes from joint values which are so far that digits go."""
    far = np.abs(q) > TURN * MOST_TURNS
    return np.where(far, np.floor(q / TURN + 0.5), 0.0) * solver.problem.starts.turning


def _scaled_errors(solver: IkSolver, q: Array, Ts: Array) -> Array:
    """(b,) norms [m]."""
    left = errors(Task.pose(), Ts, solver.robot.fk(q))
    return np.asarray(np.hypot(left[:, 0], solver.options.rotation_weight * left[:, 1]))


def _inside(robot: RobotModel, q: Array) -> Array:
    return np.asarray(((q >= robot.lower) & (q <= robot.upper)).all(axis=1))


def _not_finite(result: IkBatchResult) -> int:
    """Rows."""
    finite = np.isfinite(result.q).all(axis=1)
    finite &= np.isfinite(result.position_error) & np.isfinite(result.rotation_error)
    return int((~finite).sum())
