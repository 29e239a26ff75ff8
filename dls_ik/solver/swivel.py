# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Feasible swivel angles of the elbow for a pose of the tip.

The angles are exact for arms with a spherical shoulder and a spherical wrist (swivel_angles.py).
For other arms, the curves of configurations that reach the pose are followed from random solutions.
The ends of the intervals, at joint limits and at extrema of the angle, are refined by root finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik import compat
from dls_ik.core.boxes import boxed
from dls_ik.core.self_motion_curve import CurveSamples, follow_curve
from dls_ik.core.types import Array
from dls_ik.model.joint import TURN
from dls_ik.model.robot import RobotModel
from dls_ik.solver.method import AUTO_METHOD, parse_method
from dls_ik.solver.options import SolverOptions, solver_options
from dls_ik.solver.search import Search, build_search, found
from dls_ik.solver.stack_problem import build_stack
from dls_ik.solver.swivel_angles import (
    LIMIT_TOLERANCE,
    Intervals,
    exact_angles,
    spherical_arm,
    union,
)
from dls_ik.solver.task import Task
from dls_ik.solver.task_stack import SwivelTask, TaskStack

NUM_CURVE_STARTS = 96  # random starts of the search for curves, by each of the methods
# The first method finds solutions within the joint limits. The second method ignores the limits;
# it also finds curves of which only a small part is within the limits.
CURVE_METHODS = (AUTO_METHOD, "ed")
MAX_CURVE_SAMPLES = 4000
MAX_CURVES = 16  # number of curves of an arm with seven revolute joints (Burdick 1989)
SAME_CURVE_DISTANCE = 0.02  # [rad] largest distance of a solution from a curve that contains it
LARGEST_ANGLE_STEP = 1.0  # [rad] a larger change between samples means an undefined angle
ROOT_TOLERANCE = 1e-10  # [rad] accuracy of the ends of intervals
MAX_ROOT_STEPS = 60

_follow_curve = compat.EntryPoint(follow_curve)


class SwivelIntervals:
    """Swivel angles of the elbow with which an arm reaches a pose within its joint limits.

    An interval (low, high) [rad] has -pi <= low < pi, and high may exceed pi. If all angles are
    feasible, the only interval is (-pi, pi). Isolated feasible angles are omitted.

    Attributes:
        intervals: (k, 2) union of the angles of all branches, in ascending order; (0, 2) if the
            pose cannot be reached, or the angle is undefined in all solutions.
        branches: Intervals (k, 2) [rad] of each branch of solutions with a feasible angle. While
            the tip keeps its pose, the elbow can move within one interval of one branch. If
            `is_exact`, branches that meet in a singularity are separate entries.
        is_exact: True for arms with a spherical shoulder and a spherical wrist: the ends are
            computed in closed form. False for other arms: branches are found from random solutions,
            so that an interval may be missing; ends are accurate to 1e-6 rad.
    """

    def __init__(self, branches: list[Intervals], is_exact: bool) -> None:
        self.branches = tuple(branches)
        self.intervals = union(branches)
        self.is_exact = is_exact

    def __repr__(self) -> str:
        """Return the intervals, rounded to 0.001 rad."""
        ends = ", ".join(f"[{low:.3f}, {high:.3f}]" for low, high in self.intervals.tolist())
        return f"SwivelIntervals({ends or 'none'}; {'exact' if self.is_exact else 'sampled'})"

    def contains(self, angle: float, tolerance: float = 0.0) -> bool:
        """Return whether an angle, or an angle that differs by full turns, is feasible.

        Args:
            angle: Swivel angle [rad].
            tolerance: Distance from an interval that still counts [rad].
        """
        return self.distance(angle) <= tolerance

    def distance(self, angle: float) -> float:
        """Return the distance of an angle from the closest feasible angle; inf without any.

        Args:
            angle: Swivel angle [rad], modulo 2 pi.
        """
        if not len(self.intervals):
            return math.inf
        middle, half = self.intervals.mean(axis=1), np.ptp(self.intervals, axis=1) / 2.0
        away = np.abs((angle - middle + math.pi) % TURN - math.pi) - half
        return max(0.0, float(away.min()))

    def closest(self, angle: float) -> float:
        """Return the feasible angle that is closest to an angle; NaN without feasible angles.

        Args:
            angle: Swivel angle [rad].

        Returns:
            The angle itself if it is feasible, otherwise an end of an interval, within half a turn
            of the angle [rad].
        """
        if self.contains(angle):
            return angle
        ends = self.intervals.ravel()
        if not len(ends):
            return math.nan
        away = (ends - angle + math.pi) % TURN - math.pi
        return angle + float(away[np.abs(away).argmin()])


def swivel_intervals(robot: RobotModel, T: Array, up: Sequence[float]) -> SwivelIntervals:
    """Return the feasible swivel angles for one pose.

    Args:
        robot: Serial arm with seven revolute joints and one tip.
        T: (4, 4) pose of the tip.
        up: Direction of the angle 0 in the base frame.

    Raises:
        OptionError: If the robot has no swivel angle, or `up` is not a direction.
    """
    direction = np.array(SwivelTask(0.0, up).up)
    arm = spherical_arm(robot)
    if arm is not None:
        return SwivelIntervals(exact_angles(arm, T, direction), True)
    curves = _Curves(robot, tuple(direction.tolist()), T)
    return SwivelIntervals(
        [each for curve in curves.find() for each in curves.angles(curve)], False
    )


class _Sample(NamedTuple):
    """A configuration on a curve."""

    q: Array  # (n,) joint positions [rad]
    tangent: Array  # (n,) unit vector
    angle: float  # swivel angle, continued from the sample before [rad]
    rate: float  # derivative of the swivel angle by the path length


@lru_cache(maxsize=16)
def _tools(robot: RobotModel, up: tuple[float, ...]) -> tuple[Any, list[Search]]:
    """Return the boxed stack of pose and swivel angle, and a search for each curve method."""
    choices = [parse_method(method) for method in CURVE_METHODS]
    searches = [build_search(robot, choice, solver_options(choice, {}), None) for choice in choices]
    return _boxed_stack(robot, up), searches


def _boxed_stack(robot: RobotModel, up: tuple[float, ...]) -> Any:
    stack = build_stack(robot, TaskStack(Task(), SwivelTask(0.0, up)), SolverOptions())
    return boxed(stack.params)


def load_curve_kernel(robot: RobotModel) -> None:
    """Load or compile the kernel that follows curves, without a search for solutions.

    Args:
        robot: Arm with an elbow, of at least seven joints.
    """
    q = np.full(robot.n, 0.5)
    one = _space(1, q, np.eye(robot.n)[0])
    _follow_curve(_boxed_stack(robot, (0.0, 0.0, 1.0)), robot.fk(q)[None], one)


class _Curves:
    """Curves of the configurations that reach a pose, and the feasible swivel angles on them."""

    def __init__(self, robot: RobotModel, up: tuple[float, ...], T: Array) -> None:
        self._robot, self._T = robot, np.ascontiguousarray(T[None])
        self._box, self._searches = _tools(robot, up)
        lower, upper = robot.finite_limits()
        is_narrow = robot.limited & (upper - lower < TURN)
        self._half = np.where(is_narrow, 0.5 * (upper - lower), np.inf)
        self._middle = np.where(is_narrow, 0.5 * (lower + upper), 0.0)

    def margin(self, q: Array) -> Array:
        """Return the smallest distances (...,) of configurations (..., n) from their limits [rad].

        The distance is negative beyond a limit. Full turns of joints do not count.
        """
        away = np.abs((q - self._middle + math.pi) % TURN - math.pi)
        return np.asarray((self._half - away).min(axis=-1))

    def find(self) -> list[list[_Sample]]:
        """Return the curves through random solutions, some of which may not be feasible."""
        starts = self._robot.random(NUM_CURVE_STARTS, np.random.default_rng(0))
        T, solutions = np.repeat(self._T[None], len(starts), axis=0), []
        for search in self._searches:
            rows = search.new_rows(len(starts))
            search.attempt(T, starts, 1, rows)
            solutions.append(rows.best[found(rows)])
        q = np.concatenate(solutions)
        curves: list[list[_Sample]] = []
        while len(q) and len(curves) < MAX_CURVES:
            curve = self._follow(q[0])
            q = q[1:]
            if curve:
                curves.append(curve)
                q = q[_distances(q, np.array([sample.q for sample in curve])) > SAME_CURVE_DISTANCE]
        return curves

    def _follow(self, q: Array) -> list[_Sample]:
        """Return the samples of the curve through a solution (n,), in both directions if open."""
        forward, is_closed = self._half_curve(q, None)
        if is_closed or not forward:
            return forward
        backward, _ = self._half_curve(q, -forward[0].tangent)
        turned = [
            _Sample(sample.q, -sample.tangent, sample.angle, -sample.rate)
            for sample in backward[:0:-1]
        ]
        return turned + forward

    def _half_curve(self, q: Array, direction: Array | None) -> tuple[list[_Sample], bool]:
        """Return the samples of a curve from q (n,) on, and whether the curve is closed."""
        if direction is None:
            direction = np.linalg.svd(self._robot.jacobian(q))[2][-1]
        samples = _space(MAX_CURVE_SAMPLES, q, direction)
        count, is_closed = _follow_curve(self._box, self._T, samples)
        parts = (part[:count].tolist() for part in samples[2:])
        rows = zip(samples.q[:count], samples.tangent[:count], *parts, strict=True)
        return [_Sample(*row) for row in rows], bool(is_closed)

    def angles(self, curve: list[_Sample]) -> list[Intervals]:
        """Return the feasible swivel angles on a curve: one array (1, 2) for each feasible part."""
        curve = self._with_hidden_limits(curve)
        feasible = self.margin(np.array([sample.q for sample in curve])) >= -LIMIT_TOLERANCE
        is_loop = len(curve) > 2 and _distance(curve[0].q, curve[-1].q) < LIMIT_TOLERANCE
        if is_loop and not feasible.all():  # start at an infeasible sample
            first = int(np.argmin(feasible))
            curve = curve[first:-1] + curve[: first + 1]
            feasible = np.append(np.roll(feasible[:-1], -first), feasible[first])
        parts: list[list[float]] = []
        for i, sample in enumerate(curve):
            before = curve[i - 1]
            if i > 0 and feasible[i - 1] != feasible[i]:
                at_limit = self._between(before, sample, self._margin_of).angle
                if feasible[i]:
                    parts.append([at_limit])
                else:
                    parts[-1].append(_continued(at_limit, parts[-1][-1]))
            elif feasible[i] and (i == 0 or abs(_turn(sample, before)) > LARGEST_ANGLE_STEP):
                parts.append([])  # a new part; a jump of the angle means that it is undefined
            elif feasible[i] and before.rate * sample.rate < 0.0:
                turning = self._between(before, sample, lambda at: at.rate).angle
                parts[-1].append(_continued(turning, parts[-1][-1]))
            if feasible[i]:
                last = parts[-1][-1] if parts[-1] else sample.angle
                parts[-1].append(_continued(sample.angle, last))
        return [_interval(part) for part in parts if np.ptp(part) > ROOT_TOLERANCE]

    def _margin_of(self, sample: _Sample) -> float:
        return float(self.margin(sample.q))

    def _with_hidden_limits(self, curve: list[_Sample]) -> list[_Sample]:
        """Add samples where a limit is crossed twice between two neighbouring samples."""
        q, tangent = (np.array([sample[k] for sample in curve]) for k in (0, 1))
        step = np.diff(q, axis=0)
        length = np.linalg.norm(step, axis=1)[:, None]
        outside = self.margin(q) < -LIMIT_TOLERANCE
        complete = curve[:1]
        hidden = np.zeros((len(step), 3), np.bool_)
        for k, share in enumerate((0.25, 0.5, 0.75)):  # cubic interpolation with the tangents
            a, b = share * (1.0 - share) ** 2, -(share**2) * (1.0 - share)
            at = q[:-1] + (3.0 - 2.0 * share) * share**2 * step
            at += length * (a * tangent[:-1] + b * tangent[1:])
            hidden[:, k] = self.margin(at) < -LIMIT_TOLERANCE
        same = (outside[:-1] == outside[1:])[:, None] & (hidden != outside[:-1, None])
        for i in range(len(step)):
            for k in np.flatnonzero(same[i]).tolist():
                between = self._at(curve[i], curve[i + 1], 0.25 * (k + 1))
                if between is not None:
                    complete.append(between)
            complete.append(curve[i + 1])
        return complete

    def _at(self, start: _Sample, end: _Sample, share: float) -> _Sample | None:
        """Return the sample at a share of the step between two samples; None if it is not found."""
        q, tangent = (
            one + share * (two - one) for one, two in zip(start[:2], end[:2], strict=True)
        )
        at = _space(1, q, tangent)
        if not _follow_curve(self._box, self._T, at)[0]:
            return None
        angle = _continued(float(at.angle[0]), start.angle)
        return _Sample(at.q[0], at.tangent[0], angle, float(at.rate[0]))

    def _between(self, start: _Sample, end: _Sample, value: Callable[[_Sample], float]) -> _Sample:
        """Return the sample between two samples at which a value is zero, by regula falsi.

        Args:
            start, end: Samples with values of different signs.
            value: Continuous function of a sample.
        """
        low, high, f_low, f_high = 0.0, 1.0, value(start), value(end)
        best = start if abs(f_low) < abs(f_high) else end
        for _ in range(MAX_ROOT_STEPS):
            share = high - f_high * (high - low) / (f_high - f_low)
            sample = self._at(start, end, share)
            if sample is None:
                break
            f = value(sample)
            best = sample
            if abs(f) < ROOT_TOLERANCE or high - low < ROOT_TOLERANCE:
                break
            if f * f_high > 0.0:  # the Illinois rule: halve the value of an end that is kept again
                high, f_high, f_low = share, f, 0.5 * f_low
            else:
                low, f_low, f_high = share, f, 0.5 * f_high
        return best


def _space(count: int, q: Array, tangent: Array) -> CurveSamples:
    """Return arrays for some samples of a curve, with the first q (n,) and tangent (n,)."""
    samples = CurveSamples(
        np.empty((count, len(q))), np.empty((count, len(q))), np.empty(count), np.empty(count)
    )
    samples.q[0], samples.tangent[0] = q, tangent
    return samples


def _interval(part: list[float]) -> Intervals:
    """Return the interval (1, 2) of the continued angles of a feasible part [rad]."""
    low, high = min(part), max(part)
    if high - low >= TURN:
        return np.array([[-math.pi, math.pi]])
    start = (low + math.pi) % TURN - math.pi
    return np.array([[start, start + high - low]])


def _continued(angle: float, last: float) -> float:
    """Return an angle plus the full turns that bring it within half a turn of another angle."""
    return last + (angle - last + math.pi) % TURN - math.pi


def _turn(sample: _Sample, before: _Sample) -> float:
    """Return the change of the swivel angle between two samples, within half a turn [rad]."""
    return (sample.angle - before.angle + math.pi) % TURN - math.pi


def _distance(one: Array, other: Array) -> float:
    """Return the distance of two configurations (n,) without regard to full turns [rad]."""
    return float(np.linalg.norm((one - other + math.pi) % TURN - math.pi))


def _distances(q: Array, curve: Array) -> NDArray[np.float64]:
    """Return the distances (s,) of configurations (s, n) from the lines between samples (m, n).

    Full turns of joints do not count [rad].
    """
    step = np.diff(curve, axis=0)
    away = (q[:, None] - curve[:-1] + math.pi) % TURN - math.pi  # (s, m - 1, n)
    share = np.clip((away * step).sum(axis=2) / (step * step).sum(axis=1), 0.0, 1.0)
    return np.asarray(
        np.linalg.norm(away - share[..., None] * step, axis=2).min(axis=1, initial=9.0)
    )
