"""Checks of steps and short solves, and the longest step that a method may make."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.chain_runs import Forward, errors
from dls_ik import IkBatchResult, IkSolver, RobotModel, Status, Task
from dls_ik.core import damping, limits, step_bounds
from dls_ik.core.objectives import STEEPEST
from dls_ik.core.search import FARTHEST_VALUE, MOST_TURNS
from dls_ik.solver.method import MethodChoice, parse_method
from dls_ik.solver.options import SolverOptions

Array = np.ndarray
ROUNDING = 1e-9  # of a bound
TOLERANCE = 1.001e-6  # [m, rad] of a success
TURN = 2.0 * np.pi
EPSILON = float(np.finfo(float).eps)

# Published bounds


class Bound(NamedTuple):
    """A bound on steps, for errors (b,) [m] that they start from."""

    what: str
    largest: bool  # on the largest change of a joint, else on the norm
    most: Callable[[Array], Array]  # (b,) [rad]


def bound_of(name: str, options: SolverOptions, n: int) -> Bound | None:
    """Return the published bound of a method on an arm of n revolute joints, or None.

    It is the bound of the step, or else of the damping: s / (s^2 + lambda^2) <= 1 / (2 lambda).
    """
    choice = parse_method(name)
    of_step = _of_step(choice, options)
    pushes = choice.limits in (limits.TP, limits.CTP, limits.ACTIVE)
    if of_step is not None or pushes or choice.is_kdl:
        return of_step
    gain = _of_gain(choice, options)
    if gain is None or options.policy != "constant":
        return None
    if choice.limits == limits.GP:
        if options.objective != "limits" or options.form != 24:
            return None
        moved = options.mu * STEEPEST * np.sqrt(n)
        return Bound("gain, objective", False, lambda e: gain(e) * e + moved)
    if choice.limits == limits.TA and options.mu != 0.0:
        return None
    return Bound("gain", False, lambda e: gain(e) * e)


def _of_step(choice: MethodChoice, options: SolverOptions) -> Bound | None:
    most: dict[int, tuple[str, bool, float]] = {
        step_bounds.SD: ("gamma_max", False, options.gamma_max),
        step_bounds.SDLS: ("gamma_max", True, options.gamma_max),
        step_bounds.MAX: ("largest_change", True, options.largest_change),
        step_bounds.NORM: ("Delta", False, options.Delta),
    }
    if options.policy == "optimal" and choice.step == step_bounds.NONE:
        return Bound("Delta", False, lambda e: np.full_like(e, options.Delta))
    if choice.step not in most:
        return None
    what, largest, value = most[choice.step]
    return Bound(what, largest, lambda e: np.full_like(e, value))


def _of_gain(choice: MethodChoice, options: SolverOptions) -> Callable[[Array], Array] | None:
    """Return the largest gain of a law for errors (b,) [m]; clamped errors do not raise it."""
    if choice.damping == damping.JD and options.lambda_ > 0.0:
        return lambda e: np.full_like(e, 0.5 / options.lambda_)
    if choice.damping == damping.SVF:
        return lambda e: np.full_like(e, 1.0 / options.sigma0)
    if choice.reach or options.error_gain == 0.0:  # the error that damps is the shortened one
        return None
    if choice.damping in (damping.ED, damping.SVF_ED, damping.IED):
        omega = options.omega if choice.damping == damping.IED else 0.0
        tiny = np.finfo(float).tiny
        return lambda e: 0.5 / np.sqrt(np.maximum(options.error_gain * e * e + omega**2, tiny))
    return None


# Checks


class StepChecks:
    """The counts of one method, and its longest step."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self.steps = self.solves = self.solved = self.exceptions = 0
        self.longest, self.what, self.share = 0.0, "-", None  # type: float, str, float | None
        self.not_finite = self.too_long = self.outside = self.refused = self.violations = 0

    def look(
        self, one: IkSolver, few: IkSolver, truth: Forward, q: Array, Ts: Array, share: int
    ) -> None:
        """Make a step of `one` from each q (b, n) toward Ts (b, 4, 4); solve some by `few`."""
        try:
            self._steps(one, q, Ts)
            self._solves(few, q[::share].copy(), Ts[::share].copy(), truth)
        except Exception as error:  # noqa: BLE001 - counted
            self.exceptions += 1
            print(f"{one.method}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    def _steps(self, solver: IkSolver, q: Array, Ts: Array) -> None:
        result = solver.solve_batch(Ts, q, threads=self.threads)
        dq = _moved(solver, q, result.q)
        self.steps += len(q)
        self.longest = max(self.longest, float(np.nanmax(np.linalg.norm(dq, axis=1))))
        self.not_finite += _not_finite(result)
        self.refused += int((result.status == Status.REFUSED).sum())
        if solver.search.keeps_limits:
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
        outside = ~_inside(solver.robot, result.q) & (success | solver.search.keeps_limits)
        refused = result.status == Status.REFUSED
        self.solves += len(q)
        self.solved += int(success.sum())
        self.violations += _not_finite(result) + int((denied | outside | refused).sum())


def _moved(solver: IkSolver, q: Array, reached: Array) -> Array:
    """Return the steps (b, n), without whole turns that the answer took off a far seed."""
    dq = np.asarray(reached - _start(solver, q))
    if "kdl" in solver.method:
        return dq
    return np.where(_turns(solver, q) != 0.0, dq - TURN * np.round(dq / TURN), dq)


def _start(solver: IkSolver, q: Array) -> Array:
    """Return the start of a solver: without turns that cost digits, inside limits that it keeps."""
    if "kdl" in solver.method:
        return q
    start = np.clip(q, -FARTHEST_VALUE, FARTHEST_VALUE) - TURN * _turns(solver, q)
    return solver.robot.clip(start) if solver.search.keeps_limits else start


def _turns(solver: IkSolver, q: Array) -> Array:
    """Return the whole turns (b, n) that a solver takes off far joint values."""
    far = np.abs(q) > TURN * MOST_TURNS
    return np.where(far, np.floor(q / TURN + 0.5), 0.0) * solver.search.problem.starts.periodic


def _scaled_errors(solver: IkSolver, q: Array, Ts: Array) -> Array:
    """Return the norms (b,) [m] of the scaled errors."""
    left = errors(Task.pose(), Ts, solver.robot.fk(q))
    return np.asarray(np.hypot(left[:, 0], solver.options.rotation_weight * left[:, 1]))


def _inside(robot: RobotModel, q: Array) -> Array:
    return np.asarray(((q >= robot.lower) & (q <= robot.upper)).all(axis=1))


def _not_finite(result: IkBatchResult) -> int:
    """Return the number of rows that are not finite."""
    finite = np.isfinite(result.q).all(axis=1)
    finite &= np.isfinite(result.position_error) & np.isfinite(result.rotation_error)
    return int((~finite).sum())
